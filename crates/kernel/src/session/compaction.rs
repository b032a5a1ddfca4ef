//! Compaction: the older part of the conversation gives way to a summary.

use super::*;

impl StepContext<'_> {
    /// Where the kept part begins.
    fn cut(&self) -> usize {
        let conversation = &self.base.transcript;
        let last = conversation.len().saturating_sub(self.turn.keep as usize);
        let is_result = |place: usize| matches!(conversation.get(place), Some(Message::Tool { .. }));
        (0..=last).rev().find(|place| !is_result(*place)).unwrap_or(0)
    }

    /// The hooks have said what to keep. What providers are asked about is the part that goes.
    pub fn begin_compaction(&mut self, round: Option<&HookRound>) {
        let (instructions, keep) = round.map(HookRound::compaction).unwrap_or_default();
        let keep = keep.unwrap_or(self.turn.keep);
        (self.turn.instructions, self.turn.keep) = (instructions.clone(), keep);
        self.turn.compaction = self.desk.record(CompactionStarted { keep, instructions });
        let replaced: Vec<&Message> = self.base.transcript.iter().take(self.cut()).collect();
        self.turn.text = Content::of(&replaced);
    }

    /// Takes a provider's summary, or has one written, unless there is nothing to replace.
    pub fn summarise(&mut self, round: Option<&HookRound>) {
        let answers = round.into_iter().flat_map(HookRound::answers);
        match answers.filter_map(|(_, answer)| answer.replacement()).last() {
            Some(summary) => self.apply_summary(Some(summary.clone())),
            None if self.cut() == 0 => self.apply_summary(None),
            None => self.ask_summary(),
        }
    }

    pub fn ask_summary(&mut self) {
        let decided_by = self.turn.compaction;
        self.turn.wait = Wait { begun: decided_by, stage: Stage::Summarising };
        let (model, messages) = (self.turn.models.first().cloned(), self.base.transcript.clone());
        let (keep, instructions) = (self.turn.keep, self.turn.instructions.clone());
        let act = SummaryAct { decided_by, model, messages, keep, instructions };
        self.desk.act(Act::Summarise(Box::new(act)));
    }

    pub fn summarised(&mut self, fact: &CompactionProvided) {
        self.charge(fact.usage.into());
        match &fact.outcome {
            ToolOutcome::Result(summary) => self.apply_summary(Some(summary.clone())),
            ToolOutcome::Failure(_) => self.turn.wait.stage = Stage::Over,
        }
    }

    fn apply_summary(&mut self, summary: Option<Content>) {
        let cut = self.cut();
        let transcript = Arc::make_mut(&mut self.base.transcript);
        let kept = transcript.len().saturating_sub(cut) as u32;
        if let Some(text) = summary.filter(|_| cut > 0) {
            transcript.splice(..cut, [Message::Note { text }]);
        }
        self.desk.record(CompactionApplied { replaced: cut as u32, kept });
        self.turn.wait.stage = Stage::Over;
    }
}
