//! Diagnostics, and where they are collected while a text is decoded.

use std::cell::RefCell;

use super::DecodeOptions;
use super::tree::Position;

/// How many errors, and how many warnings, are listed; the others are counted.
const MAX_LISTED: usize = 50;

/// How many characters of a text are shown.
const MAX_TEXT_CHARS: usize = 400;

/// A problem with a text.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnostic {
    /// What sort of problem it is.
    pub kind: DiagnosticKind,
    /// Where it is.
    pub position: Position,
    /// The field, written `agent.limits.max_turns`, if it is about one.
    pub field: Option<String>,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub help: String,
}

/// The sorts of problems.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiagnosticKind {
    /// The text is not valid UTF-8.
    Unreadable,
    /// The text is not valid YAML.
    Syntax,
    /// A field has the wrong type.
    WrongType,
    /// A field is unknown; a warning.
    UnknownField,
    /// A duplicate key; a warning.
    DuplicateKey,
    /// A required field is missing.
    MissingField,
    /// A value of the right type is invalid.
    Value,
    /// The text, or what its aliases expand to, is too large.
    TooLarge,
    /// A field or value that is documented for later, and that nothing reads yet.
    Unavailable,
}

/// Proof that an error has been recorded: a function that has no value to return returns this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reported(());

/// The diagnostics of one text.
pub(super) struct Collector<'o> {
    pub(super) options: &'o DecodeOptions,
    errors: RefCell<DiagnosticList>,
    warnings: RefCell<DiagnosticList>,
}

#[derive(Default)]
struct DiagnosticList {
    listed: Vec<Diagnostic>,
    omitted: usize,
}

impl DiagnosticList {
    fn add(&mut self, diagnostic: Diagnostic) {
        if self.listed.len() < MAX_LISTED {
            self.listed.push(diagnostic);
        } else {
            self.omitted += 1;
        }
    }

    fn into_sorted(mut self) -> Vec<Diagnostic> {
        self.listed.sort_by_key(|diagnostic| diagnostic.position);
        if let Some(last) = self.listed.last_mut()
            && self.omitted > 0
        {
            last.help += &format!(" (And {} more like these.)", self.omitted);
        }
        self.listed
    }
}

impl<'o> Collector<'o> {
    pub(super) fn new(options: &'o DecodeOptions) -> Self {
        Self { options, errors: RefCell::default(), warnings: RefCell::default() }
    }

    /// Records an error. This is the only function that creates a [`Reported`], so a caller that has one
    /// knows that the user is told.
    pub(super) fn error(
        &self,
        kind: DiagnosticKind,
        position: Position,
        field: &str,
        message: String,
        help: impl Into<String>,
    ) -> Reported {
        self.errors.borrow_mut().add(diagnostic(kind, position, field, &message, &help.into()));
        Reported(())
    }

    /// Records a warning.
    pub(super) fn warning(
        &self,
        kind: DiagnosticKind,
        position: Position,
        field: &str,
        message: String,
        help: impl Into<String>,
    ) {
        self.warnings.borrow_mut().add(diagnostic(kind, position, field, &message, &help.into()));
    }

    /// Refuses a text that is too large before it is parsed.
    pub(super) fn check_size(&self, bytes: usize) -> Result<(), Reported> {
        let DecodeOptions { max_bytes, size_help, .. } = self.options;
        if bytes <= *max_bytes {
            return Ok(());
        }
        let message = format!("the file has {bytes} bytes; the limit is {max_bytes}");
        Err(self.error(DiagnosticKind::TooLarge, Position::UNKNOWN, "", message, *size_help))
    }

    /// Errors and warnings, each sorted by position.
    pub(super) fn into_diagnostics(self) -> (Vec<Diagnostic>, Vec<Diagnostic>) {
        (self.errors.into_inner().into_sorted(), self.warnings.into_inner().into_sorted())
    }
}

fn diagnostic(
    kind: DiagnosticKind,
    position: Position,
    field: &str,
    message: &str,
    help: &str,
) -> Diagnostic {
    let field = (!field.is_empty()).then(|| printable(field));
    Diagnostic { kind, position, field, message: printable(message), help: printable(help) }
}

/// Texts of a file are printed to a terminal: control and bidirectional formatting characters are escaped,
/// because they would change what it shows.
fn printable(text: &str) -> String {
    let controls = |letter: char| {
        letter.is_control()
            || matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let mut shown = String::new();
    for letter in text.chars().take(MAX_TEXT_CHARS) {
        if controls(letter) {
            shown.extend(letter.escape_unicode());
        } else {
            shown.push(letter);
        }
    }
    shown
}
