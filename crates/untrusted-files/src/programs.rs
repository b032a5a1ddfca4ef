//! Programs that the host itself starts by name. Write access to a folder of the search path decides which program is found, so folders
//! that an agent or a repository can write are left out: relative ones, and those that lie in a given folder or lead into it.

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::links::places;

/// A search path without the folders in which others may put programs.
#[derive(Clone, Debug)]
pub struct ProgramSearch {
    folders: Vec<PathBuf>,
    /// Folders that programs are not taken from, with links resolved.
    avoided: Vec<PathBuf>,
}

/// What was found on a search path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundPrograms {
    /// The programs of this name, the first to be tried first.
    pub programs: Vec<PathBuf>,
    /// Programs of this name that are left out, because others may have put them there.
    pub skipped: Vec<PathBuf>,
}

impl ProgramSearch {
    /// Over a `PATH`, without what lies in one of these folders.
    pub fn new(path: Option<&OsStr>, avoided: &[PathBuf]) -> Self {
        let folders = path.map(env::split_paths).into_iter().flatten().collect();
        let avoided = avoided.iter().map(|folder| folder.canonicalize().unwrap_or_else(|_| folder.clone()));
        Self { folders, avoided: avoided.collect() }
    }

    /// Over this process's `PATH`, without what lies in the current folder.
    pub fn of_this_process() -> Self {
        Self::new(env::var_os("PATH").as_deref(), current_project().as_slice())
    }

    /// The programs of a name.
    pub fn find(&self, name: impl AsRef<Path>) -> FoundPrograms {
        let mut found = FoundPrograms::default();
        let name = name.as_ref();
        for program in self.folders.iter().map(|folder| folder.join(name)).filter(|path| path.is_file()) {
            let list = if self.avoids(&program) { &mut found.skipped } else { &mut found.programs };
            list.push(program);
        }
        found
    }

    /// Whether a path is left out: it is relative, lies in an avoided folder, or leads through one.
    pub fn avoids(&self, path: &Path) -> bool {
        if !path.is_absolute() {
            return true;
        }
        let inside = |place: &PathBuf| self.avoided.iter().any(|folder| lies_in(place, folder));
        places(path).iter().any(inside)
    }

    /// The `PATH` for a program that searches for others itself.
    pub fn path(&self) -> OsString {
        let kept = self.folders.iter().filter(|folder| !self.avoids(folder));
        // Each was a part of such a path.
        env::join_paths(kept).unwrap_or_default()
    }
}

/// The current folder of this process, as [`working_folder`] says.
pub fn current_project() -> Option<PathBuf> {
    let user = env::var_os("HOME").map(PathBuf::from);
    working_folder(&env::current_dir().ok()?, user.as_deref())
}

/// The current folder as one that programs are not taken from; none if the user's own folder is in it, where users have programs.
pub fn working_folder(current: &Path, user: Option<&Path>) -> Option<PathBuf> {
    let current = current.canonicalize().ok()?;
    let user = user.and_then(|user| user.canonicalize().ok());
    let holds_user = user.is_some_and(|user| user.starts_with(&current));
    (!holds_user && current.parent().is_some()).then_some(current)
}

/// Whether a path lies in a folder, by its name or, through a mount, by what is found there.
fn lies_in(path: &Path, folder: &Path) -> bool {
    let identity = |path: &Path| path.metadata().ok().map(|found| (found.dev(), found.ino()));
    path.starts_with(folder)
        || identity(folder)
            .is_some_and(|folder| path.ancestors().skip(1).any(|above| identity(above) == Some(folder)))
}
