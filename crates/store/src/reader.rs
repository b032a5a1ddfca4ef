//! Reading the log: a small pool of read-only connections that neither wait for the writer nor block it.

use std::ops::{Bound, ControlFlow, Range, RangeBounds};

use holdfast_contract::body::{Body, FrameKind};
use holdfast_contract::content::load_references;
use holdfast_contract::digest::Digest;
use holdfast_contract::frame::Frame;
use holdfast_contract::ids::{Millis, Seq, StreamId};
use holdfast_contract::problem::{Code, Problem};
use holdfast_contract::snapshot::SnapshotRef;
use parking_lot::{Condvar, Mutex, MutexGuard};
use rusqlite::{Connection, OptionalExtension, params};
use serde::Serialize;
use serde_json::Value;

use crate::failure;
use crate::store::Store;
use crate::tables::blobs;
use crate::tables::rows::{self, Bytes32, COLUMNS, Stored, StoredBody, Unsigned};
use crate::tables::schema::LogLocation;
use crate::write::stream::Head;

/// Rows that are read into memory per query.
const CHUNK: usize = 256;
/// A sequence number that no frame has.
const END: Seq = Seq(i64::MAX as u64);

/// A summary of a stream.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StreamInfo {
    /// The stream.
    pub id: StreamId,
    /// The first frame that is kept.
    pub first: Option<Seq>,
    /// The last frame, kept or collected.
    pub head: Option<Head>,
    /// How many frames are kept.
    pub frames: u64,
    /// When the first kept frame was recorded.
    pub first_at: Option<Millis>,
    /// When the last kept frame was recorded.
    pub last_at: Option<Millis>,
    /// How many of the kept frames were erased.
    pub erased: u64,
}

impl Store {
    /// The last frame of a stream that is on disk.
    pub fn head(&self, stream: &StreamId) -> Result<Option<Head>, Problem> {
        let found = self.inner.readers.with(|connection| find_stream(connection, stream))?;
        Ok(found.and_then(|found| found.head))
    }

    /// Every stream, by name.
    pub fn streams(&self) -> Result<Vec<StreamInfo>, Problem> {
        self.inner.readers.with(|connection| {
            let list = || -> rusqlite::Result<Vec<StreamInfo>> {
                let mut select = connection.prepare_cached("SELECT name FROM streams ORDER BY name")?;
                let names = select.query_map([], |row| row.get::<_, String>(0))?;
                names.map(|name| info(connection, StreamId::from(name?))).collect()
            };
            list().map_err(|error| failure::reading(&error))
        })
    }

    /// The last frame of a kind in a stream.
    pub fn last_of_kind(&self, stream: &StreamId, kind: FrameKind) -> Result<Option<Frame>, Problem> {
        self.last_of_kind_before(stream, kind, END)
    }

    /// The last frame of this kind in a stream before this place.
    pub fn last_of_kind_before(
        &self,
        stream: &StreamId,
        kind: FrameKind,
        before: Seq,
    ) -> Result<Option<Frame>, Problem> {
        let before = i64::try_from(before.0).unwrap_or(i64::MAX);
        let seq = self.inner.readers.with(|connection| {
            let find = || {
                let query = "SELECT seq FROM frames WHERE kind = ?2 AND seq < ?3 AND stream = \
                             (SELECT id FROM streams WHERE name = ?1) ORDER BY seq DESC LIMIT 1";
                let mut select = connection.prepare_cached(query)?;
                let row = params![stream.as_str(), kind.as_str(), before];
                select.query_row(row, |row| row.get::<_, Unsigned>(0)).optional()
            };
            find().map_err(|error| failure::reading(&error))
        })?;
        let Some(seq) = seq.map(|seq| Seq(seq.0)) else { return Ok(None) };
        Ok(self.frames(stream, seq..=seq)?.pop())
    }

