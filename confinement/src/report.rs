//! What a machine offers to confine programs with, for people.

use std::fmt;

use serde::Serialize;

/// What this machine offers to confine programs with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Whether programs run at all. Where it is `false`, every one is refused.
    pub confined: bool,
    /// The version of Landlock's interface, where there is one.
    pub landlock: Option<u32>,
    /// Whether system calls can be filtered.
    pub seccomp: bool,
    /// What is missing, and what follows from it.
    pub notes: Vec<String>,
}

#[cfg(not(target_os = "linux"))]
impl Report {
    /// Nothing runs, for this reason.
    pub(crate) fn closed(why: &str) -> Self {
        Self { confined: false, landlock: None, seccomp: false, notes: vec![why.to_owned()] }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.confined { "programs run confined" } else { "programs do not run" })?;
        match self.landlock {
            Some(version) => write!(f, "\n  landlock: version {version}")?,
            None => f.write_str("\n  landlock: none")?,
        }
        write!(f, "\n  seccomp: {}", if self.seccomp { "yes" } else { "no" })?;
        self.notes.iter().try_for_each(|note| write!(f, "\n  {note}"))
    }
}
