//! Opens and reads regular files, and nothing else.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

/// Why a file was not read.
#[derive(Debug)]
pub enum FileError {
    /// The system refused it, or it is not there.
    Io(io::Error),
    /// It is not a regular file; this is what it is.
    Irregular(&'static str),
    /// It has more bytes than are read.
    TooLarge {
        /// The most bytes that are read.
        max_bytes: u64,
    },
}

impl FileError {
    /// Whether there is no such file.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Io(error) if error.kind() == ErrorKind::NotFound)
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Irregular(kind) => write!(f, "it is {kind}, not a regular file"),
            Self::TooLarge { max_bytes } => write!(f, "it has more than {max_bytes} bytes"),
        }
    }
}

impl std::error::Error for FileError {}

impl From<io::Error> for FileError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<FileError> for io::Error {
    fn from(error: FileError) -> Self {
        match error {
            FileError::Io(error) => error,
            other => Self::other(other.to_string()),
        }
    }
}

/// Fails if something exists at this path that is not a regular file. For files that a library opens by their path; use
/// [`open_regular`] where the file can be opened here. Links are followed.
pub fn check_regular(path: &Path) -> Result<(), FileError> {
    match regular_length(path)? {
        // Files of the kernel, such as `/proc/kmsg`, claim to be regular and empty, and reading them may block.
        Some(0) => match read(path, 0) {
            // It was empty, and somebody has written to it since.
            Err(FileError::TooLarge { .. }) if regular_length(path)? != Some(0) => Ok(()),
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

/// The length of a regular file; none if there is no file.
fn regular_length(path: &Path) -> Result<Option<u64>, FileError> {
    match fs::metadata(path) {
        Ok(found) if found.is_file() => Ok(Some(found.len())),
        Ok(found) => Err(FileError::Irregular(kind(found.file_type()))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Opens a regular file with these options. What exists and is anything else is not opened at all, because opening a device may already
/// have an effect. Links are followed; where they must not be, the caller resolves the path first.
pub fn open_regular(options: &mut OpenOptions, path: &Path) -> Result<File, FileError> {
    regular_length(path)?;
    // The path may have been replaced since: a FIFO must not block the open, and a terminal must not become ours.
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = options.custom_flags(i32::try_from(flags.bits()).unwrap_or_default()).open(path)?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(FileError::Irregular(kind(found.file_type())));
    }
    Ok(file)
}

/// The bytes of a regular file that has at most this many. A link that leads nowhere is not a missing file: a caller that reads defaults in
/// its place would ignore what a user has set.
pub fn read(path: &Path, max_bytes: u64) -> Result<Vec<u8>, FileError> {
    let file = match open_regular(OpenOptions::new().read(true), path) {
        Err(error) if error.is_not_found() && fs::symlink_metadata(path).is_ok() => {
            return Err(FileError::Irregular("a link that leads nowhere"));
        }
        opened => opened?,
    };
    // A sparse file is refused before anything is allocated for it.
    if file.metadata()?.len() > max_bytes {
        return Err(FileError::TooLarge { max_bytes });
    }
    let mut bytes = Vec::new();
    file.take(max_bytes.saturating_add(1)).read_to_end(&mut bytes)?;
    // It may have grown since.
    if bytes.len() as u64 > max_bytes {
        return Err(FileError::TooLarge { max_bytes });
    }
    Ok(bytes)
}

/// The text of a regular file that has at most this many bytes.
pub fn read_text(path: &Path, max_bytes: u64) -> Result<String, FileError> {
    let invalid = |_| FileError::Io(io::Error::new(ErrorKind::InvalidData, "it is not valid UTF-8"));
    String::from_utf8(read(path, max_bytes)?).map_err(invalid)
}

fn kind(found: fs::FileType) -> &'static str {
    match found {
        kind if kind.is_dir() => "a folder",
        kind if kind.is_fifo() => "a pipe",
        kind if kind.is_socket() => "a socket",
        kind if kind.is_char_device() || kind.is_block_device() => "a device",
        _ => "something else",
    }
}
