//! `file_read`: lines of a text file.

use std::io::Read;
use std::sync::Arc;

use holdfast_contract::problem::Fault;
use holdfast_contract::tool::{EffectClass, ToolSpec};
use holdfast_lane_native::input::{number, takes, text};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::tool::{FileTool, Trees, failed};
use crate::tree::Tree;

/// Lines and bytes of one result.
const MAX_LINES: u64 = 2000;
const MAX_BYTES: usize = 256 * 1024;
/// A NUL in this many first bytes makes a file binary.
pub(crate) const SNIFFED_BYTES: usize = 8 * 1024;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    path: String,
    #[serde(default = "first")]
    offset: u64,
    #[serde(default = "all_lines")]
    limit: u64,
}

fn first() -> u64 {
    1
}

fn all_lines() -> u64 {
    MAX_LINES
}

pub(crate) fn tool(trees: Arc<Trees>) -> FileTool<Arguments> {
    let spec = ToolSpec {
        effects: EffectClass::Read,
        input_schema: takes([
            text("path", "The file, from the workspace."),
            number("offset", 1.., "The first line to give; 1 if left out.").optional(),
            number("limit", 1..=MAX_LINES, "How many lines.").optional(),
        ]),
        ..ToolSpec::named("file_read", "Reads lines of a text file in the workspace.")
    };
    FileTool { spec, trees, work: read }
}

fn read(tree: &Tree, arguments: Arguments) -> Result<Value, Fault> {
    let Arguments { path, offset, limit } = arguments;
    let (file, found) = tree.open(&path, &tree.relative(&path)?)?;
    let lines =
        lines(file, offset, limit.min(MAX_LINES)).map_err(|error| failed(format!("{path:?}: {error}")))?;
    let Some(lines) = lines else {
        return Err(failed(format!("{path:?} is a binary file of {} bytes", found.bytes)));
    };
    let last = offset + lines.count.saturating_sub(1);
    let mut result = json!({
        "path": path,
        "text": lines.text,
        "first_line": offset,
        "last_line": if lines.count == 0 { offset - 1 } else { last },
        "bytes": found.bytes,
        "truncated": lines.rest != Rest::Nothing,
    });
    let note = match lines.rest {
        Rest::Nothing if lines.count == 0 && offset > 1 => {
            Some(format!("the file ends before line {offset}"))
        }
        Rest::Nothing => None,
        Rest::Lines => Some(format!("truncated: the file goes on; read from offset {}", last + 1)),
        Rest::OfTheLine => {
            Some(format!("truncated: line {last} is longer than {MAX_BYTES} bytes and only begins here"))
        }
    };
    if let (Some(note), Value::Object(fields)) = (note, &mut result) {
        fields.insert("note".to_owned(), note.into());
    }
    Ok(result)
}

struct Lines {
    text: String,
    count: u64,
    rest: Rest,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    Nothing,
    Lines,
    OfTheLine,
}

/// A number of lines from the given one, in bounded memory; `None` for a binary file.
fn lines(mut file: impl Read, offset: u64, limit: u64) -> std::io::Result<Option<Lines>> {
    let mut chunk = vec![0; 64 * 1024];
    let (mut line, mut kept, mut sniffed) = (1, Vec::new(), 0);
    let mut rest = Rest::Nothing;
    'reading: loop {
        let read = file.read(&mut chunk)?;
        if read == 0 {
            break;
        }
        if sniffed < SNIFFED_BYTES && chunk[..read.min(SNIFFED_BYTES - sniffed)].contains(&0) {
            return Ok(None);
        }
        sniffed += read;
        for &byte in &chunk[..read] {
            if line >= offset {
                if line - offset >= limit || kept.len() >= MAX_BYTES {
                    rest = Rest::Lines;
                    break 'reading;
                }
                kept.push(byte);
            }
            line += u64::from(byte == b'\n');
        }
    }
    if rest == Rest::Lines && !kept.ends_with(b"\n") {
        match kept.iter().rposition(|byte| *byte == b'\n') {
            Some(end) => kept.truncate(end + 1),
            None => rest = Rest::OfTheLine,
        }
    }
    let ends = kept.iter().filter(|byte| **byte == b'\n').count() as u64;
    let count = ends + u64::from(!kept.is_empty() && !kept.ends_with(b"\n"));
    Ok(Some(Lines { text: String::from_utf8_lossy(&kept).into_owned(), count, rest }))
}
