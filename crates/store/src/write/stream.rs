//! A stream that is open for appending: its handle, the writer's view of it, and the waiters.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use holdfast_contract::digest::Digest;
use holdfast_contract::frame::Draft;
use holdfast_contract::ids::{Seq, StreamId};
use holdfast_contract::problem::Problem;
use parking_lot::{Mutex, MutexGuard};
use serde::Serialize;

use crate::store::{Inner, Shared};
use crate::write::queue::QueueEntry;

/// The last frame of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Head {
    /// Its place.
    pub seq: Seq,
    /// Its hash.
    pub hash: Digest,
}

/// A stream that is open for appending. Clones share one stream.
#[derive(Clone)]
pub struct StreamLog {
    inner: Arc<Inner>,
    stream: Arc<Stream>,
}

impl StreamLog {
    pub(crate) fn new(inner: Arc<Inner>, stream: Arc<Stream>) -> Self {
        Self { inner, stream }
    }

    pub(crate) fn stream(&self) -> &Arc<Stream> {
        &self.stream
    }

    /// The stream.
    pub fn id(&self) -> &StreamId {
        &self.stream.id
    }

    /// The last frame that is on disk.
    pub fn head(&self) -> Option<Head> {
        self.stream.progress().durable
    }

    /// Queues frames to be written, in order, and does not wait for the disk. The first must follow the last queued one. Fails if the
    /// stream has failed or the log was closed; blocks only while the queue is full.
    pub fn append(&self, drafts: Vec<Draft>) -> Result<(), Problem> {
        self.append_steps(vec![drafts])
    }

    /// Queues the frames of several steps.
    pub fn append_steps(&self, steps: Vec<Vec<Draft>>) -> Result<(), Problem> {
        if self.stream.has_failed.load(Ordering::Relaxed) {
            return self.stream.failure();
        }
        if steps.iter().all(Vec::is_empty) {
            return Ok(());
        }
        self.inner.shared.queue.push(QueueEntry::Frames { stream: Arc::clone(&self.stream), steps })
    }

    /// Resolves when the frame is on disk, or with the reason why it never will be.
    pub fn durable(&self, seq: Seq) -> impl Future<Output = Result<(), Problem>> + Send + 'static {
        self.wait_for(seq)
    }

    /// Blocks until the frame is on disk, or returns the reason why it never will be.
    pub fn wait_durable(&self, seq: Seq) -> Result<(), Problem> {
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        let mut context = Context::from_waker(&waker);
        let mut wait = self.wait_for(seq);
        loop {
            match Pin::new(&mut wait).poll(&mut context) {
                Poll::Ready(result) => return result,
                Poll::Pending => std::thread::park(),
            }
        }
    }

    /// Queues a function that makes the machine's state as of frame `at`, in canonical JSON. The writer calls it once that frame is
    /// on disk and keeps the result as the stream's one snapshot. A snapshot is a cache: if it cannot be made or written,
    /// [`Stats`](crate::Stats) counts it and nothing else happens.
    pub fn snapshot(
        &self,
        at: Seq,
        kernel: u32,
        state: Box<dyn FnOnce() -> Result<Vec<u8>, Problem> + Send>,
    ) {
        let entry = QueueEntry::Snapshot { stream: Arc::clone(&self.stream), at, kernel, state };
        if self.inner.shared.queue.push(entry).is_err() {
            self.inner.shared.counters.snapshots_skipped.add(1);
        }
    }

    fn wait_for(&self, seq: Seq) -> Durable {
        let shared = Arc::clone(&self.inner.shared);
        Durable { stream: Arc::clone(&self.stream), shared, seq, ticket: None }
    }
}

/// State of an open stream that appenders, waiters and the writer share. Once failed it stays failed; opening the stream again makes
/// a new one.
pub(crate) struct Stream {
    pub(crate) id: StreamId,
    has_failed: AtomicBool,
    progress: Mutex<Progress>,
    tail: Mutex<Tail>,
}

/// The last durable frame of the stream, and the waiters.
pub(crate) struct Progress {
    durable: Option<Head>,
    failed: Option<Problem>,
    waiters: Vec<Waiter>,
    tickets: u64,
}

