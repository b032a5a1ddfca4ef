//! The writer thread: it serialises, hashes and chains queued frames, and commits them in groups.
//!
//! A transaction holds everything that was queued, or nothing of it. If it fails, exactly the streams with frames in it fail,
//! at their last durable frame; the writer goes on for all others.

use std::collections::{HashSet, VecDeque};
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Waker;
use std::time::Instant;

use holdfast_contract::content::{Content, INLINE_LIMIT};
use holdfast_contract::digest::{Digest, NotCanonical};
use holdfast_contract::frame::Draft;
use holdfast_contract::ids::Seq;
use holdfast_contract::problem::{Code, Problem};
use holdfast_contract::snapshot::SnapshotRef;
use rusqlite::{Connection, OptionalExtension, params};

use crate::store::Shared;
use crate::tables::blobs::{self, Packer};
use crate::tables::rows::{self, Bytes32, place};
use crate::tables::{deliveries, objects};
use crate::write::atomic_append::{AtomicAppend, Prepared};
use crate::write::head_file::HeadFile;
use crate::write::queue::{Object, Pace, QueueEntry, State};
use crate::write::receipt::Promise;
use crate::write::seal::Sealer;
use crate::write::stream::{Head, Stream, Tail};
use crate::{failure, system_error};

/// The number of pages in the write-ahead log at which it is checkpointed: 16 MiB.
const LONG_WAL: u64 = 4096;

/// The state of the writer thread.
pub(crate) struct WriterThread {
    pub(crate) connection: Connection,
    pub(crate) shared: Arc<Shared>,
    /// Objects that were queued since the log was opened: in use, whether a frame refers to them yet or not.
    pub(crate) fresh_objects: HashSet<Digest>,
    packer: Packer,
    sealer: Sealer,
    /// Objects of a transaction that failed. They are written in the next one, before any frame that may refer to them.
    unwritten: Vec<Object>,
    /// The length of the write-ahead log, and the length of the next checkpoint.
    wal_pages: Arc<AtomicU64>,
    checkpoint_at: u64,
    head_file: HeadFile,
}

/// The content of one transaction.
#[derive(Default)]
struct Batch {
    work: Vec<Work>,
    objects: Vec<Object>,
}

/// Entries that are written in their order.
enum Work {
    Frames(Arc<Stream>, Vec<Vec<Draft>>),
    Together(AtomicAppend),
}

/// A promise of the running transaction, with the reason if its append was rejected.
type Promised = (Promise, Option<Problem>);

/// The scope of a write failure.
pub(crate) enum WriteFailure {
    /// The stream accepts no more frames; the transaction continues.
    Stream(Problem),
    /// The transaction fails.
    Transaction(Problem),
}

/// Serves the queue until it is closed and empty.
pub(crate) fn run(mut writer: WriterThread) {
    let _shutdown = ShutdownGuard(Arc::clone(&writer.shared));
    let mut pace = Pace::default();
    let mut entries = VecDeque::new();
    while writer.shared.queue.take(pace, &mut entries) {
        pace = writer.carry_out(&mut entries);
        writer.checkpoint_if_long();
    }
    // Objects of failed transactions, which were already reported, are tried a last time.
    let _ = writer.write_objects();
    // Leaves the database file complete. If a reader prevents it, the write-ahead log stays, as after a crash.
    let _ = writer.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
}

/// Releases all waiting callers when the writer thread ends, also after a panic.
struct ShutdownGuard(Arc<Shared>);

impl Drop for ShutdownGuard {
    fn drop(&mut self) {
        self.0.shut();
    }
}

impl WriterThread {
    pub(crate) fn new(
        mut connection: Connection,
        shared: Arc<Shared>,
        head_file: HeadFile,
    ) -> Result<Self, Problem> {
        let wal_pages = Arc::new(AtomicU64::new(0));
        let grown = Arc::clone(&wal_pages);
        let hook = move |_: &mut rusqlite::hooks::Wal, pages: i32| {
            grown.store(u64::try_from(pages).unwrap_or(0), Ordering::Relaxed);
            Ok(())
        };
        connection.wal_hook(Some(hook)).map_err(|error| failure::writing(&error))?;
        Ok(Self {
            connection,
            shared,
            fresh_objects: HashSet::new(),
            packer: Packer::new()?,
            sealer: Sealer::default(),
            unwritten: Vec::new(),
            wal_pages,
            checkpoint_at: LONG_WAL,
            head_file,
        })
    }

