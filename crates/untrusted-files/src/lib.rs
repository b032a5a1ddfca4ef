//! Files and folders that untrusted code may have made: opened, measured and removed without trusting their kind, size or depth.
//!
//! [`read`] and [`open_regular`] open regular files only, never wait for another process, and read a bounded number of bytes;
//! [`check_regular`] checks a file that a library opens, [`found_owner`] tells who else can write what was found, and [`places`] where
//! a path leads. [`ProgramSearch`] finds programs that the host starts by name.
//! [`walk`] and [`walk_readable`] look through a tree of any depth, [`remove_tree`] removes one, and [`TempFolder`] is a temporary folder
//! that is removed with it. [`FolderTree`] is a folder whose paths never lead out of it; [`beneath`] is what it opens them with. None of
//! them recurses, follows links or needs a path that fits the system's limit. Use this crate wherever the host touches what an
//! extension, a command or a download has put on the disk. What a file means is decided by the callers.

pub mod beneath;
mod folder_tree;
mod links;
mod owner;
mod programs;
mod regular;
mod remove;
mod walk;

#[cfg(test)]
mod beneath_tests;
#[cfg(test)]
mod folder_tree_tests;
#[cfg(test)]
mod owner_tests;
#[cfg(test)]
mod programs_tests;
#[cfg(test)]
mod regular_tests;
#[cfg(test)]
mod tree_tests;

pub use crate::folder_tree::{FolderTree, TreeEntry, TreeError};
pub use crate::links::{linked_places, places};
pub use crate::owner::{FoundOwner, found_owner};
pub use crate::programs::{FoundPrograms, ProgramSearch, current_project, working_folder};
pub use crate::regular::{FileError, check_regular, open_regular, read, read_text};
pub use crate::remove::{TempFolder, remove_tree};
pub use crate::walk::{FoundEntry, walk, walk_readable};
