//! Who is being called, and who may not be just now: while a generation that cannot run beside the next one gives way, calls wait.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdfast_contract::ids::{ExtensionId, Generation};
use tokio::sync::Notify;

/// The doors of all extensions. One that nobody has closed is open.
#[derive(Default)]
pub(crate) struct CallGates {
    doors: Mutex<HashMap<ExtensionId, Gate>>,
    changed: Notify,
}

#[derive(Default)]
struct Gate {
    /// How many are inside, by the generation that they call; none where that is not known yet.
    visits: HashMap<Option<Generation>, usize>,
    closed: bool,
}

impl Gate {
    fn enter(&mut self, generation: Option<Generation>) {
        *self.visits.entry(generation).or_default() += 1;
    }

    fn leave(&mut self, generation: Option<Generation>) {
        if let Some(visits) = self.visits.get_mut(&generation) {
            *visits = visits.saturating_sub(1);
        }
        self.visits.retain(|_, visits| *visits > 0);
    }
}

/// Somebody is calling an extension, for as long as this lives.
pub(crate) struct CallGuard {
    presence: Arc<CallGates>,
    id: ExtensionId,
    generation: Option<Generation>,
}

impl CallGuard {
    /// Whom it is for.
    pub(crate) fn to(mut self, generation: Generation) -> Self {
        if let Some(door) = self.presence.doors().get_mut(&self.id) {
            door.leave(self.generation);
            door.enter(Some(generation));
        }
        self.generation = Some(generation);
        self
    }
}

impl CallGates {
    /// New visits wait from now on.
    pub(crate) fn close(&self, id: &ExtensionId) {
        self.doors().entry(id.clone()).or_default().closed = true;
    }

    /// Visits no longer wait.
    pub(crate) fn open(&self, id: &ExtensionId) {
        if let Some(door) = self.doors().get_mut(id) {
            door.closed = false;
            self.changed.notify_waiters();
        }
    }

    /// Waits until the door is open, and goes in.
    pub(crate) async fn enter(self: Arc<Self>, id: ExtensionId) -> CallGuard {
        self.until(&id, |door| {
            let free = !door.closed;
            if free {
                door.enter(None);
            }
            free
        })
        .await;
        CallGuard { presence: self, id, generation: None }
    }

    /// Waits until nobody is inside any more who calls this generation, or may.
    pub(crate) async fn empty(&self, id: &ExtensionId, generation: Generation) {
        let calls = |door: &Gate, of| door.visits.contains_key(&of);
        self.until(id, |door| !calls(door, None) && !calls(door, Some(generation))).await;
    }

    async fn until(&self, id: &ExtensionId, mut done: impl FnMut(&mut Gate) -> bool) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // Before the look, so that no change in between is missed.
            changed.as_mut().enable();
            if done(self.doors().entry(id.clone()).or_default()) {
                return;
            }
            changed.await;
        }
    }

    fn doors(&self) -> MutexGuard<'_, HashMap<ExtensionId, Gate>> {
        self.doors.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for CallGuard {
    fn drop(&mut self) {
        if let Some(door) = self.presence.doors().get_mut(&self.id) {
            door.leave(self.generation);
            self.presence.changed.notify_waiters();
        }
    }
}