    fn carry_out(&mut self, entries: &mut VecDeque<QueueEntry>) -> Pace {
        let mut pace = Pace::default();
        let mut batch = Batch::default();
        let mut snapshots = Vec::new();
        for entry in entries.drain(..) {
            match entry {
                QueueEntry::Frames { stream, .. } if stream.has_failed() => {}
                QueueEntry::Frames { stream, steps } => batch.work.push(Work::Frames(stream, steps)),
                QueueEntry::Together(together) => batch.work.push(Work::Together(together)),
                QueueEntry::Object(object) => batch.objects.push(object),
                QueueEntry::Snapshot { stream, at, kernel, state } => {
                    snapshots.push((stream, at, kernel, state))
                }
                QueueEntry::Task(task) => {
                    pace.add(self.commit(std::mem::take(&mut batch)));
                    self.keep_all(snapshots.drain(..));
                    task(self);
                }
            }
        }
        pace.add(self.commit(batch));
        self.keep_all(snapshots.drain(..));
        pace
    }

    /// Writes and acknowledges a batch, or fails its streams.
    fn commit(&mut self, batch: Batch) -> Pace {
        let Batch { work, objects } = batch;
        if work.is_empty() && objects.is_empty() {
            return Pace::default();
        }
        let began = Instant::now();
        self.fresh_objects.extend(objects.iter().map(|object| object.digest));
        self.unwritten.extend(objects);
        let streams = enlist(&work);
        let mut promised = Vec::new();
        let outcome = self.transaction(work, &streams, &mut promised);
        let expected = self.release(&streams, &promised, outcome);
        Pace { expected, took: began.elapsed() }
    }

    /// Publishes the outcome of a transaction, then wakes the waiters. Returns how many can be expected to wait for the next one.
    fn release(&self, streams: &[Arc<Stream>], promised: &[Promised], outcome: Result<(), Problem>) -> usize {
        let mut waiting = self.settle(streams, &outcome);
        let awaited = promised.iter().filter(|(promise, _)| promise.awaited).count();
        let released = waiting.len() + awaited;
        for (promise, refusal) in promised {
            let outcome = refusal.clone().map_or_else(|| outcome.clone(), Err);
            promise.keep(outcome, &mut waiting);
        }
        let others = self.shared.queue.end_waiting(released);
        waiting.into_iter().for_each(Waker::wake);
        released + others
    }

    fn transaction(
        &mut self,
        work: Vec<Work>,
        streams: &[Arc<Stream>],
        promised: &mut Vec<Promised>,
    ) -> Result<(), Problem> {
        let mut written = 0;
        let mut work = work.into_iter();
        let mut changed = Vec::new();
        let outcome = self.in_transaction(|writer| {
            writer.insert_objects()?;
            for work in &mut work {
                match work {
                    Work::Frames(stream, steps) => written += writer.insert_frames(&stream, steps)?,
                    Work::Together(mut together) => {
                        let inserted = writer.insert_together(&mut together, &mut changed);
                        let refusal = inserted.as_ref().ok().and_then(|parts| parts.as_ref().err().cloned());
                        promised.push((together.promise, refusal));
                        written += inserted?.unwrap_or(0);
                    }
                }
            }
            deliveries::carry_out(&writer.connection, &changed).map_err(|error| failure::writing(&error))?;
            if acknowledges_early() {
                writer.release(streams, promised, Ok(()));
            }
            Ok(())
        });
        // Entries that a failed transaction did not reach must be answered too.
        promised.extend(work.filter_map(|work| match work {
            Work::Frames(..) => None,
            Work::Together(together) => Some((together.promise, None)),
        }));
        if outcome.is_ok() {
            self.objects_are_durable();
            self.head_file.advance(written);
            self.shared.counters.frames.add(written);
        }
        outcome
    }

