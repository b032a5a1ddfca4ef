//! Resolves a path to its location on its file system, independent of mounts. A bind mount gives a folder a second, unrelated path;
//! the kernel's list of mounts shows that both are the same folder.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// The list of mounts, parsed.
pub(crate) struct Mounts(Vec<Mount>);

struct Mount {
    /// The file system, as `major:minor`.
    device: String,
    /// The folder of the file system that is mounted.
    root: PathBuf,
    /// Where it is mounted.
    point: PathBuf,
}

/// A folder of a file system.
#[derive(Debug, PartialEq)]
struct Place<'a> {
    device: &'a str,
    path: PathBuf,
}

impl Mounts {
    /// The mounts of this process; `None` if the system has no such list.
    pub(crate) fn of_this_process() -> std::io::Result<Option<Self>> {
        if cfg!(target_os = "linux") {
            std::fs::read("/proc/self/mountinfo").map(|text| Some(Self::parse(&text)))
        } else {
            Ok(None)
        }
    }

    /// Parses the format of `/proc/self/mountinfo`. Invalid lines are skipped.
    pub(crate) fn parse(text: &[u8]) -> Self {
        Self(text.split(|byte| *byte == b'\n').filter_map(mount).collect())
    }

    /// Whether two folders, or file systems mounted in them, overlap. Paths are canonical.
    pub(crate) fn overlap(&self, one: &Path, other: &Path) -> bool {
        let others = self.places(other);
        self.places(one).iter().any(|one| others.iter().any(|other| one.overlaps(other)))
    }

    /// The folder itself, and everything that is mounted in it.
    fn places(&self, folder: &Path) -> Vec<Place<'_>> {
        // Of several mounts on one point the last one is visible, and `max_by_key` returns the last of equal elements.
        let holding = self.0.iter().filter(|mount| folder.starts_with(&mount.point));
        let holding = holding.max_by_key(|mount| mount.point.components().count());
        let itself = holding.and_then(|mount| {
            let rest = folder.strip_prefix(&mount.point).ok()?;
            Some(Place { device: &mount.device, path: mount.root.join(rest) })
        });
        let inside = self.0.iter().filter(|mount| mount.point.starts_with(folder));
        let inside = inside.map(|mount| Place { device: &mount.device, path: mount.root.clone() });
        itself.into_iter().chain(inside).collect()
    }
}

impl Place<'_> {
    fn overlaps(&self, other: &Place<'_>) -> bool {
        self.device == other.device
            && (self.path.starts_with(&other.path) || other.path.starts_with(&self.path))
    }
}

/// One line: `36 35 98:0 /root /point options … - type source options`.
fn mount(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|byte| *byte == b' ').skip(2);
    let device = String::from_utf8(fields.next()?.to_vec()).ok()?;
    Some(Mount { device, root: unescaped(fields.next()?), point: unescaped(fields.next()?) })
}

/// Spaces, tabs, line ends and backslashes are written as three octal digits.
fn unescaped(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, after)) = rest.split_first() {
        let digits = after.get(..3).filter(|digits| digits.iter().all(|digit| (b'0'..=b'7').contains(digit)));
        match digits.filter(|_| first == b'\\') {
            Some(digits) => {
                let value = digits.iter().fold(0u32, |value, digit| value * 8 + u32::from(digit - b'0'));
                bytes.push(value as u8);
                rest = &after[3..];
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    PathBuf::from(OsString::from_vec(bytes))
}
