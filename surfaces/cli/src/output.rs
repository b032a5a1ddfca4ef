//! Printing: for a person, or as JSON for a program.

use std::io::Write;

use holdfast_contract::frame::{Frame, Source};
use holdfast_contract::problem::{Code, Problem};
use serde::Serialize;
use serde_json::Value;

use crate::chat::{cut, safe_json, width};
use crate::exit::Exit;

/// Where output goes, and in which form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    /// JSON for a program.
    pub json: bool,
    /// Nothing but the result.
    pub quiet: bool,
    /// What happens on the way, too.
    pub verbose: bool,
}

impl Output {
    /// Prints a line. A reader that went away ends the output, not the program's honesty about it.
    pub(crate) fn line(&self, text: impl AsRef<str>) -> Result<(), Problem> {
        let closed = |error: std::io::Error| {
            Problem::new(Code::UsageInvalid, format!("nobody reads the output: {error}"))
        };
        writeln!(std::io::stdout().lock(), "{}", text.as_ref()).map_err(closed)
    }

    /// Prints a document as one line of JSON.
    pub(crate) fn document(&self, value: &impl Serialize) -> Result<(), Problem> {
        let text =
            serde_json::to_string(value).map_err(|error| Problem::new(Code::Internal, error.to_string()))?;
        self.line(text)
    }

    /// Prints documents, one line of JSON each.
    pub(crate) fn documents(&self, values: &[impl Serialize]) -> Result<Exit, Problem> {
        values.iter().try_for_each(|value| self.document(value))?;
        Ok(Exit::Done)
    }
}

/// A line on standard error, if anybody listens there.
pub(crate) fn tell(words: std::fmt::Arguments<'_>) {
    let _unheard = writeln!(std::io::stderr().lock(), "{words}");
}

/// A table for a person: columns as wide as they need, lines cut at the terminal's edge.
pub(crate) fn table<const N: usize>(
    head: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
    empty: &str,
) -> String {
    let rows: Vec<[String; N]> = rows.into_iter().collect();
    if rows.is_empty() {
        return empty.to_owned();
    }
    let widest = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([head[column].len()]).max().unwrap_or(0)
    };
    let widths: [usize; N] = std::array::from_fn(widest);
    let line = |cells: [&str; N]| {
        let mut text = String::new();
        for (cell, width) in cells.into_iter().zip(widths) {
            text.push_str(&format!("{cell:<width$}  "));
        }
        cut(text.trim_end(), width())
    };
    let lines = rows.iter().map(|row| line(std::array::from_fn(|column| row[column].as_str())));
    std::iter::once(line(head)).chain(lines).collect::<Vec<_>>().join("\n")
}

/// A frame on one line, cut to fit a screen.
pub(crate) fn frame_line(frame: &Frame) -> String {
    const WIDTH: usize = 100;
    let envelope = &frame.envelope;
    let cause = envelope.cause.map(|cause| format!("<- {cause}")).unwrap_or_default();
    let body = match (&frame.body, &frame.erased) {
        (Some(body), _) => safe_json(&plain(body).to_string()),
        (None, Some(tombstone)) => format!("(erased: {})", tombstone.reason),
        (None, None) => "(missing)".to_owned(),
    };
    let short: String = body.chars().take(WIDTH).collect();
    let more = if short.len() < body.len() { "…" } else { "" };
    format!(
        "{:>5} {:<19} {:<7} {:<16} {short}{more}",
        envelope.seq.0,
        envelope.kind,
        cause,
        source(&envelope.source)
    )
}

/// Who caused a frame, in a word.
pub(crate) fn source(source: &Source) -> String {
    match source {
        Source::Kernel => "kernel".to_owned(),
        Source::Host => "host".to_owned(),
        Source::Policy(_) => "policy".to_owned(),
        Source::Surface(name) => name.to_string(),
        Source::Model(name) => name.to_string(),
        Source::Extension(extension) => format!("{}@{}", extension.id, extension.generation.0),
    }
}

/// Content without its wrapping and digests without their tails, for reading.
fn plain(value: &Value) -> Value {
    match value {
        Value::String(text) if text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            Value::String(format!("#{}", &text[..8]))
        }
        Value::Array(items) => items.iter().map(plain).collect(),
        Value::Object(fields) => match (fields.len(), fields.get("json")) {
            (1, Some(json)) => plain(json),
            _ => fields.iter().map(|(key, value)| (key.clone(), plain(value))).collect(),
        },
        other => other.clone(),
    }
}
