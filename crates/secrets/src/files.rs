//! Files with secrets: read only if no other user has access, replaced atomically, and written by one process at a time.

use std::fs::{File, Metadata, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use holdfast_atomic_file::FileDraft;
use holdfast_contract::problem::{Code, Problem};
use rustix::fs::OFlags;
use secrecy::zeroize::Zeroizing;

/// The permission bits of group and others.
const OTHERS: u32 = 0o077;

/// The maximal size of a file with secrets.
const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// How often, and after which pause, a lock of another process is retried.
const LOCK_ATTEMPTS: u32 = 1_000;
const LOCK_RETRY_PAUSE: Duration = Duration::from_millis(10);

/// An I/O error as a problem.
pub(crate) fn failed(path: &Path, doing: &str, error: &io::Error) -> Problem {
    let text = error.to_string();
    let words = text.split(" (os error").next().unwrap_or(&text).to_lowercase();
    Problem::in_file(Code::SecretsUnreadable, path, format!("{} cannot be {doing}: {words}", path.display()))
}

/// An open file that no other user has access to.
pub(crate) struct Private {
    file: File,
    path: PathBuf,
    found: Metadata,
}

impl Private {
    /// Opens a file; none if it does not exist. Links, folders, files of other users and files that others can access are rejected: their
    /// content may come from others or be known to them.
    pub(crate) fn open(path: &Path) -> Result<Option<Self>, Problem> {
        // Non-blocking: opening a pipe would wait for a writer.
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
        let flags = i32::try_from(flags).unwrap_or_default();
        let opened = OpenOptions::new().read(true).custom_flags(flags).open(path);
        let file = match opened {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(_) if path.is_symlink() => return Err(linked(path)),
            opened => opened.map_err(|error| failed(path, "read", &error))?,
        };
        let found = file.metadata().map_err(|error| failed(path, "read", &error))?;
        if !found.is_file() {
            return Err(irregular(path));
        }
        owned_alone(path, &found)?;
        Ok(Some(Self { file, path: path.to_owned(), found }))
    }

    /// Identifies the file and its state, to detect a replacement.
    pub(crate) fn stamp(&self) -> Stamp {
        let found = &self.found;
        Stamp([
            i128::from(found.dev()),
            i128::from(found.ino()),
            i128::from(found.size()),
            i128::from(found.mtime()) << 32 | i128::from(found.mtime_nsec()),
            i128::from(found.ctime()) << 32 | i128::from(found.ctime_nsec()),
        ])
    }

    /// Its bytes.
    pub(crate) fn read(self) -> Result<Zeroizing<Vec<u8>>, Problem> {
        if self.found.len() > MAX_BYTES {
            let what = format!("{} is too large to be a file of secrets", self.path.display());
            return Err(Problem::in_file(Code::SecretsUnreadable, &self.path, what));
        }
        // The full capacity from the start: a reallocation would leave parts of the secrets in freed memory.
        let capacity = usize::try_from(self.found.len()).unwrap_or_default() + 1;
        let mut bytes = Zeroizing::new(Vec::with_capacity(capacity));
        let read = self.file.take(MAX_BYTES).read_to_end(&mut bytes);
        read.map_err(|error| failed(&self.path, "read", &error))?;
        Ok(bytes)
    }
}

/// The identity and state of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp([i128; 5]);

fn irregular(path: &Path) -> Problem {
    let what = format!("{} is not a file", path.display());
    Problem::in_file(Code::SecretsUnreadable, path, what).help("Move it away.")
}

fn linked(path: &Path) -> Problem {
    let what = format!("{} is a link; links to secrets are not followed", path.display());
    Problem::in_file(Code::SecretsUnreadable, path, what).help("Put the file itself there.")
}

fn owned_alone(path: &Path, found: &Metadata) -> Result<(), Problem> {
    let (owner, user) = (found.uid(), rustix::process::geteuid());
    if !user.is_root() && owner != user.as_raw() {
        let what = format!("{} belongs to another user", path.display());
        return Err(
            Problem::in_file(Code::SecretsExposed, path, what).help("Move it away, or make it yours.")
        );
    }
    let mode = found.mode() & 0o777;
    if mode & OTHERS != 0 {
        let what = format!("other users can access {} (mode {mode:03o}), so it was not used", path.display());
        let help =
            format!("Run `chmod 600 {}`, and replace secrets that others may have read.", path.display());
        return Err(Problem::in_file(Code::SecretsExposed, path, what).help(help));
    }
    Ok(())
}

/// Writes the new content of a file beside it. The caller has the write lock, so the draft has a fixed name, and one that a crash
/// left is removed rather than kept with secrets in it.
pub(crate) fn write_draft(path: &Path, bytes: &[u8]) -> Result<PrivateDraft, Problem> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let draft = path.with_file_name(format!(".{name}.draft"));
    let written = FileDraft::write(draft, path, bytes, 0o600);
    let draft = written.map_err(|error| failed(path, "written", &error))?;
    Ok(PrivateDraft { draft, path: path.to_owned() })
}

/// The new content of a file, on disk and not yet in its place.
pub(crate) struct PrivateDraft {
    draft: FileDraft,
    path: PathBuf,
}

impl PrivateDraft {
    /// Replaces the file atomically. A link is not followed.
    pub(crate) fn commit(self) -> Result<(), Problem> {
        if self.path.is_symlink() {
            return Err(linked(&self.path));
        }
        self.draft.commit().map_err(|error| failed(&self.path, "written", &error))
    }

    /// Creates the file unless it exists; then it stays.
    pub(crate) fn commit_new(self) -> Result<(), Problem> {
        self.draft.commit_new().map(drop).map_err(|error| failed(&self.path, "written", &error))
    }
}

/// The write lock for the secrets of a home. It is released on drop, and when the process ends.
#[derive(Debug)]
pub(crate) struct WriteLock {
    _file: File,
}

impl WriteLock {
    /// Waits for the lock, with a timeout of some seconds.
    pub(crate) fn take(home: &Path) -> Result<Self, Problem> {
        Self::take_within(home, LOCK_ATTEMPTS)
    }

    pub(crate) fn take_within(home: &Path, tries: u32) -> Result<Self, Problem> {
        let path = home.join("secrets.lock");
        let failed = |error: io::Error| failed(&path, "locked", &error);
        // Non-blocking: opening a pipe would wait for a reader.
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
        let flags = i32::try_from(flags).unwrap_or_default();
        let mut options = OpenOptions::new();
        let options = options.write(true).create(true).truncate(false).mode(0o600).custom_flags(flags);
        let file = options.open(&path).map_err(failed)?;
        if !file.metadata().map_err(failed)?.is_file() {
            return Err(irregular(&path));
        }
        for _ in 0..tries {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _file: file }),
                Err(TryLockError::WouldBlock) => thread::sleep(LOCK_RETRY_PAUSE),
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
        }
        Err(Problem::in_file(Code::SecretsBusy, &path, "another process is writing secrets in this home"))
    }
}
