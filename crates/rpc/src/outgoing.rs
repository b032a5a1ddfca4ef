//! The queue of messages for a client. A client that does not read is disconnected before too much is queued for it; it can reconnect
//! and follow the log from where it was.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::{Notify, mpsc};

/// Bytes that may be queued or held for a client before it is disconnected. One answer may be longer.
const MAX_QUEUED_BYTES: usize = 32 << 20;
/// Bytes that may be queued before frames wait for the client to read.
const HIGH_WATER_BYTES: usize = 1 << 20;

/// A client's queue. Clones share it.
#[derive(Clone)]
pub(crate) struct Outgoing {
    lines: mpsc::UnboundedSender<String>,
    queue: Arc<Queue>,
}

#[derive(Default)]
struct Queue {
    bytes: AtomicUsize,
    /// Bytes of output that waits for its frame and is not queued yet.
    held: AtomicUsize,
    /// Something was written.
    less: Notify,
    /// Too much is queued or held.
    full: Notify,
}

impl Outgoing {
    /// Writes there until the client has gone, is disconnected, or nothing more can be sent. True if it was disconnected because it did
    /// not read.
    pub(crate) fn open(
        writer: impl AsyncWrite + Send + 'static,
    ) -> (Self, impl Future<Output = bool> + Send + 'static) {
        let (lines, mut waiting) = mpsc::unbounded_channel::<String>();
        let queue = Arc::new(Queue::default());
        let written = queue.clone();
        let write = async move {
            let mut writer = std::pin::pin!(writer);
            while let Some(line) = waiting.recv().await {
                let write = async {
                    writer.write_all(line.as_bytes()).await?;
                    writer.flush().await
                };
                tokio::select! {
                    biased;
                    done = write => if done.is_err() { return false },
                    () = written.full.notified() => return true,
                }
                written.bytes.fetch_sub(line.len(), Ordering::Relaxed);
                written.less.notify_waiters();
            }
            false
        };
        (Self { lines, queue }, write)
    }

    /// Sends a line. To a client that has gone, nothing is sent.
    pub(crate) fn send(&self, line: String) {
        let before = self.queue.bytes.fetch_add(line.len(), Ordering::Relaxed);
        self.check(before + self.queue.held.load(Ordering::Relaxed));
        let _gone = self.lines.send(line);
    }

    /// Counts a line that is sent later, with [`Self::send_held`].
    pub(crate) fn hold(&self, line: &str) {
        let before = self.queue.held.fetch_add(line.len(), Ordering::Relaxed);
        self.check(before + self.queue.bytes.load(Ordering::Relaxed));
    }

    /// Sends a line that was held.
    pub(crate) fn send_held(&self, line: String) {
        self.queue.held.fetch_sub(line.len(), Ordering::Relaxed);
        self.send(line);
    }

    fn check(&self, before: usize) {
        if before > MAX_QUEUED_BYTES {
            self.queue.full.notify_one();
        }
    }

    /// Waits until little enough is queued. False if the client has gone.
    pub(crate) async fn room(&self) -> bool {
        loop {
            // Registered first, so that nothing written meanwhile is missed.
            let less = self.queue.less.notified();
            if self.queue.bytes.load(Ordering::Relaxed) < HIGH_WATER_BYTES {
                return !self.lines.is_closed();
            }
            tokio::select! {
                () = less => {}
                () = self.closed() => return false,
            }
        }
    }

    /// Whether both are the queue of the same client.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.queue, &other.queue)
    }

    /// Waits until the client has gone.
    pub(crate) async fn closed(&self) {
        self.lines.closed().await;
    }
}

#[cfg(test)]
#[path = "outgoing_tests.rs"]
mod tests;
