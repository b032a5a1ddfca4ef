//! The outside witness of a crash test: it notes what was acknowledged and when, and says what a store that was found after a crash
//! owes. It knows nothing of how the store works.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use holdfast_contract::digest::Digest;
use holdfast_contract::frame::Frame;
use holdfast_contract::ids::{Seq, StreamId};
use holdfast_contract::problem::Problem;
use holdfast_store::{Store, StoreOptions};
use parking_lot::{Mutex, MutexGuard};
use rusqlite::{Connection, OpenFlags};

use super::SimulatedDisk;

/// Notes acknowledgements against the steps of a disk. Clones write to the same ledger, from any thread.
#[derive(Clone, Debug)]
pub struct Witness {
    disk: SimulatedDisk,
    ledger: Arc<Mutex<Vec<Acknowledged>>>,
}

/// One acknowledgement: the frame, and all before it in its stream, must survive a crash at this step or later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acknowledged {
    /// The stream.
    pub stream: StreamId,
    /// The frame.
    pub seq: Seq,
    /// The disk's step when the caller had been told.
    pub step: usize,
}

/// The frames of a workload as the store gave them back while all was well.
pub type Recorded = BTreeMap<StreamId, Vec<Frame>>;

impl Witness {
    /// A witness of what happens on a disk.
    pub fn of(disk: &SimulatedDisk) -> Self {
        Self { disk: disk.clone(), ledger: Arc::default() }
    }

    /// Notes that a frame was acknowledged just now.
    pub fn acknowledged(&self, stream: &StreamId, seq: Seq) {
        let noted = Acknowledged { stream: stream.clone(), seq, step: self.disk.step() };
        self.ledger.lock().push(noted);
    }

    /// Everything that was noted, by step.
    pub fn ledger(&self) -> Vec<Acknowledged> {
        let mut ledger = self.ledger.lock().clone();
        ledger.sort_by_key(|noted| noted.step);
        ledger
    }

    /// For each stream, the last frame that must be there after a crash at a step.
    pub fn due(&self, step: usize) -> BTreeMap<StreamId, Seq> {
        let mut due = BTreeMap::new();
        let ledger = self.ledger.lock();
        for noted in ledger.iter().filter(|noted| noted.step <= step) {
            let last = due.entry(noted.stream.clone()).or_insert(noted.seq);
            *last = noted.seq.max(*last);
        }
        due
    }
}

/// How a store that was found after a crash breaks its word.
#[derive(Clone, Debug, PartialEq)]
pub enum Violation {
    /// It cannot be opened or read.
    Unreadable(String),
    /// An acknowledged frame is gone.
    Lost {
        /// The stream.
        stream: StreamId,
        /// The first frame that is missing.
        seq: Seq,
    },
    /// A frame is not in its place, or not the one that was written.
    Changed {
        /// The stream.
        stream: StreamId,
        /// The place.
        seq: Seq,
    },
    /// `verify` takes the crash for tampering.
    Finding(String),
}

impl From<Problem> for Violation {
    fn from(problem: Problem) -> Self {
        Self::Unreadable(problem.to_string())
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(why) => write!(f, "unreadable: {why}"),
            Self::Lost { stream, seq } => write!(f, "acknowledged and lost: {stream} {seq}"),
            Self::Changed { stream, seq } => write!(f, "not what was written: {stream} {seq}"),
            Self::Finding(finding) => write!(f, "taken for tampering: {finding}"),
        }
    }
}

/// Looks at what crashes left of one workload.
///
/// Every state is opened by the store and its content read whole, as SQLite sees it after recovery. Most crashes come down to the
/// same few contents, so a content that was met before, byte for byte, is not walked frame by frame again.
pub struct Examiner<'a> {
    path: &'a Path,
    recorded: &'a Recorded,
    known: Mutex<HashMap<Digest, Result<Heads, Violation>>>,
}

/// The last frame of each stream that has one.
type Heads = BTreeMap<StreamId, Seq>;

impl<'a> Examiner<'a> {
    /// For a database and the frames that were written to it.
    pub fn new(path: &'a Path, recorded: &'a Recorded) -> Self {
        Self { path, recorded, known: Mutex::default() }
    }

    /// Opens the store that a crash left and looks at everything in it: each stream is a beginning of what was recorded,
    /// without gaps, and holds at least what is due; and the store's own `verify` finds nothing.
    pub fn examine(&self, disk: &SimulatedDisk, due: &BTreeMap<StreamId, Seq>) -> Result<(), Violation> {
        let options =
            StoreOptions { vfs: Some(disk.vfs_name().to_owned()), readers: 1, ..StoreOptions::default() };
        let store = Store::open(self.path, options)?;
        let content = content_of(disk, self.path)?;
        let known = self.known().get(&content).cloned();
        let heads = known.unwrap_or_else(|| {
            let walked = self.walk(&store);
            self.known().insert(content, walked.clone());
            walked
        })?;
        store.close();
        for (stream, due) in due {
            let next = heads.get(stream).map_or(Seq(0), |head| head.next());
            if *due >= next {
                return Err(Violation::Lost { stream: stream.clone(), seq: next });
            }
        }
        Ok(())
    }

    /// How many different contents were met, each of which was walked frame by frame and verified.
    pub fn contents(&self) -> usize {
        self.known().len()
    }

    fn known(&self) -> MutexGuard<'_, HashMap<Digest, Result<Heads, Violation>>> {
        self.known.lock()
    }

    fn walk(&self, store: &Store) -> Result<Heads, Violation> {
        let mut heads = Heads::new();
        for info in store.streams()? {
            let recorded = self.recorded.get(&info.id).map_or(&[][..], Vec::as_slice);
            for (place, frame) in store.frames(&info.id, ..)?.iter().enumerate() {
                let seq = Seq(place as u64);
                if frame.envelope.seq != seq || recorded.get(place) != Some(frame) {
                    return Err(Violation::Changed { stream: info.id, seq });
                }
                heads.insert(info.id.clone(), seq);
            }
        }
        match store.verify(None)?.first() {
            Some(finding) => Err(Violation::Finding(finding.to_string())),
            None => Ok(heads),
        }
    }
}

/// The digest of every page of the database, with what its write-ahead log adds.
fn content_of(disk: &SimulatedDisk, path: &Path) -> Result<Digest, Violation> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let digest = || {
        let mut connection = Connection::open_with_flags_and_vfs(path, flags, disk.vfs_name())?;
        let pages = connection.serialize(rusqlite::MAIN_DB)?;
        Ok(Digest::of(&pages))
    };
    digest().map_err(|error: rusqlite::Error| Violation::Unreadable(error.to_string()))
}
