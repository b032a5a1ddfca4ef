//! The margin before text of models, tools and extensions. Only this program writes in the first column of a terminal, so a question
//! there is a real one: not after a line break in the text, and not where the terminal would wrap a long line.

use unicode_width::UnicodeWidthChar;

use super::sanitize::{Sanitizer, one_line};

/// What stands before every row of foreign text.
pub(crate) const MARGIN: &str = "  ";

/// Lays out foreign text, also where it comes in pieces.
pub(crate) struct Margin {
    columns: usize,
    /// The column that comes next; 0 at the beginning of a row.
    column: usize,
    sanitizer: Sanitizer,
}

impl Margin {
    /// For a terminal of so many columns.
    pub(crate) fn new(columns: usize) -> Self {
        Self { columns: columns.max(2 * MARGIN.len()), column: 0, sanitizer: Sanitizer::default() }
    }

    /// For text that goes on behind so many columns of our own.
    pub(crate) fn after(mut self, column: usize) -> Self {
        self.column = column;
        self
    }

    /// The next piece of the text, harmless and in rows. A row that is full is broken at its last space, if that is in this piece.
    pub(crate) fn push(&mut self, text: &str) -> String {
        let safe = self.sanitizer.push(text);
        self.lay_out(&safe)
    }

    /// A whole text, or the last piece of one.
    pub(crate) fn whole(&mut self, text: &str) -> String {
        self.push(text) + &self.finish()
    }

    /// The end of the text: what the last piece left undecided.
    pub(crate) fn finish(&mut self) -> String {
        let rest = self.sanitizer.finish().map(String::from).unwrap_or_default();
        self.lay_out(&rest)
    }

    fn lay_out(&mut self, safe: &str) -> String {
        let mut rows = String::with_capacity(safe.len() + MARGIN.len());
        // Where in the rows the last space of this one is.
        let mut space = None;
        for character in safe.chars() {
            if character == '\n' {
                rows.push('\n');
                (self.column, space) = (0, None);
                continue;
            }
            let width = widest(character);
            if self.column + width > self.columns {
                if character == ' ' {
                    // The break stands for it.
                    rows.push('\n');
                    (self.column, space) = (0, None);
                    continue;
                }
                let word = space.take().map(|space| rows.split_off(space)).unwrap_or_default();
                let word = word.trim_start();
                rows.push('\n');
                rows.push_str(MARGIN);
                rows.push_str(word);
                self.column = MARGIN.len() + word.chars().map(widest).sum::<usize>();
            }
            if self.column == 0 {
                rows.push_str(MARGIN);
                self.column = MARGIN.len();
            }
            if character == ' ' && self.column > MARGIN.len() {
                space = Some(rows.len());
            }
            rows.push(character);
            self.column += width;
        }
        rows
    }

    /// Whether a row is begun and not ended.
    pub(crate) fn within_row(&self) -> bool {
        self.column > 0
    }

    /// Something else has ended the row.
    pub(crate) fn at_row_start(&mut self) {
        self.column = 0;
    }
}

/// A whole foreign text in rows, each with its margin, without a line break at the end.
pub(crate) fn margined(text: &str, columns: usize) -> String {
    Margin::new(columns).whole(text.trim_end_matches('\n'))
}

/// One line that begins with words of our own and goes on with foreign text. Where a terminal has too few columns for it, the
/// other rows have the margin.
pub(crate) fn line_of(own: &str, foreign: &str, columns: usize) -> String {
    let own = one_line(own);
    let mut margin = Margin::new(columns).after(columns_of(&own));
    let rest = margin.push(&one_line(foreign));
    own + &rest
}

/// A line of our own with foreign words in it: the first column is ours, and where the terminal has too few columns for the rest,
/// the other rows have the margin.
pub(crate) fn wrapped(text: &str, columns: usize) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(String::from).unwrap_or_default();
    line_of(&first, letters.as_str(), columns)
}

/// The most columns that a terminal may give a text without line breaks.
pub(crate) fn columns_of(text: &str) -> usize {
    text.chars().map(widest).sum()
}

/// The most columns that a terminal may give a character. They do not agree on all of them, and a row that is broken early does no harm.
fn widest(character: char) -> usize {
    character.width_cjk().unwrap_or(0).max(1)
}

#[cfg(test)]
#[path = "margin_tests.rs"]
mod tests;
