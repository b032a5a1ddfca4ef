//! Files that change while they are copied, and archives that no backup would be.

use std::cell::Cell;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

use tar::{EntryType, Header};

use super::archive::{ArchiveWriter, Copied, Refusal, UnpackLimits, unpack, unpack_within};
use super::manifest::{MANIFEST, Manifest, key};

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

/// Ends an archive, and reads what it has besides its manifest.
fn finished(writer: ArchiveWriter<Vec<u8>>) -> Vec<(String, Vec<u8>)> {
    let mut entries = entries(&writer.finish(Vec::new()).unwrap());
    assert_eq!(entries.pop().unwrap().0, MANIFEST, "the manifest is the last entry");
    entries
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
    let mut tar = ArchiveWriter::new(Vec::new());
    let how = tar.append(reader, || file.metadata(), Path::new("data/notes")).unwrap();
    fs::write(folder.path().join("next"), "next").unwrap();
    let opened = File::open(folder.path()).unwrap();
    let next = tar.append_file(&opened, Path::new("next"), Path::new("next")).unwrap();
    assert!(matches!(next, Copied::Whole), "{next:?}");
    (how, finished(tar))
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
            assert!(matches!(how, Copied::Whole), "{how:?}");
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
    let mut tar = ArchiveWriter::new(Vec::new());
    let how = tar.append(&file, metadata, Path::new("data/notes")).unwrap();
    fs::write(folder.path().join("next"), "next").unwrap();
    tar.append_file(&File::open(folder.path()).unwrap(), Path::new("next"), Path::new("next")).unwrap();
    let entries = finished(tar);
    assert!(matches!(how, Copied::Shortened), "{how:?}");
    assert_eq!(names(&entries), ["data/notes", "next"]);
    assert_eq!(entries[0].1.len(), LARGE);
    assert!(entries[0].1[5 << 20..].iter().all(|byte| *byte == 0));
}

/// Finding L8: a file that cannot be read is named, and the others are copied.
#[test]
fn a_file_that_cannot_be_read_does_not_end_the_backup() {
    struct Unreadable;
    impl Read for Unreadable {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::ErrorKind::PermissionDenied.into())
        }
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("next"), "next").unwrap();
    fs::write(folder.path().join("large"), vec![7; LARGE]).unwrap();
    let opened = File::open(folder.path()).unwrap();
    let mut tar = ArchiveWriter::new(Vec::new());
    let metadata = || fs::metadata(folder.path().join("large"));
    let how = tar.append(Unreadable, metadata, Path::new("a")).unwrap();
    assert!(matches!(how, Copied::Unreadable(_)), "{how:?}");
    // The disk fails in the middle of a file whose size is written already.
    let begins = File::open(folder.path().join("large")).unwrap().take(5 << 20).chain(Unreadable);
    let how = tar.append(begins, metadata, Path::new("b")).unwrap();
    assert!(matches!(how, Copied::Shortened), "{how:?}");
    tar.append_file(&opened, Path::new("next"), Path::new("next")).unwrap();
    let entries = finished(tar);
    assert_eq!(names(&entries), ["b", "next"]);
    assert_eq!(entries[0].1.len(), LARGE);
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
    let mut tar = ArchiveWriter::new(Vec::new());
    for name in
        ["link", "inside", "replaced/secret", "../secret", "pipe", "folder", "missing", "folder/file/x"]
    {
        let how = tar.append_file(&home, Path::new(name), Path::new(name)).unwrap();
        assert!(matches!(how, Copied::Gone), "{name}: {how:?}");
    }
    let how = tar.append_file(&home, Path::new("folder/file"), Path::new("folder/file")).unwrap();
    assert!(matches!(how, Copied::Whole), "{how:?}");
    assert_eq!(names(&finished(tar)), ["folder/file"]);
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
        Ok(_) => Ok(outer),
        Err(Refusal::Invalid(why) | Refusal::Damaged(why)) => Err(why),
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
    assert!(unpacked(&[file("a"), file("a/b")]).is_err(), "a file is not a folder");
}

#[test]
fn what_is_unpacked_belongs_to_the_user_alone() {
    use std::os::unix::fs::PermissionsExt;

    let deep = entry("data/notes/x", EntryType::Regular, "text");
    let config = entry("config", EntryType::Directory, "");
    let outer = unpacked(&[config, deep, manifest_of(&[("data/notes/x", "text")])]).unwrap();
    let mode = |name: &str| fs::metadata(outer.path().join("home").join(name)).unwrap().permissions().mode();
    assert_eq!(mode("config") & 0o777, 0o700);
    assert_eq!(mode("data/notes") & 0o777, 0o700);
    assert_eq!(mode("data/notes/x") & 0o7777, 0o644);
    assert_eq!(fs::read_to_string(outer.path().join("home/data/notes/x")).unwrap(), "text");
}

