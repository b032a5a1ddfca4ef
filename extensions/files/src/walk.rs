//! Walking a folder of the workspace, in order, with a bound on everything. Links are seen and not followed.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use globset::{GlobBuilder, GlobMatcher};
use holdfast_contract::problem::Fault;
use rustix::fs::{AtFlags, Dir, FileType};

use crate::tool::failed;
use crate::tree::Tree;

/// Entries that are looked at, folders deep, and time.
const ENTRIES: usize = 100_000;
const DEPTH: usize = 64;
const TIME: Duration = Duration::from_secs(20);

/// What is in a folder.
pub(crate) struct Entry {
    /// The path from the workspace.
    pub(crate) path: PathBuf,
    pub(crate) kind: FileType,
    pub(crate) bytes: u64,
}

/// How far a walk came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Walked {
    All,
    /// It was stopped by the visitor or a bound.
    Partly,
}

/// Which names a walk is after.
pub(crate) struct Names {
    glob: Option<GlobMatcher>,
    whole_path: bool,
}

impl Names {
    /// A glob without a `/` is about names, one with it about paths from the folder that is walked.
    pub(crate) fn new(glob: Option<&str>) -> Result<Self, Fault> {
        let Some(text) = glob else { return Ok(Self { glob: None, whole_path: false }) };
        let built = GlobBuilder::new(text).literal_separator(true).build();
        let built = built.map_err(|error| failed(format!("the glob cannot be understood: {error}")))?;
        Ok(Self { glob: Some(built.compile_matcher()), whole_path: text.contains('/') })
    }

    /// Whether a path from the folder that is walked is meant.
    pub(crate) fn match_path(&self, path: &Path) -> bool {
        let Some(glob) = &self.glob else { return true };
        match self.whole_path {
            true => glob.is_match(path),
            false => path.file_name().is_some_and(|name| glob.is_match(name)),
        }
    }
}

/// Visits what is in a folder, and in those inside it where `recursive`, until the visitor says `false`.
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
            if seen > ENTRIES || began.elapsed() > TIME {
                return Ok(Walked::Partly);
            }
            if recursive && entry.kind == FileType::Directory {
                match depth < DEPTH {
                    true => inside.push((entry.path.clone(), depth + 1)),
                    false => walked = Walked::Partly,
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
    for entry in Dir::read_from(&handle).map_err(unreadable)?.take(ENTRIES) {
        let entry = entry.map_err(unreadable)?;
        let name = entry.file_name();
        if [&b"."[..], b".."].contains(&name.to_bytes()) {
            continue;
        }
        // What is gone meanwhile is left out.
        let Ok(stat) = rustix::fs::statat(&handle, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
        let path = match folder == Path::new(".") {
            true => PathBuf::from(OsStr::from_bytes(name.to_bytes())),
            false => folder.join(OsStr::from_bytes(name.to_bytes())),
        };
        let kind = FileType::from_raw_mode(stat.st_mode);
        found.push(Entry { path, kind, bytes: stat.st_size.unsigned_abs() });
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(found)
}
