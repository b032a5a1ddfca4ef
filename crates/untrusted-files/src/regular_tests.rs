//! Only regular files of a bounded size are read, and nothing waits.

use std::fs::{self, File, OpenOptions};

use crate::{FileError, check_regular, open_regular, read, read_text};

const MAX_BYTES: u64 = 1 << 20;

// Finding M7.
#[test]
fn only_regular_files_of_a_bounded_size_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("text"), "hello").unwrap();
    std::os::unix::fs::symlink("text", path("to-text")).unwrap();
    assert_eq!(read_text(&path("to-text"), MAX_BYTES).unwrap(), "hello");

    rustix::fs::mkfifoat(rustix::fs::CWD, path("fifo"), rustix::fs::Mode::RUSR).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(path("socket")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", path("link")).unwrap();
    for irregular in
        [path("fifo"), path("socket"), path("link"), "/dev/zero".into(), "/dev/tty".into(), path(".")]
    {
        let error = read(&irregular, MAX_BYTES).unwrap_err().to_string();
        assert!(error.contains("not a regular file"), "{}: {error}", irregular.display());
        let appended = open_regular(OpenOptions::new().append(true).create(true), &irregular);
        assert!(matches!(appended, Err(FileError::Irregular(_))), "{}", irregular.display());
        assert!(matches!(check_regular(&irregular), Err(FileError::Irregular(_))), "{}", irregular.display());
    }

    File::create(path("sparse")).unwrap().set_len(MAX_BYTES + 1).unwrap();
    assert!(matches!(read(&path("sparse"), MAX_BYTES), Err(FileError::TooLarge { .. })));
    // Its length is 0, and it has more to read.
    assert!(matches!(read("/proc/self/maps".as_ref(), 10), Err(FileError::TooLarge { .. })));
    assert!(check_regular("/proc/self/maps".as_ref()).is_err());
    File::create(path("empty")).unwrap();
    for fine in ["text", "to-text", "sparse", "empty"] {
        check_regular(&path(fine)).unwrap();
    }
    fs::write(path("bytes"), [0xff]).unwrap();
    assert!(read_text(&path("bytes"), MAX_BYTES).is_err());
    std::os::unix::fs::symlink("loop", path("loop")).unwrap();
    assert!(matches!(read(&path("loop"), MAX_BYTES), Err(FileError::Io(_))));
    std::os::unix::fs::symlink("nowhere", path("dangling")).unwrap();
    assert!(read(&path("none"), MAX_BYTES).unwrap_err().is_not_found());
    assert!(matches!(read(&path("dangling"), MAX_BYTES), Err(FileError::Irregular(_))));
    for missing in ["none", "dangling"] {
        check_regular(&path(missing)).unwrap();
    }
}
