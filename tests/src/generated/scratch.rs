//! The database behind the store's back: torn as a crash may leave it, or changed as a tamperer might.

use std::path::Path;

use holdfast_contract::body::{FrameKind, FrameOrigin};
use holdfast_contract::content::INLINE_LIMIT;
use holdfast_contract::digest::canonical;
use holdfast_contract::frame::Frame;
use holdfast_contract::ids::StreamId;
use holdfast_store::{Store, StoreOptions};
use rusqlite::{Connection, params};

use super::dice::Dice;

/// A folder that is gone after the test; in memory where the system has such a place, since nothing here is about the disk.
pub fn folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    made.or_else(|_| tempfile::tempdir()).unwrap()
}

/// Opens the database behind the store's back.
pub fn connect(path: &Path) -> Connection {
    let connection = Connection::open(path).unwrap();
    connection.pragma_update(None, "synchronous", "OFF").unwrap();
    connection
}

/// Cuts some streams within their last step: its fact stays, some of its decisions go. A head that the system stream has anchored
/// was acknowledged and cannot be lost. The head file goes too: after a power loss it is older than the database, or gone.
pub fn tear(path: &Path, dice: &mut Dice) {
    let connection = connect(path);
    let _absent = std::fs::remove_file(path.with_extension("db-head"));
    let mut select =
        connection.prepare("SELECT id, name FROM streams WHERE name != 'system' ORDER BY name").unwrap();
    let streams = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    let streams: Vec<(i64, String)> = streams.map(Result::unwrap).collect();
    for (key, name) in streams {
        let kinds = kinds(&connection, key);
        let fact = kinds.iter().rposition(|kind| kind.origin() == FrameOrigin::Fact).unwrap() as i64;
        let first = fact.max(anchored(&connection, &name).unwrap_or(-1));
        let last = kinds.len() as i64 - 1;
        if first < last && !dice.one_in(4) {
            let cut = dice.between(first as u64, last as u64 - 1) as i64;
            cut_after(&connection, key, cut);
        }
    }
}

fn kinds(connection: &Connection, key: i64) -> Vec<FrameKind> {
    let mut select =
        connection.prepare_cached("SELECT kind FROM frames WHERE stream = ? ORDER BY seq").unwrap();
    let kinds = select.query_map([key], |row| row.get::<_, String>(0)).unwrap();
    kinds.map(|kind| FrameKind::parse(&kind.unwrap()).unwrap()).collect()
}

fn anchored(connection: &Connection, name: &str) -> Option<i64> {
    let select = "SELECT max(CAST(body AS TEXT) ->> '$.seq') FROM frames, streams
        WHERE frames.stream = streams.id AND streams.name = 'system'
          AND kind = 'head.anchored' AND CAST(body AS TEXT) ->> '$.stream' = ?";
    connection.query_row(select, [name], |row| row.get(0)).unwrap()
}

fn cut_after(connection: &Connection, key: i64, cut: i64) {
    for table in ["frames", "blob_refs"] {
        connection
            .execute(&format!("DELETE FROM {table} WHERE stream = ? AND seq > ?"), params![key, cut])
            .unwrap();
    }
    let gone = "DELETE FROM snapshots WHERE stream = ? AND seq > ?";
    if connection.execute(gone, params![key, cut]).unwrap() > 0 {
        connection.execute("DELETE FROM snapshot_refs WHERE stream = ?", [key]).unwrap();
    }
}

/// A copy of a database whose frames can be changed and put back.
pub struct Scratch {
    pub store: Store,
    connection: Connection,
    _folder: tempfile::TempDir,
}

impl Scratch {
    /// A copy of this database, which nobody may be writing.
    pub fn of(path: &Path) -> Self {
        let folder = folder();
        let copy = folder.path().join("copy.db");
        std::fs::copy(path, &copy).unwrap();
        let store = Store::open(&copy, StoreOptions::default()).unwrap();
        Self { store, connection: connect(&copy), _folder: folder }
    }

    /// Puts these frames in place of the stream's, from a place on.
    pub fn write(&mut self, stream: &StreamId, from: usize, frames: &[Frame]) {
        let transaction = self.connection.transaction().unwrap();
        let key: i64 = transaction
            .query_row("SELECT id FROM streams WHERE name = ?", [stream.as_str()], |row| row.get(0))
            .unwrap();
        transaction
            .execute("DELETE FROM frames WHERE stream = ? AND seq >= ?", params![key, from as i64])
            .unwrap();
        for frame in &frames[from..] {
            insert(&transaction, key, frame);
        }
        transaction.commit().unwrap();
    }
}

fn insert(connection: &Connection, key: i64, frame: &Frame) {
    let envelope = &frame.envelope;
    let body = canonical(&frame.body).unwrap();
    connection
        .prepare_cached(
            "INSERT INTO frames (stream, seq, at, kind, source, cause, body, body_digest, prev, hash)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )
        .unwrap()
        .execute(params![
            key,
            envelope.seq.0 as i64,
            envelope.at.0 as i64,
            envelope.kind.as_str(),
            String::from_utf8(canonical(&envelope.source).unwrap()).unwrap(),
            envelope.cause.map(|cause| cause.0 as i64),
            // Past the limit a body is a blob, which stays where it is.
            (body.len() <= INLINE_LIMIT).then_some(&body),
            envelope.body_digest.as_bytes(),
            envelope.prev.as_bytes(),
            frame.hash.as_bytes(),
        ])
        .unwrap();
}
