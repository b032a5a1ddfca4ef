//! An answer while it is being written: what of it was shown.

/// What a model writes in a turn. Pieces come in the feed's order, before the frame of the answer that they belong to.
#[derive(Default)]
pub(crate) struct LiveText {
    /// Bytes of the answer that is being written that were seen.
    seen: u64,
    /// Everything that was shown in the turn.
    all: String,
    /// Whether a piece was not seen here, so that an answer was shown in part.
    incomplete: bool,
}

impl LiveText {
    /// Takes a piece, and says whether to show it. Of an answer whose beginning was written before this client came, nothing is shown
    /// until it is complete.
    pub(crate) fn wrote(&mut self, offset: u64, text: &str) -> bool {
        if offset == 0 {
            self.seen = 0;
        }
        if offset != self.seen {
            self.incomplete = true;
            return false;
        }
        self.seen += text.len() as u64;
        self.all.push_str(text);
        true
    }

    /// The answer has come back complete.
    pub(crate) fn returned(&mut self) {
        self.seen = 0;
    }

    /// Whether this answer is another one than what was shown: not one of which only a part was seen here.
    pub(crate) fn was_changed(&self, answer: &str) -> bool {
        !self.incomplete && !self.all.trim().is_empty() && !self.has_shown(answer)
    }

    /// Whether this answer was shown.
    pub(crate) fn has_shown(&self, answer: &str) -> bool {
        self.all.trim_end().ends_with(answer.trim())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_answer_of_a_turn_is_shown_as_it_is_written() {
        let mut live = LiveText::default();
        assert!(live.wrote(0, "Let me look."));
        live.returned();
        assert!(live.wrote(0, "It says ") && live.wrote(8, "hello."));
        live.returned();
        assert!(live.has_shown("It says hello.") && !live.has_shown("It says something else."));
    }

    #[test]
    fn an_answer_whose_beginning_is_missing_is_not_shown() {
        let mut live = LiveText::default();
        assert!(!live.wrote(8, "hello."));
        live.returned();
        assert!(live.wrote(0, "Next."));
    }

    // Finding B8.
    #[test]
    fn an_answer_that_was_seen_in_part_is_not_called_changed() {
        let mut live = LiveText::default();
        assert!(live.wrote(0, "Good ") && !live.wrote(9, "ning."));
        assert!(!live.has_shown("Good morning.") && !live.was_changed("Good morning."));
        let mut whole = LiveText::default();
        assert!(whole.wrote(0, "Good morning.") && !whole.was_changed("Good morning.\n"));
        assert!(whole.was_changed("Something else."));
    }
}
