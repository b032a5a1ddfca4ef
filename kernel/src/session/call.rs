//! The phases of a tool call: modifiers → schema → policy and gates on the final arguments → approval → dispatch → result.
//!
//! Several calls go through at once, each at its own pace; when the last is settled the model hears of all of them.

use std::sync::Arc;

use holdfast_contract::body::Body;
use holdfast_contract::content::{Content, DigestOf};
use holdfast_contract::effect::{Act, ApprovalAct, ChildAct};
use holdfast_contract::hook::{Artifact, Decision, HookPoint};
use holdfast_contract::ids::{AgentId, CallId, HookId, Millis, Seq, StreamId, ToolName};
use holdfast_contract::message::{AskedCall, CallView};
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::registry::Implementation;
use holdfast_contract::serde::{Deserialize, Serialize};
use holdfast_contract::session_frames::{
    Answer, ApprovalRequested, ApprovalScope, CheckOutcome, ChildEnded, ChildOpened, GateReason, ToolCalled,
    ToolDecided, ToolDispatched, ToolSettled, ToolVerdict,
};
use holdfast_contract::tool::{CallStatus, ToolOutcome};

use super::Way;
use super::round::{Round, call_act};
use super::turn::Turn;

/// A tool call under way.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(crate = "holdfast_contract::serde")]
pub(super) struct Call {
    pub id: CallId,
    pub model_id: Arc<str>,
    pub tool: ToolName,
    pub arguments: Content,
    pub implementation: Option<Implementation>,
    pub stage: CallStage,
    /// Who asked for approval before the approver edited the arguments: the edit has answered them.
    answered: Vec<HookId>,
    result: Option<Content>,
    fault: Option<Fault>,
    artifacts: Vec<Artifact>,
    render: Option<Content>,
}

/// What a call waits for.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(crate = "holdfast_contract::serde")]
pub(super) enum CallStage {
    New,
    Asking(Round),
    Checking { called: Seq },
    Approving { asked: Seq, since: Millis, reasons: Vec<GateReason> },
    Running { begun: Seq, attempt: u32 },
    Child { opened: Seq, child: StreamId },
    Settled { content: Content, failed: bool },
}

impl Call {
    pub fn new(id: CallId, asked: AskedCall) -> Self {
        let AskedCall { model_id, tool, arguments } = asked;
        Self {
            id,
            model_id,
            tool,
            arguments,
            implementation: None,
            stage: CallStage::New,
            answered: Vec::new(),
            result: None,
            fault: None,
            artifacts: Vec::new(),
            render: None,
        }
    }

    pub fn view(&self) -> CallView {
        CallView { id: self.id, tool: self.tool.clone(), arguments: self.arguments.clone() }
    }

    /// Whether this fact is the answer that the call waits for.
    pub fn waits_for(&self, body: &Body, cause: Option<Seq>) -> bool {
        match (body, &self.stage) {
            (Body::ToolChecked(fact), CallStage::Checking { called }) => {
                fact.call == self.id && cause == Some(*called)
            }
            (Body::ToolReturned(fact), CallStage::Running { begun, .. }) => {
                fact.call == self.id && cause == Some(*begun)
            }
            (Body::ChildEnded(fact), CallStage::Child { opened, child }) => {
                fact.child == *child && cause == Some(*opened)
            }
            (Body::ApprovalAnswered(fact), CallStage::Approving { asked, .. }) => fact.approval == *asked,
            _ => false,
        }
    }

    /// The frame that began what the call waits for.
    pub fn begun_by(&self) -> Option<Seq> {
        match &self.stage {
            CallStage::New | CallStage::Settled { .. } => None,
            CallStage::Asking(round) => Some(round.asked),
            CallStage::Checking { called: seq }
            | CallStage::Approving { asked: seq, .. }
            | CallStage::Running { begun: seq, .. }
            | CallStage::Child { opened: seq, .. } => Some(*seq),
        }
    }
}

