//! A folder with everything in it, as one that untrusted code was given: read, written and listed from the folder's handle, so that no
//! link and no concurrent change leads out of it.

use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::beneath::{because, find, folder, reopen, replace_file, true_path};

/// Why something in a tree was not done.
#[derive(Debug, PartialEq, Eq)]
pub enum TreeError {
    /// There is nothing at the path.
    NotFound,
    /// It is not done, whatever the system says; this is why.
    Refused(String),
    /// The system could not.
    Failed(String),
}

impl fmt::Display for TreeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound => f.write_str(&because(Errno::NOENT)),
            Self::Refused(why) | Self::Failed(why) => f.write_str(why),
        }
    }
}

impl From<Errno> for TreeError {
    fn from(error: Errno) -> Self {
        match error {
            Errno::NOENT => Self::NotFound,
            Errno::XDEV | Errno::LOOP | Errno::NOTDIR | Errno::ISDIR | Errno::ACCESS | Errno::PERM => {
                Self::Refused(because(error))
            }
            error => Self::Failed(because(error)),
        }
    }
}

impl From<std::io::Error> for TreeError {
    fn from(error: std::io::Error) -> Self {
        match Errno::from_io_error(&error) {
            Some(error) => error.into(),
            None => Self::Failed(error.to_string()),
        }
    }
}

/// What is at a path of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeEntry {
    /// Its name, without the folders above it.
    pub name: String,
    /// `file`, `folder`, `link` or `other`.
    pub kind: &'static str,
    /// The bytes of a file.
    pub bytes: u64,
}

impl TreeEntry {
    fn new(name: &OsStr, stat: &Stat) -> Self {
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => "file",
            FileType::Directory => "folder",
            FileType::Symlink => "link",
            _ => "other",
        };
        let bytes = if kind == "file" { stat.st_size.unsigned_abs() } else { 0 };
        Self { name: name.to_string_lossy().into_owned(), kind, bytes }
    }
}

/// A folder that is open, with everything in it. Paths are relative to it and have no `..`.
pub struct FolderTree {
    root: OwnedFd,
    path: PathBuf,
    /// Folders that are not part of it, although they are in it.
    without: Vec<PathBuf>,
}

impl FolderTree {
    /// Opens a folder. Links in its own path are followed.
    pub fn open(path: &Path) -> Result<Self, TreeError> {
        let path = path.canonicalize()?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(&path, flags, Mode::empty())?;
        Ok(Self { root, path, without: Vec::new() })
    }

    /// The same without a folder, by its true path, although that may be in it.
    pub fn without(mut self, folder: &Path) -> Self {
        self.without.extend(folder.canonicalize());
        self
    }

    /// The bytes of a regular file that has at most so many.
    pub fn read(&self, path: &Path, max_bytes: u64) -> Result<Vec<u8>, TreeError> {
        let (handle, stat) = self.find(path)?;
        regular(&stat)?;
        let too_large = || TreeError::Refused(format!("it has more than {max_bytes} bytes"));
        if stat.st_size.unsigned_abs() > max_bytes {
            return Err(too_large());
        }
        let mut bytes = Vec::new();
        File::from(reopen(handle)?).take(max_bytes.saturating_add(1)).read_to_end(&mut bytes)?;
        // It may have grown since.
        if bytes.len() as u64 > max_bytes { Err(too_large()) } else { Ok(bytes) }
    }

    /// What is at a path.
    pub fn stat(&self, path: &Path) -> Result<TreeEntry, TreeError> {
        let (_, stat) = self.find(path)?;
        Ok(TreeEntry::new(path.file_name().unwrap_or(OsStr::new(".")), &stat))
    }

