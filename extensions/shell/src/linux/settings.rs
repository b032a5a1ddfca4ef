//! Entries of a workspace that run programs on the host when git, an editor, a shell or CI reads them: those that are there before a
//! command, which it must not change, and those that are new after it, which the user is told about.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use holdfast_lane_native::{BARE_REPOSITORY, protected_name};
use rustix::fs::{Access, AtFlags, CWD, StatxFlags};

/// Entries of a workspace that are looked at before and after a command.
const MAX_ENTRIES: usize = 500_000;
/// Bytes of a path that count as one more entry, so that long paths do not use much memory.
const PATH_BYTES: usize = 128;
/// Entries that are made read-only for a command: each is a mount.
const MAX_READ_ONLY: usize = 4_096;
/// What of a git repository that is the workspace itself decides which programs run.
const REPOSITORY_SETTINGS: [&str; 4] = ["HEAD", "config", "hooks", "info"];

/// The protected entries of a workspace, by their paths in it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct WorkspaceSettings(BTreeMap<PathBuf, Entry>);

#[derive(Debug, PartialEq, Eq)]
enum Entry {
    Present(Option<Identity>),
    /// A link, and where it leads.
    Link(PathBuf),
    /// The folder that is one.
    BareRepository(Option<Identity>),
    /// A folder that cannot be looked into. The command could open it and change what is in it.
    Closed,
}

/// Which file or folder it is. Its number may be used again once it is removed, so its time of birth counts too, where the file system
/// knows it. What is written to it changes neither.
#[derive(Debug, PartialEq, Eq)]
struct Identity {
    device: (u32, u32),
    number: u64,
    born: Option<(i64, u32)>,
}

impl Identity {
    /// That of an entry, unless it was removed meanwhile.
    fn of(path: &Path) -> Option<Self> {
        let wanted = StatxFlags::INO | StatxFlags::BTIME;
        let found = rustix::fs::statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, wanted).ok()?;
        let has_birth = StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::BTIME);
        Some(Self {
            device: (found.stx_dev_major, found.stx_dev_minor),
            number: found.stx_ino,
            born: has_birth.then_some((found.stx_btime.tv_sec, found.stx_btime.tv_nsec)),
        })
    }
}

impl WorkspaceSettings {
    /// Looks through a workspace. Links are not followed. Where not everything can be looked at, nothing is known: the error says why.
    pub(crate) fn find(root: &Path) -> Result<Self, String> {
        Self::find_among(root, MAX_ENTRIES)
    }

    /// The same, in a workspace of at most so many entries.
    pub(crate) fn find_among(root: &Path, max_entries: usize) -> Result<Self, String> {
        let (mut found, mut seen) = (BTreeMap::new(), 0);
        let mut folders = VecDeque::from([PathBuf::new()]);
        while let Some(folder) = folders.pop_front() {
            let mut repository = 0;
            for entry in listed(&root.join(&folder)) {
                let Ok(entry) = entry else {
                    found.insert(folder.clone(), Entry::Closed);
                    break;
                };
                let (name, kind) = (entry.file_name(), entry.file_type());
                let path = folder.join(&name);
                seen += 1 + path.as_os_str().len() / PATH_BYTES;
                if seen > max_entries {
                    return Err(format!("the workspace has more than {max_entries} entries"));
                }
                repository += usize::from(BARE_REPOSITORY.iter().any(|part| name == *part));
                if protected_name(Path::new(&name)).is_some() {
                    let present = || Entry::Present(Identity::of(&entry.path()));
                    let link = fs::read_link(entry.path()).ok();
                    found.insert(path, link.map_or_else(present, Entry::Link));
                } else if kind.is_ok_and(|kind| kind.is_dir()) {
                    folders.push_back(path);
                }
            }
            if repository == BARE_REPOSITORY.len() {
                let identity = Identity::of(&root.join(&folder));
                found.insert(folder.join("HEAD"), Entry::BareRepository(identity));
            }
        }
        Ok(Self(found))
    }

    /// What a command must not change. A link is replaced easily, so what it leads to is protected, unless that is outside: commands see
    /// nothing outside of the workspace because a link in it leads there.
    pub(crate) fn read_only(&self, root: &Path) -> Result<Vec<PathBuf>, String> {
        let mut paths: Vec<PathBuf> = Vec::new();
        for (path, entry) in &self.0 {
            match entry {
                Entry::Present(_) | Entry::Closed => paths.push(root.join(path)),
                Entry::Link(_) => {
                    let target = root.join(path).canonicalize().ok();
                    paths.extend(target.filter(|target| target.starts_with(root)));
                }
                Entry::BareRepository(_) => {
                    match path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
                        Some(folder) => paths.push(root.join(folder)),
                        None => paths.extend(REPOSITORY_SETTINGS.map(|name| root.join(name))),
                    }
                }
            }
        }
        if paths.len() > MAX_READ_ONLY {
            return Err(format!("the workspace has more than {MAX_READ_ONLY} of them"));
        }
        Ok(paths)
    }

    /// The paths that were not there before, or that are something else now.
    pub(crate) fn new_since(&self, before: &Self) -> Vec<PathBuf> {
        self.0
            .iter()
            .filter(|(path, entry)| before.0.get(*path) != Some(entry))
            .map(|(path, _)| path.clone())
            .collect()
    }
}

/// What is in a folder, or an error if that cannot be told. What was removed or replaced meanwhile is empty.
fn listed(folder: &Path) -> Box<dyn Iterator<Item = std::io::Result<fs::DirEntry>>> {
    // Without the right to search it, names can be read, and nothing can be found out about them.
    let searchable = rustix::fs::access(folder, Access::READ_OK | Access::EXEC_OK);
    match searchable.map_err(std::io::Error::from).and_then(|()| fs::read_dir(folder)) {
        Ok(entries) => Box::new(entries),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Box::new(std::iter::empty())
        }
        Err(error) => Box::new(std::iter::once(Err(error))),
    }
}
