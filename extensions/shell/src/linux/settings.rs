//! Entries of a workspace that run programs on the host when git, an editor, a shell or CI reads them: those that are there before a
//! command, which it must not change, and those that are new after it, which the user is told about.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};

use holdfast_lane_native::protected_name;

/// Entries of a workspace that are looked at, those near its root first.
const MAX_ENTRIES: usize = 50_000;
/// Bytes of a path that count as one more entry, so that long paths do not use much memory.
const PATH_BYTES: usize = 128;
/// Entries that are made read-only for a command.
const MAX_READ_ONLY: usize = 256;
/// What makes a folder a git repository without the name `.git`: git reads its configuration.
const BARE_REPOSITORY: [&str; 3] = ["HEAD", "objects", "refs"];

/// The protected entries of a workspace, by their paths in it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct WorkspaceSettings(BTreeMap<PathBuf, Entry>);

#[derive(Debug, PartialEq, Eq)]
enum Entry {
    Present,
    /// A link, and where it leads.
    Link(PathBuf),
    BareRepository,
}

impl WorkspaceSettings {
    /// Looks through a workspace. Links are not followed, and what cannot be read is passed over.
    pub(crate) fn find(root: &Path) -> Self {
        let (mut found, mut seen) = (BTreeMap::new(), 0);
        let mut folders = VecDeque::from([PathBuf::new()]);
        while let Some(folder) = folders.pop_front() {
            let Ok(entries) = fs::read_dir(root.join(&folder)) else { continue };
            let mut repository = 0;
            for entry in entries.flatten() {
                let (name, kind) = (entry.file_name(), entry.file_type());
                let path = folder.join(&name);
                seen += 1 + path.as_os_str().len() / PATH_BYTES;
                if seen > MAX_ENTRIES {
                    return Self(found);
                }
                repository += usize::from(BARE_REPOSITORY.iter().any(|part| name == *part));
                if protected_name(Path::new(&name)).is_some() {
                    let link = fs::read_link(entry.path()).ok();
                    found.insert(path, link.map_or(Entry::Present, Entry::Link));
                } else if kind.is_ok_and(|kind| kind.is_dir()) {
                    folders.push_back(path);
                }
            }
            if repository == BARE_REPOSITORY.len() {
                found.insert(folder.join("HEAD"), Entry::BareRepository);
            }
        }
        Self(found)
    }

    /// What a command must not change. A link is replaced easily, so what it leads to is protected, unless that is outside: commands see
    /// nothing outside of the workspace because a link in it leads there.
    pub(crate) fn read_only(&self, root: &Path) -> Vec<PathBuf> {
        let mut paths: Vec<(usize, PathBuf)> = Vec::new();
        for (path, entry) in &self.0 {
            let protected = match entry {
                Entry::Present => Some(root.join(path)),
                Entry::Link(_) => {
                    root.join(path).canonicalize().ok().filter(|target| target.starts_with(root))
                }
                Entry::BareRepository => None,
            };
            paths.extend(protected.map(|protected| (path.components().count(), protected)));
        }
        paths.sort();
        paths.into_iter().take(MAX_READ_ONLY).map(|(_, path)| path).collect()
    }

    /// The paths that were not there before, or not like this.
    pub(crate) fn new_since(&self, before: &Self) -> Vec<PathBuf> {
        self.0
            .iter()
            .filter(|(path, entry)| before.0.get(*path) != Some(entry))
            .map(|(path, _)| path.clone())
            .collect()
    }
}
