//! The database file: its tables, how a connection is set up, and what is checked before anything is touched.
//!
//! The format's version is SQLite's `user_version`. A newer one is rejected before the file is opened for writing; an older one is
//! backed up beside itself and migrated by [`crate::tables::migrations`].

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use holdfast_contract::problem::{Code, Problem};
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use crate::failure;
use crate::tables::deliveries::DELIVERIES;
use crate::tables::migrations::{self, Migration};

/// The format that this build writes.
pub const VERSION: u32 = 4;
/// Marks the file as ours: "HOLD".
const APPLICATION: i64 = 0x484f_4c44;
/// Statements that a connection keeps prepared.
const STATEMENTS: usize = 64;
/// The writer's page cache: enough for a full transaction of ordinary frames.
const CACHE_KIB: i64 = 16 * 1024;
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// What the write-ahead log is cut back to once it has grown longer, for instance during a long backup.
const WAL_LIMIT: i64 = 64 * 1024 * 1024;

/// The tables that have not changed since format 1.
///
/// A frame's body is in `body`, or, past the inline limit, in `blobs` under `body_digest`, or is erased. `base_seq` and
/// `base_hash` are the last frame that was collected.
const TABLES: &str = "
    CREATE TABLE streams (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        base_seq INTEGER,
        base_hash BLOB
    ) STRICT;
    CREATE TABLE frames (
        stream INTEGER NOT NULL REFERENCES streams (id),
        seq INTEGER NOT NULL,
        at INTEGER NOT NULL,
        kind TEXT NOT NULL,
        source TEXT NOT NULL,
        cause INTEGER,
        body BLOB,
        body_digest BLOB NOT NULL,
        prev BLOB NOT NULL,
        hash BLOB NOT NULL,
        erased_at INTEGER,
        erased_reason TEXT,
        PRIMARY KEY (stream, seq)
    ) STRICT;
    CREATE TABLE blobs (digest BLOB PRIMARY KEY NOT NULL, size INTEGER NOT NULL, data BLOB NOT NULL) STRICT;
    CREATE TABLE objects (
        digest BLOB PRIMARY KEY NOT NULL,
        kind TEXT NOT NULL,
        size INTEGER NOT NULL,
        data BLOB NOT NULL
    ) STRICT;
";

/// What format 2 adds: who refers to which blob, indexes of the evidence frames and of frames without a body, and
/// snapshots that are sealed with the digest of their reference.
pub(crate) const REFERENCES: &str = "
    CREATE TABLE snapshots (
        stream INTEGER PRIMARY KEY REFERENCES streams (id),
        seq INTEGER NOT NULL,
        hash BLOB NOT NULL,
        kernel INTEGER NOT NULL,
        digest BLOB NOT NULL,
        size INTEGER NOT NULL,
        data BLOB NOT NULL,
        seal BLOB NOT NULL
    ) STRICT;
    CREATE TABLE blob_refs (
        stream INTEGER NOT NULL REFERENCES streams (id),
        seq INTEGER NOT NULL,
        digest BLOB NOT NULL,
        PRIMARY KEY (stream, seq, digest)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX blob_refs_by_digest ON blob_refs (digest);
    CREATE TABLE snapshot_refs (
        stream INTEGER NOT NULL REFERENCES streams (id),
        digest BLOB NOT NULL,
        PRIMARY KEY (stream, digest)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX snapshot_refs_by_digest ON snapshot_refs (digest);
    CREATE INDEX evidence ON frames (stream, kind, seq)
        WHERE kind = 'head.anchored' OR kind = 'log.checkpointed' OR kind = 'log.erased';
    CREATE INDEX tombstones ON frames (stream, seq) WHERE erased_at IS NOT NULL;
";

/// What format 3 adds: the digests of what is derived from objects and kept in files beside the log.
pub(crate) const DERIVED: &str = "
    CREATE TABLE derived (name TEXT PRIMARY KEY NOT NULL, digest BLOB NOT NULL) STRICT, WITHOUT ROWID;
";

/// Where the log is and through which VFS it is reached.
#[derive(Clone, Debug)]
pub(crate) struct LogLocation {
    pub(crate) path: PathBuf,
    pub(crate) vfs: Option<String>,
}

impl LogLocation {
    /// Rejects what is not a regular file, such as a pipe: SQLite would wait for ever until another process writes to it.
    fn check(&self) -> Result<(), Problem> {
        // Through another VFS the database is not where its path says.
        if self.vfs.is_some() {
            return Ok(());
        }
        ["", "-wal", "-shm", "-journal"].iter().try_for_each(|beside| {
            let mut path = self.path.clone().into_os_string();
            path.push(beside);
            let refused = |why: String| {
                let what = format!("cannot open the log {}: {why}", path.display());
                failure::at(&self.path, Problem::new(Code::StoreUnavailable, what))
            };
            // SQLite would make what it leads to: an empty log in the place of one whose disk is missing.
            if std::fs::symlink_metadata(&path).is_ok()
                && std::fs::metadata(&path).is_err_and(|error| error.kind() == ErrorKind::NotFound)
            {
                return Err(refused("it is a link that leads nowhere".to_owned()));
            }
            holdfast_untrusted_files::check_regular(Path::new(&path))
                .map_err(|error| refused(error.to_string()))
        })
    }

    /// A connection that can only read.
    pub(crate) fn reader(&self) -> rusqlite::Result<Connection> {
        self.connect(&self.path, OpenFlags::SQLITE_OPEN_READ_ONLY)
    }

    /// A connection that can write, to this or another file.
    pub(crate) fn writer(&self, path: &Path) -> rusqlite::Result<Connection> {
        if self.vfs.is_none() {
            make_private(path);
        }
        self.connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE)
    }

    fn connect(&self, path: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = match &self.vfs {
            Some(vfs) => Connection::open_with_flags_and_vfs(path, flags, vfs.as_str())?,
            None => Connection::open_with_flags(path, flags)?,
        };
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        Ok(connection)
    }

    /// A read-only connection to the file itself, without locks, without files beside it and without changes.
    fn untouched(&self) -> rusqlite::Result<Connection> {
        let mut uri = String::from("file:");
        for byte in self.path.as_os_str().as_encoded_bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => {
                    uri.push(char::from(*byte))
                }
                other => uri.push_str(&format!("%{other:02X}")),
            }
        }
        uri.push_str("?immutable=1");
        self.connect(Path::new(&uri), OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI)
    }

    fn problem(&self, error: &rusqlite::Error) -> Problem {
        failure::opening(&self.path, error)
    }
}

