//! Compaction: the older part of the conversation is replaced with a summary.

use std::sync::Arc;

use holdfast_contract::content::Content;
use holdfast_contract::effect::{Act, SummaryAct};
use holdfast_contract::message::Message;
use holdfast_contract::session_frames::{CompactionApplied, CompactionProvided, CompactionStarted};
use holdfast_contract::tool::ToolOutcome;

use super::turn::{TurnStage, TurnStep};
use crate::hook_round::HookRound;

impl TurnStep<'_> {
    /// Where the kept part begins: never between a call and its result.
    fn cut(&self) -> usize {
        let transcript = &self.session.transcript;
        let last = transcript.len().saturating_sub(self.turn.compaction.keep as usize);
        let is_result = |position: usize| matches!(transcript.get(position), Some(Message::Tool { .. }));
        (0..=last).rev().find(|position| !is_result(*position)).unwrap_or(0)
    }

    /// The hooks have answered what to keep. Providers are asked about the part that is replaced.
    pub fn begin_compaction(&mut self, round: Option<&HookRound>) {
        let (instructions, keep) = round.map(HookRound::compaction).unwrap_or_default();
        let compaction = &mut self.turn.compaction;
        compaction.keep = keep.unwrap_or(compaction.keep);
        compaction.instructions = instructions.clone();
        compaction.started = self.recorder.record(CompactionStarted { keep: compaction.keep, instructions });
        let replaced: Vec<&Message> = self.session.transcript.iter().take(self.cut()).collect();
        self.turn.text = Content::of(&replaced);
    }

    /// Applies a provider's summary, or requests one from a model, unless there is nothing to replace.
    pub fn summarise(&mut self, round: Option<&HookRound>) {
        let answers = round.into_iter().flat_map(HookRound::answers);
        match answers.filter_map(|(_, answer)| answer.replacement()).last() {
            Some(summary) => self.apply_summary(Some(summary.clone())),
            None if self.cut() == 0 => self.apply_summary(None),
            None => self.request_summary(),
        }
    }

    pub fn request_summary(&mut self) {
        let compaction = &self.turn.compaction;
        let decided_by = compaction.started;
        self.recorder.act(Act::Summarise(Box::new(SummaryAct {
            decided_by,
            model: self.turn.models.first().cloned(),
            messages: self.session.transcript.clone(),
            keep: compaction.keep,
            instructions: compaction.instructions.clone(),
        })));
        self.turn.wait(decided_by, TurnStage::Summarising);
    }

    pub fn summary_provided(&mut self, fact: &CompactionProvided) {
        self.charge(fact.usage.into());
        match &fact.outcome {
            ToolOutcome::Result(summary) => self.apply_summary(Some(summary.clone())),
            ToolOutcome::Failure(_) => self.turn.stage = TurnStage::Ended,
        }
    }

    fn apply_summary(&mut self, summary: Option<Content>) {
        let cut = self.cut();
        let transcript = Arc::make_mut(&mut self.session.transcript);
        let kept = transcript.len().saturating_sub(cut) as u32;
        if let Some(text) = summary.filter(|_| cut > 0) {
            transcript.splice(..cut, [Message::Note { text }]);
        }
        self.recorder.record(CompactionApplied { replaced: cut as u32, kept });
        self.turn.stage = TurnStage::Ended;
    }
}
