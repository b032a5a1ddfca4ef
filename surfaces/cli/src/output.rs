//! Printing: for a person, or as JSON for a program.

use std::io::Write;

use holdfast_contract::frame::{Frame, Source};
use holdfast_contract::problem::{Code, Problem};
use serde::Serialize;
use serde_json::Value;

/// Where output goes, and in which form.
pub(crate) struct Output {
    pub json: bool,
}

impl Output {
    pub(crate) fn new(json: bool) -> Self {
        Self { json }
    }

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
}

/// A frame on one line, cut to fit a screen.
pub(crate) fn frame_line(frame: &Frame) -> String {
    const WIDTH: usize = 100;
    let envelope = &frame.envelope;
    let cause = envelope.cause.map(|cause| format!("<- {cause}")).unwrap_or_default();
    let body = match (&frame.body, &frame.erased) {
        (Some(body), _) => plain(body).to_string(),
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
