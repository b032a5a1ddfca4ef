//! The extensions of a running home as they are configured now, and the watcher that keeps the runtime in step with the files.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use holdfast_contract::ids::ExtensionId;
use holdfast_contract::problem::Problem;
use holdfast_contract::system_frames::FoundExtension;
use holdfast_home::{Home, Settings};
use holdfast_loader::{Changes, FolderWatcher, Loader};
use holdfast_policy::{Grant, Policy};
use holdfast_runtime::{Configuration, Runtime};
use serde_json::{Map, Value};

/// The extensions in the home's folder, and their settings.
pub(crate) struct HomeConfiguration {
    pub home: Home,
    pub profile: Option<String>,
    pub loader: Mutex<Loader>,
}

impl HomeConfiguration {
    /// Scans the extensions with the current settings.
    fn look(&self, policy: &Policy) -> (Changes, Vec<PathBuf>) {
        let mut loader = self.loader.lock().unwrap_or_else(PoisonError::into_inner);
        // Settings that cannot be read change nothing.
        if let Ok(loaded) = Settings::load(&self.home) {
            loader.set(loaded.settings.extensions);
        }
        (loader.scan(policy), loader.folders())
    }
}

impl Configuration for HomeConfiguration {
    fn of(&self, extension: &ExtensionId) -> Map<String, Value> {
        let loaded = Settings::load(&self.home).map(|loaded| loaded.settings).unwrap_or_default();
        loaded.extensions.get(extension).cloned().unwrap_or_default()
    }

    fn set(
        &self,
        extension: &ExtensionId,
        name: &str,
        value: &Value,
    ) -> Result<Vec<FoundExtension>, Problem> {
        self.home.set_extension(extension, name, value)?;
        Ok(self.look(&self.home.policy(self.profile.as_deref())?).0.found)
    }

    fn is_gone(&self, extension: &ExtensionId) -> Result<(), Problem> {
        self.loader.lock().unwrap_or_else(PoisonError::into_inner).is_gone(extension)
    }

    fn grant(&self, grant: &Grant) -> Result<(), Problem> {
        self.home.remember_grant(grant).map(drop)
    }
}

/// Reports changes of the home's folder to its runtime: new, changed and removed extensions, and the policy.
pub(crate) fn watch(
    configuration: Arc<HomeConfiguration>,
    runtime: Runtime,
) -> Result<FolderWatcher, Problem> {
    let home = configuration.home.clone();
    // Without the folder there is nothing to watch. Where it cannot be created, no extension can be put into it either.
    let mut private = std::fs::DirBuilder::new();
    std::os::unix::fs::DirBuilderExt::mode(private.recursive(true), 0o700);
    drop(private.create(home.extensions()));
    FolderWatcher::begin(move || {
        // A policy that cannot be read leaves the one in force; `policy show` reports the problem.
        let in_force = runtime.policy().ok();
        let mut folders = Vec::new();
        if let Ok(policy) = home.policy(configuration.profile.as_deref()) {
            if in_force.is_none_or(|in_force| in_force.digest() != policy.digest()) {
                drop(runtime.set_policy(policy.clone(), "the file changed"));
            }
            let (Changes { found, removed, rejected, .. }, watched) = configuration.look(&policy);
            folders = watched;
            if !found.is_empty() {
                runtime.found(found);
            }
            removed.into_iter().for_each(|id| runtime.removed(id));
            rejected.into_iter().for_each(|(id, problem)| runtime.rejected(id, problem.to_fault()));
        }
        folders.into_iter().chain(home.policy_file().parent().map(Path::to_owned)).collect()
    })
}
