//! The workspace as the tools see it: which files may be opened, how a file is replaced atomically, and how folders are created.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use holdfast_contract::problem::Fault;
use holdfast_lane_native::{BARE_REPOSITORY, Workspace, protected_name};
use holdfast_untrusted_files::beneath::{because, find, folder, reopen, replace_file, true_path};
use rustix::fs::{AtFlags, FileType, Mode, Stat};
use rustix::io::Errno;

use crate::protected::is_asked_about;
use crate::tool::{failed, refused};
use crate::{FilesOptions, path};

pub(crate) struct Tree {
    workspace: Workspace,
    options: FilesOptions,
}

/// A file that may be accessed.
pub(crate) struct Found {
    handle: OwnedFd,
    /// Its path relative to the root, with all links resolved.
    path: PathBuf,
    /// Its size.
    pub(crate) bytes: u64,
    mode: Mode,
}

/// What happens to an existing file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Existing {
    Keep,
    Replace,
}

impl Tree {
    pub(crate) fn new(workspace: Workspace, options: FilesOptions) -> Self {
        Self { workspace, options }
    }

    /// The given path, relative to the root.
    pub(crate) fn relative(&self, given: &str) -> Result<PathBuf, Fault> {
        path::relative(self.workspace.path(), given)
    }

    /// A handle on a folder.
    pub(crate) fn folder(&self, given: &str, path: &Path) -> Result<OwnedFd, Fault> {
        folder(&self.workspace, path).map_err(|error| cannot_open(given, error))
    }

    /// A regular file, opened for reading. `given` is for messages.
    pub(crate) fn open(&self, given: &str, path: &Path) -> Result<(File, Found), Fault> {
        let found = self.find(given, path)?;
        let handle = found.handle.try_clone().map_err(|error| failed(error.to_string()))?;
        let file = reopen(handle).map_err(|error| cannot_open(given, error))?;
        Ok((File::from(file), found))
    }

    /// A regular file that may be accessed.
    fn find(&self, given: &str, path: &Path) -> Result<Found, Fault> {
        let handle = find(&self.workspace, path).map_err(|error| cannot_open(given, error))?;
        let stat = rustix::fs::fstat(&handle).map_err(|error| cannot_open(given, error))?;
        self.check_access(given, &stat)?;
        let place = true_path(&handle, self.workspace.path(), path);
        let place = place.map_err(|error| cannot_open(given, error))?;
        self.check_name(given, &place)?;
        let path = match place.strip_prefix(self.workspace.path()) {
            Ok(inside) => inside.to_owned(),
            Err(_) => return Err(refused(given, "the workspace was moved, or the file was removed")),
        };
        let mode = Mode::from_raw_mode(stat.st_mode) & Mode::from_raw_mode(0o777);
        Ok(Found { handle, path, bytes: stat.st_size.unsigned_abs(), mode })
    }

