//! What stands in a home in the place of a file or a folder without being one: a pipe, a device, a link that leads nowhere. A reader takes
//! such a path as missing, which is safe, but the user should know.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use holdfast_contract::problem::{Code, Problem};
use holdfast_untrusted_files::{FileError, check_regular, open_regular};

use super::Home;

/// Files that are taken as missing when they cannot be read, with the most bytes that are read of them. Those that decide are not here:
/// each of them is an error where it is read.
const FILES: &[(&str, Option<u64>)] = &[
    ("lock", None),
    ("control.path", Some(4096)),
    ("holdfast.db-head", Some(256)),
    ("secrets.lock", None),
    ("secrets.key", Some(1 << 16)),
    ("history", None),
    (".restart_requested", None),
    ("prompts/orchestrator.jinja2", None),
    ("extensions/requirements.txt", None),
    ("generations/executing", Some(1 << 20)),
    ("generations/crashed", Some(1 << 20)),
    ("data/kv/kv.db", None),
    ("data/kv/kv.db-wal", None),
    ("data/kv/kv.db-shm", None),
    ("data/kv/kv.db-journal", None),
    ("data/scheduler/schedules.json", None),
];

/// Folders that are not looked into when something else has their name.
const FOLDERS: &[&str] =
    &["data", "data/kv", "data/scheduler", "generations", "generations/running", "environments", "mcp"];

impl Home {
    /// A warning for everything in the home that stands in the place of a file or a folder without being one, or cannot be read.
    pub fn irregular(&self) -> Vec<Problem> {
        let files = FILES.iter().filter_map(|(name, most)| {
            let path = self.root.join(name);
            wrong_file(&path, *most).map(|what| (path, what, "a file"))
        });
        let folders = FOLDERS.iter().filter_map(|name| {
            let path = self.root.join(name);
            wrong_folder(&path).map(|what| (path, what, "a folder"))
        });
        let socket = Some(self.usual_socket()).filter(|path| !is_socket_or_missing(path));
        let socket = socket.map(|path| (path, "not a socket and is replaced by one".to_owned(), "a socket"));
        let found = files.chain(folders).chain(socket);
        found
            .map(|(path, what, expected)| {
                let what = format!("{} is {what}", path.display());
                let help =
                    format!("Move it away; only {expected} is used there, and made where it is needed.");
                Problem::warning(Code::HomeIrregular, what).help(help)
            })
            .collect()
    }
}

/// What is wrong with a file that is there.
fn wrong_file(path: &Path, most: Option<u64>) -> Option<String> {
    if let Some(wrong) = wrong_link(path) {
        return wrong;
    }
    let opened = check_regular(path).and_then(|()| open_regular(File::options().read(true), path));
    match opened {
        Ok(file) => {
            let length = file.metadata().map_or(0, |found| found.len());
            let most = most.filter(|most| length > *most)?;
            Some(format!("not used: it has {length} bytes, and {most} are the limit"))
        }
        Err(error) if error.is_not_found() => None,
        Err(FileError::Irregular(kind)) => Some(format!("{kind}, not a file, and is not used")),
        Err(error) => Some(format!("not used: {error}")),
    }
}

/// What is wrong with a folder that is there.
fn wrong_folder(path: &Path) -> Option<String> {
    if let Some(wrong) = wrong_link(path) {
        return wrong;
    }
    match fs::metadata(path) {
        Ok(found) if !found.is_dir() => Some("not a folder, and is not used".to_owned()),
        _ => None,
    }
}

/// What is wrong with a path that leads to nothing; none if it leads to something.
fn wrong_link(path: &Path) -> Option<Option<String>> {
    let error = fs::metadata(path).err()?;
    let is_there = fs::symlink_metadata(path).is_ok();
    Some(match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory if !is_there => None,
        ErrorKind::NotFound => Some("a link that leads nowhere, and is not used".to_owned()),
        _ => Some(format!("not used: {error}")),
    })
}

fn is_socket_or_missing(path: &Path) -> bool {
    match fs::symlink_metadata(path) {
        Ok(found) => found.file_type().is_socket(),
        Err(_) => true,
    }
}
