//! Whether a home may be trusted: what it holds decides what agents may do, so nobody else may be able to write it.

use std::fs::{self, Metadata};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use holdfast_contract::problem::{Code, Problem};
use holdfast_untrusted_files::{FoundOwner, found_owner};

use super::{Home, canonical};

impl Home {
    /// Refuses a home that another user made or can write, and what is not a folder. A home that does not exist yet may be made.
    pub fn check(&self) -> Result<(), Problem> {
        let refused = |path: &Path, what: &str, help: String| {
            let what = format!("{} {what}", path.display());
            Err(Problem::in_file(Code::HomeUnavailable, path, what).help(help))
        };
        if canonical(&self.root).parent().is_none() {
            let help = "Name a folder of its own for the home with --home.".to_owned();
            return refused(&self.root, "is the root of the disk, which cannot be a home", help);
        }
        let Some(root) = found(&self.root)? else { return Ok(()) };
        if !root.is_dir() {
            let help = "Move it away, or name another home with --home.".to_owned();
            return refused(&self.root, "is not a folder", help);
        }
        for path in std::iter::once(self.root.clone()).chain(self.deciding()) {
            // Extensions that cannot be read decide nothing, and those that were active judge as they did. The loader reports it, and
            // asks who owns them once they can be read.
            if path == self.extensions() && is_unreadable(&path) {
                continue;
            }
            let Some(metadata) = found(&path)? else { continue };
            let shown = path.display();
            match found_owner(&metadata) {
                FoundOwner::User => {}
                FoundOwner::Other => {
                    let help = format!("Look at `ls -ld {shown}`; name a home of yours with --home.");
                    return refused(&path, "belongs to another user", help);
                }
                FoundOwner::Everyone => {
                    let help = format!("Remove their access: `chmod o-w {shown}`.");
                    return refused(&path, "can be written by every user", help);
                }
            }
        }
        Ok(())
    }

    /// What decides about agents, as the user may have linked it from elsewhere.
    pub(crate) fn deciding(&self) -> [PathBuf; 6] {
        [
            self.config(),
            self.settings_file(),
            self.policy_file(),
            self.env_file(),
            self.prompts(),
            self.extensions(),
        ]
    }
}

/// Whether something is at a path that the system cannot find out about, such as a loop of links.
fn is_unreadable(path: &Path) -> bool {
    fs::metadata(path).is_err_and(|error| error.kind() != ErrorKind::NotFound)
}

/// What a path leads to; none if there is nothing. A link that leads nowhere is a problem, because anybody who can
/// create its target would decide.
fn found(path: &Path) -> Result<Option<Metadata>, Problem> {
    match fs::metadata(path) {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if error.kind() == ErrorKind::NotFound && fs::symlink_metadata(path).is_err() => Ok(None),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let what = format!("{} is a link that leads nowhere", path.display());
            let help = "Remove the link, or make what it leads to.";
            Err(Problem::in_file(Code::HomeUnavailable, path, what).help(help))
        }
        Err(error) => Err(crate::files::failed(Code::HomeUnavailable, path, "looked at", &error)),
    }
}
