//! `file_edit`: replaces an exact text.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::Arc;

use holdfast_contract::problem::Fault;
use holdfast_contract::tool::{EffectClass, ToolSpec};
use holdfast_lane_native::input::{flag, takes, text};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::tool::{FileTool, Trees, failed};
use crate::tree::{Existing, Tree};

/// The largest file that can be edited.
const MAX_FILE_BYTES: u64 = 8 * 1024 * 1024;
/// Lines that are searched for the nearest match.
const MAX_COMPARED_LINES: usize = 20_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    path: String,
    old: String,
    new: String,
    #[serde(default)]
    replace_all: bool,
}

pub(crate) fn tool(trees: Arc<Trees>) -> FileTool<Arguments> {
    let spec = ToolSpec {
        effects: EffectClass::Write,
        input_schema: takes([
            text("path", "The file, from the workspace."),
            text("old", "The exact text to replace; it must stand in the file once."),
            text("new", "The text to put in its place."),
            flag("replace_all", "Replace all occurrences.").optional(),
        ]),
        render: Some(json!({ "summary": "{path}: {replaced} replaced from line {line}" }).into()),
        ..ToolSpec::named("file_edit", "Replaces an exact text in a file in the workspace.")
    };
    FileTool { spec, trees, work: edit }
}

fn edit(tree: &Tree, arguments: Arguments) -> Result<Value, Fault> {
    let Arguments { path, old, new, replace_all } = arguments;
    if old.is_empty() {
        return Err(failed("`old` is empty; use file_write to make a file"));
    }
    if old == new {
        return Err(failed("`old` and `new` are the same"));
    }
    let (file, found) = tree.open(&path, &tree.relative(&path)?)?;
    if found.bytes > MAX_FILE_BYTES {
        return Err(failed(format!(
            "{path:?} has {} bytes; {MAX_FILE_BYTES} is the limit for an edit",
            found.bytes
        )));
    }
    let mut text = String::new();
    let read = file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text);
    read.map_err(|error| failed(format!("{path:?} cannot be edited as text: {error}")))?;

    let lines: Vec<usize> =
        text.match_indices(&old).map(|(at, _)| 1 + text[..at].matches('\n').count()).take(1000).collect();
    match lines.len() {
        0 => return Err(failed(format!("`old` is not in {path:?}{}", nearest(&text, &old)))),
        1 => {}
        _ if replace_all => {}
        count => {
            let shown: Vec<_> = lines.iter().take(5).map(usize::to_string).collect();
            let shown = shown.join(", ");
            return Err(failed(format!(
                "`old` stands in {path:?} {count} times (lines {shown}); give more of what surrounds it, or set `replace_all`"
            )));
        }
    }
    let replaced = if replace_all { text.matches(&old).count() } else { 1 };
    tree.write(&path, text.replace(&old, &new).as_bytes(), Existing::Replace)?;
    Ok(json!({ "path": path, "replaced": replaced, "line": lines.first() }))
}

/// The line that is most similar to the first line of the wanted text.
fn nearest(text: &str, old: &str) -> String {
    let Some(wanted) = old.lines().map(str::trim).find(|line| !line.is_empty()) else { return String::new() };
    let scored = text
        .lines()
        .take(MAX_COMPARED_LINES)
        .enumerate()
        .map(|(index, line)| (similarity(wanted, line), index, line));
    let best = scored.max_by(|one, other| one.0.total_cmp(&other.0).then(other.1.cmp(&one.1)));
    match best {
        Some((score, index, line)) if score > 0.3 => {
            let shown: String = line.chars().take(200).collect();
            format!("; the nearest line is {}: {shown:?}", index + 1)
        }
        _ => String::new(),
    }
}

/// The similarity of two lines by shared bigrams, from 0 to 1.
fn similarity(one: &str, other: &str) -> f64 {
    let pairs = |text: &str| {
        let letters: Vec<char> = text.trim().chars().take(500).collect();
        let mut counts: BTreeMap<[char; 2], i64> = BTreeMap::new();
        letters.windows(2).for_each(|pair| *counts.entry([pair[0], pair[1]]).or_default() += 1);
        counts
    };
    let (one, other) = (pairs(one), pairs(other));
    let shared: i64 = one.iter().map(|(pair, count)| count.min(other.get(pair).unwrap_or(&0))).sum();
    let all: i64 = one.values().chain(other.values()).sum();
    if all == 0 { 0.0 } else { 2.0 * shared as f64 / all as f64 }
}