    /// Runs a transaction; it is synced when this returns.
    pub(crate) fn in_transaction<R>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<R, Problem>,
    ) -> Result<R, Problem> {
        let outcome = self.execute("BEGIN IMMEDIATE").and_then(|()| work(self)).and_then(|result| {
            failing_commit()?;
            fail::fail_point!("store::before_commit");
            self.execute("COMMIT")?;
            Ok(result)
        });
        match outcome {
            Ok(result) => {
                fail::fail_point!("store::after_commit_before_ack");
                self.shared.counters.commits.add(1);
                Ok(result)
            }
            Err(problem) => {
                // Which limit it was, is not in every error of SQLite's.
                let problem = match (problem.code, system_error::kind(&self.connection)) {
                    (Code::StoreWrite, ErrorKind::FileTooLarge) => failure::file_too_large(),
                    _ => problem,
                };
                self.shared.counters.failed_commits.add(1);
                if !self.connection.is_autocommit() {
                    // SQLite rolls back by itself if this fails: nothing of the transaction can be read again.
                    let _ = self.execute("ROLLBACK");
                }
                Err(problem)
            }
        }
    }

    fn execute(&self, statement: &str) -> Result<(), Problem> {
        let run = self.connection.prepare_cached(statement).and_then(|mut statement| statement.execute([]));
        run.map(|_| ()).map_err(|error| {
            // A full disk may also be detected at the sync.
            let synced = error.sqlite_error_code() == Some(rusqlite::ErrorCode::SystemIoFailure);
            match system_error::kind(&self.connection) {
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded if synced => failure::out_of_space(),
                _ => failure::writing(&error),
            }
        })
    }

    /// Publishes a transaction's outcome to its streams and returns the released waiters.
    fn settle(&self, streams: &[Arc<Stream>], outcome: &Result<(), Problem>) -> Vec<Waker> {
        let mut released = Vec::new();
        for stream in streams {
            let mut tail = stream.tail();
            tail.enlisted = false;
            released.extend(match outcome {
                Ok(()) => stream.settle(tail.head, tail.broken.clone()),
                Err(problem) => stream.settle(None, Some(problem.clone())),
            });
        }
        released
    }

    fn insert_frames(&mut self, stream: &Stream, steps: Vec<Vec<Draft>>) -> Result<u64, Problem> {
        let mut tail = stream.tail();
        let mut written = 0;
        for draft in steps.into_iter().flatten() {
            if tail.broken.is_some() || stream.has_failed() {
                break;
            }
            match self.insert_draft(stream, &mut tail, draft) {
                Ok(()) => written += 1,
                Err(WriteFailure::Stream(problem)) => tail.broken = Some(problem),
                Err(WriteFailure::Transaction(problem)) => return Err(problem),
            }
        }
        Ok(written)
    }

    fn insert_draft(&mut self, stream: &Stream, tail: &mut Tail, draft: Draft) -> Result<(), WriteFailure> {
        let next = tail.head.map_or(Seq(0), |head| head.seq.next());
        if draft.seq != next {
            return Err(WriteFailure::Stream(gap(stream, next, draft.seq)));
        }
        let frame = Prepared::try_from(draft).map_err(|error| unwritable(stream, next, &error))?;
        if !rows::fits(&frame) {
            let what = format!("frame {next} of {} has a number that cannot be stored", stream.id);
            return Err(WriteFailure::Stream(Problem::new(Code::StoreWrite, what)));
        }
        self.insert_frame(stream, tail, frame)
    }

    /// Writes a frame that follows the stream's last one.
    pub(crate) fn insert_frame(
        &mut self,
        stream: &Stream,
        tail: &mut Tail,
        frame: Prepared,
    ) -> Result<(), WriteFailure> {
        let seq = frame.seq;
        let mut references = self.insert_contents(&frame)?;
        let prev = tail.head.map_or(Digest::ZERO, |head| head.hash);
        let sealed =
            self.sealer.seal(&stream.id, prev, frame).map_err(|error| unwritable(stream, seq, &error))?;
        let body_is_blob = sealed.body.len() > INLINE_LIMIT;
        if body_is_blob {
            let digest = sealed.envelope.body_digest;
            self.insert_blob(digest, &sealed.body)?;
            references.push(digest);
        }
        let key = self.key(stream, tail).map_err(lost)?;
        rows::insert(&self.connection, key, &sealed, body_is_blob).map_err(lost)?;
        self.insert_references(key, seq, &references).map_err(lost)?;
        tail.head = Some(Head { seq, hash: sealed.hash });
        Ok(())
    }

    /// Stores the large parts of a body and returns their digests.
    fn insert_contents(&mut self, frame: &Prepared) -> Result<Vec<Digest>, WriteFailure> {
        let mut references = Vec::with_capacity(frame.body.large.len());
        for (blob, bytes) in frame.body.large.iter().filter_map(Content::as_blob) {
            self.insert_blob(blob.digest, bytes)?;
            references.push(blob.digest);
        }
        Ok(references)
    }

    fn insert_blob(&mut self, digest: Digest, bytes: &[u8]) -> Result<(), WriteFailure> {
        blobs::put(&self.connection, &mut self.packer, &self.shared.counters, digest, bytes)
            .map_err(WriteFailure::Transaction)
    }

    fn insert_references(&self, key: i64, seq: Seq, references: &[Digest]) -> rusqlite::Result<()> {
        for digest in references {
            let mut insert = self
                .connection
                .prepare_cached("INSERT OR IGNORE INTO blob_refs (stream, seq, digest) VALUES (?, ?, ?)")?;
            insert.execute(params![key, place(seq), digest.as_bytes()])?;
        }
        Ok(())
    }

    /// The stream's row, made with its first frame. A stream whose transaction fails is never used again, and so neither is a key
    /// that was rolled back.
    fn key(&self, stream: &Stream, tail: &mut Tail) -> rusqlite::Result<i64> {
        if let Some(key) = tail.key {
            return Ok(key);
        }
        let mut insert = self.connection.prepare_cached("INSERT INTO streams (name) VALUES (?)")?;
        let key = insert.insert([stream.id.as_str()])?;
        tail.key = Some(key);
        Ok(key)
    }

    /// Writes the objects that nothing has written yet.
    pub(crate) fn write_objects(&mut self) -> Result<(), Problem> {
        if self.unwritten.is_empty() {
            return Ok(());
        }
        self.in_transaction(Self::insert_objects)?;
        self.objects_are_durable();
        Ok(())
    }

    fn insert_objects(&mut self) -> Result<(), Problem> {
        for object in &self.unwritten {
            if objects::write(&self.connection, &mut self.packer, object)? {
                self.shared.counters.objects.add(1);
            }
        }
        Ok(())
    }

    fn objects_are_durable(&mut self) {
        if !self.unwritten.is_empty() {
            let mut pending = self.shared.pending();
            self.unwritten.drain(..).for_each(|object| drop(pending.remove(&object.digest)));
        }
    }

    fn keep_all(&mut self, snapshots: impl Iterator<Item = (Arc<Stream>, Seq, u32, State)>) {
        for (stream, at, kernel, state) in snapshots {
            // A snapshot is a cache: without it, resuming takes longer and nothing else.
            match self.keep(&stream, at, kernel, state) {
                Ok(true) => self.shared.counters.snapshots.add(1),
                Ok(false) | Err(_) => self.shared.counters.snapshots_skipped.add(1),
            }
        }
    }

    /// Replaces the stream's snapshot. It is written without a sync of its own: the next commit's covers it, and until then it may
    /// be lost.
    fn keep(&mut self, stream: &Stream, at: Seq, kernel: u32, state: State) -> Result<bool, Problem> {
        let write = |error| failure::writing(&error);
        let Some((key, hash)) = self.frame_hash(stream, at).map_err(write)? else { return Ok(false) };
        let Ok(state) = catch_unwind(AssertUnwindSafe(state)) else { return Ok(false) };
        let state = state?;
        let references = blobs::mentions(&state);
        for digest in &references {
            if !blobs::exists(&self.connection, *digest).map_err(write)? {
                return Ok(false);
            }
        }
        let data = self.packer.pack(&state)?;
        let digest = Digest::of(&state);
        let reference = SnapshotRef { stream: stream.id.clone(), seq: at, hash, kernel, digest };
        let Ok(seal) = Digest::of_json(&reference) else { return Ok(false) };
        self.connection.pragma_update(None, "synchronous", "NORMAL").map_err(write)?;
        let outcome = self.in_transaction(|writer| {
            let connection = &writer.connection;
            let replace = || {
                let referred = forget_snapshot(connection, key)?;
                connection
                    .prepare_cached(
                        "INSERT INTO snapshots (stream, seq, hash, kernel, digest, size, data, seal)
                         VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                    )?
                    .execute(params![
                        key,
                        place(at),
                        hash.as_bytes(),
                        kernel,
                        digest.as_bytes(),
                        state.len() as i64,
                        data,
                        seal.as_bytes(),
                    ])?;
                let mut insert =
                    connection.prepare_cached("INSERT INTO snapshot_refs (stream, digest) VALUES (?, ?)")?;
                for digest in &references {
                    insert.execute(params![key, digest.as_bytes()])?;
                }
                blobs::prune(connection, &referred)?;
                Ok(true)
            };
            replace().map_err(write)
        });
        self.connection.pragma_update(None, "synchronous", "FULL").map_err(write)?;
        outcome
    }

    /// The stream's key and the hash of its frame `at`, unless a later snapshot is there already.
    fn frame_hash(&self, stream: &Stream, at: Seq) -> rusqlite::Result<Option<(i64, Digest)>> {
        let tail = stream.tail();
        let (Some(key), false) = (tail.key, stream.has_failed()) else { return Ok(None) };
        let mut later =
            self.connection.prepare_cached("SELECT 1 FROM snapshots WHERE stream = ? AND seq > ?")?;
        if later.exists(params![key, place(at)])? {
            return Ok(None);
        }
        if let Some(head) = tail.head.filter(|head| head.seq == at) {
            return Ok(Some((key, head.hash)));
        }
        let mut select =
            self.connection.prepare_cached("SELECT hash FROM frames WHERE stream = ? AND seq = ?")?;
        let hash = select.query_row(params![key, place(at)], |row| row.get::<_, Bytes32>(0)).optional()?;
        Ok(hash.map(|hash| (key, hash.0)))
    }

    /// Checkpoints a long write-ahead log, between two commits and after the waiters were woken. It does not wait for readers: pages
    /// that they hold back are copied once as much again has been written.
    fn checkpoint_if_long(&mut self) {
        let pages = self.wal_pages.load(Ordering::Relaxed);
        if pages < self.checkpoint_at {
            return;
        }
        let copied = self.connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| {
            Ok(row.get::<_, i64>(1)? == row.get::<_, i64>(2)?)
        });
        self.checkpoint_at = if matches!(copied, Ok(true)) { LONG_WAL } else { pages + LONG_WAL };
        // A write-ahead log that was checkpointed completely is restarted by the next commit.
        self.wal_pages.store(0, Ordering::Relaxed);
        match copied {
            Ok(_) => self.shared.counters.checkpoints.add(1),
            Err(_) => self.shared.counters.failed_checkpoints.add(1),
        }
    }
}

