//! Removes a tree without recursion. A folder below the root gives its own folders to the root and is then empty, so that two handles
//! and no stack are enough for any depth, and every folder is moved once.

use std::ffi::CString;
use std::fs::Permissions;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::walk::FOLDER;

/// What a folder must allow its owner so that it can be emptied and moved.
const OPEN_TO_OWNER: Mode = Mode::RWXU;

/// Removes a folder with everything in it, whatever its depth and modes. Links are removed and not followed. Nothing else may change
/// the tree meanwhile. What cannot be removed stays, and the first reason is returned.
pub fn remove_tree(path: &Path) -> io::Result<()> {
    let root = open_folder(rustix::fs::CWD, &CString::new(path.as_os_str().as_encoded_bytes())?)?;
    empty(&root)?;
    std::fs::remove_dir(path)
}

fn empty(root: &OwnedFd) -> io::Result<()> {
    loop {
        let (mut progress, mut failed) = (false, None);
        for (name, kind) in entries(root)? {
            match remove_entry(root, &name, kind) {
                Ok(()) => progress = true,
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        match (progress, failed) {
            // What was moved up is removed in the next round.
            (true, _) => {}
            (false, Some(error)) => return Err(error.into()),
            (false, None) => return Ok(()),
        }
    }
}

/// Removes an entry of the root. Folders in a folder are moved into the root.
fn remove_entry(root: &OwnedFd, name: &CString, kind: FileType) -> rustix::io::Result<()> {
    if kind != FileType::Directory {
        match rustix::fs::unlinkat(root, name, AtFlags::empty()) {
            // Some file systems do not say what an entry is.
            Err(Errno::ISDIR | Errno::PERM) if kind == FileType::Unknown => {}
            removed => return removed,
        }
    }
    match rustix::fs::unlinkat(root, name, AtFlags::REMOVEDIR) {
        Err(Errno::NOTEMPTY | Errno::EXIST | Errno::ACCESS) => {}
        removed => return removed,
    }
    let folder = open_folder(root, name)?;
    for (inside, kind) in entries(&folder)? {
        if kind != FileType::Directory {
            match rustix::fs::unlinkat(&folder, &inside, AtFlags::empty()) {
                Err(Errno::ISDIR | Errno::PERM) if kind == FileType::Unknown => {}
                removed => {
                    removed?;
                    continue;
                }
            }
        }
        match rustix::fs::unlinkat(&folder, &inside, AtFlags::REMOVEDIR) {
            Err(Errno::NOTEMPTY | Errno::EXIST | Errno::ACCESS) => move_up(root, &folder, &inside)?,
            removed => removed?,
        }
    }
    rustix::fs::unlinkat(root, name, AtFlags::REMOVEDIR)
}

/// Moves a folder into the root, under a name that is not in use there.
fn move_up(root: &OwnedFd, folder: &OwnedFd, name: &CString) -> rustix::io::Result<()> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    loop {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let fresh = format!(".holdfast-removal-{}-{count}", std::process::id());
        match rustix::fs::renameat(folder, name, root, &*fresh) {
            Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR) => {}
            // Moving a folder changes its `..`, which its mode may forbid.
            Err(Errno::ACCESS) => {
                drop(open_folder(folder, name)?);
                return rustix::fs::renameat(folder, name, root, &*fresh);
            }
            moved => return moved,
        }
    }
}

/// Opens a folder, and no link to one. Its owner gets every right on it.
fn open_folder(parent: impl rustix::fd::AsFd, name: &CString) -> rustix::io::Result<OwnedFd> {
    let parent = parent.as_fd();
    let opened = match rustix::fs::openat(parent, name, FOLDER, Mode::empty()) {
        Err(Errno::ACCESS) => {
            allow_owner(parent, name)?;
            rustix::fs::openat(parent, name, FOLDER, Mode::empty())?
        }
        opened => opened?,
    };
    let mode = Mode::from_raw_mode(rustix::fs::fstat(&opened)?.st_mode);
    if !mode.contains(OPEN_TO_OWNER) {
        // Of another user's folder the mode cannot change; what follows says why it stays.
        let _ = rustix::fs::fchmod(&opened, OPEN_TO_OWNER);
    }
    Ok(opened)
}

/// Changes the mode of a folder that cannot be opened, without following a link.
#[cfg(target_os = "linux")]
fn allow_owner(parent: rustix::fd::BorrowedFd<'_>, name: &CString) -> rustix::io::Result<()> {
    use std::os::fd::AsRawFd;

    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let found = rustix::fs::openat(parent, name, flags, Mode::empty())?;
    rustix::fs::chmod(format!("/proc/self/fd/{}", found.as_raw_fd()), OPEN_TO_OWNER)
}

#[cfg(not(target_os = "linux"))]
fn allow_owner(parent: rustix::fd::BorrowedFd<'_>, name: &CString) -> rustix::io::Result<()> {
    rustix::fs::chmodat(parent, name, OPEN_TO_OWNER, AtFlags::SYMLINK_NOFOLLOW)
}

/// The entries of a folder, by name and kind.
fn entries(folder: &OwnedFd) -> rustix::io::Result<Vec<(CString, FileType)>> {
    let mut found = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if name != c"." && name != c".." {
            found.push((name.to_owned(), entry.file_type()));
        }
    }
    Ok(found)
}

/// A temporary folder that untrusted code may fill. It is removed when this is dropped, with everything in it.
#[derive(Debug)]
pub struct TempFolder(PathBuf);

impl TempFolder {
    /// A folder in the system's folder for temporary files, for the owner only.
    pub fn new() -> io::Result<Self> {
        Self::within(&std::env::temp_dir())
    }

    /// A folder in this one, for the owner only.
    pub fn within(parent: &Path) -> io::Result<Self> {
        let private = Permissions::from_mode(0o700);
        let made = tempfile::Builder::new().prefix("holdfast-").permissions(private).tempdir_in(parent)?;
        Ok(Self(made.keep()))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Keeps it, in another place. It is removed if it cannot be moved there.
    pub fn keep_as(mut self, place: &Path) -> io::Result<()> {
        std::fs::rename(&self.0, place)?;
        // Nothing is left to remove.
        self.0 = PathBuf::new();
        Ok(())
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        if !self.0.as_os_str().is_empty() {
            // What the system does not remove stays, as it would after a crash.
            let _ = remove_tree(&self.0);
        }
    }
}
