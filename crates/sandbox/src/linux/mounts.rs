//! What a program sees of the file system: a root of its own in memory, in which only what it may read or write is mounted. What is not
//! visible cannot be listed, watched, or have its mode and times changed, none of which Landlock holds back.
//!
//! Everything is prepared before the process is born: entering the view happens in the child, which must not allocate.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, mount_change, move_mount,
    open_tree, unmount,
};

use crate::linux::spawn::make_read_only;

/// Where the new root is put together. Every system that programs run on has this folder.
const ASSEMBLY: &CStr = c"/usr";

/// What a program sees of the file system.
pub(crate) struct MountView<'a> {
    /// In the order in which they are mounted: a folder before what is in it.
    mounts: Vec<ViewMount<'a>>,
}

struct ViewMount<'a> {
    source: CString,
    target: CString,
    /// The folders above the target, outermost first.
    parents: Vec<CString>,
    is_folder: bool,
    writable: bool,
    /// Another path of something that is mounted already: left out where that path leads somewhere.
    is_alias: bool,
    /// What must be at the source.
    expected: Option<BorrowedFd<'a>>,
    /// The source, once it is open.
    tree: Cell<Option<OwnedFd>>,
}

/// How something is to be mounted.
#[derive(Clone, Copy)]
struct Access<'a> {
    writable: bool,
    /// Whether it is read-only in something that is writable.
    forced: bool,
    expected: Option<BorrowedFd<'a>>,
}

/// To be read.
const READ: Access<'static> = Access { writable: false, forced: false, expected: None };

impl<'a> MountView<'a> {
    /// A view with these paths, of which some are writable, except for what is in them and is to stay read-only, and with files that
    /// stand at other paths. What does not exist is left out, unless it is to be writable.
    pub(crate) fn new<'p>(
        readable: impl Iterator<Item = &'p Path>,
        writable: &[(&Path, BorrowedFd<'a>)],
        read_only: &[PathBuf],
        substitutes: impl Iterator<Item = (&'p Path, &'static Path)>,
    ) -> io::Result<Self> {
        // By its true path each is mounted once, with the rights that come last. Sorted, a folder comes before what is in it.
        let mut mounts: BTreeMap<PathBuf, Access<'a>> = BTreeMap::new();
        let mut aliases: BTreeMap<PathBuf, PathBuf> = BTreeMap::new();
        let mut add = |path: &Path, access: Access<'a>| -> io::Result<()> {
            let canonical = path.canonicalize()?;
            if canonical != path {
                aliases.insert(path.to_owned(), canonical.clone());
            }
            mounts.insert(canonical, access);
            Ok(())
        };
        for path in readable.filter(|path| path.exists()) {
            add(path, READ)?;
        }
        for (path, handle) in writable {
            add(path, Access { writable: true, forced: false, expected: Some(*handle) })?;
        }
        for path in read_only {
            // What cannot be looked at is not left writable.
            if path.try_exists()? {
                add(path, Access { forced: true, ..READ })?;
            }
        }
        // What may only be read and lies in something that is mounted is visible there.
        let kept = |path: &Path| path.ancestors().skip(1).any(|above| mounts.contains_key(above));
        let own = mounts
            .iter()
            .filter(|(path, access)| access.writable || access.forced || !kept(path))
            .map(|(path, access)| ViewMount::new(path, path, *access, false));
        let others = aliases.iter().map(|(alias, path)| {
            let access = mounts.get(path).copied().unwrap_or(READ);
            ViewMount::new(path, alias, access, true)
        });
        let substitutes =
            substitutes.map(|(source, target)| ViewMount::new(&source.canonicalize()?, target, READ, false));
        Ok(Self { mounts: own.chain(others).chain(substitutes).collect::<io::Result<_>>()? })
    }

    /// Makes this the view of the calling process, which has a mount namespace of its own. Allocates nothing.
    pub(crate) fn enter(&self) -> Result<(), Errno> {
        mount_change(c"/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
        for mount in &self.mounts {
            mount.open()?;
        }
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        rustix::mount::mount(c"holdfast", ASSEMBLY, c"tmpfs", flags, Some(c"mode=0755,size=1m"))?;
        rustix::process::chdir(ASSEMBLY)?;
        rustix::process::pivot_root(c".", c".")?;
        // The old root lies over the new one.
        unmount(c".", UnmountFlags::DETACH)?;
        rustix::process::chdir(c"/")?;
        for mount in &self.mounts {
            mount.attach()?;
        }
        make_read_only(rustix::fs::CWD, c"/", 0)
    }
}

impl<'a> ViewMount<'a> {
    fn new(source: &Path, target: &Path, access: Access<'a>, is_alias: bool) -> io::Result<Self> {
        let text = |path: &Path| CString::new(path.as_os_str().as_bytes()).map_err(io::Error::from);
        let mut parents: Vec<CString> = target
            .ancestors()
            .skip(1)
            .filter(|path| path.parent().is_some())
            .map(text)
            .collect::<Result<_, _>>()?;
        parents.reverse();
        Ok(Self {
            source: text(source)?,
            target: text(target)?,
            parents,
            is_folder: source.is_dir(),
            writable: access.writable,
            is_alias,
            expected: access.expected,
            tree: Cell::new(None),
        })
    }

    /// Opens a copy of what is mounted at the source and below it.
    fn open(&self) -> Result<(), Errno> {
        let flags =
            OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_RECURSIVE;
        // The source is a true path: a link there was put in its place since.
        let flags = flags | OpenTreeFlags::AT_SYMLINK_NOFOLLOW;
        let tree = open_tree(rustix::fs::CWD, self.source.as_c_str(), flags)?;
        if let Some(expected) = self.expected
            && !is_same(tree.as_fd(), expected)?
        {
            return Err(Errno::STALE);
        }
        if !self.writable {
            make_read_only(tree.as_fd(), c"", libc::AT_EMPTY_PATH | libc::AT_RECURSIVE)?;
        }
        self.tree.set(Some(tree));
        Ok(())
    }

    /// Mounts it in the new root.
    fn attach(&self) -> Result<(), Errno> {
        let Some(tree) = self.tree.take() else { return Err(Errno::BADF) };
        if self.is_alias && rustix::fs::stat(self.target.as_c_str()).is_ok() {
            return Ok(());
        }
        for parent in &self.parents {
            exists_already(rustix::fs::mkdir(parent.as_c_str(), Mode::from_raw_mode(0o755)))?;
        }
        if self.is_folder {
            exists_already(rustix::fs::mkdir(self.target.as_c_str(), Mode::from_raw_mode(0o755)))?;
        } else {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            let made = rustix::fs::open(self.target.as_c_str(), flags, Mode::from_raw_mode(0o444));
            exists_already(made.map(drop))?;
        }
        let from = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
        move_mount(&tree, c"", rustix::fs::CWD, self.target.as_c_str(), from)
    }
}

/// What is there already needs not be made, also in a folder that is read-only.
fn exists_already(made: Result<(), Errno>) -> Result<(), Errno> {
    match made {
        Err(Errno::EXIST | Errno::ROFS | Errno::ACCESS) => Ok(()),
        made => made,
    }
}

/// Whether two handles lead to the same file.
pub(crate) fn is_same(one: BorrowedFd<'_>, other: BorrowedFd<'_>) -> Result<bool, Errno> {
    let (one, other) = (rustix::fs::fstat(one)?, rustix::fs::fstat(other)?);
    Ok((one.st_dev, one.st_ino) == (other.st_dev, other.st_ino))
}
