//! Looks through a tree of any depth, from handle to handle.

use std::ffi::CString;
use std::io;
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

/// Levels of a tree whose handles are kept. Below them the way back leads through `..`.
const MAX_KEPT_HANDLES: usize = 64;

/// Opens a folder and no link to one.
pub(crate) const FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// An entry of a folder, as [`walk`] finds it.
pub struct FoundEntry {
    /// Folders above it, the root included.
    pub depth: usize,
    /// Whether it is a folder.
    pub is_folder: bool,
    /// Whether it is a regular file.
    pub is_file: bool,
    /// Its device and inode.
    pub identity: (u64, u64),
    /// How many names it has.
    pub links: u64,
    /// Bytes that it takes on the disk.
    pub disk_bytes: u64,
}

impl FoundEntry {
    #[allow(
        clippy::unnecessary_cast,
        clippy::useless_conversion,
        reason = "not the same width on every system"
    )]
    fn new(stat: &Stat, depth: usize) -> Self {
        let kind = FileType::from_raw_mode(stat.st_mode);
        Self {
            depth,
            is_folder: kind == FileType::Directory,
            is_file: kind == FileType::RegularFile,
            identity: identity(stat),
            links: stat.st_nlink as u64,
            disk_bytes: (stat.st_blocks as u64).saturating_mul(512),
        }
    }
}

#[allow(clippy::unnecessary_cast, reason = "not the same width on every system")]
fn identity(stat: &Stat) -> (u64, u64) {
    (stat.st_dev as u64, stat.st_ino as u64)
}

/// A folder on the way down.
struct Level {
    identity: (u64, u64),
    /// Its handle, unless it is too far down.
    handle: Option<OwnedFd>,
    /// Folders in it that were not looked at yet.
    left: Vec<CString>,
}

/// Visits every entry below a folder, until the visitor breaks. Links are visited and not followed. What was removed meanwhile is
/// passed over; what cannot be read is an error, and so is a tree that is moved while its depths are read.
pub fn walk(root: &Path, visit: &mut dyn FnMut(&FoundEntry) -> ControlFlow<()>) -> io::Result<()> {
    walk_all(root, &mut Err::<(), io::Error>, visit)
}

/// The same, and passes over what cannot be read and what is moved meanwhile: for trees whose owner may do that at will.
pub fn walk_readable(root: &Path, visit: &mut dyn FnMut(&FoundEntry) -> ControlFlow<()>) -> io::Result<()> {
    walk_all(root, &mut |_| Ok(()), visit)
}

/// Visits every entry; what cannot be read is an error if the caller says so.
fn walk_all(
    root: &Path,
    unread: &mut dyn FnMut(io::Error) -> io::Result<()>,
    visit: &mut dyn FnMut(&FoundEntry) -> ControlFlow<()>,
) -> io::Result<()> {
    let mut current = rustix::fs::open(root, FOLDER, Mode::empty())?;
    let mut levels: Vec<Level> = Vec::new();
    let Some(first) = enter(&current, 1, visit)? else { return Ok(()) };
    levels.push(first);
    loop {
        let depth = levels.len();
        let Some(level) = levels.last_mut() else { return Ok(()) };
        let Some(name) = level.left.pop() else {
            levels.pop();
            let Some(level) = levels.last() else { return Ok(()) };
            let above = match &level.handle {
                Some(handle) => handle.try_clone(),
                None => parent(&current, level.identity),
            };
            match above {
                Ok(above) => current = above,
                Err(error) => {
                    unread(error)?;
                    // The way back is lost as far as no handle was kept.
                    levels
                        .iter_mut()
                        .filter(|level| level.handle.is_none())
                        .for_each(|level| level.left.clear());
                }
            }
            continue;
        };
        let child = match rustix::fs::openat(&current, &name, FOLDER, Mode::empty()) {
            Ok(child) => child,
            // It was removed, or replaced by something other than a folder.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => continue,
            Err(error) => {
                unread(error.into())?;
                continue;
            }
        };
        let mut entered = match enter(&child, depth + 1, visit) {
            Ok(Some(entered)) => entered,
            Ok(None) => return Ok(()),
            Err(error) => {
                unread(error)?;
                continue;
            }
        };
        if depth < MAX_KEPT_HANDLES {
            entered.handle = Some(child.try_clone()?);
        }
        if let (1, Some(root)) = (depth, levels.first_mut()) {
            root.handle.get_or_insert(current);
        }
        current = child;
        levels.push(entered);
    }
}

/// The folder above, if it is still the one that the way down led through.
fn parent(folder: &OwnedFd, expected: (u64, u64)) -> io::Result<OwnedFd> {
    let above = rustix::fs::openat(folder, c"..", FOLDER, Mode::empty())?;
    if identity(&rustix::fs::fstat(&above)?) != expected {
        return Err(io::Error::other("a folder was moved while it was read"));
    }
    Ok(above)
}

/// Visits what is in a folder; nothing if the visitor broke off.
fn enter(
    folder: &OwnedFd,
    depth: usize,
    visit: &mut dyn FnMut(&FoundEntry) -> ControlFlow<()>,
) -> io::Result<Option<Level>> {
    let identity = identity(&rustix::fs::fstat(folder)?);
    let mut left = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        let stat = match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => continue,
            Err(error) => return Err(error.into()),
        };
        let found = FoundEntry::new(&stat, depth);
        if visit(&found).is_break() {
            return Ok(None);
        }
        if found.is_folder {
            left.push(name.to_owned());
        }
    }
    Ok(Some(Level { identity, handle: None, left }))
}
