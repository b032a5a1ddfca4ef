//! The generations of extensions: what discovery found, what is loaded, which one is active, and entering it for a call.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Weak};

use holdfast_contract::digest::Digest;
use holdfast_contract::ids::{ExtensionId, Generation, Millis};
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::registry::{ExtensionRef, Registry};
use holdfast_contract::system_frames::{ExtensionState, ExtensionStateChanged, FoundExtension, ScheduleSpec};
use holdfast_contract::wire::{Instance, Lane};
use parking_lot::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use tokio::sync::watch;

use super::startup::{PINNED_WAIT, Preparations, Startup};
use crate::calls::{CallGates, CallGuard};
use crate::clock::Clock;

/// The extensions, their generations and instances.
pub(crate) struct Extensions {
    lanes: Vec<Arc<dyn Lane>>,
    clock: Arc<dyn Clock>,
    /// What discovery reported, by the digest of the generation.
    found: RwLock<HashMap<Digest, FoundExtension>>,
    loaded: RwLock<HashMap<ExtensionId, Vec<LoadedGeneration>>>,
    /// The active generation of each extension.
    active: RwLock<HashMap<ExtensionId, Arc<ExtensionRef>>>,
    gates: Arc<CallGates>,
    startup: Startup,
    /// Whether the system stops, so that nothing is waited for that is being loaded.
    stopping: watch::Sender<bool>,
    /// The registry whose hooks were prepared last.
    prepared: Mutex<Weak<Registry>>,
}

struct LoadedGeneration {
    generation: Generation,
    digest: Digest,
    instance: Arc<dyn Instance>,
}

impl Extensions {
    pub(crate) fn new(
        lanes: Vec<Arc<dyn Lane>>,
        clock: Arc<dyn Clock>,
        preparations: Option<Arc<Preparations>>,
    ) -> Self {
        Self {
            lanes,
            clock,
            found: RwLock::default(),
            loaded: RwLock::default(),
            active: RwLock::default(),
            gates: Arc::default(),
            startup: Startup::new(preparations),
            stopping: watch::Sender::default(),
            prepared: Mutex::default(),
        }
    }

    /// The activations whose code ended an earlier process.
    pub(crate) fn crashed(&self) -> Vec<Digest> {
        self.lanes.iter().flat_map(|lane| lane.crashed()).collect()
    }

    /// The lanes, each under its name.
    pub(crate) fn lanes(&self) -> &[Arc<dyn Lane>] {
        &self.lanes
    }

    /// Has a lane load the code of a generation, which may install packages first. That ends when the system stops.
    pub(crate) async fn load(
        &self,
        lane: &Arc<dyn Lane>,
        extension: &Arc<ExtensionRef>,
    ) -> Result<Arc<dyn Instance>, Fault> {
        let mut stopping = self.stopping.subscribe();
        tokio::select! {
            biased;
            loaded = lane.load(extension) => loaded,
            _ = stopping.wait_for(|stopping| *stopping) => {
                Err(Fault::new(Code::ExtensionFault, "the home was stopped while this was being loaded"))
            }
        }
    }

    /// Ends what [`Self::load`] waits for.
    pub(crate) fn stop_loading(&self) {
        self.stopping.send_replace(true);
    }

    /// The extensions that are expected to be active soon.
    pub(crate) fn startup(&self) -> &Startup {
        &self.startup
    }

    /// Remembers what discovery reported.
    pub(crate) fn remember(&self, found: &[FoundExtension]) {
        write(&self.found).extend(found.iter().map(|found| (found.digest, found.clone())));
    }

    /// What discovery reported of a generation.
    pub(crate) fn found(&self, digest: &Digest) -> Option<FoundExtension> {
        read(&self.found).get(digest).cloned()
    }

    /// Whether an extension may call another: it depends on it, or is granted that.
    pub(crate) fn may_call(&self, extension: &ExtensionRef, other: &ExtensionId) -> bool {
        let found = read(&self.found);
        let found = found.get(&extension.digest);
        found.is_some_and(|found| found.depends_on.contains(other) || found.may_call.contains(other))
    }

    /// The schedules of an extension, as long as it is active.
    pub(crate) fn schedules(&self, id: &ExtensionId) -> Vec<ScheduleSpec> {
        let active = self.active(id).and_then(|active| self.found(&active.digest));
        active.map(|found| found.schedules).unwrap_or_default()
    }

    /// Applies a change of state: which generation is active, and whether it may be entered.
    pub(super) fn update(&self, change: &ExtensionStateChanged) {
        let ExtensionStateChanged { id, generation, state, .. } = change;
        let mut active = write(&self.active);
        match state {
            ExtensionState::Active => {
                let loaded = read(&self.loaded);
                let loaded =
                    loaded.get(id).and_then(|all| all.iter().find(|it| it.generation == *generation));
                let Some(digest) = loaded.map(|it| it.digest) else { return };
                let found = read(&self.found);
                let Some(found) = found.get(&digest) else { return };
                active.insert(id.clone(), Arc::new(found.activation(generation.0)));
                self.gates.open(id);
            }
            ExtensionState::Inactive | ExtensionState::Error => {
                if active.get(id).is_some_and(|active| active.generation == *generation) {
                    active.remove(id);
                    self.gates.open(id);
                }
            }
        }
    }

    /// The active generation of an extension.
    pub(crate) fn active(&self, id: &ExtensionId) -> Option<Arc<ExtensionRef>> {
        read(&self.active).get(id).cloned()
    }

    /// The active generations, by id.
    pub(crate) fn all_active(&self) -> Vec<Arc<ExtensionRef>> {
        let mut all: Vec<Arc<ExtensionRef>> = read(&self.active).values().cloned().collect();
        all.sort();
        all
    }

