//! How hooks are asked, for turns and calls alike: one round per point and subject, in sequence or together.

use std::sync::Arc;

use holdfast_contract::content::{Content, DigestOf};
use holdfast_contract::effect::{Act, RoundAct};
use holdfast_contract::hook::{HookInput, HookPoint, OnFault, Order};
use holdfast_contract::ids::{CallId, Seq};
use holdfast_contract::matcher::MatchedCall;
use holdfast_contract::message::{CallView, TurnView};
use holdfast_contract::registry::Registry;
use holdfast_contract::session_frames::{GuardVerdict, HookCalled};

use crate::hook_round::{HookAnswers, HookRound};
use crate::registry::hook_index::{matching_hooks, open_hooks};
use crate::step_recorder::StepRecorder;

/// A round that was recorded.
pub(super) struct OpenedRound {
    /// The `hook.called` frame.
    pub begun: Seq,
    pub round: HookRound,
}

/// Records that the hooks of a point whose matchers apply are asked; nothing if there are none. A gate always has the policy.
pub(super) fn open_round(
    recorder: &mut StepRecorder,
    registry: &Registry,
    point: HookPoint,
    call: Option<&CallView>,
    channel: &str,
    subject: Option<Content>,
) -> Option<OpenedRound> {
    let matched =
        call.map(|call| MatchedCall { tool: call.tool.as_str(), arguments: Some(call.arguments.value()) });
    let hooks = matching_hooks(registry, point, matched, channel)?;
    let round = HookRound::new(point, subject, hooks);
    let begun = recorder.record(HookCalled {
        point,
        call: call.map(|call| call.id),
        subject: round.subject.as_ref().map(DigestOf::from),
        hooks: round.hooks.clone(),
    });
    Some(OpenedRound { begun, round })
}

/// Asks the hooks of a round that have not answered, without the policy: all of them, or the next one.
pub(super) fn ask_hooks(
    recorder: &mut StepRecorder,
    registry: &Arc<Registry>,
    begun: Seq,
    round: &HookRound,
    call: Option<&CallView>,
    turn: &TurnView,
) {
    let hooks = open_hooks(registry, round);
    let Some(first) = hooks.ids.first() else { return };
    let input = HookInput {
        hook: first.clone(),
        point: round.point,
        call: call.cloned(),
        subject: round.subject.clone(),
        turn: turn.clone(),
    };
    recorder.act(Act::CallHooks(Box::new(RoundAct { decided_by: begun, input, hooks })));
}

/// What an answer means for its round.
enum RoundProgress {
    /// One of the hooks is not being asked: nothing has changed.
    Refused,
    /// Other hooks have not answered.
    Waiting,
    /// The next hook of a sequence is to be asked.
    AskNext,
    /// All hooks have answered, or one has closed the gate; `abort` if others are still being asked.
    Finished { abort: bool },
}

impl RoundProgress {
    /// Applies answers to a round.
    fn after(round: &mut HookRound, answers: HookAnswers<'_>) -> Self {
        if !round.apply_answer(answers) {
            return Self::Refused;
        }
        match (round.is_open() && round.closed.is_none(), round.in_sequence()) {
            (true, true) => Self::AskNext,
            (true, false) => Self::Waiting,
            (false, in_sequence) => Self::Finished { abort: round.is_open() && !in_sequence },
        }
    }
}

/// A sequence of hook points that a turn or a call passes, with at most one round in progress.
pub(super) trait HookPipeline {
    /// The round in progress.
    fn round(&mut self) -> Option<&mut HookRound>;

    /// Takes the round in progress, which is over.
    fn take_round(&mut self) -> Option<HookRound>;

    /// Aborts the hooks of the round in progress that have not answered.
    fn abort_round(&mut self);

    /// Asks the hooks of a point whose matchers apply; false if there are none.
    fn ask(&mut self, point: HookPoint) -> bool;

    /// Asks the hooks of the round in progress that have not answered: all of them, or the next one.
    fn ask_open_hooks(&mut self);

    /// Takes over what the hooks of a round have made of its subject; false if they blocked, and what follows from that is decided.
    fn apply_round(&mut self, round: &HookRound) -> bool;

    /// Does what follows when all hooks of a point have answered, if it has any. Returns the next point, if one follows at once.
    fn finish_point(&mut self, point: HookPoint, round: Option<&HookRound>) -> Option<HookPoint>;

    /// Passes points from this one on, up to the next thing that has to be waited for.
    fn proceed(&mut self, from: HookPoint) {
        let mut next = Some(from);
        while let Some(point) = next {
            if self.ask(point) {
                return;
            }
            next = self.finish_point(point, None);
        }
    }

    /// Applies answers to the round in progress; false if one of the hooks is not being asked.
    fn hooks_answered(&mut self, answers: HookAnswers<'_>) -> bool {
        let Some(round) = self.round() else { return false };
        match RoundProgress::after(round, answers) {
            RoundProgress::Refused => return false,
            RoundProgress::Waiting => {}
            RoundProgress::AskNext => self.ask_open_hooks(),
            RoundProgress::Finished { abort } => {
                if abort {
                    self.abort_round();
                }
                let Some(round) = self.take_round() else { return true };
                if self.apply_round(&round)
                    && let Some(next) = self.finish_point(round.point, Some(&round))
                {
                    self.proceed(next);
                }
            }
        }
        true
    }
}

/// Records what guardrails decided. Returns the reason if they blocked.
pub(super) fn guard_verdict(
    recorder: &mut StepRecorder,
    call: Option<CallId>,
    round: &HookRound,
) -> Option<String> {
    let rules = round.point.rules();
    if rules.on_fault != OnFault::Close || round.point == HookPoint::ToolGate {
        return None;
    }
    if rules.order == Order::Together || round.closed.is_some() {
        recorder.record(GuardVerdict {
            point: round.point,
            call,
            blocked: round.closed.is_some(),
            reasons: round.closed.clone().into_iter().chain(round.remarks()).collect(),
        });
    }
    round.closed.as_ref().map(|closed| closed.reason.clone())
}
