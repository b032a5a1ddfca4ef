//! Background tasks: each runs from its extension's start to its stop. One that ends earlier makes the extension unhealthy.

use std::collections::HashMap;
use std::sync::Arc;

use holdfast_contract::content::Content;
use holdfast_contract::ids::{ExtensionId, Generation, Millis};
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::registry::ExtensionRef;
use holdfast_contract::role::Role;
use holdfast_contract::system_frames::{ExtensionFaulted, ExtensionsChecked, HealthReported};
use holdfast_contract::wire::{Call, Instance, Reply};
use parking_lot::Mutex;
use tokio::task::{JoinHandle, JoinSet};

use crate::calls::{start_call, wait, wait_timeout};
use crate::host::SystemHost;
use crate::runtime::Inner;

/// How long a health check may take.
const CHECK_TIMEOUT: Millis = Millis(10_000);

/// How long a loop may take to go. One that waits or yields goes at once; one that blocks its thread is abandoned.
const END_TIMEOUT: Millis = Millis(5_000);

/// The loops that run.
#[derive(Default)]
pub(crate) struct Background(Mutex<HashMap<(ExtensionId, Generation), JoinHandle<()>>>);

impl Background {
    /// Takes a loop out, to be ended.
    fn take(&self, extension: &ExtensionRef) -> Option<JoinHandle<()>> {
        let key = (extension.id.clone(), extension.generation);
        self.0.lock().remove(&key)
    }

    fn put(&self, extension: &ExtensionRef, run: JoinHandle<()>) {
        let key = (extension.id.clone(), extension.generation);
        self.0.lock().insert(key, run);
    }
}

impl Inner {
    /// Starts an extension's loop, if it has one.
    pub(crate) fn begin_background(
        self: &Arc<Self>,
        extension: &Arc<ExtensionRef>,
        instance: &Arc<dyn Instance>,
    ) {
        if !instance.capabilities().roles.contains(Role::Service) {
            return;
        }
        let (host, function) = (SystemHost::new(self, extension.clone(), None), "run-background".to_owned());
        let call = Call::Function { role: Role::Service, function, arguments: Content::default() };
        let run = wait(start_call(instance, call, Arc::new(host)));
        let (inner, extension) = (Arc::downgrade(self), extension.clone());
        let told = extension.clone();
        let run = tokio::spawn(async move {
            let ended = run.await;
            let Some(inner) = inner.upgrade() else { return };
            let ExtensionRef { id, generation, .. } = (*told).clone();
            let by_itself = || Fault::new(Code::ExtensionFault, "its loop in the background has ended");
            let (phase, fault) = ("service".to_owned(), ended.err().unwrap_or_else(by_itself));
            inner.system.tell(ExtensionFaulted { id: id.clone(), generation, phase, fault });
            // Without its setup a loop may have nothing to do; the extension stays, so that it can be set up.
            if !inner.needs_setup(&id).await {
                inner.system.tell(HealthReported { id, generation, healthy: false });
            }
        });
        self.background.put(&extension, run);
    }

    /// Ends an extension's loop, if one runs, and waits until it is gone, but not for ever.
    pub(crate) async fn end_background(&self, extension: &ExtensionRef) {
        let Some(run) = self.background.take(extension) else { return };
        run.abort();
        tokio::select! {
            _gone = run => {}
            () = self.clock.sleep(END_TIMEOUT) => {
                let ExtensionRef { id, generation, .. } = extension.clone();
                let message = format!(
                    "the background task did not stop within {} s and was abandoned: it blocks its thread",
                    END_TIMEOUT.0 / 1000
                );
                let (phase, fault) = ("service".to_owned(), Fault::new(Code::ExtensionFault, message));
                self.system.tell(ExtensionFaulted { id, generation, phase, fault });
            }
        }
    }

    /// Whether an extension's loop has ended by itself.
    pub(crate) fn background_has_ended(&self, extension: &ExtensionRef) -> bool {
        let key = (extension.id.clone(), extension.generation);
        self.background.0.lock().get(&key).is_some_and(JoinHandle::is_finished)
    }

    /// Checks the health of every active extension that has a lifecycle and is set up, all at once. A failed check is reported, the others
    /// are counted.
    pub(crate) async fn check_health(self: &Arc<Self>) {
        let mut checks = JoinSet::new();
        for extension in self.extensions.all_active() {
            if let Ok(instance) = self.extensions.instance(&extension)
                && instance.capabilities().has_lifecycle
            {
                checks.spawn(self.clone().check(extension.id.clone()));
            }
        }
        while checks.join_next().await.is_some() {}
        self.count_connections();
        self.record_checks(self.routine_checks.due(self.clock.now()));
    }

    /// Counts the connections to the ports of all active extensions.
    pub(crate) fn count_connections(&self) {
        for extension in self.extensions.all_active() {
            self.count_connections_to(&extension);
        }
    }

    /// Counts the connections to the ports of one extension.
    pub(crate) fn count_connections_to(&self, extension: &ExtensionRef) {
        if let Ok(instance) = self.extensions.instance(extension) {
            self.routine_checks.connected(extension, instance.take_port_use(), self.clock.now());
        }
    }

    /// Records how often extensions were checked with the same outcome as before.
    pub(crate) fn record_checks(&self, checks: Option<ExtensionsChecked>) {
        checks.into_iter().for_each(|checks| self.system.tell(checks));
    }

    /// Asks the active generation; one that is being replaced is not asked, and its successor is.
    async fn check(self: Arc<Self>, id: ExtensionId) {
        if self.needs_setup(&id).await {
            return;
        }
        let Ok((extension, _guard)) = self.extensions.enter(&id, CHECK_TIMEOUT).await else { return };
        let Ok(instance) = self.extensions.instance(&extension) else { return };
        let host = Arc::new(SystemHost::new(&self, extension.clone(), None));
        let made = start_call(&instance, Call::Health, host);
        let answer = wait_timeout(made, CHECK_TIMEOUT, Code::ExtensionUnhealthy, self.clock.clone()).await;
        let ExtensionRef { id, generation, .. } = (*extension).clone();
        match answer {
            Ok(Reply::Health(false)) => {
                self.announce_unhealthy(&extension);
                self.system.tell(HealthReported { id, generation, healthy: false });
            }
            Ok(_) => self.routine_checks.passed(&extension, self.clock.now()),
            Err(fault) => {
                let phase = "health check".to_owned();
                self.system.tell(ExtensionFaulted { id: id.clone(), generation, phase, fault });
                self.system.tell(HealthReported { id, generation, healthy: false });
            }
        }
    }
}
