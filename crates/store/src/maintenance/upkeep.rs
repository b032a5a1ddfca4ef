//! Erasing bodies, deleting old frames, and backups.
//!
//! Both erasing and collecting come after their record: the system stream must already hold the `log.erased` or
//! `log.checkpointed` frame, so a crash in between leaves a log that still verifies.

use std::path::Path;
use std::time::Duration;

use holdfast_contract::body::FrameKind;
use holdfast_contract::digest::Digest;
use holdfast_contract::frame::Tombstone;
use holdfast_contract::ids::{Millis, Seq, StreamId};
use holdfast_contract::problem::{Code, Problem};
use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags, OptionalExtension, params};
use serde::{Deserialize, Serialize};

use crate::failure;
use crate::maintenance::evidence::{Evidence, PROVES, still_needed};
use crate::reader::{self, FoundStream, find_stream};
use crate::store::Store;
use crate::tables::blobs;
use crate::tables::deliveries::first_owed;
use crate::tables::rows::{Bytes32, Unsigned, bounded, place};
use crate::tables::schema::LogLocation;
use crate::write::stream::Head;
use crate::write::writer::{WriterThread, forget_snapshot};

/// Frames that are collected in one transaction, so that a long collection does not keep sessions from writing.
const FRAMES_PER_TRANSACTION: u64 = 4096;
/// How often, and after which pause, a locked file is retried.
const LOCKED_RETRIES: u32 = 50;
const LOCKED_RETRY_PAUSE: Duration = Duration::from_millis(100);

/// How long a stream's frames are kept. A frame is deleted when it exceeds either limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Retention {
    /// Frames older than this are deleted.
    pub max_age: Option<Millis>,
    /// Only so many are kept.
    pub max_frames: Option<u64>,
}

/// What [`Store::collect`] removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Collected {
    /// Frames.
    pub frames: u64,
    /// Blobs that no frame or snapshot refers to any more.
    pub blobs: u64,
}

impl Retention {
    /// The last frame to go: `frames` are a stream's kept frames in order, `head` its last one.
    pub fn last_to_go(
        self,
        frames: impl IntoIterator<Item = (Seq, Millis)>,
        head: Seq,
        now: Millis,
    ) -> Option<Seq> {
        let too_many = |seq: Seq| self.max_frames.is_some_and(|most| seq.0.saturating_add(most) <= head.0);
        let too_old = |at: Millis| self.max_age.is_some_and(|most| now.since(at) > most);
        let going = frames.into_iter().take_while(|(seq, at)| too_many(*seq) || too_old(*at));
        going.last().map(|(seq, _)| seq)
    }
}

impl Store {
    /// The last frame that should be collected under this retention, with its hash as `log.checkpointed` must record it. A
    /// session that is to be resumed also needs a snapshot at that frame or later. A frame with a delivery row stays, and
    /// so do all after it.
    pub fn collectable(
        &self,
        stream: &StreamId,
        retention: Retention,
        now: Millis,
    ) -> Result<Option<Head>, Problem> {
        self.inner.readers.with(|connection| {
            let Some(found) = find_stream(connection, stream)? else { return Ok(None) };
            last_to_go(connection, &found, retention, now).map_err(|error| failure::reading(&error))
        })
    }

    /// Erases the bodies of frames `from ..= to`, the blobs that only they refer to, and the stream's snapshot. The chain stays
    /// whole. A `log.erased` frame that covers them with the same reason must be durable in the system stream; the tombstones get
    /// its time, so that they can be checked against it. Returns how many bodies were erased; they are then removed from
    /// the file too. Frames of the system stream that prove something keep their bodies.
    pub fn erase(&self, stream: &StreamId, from: Seq, to: Seq, tombstone: Tombstone) -> Result<u64, Problem> {
        let stream = stream.clone();
        self.on_writer(move |writer| {
            let evidence = Evidence::read(&writer.connection, &[FrameKind::LogErased], Seq(0))?;
            let proof = evidence.streams.get(&stream);
            let Some(tombstone) = proof.and_then(|proof| proof.tombstone(from, to, &tombstone.reason)) else {
                let what = format!(
                    "no `log.erased` frame records that {from} to {to} of {stream} go for this reason"
                );
                return Err(
                    Problem::new(Code::StoreMissing, what).help("Record the erasure first, then erase.")
                );
            };
            let found = existing(&writer.connection, &stream)?;
            let erased = writer.in_transaction(|writer| {
                erase(&writer.connection, found.key, from, to, tombstone, stream.is_system())
                    .map_err(|error| failure::writing(&error))
            })?;
            scrub(writer)?;
            Ok(erased)
        })
    }