    /// The frames of a stream within a range. Content that is kept as a blob is left as a reference; see [`Store::body`].
    pub fn frames(&self, stream: &StreamId, range: impl RangeBounds<Seq>) -> Result<Vec<Frame>, Problem> {
        let from = match range.start_bound() {
            Bound::Included(seq) => *seq,
            Bound::Excluded(seq) => seq.next(),
            Bound::Unbounded => Seq(0),
        };
        let end = match range.end_bound() {
            Bound::Included(seq) => seq.next(),
            Bound::Excluded(seq) => *seq,
            Bound::Unbounded => END,
        };
        let mut frames = Vec::new();
        self.walk(stream, from, end, |frame| {
            frames.push(frame);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(frames)
    }

    /// Visits the frames of a stream in order, a few hundred in memory at a time, until the visitor breaks. No connection is held
    /// while it runs.
    pub fn for_each_frame(
        &self,
        stream: &StreamId,
        from: Seq,
        visit: impl FnMut(Frame) -> Result<ControlFlow<()>, Problem>,
    ) -> Result<(), Problem> {
        self.walk(stream, from, END, visit)
    }

    fn walk(
        &self,
        stream: &StreamId,
        from: Seq,
        end: Seq,
        mut visit: impl FnMut(Frame) -> Result<ControlFlow<()>, Problem>,
    ) -> Result<(), Problem> {
        let Some(found) = self.inner.readers.with(|connection| find_stream(connection, stream))? else {
            return Ok(());
        };
        let mut next = from.max(found.first());
        loop {
            let chunk =
                self.inner.readers.with(|connection| read_chunk(connection, &found, stream, next..end))?;
            self.inner.shared.counters.rows_read.add(chunk.len() as u64);
            let Some(last) = chunk.last() else { return Ok(()) };
            next = last.envelope.seq.next();
            let complete = chunk.len() < CHUNK;
            for frame in chunk {
                if visit(frame)?.is_break() {
                    return Ok(());
                }
            }
            if complete {
                return Ok(());
            }
        }
    }

    /// A frame's typed body, with all content that is stored as blobs loaded.
    pub fn body(&self, frame: &Frame) -> Result<Body, Problem> {
        let name = || format!("frame {} of {}", frame.envelope.seq, frame.envelope.stream);
        let Some(json) = &frame.body else {
            let why = frame.erased.as_ref().map_or("it has no body", |tombstone| &tombstone.reason);
            return Err(Problem::new(Code::StoreErased, format!("{} was erased: {why}", name())));
        };
        let mut json = json.clone();
        self.load(&mut json, &name)?;
        Body::read(frame.envelope.kind, json)
            .map_err(|error| failure::damaged(format_args!("{}: {error}", name())))
    }

    /// The frame with the content of its body loaded: every `{"blob": …}` is a `{"json": …}`, for readers who have no store. The
    /// digests in it are of the stored form. An erased frame stays as it is.
    pub fn whole(&self, mut frame: Frame) -> Result<Frame, Problem> {
        if let Some(mut json) = frame.body.take() {
            let envelope = &frame.envelope;
            self.load(&mut json, &|| format!("frame {} of {}", envelope.seq, envelope.stream))?;
            frame.body = Some(json);
        }
        Ok(frame)
    }

    /// Replaces the references to blobs in stored JSON by what they refer to.
    pub fn load(&self, json: &mut Value, owner: &dyn Fn() -> String) -> Result<(), Problem> {
        load_references(json, &mut |blob| {
            let digest = blob.digest;
            let Some(bytes) = self.blob(digest)? else {
                let what = format!("blob {digest}, which {} refers to, is gone", owner());
                return Err(Problem::new(Code::StoreMissing, what));
            };
            rows::json(&bytes).map_err(|error| failure::damaged(format_args!("blob {digest}: {error}")))
        })
    }

    /// A value that a frame of this stream refers to; none where no frame of it does, or it was erased.
    pub fn content(&self, stream: &StreamId, digest: Digest) -> Result<Option<Value>, Problem> {
        let referred = self.inner.readers.with(|connection| {
            let query = "SELECT 1 FROM blob_refs WHERE digest = ?2 AND stream = (SELECT id FROM streams WHERE name = ?1)";
            let found = connection
                .prepare_cached(query)
                .and_then(|mut select| select.exists(params![stream.as_str(), digest.as_bytes()]));
            found.map_err(|error| failure::reading(&error))
        })?;
        let bytes = if referred { self.blob(digest)? } else { None };
        let read = |bytes: Vec<u8>| {
            rows::json(&bytes).map_err(|error| failure::damaged(format_args!("blob {digest}: {error}")))
        };
        bytes.map(read).transpose()
    }

    /// A blob's bytes.
    pub fn blob(&self, digest: Digest) -> Result<Option<Vec<u8>>, Problem> {
        self.inner.readers.with(|connection| read_blob(connection, digest))
    }

    /// How many sessions the log has.
    pub fn count_sessions(&self) -> Result<u64, Problem> {
        self.inner.readers.with(|connection| {
            let count = || -> rusqlite::Result<u64> {
                let mut select = connection.prepare_cached("SELECT name FROM streams")?;
                let mut rows = select.query([])?;
                let mut sessions = 0;
                while let Some(row) = rows.next()? {
                    sessions += u64::from(StreamId::from(row.get::<_, String>(0)?).is_session());
                }
                Ok(sessions)
            };
            count().map_err(|error| failure::reading(&error))
        })
    }

    /// The stream's newest snapshot with its state. One that does not match its frame or its own digest counts as none.
    pub fn latest_snapshot(&self, stream: &StreamId) -> Result<Option<(SnapshotRef, Vec<u8>)>, Problem> {
        let found = self.inner.readers.with(|connection| {
            let Some(found) = find_stream(connection, stream)? else { return Ok(None) };
            let snapshot =
                read_snapshot(connection, found.key, stream).map_err(|error| failure::reading(&error))?;
            let Some(snapshot) = snapshot else { return Ok(None) };
            let hash = hash_at(connection, &found, snapshot.reference.seq)
                .map_err(|error| failure::reading(&error))?;
            Ok(Some((hash == Some(snapshot.reference.hash), snapshot)))
        })?;
        let Some((true, Snapshot { reference, state: Ok(state) })) = found else {
            self.inner.shared.counters.snapshots_skipped.add(u64::from(found.is_some()));
            return Ok(None);
        };
        Ok(Some((reference, state)))
    }
}

/// A stream's row, and where it ends.
pub(crate) struct FoundStream {
    pub(crate) key: i64,
    /// The last frame that was collected.
    pub(crate) base: Option<Head>,
    pub(crate) head: Option<Head>,
}

impl FoundStream {
    /// The first sequence number that may still have a frame.
    pub(crate) fn first(&self) -> Seq {
        self.base.map_or(Seq(0), |base| base.seq.next())
    }
}

pub(crate) fn find_stream(connection: &Connection, id: &StreamId) -> Result<Option<FoundStream>, Problem> {
    find(connection, id).map_err(|error| failure::reading(&error))
}

fn find(connection: &Connection, id: &StreamId) -> rusqlite::Result<Option<FoundStream>> {
    let mut select =
        connection.prepare_cached("SELECT id, base_seq, base_hash FROM streams WHERE name = ?")?;
    let row = select
        .query_row([id.as_str()], |row| {
            let base = (row.get::<_, Option<Unsigned>>(1)?, row.get::<_, Option<Bytes32>>(2)?);
            Ok((row.get::<_, i64>(0)?, base))
        })
        .optional()?;
    let Some((key, base)) = row else { return Ok(None) };
    let base = match base {
        (Some(seq), Some(hash)) => Some(Head { seq: Seq(seq.0), hash: hash.0 }),
        _ => None,
    };
    let mut select = connection
        .prepare_cached("SELECT seq, hash FROM frames WHERE stream = ? ORDER BY seq DESC LIMIT 1")?;
    let last = select
        .query_row([key], |row| {
            Ok(Head { seq: Seq(row.get::<_, Unsigned>(0)?.0), hash: row.get::<_, Bytes32>(1)?.0 })
        })
        .optional()?;
    // Frames up to the base may not be deleted yet.
    let head = last.into_iter().chain(base).max_by_key(|head| head.seq);
    Ok(Some(FoundStream { key, base, head }))
}

fn info(connection: &Connection, id: StreamId) -> rusqlite::Result<StreamInfo> {
    let found = find(connection, &id)?;
    let mut info =
        StreamInfo { id, first: None, head: None, frames: 0, first_at: None, last_at: None, erased: 0 };
    let Some(found) = found else { return Ok(info) };
    let edge = |order: &str| {
        let select =
            format!("SELECT seq, at FROM frames WHERE stream = ? AND seq >= ? ORDER BY seq {order} LIMIT 1");
        let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, Unsigned>(0)?.0, row.get::<_, Unsigned>(1)?.0));
        let from = rows::place(found.first());
        connection.prepare_cached(&select)?.query_row(params![found.key, from], read).optional()
    };
    info.head = found.head;
    if let (Some((first, first_at)), Some((last, last_at))) = (edge("ASC")?, edge("DESC")?) {
        info.first = Some(Seq(first));
        info.frames = last - first + 1;
        info.first_at = Some(Millis(first_at));
        info.last_at = Some(Millis(last_at));
    }
    let mut count = connection
        .prepare_cached("SELECT count(*) FROM frames WHERE stream = ? AND erased_at IS NOT NULL")?;
    info.erased = count.query_row([found.key], |row| row.get::<_, Unsigned>(0))?.0;
    Ok(info)
}

