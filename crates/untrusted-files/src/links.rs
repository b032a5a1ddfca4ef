//! Where paths lead. Who can replace a link decides as much as who can write what it leads to, so both count.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// Links that are followed for one path; the system follows no more.
const MAX_LINKS: usize = 40;

/// The place that an absolute path leads to, which need not exist, and the place of every link on the way, each free of links.
pub fn places(path: &Path) -> Vec<PathBuf> {
    let parts = |path: &Path| path.iter().rev().map(OsString::from).collect::<Vec<_>>();
    let (mut found, mut at, mut left) = (Vec::new(), PathBuf::new(), parts(path));
    while let Some(name) = left.pop() {
        if name == "." {
            continue;
        }
        if name == ".." {
            at.pop();
            continue;
        }
        let next = at.join(name);
        match fs::read_link(&next) {
            Ok(target) if found.len() < MAX_LINKS => {
                left.extend(parts(&target));
                found.push(next);
            }
            _ => at = next,
        }
    }
    found.push(at);
    found
}

/// The places of all links that are directly in one of these folders below a root. A folder that cannot be read has none.
pub fn linked_places(root: &Path, folders: &[&str]) -> Vec<PathBuf> {
    let entries =
        folders.iter().filter_map(|folder| fs::read_dir(root.join(folder)).ok()).flatten().flatten();
    let links = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
    links.flat_map(|entry| places(&entry.path())).collect()
}
