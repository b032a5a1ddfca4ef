//! Erasing, collecting and backing up.
//!
//! - `upkeep`: erases bodies, deletes expired streams, backs up
//! - `sweep`: removes objects without a reference
//! - `shrink`: gives the space of deleted rows back to the file system
//! - `evidence`: looks up in the system stream what may be erased or deleted

pub(crate) mod evidence;
pub(crate) mod shrink;
pub(crate) mod sweep;
pub(crate) mod upkeep;
