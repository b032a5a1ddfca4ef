//! Tools for files beneath a workspace: read, write, edit, list and search.
//!
//! [`extension`] is the entry point. `path` validates the paths that a model gives, `tree` opens them from the workspace's handle and
//! decides which files may be accessed, `protected` asks about those that run programs on the host, and each tool has its own file.

mod edit;
mod list;
mod path;
mod protected;
mod read;
mod search;
mod tool;
mod tree;
mod walk;
mod write;

#[cfg(test)]
mod files_tests;
#[cfg(test)]
mod refusals_tests;

use std::sync::Arc;

use holdfast_contract::tool::ToolGroup;
use holdfast_lane_native::NativeExtension;
pub use holdfast_lane_native::{Workspace, Workspaces};

use crate::protected::ProtectedFiles;
use crate::tool::Trees;

/// Files that the owner allows in addition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FilesOptions {
    /// Files with more than one hard link. Files of the home are still refused.
    pub hard_links: bool,
    /// `.env` files, which usually contain secrets.
    pub env_files: bool,
}

/// The extension for the workspaces of sessions.
pub fn extension(workspaces: impl Into<Workspaces>) -> NativeExtension {
    extension_with(workspaces, FilesOptions::default())
}

/// The extension's id.
const ID: &str = "files";

/// The names of the tools.
const TOOLS: &[&str] = &["file_read", "file_write", "file_edit", "file_list", "file_search"];

/// The extension for the workspaces of sessions, with files that the owner allows in addition.
pub fn extension_with(workspaces: impl Into<Workspaces>, options: FilesOptions) -> NativeExtension {
    let trees = Arc::new(Trees { workspaces: workspaces.into(), options });
    ProtectedFiles::all()
        .fold(NativeExtension::new(ID, env!("CARGO_PKG_VERSION")), NativeExtension::hook)
        .tool(read::tool(trees.clone()))
        .tool(write::tool(trees.clone()))
        .tool(edit::tool(trees.clone()))
        .tool(list::tool(trees.clone()))
        .tool(search::tool(trees))
        .grouped(ToolGroup::Core)
        .reserving(TOOLS)
}
