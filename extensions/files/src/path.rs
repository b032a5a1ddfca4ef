//! What a model wrote as a path, made relative to the workspace. This is about clear words; what keeps a path inside is in
//! `beneath`.

use std::path::{Component, Path, PathBuf};

use holdfast_contract::problem::Fault;

use crate::tool::refused;

/// Bytes that a path may have, and a name in it.
const PATH_LIMIT: usize = 4000;
const NAME_LIMIT: usize = 255;

/// The path from the workspace's root. An absolute path is taken if it begins with the workspace's own.
pub(crate) fn relative(root: &Path, given: &str) -> Result<PathBuf, Fault> {
    let no = |why: &str| Err(refused(given, why));
    if given.is_empty() {
        return no("it is empty; `.` is the workspace");
    }
    if given.contains('\0') {
        return no("it has a NUL character in it");
    }
    if given.len() > PATH_LIMIT {
        return no("it is too long");
    }
    if given.split('/').any(|name| name.len() > NAME_LIMIT) {
        return no("a name in it is too long");
    }
    if given == "~" || given.starts_with("~/") {
        return no("`~` stands for no folder here; paths start at the workspace");
    }
    let path = Path::new(given);
    let inside = if path.is_absolute() { path.strip_prefix(root).ok() } else { Some(path) };
    match inside {
        Some(inside) if inside.as_os_str().is_empty() => Ok(PathBuf::from(".")),
        Some(inside) => Ok(inside.to_owned()),
        None => no("it is outside of the workspace"),
    }
}

/// The same for a file that is to be written: its folder is made where it is missing, so no step may go back.
pub(crate) fn relative_to_write(root: &Path, given: &str) -> Result<PathBuf, Fault> {
    let path = relative(root, given)?;
    if given.ends_with('/') {
        return Err(refused(given, "it names a folder, not a file"));
    }
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => plain.push(name),
            Component::CurDir => {}
            _ => return Err(refused(given, "a path to write to has no `..` in it")),
        }
    }
    if plain.as_os_str().is_empty() {
        return Err(refused(given, "it is the workspace itself"));
    }
    Ok(plain)
}
