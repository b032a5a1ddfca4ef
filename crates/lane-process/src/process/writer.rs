//! Where lines to a process go: at once while it keeps up, and in order behind what waits when it does not.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::net::unix::{OwnedWriteHalf, pipe};
use tokio::sync::{Semaphore, mpsc};

/// Lines that may wait for a process that does not read.
const MAX_QUEUED_LINES: usize = 64;

/// The way to a process.
pub(crate) enum WriteHalf {
    /// Its standard input.
    Pipe(pipe::Sender),
    /// A socket of both directions.
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

/// A line that waits, and whether it has a place in the queue.
struct QueuedLine {
    rest: Vec<u8>,
    placed: bool,
}

pub(crate) struct Writer {
    way: Arc<WriteHalf>,
    /// How many lines wait or are being written.
    waiting: Arc<Mutex<usize>>,
    lines: mpsc::UnboundedSender<QueuedLine>,
    places: Arc<Semaphore>,
}

impl Writer {
    /// Opens the way. It closes when this is dropped and nothing waits.
    pub(crate) fn open(way: WriteHalf) -> Self {
        let (way, waiting, places) =
            (Arc::new(way), Arc::default(), Arc::new(Semaphore::new(MAX_QUEUED_LINES)));
        let (lines, queue) = mpsc::unbounded_channel();
        tokio::spawn(write(Arc::clone(&way), queue, Arc::clone(&waiting), Arc::clone(&places)));
        Self { way, waiting, lines, places }
    }

    /// Sends a line if nothing waits, and says whether it was sent. What does not fit at once follows.
    pub(crate) fn try_write(&self, line: &str) -> bool {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if *waiting > 0 {
            return false;
        }
        // One that cannot be written to has ended, which the other side sees.
        let written = self.way.try_write(line.as_bytes()).unwrap_or_default();
        if let Some(rest) = line.as_bytes().get(written..).filter(|rest| !rest.is_empty()) {
            *waiting += 1;
            let _ = self.lines.send(QueuedLine { rest: rest.to_vec(), placed: false });
        }
        true
    }

    /// Sends a line, as soon as there is a place for it. False if nobody reads any more.
    pub(crate) async fn send(&self, line: String) -> bool {
        if self.try_write(&line) {
            return !self.places.is_closed();
        }
        let Ok(place) = self.places.acquire().await else { return false };
        place.forget();
        *self.waiting.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.lines.send(QueuedLine { rest: line.into_bytes(), placed: true }).is_ok()
    }
}

async fn write(
    way: Arc<WriteHalf>,
    mut queue: mpsc::UnboundedReceiver<QueuedLine>,
    waiting: Arc<Mutex<usize>>,
    places: Arc<Semaphore>,
) {
    while let Some(QueuedLine { rest, placed }) = queue.recv().await {
        if way.write_all(&rest).await.is_err() {
            break;
        }
        *waiting.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        if placed {
            places.add_permits(1);
        }
    }
    places.close();
}
