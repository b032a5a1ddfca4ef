//! `file_write`: writes a whole file atomically.

use std::sync::Arc;

use holdfast_contract::problem::Fault;
use holdfast_contract::tool::{EffectClass, ToolSpec};
use holdfast_lane_native::input::{flag, takes, text};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::tool::{FileTool, Trees};
use crate::tree::{Existing, Tree};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    path: String,
    text: String,
    #[serde(default)]
    overwrite: bool,
}

pub(crate) fn tool(trees: Arc<Trees>) -> FileTool<Arguments> {
    let spec = ToolSpec {
        effects: EffectClass::Write,
        input_schema: takes([
            text("path", "The file, from the workspace. Missing folders are made."),
            text("text", "The whole content."),
            flag("overwrite", "Replace a file that is already there.").optional(),
        ]),
        render: Some(json!({ "summary": "{path}: {bytes} bytes" }).into()),
        ..ToolSpec::named("file_write", "Writes a whole file in the workspace.")
    };
    FileTool { spec, trees, work: write }
}

fn write(tree: &Tree, arguments: Arguments) -> Result<Value, Fault> {
    let Arguments { path, text, overwrite } = arguments;
    let existing = if overwrite { Existing::Replace } else { Existing::Keep };
    let created = tree.write(&path, text.as_bytes(), existing)?;
    Ok(json!({ "path": path, "bytes": text.len(), "created": created }))
}