impl Pace {
    fn add(&mut self, other: Pace) {
        self.expected += other.expected;
        self.took += other.took;
    }
}

/// The streams of a batch, each once.
fn enlist(work: &[Work]) -> Vec<Arc<Stream>> {
    let mut streams = Vec::new();
    let mut add = |stream: &Arc<Stream>| {
        if !std::mem::replace(&mut stream.tail().enlisted, true) {
            streams.push(Arc::clone(stream));
        }
    };
    for work in work {
        match work {
            Work::Frames(stream, _) => add(stream),
            Work::Together(together) => together.streams().for_each(&mut add),
        }
    }
    streams
}

/// Deletes a stream's snapshot and returns the blobs that it referred to.
pub(crate) fn forget_snapshot(connection: &Connection, key: i64) -> rusqlite::Result<Vec<Digest>> {
    let mut delete =
        connection.prepare_cached("DELETE FROM snapshot_refs WHERE stream = ? RETURNING digest")?;
    let referred = delete.query_map([key], |row| row.get::<_, Bytes32>(0).map(|digest| digest.0))?;
    let referred = referred.collect::<rusqlite::Result<_>>()?;
    connection.prepare_cached("DELETE FROM snapshots WHERE stream = ?")?.execute([key])?;
    Ok(referred)
}

