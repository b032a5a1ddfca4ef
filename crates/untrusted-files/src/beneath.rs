//! Opens paths relative to a handle, without leaving its folder. On Linux the kernel resolves the path and refuses every step that
//! leads out, also under concurrent changes of the tree. On other systems the path is walked name by name, and links are not
//! followed.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags};
use rustix::io::{Errno, Result};

#[cfg(target_os = "linux")]
pub use self::linux::{find, folder, reopen, true_path};
#[cfg(not(target_os = "linux"))]
pub use self::stepwise::{find, folder, reopen, true_path};

/// Why an open failed, for messages.
pub fn because(error: Errno) -> String {
    match error {
        Errno::XDEV => "it leads out of the folder".to_owned(),
        Errno::LOOP => "it goes through a link that is not followed, or through too many".to_owned(),
        Errno::NOENT => "there is no such file or folder".to_owned(),
        Errno::NOTDIR => "something on the way is not a folder".to_owned(),
        Errno::NAMETOOLONG => "it is too long".to_owned(),
        Errno::ACCESS | Errno::PERM => "the system denies it".to_owned(),
        Errno::AGAIN => "the folders above it change all the time".to_owned(),
        Errno::NOSYS => "this kernel has no openat2; Linux 5.6 or newer is needed".to_owned(),
        other => other.to_string(),
    }
}

/// Writes a file into a folder atomically: what was there stays until the new content is synced to disk. With the mode of the file that
/// is replaced; without one, nothing of this name may be there.
pub fn replace_file(parent: &OwnedFd, name: &OsStr, bytes: &[u8], mode: Option<Mode>) -> std::io::Result<()> {
    let temporary = Temporary::create(parent)?;
    temporary.fill(bytes, mode)?;
    match mode {
        Some(_) => rustix::fs::renameat(parent, &temporary.name, parent, name)?,
        None => {
            rustix::fs::renameat_with(parent, &temporary.name, parent, name, RenameFlags::NOREPLACE)?;
        }
    }
    Ok(rustix::fs::fsync(parent)?)
}

/// A temporary file, removed unless it was renamed.
struct Temporary<'a> {
    parent: &'a OwnedFd,
    name: String,
    file: File,
}

impl<'a> Temporary<'a> {
    fn create(parent: &'a OwnedFd) -> std::io::Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!(".holdfast-{}-{count}.tmp", std::process::id());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let handle = rustix::fs::openat(parent.as_fd(), &name, flags, Mode::from_raw_mode(0o666))?;
        Ok(Self { parent, name, file: File::from(handle) })
    }

    fn fill(&self, bytes: &[u8], mode: Option<Mode>) -> std::io::Result<()> {
        (&self.file).write_all(bytes)?;
        if let Some(mode) = mode {
            rustix::fs::fchmod(&self.file, mode)?;
        }
        self.file.sync_all()
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        // After a rename no file has this name, and the error is expected.
        let _ = rustix::fs::unlinkat(self.parent, &self.name, AtFlags::empty());
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::os::fd::AsRawFd;

    use rustix::fs::{ResolveFlags, openat2};

    use super::*;

    /// How often resolving a path is retried when a parent folder moves concurrently.
    const MAX_ATTEMPTS: usize = 128;

    fn open(root: impl AsFd, path: &Path, flags: OFlags) -> Result<OwnedFd> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        for _ in 0..MAX_ATTEMPTS {
            match openat2(root.as_fd(), path, flags | OFlags::CLOEXEC, Mode::empty(), resolve) {
                Err(Errno::AGAIN) => {}
                other => return other,
            }
        }
        Err(Errno::AGAIN)
    }

    /// A handle on what the path names. It only locates the file (`O_PATH`), so opening has no effect on a device or pipe.
    pub fn find(root: impl AsFd, path: &Path) -> Result<OwnedFd> {
        open(root, path, OFlags::PATH)
    }

    /// A handle on a folder, to read it and to create in it.
    pub fn folder(root: impl AsFd, path: &Path) -> Result<OwnedFd> {
        open(root, path, OFlags::RDONLY | OFlags::DIRECTORY)
    }

    /// The file of a handle, opened for reading.
    pub fn reopen(handle: OwnedFd) -> Result<OwnedFd> {
        let path = format!("/proc/self/fd/{}", handle.as_raw_fd());
        rustix::fs::open(path, OFlags::RDONLY | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())
    }

    /// The path of a handle, with all links resolved.
    pub fn true_path(handle: &OwnedFd, _: &Path, _: &Path) -> Result<PathBuf> {
        let link = format!("/proc/self/fd/{}", handle.as_raw_fd());
        std::fs::read_link(link).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
    }
}

#[cfg(any(test, not(target_os = "linux")))]
#[cfg_attr(
    target_os = "linux",
    allow(dead_code, reason = "tried by the tests of this system, used on others")
)]
pub(crate) mod stepwise {
    use std::path::Component;

    use rustix::fs::openat;

    use super::*;

    const STEP: OFlags =
        OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
    const LAST: OFlags = OFlags::RDONLY
        .union(OFlags::NONBLOCK)
        .union(OFlags::NOCTTY)
        .union(OFlags::NOFOLLOW)
        .union(OFlags::CLOEXEC);

    fn open(root: impl AsFd, path: &Path, last: OFlags) -> Result<OwnedFd> {
        let mut names: Vec<&OsStr> = Vec::new();
        for component in path.components() {
            match component {
                Component::Normal(name) => names.push(name),
                Component::CurDir => {}
                _ => return Err(Errno::XDEV),
            }
        }
        let mut handle = openat(root, ".", STEP, Mode::empty())?;
        let Some((file, folders)) = names.split_last() else { return Ok(handle) };
        for folder in folders {
            handle = openat(&handle, *folder, STEP, Mode::empty())?;
        }
        openat(&handle, *file, last, Mode::empty())
    }

    /// A handle on what the path names, already open for reading.
    pub fn find(root: impl AsFd, path: &Path) -> Result<OwnedFd> {
        open(root, path, LAST)
    }

    /// A handle on a folder, to read it and to create in it.
    pub fn folder(root: impl AsFd, path: &Path) -> Result<OwnedFd> {
        open(root, path, STEP)
    }

    /// The file of a handle; it is open for reading already.
    pub fn reopen(handle: OwnedFd) -> Result<OwnedFd> {
        Ok(handle)
    }

    /// The path of a handle: since links are not followed, it is the given one.
    pub fn true_path(_: &OwnedFd, root: &Path, path: &Path) -> Result<PathBuf> {
        Ok(root.join(path))
    }
}
