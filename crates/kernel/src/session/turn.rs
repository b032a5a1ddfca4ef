//! A turn in progress: what it waits for, which facts it takes, and how it ends.

use std::mem::take;
use std::sync::Arc;

use holdfast_contract::body::Body;
use holdfast_contract::content::Content;
use holdfast_contract::effect::Act;
use holdfast_contract::hook::{Artifact, HookPoint};
use holdfast_contract::ids::{Millis, ModelName, Seq};
use holdfast_contract::message::{Message, Spent, TurnContext, TurnView};
use holdfast_contract::serde::{Deserialize, Serialize};
use holdfast_contract::session_frames::{TurnEnded, TurnOutcome};
use holdfast_contract::tool::CallStatus;

use super::call::{Call, CallStage, CallStep};
use super::children::ChildBudget;
use super::hooks::HookPipeline;
use super::{SessionState, UserInput};
use crate::hook_round::{HookAnswers, HookRound};
use crate::limits::TimeLimit;
use crate::step_recorder::StepRecorder;

/// How many messages a compaction keeps if no hook names a number.
const DEFAULT_KEEP: u32 = 6;

/// A turn in progress and its tool calls. They are apart so that a step of one call cannot reach the others.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(crate = "holdfast_contract::serde")]
pub(super) struct ActiveTurn {
    pub turn: Turn,
    pub calls: Vec<Call>,
}

/// A turn in progress, without its calls.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(crate = "holdfast_contract::serde", default)]
pub(super) struct Turn {
    pub purpose: Purpose,
    pub context: TurnView,
    pub stage: TurnStage,
    /// The frame that the stage waits for an answer to.
    pub begun: Seq,
    pub text: Content,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Artifact>,
    /// What context providers injected.
    pub context_blocks: Arc<Vec<Content>>,
    /// Messages that extensions injected since the last model call.
    pub notes: Vec<Content>,
    pub answer: Option<Content>,
    pub outcome: Option<TurnOutcome>,
    pub spent: Spent,
    /// The models to try, best first; the first is the one in use.
    pub models: Vec<ModelName>,
    pub time_limit: TimeLimit,
    pub deadline: Millis,
    /// Since when a person is asked, which stops the clock of the turn.
    pub paused: Option<Millis>,
    /// The frame that set the timer of the deadline.
    pub timer: Option<Seq>,
    pub compaction: Compaction,
    pub children: ChildBudget,
    /// The number of calls so far, by which they are numbered.
    pub calls_made: u32,
}

/// The state of a compaction in progress.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(crate = "holdfast_contract::serde")]
pub(super) struct Compaction {
    /// The `compaction.started` frame.
    pub started: Seq,
    /// How many messages at the end are kept.
    pub keep: u32,
    pub instructions: Vec<String>,
}

/// What a turn is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(crate = "holdfast_contract::serde")]
pub(super) enum Purpose {
    #[default]
    Answer,
    Compact,
    End,
}

/// What a turn waits for.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(crate = "holdfast_contract::serde")]
pub(super) enum TurnStage {
    /// Its calls, each of which has a stage of its own.
    #[default]
    RunningCalls,
    AskingHooks(HookRound),
    WaitingForModel {
        attempt: u32,
    },
    Summarising,
    /// It has ended with this step.
    Ended,
}

impl Turn {
    pub fn new(purpose: Purpose, context: TurnContext, input: UserInput) -> Self {
        Self {
            purpose,
            context: Arc::new(context),
            text: input.text,
            attachments: input.attachments,
            compaction: Compaction { keep: DEFAULT_KEEP, ..Compaction::default() },
            ..Self::default()
        }
    }

    /// Waits for the answer to this frame.
    pub fn wait(&mut self, begun: Seq, stage: TurnStage) {
        self.begun = begun;
        self.stage = stage;
    }
}

/// One step of a turn: where it is recorded, and what it may change.
pub(super) struct TurnStep<'a> {
    pub recorder: &'a mut StepRecorder,
    pub session: &'a mut SessionState,
    pub turn: &'a mut Turn,
    pub calls: &'a mut Vec<Call>,
}

impl<'a> TurnStep<'a> {
    pub fn new(
        recorder: &'a mut StepRecorder,
        session: &'a mut SessionState,
        active: &'a mut ActiveTurn,
    ) -> Self {
        Self { recorder, session, turn: &mut active.turn, calls: &mut active.calls }
    }
}

