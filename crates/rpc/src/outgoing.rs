//! What is on its way to a client. One that does not read is let go before what waits for it is too much; it can come back and follow
//! the log from where it was.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::{Notify, mpsc};

/// Bytes that may wait for a client before it is let go. One answer may be longer.
const MAX_QUEUED_BYTES: usize = 32 << 20;
/// Bytes that may wait before what can wait does.
const HIGH_WATER_BYTES: usize = 1 << 20;

/// The way to a client. Clones share it.
#[derive(Clone)]
pub(crate) struct Outgoing {
    lines: mpsc::UnboundedSender<String>,
    queue: Arc<Queue>,
}

#[derive(Default)]
struct Queue {
    bytes: AtomicUsize,
    /// Something was written.
    less: Notify,
    /// Too much waits.
    full: Notify,
}

impl Outgoing {
    /// Writes there until the client has gone, is let go, or nobody has anything more to send. True if it was let go.
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

    /// Sends a line. A client that has gone needs none.
    pub(crate) fn send(&self, line: String) {
        let before = self.queue.bytes.fetch_add(line.len(), Ordering::Relaxed);
        if before > MAX_QUEUED_BYTES {
            self.queue.full.notify_one();
        }
        let _gone = self.lines.send(line);
    }

    /// Sends a line once little enough waits before it. False if the client has gone.
    pub(crate) async fn send_in_time(&self, line: String) -> bool {
        loop {
            // Asked for first, so that nothing written meanwhile is missed.
            let less = self.queue.less.notified();
            if self.queue.bytes.load(Ordering::Relaxed) < HIGH_WATER_BYTES {
                break;
            }
            tokio::select! {
                () = less => {}
                () = self.closed() => return false,
            }
        }
        self.send(line);
        !self.lines.is_closed()
    }

    /// Waits until the client has gone.
    pub(crate) async fn closed(&self) {
        self.lines.closed().await;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on should stop loudly")]
mod tests {
    use std::time::Duration;

    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn a_client_that_does_not_read_is_let_go() {
        let (ours, theirs) = tokio::io::duplex(1 << 10);
        let (outgoing, write) = Outgoing::open(ours);
        let write = tokio::spawn(write);
        for _ in 0..(MAX_QUEUED_BYTES >> 16) {
            outgoing.send("x".repeat(1 << 16));
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(!write.is_finished(), "so much may wait");
        outgoing.send("x".repeat(2));
        outgoing.send("x".to_owned());
        assert!(write.await.unwrap());
        outgoing.closed().await;
        assert!(!outgoing.send_in_time("x".to_owned()).await);
        drop(theirs);
    }

    #[tokio::test]
    async fn what_can_wait_does_and_all_of_it_comes() {
        let (ours, mut theirs) = tokio::io::duplex(1 << 10);
        let (outgoing, write) = Outgoing::open(ours);
        tokio::spawn(write);
        const LINES: usize = 100;
        let sent = tokio::spawn(async move {
            for _ in 0..LINES {
                assert!(outgoing.send_in_time("x".repeat(1 << 17)).await);
                assert!(outgoing.queue.bytes.load(Ordering::Relaxed) < HIGH_WATER_BYTES + (1 << 17));
            }
        });
        let mut read = Vec::new();
        theirs.read_to_end(&mut read).await.unwrap();
        assert_eq!(read.len(), LINES << 17);
        sent.await.unwrap();
    }
}
