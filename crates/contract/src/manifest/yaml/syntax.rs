//! What to tell somebody whose file is no YAML, or no text at all.

use granit_parser::{ErrorKind, ScanError};

use super::field::Reported;
use super::notes::Notes;
use super::tree::Mark;

/// Records what the parser stumbled over, with the usual cause of it.
pub(super) fn broken(notes: &Notes<'_>, text: &str, error: &ScanError) -> Reported {
    let format = notes.format;
    let mark = tab(text, error).unwrap_or_else(|| Mark::from(error.marker()));
    let what = format!("the file is not valid YAML: {}", error.info());
    let help = usual_cause(error.kind()).unwrap_or(format.codes.syntax.help());
    notes.error(format.codes.syntax, mark, "", what, help)
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
            "A value that begins with `*` or `&` must stand in quotes, such as `cron: \"*/5 * * * *\"`."
        }
        K::MappingValueNotAllowed | K::InvalidColonPlacement => {
            "A text that has `: ` in it must stand in quotes; otherwise check the indentation of this line."
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
        K::UnexpectedCharacter { .. } => "A value that begins with this character must stand in quotes.",
        K::RecursionLimitExceeded => "Lists and mappings nest too deeply; make it flatter.",
        K::UnknownQuotedScalarEscape => "Use single quotes, or write `\\\\` for a backslash.",
        K::SimpleKeyExpected | K::ExpectedBlockMappingKey | K::InvalidIndentation => {
            "Every line here must be `key: value`, indented like its neighbours."
        }
        _ => return None,
    })
}

/// The place of the tab in a text that continues on the next line; the parser names the place where the text
/// begins.
fn tab(text: &str, error: &ScanError) -> Option<Mark> {
    let start = error.marker().byte_offset().filter(|_| *error.kind() == ErrorKind::TabInPlainScalar)?;
    Some(mark_after(text.get(..start + text.get(start..)?.find('\t')?)?))
}

/// The place that follows a text.
fn mark_after(text: &str) -> Mark {
    let (lines, last) =
        text.rsplit_once('\n').map_or((1, text), |(above, last)| (above.matches('\n').count() + 2, last));
    Mark::new(lines, last.chars().count() + 1)
}

/// Records that the bytes are no text.
pub(super) fn not_utf8(notes: &Notes<'_>, bytes: &[u8], valid: usize) -> Reported {
    let mark = mark_after(&String::from_utf8_lossy(&bytes[..valid]));
    let format = notes.format;
    let what = format!("the file is not valid UTF-8: byte {:#04x} begins no character", bytes[valid]);
    notes.error(format.codes.unreadable, mark, "", what, "Save the file as UTF-8.")
}
