//! Reads the files that models are played from: scripts and tapes. Only regular files are opened, never more than a bound is read, and
//! nothing waits for another process.

use std::io;
use std::path::Path;

pub(crate) use holdfast_untrusted_files::open_regular;

/// The largest file that is read.
pub(crate) const MAX_FILE_BYTES: u64 = 16 << 20;

/// The text of a regular file. Blocks while the disk is read.
pub(crate) fn read_text(path: &Path) -> io::Result<String> {
    Ok(holdfast_untrusted_files::read_text(path, MAX_FILE_BYTES)?)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File, OpenOptions};

    use super::*;

    #[test]
    fn only_regular_files_of_a_bounded_size_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("text"), "hello").unwrap();
        assert_eq!(read_text(&path("text")).unwrap(), "hello");

        rustix::fs::mkfifoat(rustix::fs::CWD, path("fifo"), rustix::fs::Mode::RUSR).unwrap();
        std::os::unix::fs::symlink("/dev/zero", path("link")).unwrap();
        for irregular in [path("fifo"), path("link"), "/dev/zero".into(), "/dev/tty".into(), path(".")] {
            let error = read_text(&irregular).unwrap_err().to_string();
            assert!(error.contains("not a regular file"), "{}: {error}", irregular.display());
            let appended = open_regular(OpenOptions::new().append(true).create(true), &irregular);
            assert!(appended.is_err(), "{}", irregular.display());
        }
        File::create(path("large")).unwrap().set_len(MAX_FILE_BYTES + 1).unwrap();
        assert!(read_text(&path("large")).unwrap_err().to_string().contains("16777216 bytes"));
        assert_eq!(read_text(&path("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