fn read_chunk(
    connection: &Connection,
    found: &FoundStream,
    stream: &StreamId,
    range: Range<Seq>,
) -> Result<Vec<Frame>, Problem> {
    let read = |error| failure::reading(&error);
    let select = format!(
        "SELECT {COLUMNS} FROM frames WHERE stream = ? AND seq >= ? AND seq < ? ORDER BY seq LIMIT {CHUNK}"
    );
    let mut select = connection.prepare_cached(&select).map_err(read)?;
    let (from, end) = (rows::place(range.start), rows::place(range.end));
    let mut rows = select.query(params![found.key, from, end]).map_err(read)?;
    let mut frames = Vec::new();
    while let Some(row) = rows.next().map_err(read)? {
        let stored = Stored::read(stream, row).map_err(|why| {
            let seq = row.get::<_, i64>(0).unwrap_or(-1);
            failure::damaged(format_args!("frame {seq} of {stream}: {why}"))
        })?;
        let body = read_body(connection, &stored)?;
        frames.push(stored.into_frame(body));
    }
    Ok(frames)
}

/// A frame's body as JSON, wherever it is kept; nothing if it was erased.
pub(crate) fn read_body(connection: &Connection, stored: &Stored) -> Result<Option<Value>, Problem> {
    let name = || format!("frame {} of {}", stored.envelope.seq, stored.envelope.stream);
    let parsed = match &stored.body {
        StoredBody::Erased(_) => return Ok(None),
        StoredBody::Inline(bytes) => rows::json(bytes),
        StoredBody::Blob => match read_blob(connection, stored.envelope.body_digest)? {
            Some(bytes) => rows::json(&bytes),
            None => return Err(Problem::new(Code::StoreMissing, format!("the body of {} is gone", name()))),
        },
    };
    parsed.map(Some).map_err(|why| failure::damaged(format_args!("the body of {}: {why}", name())))
}