/// The manifest of an archive with these files.
fn manifest_of(files: &[(&str, &str)]) -> Vec<u8> {
    let members = files.iter().map(|(name, text)| {
        let digest = holdfast_contract::digest::Digest::of(text.as_bytes());
        ((*name).to_owned(), super::manifest::Member { bytes: text.len() as u64, mode: 0o644, digest })
    });
    let manifest = Manifest::new(members.collect(), Vec::new()).write().unwrap();
    entry(MANIFEST, EntryType::Regular, std::str::from_utf8(&manifest).unwrap())
}

/// The end of a compressed archive that was cut.
struct EndsTooEarly;

impl Read for EndsTooEarly {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

/// Findings D11 and B12: what is unpacked is exactly what was copied.
#[test]
fn an_archive_that_is_not_what_its_manifest_lists_is_refused() {
    let file = |name: &str, text: &str| entry(name, EntryType::Regular, text);
    let manifest = || manifest_of(&[("a", "first"), ("b", "other")]);
    unpacked(&[file("a", "first"), file("b", "other"), manifest()]).unwrap();
    for (why, entries) in [
        ("`a` is not what was copied", vec![file("a", "other"), file("b", "first"), manifest()]),
        ("`b` is missing", vec![file("a", "first"), manifest()]),
        ("`b` has 6 bytes instead of 5", vec![file("a", "first"), file("b", "others"), manifest()]),
        ("`c` was added", vec![file("a", "first"), file("b", "other"), file("c", ""), manifest()]),
        ("no manifest", vec![file("a", "first"), file("b", "other")]),
        ("no manifest", vec![]),
        ("after the manifest", vec![file("a", "first"), manifest(), file("b", "other")]),
        ("twice", vec![manifest(), manifest()]),
        ("the manifest: ", vec![file(MANIFEST, "{}")]),
    ] {
        let refused = unpacked(&entries).expect_err(why);
        assert!(refused.contains(why), "{refused}");
    }
    let whole = [file("a", "first"), manifest_of(&[("a", "first")]), vec![0; 1024]].concat();
    let damaged = |archive: &mut dyn Read| match unpack(archive, tempfile::tempdir().unwrap().path()) {
        Err(Refusal::Damaged(why)) => why,
        _ => panic!("it is not refused as damaged"),
    };
    // In a header, in a file, in the padding after it, and in the manifest.
    for (at, why) in [
        (100, "cannot be read to its end"),
        (515, "cannot be read to its end"),
        (700, "cannot be read to its end"),
        (1600, "the manifest: "),
    ] {
        let refused = damaged(&mut &whole[..at]);
        assert!(refused.contains(why), "cut at {at}: {refused}");
        let refused = damaged(&mut whole[..at].chain(EndsTooEarly));
        assert!(refused.contains("ends too early"), "compressed, and cut at {at}: {refused}");
    }
    let refused = damaged(&mut &whole[..1024]);
    assert!(refused.contains("no manifest"), "cut between entries: {refused}");
    let refused = damaged(&mut [whole.as_slice(), b"something"].concat().as_slice());
    assert!(refused.contains("after its end"), "{refused}");
}

#[test]
fn every_changed_byte_of_a_manifest_is_noticed() {
    let members =
        [("a".to_owned(), super::manifest::Member { bytes: 1, mode: 0o644, digest: Default::default() })];
    let written = Manifest::new(members.into(), vec!["b".to_owned()]).write().unwrap();
    let whole = Manifest::read(&written).unwrap();
    for at in 0..written.len() {
        for bit in [1, 4, 32] {
            let mut changed = written.clone();
            changed[at] ^= bit;
            assert_ne!(Manifest::read(&changed).ok().as_ref(), Some(&whole), "byte {at}: {changed:?}");
        }
    }
}

#[test]
fn different_paths_have_different_keys() {
    use std::os::unix::ffi::OsStrExt;

    let paths =
        [&b"a"[..], b"a\\xff", b"a\xff", b"a\n", b"a\\n", "\u{e4}".as_bytes(), b"\\xc3\\xa4", b"a\\\\n"];
    let keys: std::collections::BTreeSet<_> =
        paths.iter().map(|path| key(Path::new(std::ffi::OsStr::from_bytes(path)))).collect();
    assert_eq!(keys.len(), paths.len(), "{keys:?}");
}

/// The header of a file of this size.
fn header(name: &str, kind: EntryType, size: u64) -> Vec<u8> {
    let mut bytes = entry(name, kind, "");
    let mut header = Header::from_byte_slice(bytes.as_slice()).clone();
    header.set_size(size);
    header.set_cksum();
    bytes = header.as_bytes().to_vec();
    bytes
}

/// Finding N4: what an archive of a few bytes can stand for.
#[test]
fn an_archive_that_expands_without_end_is_refused() {
    const HUGE: u64 = 1 << 60;
    let refused = |archive: &mut dyn Read, set: &dyn Fn(&mut UnpackLimits)| {
        let folder = tempfile::tempdir().unwrap();
        let mut limits = UnpackLimits::new(folder.path()).unwrap();
        set(&mut limits);
        let why = match unpack_within(archive, folder.path(), limits) {
            Err(Refusal::Invalid(why) | Refusal::Damaged(why)) => why,
            Err(Refusal::Io(error)) => error.to_string(),
            Ok(_) => panic!("it was unpacked"),
        };
        let taken = |path: &Path| {
            fs::metadata(path).map_or(0, |it| std::os::unix::fs::MetadataExt::blocks(&it) * 512)
        };
        assert!(taken(&folder.path().join("a")) < 64 << 20, "{why}");
        why
    };
    // Zeros are holes and take no room, but time.
    let zeros = header("a", EntryType::Regular, HUGE);
    let why = refused(&mut zeros.chain(io::repeat(0)), &|limits| limits.zero_bytes = 32 << 20);
    assert!(why.contains("more zeros"), "{why}");
    // Anything else takes room, until too little is left.
    let sevens = header("a", EntryType::Regular, HUGE);
    let why = refused(&mut sevens.chain(io::repeat(7)), &|limits| limits.min_free = u64::MAX);
    assert!(why.contains("bytes left"), "{why}");
    // What the format has for long names is not read into memory, whatever its length.
    for (kind, expected) in [
        (EntryType::GNULongName, "a path in it has more than"),
        (EntryType::GNULongLink, "neither a plain file nor a folder"),
        (EntryType::XHeader, "neither a plain file nor a folder"),
        (EntryType::GNUSparse, "neither a plain file nor a folder"),
    ] {
        let why = refused(&mut header("a", kind, HUGE).chain(io::repeat(b'x')), &|_| {});
        assert!(why.contains(expected), "{kind:?}: {why}");
    }
    let many: Vec<u8> =
        (0..2000).flat_map(|number| entry(&format!("f{number}"), EntryType::Regular, "")).collect();
    let why = refused(&mut many.as_slice(), &|limits| limits.path_bytes = 4000);
    assert!(why.contains("too many files"), "{why}");
}

/// Names that do not fit a header, and holes, come back as they were.
#[test]
fn long_names_and_holes_are_unpacked_as_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let long = format!("{}/{}", "d".repeat(180), "f".repeat(200));
    let mut tar = ArchiveWriter::new(Vec::new());
    let content = [vec![0; 70_000], vec![1; 5], vec![0; 8192]].concat();
    fs::write(folder.path().join("x"), &content).unwrap();
    let file = File::open(folder.path().join("x")).unwrap();
    tar.append(&file, || file.metadata(), Path::new(&long)).unwrap();
    let target = tempfile::tempdir().unwrap();
    assert!(unpack(tar.finish(Vec::new()).unwrap().as_slice(), target.path()).is_ok());
    assert_eq!(fs::read(target.path().join(&long)).unwrap(), content);
}

