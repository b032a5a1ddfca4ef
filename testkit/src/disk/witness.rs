//! The outside witness of a crash test: it notes what was acknowledged and when, and says what a store that was found after a crash
//! owes. It knows nothing of how the store works.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use holdfast_contract::frame::Frame;
use holdfast_contract::ids::{Seq, StreamId};
use holdfast_contract::problem::Problem;
use holdfast_store::{Options, Store};

use super::Disk;

/// Notes acknowledgements against the steps of a disk. Clones write to the same ledger, from any thread.
#[derive(Clone, Debug)]
pub struct Witness {
    disk: Disk,
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
    pub fn of(disk: &Disk) -> Self {
        Self { disk: disk.clone(), ledger: Arc::default() }
    }

    /// Notes that a frame was acknowledged just now.
    pub fn acknowledged(&self, stream: &StreamId, seq: Seq) {
        let noted = Acknowledged { stream: stream.clone(), seq, step: self.disk.step() };
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner).push(noted);
    }

    /// Everything that was noted, by step.
    pub fn ledger(&self) -> Vec<Acknowledged> {
        let mut ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner).clone();
        ledger.sort_by_key(|noted| noted.step);
        ledger
    }

    /// For each stream, the last frame that must be there after a crash at a step.
    pub fn due(&self, step: usize) -> BTreeMap<StreamId, Seq> {
        let mut due = BTreeMap::new();
        let ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
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

/// Opens the store that a crash left and looks at every frame in it: each stream is a beginning of what was recorded, without
/// gaps, and holds at least what is due; and the store's own `verify` finds nothing.
pub fn examine(disk: &Disk, path: &Path, due: &BTreeMap<StreamId, Seq>, recorded: &Recorded) -> Result<(), Violation> {
    let options = Options { vfs: Some(disk.vfs_name().to_owned()), readers: 1, ..Options::default() };
    let store = Store::open(path, options)?;
    for (stream, frames) in recorded {
        compare(&store, stream, frames, due.get(stream).copied())?;
    }
    if let Some(finding) = store.verify(None)?.first() {
        return Err(Violation::Finding(finding.to_string()));
    }
    store.close();
    Ok(())
}

fn compare(store: &Store, stream: &StreamId, recorded: &[Frame], due: Option<Seq>) -> Result<(), Violation> {
    let found = store.frames(stream, ..)?;
    let mut next = Seq(0);
    for (index, frame) in found.iter().enumerate() {
        if frame.envelope.seq != next || recorded.get(index) != Some(frame) {
            return Err(Violation::Changed { stream: stream.clone(), seq: next });
        }
        next = next.next();
    }
    match due {
        Some(due) if due >= next => Err(Violation::Lost { stream: stream.clone(), seq: next }),
        _ => Ok(()),
    }
}