impl TurnStep<'_> {
    /// Applies a fact to what waits for it; false if nothing does.
    pub fn accept(&mut self, body: &Body, cause: Option<Seq>) -> bool {
        match body {
            Body::SessionResumed(_) => self.recover(),
            Body::SessionCancelled(fact) if self.turn.purpose != Purpose::End => {
                self.end_early(TurnOutcome::Cancelled { reason: fact.reason.clone() });
            }
            Body::TimerFired(fact) if self.turn.timer == Some(fact.timer) => self.deadline_reached(),
            _ if matches!(self.turn.stage, TurnStage::RunningCalls) => {
                return self.accept_in_call(body, cause);
            }
            _ => return cause == Some(self.turn.begun) && self.apply_answer(body),
        }
        true
    }

    /// Applies the answer that the turn waits for; false if this fact is not that.
    fn apply_answer(&mut self, body: &Body) -> bool {
        match (&self.turn.stage, body) {
            (TurnStage::AskingHooks(_), body) => {
                return HookAnswers::of(body).is_some_and(|answers| self.hooks_answered(answers));
            }
            (TurnStage::WaitingForModel { .. }, Body::ModelReturned(fact)) => self.model_returned(fact),
            (TurnStage::WaitingForModel { .. }, Body::StreamGuarded(fact)) => self.stream_guarded(fact),
            (TurnStage::WaitingForModel { attempt }, Body::ModelFailed(fact)) => {
                let attempt = *attempt;
                self.model_failed(attempt, fact);
            }
            (TurnStage::Summarising, Body::CompactionProvided(fact)) => self.summary_provided(fact),
            _ => return false,
        }
        true
    }

    /// Applies a fact to the call that it is about; false if that call does not wait for it.
    fn accept_in_call(&mut self, body: &Body, cause: Option<Seq>) -> bool {
        let position = match body {
            Body::ApprovalAnswered(fact) => self.calls.iter().position(|call| call.begun == fact.approval),
            body => body.call().and_then(|id| self.calls.binary_search_by_key(&id, |call| call.view.id).ok()),
        };
        let Some(call) = position.and_then(|position| self.calls.get_mut(position)) else { return false };
        let asked_before = call.asks_person();
        let mut step = CallStep { recorder: self.recorder, session: self.session, turn: self.turn, call };
        if !step.apply_answer(body, cause) {
            return false;
        }
        let asking_changed = asked_before || step.call.asks_person();
        self.review_calls(asking_changed);
        true
    }

    /// Takes a step with each call.
    pub fn each_call(&mut self, mut step: impl FnMut(&mut CallStep<'_>)) {
        for call in self.calls.iter_mut() {
            step(&mut CallStep { recorder: self.recorder, session: self.session, turn: self.turn, call });
        }
    }

    /// Continues after a change of the calls: the clock is paused while a person is asked, and after the last call has finished the model
    /// is told the results.
    pub fn review_calls(&mut self, asking_changed: bool) {
        if asking_changed {
            self.pause(self.calls.iter().any(Call::asks_person));
        }
        // From the end: calls mostly finish in order, so the last one usually decides.
        if self.calls.iter().rev().all(Call::is_finished) {
            self.report_calls();
            self.request_model();
        }
    }

    /// Adds the results of the finished calls to the conversation, in the order in which the model asked.
    fn report_calls(&mut self) {
        for call in take(self.calls) {
            if let CallStage::Finished { content, status } = call.stage {
                self.session.append(Message::Tool {
                    call: call.view.id,
                    model_id: call.model_id,
                    content,
                    failed: status != CallStatus::Done,
                    attachments: call.artifacts,
                    edited: call.edited.then_some(call.view.arguments),
                });
            }
        }
    }

    /// Ends the turn before there is an answer: what is in progress is aborted, open calls are cancelled, and the last hooks are asked.
    pub fn end_early(&mut self, outcome: TurnOutcome) {
        if matches!(self.turn.stage, TurnStage::RunningCalls) {
            self.each_call(|call| call.cancel());
            self.report_calls();
        } else {
            self.recorder.act(Act::Abort { begun_by: self.turn.begun });
        }
        if self.turn.purpose != Purpose::Answer {
            self.turn.stage = TurnStage::Ended;
        } else if self.turn.outcome.is_some() {
            self.finish();
        } else {
            let cancelled = matches!(outcome, TurnOutcome::Cancelled { .. });
            self.turn.answer = None;
            self.turn.outcome = Some(outcome);
            self.proceed(if cancelled { HookPoint::SessionCancel } else { HookPoint::TurnEnd });
        }
    }

    /// Ends the turn after the last hooks, and has its end delivered.
    pub fn finish(&mut self) {
        self.append_notes();
        self.charge(Spent { time: self.elapsed(), ..Spent::default() });
        self.turn.stage = TurnStage::Ended;
        let answer = self.turn.answer.take();
        let outcome = self.turn.outcome.take().unwrap_or(TurnOutcome::Answered);
        if let Some(text) = answer.clone() {
            self.session.append(Message::Assistant { text, reasoning: None, calls: Vec::new() });
        }
        let spent = self.turn.spent;
        let decided_by = self.recorder.record(TurnEnded {
            turn: self.turn.context.turn,
            outcome: outcome.clone(),
            answer: answer.clone(),
            spent,
        });
        self.recorder.act(Act::Deliver { decided_by, outcome, answer, spent });
    }

    /// Adds what extensions injected meanwhile to the conversation.
    pub fn append_notes(&mut self) {
        for text in take(&mut self.turn.notes) {
            self.session.append(Message::Note { text });
        }
    }
}
