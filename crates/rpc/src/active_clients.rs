//! Commands of other processes that are being served. The owner of a home waits for them before it ends.

use std::time::Duration;

use tokio::sync::watch;

/// The commands that are being served. Clones share it.
#[derive(Clone, Default)]
pub struct ActiveClients(watch::Sender<Served>);

#[derive(Default)]
struct Served {
    commands: usize,
    /// No more are accepted.
    closed: bool,
    /// Connections of other processes, of whatever kind.
    connected: usize,
    /// Whether there ever was one.
    used: bool,
}

/// A command that is being served, until it is dropped.
pub(crate) struct ClientGuard(ActiveClients);

impl Drop for ClientGuard {
    fn drop(&mut self) {
        self.0.0.send_modify(|served| served.commands -= 1);
    }
}

/// A connection of another process, until it is dropped.
pub(crate) struct ConnectionGuard(ActiveClients);

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.0.0.send_modify(|served| served.connected -= 1);
    }
}

impl ActiveClients {
    /// Waits until the last connection of another process has ended, and none came for this long. If none ever came, `first` is how
    /// long the first one is waited for.
    pub async fn unused(&self, first: Duration, pause: Duration) {
        let mut changes = self.0.subscribe();
        if tokio::time::timeout(first, changes.wait_for(|served| served.used)).await.is_err() {
            return;
        }
        loop {
            drop(changes.wait_for(|served| served.connected == 0).await);
            let back = changes.wait_for(|served| served.connected > 0);
            if tokio::time::timeout(pause, back).await.is_err() {
                return;
            }
        }
    }

    pub(crate) fn connect(&self) -> ConnectionGuard {
        self.0.send_modify(|served| {
            served.connected += 1;
            served.used = true;
        });
        ConnectionGuard(self.clone())
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.borrow().commands
    }

    /// Waits until there are none, and accepts no more from then on.
    pub async fn gone(&self) {
        let mut changes = self.0.subscribe();
        loop {
            // The sender is here, so there is always a next change.
            drop(changes.wait_for(|served| served.commands == 0).await);
            let close = |served: &mut Served| {
                served.closed |= served.commands == 0;
                served.closed
            };
            if self.0.send_if_modified(close) {
                return;
            }
        }
    }

    pub(crate) fn enter(&self) -> Option<ClientGuard> {
        let enter = |served: &mut Served| {
            served.commands += usize::from(!served.closed);
            !served.closed
        };
        self.0.send_if_modified(enter).then(|| ClientGuard(self.clone()))
    }
}
