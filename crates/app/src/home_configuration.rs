//! The extensions of a running home as they are configured now, and the watcher that keeps the runtime in step with the files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdfast_contract::ids::ExtensionId;
use holdfast_contract::manifest::{enabled_by_user, replaces_built_in};
use holdfast_contract::problem::{Code, Problem};
use holdfast_contract::system_frames::FoundExtension;
use holdfast_home::{Home, Settings};
use holdfast_loader::{Changes, FolderWatcher, Loader};
use holdfast_policy::{Grant, Policy};
use holdfast_runtime::{
    Configuration, ExtensionChanges, InstalledExtension, RemovedExtension, ReportChanges, Runtime,
};
use parking_lot::Mutex;
use serde_json::{Map, Value};

/// The extensions of a home, and their settings.
pub(crate) struct HomeConfiguration {
    pub home: Home,
    pub profile: Option<String>,
    pub extensions: Mutex<HomeExtensions>,
}

/// The extensions of a home: those that the loader finds, and the native ones.
pub(crate) struct HomeExtensions {
    pub loader: Loader,
    pub native: NativeExtensions,
}

/// The native built-in extensions, which no scan finds.
pub(crate) struct NativeExtensions {
    all: Vec<FoundExtension>,
    disabled: BTreeSet<ExtensionId>,
    /// Of those, the ones whose places folders have taken.
    replaced: BTreeSet<ExtensionId>,
    /// The folder of all extensions.
    folder: PathBuf,
}

impl NativeExtensions {
    pub(crate) fn new(all: Vec<FoundExtension>, settings: &Settings, folder: PathBuf) -> Self {
        let (disabled, replaced) = Default::default();
        let mut native = Self { all, disabled, replaced, folder };
        native.set(&settings.extensions);
        native
    }

    /// Those that are enabled.
    pub(crate) fn enabled(&self) -> Vec<FoundExtension> {
        self.all.iter().filter(|found| !self.disabled.contains(&found.id)).cloned().collect()
    }

    /// Uses these settings. Gives those that they enable and disable.
    fn set(&mut self, set: &ExtensionSettings) -> (Vec<FoundExtension>, Vec<ExtensionId>) {
        let (mut enabled, mut disabled) = (Vec::new(), Vec::new());
        let replaced = |id: &ExtensionId| {
            replaces_built_in(set.get(id)) && self.folder.join(id.as_str()).join("manifest.yaml").is_file()
        };
        self.replaced = self.all.iter().map(|found| found.id.clone()).filter(replaced).collect();
        for found in &self.all {
            let off = enabled_by_user(set.get(&found.id)) == Some(false);
            if off || self.replaced.contains(&found.id) {
                disabled.extend(self.disabled.insert(found.id.clone()).then(|| found.id.clone()));
            } else if self.disabled.remove(&found.id) {
                enabled.push(found.clone());
            }
        }
        (enabled, disabled)
    }
}

type ExtensionSettings = BTreeMap<ExtensionId, Map<String, Value>>;

impl HomeConfiguration {
    /// Scans the extensions with the current settings, reports what differs, and gives the folders to watch.
    fn look(&self, policy: &Policy, report: &ReportChanges<'_>) -> Vec<PathBuf> {
        self.look_with(policy, report, |_| {})
    }

    fn look_with(
        &self,
        policy: &Policy,
        report: &ReportChanges<'_>,
        prepare: impl FnOnce(&mut Loader),
    ) -> Vec<PathBuf> {
        let mut extensions = self.extensions.lock();
        let HomeExtensions { loader, native } = &mut *extensions;
        let (mut enabled, mut disabled) = (Vec::new(), Vec::new());
        // Settings that cannot be read change nothing.
        if let Ok(loaded) = Settings::load(&self.home) {
            (enabled, disabled) = native.set(&loaded.settings.extensions);
            let named = loaded.settings.named_extensions(self.home.root());
            loader.set(loaded.settings.extensions, named);
        }
        prepare(loader);
        let Changes { found, removed, rejected, .. } = loader.scan(policy);
        enabled.extend(found);
        disabled.extend(removed);
        // What takes the place of another one of its id is a new generation of it.
        disabled.retain(|id| enabled.iter().all(|found| found.id != *id));
        let rejected = rejected.into_iter().map(|(id, problem)| (id, problem.to_located_fault())).collect();
        report(ExtensionChanges { found: enabled, removed: disabled, rejected });
        loader.folders()
    }

    fn current_policy(&self) -> Result<Policy, Problem> {
        self.home.policy(self.profile.as_deref())
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
        report: &ReportChanges<'_>,
    ) -> Result<(), Problem> {
        self.home.set_extension(extension, name, value)?;
        self.look(&self.current_policy()?, report);
        Ok(())
    }

    fn installed(&self) -> Vec<InstalledExtension> {
        let extensions = self.extensions.lock();
        let HomeExtensions { loader, native } = &*extensions;
        let built_in = native.all.iter().filter(|found| !native.replaced.contains(&found.id));
        let built_in = built_in.map(|found| InstalledExtension {
            id: found.id.clone(),
            built_in: true,
            disabled: native.disabled.contains(&found.id),
        });
        let others = loader.installed().map(|(id, disabled)| InstalledExtension {
            id: id.clone(),
            built_in: loader.is_carried(id),
            disabled,
        });
        let mut installed: Vec<_> = built_in.chain(others).collect();
        installed.sort_by(|a, b| a.id.cmp(&b.id));
        // A folder that has the id of a native one is not used.
        installed.dedup_by(|a, b| a.id == b.id);
        installed
    }

    fn read_again(&self, extension: &ExtensionId, report: &ReportChanges<'_>) -> Result<(), Problem> {
        self.look_with(&self.current_policy()?, report, |loader| loader.read_again(extension));
        Ok(())
    }

    fn remove(
        &self,
        extension: &ExtensionId,
        report: &ReportChanges<'_>,
    ) -> Result<RemovedExtension, Problem> {
        let unknown =
            || Problem::new(Code::ExtensionUnknown, format!("`{extension}` is neither a folder nor a file"));
        let path = self.extensions.lock().loader.path(extension).ok_or_else(unknown)?;
        let granted = |policy: &Policy| policy.grants().iter().any(|grant| grant.extension == *extension);
        let revoked = granted(&self.current_policy()?);
        self.home.remove_extension(&path)?;
        // Another extension of this name would have them.
        if revoked {
            self.home.revoke_grants(extension)?;
        }
        self.look(&self.current_policy()?, report);
        let data = Some(self.home.data(extension)).filter(|data| data.exists());
        Ok(RemovedExtension { path, data, revoked })
    }

    fn remove_data(&self, extension: &ExtensionId) -> Result<(), Problem> {
        self.home.remove_data(extension)
    }

    fn warnings(&self, extension: &ExtensionId) -> Vec<Problem> {
        self.extensions.lock().loader.warnings(extension)
    }

    fn may_stand_in(&self, found: &FoundExtension) -> Result<(), Problem> {
        let policy = self.current_policy()?;
        self.extensions.lock().loader.may_run_again(found, &policy)
    }

    fn is_gone(&self, extension: &ExtensionId) -> Result<(), Problem> {
        self.extensions.lock().loader.is_gone(extension)
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
        if let Ok(policy) = configuration.current_policy() {
            if in_force.is_none_or(|in_force| in_force.digest() != policy.digest()) {
                drop(runtime.set_policy(policy.clone(), "the file changed"));
            }
            folders = configuration.look(&policy, &|changes| runtime.report_changes(changes));
        }
        folders.into_iter().chain(home.policy_file().parent().map(Path::to_owned)).collect()
    })
}