/// Finding N5: what decides and is not in a backup does not count as absent.
#[test]
fn what_a_backup_lacks_and_decides_is_marked_as_missing() {
    let outer = tempfile::tempdir().unwrap();
    let folder = outer.path().join("home");
    fs::create_dir_all(folder.join("config")).unwrap();
    fs::write(folder.join("config/settings.yaml"), "kept").unwrap();
    let skipped = [
        "config/policy.yaml",
        "config/settings.yaml",
        "extensions/guard",
        "extensions/guard/inner",
        ".env",
        "data/notes/link",
        "mine",
        "../outside",
        "/tmp/absolute",
    ];
    let manifest = Manifest::new(Default::default(), skipped.map(str::to_owned).to_vec());
    super::mark_missing(&manifest, &folder).unwrap();
    for marked in ["config/policy.yaml", "extensions/guard", ".env"] {
        let text = String::from_utf8(fs::read(folder.join(marked)).unwrap());
        assert!(text.is_err(), "{marked} can be read as text");
    }
    assert_eq!(fs::read_to_string(folder.join("config/settings.yaml")).unwrap(), "kept");
    for other in ["data", "mine"] {
        assert!(!folder.join(other).exists(), "{other}");
    }
    assert_eq!(fs::read_dir(outer.path()).unwrap().count(), 1, "nothing is written beside the folder");
}
