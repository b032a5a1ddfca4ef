//! The pipeline of a call: the hook points before and after a tool runs. The same as that of a turn (`pipeline.rs`), for one call.

use std::mem::take;

use holdfast_contract::content::Content;
use holdfast_contract::effect::Act;
use holdfast_contract::hook::HookPoint;
use holdfast_contract::problem::Code;

use super::call::{Call, CallStage, CallStep};
use super::hooks::{RoundProgress, ask_hooks, guard_verdict, open_round};
use crate::hook_round::{HookAnswers, HookRound};

impl Call {
    /// What hooks of a point are asked about.
    fn hook_subject(&mut self, point: HookPoint) -> Option<&mut Content> {
        match point {
            HookPoint::ToolModify | HookPoint::ToolGate => Some(&mut self.view.arguments),
            HookPoint::ToolAfter | HookPoint::SanitizeResult | HookPoint::GuardResult => self.result.as_mut(),
            _ => None,
        }
    }
}

impl CallStep<'_> {
    /// Passes points from this one on, up to the next thing that has to be waited for.
    pub fn proceed(&mut self, from: HookPoint) {
        let mut next = Some(from);
        while let Some(point) = next {
            if self.ask(point) {
                return;
            }
            next = self.finish_point(point, None);
        }
    }

    /// Asks the hooks of a point whose matchers apply; false if there are none. A gate always has the policy.
    fn ask(&mut self, point: HookPoint) -> bool {
        let Some(registry) = &self.session.registry.view else { return false };
        let subject = self.call.hook_subject(point).cloned();
        let channel = &self.turn.context.origin.channel;
        let view = Some(&self.call.view);
        let Some(opened) = open_round(self.recorder, registry, point, view, channel, subject) else {
            return false;
        };
        self.call.wait(opened.begun, CallStage::AskingHooks(opened.round));
        self.ask_open_hooks();
        true
    }

    /// Asks the hooks of the current round that have not answered: all of them, or the next one. The policy is evaluated first.
    pub fn ask_open_hooks(&mut self) {
        let CallStage::AskingHooks(round) = &self.call.stage else { return };
        let Some(registry) = &self.session.registry.view else { return };
        if round.open().next().is_some_and(|(_, hook)| hook.is_policy()) {
            self.recorder.act(self.call_act().map(Act::EvaluatePolicy));
        }
        let view = Some(&self.call.view);
        ask_hooks(self.recorder, registry, self.call.begun, round, view, &self.turn.context);
    }

    /// Applies answers to the current round; false if one of the hooks is not being asked.
    pub fn hooks_answered(&mut self, answers: HookAnswers<'_>) -> bool {
        let CallStage::AskingHooks(round) = &mut self.call.stage else { return false };
        match RoundProgress::after(round, answers) {
            RoundProgress::Refused => return false,
            RoundProgress::Waiting => {}
            RoundProgress::AskNext => self.ask_open_hooks(),
            RoundProgress::Finished { abort } => {
                if abort {
                    self.recorder.act(Act::Abort { begun_by: self.call.begun });
                }
                if let CallStage::AskingHooks(round) = take(&mut self.call.stage) {
                    self.round_finished(&round);
                }
            }
        }
        true
    }

    /// A round is over: its subject is now as the hooks have left it, and the pipeline continues unless it was blocked.
    fn round_finished(&mut self, round: &HookRound) {
        let judged = self.call.hook_subject(round.point).zip(round.subject.as_ref());
        if let Some((judged, subject)) = judged.filter(|(judged, subject)| *judged != *subject) {
            *judged = subject.clone();
        }
        if let Some(reason) = guard_verdict(self.recorder, Some(self.call.view.id), round) {
            return self.fail(Code::GuardBlocked, reason);
        }
        if let Some(next) = self.finish_point(round.point, Some(round)) {
            self.proceed(next);
        }
    }

    /// Does what follows when all hooks of a point have answered, if it has any. Returns the next point, if one follows at once.
    fn finish_point(&mut self, point: HookPoint, round: Option<&HookRound>) -> Option<HookPoint> {
        match point {
            HookPoint::ToolModify => self.modified(round),
            HookPoint::ToolGate => self.decide(round),
            HookPoint::ToolAfter => self.call.enrich(round),
            HookPoint::GuardResult => self.conclude(),
            _ => {}
        }
        point.rules().next
    }
}
