//! The registry that new turns start on, and waiting for gates and guardrails that are starting.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use holdfast_contract::ids::Millis;
use holdfast_contract::registry::{Registry, RegistryPin};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use crate::clock::Clock;

/// The registry in force.
#[derive(Default)]
pub(crate) struct ActiveRegistry {
    pin: Mutex<RegistryPin>,
    /// Whether a gate or guardrail of it is starting.
    awaits_judges: AtomicBool,
    changed: Notify,
}

impl ActiveRegistry {
    fn lock(&self) -> MutexGuard<'_, RegistryPin> {
        self.pin.lock()
    }

    /// The registry with the frame that created it.
    pub(crate) fn pin(&self) -> RegistryPin {
        self.lock().clone()
    }

    /// The registry; an empty one before the first.
    pub(crate) fn view(&self) -> Arc<Registry> {
        self.lock().view.clone().unwrap_or_default()
    }

    pub(super) fn set(&self, pin: RegistryPin) {
        let awaits_judges = pin.view.as_ref().is_some_and(|view| view.has_passing_outage());
        let mut current = self.lock();
        *current = pin;
        self.awaits_judges.store(awaits_judges, Ordering::Release);
        drop(current);
        self.changed.notify_waiters();
    }

    /// Whether a turn that begins now would miss a gate or guardrail that is starting.
    pub(crate) fn awaits_judges(&self) -> bool {
        self.awaits_judges.load(Ordering::Acquire)
    }

    /// Waits until no gate or guardrail is starting any more, or until this steady time.
    pub(crate) async fn judges_ready(&self, until: Millis, clock: &dyn Clock) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // Registered before the check, so that no change in between is missed.
            changed.as_mut().enable();
            let now = clock.steady();
            if now >= until || !self.awaits_judges() {
                return;
            }
            tokio::select! {
                () = changed => {}
                () = clock.sleep(until.since(now)) => {}
            }
        }
    }
}