fn read_blob(connection: &Connection, digest: Digest) -> Result<Option<Vec<u8>>, Problem> {
    let found = blobs::read(connection, digest).map_err(|error| failure::reading(&error))?;
    found.transpose().map_err(|why| failure::damaged(format_args!("blob {digest}: {why}")))
}

/// A snapshot as it was found; the state is an error if it is not what was written.
pub(crate) struct Snapshot {
    pub(crate) reference: SnapshotRef,
    pub(crate) state: Result<Vec<u8>, String>,
}

pub(crate) fn read_snapshot(
    connection: &Connection,
    key: i64,
    stream: &StreamId,
) -> rusqlite::Result<Option<Snapshot>> {
    let mut select = connection.prepare_cached(
        "SELECT seq, hash, kernel, digest, size, data, seal FROM snapshots WHERE stream = ?",
    )?;
    let read = |row: &rusqlite::Row<'_>| {
        let reference = SnapshotRef {
            stream: stream.clone(),
            seq: Seq(row.get::<_, Unsigned>(0)?.0),
            hash: row.get::<_, Bytes32>(1)?.0,
            kernel: row.get(2)?,
            digest: row.get::<_, Bytes32>(3)?.0,
        };
        let seal = row.get::<_, Bytes32>(6)?.0;
        let state = match row.get_ref(5)?.as_blob() {
            _ if Digest::of_json(&reference).ok() != Some(seal) => Err("its columns were changed".to_owned()),
            Ok(data) => blobs::unpack(reference.digest, row.get(4)?, data),
            Err(error) => Err(error.to_string()),
        };
        Ok(Snapshot { reference, state })
    };
    select.query_row([key], read).optional()
}

