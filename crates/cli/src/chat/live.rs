//! An answer while it is being written.
//!
//! Text comes at once and frames once they are durable, so text can overtake the frames of the tool calls before it. It is held
//! for a moment, and a frame that comes meanwhile says which of it was written before.

use std::time::Duration;

use tokio::time::Instant;

/// How long text is held.
const MOMENT: Duration = Duration::from_millis(40);

/// What a model writes in a turn.
#[derive(Default)]
pub(crate) struct LiveText {
    held: String,
    due: Option<Instant>,
    /// What was shown of the answer that has not come back yet.
    round: String,
    /// Everything that was shown in the turn.
    all: String,
}

impl LiveText {
    /// The model wrote some text.
    pub(crate) fn wrote(&mut self, text: &str) {
        self.held.push_str(text);
        self.due.get_or_insert_with(|| Instant::now() + MOMENT);
    }

    /// When text is to be shown.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// The text that is to be shown now: all that is held.
    pub(crate) fn shown(&mut self) -> String {
        self.due = None;
        let text = std::mem::take(&mut self.held);
        self.round.push_str(&text);
        self.all.push_str(&text);
        text
    }

    /// A model's answer came back whole: gives what of it is still held, and keeps what was written after it.
    pub(crate) fn returned(&mut self, text: &str) -> String {
        let round = std::mem::take(&mut self.round);
        let rest = text.strip_prefix(round.as_str()).unwrap_or_default();
        let later = self.held.strip_prefix(rest).unwrap_or_default().to_owned();
        self.held.truncate(self.held.len() - later.len());
        let shown = self.shown();
        self.round.clear();
        if !later.is_empty() {
            self.wrote(&later);
        }
        shown
    }

    /// What is left when the turn has ended.
    pub(crate) fn rest(&mut self) -> String {
        self.shown()
    }

    /// Whether anything was shown in the turn.
    pub(crate) fn any(&self) -> bool {
        !self.all.trim().is_empty()
    }

    /// Whether this answer was shown.
    pub(crate) fn has_shown(&self, answer: &str) -> bool {
        self.all.trim_end().ends_with(answer.trim())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn text_of_a_later_answer_waits_for_the_frames_between() {
        let mut live = LiveText::default();
        live.wrote("Let me look.");
        live.wrote("It says ");
        assert_eq!(live.returned("Let me look."), "Let me look.");
        assert!(live.due().is_some());
        live.wrote("hello.");
        assert_eq!(live.returned("It says hello."), "It says hello.");
        assert!(live.has_shown("It says hello."));
        assert!(!live.has_shown("It says something else."));
    }

    #[tokio::test]
    async fn text_that_was_shown_is_not_shown_again() {
        let mut live = LiveText::default();
        live.wrote("one ");
        assert_eq!(live.shown(), "one ");
        live.wrote("two");
        assert_eq!(live.returned("one two"), "two");
        assert_eq!(live.rest(), "");
    }
}
