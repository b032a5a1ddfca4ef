//! The handle: opening and closing, and what all its clones share with the writer's thread.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Weak, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use holdfast_contract::digest::Digest;
use holdfast_contract::ids::StreamId;
use holdfast_contract::problem::{Code, Problem};
use parking_lot::{Mutex, MutexGuard};

use crate::failure;
use crate::reader::{self, Readers};
use crate::stats::{Counters, Stats};
use crate::tables::migrations::Migration;
use crate::tables::schema::{self, LogLocation};
use crate::write::head_file::{HeadFile, LostFrames, Noted};
use crate::write::queue::{QueueEntry, WriteQueue};
use crate::write::stream::{Stream, StreamLog};
use crate::write::writer::{self, WriterThread};

/// How a log is opened.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// The name of a registered SQLite VFS; the default one if none.
    pub vfs: Option<String>,
    /// How long a frame without a waiting caller may stay in memory.
    pub linger: Duration,
    /// How many frames may be queued before [`StreamLog::append`] blocks.
    pub queue: usize,
    /// How many threads can read concurrently.
    pub readers: usize,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self { vfs: None, linger: Duration::from_millis(2), queue: 65_536, readers: 4 }
    }
}

/// The durable frame log. Clones are cheap and share one writer; dropping the last one closes it.
#[derive(Clone)]
pub struct Store {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) shared: Arc<Shared>,
    pub(crate) readers: Readers,
    pub(crate) place: LogLocation,
    migration: Option<Migration>,
    lost: Option<LostFrames>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

/// What handles and the writer's thread share.
pub(crate) struct Shared {
    pub(crate) queue: WriteQueue,
    pub(crate) counters: Counters,
    streams: Mutex<Streams>,
    pending: Mutex<HashMap<Digest, Arc<[u8]>>>,
}

#[derive(Default)]
struct Streams {
    open: HashMap<StreamId, Weak<Stream>>,
    closed: bool,
}

impl Store {
    /// Opens the log in this file; creates it, or migrates an older format.
    pub fn open(path: &Path, options: StoreOptions) -> Result<Store, Problem> {
        let place = LogLocation { path: path.to_owned(), vfs: options.vfs };
        let noted = Noted::read(path);
        let (connection, migration) = schema::open(&place)?;
        // Through another VFS the database is not where its path says.
        let head_file = match place.vfs {
            None => HeadFile::open(path, &connection, noted),
            Some(_) => HeadFile::default(),
        };
        let lost = head_file.lost();
        let shared = Arc::new(Shared {
            queue: WriteQueue::new(options.queue, options.linger),
            counters: Counters::default(),
            streams: Mutex::default(),
            pending: Mutex::default(),
        });
        let writer = WriterThread::new(connection, Arc::clone(&shared), head_file)?;
        let thread = std::thread::Builder::new().name("holdfast-store".to_owned());
        let writer = thread.spawn(move || writer::run(writer)).map_err(|error| {
            Problem::new(Code::StoreUnavailable, format!("the log's writer could not be started: {error}"))
        })?;
        let readers = Readers::new(place.clone(), options.readers);
        Ok(Store {
            inner: Arc::new(Inner {
                shared,
                readers,
                place,
                migration,
                lost,
                writer: Mutex::new(Some(writer)),
            }),
        })
    }

    /// Opens a stream for appending; it is created by its first frame. A stream that has failed is reopened at its last
    /// durable frame, and those who still hold the failed one keep failing.
    pub fn stream(&self, id: &StreamId) -> Result<StreamLog, Problem> {
        let mut streams = self.inner.shared.streams();
        if streams.closed {
            return Err(failure::closed());
        }
        let open = streams.open.get(id).and_then(Weak::upgrade).filter(|stream| !stream.has_failed());
        let stream = match open {
            Some(stream) => stream,
            None => {
                let found = self.inner.readers.with(|connection| reader::find_stream(connection, id))?;
                let (key, head) = found.map_or((None, None), |found| (Some(found.key), found.head));
                let stream = Arc::new(Stream::new(id.clone(), key, head));
                streams.open.retain(|_, stream| stream.strong_count() > 0);
                streams.open.insert(id.clone(), Arc::downgrade(&stream));
                stream
            }
        };
        Ok(StreamLog::new(Arc::clone(&self.inner), stream))
    }

    /// Waits until everything queued so far is on disk or has failed. A stream's failure is its own; an object that could
    /// not be written is reported here.
    pub fn flush(&self) -> Result<(), Problem> {
        self.on_writer(WriterThread::write_objects)
    }

    /// What the store has done since it was opened.
    pub fn stats(&self) -> Stats {
        self.inner.shared.counters.read()
    }

    /// The migration that opening made, for the caller to record as `log.migrated`.
    pub fn migration(&self) -> Option<&Migration> {
        self.inner.migration.as_ref()
    }

    /// The acknowledged frames that are missing, if the database or its write-ahead log was cut or replaced by an older one. Stays so
    /// until the head file is deleted.
    pub fn lost_frames(&self) -> Option<LostFrames> {
        self.inner.lost
    }

    /// Drains the queue and stops the writer. Other clones can still read.
    pub fn close(self) {
        self.inner.close();
    }

    /// Runs a function on the writer thread, after everything queued so far, and waits for it.
    pub(crate) fn on_writer<R: Send + 'static>(
        &self,
        task: impl FnOnce(&mut WriterThread) -> Result<R, Problem> + Send + 'static,
    ) -> Result<R, Problem> {
        let (answer, answered) = mpsc::sync_channel(1);
        let task = Box::new(move |writer: &mut WriterThread| {
            // The caller may have stopped waiting; the work is done all the same.
            let _ = answer.send(task(writer));
        });
        self.inner.shared.queue.push(QueueEntry::Task(task))?;
        answered.recv().unwrap_or_else(|_| Err(failure::closed()))
    }
}

impl Inner {
    fn close(&self) {
        self.shared.queue.close();
        self.readers.rest();
        let writer = self.writer.lock().take();
        // The last handle may be dropped on the writer thread itself, with a queued entry; joining there would be a deadlock.
        if let Some(writer) = writer.filter(|writer| writer.thread().id() != std::thread::current().id()) {
            // A writer that panicked has already failed every stream.
            let _ = writer.join();
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.close();
    }
}

impl Shared {
    /// Objects that are not on disk yet.
    pub(crate) fn pending(&self) -> MutexGuard<'_, HashMap<Digest, Arc<[u8]>>> {
        self.pending.lock()
    }

    /// Fails every open stream and prevents opening others, when the writer ends.
    pub(crate) fn shut(&self) {
        self.queue.abandon();
        let mut streams = self.streams();
        streams.closed = true;
        let open: Vec<_> = streams.open.drain().filter_map(|(_, stream)| stream.upgrade()).collect();
        drop(streams);
        for stream in open {
            let waiting = stream.settle(None, Some(failure::closed()));
            self.queue.end_waiting(waiting.len());
            waiting.into_iter().for_each(std::task::Waker::wake);
        }
    }

    fn streams(&self) -> MutexGuard<'_, Streams> {
        self.streams.lock()
    }
}
