//! Virtual environments: one for each list of packages, created while an extension is loaded and never later. Only wheels are
//! installed, so that no code of a package runs during installation. `installer` runs the installing programs, confined; `registry`
//! reads the user's configuration for them.

mod installer;
mod registry;

#[cfg(test)]
mod environment_tests;
#[cfg(test)]
mod installer_tests;
#[cfg(test)]
mod registry_tests;

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use holdfast_contract::ids::ExtensionId;
use holdfast_contract::log::{Progress, Sinks};
use holdfast_contract::problem::{Code, Fault};
use holdfast_sandbox::SandboxReport;
use holdfast_untrusted_files::{ProgramSearch, open_regular, read_text, remove_tree};
use tokio::time::Instant;

use crate::python::environment::installer::Installer;
use crate::python::interpreter::Interpreter;
use crate::python::requirements::Requirements;

/// How long an installation may take.
const INSTALL_TIMEOUT: Duration = Duration::from_secs(15 * 60);
/// How long an installation that failed is not tried again. Other requirements are another environment.
const RETRY_PAUSE: Duration = Duration::from_secs(30 * 60);
/// The longest reason of a failure that is read again.
const MAX_FAILURE_BYTES: u64 = 256 << 10;
/// The file beside an environment that says why it could not be created.
const FAILURE_EXTENSION: &str = "failed";
/// The file that marks an environment as complete.
const COMPLETE_MARKER: &str = "whole";

/// A complete environment.
#[derive(Clone, Debug)]
pub(crate) struct PythonEnvironment {
    /// Its folder.
    pub folder: PathBuf,
}

fn failed(what: &str, error: impl std::fmt::Display) -> Fault {
    Fault::new(Code::PackagesFailed, format!("{what}: {error}"))
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
        (id, sinks): (&ExtensionId, &Sinks),
    ) -> Result<Self, Fault> {
        let folder = place.join(&needed.digest(&python.identity()).to_string()[..32]);
        let environment = Self { folder };
        if environment.is_complete() {
            return Ok(environment);
        }
        fs::create_dir_all(place).map_err(|error| failed(&place.display().to_string(), error))?;
        let _lock = lock(environment.folder.with_extension("lock")).await?;
        if environment.is_complete() {
            return Ok(environment);
        }
        let failure = environment.folder.with_extension(FAILURE_EXTENSION);
        if let Some(message) = recent_failure(&failure) {
            let told = format!(
                "{message} (not tried again for {} minutes; `holdfast ext restart {id}` tries at once)",
                RETRY_PAUSE.as_secs() / 60
            );
            return Err(Fault::new(Code::PackagesFailed, told));
        }
        let began = Instant::now();
        sinks.progress(id, Progress::Installing { packages: needed.lines.iter().cloned().collect() });
        // An interrupted installation may have left an incomplete folder.
        let _ = remove_tree(&environment.folder);
        let uv = uv(&ProgramSearch::new(std::env::var_os("PATH").as_deref(), agent_folders));
        if let Err(fault) = environment.install(needed, python, uv, report, (id, sinks)).await {
            let _ = remove_tree(&environment.folder);
            // Where it cannot be written, the next start tries again.
            let _ = write_new(&failure, &fault.message);
            return Err(fault);
        }
        let _ = fs::remove_file(&failure);
        sinks.progress(id, Progress::Installed { millis: began.elapsed().as_millis() as u64 });
        Ok(environment)
    }

    fn is_complete(&self) -> bool {
        self.folder.join(COMPLETE_MARKER).is_file()
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
        let installer = Installer::prepare(&self.folder, python, &programs, report, deadline, log_target)?;
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
        self.mark_complete(&lines.join("\n"))
    }

    /// The installer could write the folder: whatever it left under the marker's name is not followed and not written to.
    fn mark_complete(&self, packages: &str) -> Result<(), Fault> {
        write_new(&self.folder.join(COMPLETE_MARKER), packages)
            .map_err(|error| failed("could not mark the environment as complete", error))
    }
}

/// Why an environment could not be created a short time ago.
fn recent_failure(file: &Path) -> Option<String> {
    let age = fs::metadata(file).ok()?.modified().ok()?.elapsed().unwrap_or_default();
    read_text(file, MAX_FAILURE_BYTES).ok().filter(|_| age < RETRY_PAUSE)
}

/// Writes a file that is new: what has its name is removed, and no link is followed.
fn write_new(path: &Path, text: &str) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    OpenOptions::new().write(true).create_new(true).open(path)?.write_all(text.as_bytes())
}

fn text(path: &Path) -> Result<&str, Fault> {
    path.to_str().ok_or_else(|| failed(&path.display().to_string(), "the path is not UTF-8"))
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

/// Locks an environment, so that no other task or process creates it concurrently.
async fn lock(path: PathBuf) -> Result<File, Fault> {
    let locked = tokio::task::spawn_blocking(move || {
        let file = open_regular(OpenOptions::new().write(true).create(true), &path)?;
        file.lock().map(|()| file)
    });
    let locked = locked.await.map_err(|error| failed("could not lock the environment", error))?;
    locked.map_err(|error| failed("could not lock the environment", error))
}
