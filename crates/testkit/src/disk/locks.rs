//! SQLite's locks on a file and the shared memory beside it, between the connections of this process.
//!
//! File locks guard rollback journals and the step into WAL mode; the eight locks of the shared memory guard the WAL.

use std::collections::BTreeSet;
use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use rusqlite::ffi;

/// An open file, as locks know it.
pub(super) type HandleId = u64;

/// SQLite's answer when something cannot be had or done.
pub(super) type Refusal = c_int;

/// How far a connection has locked a file. Pending is a state of the lock, never asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    #[default]
    Unlocked,
    Shared,
    Reserved,
    Exclusive,
}

impl Level {
    pub(super) fn from_sqlite(level: c_int) -> Level {
        match level {
            ffi::SQLITE_LOCK_NONE => Level::Unlocked,
            ffi::SQLITE_LOCK_SHARED => Level::Shared,
            ffi::SQLITE_LOCK_RESERVED => Level::Reserved,
            _ => Level::Exclusive,
        }
    }
}

/// Who holds a file.
#[derive(Default)]
pub(super) struct FileLock {
    readers: BTreeSet<HandleId>,
    reserved: Option<HandleId>,
    /// Waits for the readers to leave, or is alone: nobody else gets in.
    pending: Option<HandleId>,
}

impl FileLock {
    pub(super) fn raise(&mut self, handle: HandleId, level: Level) -> Result<(), Refusal> {
        let others = |holder: Option<HandleId>| holder.is_some_and(|holder| holder != handle);
        match level {
            Level::Unlocked => {}
            Level::Shared => {
                if others(self.pending) {
                    return Err(ffi::SQLITE_BUSY);
                }
                self.readers.insert(handle);
            }
            Level::Reserved => {
                if others(self.reserved) || others(self.pending) {
                    return Err(ffi::SQLITE_BUSY);
                }
                self.reserved = Some(handle);
            }
            Level::Exclusive => {
                if others(self.reserved) || others(self.pending) {
                    return Err(ffi::SQLITE_BUSY);
                }
                self.pending = Some(handle);
                if self.readers.iter().any(|reader| *reader != handle) {
                    return Err(ffi::SQLITE_BUSY);
                }
                self.reserved = Some(handle);
            }
        }
        Ok(())
    }

    pub(super) fn lower(&mut self, handle: HandleId, level: Level) {
        if level < Level::Reserved {
            self.reserved.take_if(|holder| *holder == handle);
            self.pending.take_if(|holder| *holder == handle);
        }
        if level == Level::Unlocked {
            self.readers.remove(&handle);
        }
    }

    pub(super) fn is_reserved(&self) -> bool {
        self.reserved.is_some() || self.pending.is_some()
    }
}

const SLOTS: usize = ffi::SQLITE_SHM_NLOCK as usize;

/// A request for, or the return of, a run of shared-memory locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SharedMemoryLock {
    TakeShared,
    TakeExclusive,
    GiveBackShared,
    GiveBackExclusive,
}

impl SharedMemoryLock {
    pub(super) fn from_sqlite(flags: c_int) -> Result<Self, Refusal> {
        const TAKE_SHARED: c_int = ffi::SQLITE_SHM_LOCK | ffi::SQLITE_SHM_SHARED;
        const TAKE_EXCLUSIVE: c_int = ffi::SQLITE_SHM_LOCK | ffi::SQLITE_SHM_EXCLUSIVE;
        const GIVE_BACK_SHARED: c_int = ffi::SQLITE_SHM_UNLOCK | ffi::SQLITE_SHM_SHARED;
        const GIVE_BACK_EXCLUSIVE: c_int = ffi::SQLITE_SHM_UNLOCK | ffi::SQLITE_SHM_EXCLUSIVE;
        match flags {
            TAKE_SHARED => Ok(Self::TakeShared),
            TAKE_EXCLUSIVE => Ok(Self::TakeExclusive),
            GIVE_BACK_SHARED => Ok(Self::GiveBackShared),
            GIVE_BACK_EXCLUSIVE => Ok(Self::GiveBackExclusive),
            _ => Err(ffi::SQLITE_IOERR_SHMLOCK),
        }
    }
}

/// The memory that connections in WAL mode share, and its locks. It is dropped when the last one unlocks, so the next one
/// recovers the index from the log.
#[derive(Default)]
pub(super) struct SharedMemory {
    regions: Vec<Region>,
    users: BTreeSet<HandleId>,
    slots: [SlotHolders; SLOTS],
}

#[derive(Default)]
struct SlotHolders {
    shared: BTreeSet<HandleId>,
    exclusive: Option<HandleId>,
}

/// A zeroed, never moving piece of memory that SQLite writes to from any thread; nothing here looks into it. Whole words, so that
/// what SQLite keeps in it is aligned.
pub(super) type Region = Arc<[AtomicU64]>;

impl SharedMemory {
    /// The region with an index, made if it is not there yet and the caller extends the memory.
    pub(super) fn map(
        &mut self,
        handle: HandleId,
        index: usize,
        size: usize,
        extend: bool,
    ) -> Option<Region> {
        self.users.insert(handle);
        while extend && self.regions.len() <= index {
            self.regions.push((0..size.div_ceil(size_of::<u64>())).map(|_| AtomicU64::new(0)).collect());
        }
        self.regions.get(index).cloned()
    }

    pub(super) fn unmap(&mut self, handle: HandleId) {
        for slot in &mut self.slots {
            slot.shared.remove(&handle);
            slot.exclusive.take_if(|holder| *holder == handle);
        }
        self.users.remove(&handle);
        if self.users.is_empty() {
            self.regions.clear();
        }
    }

    pub(super) fn lock(
        &mut self,
        handle: HandleId,
        first: usize,
        count: usize,
        request: SharedMemoryLock,
    ) -> Result<(), Refusal> {
        let slots = self.slots.get_mut(first..first + count).ok_or(ffi::SQLITE_IOERR_SHMLOCK)?;
        let elsewhere = |slot: &SlotHolders| slot.exclusive.is_some_and(|holder| holder != handle);
        match request {
            SharedMemoryLock::TakeShared => {
                if slots.iter().any(elsewhere) {
                    return Err(ffi::SQLITE_BUSY);
                }
                slots.iter_mut().for_each(|slot| {
                    slot.shared.insert(handle);
                });
            }
            SharedMemoryLock::TakeExclusive => {
                if slots
                    .iter()
                    .any(|slot| elsewhere(slot) || slot.shared.iter().any(|holder| *holder != handle))
                {
                    return Err(ffi::SQLITE_BUSY);
                }
                slots.iter_mut().for_each(|slot| slot.exclusive = Some(handle));
            }
            SharedMemoryLock::GiveBackShared => slots.iter_mut().for_each(|slot| {
                slot.shared.remove(&handle);
            }),
            SharedMemoryLock::GiveBackExclusive => slots.iter_mut().for_each(|slot| {
                slot.exclusive.take_if(|holder| *holder == handle);
            }),
        }
        Ok(())
    }
}
