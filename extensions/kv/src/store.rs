//! The database: one SQLite file, synced at every commit.

use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use holdfast_contract::problem::{Code, Fault};
use parking_lot::Mutex;
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::{Map, Value};

/// The longest key and the largest value.
pub(crate) const MAX_KEY_BYTES: usize = 512;
pub(crate) const MAX_VALUE_BYTES: usize = 256 * 1024;
/// Values of one search, and their total size.
pub(crate) const MAX_FOUND: usize = 100;
const MAX_FOUND_BYTES: usize = 512 * 1024;
/// Keys in the store.
const MAX_KEYS: i64 = 100_000;
/// Stars in a glob: each one multiplies the time of a match.
const MAX_STARS: usize = 6;

/// The file of another program's store, and the most of it that is read.
const FOREIGN_FILE: &str = "values.json";
const MAX_FOREIGN_BYTES: u64 = 16 << 20;

/// The key-value store.
pub(crate) struct KvStore {
    folder: PathBuf,
    /// Opened by the first call, so that an unusable folder is an error of that call.
    connection: Mutex<Option<Connection>>,
}

/// The result of a search.
pub(crate) struct Found {
    pub(crate) entries: Vec<(String, Value)>,
    pub(crate) more: bool,
}

fn failed(message: impl std::fmt::Display) -> Fault {
    Fault::new(Code::ToolFailed, message.to_string())
}

impl KvStore {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder, connection: Mutex::new(None) }
    }

    fn with<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, Fault> {
        let mut held = self.connection.lock();
        let connection = match held.take() {
            Some(connection) => connection,
            None => open(&self.folder)?,
        };
        let connection = held.insert(connection);
        work(connection).map_err(|error| failed(format!("database error: {error}")))
    }

    /// The value of a key.
    pub(crate) fn get(&self, key: &str) -> Result<Option<Value>, Fault> {
        let text: Option<String> = self.with(|connection| {
            let mut query = connection.prepare_cached("SELECT value FROM kv WHERE key = ?1")?;
            query.query_row([key], |row| row.get(0)).optional()
        })?;
        text.map(|text| parsed(&text)).transpose()
    }

    /// The values of all keys that match, in the order of their keys.
    pub(crate) fn find(&self, glob: &str) -> Result<Found, Fault> {
        if glob.len() > MAX_KEY_BYTES || glob.matches('*').count() > MAX_STARS {
            return Err(failed(format!("a glob has at most {MAX_KEY_BYTES} bytes and {MAX_STARS} stars")));
        }
        let rows: Vec<(String, String)> = self.with(|connection| {
            let mut query = connection
                .prepare_cached("SELECT key, value FROM kv WHERE key GLOB ?1 ORDER BY key LIMIT ?2")?;
            let mut rows = query.query(params![glob, MAX_FOUND as i64 + 1])?;
            let (mut found, mut bytes) = (Vec::new(), 0);
            while let Some(row) = rows.next()? {
                let (key, value): (String, String) = (row.get(0)?, row.get(1)?);
                bytes += key.len() + value.len();
                found.push((key, value));
                if bytes > MAX_FOUND_BYTES {
                    break;
                }
            }
            Ok(found)
        })?;
        let (mut entries, mut bytes) = (Vec::new(), 0);
        let mut more = false;
        for (key, value) in rows {
            bytes += key.len() + value.len();
            more = entries.len() == MAX_FOUND || bytes > MAX_FOUND_BYTES;
            if more {
                break;
            }
            entries.push((key, parsed(&value)?));
        }
        Ok(Found { entries, more })
    }

    /// Stores a value; returns whether it replaced one.
    pub(crate) fn put(&self, key: &str, value: &Value) -> Result<bool, Fault> {
        if key.is_empty() || key.len() > MAX_KEY_BYTES || key.contains('\0') {
            return Err(failed(format!("a key has 1 to {MAX_KEY_BYTES} bytes and no NUL in it")));
        }
        let text = value.to_string();
        if text.len() > MAX_VALUE_BYTES {
            let bytes = text.len();
            return Err(failed(format!("the value has {bytes} bytes; {MAX_VALUE_BYTES} is the limit")));
        }
        let written: Option<bool> = self.with(|connection| {
            let changes = connection.unchecked_transaction()?;
            let there = changes.prepare_cached("SELECT 1 FROM kv WHERE key = ?1")?.exists([key])?;
            let count: i64 = changes.query_row("SELECT count(*) FROM kv", [], |row| row.get(0))?;
            if !there && count >= MAX_KEYS {
                return Ok(None);
            }
            let put =
                "INSERT INTO kv (key, value) VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = ?2";
            changes.prepare_cached(put)?.execute(params![key, text])?;
            changes.commit()?;
            Ok(Some(there))
        })?;
        written.ok_or_else(|| failed(format!("the store is full: it has {MAX_KEYS} keys; remove some first")))
    }

    /// Removes a key; returns whether it existed.
    pub(crate) fn remove(&self, key: &str) -> Result<bool, Fault> {
        self.with(|connection| Ok(connection.execute("DELETE FROM kv WHERE key = ?1", [key])? > 0))
    }
}

