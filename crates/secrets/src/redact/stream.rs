//! A text in pieces. What may be the beginning of a value is held back until it is clear, and nothing else is.

use std::sync::Arc;

use secrecy::zeroize::Zeroize;

use super::{Redactor, views};

/// Takes values out of a text that comes in pieces, also where a value is split between them.
pub struct RedactedStream {
    redactor: Arc<Redactor>,
    held: String,
}

impl RedactedStream {
    pub(super) fn new(redactor: Arc<Redactor>) -> Self {
        Self { redactor, held: String::new() }
    }

    /// Takes a piece, and gives what can be shown.
    pub fn push(&mut self, piece: &str) -> String {
        self.held.push_str(piece);
        let clear = self.clear();
        let out = self.redactor.redact(&self.held[..clear]).into_owned();
        let rest = self.held[clear..].to_owned();
        self.held.zeroize();
        self.held = rest;
        out
    }

    /// Gives the rest: no more pieces come.
    pub fn finish(mut self) -> String {
        let out = self.redactor.redact(&self.held).into_owned();
        self.held.zeroize();
        out
    }

    /// How much of what is held cannot become part of a value any more.
    fn clear(&self) -> usize {
        let from = self.held.len().saturating_sub(self.redactor.longest.saturating_sub(1));
        let mut starts = self.held.char_indices().map(|(place, _)| place).skip_while(|place| *place < from);
        let mut clear = starts.find(|place| self.may_begin(&self.held[*place..])).unwrap_or(self.held.len());
        for view in views::of(&self.held).into_iter().filter(|view| view.is_last) {
            let from = view.text.len().saturating_sub(self.redactor.longest.saturating_sub(1));
            let starts = view.text.char_indices().map(|(place, _)| place).skip_while(|place| *place < from);
            let begins = starts.into_iter().find(|place| self.may_begin(&view.text[*place..]));
            clear = clear.min(begins.map_or(usize::MAX, |place| view.start(place)));
            clear = clear.min(view.open.unwrap_or(usize::MAX));
        }
        // A value that reaches over this place goes with what is held back.
        for place in self.redactor.ranges(&self.held).into_iter().rev() {
            if place.range.start < clear && clear < place.range.end {
                clear = place.range.start;
            }
        }
        clear
    }

    /// Whether a longer form begins with all of this.
    fn may_begin(&self, rest: &str) -> bool {
        let forms = &self.redactor.forms;
        // The forms are in order: those that begin with the rest come right after it.
        let first = forms.partition_point(|(form, _)| form.as_str() <= rest);
        forms.get(first).is_some_and(|(form, _)| form.starts_with(rest))
    }
}

impl Drop for RedactedStream {
    fn drop(&mut self) {
        self.held.zeroize();
    }
}
