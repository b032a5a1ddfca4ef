//! Installed packages for Node: a folder for each list of them, created while an extension is loaded and never later. No install script
//! runs. The package by which packs refer to their host is replaced by the worker's stand-in, unless a pack uses names that it lacks.

mod registry;

#[cfg(test)]
mod registry_tests;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use holdfast_contract::ids::ExtensionId;
use holdfast_contract::log::{LogLevel, Sinks};
use holdfast_contract::problem::Fault;
use holdfast_sandbox::SandboxReport;
use holdfast_untrusted_files::{read_text, remove_tree};
use tokio::time::Instant;

use crate::node::interpreter::{Interpreter, WASM_FLAG};
use crate::node::pack::{NeededPackages, PackSource};
use crate::node::worker::{NodeWorker, standin_digest, standin_files, standin_name};
use crate::packages::installer::{Configured, Installer};
use crate::packages::{INSTALL_TIMEOUT, failed, install_once, mark_complete, text, write_new};

/// The largest lock file that is kept.
const MAX_LOCK_BYTES: u64 = 64 << 20;

/// Flags of every installation. They go before what the user's configuration says.
const FLAGS: [&str; 10] = [
    "--ignore-scripts",
    "--install-links",
    "--package-lock=true",
    "--no-global",
    "--no-audit",
    "--no-fund",
    "--no-update-notifier",
    "--no-progress",
    "--omit=dev",
    "--loglevel=warn",
];

/// The Node and the `npm` that install, and the worker.
#[derive(Clone, Copy)]
pub(crate) struct NodeTools<'a> {
    pub node: &'a Interpreter,
    pub worker: &'a NodeWorker,
}

/// A complete installation.
#[derive(Clone, Debug)]
pub(crate) struct NodeEnvironment {
    /// Its folder.
    pub folder: PathBuf,
}

impl NodeEnvironment {
    /// The installation of these packages, created if it does not exist.
    pub(crate) async fn with(
        source: &PackSource,
        needed: &NeededPackages,
        tools: NodeTools<'_>,
        place: &Path,
        report: SandboxReport,
        told: (&ExtensionId, &Sinks),
    ) -> Result<Self, Fault> {
        let identity = format!("{} {}", tools.node.identity(), standin_digest());
        let folder = place.join(&needed.digest(&identity).to_string()[..32]);
        let environment = Self { folder };
        let install = environment.install(source, needed, tools, report, told);
        install_once(&environment.folder, needed.lines(), told, install).await?;
        Ok(environment)
    }

    /// Where its packages are.
    pub(crate) fn modules(&self) -> PathBuf {
        self.folder.join("node_modules")
    }

    /// The versions that were installed, beside the folder: they are the same when it is created again.
    fn kept_lock(&self) -> PathBuf {
        self.folder.with_extension("lock.json")
    }

    async fn install(
        &self,
        source: &PackSource,
        needed: &NeededPackages,
        tools: NodeTools<'_>,
        report: SandboxReport,
        told: (&ExtensionId, &Sinks),
    ) -> Result<(), Fault> {
        let deadline = Instant::now() + INSTALL_TIMEOUT;
        let (npm, npm_folder) = tools.node.npm()?;
        let configure = |home: &Path| {
            let npm_prefix = npm_folder.ancestors().nth(3);
            let mut configured =
                registry::configured(std::env::vars_os(), home, &[&self.folder], npm_prefix)?;
            configured.variables.push(("NODE_OPTIONS".to_owned(), OsString::from(WASM_FLAG)));
            configured.readable.extend(tools.node.readable());
            configured.readable.extend([npm_folder.clone(), tools.worker.folder.clone()]);
            Ok::<Configured, std::io::Error>(configured)
        };
        let installer = Installer::prepare(&self.folder, configure, report, deadline, told)?;
        let standin = self.folder.join("standin");
        self.write_standin(&standin)?;
        let name = standin_name();
        let run = NpmRun { environment: self, installer: &installer, tools, npm: &npm };
        run.install(needed, Some((&name, text(&standin)?))).await?;
        let (peers, modules) = (tools.worker.peers(), self.modules());
        let check = [text(&tools.node.executable)?, WASM_FLAG, text(&peers)?, text(&modules)?];
        if let Err(fault) = installer.run(&check).await {
            let (id, sinks) = told;
            let what = format!("the package `{name}` is installed as well: {}", fault.message);
            sinks.log(id, LogLevel::Info, &what);
            let _ = fs::remove_file(self.kept_lock());
            let _ = remove_tree(&self.modules());
            let _ = fs::remove_file(self.folder.join("package-lock.json"));
            run.install(needed, None).await?;
        }
        if let PackSource::Package(name) = source
            && !self.modules().join(name).join("package.json").is_file()
        {
            return Err(failed("npm", format!("it installed no package `{name}`")));
        }
        if let Ok(lock) = read_text(&self.folder.join("package-lock.json"), MAX_LOCK_BYTES) {
            // Without it the versions may be others when it is created again.
            let _ = write_new(&self.kept_lock(), &lock);
        }
        mark_complete(&self.folder, &needed.lines().join("\n"))
    }

    fn write_standin(&self, folder: &Path) -> Result<(), Fault> {
        fs::create_dir_all(folder).map_err(|error| failed(&folder.display().to_string(), error))?;
        for (name, text) in standin_files() {
            let path = folder.join(name);
            fs::write(&path, text).map_err(|error| failed(&path.display().to_string(), error))?;
        }
        Ok(())
    }
}

/// Runs of `npm` for one installation.
struct NpmRun<'a> {
    environment: &'a NodeEnvironment,
    installer: &'a Installer<'a>,
    tools: NodeTools<'a>,
    npm: &'a Path,
}

impl NpmRun<'_> {
    /// Installs what is needed, in the versions of an earlier installation if there was one.
    async fn install(&self, needed: &NeededPackages, standin: Option<(&str, &str)>) -> Result<(), Fault> {
        let folder = &self.environment.folder;
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            write_new(&path, text).map_err(|error| failed(&path.display().to_string(), error))
        };
        write("package.json", &needed.manifest(standin).to_string())?;
        let kept = read_text(&self.environment.kept_lock(), MAX_LOCK_BYTES).ok();
        let kept = kept.filter(|_| standin.is_some());
        if let Some(lock) = kept.as_deref().or(needed.lock.as_deref()) {
            write("package-lock.json", lock)?;
        }
        let step = if kept.is_some() { "ci" } else { "install" };
        let scratch = self.installer.scratch();
        let cache = format!("--cache={}", scratch.join("npm").display());
        let user = format!("--userconfig={}", scratch.join("home/.npmrc").display());
        let global = format!("--globalconfig={}", scratch.join("home/global.npmrc").display());
        let prefix = format!("--prefix={}", folder.display());
        let mut words = vec![text(&self.tools.node.executable)?, WASM_FLAG, text(self.npm)?, step];
        words.extend(FLAGS);
        words.extend([cache.as_str(), user.as_str(), global.as_str(), prefix.as_str()]);
        self.installer.run(&words).await
    }
}
