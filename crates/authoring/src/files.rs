//! Writing files atomically, and reading those of a project, which may have been downloaded: regular files of a bounded size.

use std::path::Path;

use holdfast_contract::problem::{Code, Problem};
use holdfast_untrusted_files::TempFolder;

/// The largest file of a project, or of what is built from it.
const MAX_FILE_BYTES: u64 = 256 << 20;

/// Writes a file atomically, with the folders above it. Everybody may read it.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), Problem> {
    let folder = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    let written = folder.and_then(|()| holdfast_atomic_file::replace(path, bytes, 0o644));
    written.map_err(|error| unusable(path, "written", &error))
}

/// Writes several files into a folder.
pub(crate) fn write_all<'a>(
    folder: &Path,
    files: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<(), Problem> {
    files.into_iter().try_for_each(|(name, text)| write(&folder.join(name), text.as_bytes()))
}

/// The names in a folder, sorted.
pub(crate) fn names(folder: &Path) -> Result<Vec<String>, Problem> {
    let read = |error| unusable(folder, "read", &error);
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(read)? {
        names.push(entry.map_err(read)?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

/// A file's text.
pub(crate) fn read_text(path: &Path) -> Result<String, Problem> {
    holdfast_untrusted_files::read_text(path, MAX_FILE_BYTES)
        .map_err(|error| unusable(path, "read", &error.into()))
}

/// A file's bytes.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Problem> {
    holdfast_untrusted_files::read(path, MAX_FILE_BYTES)
        .map_err(|error| unusable(path, "read", &error.into()))
}

/// A temporary folder, removed when it is dropped, whatever a build has made in it.
pub(crate) fn temporary() -> Result<TempFolder, Problem> {
    TempFolder::new().map_err(|error| {
        Problem::new(Code::BuildFailed, format!("could not create a temporary folder: {error}"))
            .help("Check the disk and `TMPDIR`.")
    })
}

pub(crate) fn unusable(path: &Path, done: &str, error: &std::io::Error) -> Problem {
    Problem::new(Code::BuildFailed, format!("{} cannot be {done}: {error}", path.display()))
        .help("Check the path, its permissions and the disk.")
}
