//! Files that change while they are copied, and archives that no backup would be.

use std::cell::Cell;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

use tar::{Builder, EntryType, Header};

use super::archive::{Copied, Refusal, append, append_file, unpack};

/// A file to which somebody does something after so many reads.
struct Changing<'a> {
    file: &'a File,
    reads: Cell<usize>,
    at: usize,
    change: &'a dyn Fn(),
}

impl Read for Changing<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.reads.set(self.reads.get() + 1);
        if self.reads.get() == self.at {
            (self.change)();
        }
        let mut file = self.file;
        file.read(buffer)
    }
}

/// Bytes that read as an entry of an archive.
fn entry(name: &str, kind: EntryType, text: &str) -> Vec<u8> {
    let mut header = Header::new_gnu();
    // Not by `set_path`, which refuses what is to be refused when it is read.
    for (to, from) in header.as_gnu_mut().unwrap().name.iter_mut().zip(name.bytes()) {
        *to = from;
    }
    header.set_entry_type(kind);
    header.set_mode(0o644);
    header.set_mtime(0);
    header.set_size(text.len() as u64);
    if matches!(kind, EntryType::Symlink | EntryType::Link) {
        header.set_link_name("/etc").unwrap();
    }
    header.set_cksum();
    let mut bytes = header.as_bytes().to_vec();
    bytes.extend(text.bytes());
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

/// What an archive has: names and contents.
fn entries(bytes: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut archive = tar::Archive::new(bytes);
    let entries = archive.entries().unwrap().map(|entry| {
        let mut entry = entry.unwrap();
        let mut content = Vec::new();
        entry.read_to_end(&mut content).unwrap();
        (entry.path().unwrap().display().to_string(), content)
    });
    entries.collect()
}

/// Copies a file of this size that changes at this read, and another one after it.
fn copied(size: usize, at: usize, change: impl Fn(&mut File)) -> (Copied, Vec<(String, Vec<u8>)>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes");
    fs::write(&path, vec![7; size]).unwrap();
    let changed = || change(&mut File::options().append(true).open(&path).unwrap());
    let file = File::open(&path).unwrap();
    let reader = Changing { file: &file, reads: Cell::new(0), at, change: &changed };
    let mut tar = Builder::new(Vec::new());
    let how = append(&mut tar, reader, || file.metadata(), Path::new("data/notes")).unwrap();
    fs::write(folder.path().join("next"), "next").unwrap();
    let opened = File::open(folder.path()).unwrap();
    assert_eq!(append_file(&mut tar, &opened, Path::new("next")).unwrap(), Copied::Whole);
    (how, entries(&tar.into_inner().unwrap()))
}

fn names(entries: &[(String, Vec<u8>)]) -> Vec<&str> {
    entries.iter().map(|(name, _)| name.as_str()).collect()
}

const LARGE: usize = (9 << 20) + 512;

#[test]
fn what_is_appended_to_a_file_while_it_is_copied_is_no_entry_of_the_backup() {
    let planted = entry("config/policy.yaml", EntryType::Regular, "profile: full-auto\n");
    for size in [0, 1, 512, 4 << 20, LARGE] {
        for at in [1, 2, 3, 20, 200] {
            let (how, entries) = copied(size, at, |file| file.write_all(&planted).unwrap());
            assert_eq!(how, Copied::Whole);
            assert_eq!(names(&entries), ["data/notes", "next"], "{size} bytes, at read {at}");
            assert!(entries[0].1[..size].iter().all(|byte| *byte == 7));
            assert_eq!(entries[1].1, b"next");
        }
    }
}

#[test]
fn a_file_that_becomes_shorter_while_it_is_copied_does_not_shift_what_comes_after_it() {
    for at in [1, 2, 20, 200] {
        let (_, entries) = copied(4 << 10, at, |file| file.set_len(3).unwrap());
        assert_eq!(names(&entries), ["data/notes", "next"], "small, at read {at}");
        assert!(entries[0].1.iter().all(|byte| *byte == 7), "what was read");
    }
    // After the part that is read ahead, when the size is known already.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes");
    fs::write(&path, vec![7; LARGE]).unwrap();
    let file = File::open(&path).unwrap();
    let calls = Cell::new(0);
    let metadata = || {
        let metadata = file.metadata();
        calls.set(calls.get() + 1);
        if calls.get() == 2 {
            File::options().write(true).open(&path)?.set_len(5 << 20)?;
        }
        metadata
    };
    let mut tar = Builder::new(Vec::new());
    let how = append(&mut tar, &file, metadata, Path::new("data/notes")).unwrap();
    tar.append_data(&mut file_header(4), "next", &b"next"[..]).unwrap();
    let entries = self::entries(&tar.into_inner().unwrap());
    assert_eq!((how, names(&entries)), (Copied::Shortened, vec!["data/notes", "next"]));
    assert_eq!(entries[0].1.len(), LARGE);
    assert!(entries[0].1[5 << 20..].iter().all(|byte| *byte == 0));
}

fn file_header(size: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_size(size);
    header
}

#[test]
fn what_is_no_plain_file_when_it_is_opened_is_left_out() {
    let outer = tempfile::tempdir().unwrap();
    let path = |name: &str| outer.path().join(name);
    fs::create_dir_all(path("home/folder")).unwrap();
    fs::write(path("secret"), "hunter2").unwrap();
    fs::write(path("home/folder/file"), "text").unwrap();
    std::os::unix::fs::symlink(path("secret"), path("home/link")).unwrap();
    std::os::unix::fs::symlink("folder/file", path("home/inside")).unwrap();
    std::os::unix::fs::symlink(outer.path(), path("home/replaced")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, path("home/pipe"), rustix::fs::Mode::RWXU).unwrap();
    let home = File::open(path("home")).unwrap();
    let mut tar = Builder::new(Vec::new());
    for name in
        ["link", "inside", "replaced/secret", "../secret", "pipe", "folder", "missing", "folder/file/x"]
    {
        assert_eq!(append_file(&mut tar, &home, Path::new(name)).unwrap(), Copied::Gone, "{name}");
    }
    assert_eq!(append_file(&mut tar, &home, Path::new("folder/file")).unwrap(), Copied::Whole);
    assert_eq!(names(&entries(&tar.into_inner().unwrap())), ["folder/file"]);
}

fn unpacked(entries: &[Vec<u8>]) -> Result<tempfile::TempDir, String> {
    let mut bytes = entries.concat();
    bytes.extend([0; 1024]);
    let outer = tempfile::tempdir().unwrap();
    let folder = outer.path().join("home");
    fs::create_dir(&folder).unwrap();
    let done = unpack(bytes.as_slice(), &folder);
    let beside = fs::read_dir(outer.path()).unwrap().count();
    assert_eq!(beside, 1, "nothing is written beside the folder");
    match done {
        Ok(()) => Ok(outer),
        Err(Refusal::Invalid(why)) => Err(why),
        Err(Refusal::Io(error)) => Err(error.to_string()),
    }
}

#[test]
fn an_archive_with_anything_but_files_and_folders_each_once_is_refused() {
    let file = |name: &str| entry(name, EntryType::Regular, "text");
    let of = |kind: EntryType| entry("x", kind, "");
    for (why, entries) in [
        ("twice", vec![file("a"), file("b"), file("a")]),
        ("twice", vec![file("a"), file("./a")]),
        ("twice", vec![file("a/b"), file("a//b")]),
        ("twice", vec![file("a/b"), file("a/./b")]),
        ("twice", vec![entry("a", EntryType::Directory, ""), file("a")]),
        ("relative", vec![file("/etc/planted")]),
        ("relative", vec![file("../planted")]),
        ("relative", vec![file("a/../../planted")]),
        ("relative", vec![file("a/../b")]),
        ("neither", vec![of(EntryType::Symlink), file("x/planted")]),
        ("neither", vec![of(EntryType::Link)]),
        ("neither", vec![of(EntryType::Fifo)]),
        ("neither", vec![of(EntryType::Char)]),
        ("neither", vec![of(EntryType::Block)]),
        ("neither", vec![of(EntryType::XGlobalHeader)]),
        ("neither", vec![file(".")]),
    ] {
        let refused = unpacked(&entries).expect_err(why);
        assert!(refused.contains(why), "{refused}");
    }
    assert!(unpacked(&[file("a"), file("a/b")]).is_err(), "a file is no folder");
}

#[test]
fn what_is_unpacked_belongs_to_the_user_alone() {
    use std::os::unix::fs::PermissionsExt;

    let deep = entry("data/notes/x", EntryType::Regular, "text");
    let outer = unpacked(&[entry("config", EntryType::Directory, ""), deep]).unwrap();
    let mode = |name: &str| fs::metadata(outer.path().join("home").join(name)).unwrap().permissions().mode();
    assert_eq!(mode("config") & 0o777, 0o700);
    assert_eq!(mode("data/notes") & 0o777, 0o700);
    assert_eq!(mode("data/notes/x") & 0o7777, 0o644);
    assert_eq!(fs::read_to_string(outer.path().join("home/data/notes/x")).unwrap(), "text");
}
