//! The queue between the deciding threads and the writer thread: one short lock, and a wake-up only when a caller waits.
//!
//! While the writer works or lingers, pushing costs no system call. Group commit is here too: after a commit the writer lingers
//! until as many callers wait as it has just released, so that they share one sync.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use holdfast_contract::digest::Digest;
use holdfast_contract::frame::Draft;
use holdfast_contract::ids::Seq;
use holdfast_contract::problem::Problem;
use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::failure;
use crate::tables::objects::ObjectKind;
use crate::write::atomic_append::AtomicAppend;
use crate::write::stream::Stream;
use crate::write::writer::WriterThread;

/// The number of queued frames at which the writer starts although no caller waits.
const WAKE_THRESHOLD: usize = 1024;
/// The maximal number of frames in a transaction.
const MAX_BATCH_FRAMES: usize = 8192;
/// After so many idle timeouts the writer parks until it is woken.
const IDLE_TICKS: u32 = 32;
/// The shortest time that the writer waits for a group.
const MIN_LINGER: Duration = Duration::from_micros(250);

/// How a snapshot's state is made, on the writer's thread.
pub(crate) type State = Box<dyn FnOnce() -> Result<Vec<u8>, Problem> + Send>;

/// An entry of the queue. Entries are processed in order.
pub(crate) enum QueueEntry {
    /// A stream's frames, step by step.
    Frames {
        stream: Arc<Stream>,
        steps: Vec<Vec<Draft>>,
    },
    Together(AtomicAppend),
    Object(Object),
    Snapshot {
        stream: Arc<Stream>,
        at: Seq,
        kernel: u32,
        state: State,
    },
    Task(Box<dyn FnOnce(&mut WriterThread) + Send>),
}

/// A queued content-addressed object.
pub(crate) struct Object {
    pub(crate) digest: Digest,
    pub(crate) kind: ObjectKind,
    pub(crate) bytes: Arc<[u8]>,
}

impl QueueEntry {
    fn frames(&self) -> usize {
        match self {
            Self::Frames { steps, .. } => steps.iter().map(Vec::len).sum(),
            Self::Together(together) => together.frames(),
            Self::Object(_) | Self::Snapshot { .. } | Self::Task(_) => 1,
        }
    }
}

pub(crate) struct WriteQueue {
    inside: Mutex<Inside>,
    work: Condvar,
    room: Condvar,
    limit: usize,
    linger: Duration,
}

struct Inside {
    entries: VecDeque<QueueEntry>,
    /// How many frames the entries hold.
    frames: usize,
    /// How many callers wait for a frame to become durable.
    waiting: usize,
    /// Whether a task is queued, whose caller waits for it.
    task: bool,
    writer: Writer,
    closed: bool,
}

/// The state of the writer, which decides whether it must be woken.
enum Writer {
    /// It will check the queue by itself.
    Working,
    /// It checks the queue after its timeout, or when so many callers wait.
    Lingering { want: usize },
    /// It checks the queue when it is woken.
    Parked,
}

/// Figures of the last commit, from which the time of the next one is chosen.
#[derive(Clone, Copy, Default)]
pub(crate) struct Pace {
    /// How many callers can be expected to wait for the next one: those it released, and those who were already waiting then.
    pub(crate) expected: usize,
    /// How long it took.
    pub(crate) took: Duration,
}

impl WriteQueue {
    pub(crate) fn new(limit: usize, linger: Duration) -> Self {
        let inside = Inside {
            entries: VecDeque::new(),
            frames: 0,
            waiting: 0,
            task: false,
            writer: Writer::Working,
            closed: false,
        };
        let limit = limit.max(1);
        Self { inside: Mutex::new(inside), work: Condvar::new(), room: Condvar::new(), limit, linger }
    }

    /// Adds an entry. Blocks only while the queue is full.
    pub(crate) fn push(&self, entry: QueueEntry) -> Result<(), Problem> {
        let mut inside = self.lock();
        while inside.frames >= self.limit && !inside.closed {
            self.room.wait(&mut inside);
        }
        if inside.closed {
            return Err(failure::closed());
        }
        inside.frames += entry.frames();
        inside.task |= matches!(entry, QueueEntry::Task(_));
        inside.waiting += usize::from(matches!(&entry, QueueEntry::Together(parts) if parts.promise.awaited));
        inside.entries.push_back(entry);
        self.wake_writer(inside);
        Ok(())
    }

