//! `file_search`: lines that match a regular expression.

use std::fs::File;
use std::io::Read;
use std::sync::Arc;

use holdfast_contract::problem::Fault;
use holdfast_contract::tool::{EffectClass, ToolSpec};
use holdfast_lane_native::input::{parameter, takes, text};
use regex::{Regex, RegexBuilder};
use rustix::fs::FileType;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::list::here;
use crate::read::SNIFFED_BYTES;
use crate::tool::{FileTool, Trees, failed};
use crate::tree::Tree;
use crate::walk::{Names, Walked, walk};

/// Matches of one result, the largest file that is searched, and the characters of a line in a result.
const MAX_MATCHES: usize = 200;
const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;
const MAX_LINE_CHARS: usize = 400;
/// The memory of a compiled expression.
const MAX_EXPRESSION_BYTES: usize = 1024 * 1024;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    pattern: String,
    #[serde(default = "here")]
    path: String,
    glob: Option<String>,
    #[serde(default)]
    ignore_case: bool,
    #[serde(default = "max_matches")]
    limit: usize,
}

fn max_matches() -> usize {
    MAX_MATCHES
}

pub(crate) fn tool(trees: Arc<Trees>) -> FileTool<Arguments> {
    let spec = ToolSpec {
        effects: EffectClass::Read,
        input_schema: takes([
            text("pattern", "A regular expression, matched line by line."),
            text("path", "The folder to search, from the workspace; `.` if left out.").optional(),
            text("glob", "Only these files: `*.rs` for names, `src/**/*.rs` for paths.").optional(),
            parameter("ignore_case", json!({ "type": "boolean" })).optional(),
            parameter("limit", json!({ "type": "integer", "minimum": 1, "maximum": MAX_MATCHES })).optional(),
        ]),
        ..ToolSpec::named("file_search", "Searches the files in the workspace for a regular expression.")
    };
    FileTool { spec, trees, work: search }
}

fn search(tree: &Tree, arguments: Arguments) -> Result<Value, Fault> {
    let Arguments { pattern, path, glob, ignore_case, limit } = arguments;
    let names = Names::new(glob.as_deref())?;
    let built =
        RegexBuilder::new(&pattern).case_insensitive(ignore_case).size_limit(MAX_EXPRESSION_BYTES).build();
    let expression = built.map_err(|error| failed(format!("the pattern cannot be used: {error}")))?;
    let limit = limit.min(MAX_MATCHES);
    let mut matches = Vec::new();
    let (mut searched, mut skipped) = (0, 0);
    let walked = walk(tree, &path, true, |below, entry| {
        let internal = below.iter().any(|name| name == ".git");
        if entry.kind != FileType::RegularFile || internal || !names.match_path(below) {
            return true;
        }
        let shown = entry.path.to_string_lossy();
        let text = match tree.open(&shown, &entry.path) {
            Ok((file, found)) if found.bytes <= MAX_FILE_BYTES => text_of(file),
            _ => None,
        };
        let Some(text) = text else {
            skipped += 1;
            return true;
        };
        searched += 1;
        let room = limit + 1 - matches.len();
        matches.extend(matching(&expression, &text).take(room).map(|(line, text)| {
            json!({ "path": shown, "line": line, "text": text.chars().take(MAX_LINE_CHARS).collect::<String>() })
        }));
        matches.len() <= limit
    })?;
    let truncated = walked == Walked::Partly || matches.len() > limit;
    matches.truncate(limit);
    let mut result =
        json!({ "matches": matches, "searched": searched, "skipped": skipped, "truncated": truncated });
    if truncated {
        result["note"] = "truncated: there is more; narrow the pattern, the folder or the glob".into();
    }
    Ok(result)
}

/// The file as text; `None` for a binary one.
fn text_of(file: File) -> Option<String> {
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES).read_to_end(&mut bytes).ok()?;
    let binary = bytes[..bytes.len().min(SNIFFED_BYTES)].contains(&0);
    (!binary).then(|| String::from_utf8_lossy(&bytes).into_owned())
}

fn matching<'a>(expression: &'a Regex, text: &'a str) -> impl Iterator<Item = (usize, &'a str)> {
    text.lines()
        .enumerate()
        .filter(|(_, line)| expression.is_match(line))
        .map(|(index, line)| (index + 1, line))
}
