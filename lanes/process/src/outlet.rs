//! Where lines to a process go: at once while it keeps up, and in order behind what waits when it does not.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::net::unix::{OwnedWriteHalf, pipe};
use tokio::sync::{Semaphore, mpsc};

/// Lines that may wait for a process that does not read.
const QUEUE: usize = 64;

/// The way to a process.
pub(crate) enum Way {
    /// Its standard input.
    Pipe(pipe::Sender),
    /// A socket of both directions.
    Socket(OwnedWriteHalf),
}

impl Way {
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
struct Waiting {
    rest: Vec<u8>,
    placed: bool,
}

pub(crate) struct Outlet {
    way: Arc<Way>,
    /// How many lines wait or are being written.
    waiting: Arc<Mutex<usize>>,
    lines: mpsc::UnboundedSender<Waiting>,
    places: Arc<Semaphore>,
}

impl Outlet {
    /// Opens the way. It closes when this is dropped and nothing waits.
    pub(crate) fn open(way: Way) -> Self {
        let (way, waiting, places) = (Arc::new(way), Arc::default(), Arc::new(Semaphore::new(QUEUE)));
        let (lines, queue) = mpsc::unbounded_channel();
        tokio::spawn(write(Arc::clone(&way), queue, Arc::clone(&waiting), Arc::clone(&places)));
        Self { way, waiting, lines, places }
    }

    /// Sends a line if nothing waits, and says whether it was sent. What does not fit at once follows.
    pub(crate) fn at_once(&self, line: &str) -> bool {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if *waiting > 0 {
            return false;
        }
        // One that cannot be written to has ended, which the other side sees.
        let written = self.way.try_write(line.as_bytes()).unwrap_or_default();
        if let Some(rest) = line.as_bytes().get(written..).filter(|rest| !rest.is_empty()) {
            *waiting += 1;
            let _ = self.lines.send(Waiting { rest: rest.to_vec(), placed: false });
        }
        true
    }

    /// Sends a line, as soon as there is a place for it. False if nobody reads any more.
    pub(crate) async fn send(&self, line: String) -> bool {
        if self.at_once(&line) {
            return !self.places.is_closed();
        }
        let Ok(place) = self.places.acquire().await else { return false };
        place.forget();
        *self.waiting.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.lines.send(Waiting { rest: line.into_bytes(), placed: true }).is_ok()
    }
}

async fn write(
    way: Arc<Way>,
    mut queue: mpsc::UnboundedReceiver<Waiting>,
    waiting: Arc<Mutex<usize>>,
    places: Arc<Semaphore>,
) {
    while let Some(Waiting { rest, placed }) = queue.recv().await {
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
