use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::{FolderTree, TreeError};

struct Fixture {
    folder: tempfile::TempDir,
    tree: FolderTree,
}

impl Fixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["given/a", "home"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        fs::write(folder.path().join("outside"), "secret").unwrap();
        fs::write(folder.path().join("given/a/file"), "text").unwrap();
        let tree = FolderTree::open(&folder.path().join("given")).unwrap();
        Self { folder, tree }
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, TreeError> {
        self.tree.read(Path::new(path), 100)
    }

    fn write(&self, path: &str) -> Result<(), TreeError> {
        self.tree.write(Path::new(path), b"new")
    }
}

#[test]
fn files_are_written_read_listed_and_removed() {
    let it = Fixture::new();
    it.write("b/c/file").unwrap();
    it.write("b/c/file").unwrap();
    assert_eq!(it.read("b/c/file").unwrap(), b"new");
    let names = |path: &str| {
        let entries = it.tree.list(Path::new(path), 10).unwrap();
        entries
            .into_iter()
            .map(|entry| format!("{} {} {}", entry.name, entry.kind, entry.bytes))
            .collect::<Vec<_>>()
    };
    assert_eq!(names(""), ["a folder 0", "b folder 0"]);
    assert_eq!(names("b/c"), ["file file 3"], "no temporary file stays");
    assert_eq!(it.tree.stat(Path::new("a/file")).unwrap().bytes, 4);
    assert!(
        matches!(it.tree.remove(Path::new("b")), Err(TreeError::Refused(why)) if why.contains("not empty"))
    );
    it.tree.remove(Path::new("b/c/file")).unwrap();
    it.tree.remove(Path::new("b/c")).unwrap();
    assert_eq!(it.tree.stat(Path::new("b/c")), Err(TreeError::NotFound));
    it.tree.make_folder(Path::new("x/y")).unwrap();
    it.tree.make_folder(Path::new("x/y")).unwrap();
    assert!(
        matches!(it.tree.list(Path::new(""), 2), Err(TreeError::Refused(_))),
        "more entries than asked for"
    );
    assert!(
        matches!(it.tree.read(Path::new("a/file"), 3), Err(TreeError::Refused(_))),
        "more bytes than asked for"
    );
}

#[test]
fn no_link_leads_out() {
    let it = Fixture::new();
    let at = |name: &str| it.folder.path().join("given").join(name);
    symlink("../../outside", at("a/out")).unwrap();
    symlink("../..", at("a/up")).unwrap();
    symlink("/etc", at("a/etc")).unwrap();
    symlink("file", at("a/inside")).unwrap();
    assert_eq!(it.read("a/inside").unwrap(), b"text");
    for path in ["a/out", "a/up/outside", "a/etc/passwd", "../outside"] {
        assert!(matches!(it.read(path), Err(TreeError::Refused(_))), "{path}");
        assert!(matches!(it.write(path), Err(TreeError::Refused(_))), "{path}");
    }
    assert!(matches!(it.tree.make_folder(Path::new("a/up/new")), Err(TreeError::Refused(_))));
    assert!(matches!(it.tree.remove(Path::new("a/up/outside")), Err(TreeError::Refused(_))));
    assert!(matches!(it.tree.list(Path::new("a/etc"), 10), Err(TreeError::Refused(_))));
    assert_eq!(fs::read_to_string(it.folder.path().join("outside")).unwrap(), "secret");
}

#[test]
fn only_regular_files_are_opened() {
    let it = Fixture::new();
    let pipe = it.folder.path().join("given/pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    for path in ["pipe", "a"] {
        assert!(matches!(it.read(path), Err(TreeError::Refused(_))), "{path}");
        assert!(matches!(it.write(path), Err(TreeError::Refused(_))), "{path}");
    }
}

#[test]
fn a_folder_that_is_left_out_is_not_reached() {
    let it = Fixture::new();
    let tree = FolderTree::open(it.folder.path()).unwrap().without(&it.folder.path().join("home"));
    symlink("../home", it.folder.path().join("given/home")).unwrap();
    for path in ["home/new", "given/home/new"] {
        assert!(matches!(tree.write(Path::new(path), b"x"), Err(TreeError::Refused(_))), "{path}");
    }
    assert!(matches!(tree.list(Path::new("home"), 9), Err(TreeError::Refused(_))));
    assert_eq!(fs::read_dir(it.folder.path().join("home")).unwrap().count(), 0);
    assert_eq!(tree.read(Path::new("given/a/file"), 9).unwrap(), b"text");
}