    /// Enters the active generation of an extension for one call. Waits while the next generation takes over.
    pub(crate) async fn enter(
        &self,
        id: &ExtensionId,
        limit: Millis,
    ) -> Result<(Arc<ExtensionRef>, CallGuard), Fault> {
        let late = || {
            Fault::new(
                Code::ExtensionFault,
                format!("timed out after {} ms waiting for the reload of `{id}`", limit.0),
            )
        };
        let guard = tokio::select! {
            biased;
            guard = self.gates.clone().enter(id.clone()) => guard,
            () = self.clock.sleep(limit) => return Err(late()),
        };
        let gone = || Fault::new(Code::ExtensionUnknown, format!("`{id}` is not active"));
        let active = self.active(id).ok_or_else(gone)?;
        let guard = guard.to(active.generation);
        Ok((active, guard))
    }

    /// Waits for the content of these generations that is starting or about to be restarted, until this time.
    pub(crate) async fn pinned_ready(&self, pinned: &BTreeSet<Arc<ExtensionRef>>, until: Millis) {
        for extension in pinned {
            let serves = || self.active(&extension.id).filter(|active| active.digest == extension.digest);
            self.startup.content(extension, until, &*self.clock, serves).await;
        }
    }

    /// Enters the code that a turn or a run is pinned to, for one call. Content that is starting, or about to be restarted, is waited
    /// for. A generation that was replaced by other code has stopped and is not called any more.
    pub(crate) async fn enter_pinned(
        &self,
        pinned: &ExtensionRef,
    ) -> Result<(Arc<ExtensionRef>, CallGuard), Fault> {
        let ExtensionRef { id, version, generation, .. } = pinned;
        let serves = || self.active(id).filter(|active| active.digest == pinned.digest);
        let until = self.clock.steady().plus(PINNED_WAIT);
        self.startup.content(pinned, until, &*self.clock, serves).await;
        let guard = self.gates.clone().enter(pinned.id.clone()).await;
        let gone = || {
            let which = format!("`{id}` {version} (generation {})", generation.0);
            let message = format!("{which} has been replaced and stopped in the meantime");
            Fault::new(Code::ExtensionUnknown, format!("{message}; the next turn has what took its place"))
        };
        let active = serves().ok_or_else(gone)?;
        let guard = guard.to(active.generation);
        Ok((active, guard))
    }

    /// Holds new calls of an extension back.
    pub(crate) fn close_gate(&self, id: &ExtensionId) {
        self.gates.close(id);
    }

    /// Lets calls of an extension through again.
    pub(crate) fn open_gate(&self, id: &ExtensionId) {
        self.gates.open(id);
    }

    /// Waits until no call of this generation is in progress.
    pub(crate) async fn drained(&self, extension: &ExtensionRef) {
        self.gates.drained(&extension.id, extension.generation).await;
    }

    pub(crate) fn keep_instance(&self, extension: &ExtensionRef, instance: Arc<dyn Instance>) {
        let loaded =
            LoadedGeneration { generation: extension.generation, digest: extension.digest, instance };
        write(&self.loaded).entry(extension.id.clone()).or_default().push(loaded);
    }

    /// The instance of a generation; after a restart, the same code under its new generation.
    pub(crate) fn instance(&self, extension: &ExtensionRef) -> Result<Arc<dyn Instance>, Fault> {
        let loaded = read(&self.loaded);
        let loaded = loaded.get(&extension.id).map(Vec::as_slice).unwrap_or_default();
        let exact = loaded
            .iter()
            .rev()
            .find(|it| it.generation == extension.generation && it.digest == extension.digest);
        let same = exact.or_else(|| loaded.iter().rev().find(|it| it.digest == extension.digest));
        same.map(|it| it.instance.clone()).ok_or_else(|| {
            let message = format!(
                "`{}` {} (generation {}) is not loaded",
                extension.id, extension.version, extension.generation.0
            );
            Fault::new(Code::ExtensionUnknown, message)
        })
    }

    /// Loads those of these generations that are not loaded: extensions that were removed since. One whose code is gone is reported where
    /// it is called.
    pub(crate) async fn load_pinned(&self, pinned: &BTreeSet<Arc<ExtensionRef>>) {
        for extension in pinned {
            if self.instance(extension).is_ok() {
                continue;
            }
            for lane in &self.lanes {
                if let Ok(instance) = lane.load(extension).await {
                    self.keep_instance(extension, instance);
                    break;
                }
            }
        }
    }

    /// Prepares the code of a registry's hooks before a turn begins on it.
    pub(crate) async fn prepare(&self, registry: &Arc<Registry>) {
        // Usually it is the registry that was prepared last.
        let prepared = || self.prepared.lock();
        if prepared().upgrade().is_some_and(|prepared| Arc::ptr_eq(&prepared, registry)) {
            return;
        }
        for hook in &registry.hooks {
            if let Some(preparing) =
                self.instance(&hook.extension).ok().and_then(|instance| instance.prepare())
            {
                preparing.await;
            }
        }
        *prepared() = Arc::downgrade(registry);
    }
}

/// The generations that the tools and hooks of these registries belong to.
pub(crate) fn named_in(registries: &[Arc<Registry>]) -> BTreeSet<Arc<ExtensionRef>> {
    let tools = registries.iter().flat_map(|registry| registry.tools.iter().flat_map(|tool| &tool.stack));
    let hooks = registries.iter().flat_map(|registry| &registry.hooks);
    let hooks = hooks.filter(|hook| hook.outage.is_none()).map(|hook| &hook.extension);
    tools.map(|tool| &tool.extension).chain(hooks).cloned().collect()
}

fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read()
}

fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write()
}