/// Only the owner can access a log and the files that SQLite creates beside it, which inherit its mode.
fn make_private(path: &Path) {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    // An existing file keeps its mode; if it cannot be created, SQLite reports the error.
    drop(options.open(path));
}

/// What exists at the path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    Nothing,
    Log { version: u32 },
}

/// Opens the log for writing; creates or migrates it if necessary.
pub(crate) fn open(place: &LogLocation) -> Result<(Connection, Option<Migration>), Problem> {
    place.check()?;
    // The file first, without touching it; then with what its write-ahead log adds.
    // On its own the file may be torn by a crash: only a clear answer counts.
    if let Ok(found) = look(place, place.untouched()) {
        refuse_newer(place, found)?;
    }
    // Writable, because only a writable connection can roll back a journal that a crash left.
    let found = look(place, place.connect(&place.path, OpenFlags::SQLITE_OPEN_READ_WRITE))?;
    refuse_newer(place, found)?;

    let mut migration = None;
    let mut connection = match found {
        Found::Nothing => create(place)?,
        Found::Log { .. } => place.writer(&place.path).map_err(|error| place.problem(&error))?,
    };
    if let Found::Log { version } = found
        && version < VERSION
    {
        migration = Some(migrations::run(place, &mut connection, version)?);
    }
    let mode = set_up(&connection).map_err(|error| place.problem(&error))?;
    if mode != "wal" {
        let what = format!("{} cannot have a write-ahead log, only `{mode}`", place.path.display());
        return Err(failure::at(&place.path, Problem::new(Code::StoreUnavailable, what)));
    }
    Ok((connection, migration))
}

fn look(place: &LogLocation, connection: rusqlite::Result<Connection>) -> Result<Found, Problem> {
    let found = connection.and_then(|connection| {
        // One snapshot: another process may be creating the log.
        let connection = connection.unchecked_transaction()?;
        let version: u32 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
        let application: i64 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
        let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
        Ok((version, application, tables))
    });
    match found {
        Ok((0, 0, 0)) => Ok(Found::Nothing),
        Ok((version, APPLICATION, _)) if version > 0 => Ok(Found::Log { version }),
        Ok(_) => {
            let what = format!("{} is a database, but not a log of Holdfast's", place.path.display());
            Err(failure::at(&place.path, Problem::new(Code::StoreCorrupt, what)))
        }
        Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::CannotOpen) => {
            Ok(Found::Nothing)
        }
        Err(error) => Err(place.problem(&error)),
    }
}

fn refuse_newer(place: &LogLocation, found: Found) -> Result<(), Problem> {
    match found {
        Found::Log { version } if version > VERSION => {
            let path = place.path.display();
            let what = format!("{path} has format {version}; this version reads up to {VERSION}");
            Err(failure::at(&place.path, Problem::new(Code::StoreNewer, what)))
        }
        Found::Log { .. } | Found::Nothing => Ok(()),
    }
}

/// The tables are created before the write-ahead log is enabled, so that the file itself always has its format.
fn create(place: &LogLocation) -> Result<Connection, Problem> {
    let make = || {
        let mut connection = place.writer(&place.path)?;
        connection.pragma_update(None, "page_size", 4096)?;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Another process may have created them since this one looked.
        if transaction.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0))? == 0 {
            transaction.execute_batch(&format!(
                "PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {VERSION};
                 {TABLES} {REFERENCES} {DERIVED} {DELIVERIES}"
            ))?;
        }
        transaction.commit()?;
        Ok(connection)
    };
    make().map_err(|error| place.problem(&error))
}

/// Enables the write-ahead log. While another process does, SQLite refuses at once, whatever the timeout.
fn write_ahead(connection: &Connection) -> rusqlite::Result<String> {
    let deadline = Instant::now() + BUSY_TIMEOUT;
    loop {
        match connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0)) {
            Err(error)
                if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy)
                    && Instant::now() < deadline =>
            {
                std::thread::sleep(Duration::from_millis(5));
            }
            enabled => return enabled,
        }
    }
}

/// `FULL` syncs the write-ahead log at every commit, so acknowledged means on disk. Checkpoints are the writer's business: an
/// automatic one that failed would make a commit that succeeded look as if it had not.
fn set_up(connection: &Connection) -> rusqlite::Result<String> {
    let mode = write_ahead(connection)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update_and_check(None, "secure_delete", true, |_| Ok(()))?;
    connection.pragma_update_and_check(None, "wal_autocheckpoint", 0, |_| Ok(()))?;
    connection.pragma_update_and_check(None, "journal_size_limit", WAL_LIMIT, |_| Ok(()))?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
    // Every row that refers to a stream is written with the stream's row in the same transaction.
    connection.pragma_update(None, "foreign_keys", false)?;
    Ok(mode)
}
