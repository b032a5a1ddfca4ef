//! `file_list`: lists a folder.

use std::sync::Arc;

use holdfast_contract::problem::Fault;
use holdfast_contract::tool::{EffectClass, ToolSpec};
use holdfast_lane_native::input::{flag, parameter, takes, text};
use rustix::fs::FileType;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::tool::{FileTool, Trees};
use crate::tree::Tree;
use crate::walk::{Names, Walked, walk};

/// Entries of one result.
const MAX_ENTRIES: usize = 1000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    #[serde(default = "here")]
    path: String,
    glob: Option<String>,
    #[serde(default)]
    recursive: bool,
    #[serde(default = "max_entries")]
    limit: usize,
}

pub(crate) fn here() -> String {
    ".".to_owned()
}

fn max_entries() -> usize {
    MAX_ENTRIES
}

pub(crate) fn tool(trees: Arc<Trees>) -> FileTool<Arguments> {
    let spec = ToolSpec {
        effects: EffectClass::Read,
        input_schema: takes([
            text("path", "The folder, from the workspace; `.` if left out.").optional(),
            text("glob", "Only these: `*.rs` for names, `src/**/*.rs` for paths.").optional(),
            flag("recursive", "Also what is in the folders inside.").optional(),
            parameter("limit", json!({ "type": "integer", "minimum": 1, "maximum": MAX_ENTRIES })).optional(),
        ]),
        ..ToolSpec::named("file_list", "Lists files and folders in the workspace, with sizes.")
    };
    FileTool { spec, trees, work: list }
}

fn list(tree: &Tree, arguments: Arguments) -> Result<Value, Fault> {
    let Arguments { path, glob, recursive, limit } = arguments;
    let names = Names::new(glob.as_deref())?;
    let limit = limit.min(MAX_ENTRIES);
    let mut entries = Vec::new();
    let walked = walk(tree, &path, recursive, |below, entry| {
        if names.match_path(below) {
            if entries.len() == limit {
                return false;
            }
            let mut listed = json!({ "path": entry.path.to_string_lossy(), "kind": kind(entry.kind) });
            if entry.kind == FileType::RegularFile {
                listed["bytes"] = entry.bytes.into();
            }
            entries.push(listed);
        }
        true
    })?;
    let mut result = json!({ "entries": entries, "truncated": walked == Walked::Partly });
    if walked == Walked::Partly {
        result["note"] = "truncated: there is more; name a folder inside, or a glob".into();
    }
    Ok(result)
}

fn kind(kind: FileType) -> &'static str {
    match kind {
        FileType::RegularFile => "file",
        FileType::Directory => "folder",
        FileType::Symlink => "link",
        _ => "other",
    }
}
