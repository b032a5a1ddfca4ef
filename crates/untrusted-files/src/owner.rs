//! Who can write a file or folder.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

/// The permission bit with which any user may write.
const OTHERS_WRITE: u32 = 0o002;

/// Who can write what was found, apart from the user's group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoundOwner {
    /// The user who runs this process.
    User,
    /// Another user.
    Other,
    /// Every user.
    Everyone,
}

/// Who can write a file or folder.
pub fn found_owner(found: &Metadata) -> FoundOwner {
    if found.uid() != rustix::process::geteuid().as_raw() {
        FoundOwner::Other
    } else if found.mode() & OTHERS_WRITE != 0 {
        FoundOwner::Everyone
    } else {
        FoundOwner::User
    }
}