struct Waiter {
    ticket: u64,
    seq: Seq,
    waker: Waker,
}

/// The writer's own view: what is in the transaction, on disk or not.
pub(crate) struct Tail {
    /// The stream's row, once it has one.
    pub(crate) key: Option<i64>,
    pub(crate) head: Option<Head>,
    /// Whether the stream has frames in the running transaction.
    pub(crate) enlisted: bool,
    /// Why the stream accepts no more frames; published with the outcome of the running transaction.
    pub(crate) broken: Option<Problem>,
}

impl Stream {
    pub(crate) fn new(id: StreamId, key: Option<i64>, head: Option<Head>) -> Self {
        let progress = Progress { durable: head, failed: None, waiters: Vec::new(), tickets: 0 };
        let tail = Tail { key, head, enlisted: false, broken: None };
        Self {
            id,
            has_failed: AtomicBool::new(false),
            progress: Mutex::new(progress),
            tail: Mutex::new(tail),
        }
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Acquire)
    }

    /// Only the writer thread locks it, so it is never contended.
    pub(crate) fn tail(&self) -> MutexGuard<'_, Tail> {
        self.tail.lock()
    }

    /// Publishes the outcome of a transaction and returns the waiters that it releases.
    pub(crate) fn settle(&self, durable: Option<Head>, failed: Option<Problem>) -> Vec<Waker> {
        let mut progress = self.progress();
        if durable.is_some() {
            progress.durable = durable;
        }
        if progress.failed.is_none() && failed.is_some() {
            progress.failed = failed;
            self.has_failed.store(true, Ordering::Release);
        }
        let Progress { durable, failed, waiters, .. } = &mut *progress;
        let reached = durable.map(|head| head.seq);
        let done = waiters.extract_if(.., |waiter| failed.is_some() || reached >= Some(waiter.seq));
        done.map(|waiter| waiter.waker).collect()
    }

    pub(crate) fn failure(&self) -> Result<(), Problem> {
        self.progress().failed.clone().map_or(Ok(()), Err)
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock()
    }
}

impl Progress {
    fn outcome(&self, seq: Seq) -> Option<Result<(), Problem>> {
        if self.durable.is_some_and(|head| head.seq >= seq) {
            return Some(Ok(()));
        }
        self.failed.clone().map(Err)
    }
}

/// Waits for one frame. Dropping it does not cancel the frame.
struct Durable {
    stream: Arc<Stream>,
    shared: Arc<Shared>,
    seq: Seq,
    ticket: Option<u64>,
}

impl Future for Durable {
    type Output = Result<(), Problem>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let mut progress = this.stream.progress();
        if let Some(outcome) = progress.outcome(this.seq) {
            drop(progress);
            this.leave();
            return Poll::Ready(outcome);
        }
        if let Some(ticket) = this.ticket {
            let waiting = progress.waiters.iter_mut().find(|waiter| waiter.ticket == ticket);
            waiting.into_iter().for_each(|waiter| waiter.waker.clone_from(context.waker()));
            return Poll::Pending;
        }
        let ticket = progress.tickets;
        progress.tickets += 1;
        progress.waiters.push(Waiter { ticket, seq: this.seq, waker: context.waker().clone() });
        this.ticket = Some(ticket);
        // Counted while `progress` is locked, so that `settle` finds the waiter and its count together.
        this.shared.queue.begin_waiting();
        Poll::Pending
    }
}

impl Durable {
    /// Removes the waiter from the list, unless `settle` has already removed and counted it.
    fn leave(&mut self) {
        let Some(ticket) = self.ticket.take() else { return };
        let mut progress = self.stream.progress();
        let before = progress.waiters.len();
        progress.waiters.retain(|waiter| waiter.ticket != ticket);
        let left = before - progress.waiters.len();
        drop(progress);
        if left > 0 {
            self.shared.queue.end_waiting(left);
        }
    }
}

impl Drop for Durable {
    fn drop(&mut self) {
        self.leave();
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}
