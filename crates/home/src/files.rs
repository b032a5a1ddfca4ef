//! File access of this crate: reading with a size limit, creating without overwriting, replacing atomically; every error tells what
//! to do.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use holdfast_contract::problem::{Code, Location, Problem};
use holdfast_untrusted_files::FileError;

/// The permission bits of group and others.
pub(crate) const OTHERS: u32 = 0o077;

/// An I/O error as a problem with help.
pub(crate) fn failed(code: Code, path: &Path, doing: &str, error: &io::Error) -> Problem {
    let shown = path.display();
    let found = Problem::in_file(code, path, format!("{shown} cannot be {doing}: {}", message(error)));
    match error.kind() {
        ErrorKind::PermissionDenied => {
            found.help(format!("Look at `ls -ld {shown}`, or name another home with --home."))
        }
        ErrorKind::ReadOnlyFilesystem => {
            found.help("It is on a read-only mount; name another home with --home, or mount it for writing.")
        }
        ErrorKind::NotADirectory => {
            found.help("A parent of it is a file and must be a folder; move it away.")
        }
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => found.help("Free some space and try again."),
        _ => found,
    }
}

/// The error message without the error number.
fn message(error: &io::Error) -> String {
    let text = error.to_string();
    let words = text.split(" (os error").next().unwrap_or(&text);
    let mut letters = words.chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}

/// The size limit and error codes for reading a file.
pub(crate) struct Bounds {
    /// It cannot be read.
    pub(crate) unreadable: Code,
    /// It is larger than allowed.
    pub(crate) too_large: Code,
    /// The maximal size in bytes.
    pub(crate) max_bytes: u64,
}

/// The bytes of a file; none if it does not exist.
pub(crate) fn read(path: &Path, bounds: &Bounds) -> Result<Option<Vec<u8>>, Problem> {
    match holdfast_untrusted_files::read(path, bounds.max_bytes) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(FileError::Io(error)) => Err(failed(bounds.unreadable, path, "read", &error)),
        Err(FileError::Irregular(kind)) => {
            let what = format!("{} is {kind}, not a file", path.display());
            let problem = Problem::in_file(bounds.unreadable, path, what);
            Err(problem.help("Move it away, and write a file of that name."))
        }
        Err(FileError::TooLarge { max_bytes }) => {
            let bytes = fs::metadata(path).map_or(max_bytes.saturating_add(1), |found| found.len());
            let what = format!("the file has {bytes} bytes; the limit is {max_bytes}");
            Err(Problem::in_file(bounds.too_large, path, what))
        }
    }
}

/// Bytes as text, without a byte order mark.
pub(crate) fn text(path: &Path, bytes: Vec<u8>, unreadable: Code) -> Result<String, Problem> {
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text)),
        Err(error) => {
            let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = valid.iter().filter(|byte| **byte == b'\n').count() + 1;
            let column = valid.rsplit(|byte| *byte == b'\n').next().map_or(0, <[u8]>::len) + 1;
            let place = |number| u32::try_from(number).unwrap_or(u32::MAX);
            let location =
                Location { file: path.to_owned(), line: place(line), column: place(column), field: None };
            let what = "the file is not valid UTF-8";
            Err(Problem::new(unreadable, what).at(location).help("Save the file as UTF-8."))
        }
    }
}

/// Creates a folder with permissions for the owner only. Returns whether it was created.
pub(crate) fn make_folder(path: &Path) -> Result<bool, Problem> {
    if path.is_dir() {
        return Ok(false);
    }
    if fs::symlink_metadata(path).is_ok() {
        let what = format!("{} is not a folder, and must be one", path.display());
        return Err(Problem::in_file(Code::HomeUnavailable, path, what)
            .help("Move it away, or name another home with --home."));
    }
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|error| failed(Code::HomeUnavailable, path, "made", &error))?;
    Ok(true)
}

/// Creates a file with permissions for the owner only, unless it exists. Returns whether it was created.
pub(crate) fn make_file(path: &Path, text: &str) -> Result<bool, Problem> {
    let failed = |error: io::Error| failed(Code::HomeUnavailable, path, "written", &error);
    let mut file = match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(false),
        opened => opened.map_err(failed)?,
    };
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    if let Err(error) = written {
        // An incomplete file would be taken for the user's own.
        let _ = fs::remove_file(path);
        return Err(failed(error));
    }
    Ok(true)
}

/// Replaces a file atomically. Links are followed and the file's permissions are kept.
pub(crate) fn replace(path: &Path, text: &str) -> Result<(), Problem> {
    let path = &path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let mode = fs::metadata(path).map_or(0o600, |found| found.permissions().mode() & 0o7777);
    holdfast_atomic_file::replace(path, text.as_bytes(), mode)
        .map_err(|error| failed(Code::HomeUnavailable, path, "written", &error))
}

/// A field of a file whose line is not known.
pub(crate) fn location(path: &Path, field: &str) -> Location {
    Location { file: path.to_owned(), field: Some(field.to_owned()), ..Location::default() }
}
