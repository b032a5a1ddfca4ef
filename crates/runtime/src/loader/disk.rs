//! Files and folders as the loader reads them: what is not there is told apart from what cannot be read.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use holdfast_contract::problem::{Code, Location, Problem};

/// A file as it lies on the disk. The time of the last change covers its mode: a file that was unreadable is read again.
#[derive(PartialEq)]
pub(super) struct Stamp {
    pub path: PathBuf,
    pub inode: u64,
    pub bytes: u64,
    pub written: (i64, i64),
    pub changed: (i64, i64),
}

/// The names in a folder, in order, without hidden ones. A folder that is not there has none; one that cannot be read is a problem.
pub(super) fn names(folder: &Path) -> Result<Vec<String>, Problem> {
    let unread = |error| unreadable(folder, &error);
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(unread)?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let name = entry.map_err(unread)?.file_name().into_string();
        names.extend(name.ok().filter(|name| !name.starts_with('.')));
    }
    names.sort();
    Ok(names)
}

pub(super) fn is_dir(path: &Path) -> Result<bool, Problem> {
    Ok(about(path)?.is_some_and(|about| about.is_dir()))
}

pub(super) fn is_file(path: &Path) -> Result<bool, Problem> {
    Ok(about(path)?.is_some_and(|about| about.is_file()))
}

/// What is at a path; nothing if nothing is. Where that cannot be told it is a problem.
pub(super) fn about(path: &Path) -> Result<Option<fs::Metadata>, Problem> {
    match fs::metadata(path) {
        Ok(about) => Ok(Some(about)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unreadable(path, &error)),
    }
}

pub(super) fn unreadable(path: &Path, error: &std::io::Error) -> Problem {
    at(path, Code::ExtensionUnreadable, format!("{} cannot be read: {error}", path.display()))
}

pub(super) fn stamp(path: PathBuf) -> Option<Stamp> {
    let about = fs::metadata(&path).ok().filter(|about| about.is_file())?;
    let (inode, bytes) = (about.ino(), about.len());
    let (written, changed) = ((about.mtime(), about.mtime_nsec()), (about.ctime(), about.ctime_nsec()));
    Some(Stamp { path, inode, bytes, written, changed })
}

pub(super) fn at(path: &Path, code: Code, what: impl Into<String>) -> Problem {
    Problem::new(code, what).at(Location { file: path.to_owned(), ..Location::default() })
}
