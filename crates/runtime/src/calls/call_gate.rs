//! Tracks calls in progress per extension, and holds new ones back while an exclusive generation is being replaced.

use std::collections::HashMap;
use std::sync::Arc;

use holdfast_contract::ids::{ExtensionId, Generation};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

/// The gates of all extensions. A gate is open unless it was closed.
#[derive(Default)]
pub(crate) struct CallGates {
    gates: Mutex<HashMap<ExtensionId, Gate>>,
    changed: Notify,
}

#[derive(Default)]
struct Gate {
    /// Calls in progress by generation; `None` while the generation is not known yet.
    calls: HashMap<Option<Generation>, usize>,
    closed: bool,
}

impl Gate {
    fn enter(&mut self, generation: Option<Generation>) {
        *self.calls.entry(generation).or_default() += 1;
    }

    fn leave(&mut self, generation: Option<Generation>) {
        if let Some(calls) = self.calls.get_mut(&generation) {
            *calls = calls.saturating_sub(1);
        }
        self.calls.retain(|_, calls| *calls > 0);
    }
}

/// A call in progress. Dropping it ends the call.
pub(crate) struct CallGuard {
    gates: Arc<CallGates>,
    id: ExtensionId,
    generation: Option<Generation>,
}

impl CallGuard {
    /// Sets the generation that is called.
    pub(crate) fn to(mut self, generation: Generation) -> Self {
        if let Some(gate) = self.gates.gates().get_mut(&self.id) {
            gate.leave(self.generation);
            gate.enter(Some(generation));
        }
        self.generation = Some(generation);
        self
    }
}

impl CallGates {
    /// New calls wait from now on.
    pub(crate) fn close(&self, id: &ExtensionId) {
        self.gates().entry(id.clone()).or_default().closed = true;
    }

    /// Calls no longer wait.
    pub(crate) fn open(&self, id: &ExtensionId) {
        if let Some(gate) = self.gates().get_mut(id) {
            gate.closed = false;
            self.changed.notify_waiters();
        }
    }

    /// Waits until the gate is open, and registers a call.
    pub(crate) async fn enter(self: Arc<Self>, id: ExtensionId) -> CallGuard {
        self.until(&id, |gate| {
            let free = !gate.closed;
            if free {
                gate.enter(None);
            }
            free
        })
        .await;
        CallGuard { gates: self, id, generation: None }
    }

    /// Waits until no call of this generation, or of a generation not known yet, is in progress.
    pub(crate) async fn drained(&self, id: &ExtensionId, generation: Generation) {
        let in_progress = |gate: &Gate, of| gate.calls.contains_key(&of);
        self.until(id, |gate| !in_progress(gate, None) && !in_progress(gate, Some(generation))).await;
    }

    async fn until(&self, id: &ExtensionId, mut done: impl FnMut(&mut Gate) -> bool) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // Registered before the check, so that no change in between is missed.
            changed.as_mut().enable();
            if done(self.gates().entry(id.clone()).or_default()) {
                return;
            }
            changed.await;
        }
    }

    fn gates(&self) -> MutexGuard<'_, HashMap<ExtensionId, Gate>> {
        self.gates.lock()
    }
}

impl Drop for CallGuard {
    fn drop(&mut self) {
        if let Some(gate) = self.gates.gates().get_mut(&self.id) {
            gate.leave(self.generation);
            self.gates.changed.notify_waiters();
        }
    }
}
