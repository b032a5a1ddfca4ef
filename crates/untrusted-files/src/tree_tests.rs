//! Trees of any depth are looked through and removed, on a small stack and with few descriptors.

use std::fs::{self, Permissions};
use std::ops::ControlFlow;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use crate::{TempFolder, remove_tree, walk};

const DEPTH: usize = 15_000;

/// In memory where that is possible: some disks take milliseconds to remove a folder.
fn temp_folder() -> TempFolder {
    TempFolder::within(Path::new("/dev/shm")).or_else(|_| TempFolder::new()).unwrap()
}

/// Makes a tree of this many levels, with a file, a link and a second folder in each hundredth.
fn make_deep(root: &Path, depth: usize) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut current = rustix::fs::open(root, flags, Mode::empty()).unwrap();
    for level in 0..depth {
        if level % 100 == 0 {
            let file = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
            drop(rustix::fs::openat(&current, "file", file, Mode::RUSR).unwrap());
            rustix::fs::symlinkat("/", &current, "link").unwrap();
            rustix::fs::mkdirat(&current, "beside", Mode::RWXU).unwrap();
        }
        rustix::fs::mkdirat(&current, "d", Mode::RWXU).unwrap();
        current = rustix::fs::openat(&current, "d", flags, Mode::empty()).unwrap();
    }
}

/// Runs on a stack that a recursion of this depth would overflow.
fn on_a_small_stack(run: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(256 << 10).spawn(run).unwrap().join().unwrap();
}

// Finding M1.
#[test]
fn a_deep_tree_is_removed_without_recursion() {
    on_a_small_stack(|| {
        let folder = temp_folder();
        let (root, outside) = (folder.path().join("root"), folder.path().join("outside"));
        fs::create_dir(&root).unwrap();
        fs::write(&outside, "stays").unwrap();
        std::os::unix::fs::symlink(&outside, root.join("to-outside")).unwrap();
        make_deep(&root, DEPTH);
        let before = fs::read_dir("/proc/self/fd").map(Iterator::count).unwrap_or_default();
        remove_tree(&root).unwrap();
        assert!(!root.exists());
        assert_eq!(fs::read_to_string(&outside).unwrap(), "stays", "links are not followed");
        let after = fs::read_dir("/proc/self/fd").map(Iterator::count).unwrap_or_default();
        assert!(after <= before, "{before} descriptors before, {after} after");

        make_deep(folder.path(), DEPTH);
        let path = folder.path().to_owned();
        drop(folder);
        assert!(!path.exists(), "a temporary folder goes with what is in it");
    });
}

// Finding M1.
#[test]
fn modes_and_taken_names_do_not_keep_a_tree() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    for (place, mode) in [("a/b/c", 0o000), ("a/b/d", 0o300), ("a/e/f/g", 0o500), ("h", 0o000)] {
        fs::create_dir_all(root.join(place)).unwrap();
        fs::create_dir(root.join(place).join("inner")).unwrap();
        fs::write(root.join(place).join("file"), "x").unwrap();
        fs::set_permissions(root.join(place), Permissions::from_mode(mode)).unwrap();
    }
    for count in 0..50 {
        let taken = format!(".holdfast-removal-{}-{count}", std::process::id());
        fs::write(root.join(taken), "a name that removal would use").unwrap();
    }
    remove_tree(&root).unwrap();
    assert!(!root.exists());
    assert!(remove_tree(&root).is_err(), "there is nothing any more");
    fs::write(&root, "no folder").unwrap();
    assert!(remove_tree(&root).is_err());
}

// Finding M9.
#[test]
fn a_deep_tree_is_walked_to_its_end_and_unreadable_folders_are_an_error() {
    on_a_small_stack(|| {
        let folder = temp_folder();
        make_deep(folder.path(), DEPTH);
        let (mut folders, mut files, mut deepest) = (0, 0, 0);
        walk(folder.path(), &mut |found| {
            folders += usize::from(found.is_folder);
            files += usize::from(found.is_file);
            deepest = deepest.max(found.depth);
            ControlFlow::Continue(())
        })
        .unwrap();
        assert_eq!((folders, files, deepest), (DEPTH + DEPTH / 100, DEPTH / 100, DEPTH));
        let mut seen = 0;
        walk(folder.path(), &mut |_| {
            seen += 1;
            if seen == 10 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .unwrap();
        assert_eq!(seen, 10);
        assert!(walk(&folder.path().join("none"), &mut |_| ControlFlow::Continue(())).is_err());
        let closed = folder.path().join("closed");
        fs::create_dir(&closed).unwrap();
        fs::set_permissions(&closed, Permissions::from_mode(0o300)).unwrap();
        // Root reads any folder.
        if !rustix::process::geteuid().is_root() {
            assert!(walk(folder.path(), &mut |_| ControlFlow::Continue(())).is_err());
        }
    });
}
