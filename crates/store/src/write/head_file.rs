//! The head file, `holdfast.db-head`: how many frames were acknowledged, noted outside of the database.
//!
//! SQLite cannot tell a write-ahead log that was cut or deleted from one that was never longer: the database is then as it was at an
//! earlier moment. The head file can. It is written after each commit and not synced: a process that is killed leaves it as it was, and
//! after a power loss it may be older than the database, never newer. It costs a write of some bytes for each commit.

use std::fs::File;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use serde::Serialize;

/// How the file begins: a name and its version.
const NAME: &str = "holdfast-head 1";
/// More than a head file has.
const MAX_BYTES: u64 = 256;

/// Acknowledged frames that are not in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LostFrames {
    /// How many frames the log had.
    pub acknowledged: u64,
    /// How many it had when it was opened.
    pub found: u64,
}

/// The head file of an open log.
#[derive(Debug, Default)]
pub(crate) struct HeadFile {
    path: Option<PathBuf>,
    file: Option<File>,
    frames: u64,
    lost: Option<LostFrames>,
}

/// What a head file says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Noted {
    frames: u64,
    lost: Option<LostFrames>,
}

impl Noted {
    /// Reads the head file of a database. To be done before the database is opened: another process may write both, first the
    /// database. A file that cannot be read says nothing.
    pub(crate) fn read(database: &Path) -> Self {
        let text = holdfast_untrusted_files::read_text(&path_of(database), MAX_BYTES);
        text.ok().and_then(|text| parse(&text)).unwrap_or_default()
    }
}

impl HeadFile {
    /// The head file of a database that was opened, with what was noted before.
    pub(crate) fn open(database: &Path, connection: &Connection, noted: Noted) -> Self {
        // A database that cannot answer is reported by those who read from it.
        let Ok(frames) = count(connection) else { return Self::default() };
        let cut = (frames < noted.frames).then_some(LostFrames { acknowledged: noted.frames, found: frames });
        Self { path: Some(path_of(database)), file: None, frames, lost: cut.or(noted.lost) }
    }

    /// The frames that are missing.
    pub(crate) fn lost(&self) -> Option<LostFrames> {
        self.lost
    }

    /// So many more frames are on disk.
    pub(crate) fn advance(&mut self, frames: u64) {
        let Some(path) = self.path.as_ref().filter(|_| frames > 0) else { return };
        self.frames += frames;
        if self.file.is_none() {
            let mut options = File::options();
            options.write(true).create(true).truncate(false).mode(0o600);
            self.file = holdfast_untrusted_files::open_regular(&mut options, path).ok();
        }
        let text = text(self.frames, self.lost);
        // A note that cannot be written proves less, and nothing else depends on it.
        if self.file.as_ref().is_some_and(|file| file.write_all_at(text.as_bytes(), 0).is_err()) {
            self.file = None;
        }
    }
}

fn path_of(database: &Path) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push("-head");
    path.into()
}

/// How many frames the log has or had: those that were collected count.
fn count(connection: &Connection) -> rusqlite::Result<u64> {
    let select = "SELECT coalesce(sum(1 + max(
                      coalesce((SELECT max(seq) FROM frames WHERE stream = streams.id), -1),
                      coalesce(base_seq, -1))), 0) FROM streams";
    connection
        .query_row(select, [], |row| row.get::<_, i64>(0))
        .map(|count| u64::try_from(count).unwrap_or(0))
}

/// One line of a fixed length. Every number stands in it twice, the second time as what it lacks to the largest one, so that a damaged
/// line is not taken for another number.
fn text(frames: u64, lost: Option<LostFrames>) -> String {
    let LostFrames { acknowledged, found } = lost.unwrap_or(LostFrames { acknowledged: 0, found: 0 });
    let [a, b, c] =
        [frames, acknowledged, found].map(|number| format!("{number:020} {:020}", u64::MAX - number));
    format!("{NAME} {a} {b} {c}\n")
}

fn parse(text: &str) -> Option<Noted> {
    let mut numbers = text.strip_prefix(NAME)?.strip_suffix('\n')?.split_ascii_whitespace();
    let mut next = || {
        let (number, check) = (numbers.next()?.parse::<u64>().ok()?, numbers.next()?.parse::<u64>().ok()?);
        (u64::MAX - number == check).then_some(number)
    };
    let (frames, acknowledged, found) = (next()?, next()?, next()?);
    let lost = (acknowledged > 0).then_some(LostFrames { acknowledged, found });
    Some(Noted { frames, lost })
}

#[cfg(test)]
#[path = "head_file_tests.rs"]
mod tests;
