//! Who is being called, and who may not be just now: while a generation that cannot run beside the next one gives way, calls wait.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdfast_contract::ids::ExtensionId;
use tokio::sync::Notify;

/// The doors of all extensions. One that nobody has closed is open.
#[derive(Default)]
pub(crate) struct Presence {
    doors: Mutex<HashMap<ExtensionId, Door>>,
    changed: Notify,
}

#[derive(Default)]
struct Door {
    visits: usize,
    closed: bool,
}

/// Somebody is calling an extension, for as long as this lives.
pub(crate) struct Visit {
    presence: Arc<Presence>,
    id: ExtensionId,
}

impl Presence {
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
    pub(crate) async fn enter(self: Arc<Self>, id: ExtensionId) -> Visit {
        self.until(&id, |door| {
            let free = !door.closed;
            door.visits += usize::from(free);
            free
        })
        .await;
        Visit { presence: self, id }
    }

    /// Waits until nobody is inside any more.
    pub(crate) async fn empty(&self, id: &ExtensionId) {
        self.until(id, |door| door.visits == 0).await;
    }

    async fn until(&self, id: &ExtensionId, mut done: impl FnMut(&mut Door) -> bool) {
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

    fn doors(&self) -> MutexGuard<'_, HashMap<ExtensionId, Door>> {
        self.doors.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        if let Some(door) = self.presence.doors().get_mut(&self.id) {
            door.visits = door.visits.saturating_sub(1);
            self.presence.changed.notify_waiters();
        }
    }
}
