//! What is reported to the system about extensions, and what follows from a change of their state.

use std::collections::BTreeMap;
use std::sync::Arc;

use holdfast_bus::topics::EXTENSION_STATE;
use holdfast_contract::body::Body;
use holdfast_contract::effect::Input;
use holdfast_contract::frame::FrameSource;
use holdfast_contract::ids::{DescriptorId, ExtensionId, Millis, RegistryKind};
use holdfast_contract::names::UnusedOverride;
use holdfast_contract::problem::{Fault, Problem};
use holdfast_contract::registry::{Override, Registry, RegistryPin};
use holdfast_contract::system_frames::{
    ExtensionFaulted, ExtensionRejected, ExtensionRemoved, ExtensionRetried, ExtensionState,
    ExtensionStateChanged, ExtensionView, ExtensionsFound, FoundExtension, OverridesSet,
};

use crate::messaging::ExtensionStateEvent;
use crate::runtime::{Inner, Runtime};
use crate::system::SystemCommand;

impl Runtime {
    /// Reports extensions that are new or changed.
    pub fn found(&self, found: Vec<FoundExtension>) {
        self.inner().system.tell(ExtensionsFound { found });
    }

    /// Reports that an extension is there but cannot be used. The active generation, if any, stays active.
    pub fn rejected(&self, id: ExtensionId, fault: Fault) {
        self.inner().system.tell(ExtensionRejected { id, fault });
    }

    /// Reports that an extension is gone.
    pub fn removed(&self, id: ExtensionId) {
        self.inner().system.tell(ExtensionRemoved { id });
    }

    /// Starts an extension again that is down, regardless of its previous faults. One that is not down is not affected.
    pub fn retry(&self, id: ExtensionId, reason: &str) {
        self.inner().system.tell(ExtensionRetried { id, reason: reason.to_owned(), reload: false });
    }

    /// Sets the user's overrides.
    pub fn set_overrides(&self, overrides: BTreeMap<RegistryKind, BTreeMap<DescriptorId, Override>>) {
        self.inner().system.tell(OverridesSet { overrides });
    }

    /// The user's overrides that name nothing that is registered.
    pub async fn unused_overrides(&self) -> Result<Vec<UnusedOverride>, Problem> {
        self.inner().system.ask(SystemCommand::UnusedOverrides).await
    }

    /// The extensions that are installed, by id.
    pub async fn extensions(&self) -> Result<Vec<ExtensionView>, Problem> {
        self.inner().system.ask(SystemCommand::Extensions).await
    }

    /// What is odd about an extension as it was found, such as unknown fields of its manifest.
    pub fn warnings(&self, id: &ExtensionId) -> Vec<Fault> {
        let configuration = self.inner().home.configuration();
        let found = configuration.map(|configuration| configuration.warnings(id)).unwrap_or_default();
        found.iter().map(Problem::to_located_fault).collect()
    }

    /// The registry that new turns start on.
    pub fn registry(&self) -> Arc<Registry> {
        self.inner().registry.view()
    }

    /// Checks the health of every active extension that has a lifecycle, at this interval, until the runtime is dropped.
    pub fn watch_health(&self, every: Millis) {
        let (inner, clock) = (Arc::downgrade(self.inner()), self.inner().clock.clone());
        tokio::spawn(async move {
            loop {
                clock.sleep(every).await;
                let Some(inner) = inner.upgrade() else { return };
                inner.check_health().await;
            }
        });
    }
}

impl Inner {
    /// Brings a registry into force for turns that start from now on.
    pub(crate) fn activate(self: &Arc<Self>, pin: RegistryPin) {
        let before = self.registry.view().policy;
        self.registry.set(pin);
        if self.registry.view().policy != before {
            // What an extension may subscribe to depends on the profile.
            self.sync_subscriptions_later();
        }
        self.messaging.notify_changed();
    }

    /// Remembers what discovery reported.
    pub(crate) fn remember_found(self: &Arc<Self>, found: &[FoundExtension]) {
        self.extensions.remember(found);
        self.installed(found);
    }

    /// Remembers what a generation is of. The last good content may not have been found in this process.
    pub(crate) fn remember_generation(self: &Arc<Self>, found: &FoundExtension) {
        self.extensions.remember(std::slice::from_ref(found));
        self.installed_last_good(found);
    }

    /// Whether the last good content of an extension may still run: what it was granted has to be granted today.
    pub(crate) fn may_stand_in(&self, found: &FoundExtension) -> Result<(), Problem> {
        self.home.configuration().map_or(Ok(()), |configuration| configuration.may_stand_in(found))
    }

    /// An extension's state has changed.
    pub(crate) fn extension_changed(self: &Arc<Self>, change: &ExtensionStateChanged) {
        self.setup_changed(Some(&change.id));
        self.extensions.update(change);
        self.subscriptions_follow(&change.id);
        self.services_follow(change);
        self.messaging.notify_changed();
        if let (ExtensionState::Active, Some(serving)) = (change.state, self.extensions.active(&change.id)) {
            self.grants_follow(&change.id, serving.digest);
        }
        if change.state == ExtensionState::Active {
            self.generation_replaced(&change.id, change.generation);
        }
        let ExtensionStateChanged { id: extension, generation, state, fault, .. } = change.clone();
        self.announce(EXTENSION_STATE, &ExtensionStateEvent { extension, generation, state, fault });
    }
}

/// The crash of an extension that this fact reports, for the system to count. A fault of the host, such as an exhausted pool, and a
/// failure that the extension reports itself, such as that of a tool, are not crashes.
pub(crate) fn crash_in(input: &Input) -> Option<ExtensionFaulted> {
    let (fault, phase) = match &input.body {
        Body::HookFaulted(fact) => (&fact.fault, format!("hook {}", fact.hook)),
        Body::ToolReturned(fact) => (fact.outcome.fault()?, "tool".to_owned()),
        _ => return None,
    };
    let FrameSource::Extension(extension) = &input.source else { return None };
    let (id, generation) = (extension.id.clone(), extension.generation);
    fault.code.is_crash().then(|| ExtensionFaulted { id, generation, phase, fault: fault.clone() })
}