    /// Removes the frames up to `up_to`, the blobs that only they refer to, and a snapshot that is older. The frame
    /// `log.checkpointed` with the same place and hash must be durable in the system stream. Of the system stream, only frames
    /// that prove nothing any more can go; [`Store::evidence_to_renew`] says what has to be recorded again first. A frame with a
    /// delivery row does not go.
    pub fn collect(&self, stream: &StreamId, up_to: Seq) -> Result<Collected, Problem> {
        let id = stream.clone();
        self.on_writer(move |writer| {
            let found = existing(&writer.connection, &id)?;
            if found.base.is_some_and(|base| up_to <= base.seq) {
                return Ok(());
            }
            let hash = reader::hash_at(&writer.connection, &found, up_to)
                .map_err(|error| failure::reading(&error))?;
            let hash =
                hash.ok_or_else(|| Problem::new(Code::StoreMissing, format!("{id} has no frame {up_to}")))?;
            permit(&writer.connection, &id, Head { seq: up_to, hash })?;
            refuse_owed(&writer.connection, &id, &found, up_to)?;
            writer.in_transaction(|writer| {
                let update = "UPDATE streams SET base_seq = ?, base_hash = ? WHERE id = ?";
                let moved =
                    writer.connection.execute(update, params![place(up_to), hash.as_bytes(), found.key]);
                moved.map(|_| ()).map_err(|error| failure::writing(&error))
            })
        })?;
        // From here on the frames are not visible. They are deleted in batches; after a crash the next call deletes the rest.
        let mut collected = Collected::default();
        loop {
            let id = stream.clone();
            let slice = self.on_writer(move |writer| {
                let found = existing(&writer.connection, &id)?;
                writer.in_transaction(|writer| {
                    delete_slice(&writer.connection, &found).map_err(|error| failure::writing(&error))
                })
            })?;
            collected.frames += slice.frames;
            collected.blobs += slice.blobs;
            if slice.frames < FRAMES_PER_TRANSACTION {
                return Ok(collected);
            }
        }
    }

    /// Writes a copy of the log, as of now, to another file. Writing goes on meanwhile.
    pub fn backup(&self, to: &Path) -> Result<(), Problem> {
        self.flush()?;
        self.inner.readers.with(|connection| copy(&self.inner.place, connection, to))
    }
}

fn existing(connection: &Connection, stream: &StreamId) -> Result<FoundStream, Problem> {
    let found = find_stream(connection, stream)?;
    found.ok_or_else(|| Problem::new(Code::StoreMissing, format!("there is no stream {stream}")))
}

fn last_to_go(
    connection: &Connection,
    found: &FoundStream,
    retention: Retention,
    now: Millis,
) -> rusqlite::Result<Option<Head>> {
    let Some(head) = found.head else { return Ok(None) };
    let mut select =
        connection.prepare_cached("SELECT seq, at FROM frames WHERE stream = ? AND seq >= ? ORDER BY seq")?;
    let rows = select.query_map(params![found.key, place(found.first())], |row| {
        Ok((Seq(row.get::<_, Unsigned>(0)?.0), Millis(row.get::<_, Unsigned>(1)?.0)))
    })?;
    let owed = first_owed(connection, found.key)?;
    let mut broken = None;
    let frames = rows.map_while(|row| row.map_err(|error| broken = Some(error)).ok());
    let frames = frames.take_while(|(seq, _)| owed.is_none_or(|owed| *seq < owed));
    let last = retention.last_to_go(frames, head.seq, now);
    if let Some(error) = broken {
        return Err(error);
    }
    let Some(seq) = last else { return Ok(None) };
    Ok(reader::hash_at(connection, found, seq)?.map(|hash| Head { seq, hash }))
}

fn erase(
    connection: &Connection,
    key: i64,
    from: Seq,
    to: Seq,
    tombstone: &Tombstone,
    is_system: bool,
) -> rusqlite::Result<u64> {
    let (from, to) = (place(from), place(to));
    let spared = if is_system { format!("AND NOT ({PROVES})") } else { String::new() };
    let update = format!(
        "UPDATE frames SET body = NULL, erased_at = ?, erased_reason = ?
         WHERE stream = ? AND seq BETWEEN ? AND ? AND erased_at IS NULL {spared}"
    );
    let at = bounded(tombstone.at.0);
    let erased = connection.execute(&update, params![at, tombstone.reason, key, from, to])?;
    let mut delete = connection.prepare_cached(
        "DELETE FROM blob_refs WHERE stream = ?1 AND seq BETWEEN ?2 AND ?3 AND EXISTS (
             SELECT 1 FROM frames WHERE frames.stream = ?1 AND frames.seq = blob_refs.seq AND erased_at IS NOT NULL)
         RETURNING digest",
    )?;
    let referred =
        delete.query_map(params![key, from, to], |row| row.get::<_, Bytes32>(0).map(|digest| digest.0))?;
    let mut referred: Vec<Digest> = referred.collect::<rusqlite::Result<_>>()?;
    referred.extend(forget_snapshot(connection, key)?);
    blobs::prune(connection, &referred)?;
    Ok(erased as u64)
}

