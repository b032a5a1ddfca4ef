//! A disk as it is now: its files, their names, and the faults it was told to have. Every change goes into the journal.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::ffi;

use super::image::Image;
use super::journal::{FileId, Journal, Remains};
use super::locks::{FileLock, HandleId, Refusal, SharedMemory};
use super::{Counts, DiskFault};

#[derive(Default)]
pub(super) struct State {
    files: Vec<File>,
    names: BTreeMap<Arc<str>, FileId>,
    handles: HandleId,
    pub(super) journal: Journal,
    pub(super) counts: Counts,
    pub(super) faults: Faults,
    pub(super) sync_delay: Duration,
}

#[derive(Default)]
pub(super) struct Faults {
    pub(super) quota: Option<u64>,
    pub(super) ignore_syncs: bool,
    /// The fault, and how many operations of its kind are let through before.
    pub(super) armed: Option<(DiskFault, u64)>,
}

#[derive(Default)]
pub(super) struct File {
    image: Image,
    kind: Kind,
    pub(super) lock: FileLock,
    pub(super) memory: SharedMemory,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Lasting,
    /// A temporary file of SQLite's: not recorded, not counted, never full.
    Scratch,
}

impl State {
    /// A disk that begins with some files.
    pub(super) fn remaining(remains: Remains) -> Self {
        let mut state = Self::default();
        for (name, image) in remains {
            state.journal.begin_with(&name, &image);
            state.names.insert(name, state.files.len());
            state.files.push(File { image, ..File::default() });
        }
        state
    }

    pub(super) fn used(&self) -> u64 {
        self.names.values().map(|file| self.files[*file].image.length()).sum()
    }

    pub(super) fn file(&mut self, file: FileId) -> &mut File {
        &mut self.files[file]
    }

    pub(super) fn size(&self, file: FileId) -> u64 {
        self.files[file].image.length()
    }

    /// As SQLite's Unix VFS has it, an empty file counts as absent.
    pub(super) fn exists(&self, name: &str) -> bool {
        self.names.get(name).is_some_and(|file| self.size(*file) > 0)
    }

    pub(super) fn open(&mut self, name: Option<&str>, flags: c_int) -> Result<(FileId, HandleId), Refusal> {
        let file = match name {
            None => self.add(|journal| journal.scratch(), Kind::Scratch),
            Some(_) if flags & ffi::SQLITE_OPEN_DELETEONCLOSE != 0 => {
                self.add(|journal| journal.scratch(), Kind::Scratch)
            }
            Some(name) => match self.names.get(name) {
                Some(_) if flags & ffi::SQLITE_OPEN_EXCLUSIVE != 0 => return Err(ffi::SQLITE_CANTOPEN),
                Some(file) => *file,
                None if flags & ffi::SQLITE_OPEN_CREATE == 0 => return Err(ffi::SQLITE_CANTOPEN),
                None => {
                    let name: Arc<str> = name.into();
                    let file = self.add(|journal| journal.create(&name), Kind::Lasting);
                    self.names.insert(name, file);
                    file
                }
            },
        };
        self.handles += 1;
        Ok((file, self.handles))
    }

    fn add(&mut self, record: impl FnOnce(&mut Journal) -> FileId, kind: Kind) -> FileId {
        let file = record(&mut self.journal);
        self.files.push(File { kind, ..File::default() });
        file
    }

    pub(super) fn close(&mut self, file: FileId, handle: HandleId) {
        let file = &mut self.files[file];
        file.lock.lower(handle, super::locks::Level::Unlocked);
        file.memory.unmap(handle);
        if file.kind == Kind::Scratch {
            file.image.resize(0);
        }
    }

    pub(super) fn delete(&mut self, name: &str, sync_directory: bool) -> Result<(), Refusal> {
        let (name, file) = self.names.remove_entry(name).ok_or(ffi::SQLITE_IOERR_DELETE_NOENT)?;
        self.journal.delete(&name, file, sync_directory);
        Ok(())
    }

    pub(super) fn read(&mut self, file: FileId, offset: u64, buffer: &mut [u8]) -> Result<(), Refusal> {
        if self.strikes(DiskFault::Read) {
            return Err(ffi::SQLITE_IOERR_READ);
        }
        let count = self.files[file].image.read(offset, buffer);
        if count < buffer.len() {
            buffer[count..].fill(0);
            return Err(ffi::SQLITE_IOERR_SHORT_READ);
        }
        Ok(())
    }

    pub(super) fn write(&mut self, file: FileId, offset: u64, bytes: &[u8]) -> Result<(), Refusal> {
        if self.files[file].kind == Kind::Scratch {
            self.files[file].image.write(offset, bytes);
            return Ok(());
        }
        if self.strikes(DiskFault::FullDisk) {
            return Err(ffi::SQLITE_FULL);
        }
        if self.strikes(DiskFault::Write) {
            return Err(ffi::SQLITE_IOERR_WRITE);
        }
        let fitting = &bytes[..self.fitting(file, offset, bytes.len())];
        if !fitting.is_empty() {
            self.files[file].image.write(offset, fitting);
            self.journal.write(file, offset, fitting);
            self.counts.writes += 1;
            self.counts.bytes += fitting.len() as u64;
        }
        if fitting.len() < bytes.len() { Err(ffi::SQLITE_FULL) } else { Ok(()) }
    }

    /// How much of a write the quota has room for. Overwriting takes no room.
    fn fitting(&self, file: FileId, offset: u64, length: usize) -> usize {
        let Some(quota) = self.faults.quota else { return length };
        let room = self.size(file) + quota.saturating_sub(self.used());
        length.min(usize::try_from(room.saturating_sub(offset)).unwrap_or(usize::MAX))
    }

    pub(super) fn truncate(&mut self, file: FileId, size: u64) {
        self.files[file].image.resize(size);
        if self.files[file].kind == Kind::Lasting {
            self.journal.truncate(file, size);
        }
    }

    pub(super) fn sync(&mut self, file: FileId) -> Result<(), Refusal> {
        if self.files[file].kind == Kind::Scratch {
            return Ok(());
        }
        self.counts.syncs += 1;
        if self.strikes(DiskFault::Sync) {
            return Err(ffi::SQLITE_IOERR_FSYNC);
        }
        if !self.faults.ignore_syncs {
            self.journal.sync(file, &self.files[file].image);
        }
        Ok(())
    }

    /// Whether an operation of this kind fails now.
    fn strikes(&mut self, kind: DiskFault) -> bool {
        match &mut self.faults.armed {
            Some((fault, 0)) => *fault == kind,
            Some((fault, left)) if *fault == kind => {
                *left -= 1;
                false
            }
            _ => false,
        }
    }
}
