//! What a machine offers to confine programs with, for people.

use std::fmt;

use serde::Serialize;

/// What this machine offers to confine programs with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SandboxReport {
    /// Whether programs run at all. Where it is `false`, every one is refused.
    pub confined: bool,
    /// The version of Landlock's interface, where there is one.
    pub landlock: Option<u32>,
    /// Whether system calls can be filtered.
    pub seccomp: bool,
    /// Whether programs get namespaces of their own: for users, processes, the network, and what processes share by name.
    pub namespaces: bool,
    /// What is missing, and what follows from it.
    pub notes: Vec<String>,
}

impl SandboxReport {
    /// Whether every layer is there. Where one is missing, the others hold what they can, and the profile `safe` runs no program.
    pub fn is_whole(&self) -> bool {
        self.confined && self.notes.is_empty()
    }
}

#[cfg(not(target_os = "linux"))]
impl SandboxReport {
    /// Nothing runs, for this reason.
    pub(crate) fn closed(why: &str) -> Self {
        Self {
            confined: false,
            landlock: None,
            seccomp: false,
            namespaces: false,
            notes: vec![why.to_owned()],
        }
    }
}

impl fmt::Display for SandboxReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.confined { "programs run confined" } else { "programs do not run" })?;
        match self.landlock {
            Some(version) => write!(f, "\n  landlock: version {version}")?,
            None => f.write_str("\n  landlock: none")?,
        }
        let yes = |it: bool| if it { "yes" } else { "no" };
        write!(f, "\n  seccomp: {}\n  namespaces: {}", yes(self.seccomp), yes(self.namespaces))?;
        self.notes.iter().try_for_each(|note| write!(f, "\n  {note}"))
    }
}
