//! A tree of files in a grant: a folder with everything below it, or one file.
//!
//! Paths are brought into one form without looking at the disk: no `.`, no `..`, no double slashes. A path that leaves the folder
//! it starts in is invalid. The caller that opens the file resolves symbolic links before the check.

use std::fmt;

/// A folder with everything below it, or a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Tree {
    anchor: Anchor,
    parts: Vec<String>,
}

/// Where a path begins. Trees with different anchors have nothing in common until they are rooted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Anchor {
    Root,
    Home,
    WorkingFolder,
}

impl Tree {
    /// Reads a path; the error says what is wrong with it.
    pub(crate) fn parse(path: &str) -> Result<Self, &'static str> {
        if path.is_empty() || path.contains('\0') {
            return Err("it is not a path");
        }
        let (anchor, rest) = match path.strip_prefix('/') {
            Some(rest) => (Anchor::Root, rest),
            None => match path.strip_prefix('~') {
                Some("") => (Anchor::Home, ""),
                Some(rest) => {
                    (Anchor::Home, rest.strip_prefix('/').ok_or("another user's home cannot be named")?)
                }
                None => (Anchor::WorkingFolder, path),
            },
        };
        let mut parts: Vec<String> = Vec::new();
        for part in rest.split('/') {
            match part {
                "" | "." => {}
                ".." => {
                    parts.pop().ok_or("it leaves the folder that it starts in")?;
                }
                part => parts.push(part.to_owned()),
            }
        }
        Ok(Self { anchor, parts })
    }

    /// Whether a path is this one or below it.
    pub(crate) fn contains(&self, path: &Tree) -> bool {
        self.anchor == path.anchor && path.parts.starts_with(&self.parts)
    }

    /// The deeper of two trees, if one contains the other.
    pub(crate) fn meet(self, other: Tree) -> Option<Tree> {
        if self.contains(&other) {
            return Some(other);
        }
        other.contains(&self).then_some(self)
    }

    /// The same tree from the root, given where the other anchors are; nothing if those are not absolute.
    pub(crate) fn rooted(self, home: &str, working_folder: &str) -> Option<Tree> {
        let base = match self.anchor {
            Anchor::Root => return Some(self),
            Anchor::Home => Tree::parse(home).ok()?,
            Anchor::WorkingFolder => Tree::parse(working_folder).ok()?,
        };
        let parts = base.parts.into_iter().chain(self.parts).collect();
        (base.anchor == Anchor::Root).then_some(Tree { anchor: Anchor::Root, parts })
    }
}

impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.parts.join("/");
        match (self.anchor, path.is_empty()) {
            (Anchor::Root, _) => write!(f, "/{path}"),
            (Anchor::Home, true) => f.write_str("~"),
            (Anchor::Home, false) => write!(f, "~/{path}"),
            (Anchor::WorkingFolder, true) => f.write_str("."),
            // A first part that begins with `~` would be read as a home.
            (Anchor::WorkingFolder, false) if path.starts_with('~') => write!(f, "./{path}"),
            (Anchor::WorkingFolder, false) => f.write_str(&path),
        }
    }
}