/// Takes what was erased out of the write-ahead log as well. Deleted cells and pages are already zeroes (`secure_delete`).
pub(crate) fn scrub(writer: &WriterThread) -> Result<(), Problem> {
    for _ in 0..LOCKED_RETRIES {
        let busy = writer
            .connection
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0))
            .map_err(|error| failure::writing(&error))?;
        if busy == 0 {
            return Ok(());
        }
        std::thread::sleep(LOCKED_RETRY_PAUSE);
    }
    let what = "the content was erased, but a reader keeps a copy of it in the write-ahead log";
    Err(Problem::new(Code::StoreWrite, what).help("Erase again when no reader is active, or restart."))
}

/// Whether the system stream allows this stream to be collected up to here.
fn permit(connection: &Connection, stream: &StreamId, up_to: Head) -> Result<(), Problem> {
    let evidence = Evidence::read(connection, &[FrameKind::LogCheckpointed], Seq(0))?;
    let recorded = evidence.streams.get(stream).is_some_and(|proof| proof.checkpoints.contains(&up_to));
    if !recorded {
        let what =
            format!("no `log.checkpointed` frame records that {stream} is collected up to {}", up_to.seq);
        return Err(Problem::new(Code::StoreMissing, what).help("Record the checkpoint first, then collect."));
    }
    if !stream.is_system() {
        return Ok(());
    }
    match still_needed(connection, up_to.seq)? {
        Some(what) => {
            Err(Problem::new(Code::StoreMissing, what).help("Record it again first, or collect less."))
        }
        None => Ok(()),
    }
}

fn refuse_owed(
    connection: &Connection,
    stream: &StreamId,
    found: &FoundStream,
    up_to: Seq,
) -> Result<(), Problem> {
    let owed = first_owed(connection, found.key).map_err(|error| failure::reading(&error))?;
    match owed.filter(|owed| *owed <= up_to) {
        Some(seq) => {
            let what = format!("frame {seq} of {stream} has not reached everyone it is for");
            Err(Problem::new(Code::StoreMissing, what).help("Collect less, or settle what is owed first."))
        }
        None => Ok(()),
    }
}

fn delete_slice(connection: &Connection, found: &FoundStream) -> rusqlite::Result<Collected> {
    let Some(base) = found.base else { return Ok(Collected::default()) };
    let mut last = connection.prepare_cached(
        "SELECT max(seq) FROM (SELECT seq FROM frames WHERE stream = ? AND seq <= ? ORDER BY seq LIMIT ?)",
    )?;
    let base_seq = place(base.seq);
    let last: Option<i64> =
        last.query_row(params![found.key, base_seq, FRAMES_PER_TRANSACTION as i64], |row| row.get(0))?;
    let Some(last) = last else { return Ok(Collected::default()) };

    let mut delete =
        connection.prepare_cached("DELETE FROM blob_refs WHERE stream = ? AND seq <= ? RETURNING digest")?;
    let referred =
        delete.query_map(params![found.key, last], |row| row.get::<_, Bytes32>(0).map(|digest| digest.0))?;
    let mut referred: Vec<Digest> = referred.collect::<rusqlite::Result<_>>()?;
    let mut delete = connection.prepare_cached("DELETE FROM frames WHERE stream = ? AND seq <= ?")?;
    let frames = delete.execute(params![found.key, last])? as u64;

    let mut older = connection.prepare_cached("SELECT 1 FROM snapshots WHERE stream = ? AND seq < ?")?;
    if older.query_row(params![found.key, base_seq], |_| Ok(())).optional()?.is_some() {
        referred.extend(forget_snapshot(connection, found.key)?);
    }
    Ok(Collected { frames, blobs: blobs::prune(connection, &referred)? })
}

/// Copies the whole database, through the same VFS.
pub(crate) fn copy(place: &LogLocation, source: &Connection, to: &Path) -> Result<(), Problem> {
    copied(to, || copy_online(source, &mut place.writer(to)?))
}

/// Copies a database other than a log, such as one of a built-in extension, as of now, to another file. Writing goes on meanwhile.
pub fn copy_database(from: &Path, to: &Path) -> Result<(), Problem> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    copied(to, || copy_online(&Connection::open_with_flags(from, flags)?, &mut Connection::open(to)?))
}

/// Whether a database was copied; not if others kept it locked.
fn copy_online(source: &Connection, target: &mut Connection) -> rusqlite::Result<bool> {
    let backup = Backup::new(source, target)?;
    for _ in 0..LOCKED_RETRIES {
        match backup.step(-1)? {
            StepResult::Done => return Ok(true),
            _ => std::thread::sleep(LOCKED_RETRY_PAUSE),
        }
    }
    Ok(false)
}

fn copied(to: &Path, run: impl FnOnce() -> rusqlite::Result<bool>) -> Result<(), Problem> {
    match run() {
        Ok(true) => Ok(()),
        Ok(false) => {
            let what = format!("{} is in use, so no backup was written to it", to.display());
            Err(failure::at(to, Problem::new(Code::StoreLocked, what)))
        }
        Err(error) => Err(failure::opening(to, &error)),
    }
}