impl Way<'_> {
    /// Takes up a call as the model asked for it.
    pub(super) fn take_up(&mut self, turn: &mut Turn, index: usize) {
        let call = &mut turn.calls[index];
        let arguments = DigestOf::from(&call.arguments);
        self.desk.record(ToolCalled { call: call.id, tool: call.tool.clone(), arguments });
        let entry = turn.registry.view.as_ref().and_then(|registry| registry.tool(&call.tool));
        call.implementation = entry.and_then(|entry| entry.stack.first().cloned());
        if call.implementation.is_none() {
            let message = format!("there is no tool `{}`", call.tool);
            return self.fail(turn, index, CallStatus::Failed, Fault::new(Code::ToolUnknown, message));
        }
        self.ask_about(turn, index, HookPoint::ToolModify);
    }

    /// Asks the hooks of a tool point, or goes on where there are none.
    fn ask_about(&mut self, turn: &mut Turn, index: usize, point: HookPoint) {
        let mut point = Some(point);
        while let Some(here) = point {
            let call = &turn.calls[index];
            let judged = match here {
                HookPoint::ToolModify | HookPoint::ToolGate => &call.arguments,
                _ => call.result.as_ref().unwrap_or(&call.arguments),
            };
            let subject = Some(judged.clone());
            if let Some(round) = self.ask(turn, here, Some(call), subject) {
                turn.calls[index].stage = CallStage::Asking(round);
                return;
            }
            point = self.leave_call_point(turn, index, here);
        }
    }

    fn leave_call_point(&mut self, turn: &mut Turn, index: usize, point: HookPoint) -> Option<HookPoint> {
        match point {
            HookPoint::ToolModify => self.check(turn, index),
            HookPoint::ToolAfter => return Some(HookPoint::SanitizeResult),
            HookPoint::SanitizeResult => return Some(HookPoint::GuardResult),
            _ => self.conclude(turn, index),
        }
        None
    }

    pub(super) fn call_round_over(&mut self, turn: &mut Turn, index: usize, round: Round) {
        let call = &mut turn.calls[index];
        match round.point {
            HookPoint::ToolGate => return self.decide(turn, index, &round),
            HookPoint::ToolModify => {
                if let Some(arguments) = &round.subject {
                    call.arguments = arguments.clone();
                }
                let chosen = round.answers().filter_map(|(_, answer)| match answer {
                    Decision::Modify { implementation, .. } => implementation.as_ref(),
                    _ => None,
                });
                if let Some(id) = chosen.last() {
                    let entry = turn.registry.view.as_ref().and_then(|registry| registry.tool(&call.tool));
                    let mut stack = entry.into_iter().flat_map(|entry| &entry.stack);
                    match stack.find(|implementation| implementation.extension.id == *id) {
                        Some(implementation) => call.implementation = Some(implementation.clone()),
                        None => {
                            let message = format!("`{id}` has no implementation of `{}`", call.tool);
                            let fault = Fault::new(Code::ToolUnknown, message);
                            return self.fail(turn, index, CallStatus::Failed, fault);
                        }
                    }
                }
            }
            HookPoint::ToolAfter => {
                for (_, answer) in round.answers() {
                    if let Decision::Enrich { artifacts, render, .. } = answer {
                        call.artifacts.extend(artifacts.iter().cloned());
                        call.render = render.clone().or(call.render.take());
                    }
                }
                call.result = round.subject.clone();
            }
            HookPoint::SanitizeResult => call.result = round.subject.clone(),
            _ => {}
        }
        let id = call.id;
        if let Some(reason) = self.guard_verdict(&round, Some(id)) {
            return self.fail(turn, index, CallStatus::Failed, Fault::new(Code::GuardBlocked, reason));
        }
        if let Some(next) = self.leave_call_point(turn, index, round.point) {
            self.ask_about(turn, index, next);
        }
    }

    fn check(&mut self, turn: &mut Turn, index: usize) {
        let called = self.desk.cause();
        if let Some(act) = call_act(turn, &turn.calls[index], called) {
            turn.calls[index].stage = CallStage::Checking { called };
            self.desk.act(Act::CheckArguments(act));
        }
    }

    pub(super) fn checked(&mut self, turn: &mut Turn, index: usize, outcome: CheckOutcome) {
        match outcome {
            CheckOutcome::Invalid { errors } => {
                let fault = Fault::new(Code::ToolArguments, errors.join("; "));
                return self.fail(turn, index, CallStatus::Failed, fault);
            }
            CheckOutcome::Coerced { arguments } => turn.calls[index].arguments = arguments,
            CheckOutcome::Valid => {}
        }
        self.ask_about(turn, index, HookPoint::ToolGate);
    }

    /// All gates have spoken on the final arguments: deny wins, then ask, then allow.
    fn decide(&mut self, turn: &mut Turn, index: usize, round: &Round) {
        let call = &turn.calls[index];
        let (id, arguments) = (call.id, DigestOf::from(&call.arguments));
        if let Some(GateReason { hook, reason }) = round.closed.clone() {
            let fault = Fault::new(Code::ToolDenied, format!("denied by {hook}: {reason}"));
            let verdict = ToolVerdict::Denied { by: hook, reason };
            self.desk.record(ToolDecided { call: id, arguments, verdict });
            return self.fail(turn, index, CallStatus::Denied, fault);
        }
        let remembered = self.base.approved.contains(&call.tool);
        let reasons: Vec<GateReason> = round
            .answers()
            .filter_map(|(hook, answer)| match answer {
                Decision::Ask { reason } => Some(GateReason { hook: hook.clone(), reason: reason.clone() }),
                _ => None,
            })
            .filter(|asked| !(remembered && asked.hook.is_policy()) && !call.answered.contains(&asked.hook))
            .collect();
        if reasons.is_empty() {
            self.desk.record(ToolDecided { call: id, arguments, verdict: ToolVerdict::Allowed });
            return self.dispatch(turn, index, 1);
        }
        self.desk.record(ToolDecided { call: id, arguments: arguments.clone(), verdict: ToolVerdict::Asked });
        let asked = self.desk.record(ApprovalRequested { call: id, arguments, reasons: reasons.clone() });
        let since = self.desk.now();
        let call = &mut turn.calls[index];
        call.stage = CallStage::Approving { asked, since, reasons: reasons.clone() };
        let act = ApprovalAct { decided_by: asked, call: call.view(), reasons };
        self.desk.act(Act::AskApproval(Box::new(act)));
    }

    pub(super) fn answered(&mut self, turn: &mut Turn, index: usize, answer: Answer) {
        let call = &mut turn.calls[index];
        let CallStage::Approving { since, reasons, .. } = std::mem::replace(&mut call.stage, CallStage::New)
        else {
            return;
        };
        match answer {
            Answer::Approve { scope } => {
                if scope == ApprovalScope::Session {
                    self.base.approved.insert(call.tool.clone());
                }
                self.extend_deadline(turn, since);
                self.dispatch(turn, index, 1);
            }
            Answer::Edit { arguments } => {
                call.arguments = arguments;
                call.answered.extend(reasons.into_iter().map(|asked| asked.hook));
                self.extend_deadline(turn, since);
                self.check(turn, index);
            }
            Answer::Deny { reason } => {
                self.extend_deadline(turn, since);
                let fault = Fault::new(Code::ToolDenied, format!("denied by a person: {reason}"));
                self.fail(turn, index, CallStatus::Denied, fault);
            }
        }
    }

    /// Hands the call to its implementation. The frame is durable before an effect that leaves the machine begins.
    pub(super) fn dispatch(&mut self, turn: &mut Turn, index: usize, attempt: u32) {
        let call = &turn.calls[index];
        let Some(Implementation { extension, spec, agent }) = call.implementation.clone() else { return };
        if let Some(agent) = agent {
            return self.open_child(turn, index, agent);
        }
        let begun = self.desk.record(ToolDispatched {
            call: call.id,
            tool: call.tool.clone(),
            implementation: extension,
            arguments: (&call.arguments).into(),
            effects: spec.effects,
            attempt,
        });
        let act = call_act(turn, call, begun);
        turn.calls[index].stage = CallStage::Running { begun, attempt };
        if let Some(act) = act {
            self.desk.act(Act::Dispatch(act));
        }
    }

    fn open_child(&mut self, turn: &mut Turn, index: usize, agent: AgentId) {
        let call = &turn.calls[index];
        if self.base.depth >= self.base.settings.depth_cap {
            let message = format!("`{agent}` would be agent {} deep", u32::from(self.base.depth) + 1);
            return self.fail(turn, index, CallStatus::Failed, Fault::new(Code::ChildDepth, message));
        }
        let own =
            turn.registry.view.as_ref().and_then(|registry| registry.agent(&agent)).map(|agent| agent.limits);
        let limits = self.remaining(turn, own.unwrap_or_default());
        let child: StreamId = format!("{}.{}", self.base.id, call.id).into();
        let frame = ChildOpened { call: call.id, child: child.clone(), agent, limits };
        let opened = self.desk.record(frame);
        turn.calls[index].stage = CallStage::Child { opened, child };
        self.open_child_again(turn, index);
    }

    /// Asks the outside to open, or to take up again, the child that a call waits for.
    pub(super) fn open_child_again(&mut self, turn: &Turn, index: usize) {
        let call = &turn.calls[index];
        let CallStage::Child { opened, child } = &call.stage else { return };
        let Some(agent) =
            call.implementation.as_ref().and_then(|implementation| implementation.agent.clone())
        else {
            return;
        };
        let own =
            turn.registry.view.as_ref().and_then(|registry| registry.agent(&agent)).map(|agent| agent.limits);
        self.desk.act(Act::OpenChild(Box::new(ChildAct {
            decided_by: *opened,
            call: call.id,
            child: child.clone(),
            limits: self.remaining(turn, own.unwrap_or_default()),
            agent,
            arguments: call.arguments.clone(),
            depth: self.base.depth + 1,
            registry: turn.registry.clone(),
            turn: turn.context.clone(),
        })));
    }

    pub(super) fn child_ended(&mut self, turn: &mut Turn, index: usize, fact: ChildEnded) {
        for spent in [&mut turn.spent, &mut self.base.spent] {
            spent.tokens = spent.tokens.saturating_add(fact.spent.tokens);
            spent.cost_micros = spent.cost_micros.saturating_add(fact.spent.cost_micros);
        }
        self.returned(turn, index, fact.outcome);
    }

    pub(super) fn returned(&mut self, turn: &mut Turn, index: usize, outcome: ToolOutcome) {
        let call = &mut turn.calls[index];
        match outcome {
            ToolOutcome::Result(result) => call.result = Some(result),
            ToolOutcome::Failure(fault) => {
                call.result = Some(fault_content(&fault));
                call.fault = Some(fault);
            }
        }
        self.ask_about(turn, index, HookPoint::ToolAfter);
    }

    /// The result has passed every hook.
    fn conclude(&mut self, turn: &mut Turn, index: usize) {
        let call = &mut turn.calls[index];
        let fault = call.fault.take();
        let content = call.result.take().unwrap_or_else(|| Content::text(""));
        let status = if fault.is_some() { CallStatus::Failed } else { CallStatus::Done };
        self.settle(turn, index, status, content, fault);
    }

    /// The call does not come to a result.
    pub(super) fn fail(&mut self, turn: &mut Turn, index: usize, status: CallStatus, fault: Fault) {
        self.settle(turn, index, status, fault_content(&fault), Some(fault));
    }

    fn settle(
        &mut self,
        turn: &mut Turn,
        index: usize,
        status: CallStatus,
        content: Content,
        fault: Option<Fault>,
    ) {
        self.close_call(turn, index, status, content, fault);
        if turn.calls.iter().all(|call| matches!(call.stage, CallStage::Settled { .. })) {
            self.report_calls(turn);
            self.request_model(turn);
        }
    }

    fn close_call(
        &mut self,
        turn: &mut Turn,
        index: usize,
        status: CallStatus,
        content: Content,
        fault: Option<Fault>,
    ) {
        let call = &mut turn.calls[index];
        let settled = ToolSettled {
            call: call.id,
            status,
            content: (&content).into(),
            fault,
            artifacts: std::mem::take(&mut call.artifacts),
            render: call.render.take(),
        };
        call.stage = CallStage::Settled { content, failed: status != CallStatus::Done };
        self.desk.record(settled);
    }

    /// Settles a call whose turn ends. One that was running may have had its effect.
    pub(super) fn cancel_call(&mut self, turn: &mut Turn, index: usize) {
        let call = &turn.calls[index];
        if matches!(call.stage, CallStage::Settled { .. }) {
            return;
        }
        if let Some(begun_by) = call.begun_by() {
            self.desk.act(Act::Abort { begun_by });
        }
        let ran = matches!(call.stage, CallStage::Running { .. } | CallStage::Child { .. });
        let harmless = call.implementation.as_ref().is_some_and(|it| it.spec.effects.may_run_again());
        let message = match ran && !harmless {
            true => "cancelled while it ran; its outcome is unknown",
            false => "cancelled",
        };
        let fault = Fault::new(Code::ToolCancelled, message);
        self.close_call(turn, index, CallStatus::Cancelled, fault_content(&fault), Some(fault));
    }
}

/// A failure as the model is told of it.
fn fault_content(fault: &Fault) -> Content {
    Content::text(format!("error {fault}"))
}
