//! The folder that tools may work in. It is accessed through an open handle, so that it cannot be replaced by another folder, and it
//! never overlaps the home folder, by any path.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdfast_contract::manifest::DECIDING_FOLDERS;
use holdfast_contract::problem::{Code, Fault, Problem};
use holdfast_untrusted_files::{FoundEntry, linked_places, places, walk, walk_readable};
use rustix::fs::{Mode, OFlags};

use crate::mounts::Mounts;

/// The folder of a home in which extensions have folders of their own.
const EXTENSIONS_DATA: &str = "data";

/// A folder that tools may work in. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Workspace(Arc<Held>);

#[derive(Debug)]
struct Held {
    path: PathBuf,
    home: PathBuf,
    /// The homes that commands use which name none.
    usual: Vec<PathBuf>,
    handle: OwnedFd,
}

impl Workspace {
    /// Opens a folder as a workspace that must not overlap the home folder. Refused are the root of the disk, a folder that contains
    /// the home and a folder inside it. Paths, inodes and mounts are all checked, so that neither a symbolic link nor a bind mount
    /// hides an overlap.
    pub fn new(root: impl AsRef<Path>, home: impl AsRef<Path>) -> Result<Self, Problem> {
        Self::apart_from(root, home, &[])
    }

    /// The same for a folder that must not overlap other homes either, which need not exist: those that commands use which name none.
    pub fn apart_from(
        root: impl AsRef<Path>,
        home: impl AsRef<Path>,
        usual: &[PathBuf],
    ) -> Result<Self, Problem> {
        let path = canonical(root.as_ref())?;
        let home = canonical(home.as_ref())?;
        let refused = |why: &str| Err(refusal(format!("{} cannot be a workspace: {why}", path.display())));
        if path.parent().is_none() {
            return refused("it is the root of the disk");
        }
        if home.starts_with(&path) {
            return refused("the home folder lies in it");
        }
        if path.starts_with(&home) {
            return refused("it lies in the home folder");
        }
        let handle = open_folder(&path)?;
        let mounts = Mounts::of_this_process()
            .map_err(|error| refusal(format!("the list of mounts cannot be read: {error}")))?;
        let existing = usual.iter().filter_map(|other| other.canonicalize().ok());
        for home in std::iter::once(home.clone()).chain(existing) {
            let home_handle = open_folder(&home)?;
            if ancestors(&home_handle)?.contains(&identity(&handle)?) {
                return refused("the home folder lies in it, by another path");
            }
            if ancestors(&handle)?.contains(&identity(&home_handle)?) {
                return refused("it lies in the home folder, by another path");
            }
            if mounts.as_ref().is_some_and(|mounts| mounts.overlap(&path, &home)) {
                return refused("through a mount it overlaps the home folder");
            }
        }
        let inside = |place: &PathBuf| place.starts_with(&path) || path.starts_with(place);
        if let Some(place) = usual.iter().flat_map(|other| places(other)).find(inside) {
            let place = place.display();
            return refused(&format!("it overlaps {place}, the home of commands that name none"));
        }
        Ok(Self(Arc::new(Held { path, home, usual: usual.to_vec(), handle })))
    }

    /// Its canonical path, for messages and for programs that need one. Tools open files from its handle.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// The canonical path of the home folder.
    pub fn home(&self) -> &Path {
        &self.0.home
    }

    pub(crate) fn usual(&self) -> &[PathBuf] {
        &self.0.usual
    }

    /// Refuses the workspace if something that decides in the home is a link that leads into it, or through it.
    pub(crate) fn check_links(&self) -> Result<(), Fault> {
        let inside = |place: &PathBuf| place.starts_with(&self.0.path) || self.0.path.starts_with(place);
        let homes = std::iter::once(&self.0.home).chain(&self.0.usual);
        match homes.flat_map(|home| linked_places(home, DECIDING_FOLDERS)).find(inside) {
            None => Ok(()),
            Some(place) => {
                let (path, place) = (self.0.path.display(), place.display());
                let what = format!("the workspace {path} and {place}, which the home uses, overlap");
                Err(Fault::new(Code::WorkspaceOverlap, what))
            }
        }
    }

    /// Device and inode of every file of the home that has another name elsewhere. A file in the workspace with one of them is a file of
    /// the home, by another path.
    pub fn linked_home_files(&self) -> std::io::Result<BTreeSet<(u64, u64)>> {
        let mut found: BTreeMap<(u64, u64), u64> = BTreeMap::new();
        // A file that has all its names in the home has none elsewhere.
        let mut count = |identity, links| {
            let left = found.entry(identity).or_insert(links);
            *left = left.saturating_sub(1);
        };
        for entry in std::fs::read_dir(&self.0.home)? {
            let entry = entry?;
            let (path, kind) = (entry.path(), entry.file_type()?);
            let mut visit = |entry: &FoundEntry| {
                if entry.is_file && entry.links > 1 {
                    count(entry.identity, entry.links);
                }
                ControlFlow::Continue(())
            };
            // Extensions write here: a tree of any depth, closed or moved meanwhile must not make this fail.
            if kind.is_dir() && entry.file_name() == EXTENSIONS_DATA {
                walk_readable(&path, &mut visit)?;
            } else if kind.is_dir() {
                walk(&path, &mut visit)?;
            } else if let Some(about) =
                entry.metadata().ok().filter(|about| about.is_file() && about.nlink() > 1)
            {
                count((about.dev(), about.ino()), about.nlink());
            }
        }
        Ok(found.into_iter().filter(|(_, left)| *left > 0).map(|(identity, _)| identity).collect())
    }
}

impl AsFd for Workspace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.handle.as_fd()
    }
}

fn refusal(what: String) -> Problem {
    Problem::new(Code::WorkspaceRefused, what)
}

fn canonical(path: &Path) -> Result<PathBuf, Problem> {
    path.canonicalize().map_err(|error| refusal(format!("{} cannot be used: {error}", path.display())))
}

fn open_folder(path: &Path) -> Result<OwnedFd, Problem> {
    rustix::fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
        .map_err(|error| refusal(format!("{} cannot be opened: {error}", path.display())))
}

/// Device and inode.
type Identity = (u64, u64);

fn identity(handle: &OwnedFd) -> Result<Identity, Problem> {
    let stat = rustix::fs::fstat(handle)
        .map_err(|error| refusal(format!("could not read the folder's metadata: {error}")))?;
    #[allow(clippy::unnecessary_cast, reason = "not the same width on every system")]
    Ok((stat.st_dev as u64, stat.st_ino as u64))
}

/// The folder and every folder above it.
fn ancestors(handle: &OwnedFd) -> Result<Vec<Identity>, Problem> {
    let mut found = vec![identity(handle)?];
    let mut parent = open_parent(handle)?;
    loop {
        let next = identity(&parent)?;
        if found.last() == Some(&next) {
            return Ok(found);
        }
        found.push(next);
        parent = open_parent(&parent)?;
    }
}

fn open_parent(handle: &OwnedFd) -> Result<OwnedFd, Problem> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    #[cfg(target_os = "linux")]
    let flags = flags | OFlags::PATH;
    rustix::fs::openat(handle, "..", flags, Mode::empty())
        .map_err(|error| refusal(format!("could not open a parent folder: {error}")))
}
