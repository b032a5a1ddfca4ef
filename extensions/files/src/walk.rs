//! Walks a folder of the workspace in sorted order, with limits on entries, depth and time. Links are listed but not followed.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use globset::{GlobBuilder, GlobMatcher};
use holdfast_contract::problem::Fault;
use rustix::fs::{AtFlags, Dir, FileType};

use crate::tool::failed;
use crate::tree::Tree;

/// Limits of one walk: entries, folder depth and time.
const MAX_ENTRIES: usize = 100_000;
const MAX_DEPTH: usize = 64;
const WALK_TIMEOUT: Duration = Duration::from_secs(20);

/// An entry of a folder.
pub(crate) struct Entry {
    /// The path relative to the workspace.
    pub(crate) path: PathBuf,
    pub(crate) kind: FileType,
    pub(crate) bytes: u64,
}

/// Whether a walk was complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Walked {
    All,
    /// The visitor or a limit stopped it.
    Partly,
}

/// Which names a walk looks for.
pub(crate) struct Names {
    glob: Option<GlobMatcher>,
    whole_path: bool,
}

impl Names {
    /// A glob without `/` matches names, one with `/` matches paths relative to the walked folder.
    pub(crate) fn new(glob: Option<&str>) -> Result<Self, Fault> {
        let Some(text) = glob else { return Ok(Self { glob: None, whole_path: false }) };
        let built = GlobBuilder::new(text).literal_separator(true).build();
        let built = built.map_err(|error| failed(format!("invalid glob: {error}")))?;
        Ok(Self { glob: Some(built.compile_matcher()), whole_path: text.contains('/') })
    }

    /// Whether a path relative to the walked folder matches.
    pub(crate) fn match_path(&self, path: &Path) -> bool {
        let Some(glob) = &self.glob else { return true };
        if self.whole_path {
            glob.is_match(path)
        } else {
            path.file_name().is_some_and(|name| glob.is_match(name))
        }
    }
}

/// Visits the entries of a folder, and of its subfolders if `recursive`, until the visitor returns `false`.
pub(crate) fn walk(
    tree: &Tree,
    given: &str,
    recursive: bool,
    mut visit: impl FnMut(&Path, Entry) -> bool,
) -> Result<Walked, Fault> {
    let start = tree.relative(given)?;
    let (began, mut seen) = (Instant::now(), 0);
    let mut folders = vec![(start.clone(), 0)];
    let mut walked = Walked::All;
    while let Some((folder, depth)) = folders.pop() {
        let entries = match entries(tree, given, &folder) {
            Ok(entries) => entries,
            Err(fault) if depth == 0 => return Err(fault),
            Err(_) => continue,
        };
        let mut inside = Vec::new();
        for entry in entries {
            seen += 1;
            if seen > MAX_ENTRIES || began.elapsed() > WALK_TIMEOUT {
                return Ok(Walked::Partly);
            }
            if recursive && entry.kind == FileType::Directory {
                if depth < MAX_DEPTH {
                    inside.push((entry.path.clone(), depth + 1));
                } else {
                    walked = Walked::Partly;
                }
            }
            let below = entry.path.strip_prefix(&start).unwrap_or(&entry.path).to_owned();
            if !visit(&below, entry) {
                return Ok(Walked::Partly);
            }
        }
        folders.extend(inside.into_iter().rev());
    }
    Ok(walked)
}

fn entries(tree: &Tree, given: &str, folder: &Path) -> Result<Vec<Entry>, Fault> {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let handle = tree.folder(given, folder)?;
    let unreadable = |error: rustix::io::Errno| failed(format!("{given:?} cannot be read: {error}"));
    let mut found = Vec::new();
    for entry in Dir::read_from(&handle).map_err(unreadable)?.take(MAX_ENTRIES) {
        let entry = entry.map_err(unreadable)?;
        let name = entry.file_name();
        if [&b"."[..], b".."].contains(&name.to_bytes()) {
            continue;
        }
        // Removed since the folder was read.
        let Ok(stat) = rustix::fs::statat(&handle, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
        let name = OsStr::from_bytes(name.to_bytes());
        let path = if folder == Path::new(".") { PathBuf::from(name) } else { folder.join(name) };
        let kind = FileType::from_raw_mode(stat.st_mode);
        found.push(Entry { path, kind, bytes: stat.st_size.unsigned_abs() });
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(found)
}