/// The hash of a frame, kept or the last one collected.
pub(crate) fn hash_at(
    connection: &Connection,
    found: &FoundStream,
    seq: Seq,
) -> rusqlite::Result<Option<Digest>> {
    if let Some(base) = found.base.filter(|base| base.seq == seq) {
        return Ok(Some(base.hash));
    }
    let mut select = connection.prepare_cached("SELECT hash FROM frames WHERE stream = ? AND seq = ?")?;
    let hash = select.query_row(params![found.key, rows::place(seq)], |row| row.get::<_, Bytes32>(0));
    Ok(hash.optional()?.map(|hash| hash.0))
}

/// Read-only connections, opened when they are first needed.
pub(crate) struct Readers {
    place: LogLocation,
    limit: usize,
    pool: Mutex<Pool>,
    returned: Condvar,
}

#[derive(Default)]
struct Pool {
    idle: Vec<Connection>,
    in_use: usize,
}

impl Readers {
    pub(crate) fn new(place: LogLocation, limit: usize) -> Self {
        Self { place, limit: limit.max(1), pool: Mutex::default(), returned: Condvar::new() }
    }

    /// Runs with a connection of the pool; waits if all are in use.
    pub(crate) fn with<R>(&self, read: impl FnOnce(&Connection) -> Result<R, Problem>) -> Result<R, Problem> {
        let mut loan = Loan { readers: self, connection: self.borrow() };
        let connection = match loan.connection.take() {
            Some(connection) => connection,
            None => self.place.reader().map_err(|error| failure::opening(&self.place.path, &error))?,
        };
        read(loan.connection.insert(connection))
    }

    /// Closes idle connections. Only a connection that can write removes the write-ahead log when it closes, so the writer's must
    /// be the last to go.
    pub(crate) fn rest(&self) {
        self.lock().idle.clear();
    }

    fn borrow(&self) -> Option<Connection> {
        let mut pool = self.lock();
        while pool.in_use >= self.limit {
            self.returned.wait(&mut pool);
        }
        pool.in_use += 1;
        pool.idle.pop()
    }

    fn lock(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock()
    }
}

/// Returns the connection to the pool on drop, also after a panic.
struct Loan<'a> {
    readers: &'a Readers,
    connection: Option<Connection>,
}

impl Drop for Loan<'_> {
    fn drop(&mut self) {
        let mut pool = self.readers.lock();
        pool.in_use -= 1;
        pool.idle.extend(self.connection.take());
        drop(pool);
        self.readers.returned.notify_one();
    }
}
