//! How hooks are asked: one round per point and subject, in sequence or together, each hook answering exactly once.

use std::sync::Arc;

use holdfast_contract::content::{Content, DigestOf};
use holdfast_contract::effect::{Act, CallAct, HookAct};
use holdfast_contract::hook::{Decision, HookInput, HookPoint, OnFault, Order};
use holdfast_contract::ids::{HookId, Seq};
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::registry::HookEntry;
use holdfast_contract::serde::{Deserialize, Serialize};
use holdfast_contract::session_frames::{GateReason, HookCalled};

use super::call::{Call, CallStage};
use super::turn::{Stage, Turn};
use super::{Place, Way};

/// Hooks of one point that were asked about one subject.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(crate = "holdfast_contract::serde")]
pub(super) struct Round {
    pub asked: Seq,
    pub point: HookPoint,
    /// What is judged; in a sequence, as the hooks so far have left it.
    pub subject: Option<Content>,
    hooks: Arc<[HookId]>,
    answers: Vec<Option<Decision>>,
    heard: usize,
    /// Who closed the gate.
    pub closed: Option<GateReason>,
}

/// What a round does after an answer.
pub(super) enum Progress {
    Waiting,
    Next(HookId),
    Over,
}

impl Round {
    fn waits_for(&self, hook: &HookId) -> Option<usize> {
        let count = self.hooks.len();
        let mut places = (self.heard..count).chain(0..self.heard.min(count));
        let place = places.find(|place| self.hooks[*place] == *hook && self.answers[*place].is_none())?;
        let in_turn = self.point.rules().order == Order::Together || place == self.heard;
        in_turn.then_some(place)
    }

    /// Whether somebody has still to answer.
    pub fn is_waiting(&self) -> bool {
        self.heard < self.hooks.len()
    }

    /// The hooks that have not answered and are being asked.
    pub fn being_asked(&self) -> Vec<HookId> {
        let open = self.hooks.iter().zip(&self.answers).filter(|(_, answer)| answer.is_none());
        let at_once = if self.point.rules().order == Order::Sequence { 1 } else { usize::MAX };
        open.map(|(hook, _)| hook.clone()).take(at_once).collect()
    }

    /// The answers in hook order.
    pub fn answers(&self) -> impl Iterator<Item = (&HookId, &Decision)> {
        self.hooks.iter().zip(&self.answers).filter_map(|(hook, answer)| Some((hook, answer.as_ref()?)))
    }

    fn hear(&mut self, hook: &HookId, heard: Result<Decision, Fault>) -> Progress {
        let Some(place) = self.waits_for(hook) else { return Progress::Waiting };
        let rules = self.point.rules();
        let heard = heard.and_then(|decision| match self.point.accepts(&decision) {
            true => Ok(decision),
            false => Err(Fault::new(Code::HookNonsense, "the answer does not fit the point")),
        });
        let closing = match &heard {
            Ok(Decision::Deny { reason } | Decision::Block { reason }) => Some(reason.clone()),
            Err(fault) if rules.on_fault == OnFault::Close => Some(fault.to_string()),
            _ => None,
        };
        let decision = heard.unwrap_or(Decision::Continue);
        if let Some(content) = replacement(&decision) {
            self.subject = Some(content);
        }
        self.answers[place] = Some(decision);
        self.heard += 1;
        if let Some(reason) = closing {
            self.closed = Some(GateReason { hook: hook.clone(), reason });
            return Progress::Over;
        }
        match (self.is_waiting(), rules.order) {
            (false, _) => Progress::Over,
            (true, Order::Sequence) => Progress::Next(self.hooks[self.heard].clone()),
            (true, Order::Together) => Progress::Waiting,
        }
    }
}

/// What a decision puts in the subject's place.
fn replacement(decision: &Decision) -> Option<Content> {
    match decision {
        Decision::Replace { content } => Some(content.clone()),
        Decision::Modify { arguments, .. } => arguments.clone(),
        Decision::Enrich { result, .. } => result.clone(),
        _ => None,
    }
}

impl Turn {
    /// Which round waits for this hook's answer.
    pub(super) fn round_place(&self, asked: Seq, hook: &HookId) -> Option<Place> {
        let waits = |round: &Round| round.asked == asked && round.waits_for(hook).is_some();
        match &self.stage {
            Stage::Asking(round) => waits(round).then_some(Place::Turn),
            Stage::Tools => {
                let waiting = |call: &Call| matches!(&call.stage, CallStage::Asking(round) if waits(round));
                self.calls.iter().position(waiting).map(Place::Call)
            }
            Stage::Model { .. } | Stage::Summarising { .. } => None,
        }
    }
}

