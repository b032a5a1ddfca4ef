//! The lane, and where on the disk its processes live.

use std::path::PathBuf;
use std::sync::Arc;

use holdfast_contract::log::LogSink;
use holdfast_contract::manifest::LaneKind;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::registry::ExtensionRef;
use holdfast_contract::wire::{Instance, Lane, Later, Vault};

/// What starts the programs of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Starts {
    /// The manifest's `command`.
    Command,
    /// The Python worker, on a file of the extension's.
    Python,
}

/// Where on the disk processes find what is theirs.
#[derive(Clone, Debug)]
pub struct Places {
    /// The files of those that run lie in folders of this one, which nobody else uses.
    pub code: PathBuf,
    /// Each extension has a folder of its own in this one, to write to.
    pub data: PathBuf,
}

impl Starts {
    fn name(self) -> &'static str {
        match self {
            Self::Command => LaneKind::Process.as_str(),
            Self::Python => LaneKind::Python.as_str(),
        }
    }
}

/// Runs extensions that are programs.
pub struct ProcessLane {
    vault: Arc<dyn Vault>,
    places: Places,
    log: Option<LogSink>,
    starts: Starts,
}

impl ProcessLane {
    /// A lane for programs with a `command`, over the activations of a vault.
    pub fn new(vault: Arc<dyn Vault>, places: Places) -> Self {
        Self::starting(Starts::Command, vault, places)
    }

    /// A lane for plain Python files.
    pub fn python(vault: Arc<dyn Vault>, places: Places) -> Self {
        Self::starting(Starts::Python, vault, places)
    }

    fn starting(starts: Starts, vault: Arc<dyn Vault>, mut places: Places) -> Self {
        places.code.push(starts.name());
        // What an earlier life has left there is of no use; where nothing was left, there is nothing to remove.
        let _ = std::fs::remove_dir_all(&places.code);
        Self { vault, places, log: None, starts }
    }

    /// Tells what programs log, and what they write to their standard error.
    pub fn with_log(mut self, sink: LogSink) -> Self {
        self.log = Some(sink);
        self
    }
}

impl Lane for ProcessLane {
    fn name(&self) -> &str {
        self.starts.name()
    }

    #[cfg(target_os = "linux")]
    fn load(&self, extension: &ExtensionRef) -> Later<Result<Arc<dyn Instance>, Fault>> {
        let (vault, places, log) = (self.vault.clone(), self.places.clone(), self.log.clone());
        let (extension, starts) = (extension.clone(), self.starts);
        Box::pin(async move {
            let bundle = vault.bundle(extension.digest)?;
            if bundle.lane != starts.name() {
                let message = format!("`{}` is no extension of the {} lane", extension.id, starts.name());
                return Err(Fault::new(Code::ExtensionUnknown, message));
            }
            let plan = crate::folder::plan(&extension, &bundle, &*vault, &places, starts)?;
            let loaded = crate::extension::Extension::load(plan, bundle, log).await?;
            Ok(Arc::new(loaded) as Arc<dyn Instance>)
        })
    }

    #[cfg(not(target_os = "linux"))]
    fn load(&self, extension: &ExtensionRef) -> Later<Result<Arc<dyn Instance>, Fault>> {
        let _ = (&self.vault, &self.places, &self.log);
        let message = format!("`{}` is a program, and programs are confined on Linux only", extension.id);
        Box::pin(std::future::ready(Err(Fault::new(Code::Unconfined, message))))
    }
}