    /// A caller begins to wait.
    pub(crate) fn begin_waiting(&self) {
        let mut inside = self.lock();
        inside.waiting += 1;
        self.wake_writer(inside);
    }

    /// So many callers no longer wait. Returns how many still do.
    pub(crate) fn end_waiting(&self, count: usize) -> usize {
        let mut inside = self.lock();
        inside.waiting = inside.waiting.saturating_sub(count);
        inside.waiting
    }

    /// Accepts no more entries; those in the queue are still written.
    pub(crate) fn close(&self) {
        let mut inside = self.lock();
        inside.closed = true;
        drop(inside);
        self.work.notify_all();
        self.room.notify_all();
    }

    /// Accepts no more entries and drops those in the queue, so that no caller waits for them.
    pub(crate) fn abandon(&self) {
        self.close();
        let abandoned = std::mem::take(&mut self.lock().entries);
        drop(abandoned);
    }

    /// Takes the next batch into `batch`, which must be empty and whose capacity is reused; false once the queue is closed and empty.
    pub(crate) fn take(&self, pace: Pace, batch: &mut VecDeque<QueueEntry>) -> bool {
        let mut inside = self.gather(self.lock(), pace);
        let mut idle_ticks = 0;
        let mut lingered = false;
        loop {
            inside.writer = Writer::Working;
            if inside.entries.is_empty() {
                if inside.closed {
                    return false;
                }
            } else if lingered || inside.closed || self.is_due(&inside, 1) {
                break;
            }
            if inside.entries.is_empty() && idle_ticks >= IDLE_TICKS {
                inside.writer = Writer::Parked;
                self.work.wait(&mut inside);
                idle_ticks = 0;
                continue;
            }
            inside.writer = Writer::Lingering { want: 1 };
            let timeout = self.work.wait_for(&mut inside, self.linger);
            lingered = timeout.timed_out() && !inside.entries.is_empty();
            idle_ticks += u32::from(timeout.timed_out());
        }
        inside.fill(batch);
        drop(inside);
        self.room.notify_all();
        true
    }

    /// Group commit: waits until as many callers wait as after the last commit, but not longer than that commit took. Callers that
    /// already wait again are counted among those expected.
    fn gather<'a>(&'a self, mut inside: MutexGuard<'a, Inside>, pace: Pace) -> MutexGuard<'a, Inside> {
        let want = pace.expected;
        if want < 2 {
            return inside;
        }
        let deadline = Instant::now() + pace.took.clamp(MIN_LINGER.min(self.linger), self.linger);
        while !inside.closed && !self.is_due(&inside, want) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            inside.writer = Writer::Lingering { want };
            self.work.wait_for(&mut inside, left);
        }
        inside
    }

    fn is_due(&self, inside: &Inside, want: usize) -> bool {
        !inside.entries.is_empty()
            && (inside.waiting >= want || inside.task || inside.frames >= WAKE_THRESHOLD.min(self.limit))
    }

    fn wake_writer(&self, mut inside: MutexGuard<'_, Inside>) {
        let wake = match inside.writer {
            Writer::Working => false,
            Writer::Lingering { want } => self.is_due(&inside, want),
            Writer::Parked => !inside.entries.is_empty(),
        };
        if wake {
            inside.writer = Writer::Working;
            drop(inside);
            self.work.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock()
    }
}

impl Inside {
    fn fill(&mut self, batch: &mut VecDeque<QueueEntry>) {
        if self.frames <= MAX_BATCH_FRAMES {
            std::mem::swap(&mut self.entries, batch);
            self.frames = 0;
            self.task = false;
            return;
        }
        let mut taken = 0;
        while taken < MAX_BATCH_FRAMES
            && let Some(entry) = self.entries.pop_front()
        {
            taken += entry.frames();
            batch.push_back(entry);
        }
        self.frames -= taken;
        self.task = self.entries.iter().any(|entry| matches!(entry, QueueEntry::Task(_)));
    }
}