impl Way<'_> {
    /// Asks the hooks of a point whose matchers apply; nothing if there are none. A gate round always has the policy.
    pub(super) fn ask(
        &mut self,
        turn: &Turn,
        point: HookPoint,
        call: Option<&Call>,
        subject: Option<Content>,
    ) -> Option<Round> {
        let registry = turn.registry.view.as_ref()?;
        let about = call.map(|call| (call.tool.as_str(), call.arguments.value()));
        let applies = |hook: &&HookEntry| hook.spec.matcher.applies(about, &turn.context.origin.channel);
        let entries: Vec<&HookEntry> = registry.hooks_at(point).iter().filter(applies).collect();
        let policy = (point == HookPoint::ToolGate).then(|| HookId::from(HookId::POLICY));
        if entries.is_empty() && policy.is_none() {
            return None;
        }
        let hooks: Arc<[HookId]> =
            policy.iter().cloned().chain(entries.iter().map(|hook| hook.id.clone())).collect();
        let asked = self.desk.record(HookCalled {
            point,
            call: call.map(|call| call.id),
            subject: subject.as_ref().map(DigestOf::from),
            hooks: hooks.clone(),
        });
        let answers = vec![None; hooks.len()];
        let round = Round { asked, point, subject, hooks, answers, heard: 0, closed: None };
        if policy.is_some() {
            self.ask_policy(turn, call, asked);
        }
        let at_once = if point.rules().order == Order::Sequence { 1 } else { usize::MAX };
        for entry in entries.into_iter().take(at_once) {
            self.desk.act(hook_act(turn, call, &round, entry));
        }
        Some(round)
    }

    fn ask_policy(&mut self, turn: &Turn, call: Option<&Call>, asked: Seq) {
        if let Some(act) = call.and_then(|call| call_act(turn, call, asked)) {
            self.desk.act(Act::EvaluatePolicy(act));
        }
    }

    /// Asks one hook of a round that is under way.
    pub(super) fn ask_one(&mut self, turn: &Turn, call: Option<&Call>, round: &Round, hook: &HookId) {
        if hook.is_policy() {
            return self.ask_policy(turn, call, round.asked);
        }
        let entry = turn.registry.view.as_ref().and_then(|registry| registry.hook(hook));
        if let Some(entry) = entry {
            self.desk.act(hook_act(turn, call, round, entry));
        }
    }

    pub(super) fn heard_turn(&mut self, turn: &mut Turn, hook: &HookId, heard: Result<Decision, Fault>) {
        let Stage::Asking(round) = &mut turn.stage else { return };
        match round.hear(hook, heard) {
            Progress::Waiting => {}
            Progress::Next(next) => {
                let round = round.clone();
                self.ask_one(turn, None, &round, &next);
            }
            Progress::Over => {
                if let Stage::Asking(round) = std::mem::replace(&mut turn.stage, Stage::Tools) {
                    self.dismiss(&round);
                    self.turn_round_over(turn, round);
                }
            }
        }
    }

    pub(super) fn heard_call(
        &mut self,
        turn: &mut Turn,
        index: usize,
        hook: &HookId,
        heard: Result<Decision, Fault>,
    ) {
        let CallStage::Asking(round) = &mut turn.calls[index].stage else { return };
        match round.hear(hook, heard) {
            Progress::Waiting => {}
            Progress::Next(next) => {
                let round = round.clone();
                self.ask_one(turn, Some(&turn.calls[index]), &round, &next);
            }
            Progress::Over => {
                if let CallStage::Asking(round) =
                    std::mem::replace(&mut turn.calls[index].stage, CallStage::New)
                {
                    self.dismiss(&round);
                    self.call_round_over(turn, index, round);
                }
            }
        }
    }

    /// Tells the hooks of a closed round that their answer is no longer wanted.
    fn dismiss(&mut self, round: &Round) {
        if round.is_waiting() && round.point.rules().order == Order::Together {
            self.desk.act(Act::Abort { begun_by: round.asked });
        }
    }
}

fn hook_act(turn: &Turn, call: Option<&Call>, round: &Round, entry: &HookEntry) -> Act {
    Act::CallHook(Box::new(HookAct {
        decided_by: round.asked,
        extension: entry.extension.clone(),
        timeout: entry.spec.timeout,
        input: HookInput {
            hook: entry.id.clone(),
            point: round.point,
            call: call.map(Call::view),
            subject: round.subject.clone(),
            turn: turn.context.clone(),
        },
    }))
}

/// What the outside needs to check, judge or run a call.
pub(super) fn call_act(turn: &Turn, call: &Call, decided_by: Seq) -> Option<Box<CallAct>> {
    let implementation = call.implementation.as_ref()?;
    Some(Box::new(CallAct {
        decided_by,
        call: call.id,
        spec: implementation.spec.clone(),
        arguments: call.arguments.clone(),
        extension: implementation.extension.clone(),
        turn: turn.context.clone(),
        registry: turn.registry.view.clone()?,
    }))
}
