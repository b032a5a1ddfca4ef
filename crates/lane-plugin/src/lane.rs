//! The lane: which plugins may be loaded, and where their libraries lie.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use holdfast_contract::digest::Digest;
use holdfast_contract::log::LogSink;
use holdfast_contract::manifest::LaneKind;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::protocol::{PROTOCOL, ProcessHello, ToExtension, plain};
use holdfast_contract::registry::ExtensionRef;
use holdfast_contract::wire::{Bundle, Instance, Lane, Later, Vault};
use holdfast_untrusted_files::remove_tree;
use parking_lot::Mutex;

use crate::call::{FEATURES, Image, MAX_MESSAGE_BYTES, Terms, on_marked_thread};
use crate::crash::{Mark, left_behind, watch};
use crate::instance::{HELLO_TIMEOUT, PluginInstance, welcome};
use crate::library::Library;

/// Returns whether the profile in force loads plugins. It is called at every load.
pub type ProfileCheck = Arc<dyn Fn() -> bool + Send + Sync>;

/// The folders of the lane.
#[derive(Clone, Debug)]
pub struct PluginPlaces {
    /// Has a copy of the library of each activation. Not used by anything else.
    pub code: PathBuf,
    /// Has a writable folder for each extension.
    pub data: PathBuf,
    /// The file that says whose code ended a process.
    pub crashed: PathBuf,
}

impl PluginPlaces {
    /// All of them below one folder.
    pub fn within(folder: &Path) -> Self {
        let [code, data, crashed] = ["code", "data", "crashed"].map(|name| folder.join(name));
        Self { code, data, crashed }
    }
}

/// Runs extensions that are dynamic libraries.
#[derive(Clone)]
pub struct PluginLane {
    vault: Arc<dyn Vault>,
    places: PluginPlaces,
    allowed: ProfileCheck,
    log: Option<LogSink>,
    /// What ended earlier processes.
    crashed: Arc<Vec<Digest>>,
    /// Whether the next crash is watched for.
    watched: Arc<AtomicBool>,
    /// What is loaded, by activation. A library is never unloaded.
    images: Arc<Mutex<HashMap<Digest, Arc<Image>>>>,
}

impl PluginLane {
    /// A lane over the activations of a vault, which loads nothing unless `allowed` says so.
    pub fn new(vault: Arc<dyn Vault>, places: PluginPlaces, allowed: ProfileCheck) -> Self {
        // Files of an earlier run are stale; usually there are none.
        let _ = remove_tree(&places.code);
        let crashed = Arc::new(left_behind(&places.crashed));
        let (watched, images) = Default::default();
        Self { vault, places, allowed, log: None, crashed, watched, images }
    }

    /// Receives what plugins log.
    pub fn with_log(mut self, sink: LogSink) -> Self {
        self.log = Some(sink);
        self
    }

    async fn bring_up(self, extension: ExtensionRef) -> Result<Arc<dyn Instance>, Fault> {
        if !(self.allowed)() {
            let message = format!("`{}` is a native plugin", extension.id);
            return Err(Fault::new(Code::PluginRefused, message));
        }
        let bundle = self.vault.bundle(extension.digest)?;
        if bundle.lane != LaneKind::Plugin.as_str() {
            let message = format!("`{}` is not a native plugin", extension.id);
            return Err(Fault::new(Code::ExtensionUnknown, message));
        }
        let image = self.image(&extension, &bundle).await?;
        image.returned().await?;
        let manifest = bundle.parsed()?;
        let data = self.places.data.join(extension.id.as_str());
        fs::create_dir_all(&data).map_err(|error| failed(&data, error))?;
        let hello = ToExtension::Hello(ProcessHello {
            protocol: PROTOCOL.to_owned(),
            id: extension.id.clone(),
            version: extension.version.to_string(),
            config: plain(&bundle.config).as_object().cloned().unwrap_or_default(),
            data_dir: data.display().to_string(),
            line_bytes: MAX_MESSAGE_BYTES as u64,
            features: FEATURES.iter().map(|feature| (*feature).to_owned()).collect(),
            manifest: serde_json::to_value(&manifest).unwrap_or_default(),
            secrets: bundle.grants.secrets.clone(),
            pack: None,
            catalogue: Default::default(),
        });
        let welcome = welcome(&image, &hello).await?;
        let descriptors = welcome.exports().descriptors(&manifest)?;
        let terms = Terms {
            id: extension.id,
            log: self.log,
            host_calls: bundle.budgets.host_calls,
            log_bytes: bundle.budgets.log_bytes,
        };
        Ok(Arc::new(PluginInstance::new(image, terms, welcome, descriptors)))
    }

    /// The library of an activation. Each activation has a copy of its own: another one, with other settings, shares no memory with it.
    async fn image(&self, extension: &ExtensionRef, bundle: &Bundle) -> Result<Arc<Image>, Fault> {
        if let Some(image) = self.images.lock().get(&extension.digest) {
            return Ok(image.clone());
        }
        if !self.watched.load(Ordering::SeqCst) {
            watch(&self.places.crashed).map_err(|error| failed(&self.places.crashed, error))?;
            self.watched.store(true, Ordering::SeqCst);
        }
        let file = self.lay_out(extension.digest, bundle)?;
        let mark = Mark::of(extension.digest);
        let opened = on_marked_thread(mark, move || Library::open(&file));
        let late = |_| {
            let message = format!("the library was not loaded within {} s", HELLO_TIMEOUT.as_secs());
            Fault::new(Code::ExtensionFault, message)
        };
        let library = tokio::time::timeout(HELLO_TIMEOUT, opened).await.map_err(late)??;
        let unusable = |why| Fault::new(Code::ComponentInvalid, format!("{}: {why}", bundle.entrypoint));
        let image = Arc::new(Image::new(library.map_err(unusable)?, mark));
        Ok(self.images.lock().entry(extension.digest).or_insert(image).clone())
    }

    /// Copies the library to where nobody edits it.
    fn lay_out(&self, activation: Digest, bundle: &Bundle) -> Result<PathBuf, Fault> {
        let digest = bundle.files.get(&bundle.entrypoint).copied();
        let missing = || Fault::new(Code::ExtensionGone, format!("there is no `{}`", bundle.entrypoint));
        let bytes = self.vault.file(digest.ok_or_else(missing)?)?;
        let code = &self.places.code;
        fs::create_dir_all(code).map_err(|error| failed(code, error))?;
        let file = code.join(format!("{activation}.so"));
        holdfast_atomic_file::replace(&file, &bytes, 0o700).map_err(|error| failed(&file, error))?;
        Ok(file)
    }
}

fn failed(path: &Path, error: impl std::fmt::Display) -> Fault {
    Fault::new(Code::ExtensionGone, format!("{}: {error}", path.display()))
}

impl Lane for PluginLane {
    fn name(&self) -> &str {
        LaneKind::Plugin.as_str()
    }

    fn load(&self, extension: &ExtensionRef) -> Later<Result<Arc<dyn Instance>, Fault>> {
        Box::pin(self.clone().bring_up(extension.clone()))
    }

    fn crashed(&self) -> Vec<Digest> {
        self.crashed.to_vec()
    }
}
