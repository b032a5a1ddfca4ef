//! Where problems are collected while a file is read.

use std::cell::RefCell;
use std::path::Path;

use super::Format;
use super::field::Reported;
use super::tree::Mark;
use crate::problem::{Code, Location, Problem, Severity};

/// How many problems of a sort are worth showing.
const MAX_PROBLEMS_SHOWN: usize = 50;

/// How many letters of a text are worth showing.
const MAX_TEXT_SHOWN: usize = 400;

/// The problems of one file.
pub(super) struct Notes<'f> {
    pub(super) format: &'f Format,
    file: &'f Path,
    errors: RefCell<Sink>,
    warnings: RefCell<Sink>,
}

#[derive(Default)]
struct Sink {
    problems: Vec<Problem>,
    beyond: usize,
}

impl Sink {
    fn add(&mut self, problem: Problem) {
        if self.problems.len() < MAX_PROBLEMS_SHOWN {
            self.problems.push(problem);
        } else {
            self.beyond += 1;
        }
    }

    fn into_sorted(mut self) -> Vec<Problem> {
        let place = |problem: &Problem| problem.location.as_ref().map(|at| (at.line, at.column));
        self.problems.sort_by_key(place);
        if let Some(last) = self.problems.last_mut()
            && self.beyond > 0
        {
            last.help += &format!(" (And {} more like these.)", self.beyond);
        }
        self.problems
    }
}

impl<'f> Notes<'f> {
    pub(super) fn new(format: &'f Format, file: &'f Path) -> Self {
        Self { format, file, errors: RefCell::default(), warnings: RefCell::default() }
    }

    pub(super) fn file(&self) -> &Path {
        self.file
    }

    /// Records an error. This is the only place that makes a [`Reported`], so whoever holds one knows that
    /// the user is told.
    pub(super) fn error(
        &self,
        code: Code,
        mark: Mark,
        field: &str,
        what: String,
        help: impl Into<String>,
    ) -> Reported {
        self.errors.borrow_mut().add(self.problem(code, mark, field, what, help));
        Reported::new()
    }

    /// Records a warning.
    pub(super) fn warning(&self, code: Code, mark: Mark, field: &str, what: String, help: impl Into<String>) {
        let problem = self.problem(code, mark, field, what, help);
        self.warnings.borrow_mut().add(problem.with(Severity::Warning));
    }

    fn problem(&self, code: Code, mark: Mark, field: &str, what: String, help: impl Into<String>) -> Problem {
        let field = (!field.is_empty()).then(|| printable(field));
        let location = Location { file: self.file.to_owned(), line: mark.line, column: mark.column, field };
        Problem::new(code, printable(&what)).at(location).help(printable(&help.into()))
    }

    /// Refuses what is too large before anybody looks at it.
    pub(super) fn check_size(&self, bytes: usize) -> Result<(), Reported> {
        let Format { max_bytes, codes, .. } = self.format;
        if bytes <= *max_bytes {
            return Ok(());
        }
        let what = format!("the file has {bytes} bytes, and may have {max_bytes} at most");
        Err(self.error(codes.too_large, Mark::NOWHERE, "", what, codes.too_large.help()))
    }

    /// Errors and warnings, each in the order of the lines.
    pub(super) fn into_problems(self) -> (Vec<Problem>, Vec<Problem>) {
        (self.errors.into_inner().into_sorted(), self.warnings.into_inner().into_sorted())
    }
}

/// Texts out of a file end up on a terminal: what would steer it is written as an escape.
fn printable(text: &str) -> String {
    let steers = |letter: char| {
        letter.is_control()
            || matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let mut shown = String::new();
    for letter in text.chars().take(MAX_TEXT_SHOWN) {
        if steers(letter) {
            shown.extend(letter.escape_unicode());
        } else {
            shown.push(letter);
        }
    }
    shown
}
