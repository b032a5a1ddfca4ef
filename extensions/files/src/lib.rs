//! Tools for files beneath a workspace: read, write, edit, list and search.
//!
//! [`extension`] is the entry point. `path` validates the paths that a model gives, `beneath` opens them from the workspace's handle,
//! `tree` decides which files may be accessed, and each tool has its own file.

mod beneath;
mod edit;
mod list;
mod path;
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
pub use holdfast_lane_native::Workspace;

use crate::tree::Tree;

/// Files that the owner allows in addition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FilesOptions {
    /// Files with more than one hard link. Files of the home are still refused.
    pub hard_links: bool,
    /// `.env` files, which usually contain secrets.
    pub env_files: bool,
}

/// The extension for a workspace.
pub fn extension(workspace: Workspace) -> NativeExtension {
    extension_with(workspace, FilesOptions::default())
}

/// The extension's id.
const ID: &str = "files";

/// The names of the tools.
const TOOLS: &[&str] = &["file_read", "file_write", "file_edit", "file_list", "file_search"];

/// The extension without a workspace: it has no tools, but their names stay reserved.
pub fn unavailable() -> NativeExtension {
    NativeExtension::new(ID, env!("CARGO_PKG_VERSION")).reserving(TOOLS)
}

/// The extension for a workspace, with files that the owner allows in addition.
pub fn extension_with(workspace: Workspace, options: FilesOptions) -> NativeExtension {
    let tree = Arc::new(Tree::new(workspace, options));
    NativeExtension::new(ID, env!("CARGO_PKG_VERSION"))
        .tool(read::tool(tree.clone()))
        .tool(write::tool(tree.clone()))
        .tool(edit::tool(tree.clone()))
        .tool(list::tool(tree.clone()))
        .tool(search::tool(tree))
        .grouped(ToolGroup::Core)
        .reserving(TOOLS)
}
