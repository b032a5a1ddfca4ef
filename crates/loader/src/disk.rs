//! Files and folders as the loader reads them: what is not there is told apart from what cannot be read.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use holdfast_contract::problem::{Code, Problem};
use holdfast_untrusted_files::{FoundOwner, found_owner};

/// A file as it lies on the disk. The time of the last change covers its mode: a file that was unreadable is read again.
#[derive(PartialEq)]
pub(crate) struct Stamp {
    pub path: PathBuf,
    pub inode: u64,
    pub bytes: u64,
    pub written: (i64, i64),
    pub changed: (i64, i64),
}

/// The names in a folder, in order, without hidden ones. A folder that is not there has none; one that cannot be read is a problem.
pub(crate) fn names(folder: &Path) -> Result<Vec<String>, Problem> {
    let unread = |error| unreadable(folder, &error);
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            check_absent(folder)?;
            return Ok(Vec::new());
        }
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

/// A problem if somebody else can write a file or folder: code of an extension decides about agents. What belongs to the system's
/// administrator may have been installed for all users.
pub(crate) fn check_owner(path: &Path) -> Result<(), Problem> {
    let Some(about) = about(path)? else { return Ok(()) };
    let (who, help) = match found_owner(&about) {
        FoundOwner::User => return Ok(()),
        FoundOwner::Other if about.uid() == 0 && about.mode() & 0o002 == 0 => return Ok(()),
        FoundOwner::Other => ("belongs to another user", "Make a copy of your own, or `chown` it."),
        FoundOwner::Everyone => ("can be written by every user", "Remove their access with `chmod o-w`."),
    };
    let what = format!("{} {who}, and is not read", path.display());
    Err(Problem::in_file(Code::ExtensionUnreadable, path, what).help(help))
}

/// The same for a folder of an extension and everything in it that is read.
pub(crate) fn check_owners(folder: &Path) -> Result<(), Problem> {
    check_owner(folder)?;
    let Tree { files, folders, .. } = tree(folder);
    folders.iter().chain(&files).try_for_each(|path| check_owner(path))
}

pub(crate) fn is_dir(path: &Path) -> Result<bool, Problem> {
    Ok(about(path)?.is_some_and(|about| about.is_dir()))
}

pub(crate) fn is_file(path: &Path) -> Result<bool, Problem> {
    Ok(about(path)?.is_some_and(|about| about.is_file()))
}

/// What is at a path; nothing if nothing is. Where that cannot be told it is a problem.
fn about(path: &Path) -> Result<Option<fs::Metadata>, Problem> {
    match fs::metadata(path) {
        Ok(about) => Ok(Some(about)),
        Err(error) if error.kind() == ErrorKind::NotFound => check_absent(path).map(|()| None),
        Err(error) => Err(unreadable(path, &error)),
    }
}

/// A problem if something that was not found is a link: what it leads to may be there again later.
fn check_absent(path: &Path) -> Result<(), Problem> {
    match fs::symlink_metadata(path) {
        Err(_) => Ok(()),
        Ok(_) => {
            let what = format!("{} is a link that leads nowhere", path.display());
            let help = "Remove the link, or make what it leads to.";
            Err(Problem::in_file(Code::ExtensionUnreadable, path, what).help(help))
        }
    }
}

pub(crate) fn unreadable(path: &Path, error: &std::io::Error) -> Problem {
    Problem::in_file(Code::ExtensionUnreadable, path, format!("{} cannot be read: {error}", path.display()))
}

pub(crate) fn stamp(path: PathBuf) -> Option<Stamp> {
    let about = fs::metadata(&path).ok().filter(|about| about.is_file())?;
    let (inode, bytes) = (about.ino(), about.len());
    let (written, changed) = ((about.mtime(), about.mtime_nsec()), (about.ctime(), about.ctime_nsec()));
    Some(Stamp { path, inode, bytes, written, changed })
}

/// The most files that an extension's folder may have.
pub(crate) const MAX_FILES: usize = 10_000;

/// What is in an extension's folder, without hidden files and links.
#[derive(Default)]
pub(crate) struct Tree {
    pub files: Vec<PathBuf>,
    pub folders: Vec<PathBuf>,
    /// The first thing that could not be read.
    pub unread: Option<Problem>,
}

/// Looks through a folder, as far as an extension may be large.
pub(crate) fn tree(folder: &Path) -> Tree {
    let (mut tree, mut left) = (Tree::default(), vec![folder.to_owned()]);
    while let Some(inside) = left.pop() {
        let (names, unread) = match names(&inside) {
            Ok(names) => (names, None),
            Err(problem) => (Vec::new(), Some(problem)),
        };
        tree.unread = tree.unread.or(unread);
        for path in names.into_iter().map(|name| inside.join(name)) {
            match fs::symlink_metadata(&path) {
                Ok(about) if about.is_dir() && !is_generated(&path) => {
                    tree.folders.push(path.clone());
                    left.push(path);
                }
                Ok(about) if about.is_file() => tree.files.push(path),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => tree.unread = tree.unread.or_else(|| Some(unreadable(&path, &error))),
            }
        }
        if tree.files.len() > MAX_FILES {
            break;
        }
    }
    tree
}

/// Whether a folder is one that a tool makes by itself: compiled Python, a virtual environment, packages of Node.
fn is_generated(folder: &Path) -> bool {
    folder.file_name().is_some_and(|name| name == "__pycache__" || name == "node_modules")
        || folder.join("pyvenv.cfg").exists()
}

/// How the files that decide about an extension lie on the disk.
pub(crate) fn stamps_of(folder: &Path, deep: bool) -> Vec<Stamp> {
    let all = if deep {
        tree(folder).files
    } else {
        names(folder).unwrap_or_default().into_iter().map(|name| folder.join(name)).collect()
    };
    all.into_iter().filter_map(stamp).collect()
}
