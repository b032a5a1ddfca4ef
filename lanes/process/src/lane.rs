//! The lane, and where on the disk its processes live.

use std::path::PathBuf;
use std::sync::Arc;

use holdfast_contract::log::LogSink;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::registry::ExtensionRef;
use holdfast_contract::wire::{Instance, Lane, Later, Vault};

pub(crate) const NAME: &str = "process";

/// Where on the disk processes find what is theirs.
#[derive(Clone, Debug)]
pub struct Places {
    /// The files of those that run lie in folders of this one, which nobody else uses.
    pub code: PathBuf,
    /// Each extension has a folder of its own in this one, to write to.
    pub data: PathBuf,
}

/// Runs extensions that are programs.
pub struct ProcessLane {
    vault: Arc<dyn Vault>,
    places: Places,
    log: Option<LogSink>,
}

impl ProcessLane {
    /// A lane over the activations of a vault.
    pub fn new(vault: Arc<dyn Vault>, places: Places) -> Self {
        // What an earlier life has left there is of no use; where nothing was left, there is nothing to remove.
        let _ = std::fs::remove_dir_all(&places.code);
        Self { vault, places, log: None }
    }

    /// Tells what programs log, and what they write to their standard error.
    pub fn with_log(mut self, sink: LogSink) -> Self {
        self.log = Some(sink);
        self
    }
}

impl Lane for ProcessLane {
    fn name(&self) -> &str {
        NAME
    }

    #[cfg(target_os = "linux")]
    fn load(&self, extension: &ExtensionRef) -> Later<Result<Arc<dyn Instance>, Fault>> {
        let (vault, places, log) = (self.vault.clone(), self.places.clone(), self.log.clone());
        let extension = extension.clone();
        Box::pin(async move {
            let bundle = vault.bundle(extension.digest)?;
            if bundle.lane != NAME {
                let message = format!("`{}` is no extension of the process lane", extension.id);
                return Err(Fault::new(Code::ExtensionUnknown, message));
            }
            let plan = crate::folder::plan(&extension, &bundle, &*vault, &places)?;
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
