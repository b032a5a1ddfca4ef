//! Files with secrets in them: read only if they are the owner's alone, replaced as a whole, and written by one process at a time.

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

/// Bits of a mode that give something to others than the owner.
const OTHERS: u32 = 0o077;

/// No file of secrets is larger.
const MOST: u64 = 16 * 1024 * 1024;

/// How often, and after which pause, a lock is tried again that another process has.
const TRIES: u32 = 1_000;
const PAUSE: Duration = Duration::from_millis(10);

/// What a failure of the system means.
pub(crate) fn failed(path: &Path, doing: &str, error: &io::Error) -> Problem {
    let text = error.to_string();
    let words = text.split(" (os error").next().unwrap_or(&text).to_lowercase();
    Problem::in_file(Code::SecretsUnreadable, path, format!("{} cannot be {doing}: {words}", path.display()))
}

/// A file that is the owner's alone, opened.
pub(crate) struct Private {
    file: File,
    path: PathBuf,
    found: Metadata,
}

impl Private {
    /// Opens a file; none if there is none. A link, a folder, a file of another user's and one that others can reach are refused, as their
    /// content may be another's, or known to others.
    pub(crate) fn open(path: &Path) -> Result<Option<Self>, Problem> {
        // Not waiting: to open a pipe would be to wait for somebody to write.
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
            let what = format!("{} is not a file", path.display());
            return Err(Problem::in_file(Code::SecretsUnreadable, path, what).help("Move it away."));
        }
        owned_alone(path, &found)?;
        Ok(Some(Self { file, path: path.to_owned(), found }))
    }

    /// What tells this file from any that replaces it.
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
        if self.found.len() > MOST {
            let what = format!("{} is too large to be a file of secrets", self.path.display());
            return Err(Problem::in_file(Code::SecretsUnreadable, &self.path, what));
        }
        // Room for all of it at once, so that no part is left behind where a smaller room was.
        let room = usize::try_from(self.found.len()).unwrap_or_default() + 1;
        let mut bytes = Zeroizing::new(Vec::with_capacity(room));
        let read = self.file.take(MOST).read_to_end(&mut bytes);
        read.map_err(|error| failed(&self.path, "read", &error))?;
        Ok(bytes)
    }
}

/// Which file it was, and in which state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp([i128; 5]);

fn linked(path: &Path) -> Problem {
    let what = format!("{} is a link, and secrets are not followed to other places", path.display());
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
        let what = format!("others can reach {} (mode {mode:03o}), so it was not used", path.display());
        let help = format!(
            "`chmod 600 {}`, and set secrets anew that others may have read in the meantime.",
            path.display()
        );
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

/// The right to write secrets in a home. It ends when this is dropped, and when the process does.
#[derive(Debug)]
pub(crate) struct WriteLock {
    _file: File,
}

impl WriteLock {
    /// Waits for the right, for some seconds.
    pub(crate) fn take(home: &Path) -> Result<Self, Problem> {
        Self::take_within(home, TRIES)
    }

    pub(crate) fn take_within(home: &Path, tries: u32) -> Result<Self, Problem> {
        let path = home.join("secrets.lock");
        let failed = |error: io::Error| failed(&path, "locked", &error);
        let flags = i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or_default();
        let mut options = OpenOptions::new();
        let options = options.write(true).create(true).truncate(false).mode(0o600).custom_flags(flags);
        let file = options.open(&path).map_err(failed)?;
        for _ in 0..tries {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _file: file }),
                Err(TryLockError::WouldBlock) => thread::sleep(PAUSE),
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
        }
        Err(Problem::in_file(Code::SecretsBusy, &path, "another process is writing secrets in this home"))
    }
}
