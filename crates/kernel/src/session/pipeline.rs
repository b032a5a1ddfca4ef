//! The pipeline of a turn: input → normalise → guard → context → route → model → tools → … → guard → answer.
//!
//! A turn passes one hook point after another; [`HookPoint::rules`] names the next one. A point without hooks is passed at once, so a
//! turn without extensions takes the same path at no cost. Compaction and the session's end are short pipelines of the same kind, and
//! so is each call (`call_pipeline.rs`).

use std::mem::take;
use std::sync::Arc;

use holdfast_contract::content::Content;
use holdfast_contract::effect::Act;
use holdfast_contract::hook::HookPoint;
use holdfast_contract::message::Message;
use holdfast_contract::session_frames::{ContextInjected, InputNormalised, TurnOutcome, TurnStarted};

use super::hooks::{HookPipeline, ask_hooks, guard_verdict, open_round};
use super::turn::{Purpose, Turn, TurnStage, TurnStep};
use crate::hook_round::HookRound;
use crate::limits::TimeLimit;
use crate::phase::Phase;

impl Turn {
    /// What hooks of a point are asked about.
    fn hook_subject(&mut self, point: HookPoint) -> Option<&mut Content> {
        match point {
            HookPoint::InputNormalise
            | HookPoint::SanitizeInput
            | HookPoint::GuardInput
            | HookPoint::Context
            | HookPoint::ModelRoute
            | HookPoint::CompactionProvide => Some(&mut self.text),
            HookPoint::SanitizeOutput
            | HookPoint::GuardOutput
            | HookPoint::ResponseProcess
            | HookPoint::TurnEnd => self.answer.as_mut(),
            _ => None,
        }
    }
}

impl TurnStep<'_> {
    /// Starts the pipeline at the first point of the turn's purpose.
    pub fn begin(&mut self) {
        self.switch_agent(self.session.speaker.clone());
        self.turn.time_limit = TimeLimit::of(&self.session.limits(), &self.session.spent);
        self.turn.deadline = self.recorder.now().plus(self.turn.time_limit.budget);
        let first = match self.turn.purpose {
            Purpose::Answer => {
                let turn = self.turn.context.turn;
                let registry = self.session.registry.reference;
                let started = self.recorder.record(TurnStarted { turn, registry });
                self.set_timer(started);
                if turn == 1 { HookPoint::SessionStart } else { HookPoint::TurnStart }
            }
            Purpose::Compact => {
                self.set_timer(self.recorder.cause);
                HookPoint::CompactionBefore
            }
            Purpose::End => HookPoint::SessionEnd,
        };
        self.proceed(first);
    }

    fn inject_context(&mut self, round: Option<&HookRound>) {
        let (blocks, texts) = round.map(HookRound::injected).unwrap_or_default();
        if !blocks.is_empty() {
            self.recorder.record(ContextInjected { blocks });
            self.turn.context_blocks = Arc::new(texts);
        }
    }
}

impl HookPipeline for TurnStep<'_> {
    fn round(&mut self) -> Option<&mut HookRound> {
        match &mut self.turn.stage {
            TurnStage::AskingHooks(round) => Some(round),
            _ => None,
        }
    }

    fn take_round(&mut self) -> Option<HookRound> {
        match take(&mut self.turn.stage) {
            TurnStage::AskingHooks(round) => Some(round),
            _ => None,
        }
    }

    fn abort_round(&mut self) {
        self.recorder.act(Act::Abort { begun_by: self.turn.begun });
    }

    fn ask(&mut self, point: HookPoint) -> bool {
        let Some(registry) = &self.session.registry.view else { return false };
        let subject = self.turn.hook_subject(point).cloned();
        let channel = &self.turn.context.origin.channel;
        let Some(opened) = open_round(self.recorder, registry, point, None, channel, subject) else {
            return false;
        };
        self.turn.wait(opened.begun, TurnStage::AskingHooks(opened.round));
        self.ask_open_hooks();
        true
    }

    fn ask_open_hooks(&mut self) {
        if let (TurnStage::AskingHooks(round), Some(registry)) =
            (&self.turn.stage, &self.session.registry.view)
        {
            ask_hooks(self.recorder, registry, self.turn.begun, round, None, &self.turn.context);
        }
    }

    fn apply_round(&mut self, round: &HookRound) -> bool {
        let judged = self.turn.hook_subject(round.point).zip(round.subject.as_ref());
        if let Some((judged, subject)) = judged.filter(|(judged, subject)| *judged != *subject) {
            *judged = subject.clone();
            // Until there is an answer, what a turn's own hooks rewrite is its text.
            if self.turn.purpose == Purpose::Answer && self.turn.answer.is_none() {
                self.recorder.record(InputNormalised { text: subject.clone() });
            }
        }
        let Some(reason) = guard_verdict(self.recorder, None, round) else { return true };
        self.end_early(TurnOutcome::Blocked { reason });
        false
    }

    fn finish_point(&mut self, point: HookPoint, round: Option<&HookRound>) -> Option<HookPoint> {
        match point {
            HookPoint::GuardInput => {
                let attachments = take(&mut self.turn.attachments);
                self.session.append(Message::User { text: self.turn.text.clone(), attachments });
            }
            HookPoint::Context => self.inject_context(round),
            HookPoint::ModelRoute => self.route(round),
            HookPoint::ResponseProcess => self.turn.outcome = Some(TurnOutcome::Answered),
            HookPoint::TurnEnd => self.finish(),
            HookPoint::CompactionBefore => self.begin_compaction(round),
            HookPoint::CompactionProvide => self.summarise(round),
            HookPoint::SessionEnd => {
                self.session.phase = Phase::Stopped;
                self.turn.stage = TurnStage::Ended;
            }
            _ => {}
        }
        point.rules().next
    }
}
