//! The pipeline of a call: the hook points before and after a tool runs. The same as that of a turn (`pipeline.rs`), for one call.

use std::mem::take;

use holdfast_contract::content::Content;
use holdfast_contract::effect::Act;
use holdfast_contract::hook::HookPoint;
use holdfast_contract::problem::Code;

use super::call::{Call, CallStage, CallStep};
use super::hooks::{HookPipeline, ask_hooks, guard_verdict, open_round};
use crate::hook_round::HookRound;

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

impl HookPipeline for CallStep<'_> {
    fn round(&mut self) -> Option<&mut HookRound> {
        match &mut self.call.stage {
            CallStage::AskingHooks(round) => Some(round),
            _ => None,
        }
    }

    fn take_round(&mut self) -> Option<HookRound> {
        match take(&mut self.call.stage) {
            CallStage::AskingHooks(round) => Some(round),
            _ => None,
        }
    }

    fn abort_round(&mut self) {
        self.recorder.act(Act::Abort { begun_by: self.call.begun });
    }

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

    /// The policy is evaluated first.
    fn ask_open_hooks(&mut self) {
        let CallStage::AskingHooks(round) = &self.call.stage else { return };
        let Some(registry) = &self.session.registry.view else { return };
        if round.open().next().is_some_and(|(_, hook)| hook.is_policy()) {
            self.recorder.act(self.call_act().map(Act::EvaluatePolicy));
        }
        let view = Some(&self.call.view);
        ask_hooks(self.recorder, registry, self.call.begun, round, view, &self.turn.context);
    }

    fn apply_round(&mut self, round: &HookRound) -> bool {
        let judged = self.call.hook_subject(round.point).zip(round.subject.as_ref());
        if let Some((judged, subject)) = judged.filter(|(judged, subject)| *judged != *subject) {
            *judged = subject.clone();
        }
        let Some(reason) = guard_verdict(self.recorder, Some(self.call.view.id), round) else { return true };
        self.fail(Code::GuardBlocked, reason);
        false
    }

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
