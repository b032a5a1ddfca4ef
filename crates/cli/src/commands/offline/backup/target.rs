//! The file that a backup is written to. It has a name only when it is whole: until then it is a file without a name, which the system
//! removes when the process ends, or, on file systems that have no such files, a hidden one that is removed when the backup fails.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use holdfast_contract::problem::{Code, Problem};
use holdfast_home::Home;

use crate::commands::offline::backup::archive::{Identity, identity};

/// How the names of temporary files and folders beside a backup begin.
pub(super) const PREFIX: &str = ".holdfast-backup";

/// Where a backup goes: a file that does not exist, in a folder outside of the home.
pub(super) struct Target {
    path: PathBuf,
    folder: PathBuf,
}

/// A backup that is being written.
pub(super) struct Draft {
    file: File,
    /// Where it is meanwhile, if it has a name.
    named: Option<tempfile::TempPath>,
}

impl Target {
    /// Checks where a backup is to go.
    pub(super) fn new(home: &Home, path: &Path) -> Result<Self, Problem> {
        let failed = |error| unwritable(path, error);
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let folder = folder.canonicalize().map_err(failed)?;
        let root = identity(&home.root().metadata().map_err(failed)?);
        let is_root = |above: &Path| above.metadata().is_ok_and(|above| identity(&above) == root);
        if folder.starts_with(home.canonical()) || folder.ancestors().any(is_root) {
            let what = format!("{} is inside the home, {}", path.display(), home.root().display());
            return Err(Problem::new(Code::BackupInside, what));
        }
        if path.symlink_metadata().is_ok() {
            return Err(failed(io::ErrorKind::AlreadyExists.into()));
        }
        Ok(Self { path: path.to_owned(), folder })
    }

    /// The folder that it goes to.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Begins the file.
    pub(super) fn draft(&self) -> Result<Draft, Problem> {
        let failed = |error| unwritable(&self.path, error);
        if let Some(file) = unnamed(&self.folder) {
            return Ok(Draft { file, named: None });
        }
        let named = tempfile::Builder::new().prefix(PREFIX).tempfile_in(&self.folder).map_err(failed)?;
        let (file, path) = named.into_parts();
        Ok(Draft { file, named: Some(path) })
    }

    /// Gives the file its name. One that has come to exist meanwhile is not replaced.
    pub(super) fn publish(&self, draft: Draft) -> Result<(), Problem> {
        let failed = |error| unwritable(&self.path, error);
        match draft.named {
            Some(named) => named.persist_noclobber(&self.path).map_err(|error| failed(error.error)),
            None => link(&draft.file, &self.path).map_err(failed),
        }
    }
}

impl Draft {
    /// Where its bytes go.
    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Which file it is.
    pub(super) fn identity(&self) -> io::Result<Identity> {
        Ok(identity(&self.file.metadata()?))
    }
}

/// What is said when a backup cannot be written.
pub(super) fn unwritable(path: &Path, error: io::Error) -> Problem {
    Problem::new(Code::StoreUnavailable, format!("{} cannot be written: {error}", path.display()))
}

/// A file without a name that can be given one, where the file system and `/proc` allow it.
#[cfg(target_os = "linux")]
fn unnamed(folder: &Path) -> Option<File> {
    use rustix::fs::{Mode, OFlags};

    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(folder, flags, Mode::from_raw_mode(0o600)).ok()?);
    Path::new(&number(&file)).exists().then_some(file)
}

#[cfg(target_os = "linux")]
fn link(file: &File, path: &Path) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD, linkat};

    Ok(linkat(CWD, number(file), CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

#[cfg(target_os = "linux")]
fn number(file: &File) -> String {
    format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(file))
}

#[cfg(not(target_os = "linux"))]
fn unnamed(_: &Path) -> Option<File> {
    None
}

#[cfg(not(target_os = "linux"))]
fn link(_: &File, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
