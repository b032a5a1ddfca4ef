//! Virtual environments: one for each list of packages, created while an extension is loaded and never later. Only wheels are
//! installed, so that no code of a package runs during installation. `registry` reads the user's configuration for the installers.

mod registry;

#[cfg(test)]
mod registry_tests;

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::Read;
use std::path::{Path, PathBuf};

use holdfast_contract::ids::ExtensionId;
use holdfast_contract::log::Sinks;
use holdfast_contract::problem::Fault;
use holdfast_sandbox::SandboxReport;
use holdfast_untrusted_files::{ProgramSearch, open_regular};
use tokio::time::Instant;

use crate::packages::installer::{Configured, Installer};
use crate::packages::{INSTALL_TIMEOUT, install_once, mark_complete, text};
use crate::python::interpreter::Interpreter;
use crate::python::requirements::Requirements;

/// A complete environment.
#[derive(Clone, Debug)]
pub(crate) struct PythonEnvironment {
    /// Its folder.
    pub folder: PathBuf,
}

impl PythonEnvironment {
    /// Its Python.
    pub(crate) fn python(&self) -> PathBuf {
        self.folder.join("bin/python")
    }

    /// The environment with these packages, created if it does not exist.
    pub(crate) async fn with(
        needed: &Requirements,
        python: &Interpreter,
        place: &Path,
        report: SandboxReport,
        agent_folders: &[PathBuf],
        told: (&ExtensionId, &Sinks),
    ) -> Result<Self, Fault> {
        let folder = place.join(&needed.digest(&python.identity()).to_string()[..32]);
        let environment = Self { folder };
        let packages = needed.lines.iter().cloned().collect();
        let uv = uv(&ProgramSearch::new(std::env::var_os("PATH").as_deref(), agent_folders));
        let install = environment.install(needed, python, uv, report, told);
        install_once(&environment.folder, packages, told, install).await?;
        Ok(environment)
    }

    async fn install(
        &self,
        needed: &Requirements,
        python: &Interpreter,
        uv: Option<PathBuf>,
        report: SandboxReport,
        log_target: (&ExtensionId, &Sinks),
    ) -> Result<(), Fault> {
        let deadline = Instant::now() + INSTALL_TIMEOUT;
        let programs: Vec<PathBuf> = uv.iter().cloned().collect();
        let configure = |home: &Path| configured(&self.folder, home, python, &programs);
        let installer = Installer::prepare(&self.folder, configure, report, deadline, log_target)?;
        let lines: Vec<&str> = needed.lines.iter().map(String::as_str).collect();
        let list = installer.file("requirements.txt", &lines.join("\n"))?;
        let (own, list) = (self.python(), text(&list)?.to_owned());
        let (own, base, folder) = (text(&own)?, text(&python.executable)?, text(&self.folder)?);
        const WHEELS: [&str; 2] = ["--only-binary", ":all:"];
        match &uv {
            Some(uv) => {
                let uv = text(uv)?;
                installer.run(&[uv, "venv", "--quiet", "--python", base, folder]).await?;
                let install = [uv, "pip", "install", "--link-mode", "copy", "--python", own, "-r", &list];
                installer.run(&[install.as_slice(), &WHEELS].concat()).await?;
            }
            None => {
                installer.run(&[base, "-I", "-m", "venv", folder]).await?;
                let install = [own, "-I", "-m", "pip", "install", "--no-input", "-r", &list];
                installer.run(&[install.as_slice(), &WHEELS].concat()).await?;
            }
        }
        mark_complete(&self.folder, &lines.join("\n"))
    }
}

/// What the installers of an environment have of the user's configuration, and what they must be able to read.
pub(crate) fn configured(
    folder: &Path,
    home: &Path,
    python: &Interpreter,
    programs: &[PathBuf],
) -> std::io::Result<Configured> {
    let mut configured = registry::configured(std::env::vars_os(), home, &[folder])?;
    let fixed: [(&str, OsString); 4] = [
        ("PIP_DISABLE_PIP_VERSION_CHECK", "1".into()),
        ("PIP_NO_CACHE_DIR", "1".into()),
        ("UV_NO_CACHE", "1".into()),
        ("UV_PYTHON_DOWNLOADS", "never".into()),
    ];
    configured.variables.extend(fixed.map(|(name, value)| (name.to_owned(), value)));
    configured.readable.extend(python.readable());
    // The interpreter of a virtual environment reads the location of its library from this file.
    let virtual_environment = python.executable.parent().and_then(Path::parent);
    configured.readable.extend(virtual_environment.map(|folder| folder.join("pyvenv.cfg")));
    configured.readable.extend_from_slice(programs);
    Ok(configured)
}

/// The `uv` on the `PATH`, as [`ProgramSearch`] finds it. A script or a link to another program is skipped: it would need files that the
/// confined installer cannot read.
fn uv(search: &ProgramSearch) -> Option<PathBuf> {
    let named = search.find("uv").programs.into_iter().filter_map(|file| file.canonicalize().ok());
    named.into_iter().find(|file| {
        let mut magic = [0; 4];
        let opened = open_regular(OpenOptions::new().read(true), file);
        let read = opened.is_ok_and(|mut file| file.read_exact(&mut magic).is_ok());
        file.ends_with("uv") && read && &magic == b"\x7fELF"
    })
}