impl WriteFailure {
    pub(crate) fn into_problem(self) -> Problem {
        match self {
            Self::Stream(problem) | Self::Transaction(problem) => problem,
        }
    }
}

fn unwritable(stream: &Stream, seq: Seq, error: &NotCanonical) -> WriteFailure {
    WriteFailure::Stream(Problem::new(Code::StoreWrite, format!("frame {seq} of {}: {error}", stream.id)))
}

pub(crate) fn gap(stream: &Stream, expected: Seq, found: Seq) -> Problem {
    let what = format!("frame {found} was appended where {} expects {expected}", stream.id);
    Problem::new(Code::StoreGap, what)
}

fn lost(error: rusqlite::Error) -> WriteFailure {
    WriteFailure::Transaction(failure::writing(&error))
}

/// A planted bug that crash tests must catch: acknowledging what is not on disk.
fn acknowledges_early() -> bool {
    fail::fail_point!("store::ack_early", |_| true);
    false
}

/// Simulates a failed commit: `return(full)` for a full disk, or `return` for any other error.
fn failing_commit() -> Result<(), Problem> {
    fail::fail_point!("store::commit_error", |how| Err(match how.as_deref() {
        Some("full") => failure::out_of_space(),
        _ => Problem::new(Code::StoreWrite, "the log could not be written: a planted failure"),
    }));
    Ok(())
}
