//! YAML with positions: a file that a person wrote is decoded in one pass that finds every problem, each with
//! line, column, field and a suggested fix.
//!
//! Use this crate to read manifests, settings, policies and the like: [`decode`] parses a text into a tree
//! that records the position of each node and passes its root to your function as a [`Field`]. Do not open
//! files here, and do not use this crate for data that programs exchange.
//!
//! - `tree`: builds the tree from the parser's events; limits size, depth and alias expansion
//! - `field`: typed access to values, with diagnostics for those of the wrong type
//! - `scalar`: the meaning of scalars without quotes (YAML 1.2 core schema)
//! - `diagnostics`: collects [`Diagnostic`]s, sorted by position and limited in number
//! - `syntax`: help texts for syntax errors
//! - `nearest`: "did you mean …?"
//! - `path`: the path of a field, written `schedules[0].cron`

mod diagnostics;
mod field;
mod nearest;
mod path;
mod scalar;
mod syntax;
mod tree;

#[cfg(test)]
mod nearest_tests;
#[cfg(test)]
mod path_tests;
#[cfg(test)]
mod scalar_tests;

pub use self::diagnostics::{Diagnostic, DiagnosticKind, Reported};
pub use self::field::{Field, Object};
pub use self::nearest::nearest;
pub use self::tree::{Position, YamlDocument};

use self::diagnostics::Collector;
use self::tree::Node;

/// What is decoded, and the help texts that only the caller knows.
#[derive(Clone, Copy, Debug)]
pub struct DecodeOptions {
    /// The argument of `holdfast schema` that describes the format, such as `manifest`.
    pub schema: &'static str,
    /// The maximal size in bytes. Expanded aliases may have four times as many.
    pub max_bytes: usize,
    /// The help for a syntax error without a known cause.
    pub syntax_help: &'static str,
    /// The help for a file that is too large.
    pub size_help: &'static str,
}

/// A text that was decoded without an error.
#[derive(Clone, Debug)]
pub struct Decoded<T> {
    /// The value.
    pub value: T,
    /// Problems that do not prevent decoding, in the order of the lines.
    pub warnings: Vec<Diagnostic>,
    /// The positions of all fields, for problems that are found later.
    pub document: YamlDocument,
}

/// Why a text could not be decoded.
#[derive(Clone, Debug, PartialEq)]
pub struct DecodeError {
    /// At least one error, in the order of the lines.
    pub errors: Vec<Diagnostic>,
    /// Warnings; often the cause of an error, such as a misspelt field.
    pub warnings: Vec<Diagnostic>,
}

/// Decodes a text. All problems are found in one pass, unless the text is not valid YAML.
pub fn decode<T>(
    options: &DecodeOptions,
    text: &str,
    read: impl FnOnce(&Field<'_>) -> Result<T, Reported>,
) -> Result<Decoded<T>, DecodeError> {
    let collector = Collector::new(options);
    let outcome =
        collector.check_size(text.len()).and_then(|()| tree::build(text, &collector)).and_then(|root| {
            let value = read(&Field::root(&collector, &root));
            value.map(|value| (value, root))
        });
    finish(collector, outcome)
}

/// Decodes bytes that may not be UTF-8.
pub fn decode_bytes<T>(
    options: &DecodeOptions,
    bytes: &[u8],
    read: impl FnOnce(&Field<'_>) -> Result<T, Reported>,
) -> Result<Decoded<T>, DecodeError> {
    let collector = Collector::new(options);
    let text = collector.check_size(bytes.len()).and_then(|()| {
        std::str::from_utf8(bytes).map_err(|error| syntax::not_utf8(&collector, bytes, error.valid_up_to()))
    });
    match text {
        Ok(text) => decode(options, text, read),
        Err(reported) => finish(collector, Err(reported)),
    }
}

fn finish<T>(
    collector: Collector<'_>,
    outcome: Result<(T, Node), Reported>,
) -> Result<Decoded<T>, DecodeError> {
    let (errors, warnings) = collector.into_diagnostics();
    match outcome {
        Ok((value, root)) if errors.is_empty() => {
            Ok(Decoded { value, warnings, document: YamlDocument::new(root) })
        }
        _ => Err(DecodeError { errors, warnings }),
    }
}
