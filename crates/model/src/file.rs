//! Reads the files that models are played from: scripts and tapes. Only regular files are opened, never more than a bound is read, and
//! nothing waits for another process.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;

/// The largest file that is read.
pub(crate) const MAX_FILE_BYTES: u64 = 16 << 20;

/// The text of a regular file. Blocks while the disk is read.
pub(crate) fn read_text(path: &Path) -> io::Result<String> {
    let file = open_regular(OpenOptions::new().read(true), path)?;
    let mut text = String::new();
    file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(io::Error::other(format!("it has more than {MAX_FILE_BYTES} bytes")));
    }
    Ok(text)
}

/// Opens a regular file. What exists and is anything else is not opened at all: opening a device may already do something.
pub(crate) fn open_regular(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let irregular = || io::Error::other("it is not a regular file");
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => return Err(irregular()),
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    // The path may have been replaced since: a FIFO must not block the open, and a terminal must not become ours.
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = options.custom_flags(i32::try_from(flags.bits()).unwrap_or_default()).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(irregular());
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
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
