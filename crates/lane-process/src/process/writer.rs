//! Writes lines to a process: directly while it reads as fast as we write, through a bounded queue when it does not.

use std::io;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::net::unix::{OwnedWriteHalf, pipe};
use tokio::sync::{Semaphore, mpsc};

/// Lines that may be queued for a process that does not read.
const MAX_QUEUED_LINES: usize = 64;

/// The transport to a process.
pub(crate) enum WriteHalf {
    /// Its standard input.
    Pipe(pipe::Sender),
    /// The write half of a socket.
    Socket(OwnedWriteHalf),
}

impl WriteHalf {
    fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Pipe(pipe) => pipe.try_write(bytes),
            Self::Socket(socket) => socket.try_write(bytes),
        }
    }

    async fn writable(&self) -> io::Result<()> {
        match self {
            Self::Pipe(pipe) => pipe.writable().await,
            Self::Socket(socket) => socket.writable().await,
        }
    }

    async fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            self.writable().await?;
            match self.try_write(bytes) {
                Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// A line that is queued, and whether it holds a permit of the queue.
struct QueuedLine {
    rest: Vec<u8>,
    has_permit: bool,
}

/// Sends lines to a process in order.
pub(crate) struct Writer {
    transport: Arc<WriteHalf>,
    /// How many lines are queued or being written.
    queued: Arc<Mutex<usize>>,
    lines: mpsc::UnboundedSender<QueuedLine>,
    permits: Arc<Semaphore>,
}

impl Writer {
    /// Starts the writer task. The transport is closed when this is dropped and the queue is drained.
    pub(crate) fn open(transport: WriteHalf) -> Self {
        let (transport, queued, permits) =
            (Arc::new(transport), Arc::default(), Arc::new(Semaphore::new(MAX_QUEUED_LINES)));
        let (lines, queue) = mpsc::unbounded_channel();
        tokio::spawn(write(Arc::clone(&transport), queue, Arc::clone(&queued), Arc::clone(&permits)));
        Self { transport, queued, lines, permits }
    }

    /// Writes a line without waiting if the queue is empty; false if it is not. What the transport does not take is queued.
    pub(crate) fn try_write(&self, line: &str) -> bool {
        let mut queued = self.queued.lock();
        if *queued > 0 {
            return false;
        }
        // A write error means that the process has exited, which the reader detects.
        let written = self.transport.try_write(line.as_bytes()).unwrap_or_default();
        if let Some(rest) = line.as_bytes().get(written..).filter(|rest| !rest.is_empty()) {
            *queued += 1;
            let _ = self.lines.send(QueuedLine { rest: rest.to_vec(), has_permit: false });
        }
        true
    }

    /// Sends a line, and waits while the queue is full. False if the process has disconnected.
    pub(crate) async fn send(&self, line: String) -> bool {
        if self.try_write(&line) {
            return !self.permits.is_closed();
        }
        let Ok(permit) = self.permits.acquire().await else { return false };
        permit.forget();
        *self.queued.lock() += 1;
        self.lines.send(QueuedLine { rest: line.into_bytes(), has_permit: true }).is_ok()
    }
}

async fn write(
    transport: Arc<WriteHalf>,
    mut queue: mpsc::UnboundedReceiver<QueuedLine>,
    queued: Arc<Mutex<usize>>,
    permits: Arc<Semaphore>,
) {
    while let Some(QueuedLine { rest, has_permit }) = queue.recv().await {
        if transport.write_all(&rest).await.is_err() {
            break;
        }
        *queued.lock() -= 1;
        if has_permit {
            permits.add_permits(1);
        }
    }
    permits.close();
}