    /// What is in a folder, by name. Links are listed and not followed.
    pub fn list(&self, path: &Path, max_entries: usize) -> Result<Vec<TreeEntry>, TreeError> {
        let handle = self.folder(path)?;
        let mut found = Vec::new();
        for entry in Dir::read_from(&handle)? {
            let entry = entry?;
            let name = entry.file_name();
            if [&b"."[..], b".."].contains(&name.to_bytes()) {
                continue;
            }
            if found.len() == max_entries {
                return Err(TreeError::Refused(format!("it has more than {max_entries} entries")));
            }
            // Removed since the folder was read.
            let Ok(stat) = rustix::fs::statat(&handle, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            found.push(TreeEntry::new(OsStr::from_bytes(name.to_bytes()), &stat));
        }
        found.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(found)
    }

    /// Writes a file atomically, with the folders above it. A link is not followed.
    pub fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), TreeError> {
        let (parent, name) = self.parent(path)?;
        let parent = self.make_folders(parent)?;
        let mode = match rustix::fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => {
                regular(&stat)?;
                Some(Mode::from_raw_mode(stat.st_mode) & Mode::from_raw_mode(0o777))
            }
            Err(Errno::NOENT) => None,
            Err(error) => return Err(error.into()),
        };
        Ok(replace_file(&parent, name, bytes, mode)?)
    }

    /// Makes a folder, and those above it. One that is there already is fine.
    pub fn make_folder(&self, path: &Path) -> Result<(), TreeError> {
        self.make_folders(path).map(drop)
    }

    /// Removes a file, a link or an empty folder.
    pub fn remove(&self, path: &Path) -> Result<(), TreeError> {
        let (parent, name) = self.parent(path)?;
        let parent = self.folder(parent)?;
        let stat = rustix::fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let is_folder = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        let flags = if is_folder { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        match rustix::fs::unlinkat(&parent, name, flags) {
            Err(Errno::NOTEMPTY | Errno::EXIST) => {
                Err(TreeError::Refused("the folder is not empty".to_owned()))
            }
            removed => Ok(removed?),
        }
    }

    fn find(&self, path: &Path) -> Result<(OwnedFd, Stat), TreeError> {
        let handle = find(&self.root, within(path))?;
        self.check(&handle, path)?;
        let stat = rustix::fs::fstat(&handle)?;
        Ok((handle, stat))
    }

    fn folder(&self, path: &Path) -> Result<OwnedFd, TreeError> {
        let handle = folder(&self.root, within(path))?;
        self.check(&handle, path)?;
        Ok(handle)
    }

    /// Refuses what is in a folder that is not part of the tree.
    fn check(&self, handle: &OwnedFd, path: &Path) -> Result<(), TreeError> {
        if self.without.is_empty() {
            return Ok(());
        }
        let place = true_path(handle, &self.path, path)?;
        if self.without.iter().any(|folder| place.starts_with(folder)) {
            return Err(TreeError::Refused("it is in the home of the program".to_owned()));
        }
        Ok(())
    }

    fn parent<'a>(&self, path: &'a Path) -> Result<(&'a Path, &'a OsStr), TreeError> {
        match (path.parent(), path.file_name()) {
            (Some(parent), Some(name)) => Ok((parent, name)),
            _ => Err(TreeError::Refused("it is the folder itself".to_owned())),
        }
    }

    fn make_folders(&self, path: &Path) -> Result<OwnedFd, TreeError> {
        let mut reached = PathBuf::new();
        let mut handle = self.folder(&reached)?;
        for name in path.iter() {
            reached.push(name);
            handle = match self.folder(&reached) {
                Err(TreeError::NotFound) => {
                    match rustix::fs::mkdirat(&handle, name, Mode::from_raw_mode(0o777)) {
                        Ok(()) | Err(Errno::EXIST) => self.folder(&reached)?,
                        Err(error) => return Err(error.into()),
                    }
                }
                found => found?,
            };
        }
        Ok(handle)
    }
}

/// The path for the system, which does not take an empty one.
fn within(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

fn regular(stat: &Stat) -> Result<(), TreeError> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(()),
        FileType::Directory => Err(TreeError::Refused("it is a folder".to_owned())),
        FileType::Symlink => Err(TreeError::Refused("it is a link".to_owned())),
        _ => Err(TreeError::Refused("it is not a regular file".to_owned())),
    }
}
