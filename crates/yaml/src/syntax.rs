//! Diagnostics for a text that is not valid YAML or not valid UTF-8, with the usual cause of the error.

use granit_parser::{ErrorKind, ScanError};

use super::diagnostics::{Collector, DiagnosticKind, Reported};
use super::tree::Position;

/// Records a syntax error.
pub(super) fn invalid_yaml(collector: &Collector<'_>, text: &str, error: &ScanError) -> Reported {
    let position = tab_position(text, error).unwrap_or_else(|| Position::from(error.marker()));
    let message = format!("the file is not valid YAML: {}", error.info());
    let help = usual_cause(error.kind()).unwrap_or(collector.options.syntax_help);
    collector.error(DiagnosticKind::Syntax, position, "", message, help)
}

fn usual_cause(kind: &ErrorKind) -> Option<&'static str> {
    use ErrorKind as K;
    Some(match kind {
        K::TabNotAllowed
        | K::TabInBlockIndentation
        | K::TabInIndentation
        | K::TabAtBlockScalarStart
        | K::TabInPlainScalar
        | K::InvalidBlockEntryWhitespace
        | K::InvalidMappingValueWhitespace => "Indent with spaces; YAML allows no tabs there.",
        K::UnknownAnchor | K::MissingAnchorOrAliasName => {
            "A value that begins with `*` or `&` must be quoted, such as `cron: \"*/5 * * * *\"`."
        }
        K::MappingValueNotAllowed | K::InvalidColonPlacement => {
            "A text that has `: ` in it must be quoted; otherwise check the indentation of this line."
        }
        K::UnclosedQuotedScalar | K::InvalidQuotedScalarIndent => {
            "Close the quote that begins here or above."
        }
        K::UnclosedFlowCollection { .. }
        | K::UnexpectedEofFlowSequence
        | K::UnexpectedEofFlowMapping
        | K::ExpectedFlowMappingSeparator
        | K::ExpectedFlowSequenceSeparator => {
            "Close the bracket that opens above, and put commas between its items."
        }
        K::UnexpectedCharacter { .. } => "A value that begins with this character must be quoted.",
        K::RecursionLimitExceeded => "Lists and mappings nest too deeply; make it flatter.",
        K::UnknownQuotedScalarEscape => "Use single quotes, or write `\\\\` for a backslash.",
        K::SimpleKeyExpected | K::ExpectedBlockMappingKey | K::InvalidIndentation => {
            "Every line here must be `key: value`, indented like its neighbours."
        }
        _ => return None,
    })
}

/// The position of the tab in a plain scalar that continues on the next line; the parser reports where the
/// scalar begins.
fn tab_position(text: &str, error: &ScanError) -> Option<Position> {
    let start = error.marker().byte_offset().filter(|_| *error.kind() == ErrorKind::TabInPlainScalar)?;
    Some(position_after(text.get(..start + text.get(start..)?.find('\t')?)?))
}

/// The position that follows a text.
fn position_after(text: &str) -> Position {
    let (lines, last) =
        text.rsplit_once('\n').map_or((1, text), |(above, last)| (above.matches('\n').count() + 2, last));
    Position::new(lines, last.chars().count() + 1)
}

/// Records that the bytes are not valid UTF-8.
pub(super) fn not_utf8(collector: &Collector<'_>, bytes: &[u8], valid: usize) -> Reported {
    let position = position_after(&String::from_utf8_lossy(&bytes[..valid]));
    let message = format!("the file is not valid UTF-8: invalid byte {:#04x}", bytes[valid]);
    collector.error(DiagnosticKind::Unreadable, position, "", message, "Save the file as UTF-8.")
}