    fn check_access(&self, given: &str, stat: &Stat) -> Result<(), Fault> {
        let no = |why: &str| Err(refused(given, why));
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {}
            FileType::Directory => return no("it is a folder"),
            FileType::Fifo => return no("it is a pipe"),
            FileType::Socket => return no("it is a socket"),
            FileType::BlockDevice | FileType::CharacterDevice => return no("it is a device"),
            FileType::Symlink => return no("it is a link"),
            _ => return no("it is not an ordinary file"),
        }
        if stat.st_nlink <= 1 {
            return Ok(());
        }
        if !self.options.hard_links {
            return no("it has a second name (a hard link), which may be outside of the workspace");
        }
        let of_home = self.workspace.linked_home_files();
        let of_home = of_home.map_err(|error| refused(given, format!("the home cannot be read: {error}")))?;
        #[allow(clippy::unnecessary_cast, reason = "not the same width on every system")]
        if of_home.contains(&(stat.st_dev as u64, stat.st_ino as u64)) {
            no("it is a file of the home folder, under a second name")
        } else {
            Ok(())
        }
    }

    /// Whether a file of this name may be accessed: `.env` and `.env.production` usually contain secrets, `.env.example` does not.
    fn check_name(&self, given: &str, path: &Path) -> Result<(), Fault> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        let harmless = [".example", ".sample", ".template", ".dist"].iter().any(|end| name.ends_with(end));
        let secret = name == ".env" || (name.starts_with(".env.") && !harmless);
        if secret && !self.options.env_files {
            return Err(refused(given, "`.env` files hold secrets; the owner has not let them in"));
        }
        Ok(())
    }

    /// Writes a file atomically: the old content stays until the new one is synced to disk. Missing folders are created. Returns whether
    /// the file is new.
    pub(crate) fn write(&self, given: &str, bytes: &[u8], existing: Existing) -> Result<bool, Fault> {
        let path = path::relative_to_write(self.workspace.path(), given)?;
        self.check_name(given, &path)?;
        match self.find(given, &path) {
            Ok(found) if is_hidden(given, &found.path) => Err(hidden(given)),
            Ok(_) if existing == Existing::Keep => Err(failed(format!(
                "{given:?} is already there; set `overwrite` to replace it, or use file_edit"
            ))),
            Ok(found) => self.replace(given, &found.path, bytes, Some(found.mode)).map(|()| false),
            Err(fault) => match find(&self.workspace, &path) {
                Err(Errno::NOENT) => self.replace(given, &path, bytes, None).map(|()| true),
                _ => Err(fault),
            },
        }
    }

    fn replace(&self, given: &str, path: &Path, bytes: &[u8], mode: Option<Mode>) -> Result<(), Fault> {
        let name = path.file_name().unwrap_or_default();
        let parent = self.make_folders(given, path.parent().unwrap_or(Path::new("")))?;
        self.check_hidden(given, &parent, path)?;
        let is_link = |stat: Stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink;
        if rustix::fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(is_link) {
            return Err(refused(given, "it is a link to something that is not there"));
        }
        replace_file(&parent, name, bytes, mode).map_err(|error| cannot_write(given, error))
    }

    /// Refuses to make a file or folder in a folder that a link has led to, if that leads around the question about protected files.
    fn check_hidden(&self, given: &str, parent: &OwnedFd, path: &Path) -> Result<(), Fault> {
        let root = self.workspace.path();
        let inside = true_path(parent, root, path.parent().unwrap_or(Path::new("")));
        let inside = inside.map_err(|error| cannot_open(given, error))?;
        let target = inside.strip_prefix(root).unwrap_or(&inside).join(path.file_name().unwrap_or_default());
        if is_hidden(given, &target) {
            return Err(hidden(given));
        }
        if self.is_in_bare_repository(&target) {
            Err(refused(given, "it would be part of a git repository, whose configuration runs programs"))
        } else {
            Ok(())
        }
    }

    /// Whether a folder above a path is a git repository without the name `.git`, or would be one with it.
    fn is_in_bare_repository(&self, target: &Path) -> bool {
        let steps = target.ancestors().filter_map(|path| Some((path.parent()?, path.file_name()?)));
        let exists =
            |path: &Path| rustix::fs::statat(&self.workspace, path, AtFlags::SYMLINK_NOFOLLOW).is_ok();
        steps.into_iter().any(|(folder, next)| {
            BARE_REPOSITORY.iter().all(|part| next == *part || exists(&folder.join(part)))
        })
    }

    /// The folder at this path. Missing folders are created.
    fn make_folders(&self, given: &str, path: &Path) -> Result<OwnedFd, Fault> {
        let open = |path: &Path| folder(&self.workspace, path);
        let mut reached = PathBuf::from(".");
        let mut handle = open(&reached).map_err(|error| cannot_open(given, error))?;
        for name in path.iter() {
            reached.push(name);
            let next = match open(&reached) {
                Err(Errno::NOENT) => {
                    self.check_hidden(given, &handle, &reached)?;
                    match rustix::fs::mkdirat(&handle, name, Mode::from_raw_mode(0o777)) {
                        Ok(()) | Err(Errno::EXIST) => open(&reached),
                        Err(error) => Err(error),
                    }
                }
                other => other,
            };
            handle = next.map_err(|error| cannot_open(given, error))?;
        }
        Ok(handle)
    }
}

/// Whether a path leads to a protected file without naming it, so that nobody was asked about it.
fn is_hidden(given: &str, true_path: &Path) -> bool {
    protected_name(true_path).is_some() && !is_asked_about(given)
}

fn hidden(given: &str) -> Fault {
    refused(given, "it leads to a protected file or folder; name that by its own path")
}

fn cannot_open(given: &str, error: Errno) -> Fault {
    match error {
        Errno::NOENT | Errno::NOTDIR => failed(format!("{given:?}: {}", because(error))),
        error => refused(given, because(error)),
    }
}

fn cannot_write(given: &str, error: std::io::Error) -> Fault {
    failed(format!("{given:?} cannot be written: {error}"))
}
