//! The file trees that a program was granted, none of which may overlap the home: the home has keys, the policy, the log and the data of
//! all extensions. A program cannot have a tree without a part of it where the machine has no namespaces, so such a grant is refused.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use holdfast_contract::manifest::{Access, FileGrant};
use holdfast_contract::problem::{Code, Fault};
use holdfast_sandbox::{Network, ProgramAccess};

/// The granted file trees of a program.
#[derive(Clone, Debug)]
pub struct GrantedPaths {
    /// Paths that it may read.
    pub readable: Vec<PathBuf>,
    /// Paths that it may read and write.
    pub writable: Vec<PathBuf>,
    /// The home, which none of them overlaps.
    home: PathBuf,
}

impl GrantedPaths {
    /// The absolute ones of these grants. Refused if one of them overlaps the home.
    pub fn new(files: &[FileGrant], home: &Path) -> Result<Self, Fault> {
        let granted = |access: Access| {
            let grants = files.iter().filter(move |grant| grant.access == access);
            grants.map(|grant| PathBuf::from(&grant.path)).filter(|path| path.is_absolute()).collect()
        };
        let paths =
            Self { readable: granted(Access::Read), writable: granted(Access::Write), home: home.to_owned() };
        paths.check()?;
        Ok(paths)
    }

    /// Checks again that none of them overlaps the home: a link on the way to one may have been replaced.
    pub fn check(&self) -> Result<(), Fault> {
        for path in self.readable.iter().chain(&self.writable) {
            let (home, shown) = (self.home.display(), path.display());
            let why = match Overlap::of(path, &self.home) {
                None => continue,
                Some(Overlap::Contains) => format!("the home folder {home} lies in {shown}"),
                Some(Overlap::Inside) => format!("{shown} lies in the home folder {home}"),
            };
            let what =
                "the grant of this file tree is refused, because the home has keys, the policy and the log";
            return Err(Fault::new(Code::PathRefused, format!("{what}: {why}; grant a narrower folder")));
        }
        Ok(())
    }
}

/// How a path overlaps the home.
#[derive(Debug, PartialEq, Eq)]
enum Overlap {
    Contains,
    Inside,
}

impl Overlap {
    /// By the true paths, and by what is found there: a mount gives a folder another path. A path that does not exist is compared as it is
    /// written, since it may exist later.
    fn of(path: &Path, home: &Path) -> Option<Self> {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let (path, home) = (real(path), real(home));
        if home.starts_with(&path) || is_among(&path, &home) {
            Some(Self::Contains)
        } else if path.starts_with(&home) || is_among(&home, &path) {
            Some(Self::Inside)
        } else {
            None
        }
    }
}

/// Whether the file or folder at a path is another path itself, or one of the folders above it.
fn is_among(path: &Path, inner: &Path) -> bool {
    let identity = |path: &Path| std::fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
    identity(path).is_some_and(|found| inner.ancestors().any(|above| identity(above) == Some(found)))
}

/// Refuses to start a program that could read the home, because the home lies in the system's folders or in those that it may read.
pub fn keep_home_closed(home: &Path, readable: &[PathBuf]) -> Result<(), Fault> {
    let access = ProgramAccess::new(readable, Network::Closed);
    match access.containing(home) {
        None => Ok(()),
        Some(path) => {
            let message = format!(
                "the home folder lies in {}, which programs must be able to read; put the home elsewhere",
                path.display()
            );
            Err(Fault::new(Code::Unconfined, message))
        }
    }
}
