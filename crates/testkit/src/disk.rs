//! A simulated disk beneath SQLite: it counts syncs, runs full, fails, and shows what a power loss would leave behind.
//!
//! A [`SimulatedDisk`] lives in memory and is reached as an SQLite VFS by its [name](SimulatedDisk::vfs_name). It keeps a journal of every operation;
//! [`SimulatedDisk::crash_at`] derives, from the journal alone, a state that could be found after a power loss at any step. So a workload
//! runs once, and tens of thousands of crashes of it are looked at, each for the price of a few reference counts.
//!
//! A test opens a store with [`SimulatedDisk::vfs_name`], lets a [`witness::Witness`] note every acknowledgement with the disk's step, and shows what
//! crashes left to a [`witness::Examiner`].
//!
//! # What a power loss keeps
//!
//! - What was written to a file before the last sync of that file is there, byte for byte.
//! - Of the writes and truncations after it, any subset is there, in any order; one write may be torn between sectors of 512
//!   bytes. Bytes outside the written range are never touched (SQLite's "powersafe overwrite", which its own Unix VFS
//!   assumes too). Where an append grew the file but its bytes did not arrive, there are zeros or noise.
//! - Names live in one directory. The first sync of a new file syncs the directory, as SQLite's Unix VFS does for journals and as
//!   journalling file systems do for any file; so does a deletion that asks for it. Creations and deletions after that may each be undone,
//!   per name in order.
//! - Files differ from each other: the database may keep all of its unsynced writes while its log keeps none.
//! - Shared memory (the WAL index), locks and temporary files are gone.
//!
//! Not modelled: sectors that go bad by themselves, bytes that change where nothing was written, and a sync that fails after it wrote
//! something (a [failed sync](DiskFault::Sync) leaves everything unsynced).
#![allow(
    clippy::expect_used,
    reason = "a test kit: a broken assumption of the simulation must stop the test that made it"
)]

mod image;
mod journal;
mod locks;
mod random;
mod state;
mod vfs;
pub mod witness;

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use state::State;

/// A disk in memory. Clones are handles to the same disk; it goes away with its last handle and its last open file.
#[derive(Clone)]
pub struct SimulatedDisk {
    shared: Arc<Shared>,
}

pub(crate) struct Shared {
    state: Mutex<State>,
    slot: &'static vfs::Slot,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        vfs::give_back(self.slot);
    }
}

/// Which of the unsynced changes a power loss keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Survival {
    /// None: each file is as of its last sync.
    NothingUnsynced,
    /// All, in order: as after `kill -9`.
    Everything,
    /// Each with probability ½, in any order, at most one write per file torn. The same seed gives the same state.
    Random(u64),
}

/// What a disk can be told to fail with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskFault {
    /// A write finds no space.
    FullDisk,
    /// A write fails.
    Write,
    /// A sync fails, and nothing of what it was asked for is durable.
    Sync,
    /// A read fails.
    Read,
}

/// What was done to a disk since it was made. Temporary files and shared memory do not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Syncs asked for, ignored ones included.
    pub syncs: u64,
    /// Writes.
    pub writes: u64,
    /// Bytes written.
    pub bytes: u64,
}

/// One step of the journal, for reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A file was created.
    Create {
        /// Its name.
        name: Arc<str>,
    },
    /// A file was deleted.
    Delete {
        /// Its name.
        name: Arc<str>,
    },
    /// Bytes were written.
    Write {
        /// The file's name.
        name: Arc<str>,
        /// Where.
        offset: u64,
        /// How many.
        bytes: usize,
    },
    /// A file was cut or grown.
    Truncate {
        /// Its name.
        name: Arc<str>,
        /// To how many bytes.
        size: u64,
    },
    /// A file was synced.
    Sync {
        /// Its name.
        name: Arc<str>,
    },
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create { name } => write!(f, "create {name}"),
            Self::Delete { name } => write!(f, "delete {name}"),
            Self::Write { name, offset, bytes } => write!(f, "write {name} {offset}+{bytes}"),
            Self::Truncate { name, size } => write!(f, "truncate {name} to {size}"),
            Self::Sync { name } => write!(f, "sync {name}"),
        }
    }
}

impl SimulatedDisk {
    /// An empty disk.
    #[expect(
        clippy::new_without_default,
        reason = "each disk is a place of its own: there is no default one"
    )]
    pub fn new() -> Self {
        Self::holding(State::default())
    }

    fn holding(state: State) -> Self {
        let slot = vfs::take();
        let shared = Arc::new(Shared { state: Mutex::new(state), slot });
        slot.point_to(&shared);
        Self { shared }
    }

    /// The name to open a database on this disk with. No other disk has it while this one lives.
    pub fn vfs_name(&self) -> &str {
        self.shared.slot.name()
    }

    /// How many operations the journal holds: a moment that [`SimulatedDisk::crash_at`] understands. Whatever was acknowledged before this
    /// was read must survive a crash at this step and at any later one.
    pub fn step(&self) -> usize {
        self.shared.lock().journal.len()
    }

    /// The journal, one operation per step. Operation `n` has happened in a crash at any step above `n`.
    pub fn operations(&self) -> Vec<Operation> {
        self.shared.lock().journal.operations()
    }

    /// What was done so far.
    pub fn counts(&self) -> Counts {
        self.shared.lock().counts
    }

    /// How many bytes the files take.
    pub fn used(&self) -> u64 {
        self.shared.lock().used()
    }

    /// A new disk with what a power loss at a step could leave of this one. Faults and counts start afresh. The new disk has a
    /// journal of its own, so a crash during the recovery from a crash can be looked at too.
    pub fn crash_at(&self, step: usize, survival: Survival) -> SimulatedDisk {
        let remains = self.shared.lock().journal.crash_at(step, survival);
        Self::holding(State::remaining(remains))
    }

    /// A bound on the bytes that all files take together, or none. A write past it is cut short where the space ends, and fails
    /// as on a full disk.
    pub fn set_quota(&self, bytes: Option<u64>) {
        self.shared.lock().faults.quota = bytes;
    }

    /// From now on lets this many operations of the fault's kind through and fails those after, until [`SimulatedDisk::heal`].
    pub fn fail_after(&self, operations: u64, fault: DiskFault) {
        self.shared.lock().faults.armed = Some((fault, operations));
    }

    /// Takes back every fault and the quota.
    pub fn heal(&self) {
        let faults = &mut self.shared.lock().faults;
        faults.armed = None;
        faults.quota = None;
    }

    /// A planted bug: syncs report success and do nothing.
    pub fn ignore_syncs(&self, ignore: bool) {
        self.shared.lock().faults.ignore_syncs = ignore;
    }

    /// How long each sync takes. A slow sync also covers what other threads write to the same file meanwhile.
    pub fn set_sync_delay(&self, delay: Duration) {
        self.shared.lock().sync_delay = delay;
    }
}

impl fmt::Debug for SimulatedDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Disk").field("vfs", &self.vfs_name()).field("step", &self.step()).finish()
    }
}