fn parsed(text: &str) -> Result<Value, Fault> {
    serde_json::from_str(text).map_err(|error| failed(format!("invalid stored value: {error}")))
}

fn open(folder: &Path) -> Result<Connection, Fault> {
    let unusable =
        |error: &dyn std::fmt::Display| failed(format!("{} cannot be used: {error}", folder.display()));
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|error| unusable(&error))?;
    let file = folder.join("kv.db");
    // SQLite would wait for what is not a regular file.
    for name in ["kv.db", "kv.db-wal", "kv.db-shm", "kv.db-journal"] {
        holdfast_untrusted_files::check_regular(&folder.join(name)).map_err(|error| unusable(&error))?;
    }
    // Readable by the user only. An existing file keeps its mode; if creating fails, SQLite reports the error.
    drop(std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file));
    let prepared = || -> rusqlite::Result<Connection> {
        let connection = Connection::open(&file)?;
        connection.busy_timeout(Duration::from_secs(5))?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.execute_batch(
            "CREATE TABLE IF NOT EXISTS kv (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID",
        )?;
        Ok(connection)
    };
    let connection = prepared().map_err(|error| unusable(&error))?;
    take_over(folder, &connection).map_err(|error| unusable(&error))?;
    Ok(connection)
}

/// Takes over the values of a key-value store of JSON that another program left in the folder. Keys that are there already stay as they
/// are. The file is renamed, so that what is removed later does not come back.
fn take_over(folder: &Path, connection: &Connection) -> Result<(), String> {
    let file = folder.join(FOREIGN_FILE);
    let bytes = match holdfast_untrusted_files::read(&file, MAX_FOREIGN_BYTES) {
        Err(error) if error.is_not_found() => return Ok(()),
        read => read.map_err(|error| format!("{FOREIGN_FILE}: {error}"))?,
    };
    let values: Map<String, Value> =
        serde_json::from_slice(&bytes).map_err(|error| format!("{FOREIGN_FILE}: {error}"))?;
    let fits = |(key, value): &(&String, &Value)| {
        (1..=MAX_KEY_BYTES).contains(&key.len()) && value.to_string().len() <= MAX_VALUE_BYTES
    };
    let written = || -> rusqlite::Result<()> {
        let changes = connection.unchecked_transaction()?;
        for (key, value) in values.iter().filter(fits).take(MAX_KEYS as usize) {
            let put = "INSERT OR IGNORE INTO kv (key, value) VALUES (?1, ?2)";
            changes.prepare_cached(put)?.execute(params![key, value.to_string()])?;
        }
        changes.commit()
    };
    written().map_err(|error| error.to_string())?;
    std::fs::rename(&file, folder.join(format!("{FOREIGN_FILE}.imported"))).map_err(|error| error.to_string())
}
