//! Paths that a model gives, made relative to the workspace. The checks here are for clear messages; confinement is enforced in
//! `tree`.

use std::path::{Component, Path, PathBuf};

use holdfast_contract::problem::Fault;

use crate::tool::refused;

/// The longest path, and the longest name in it.
const MAX_PATH_BYTES: usize = 4000;
const MAX_NAME_BYTES: usize = 255;

/// The path relative to the workspace's root. An absolute path is accepted if it begins with the workspace's own.
pub(crate) fn relative(root: &Path, given: &str) -> Result<PathBuf, Fault> {
    let no = |why: &str| Err(refused(given, why));
    if given.is_empty() {
        return no("it is empty; `.` is the workspace");
    }
    if given.contains('\0') {
        return no("it has a NUL character in it");
    }
    if given.len() > MAX_PATH_BYTES {
        return no("it is too long");
    }
    if given.split('/').any(|name| name.len() > MAX_NAME_BYTES) {
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

/// The same for a file to write: missing folders are created, so the path must not contain `..`.
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
