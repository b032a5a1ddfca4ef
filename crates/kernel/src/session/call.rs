//! The phases of a tool call: modifiers → schema → policy and gates on the final arguments → approval → dispatch → result.
//!
//! Several calls run at once, each at its own pace.

use std::sync::Arc;

use holdfast_contract::agents::AgentUse;
use holdfast_contract::body::Body;
use holdfast_contract::content::{Content, DigestOf};
use holdfast_contract::effect::{Act, ApprovalAct, CallAct};
use holdfast_contract::hook::{Artifact, HookPoint};
use holdfast_contract::ids::{CallId, HookId, Seq, StreamId};
use holdfast_contract::message::{AskedCall, CallView, Limits};
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::registry::Implementation;
use holdfast_contract::serde::{Deserialize, Serialize};
use holdfast_contract::session_frames::{
    Answer, ApprovalRequested, ApprovalScope, CheckOutcome, GateReason, ToolCalled, ToolDecided,
    ToolDispatched, ToolSettled, ToolVerdict,
};
use holdfast_contract::tool::{CallStatus, ToolOutcome};

use super::SessionState;
use super::hooks::HookPipeline;
use super::turn::Turn;
use crate::hook_round::{HookAnswers, HookRound};
use crate::step_recorder::StepRecorder;

/// A tool call in progress.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(crate = "holdfast_contract::serde")]
pub(super) struct Call {
    pub view: CallView,
    pub model_id: Arc<str>,
    pub stage: CallStage,
    /// The frame that the stage waits for an answer to.
    pub begun: Seq,
    pub implementation: Option<Implementation>,
    /// Whether it is expected to open a child session and has not.
    pub awaits_child: bool,
    /// The hooks that asked for approval before the approver edited the arguments: the edit has answered them.
    answered: Vec<HookId>,
    /// Whether a person changed the arguments, of which the model is told.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub edited: bool,
    pub result: Option<Content>,
    fault: Option<Fault>,
    pub artifacts: Vec<Artifact>,
    render: Option<Content>,
}

/// What a call waits for.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(crate = "holdfast_contract::serde")]
pub(super) enum CallStage {
    /// It has not started, or is between two stages of one step.
    #[default]
    Queued,
    AskingHooks(HookRound),
    CheckingArguments,
    AwaitingApproval(Vec<GateReason>),
    Running {
        attempt: u32,
    },
    RunningChild {
        stream: StreamId,
        limits: Limits,
    },
    Finished {
        content: Content,
        status: CallStatus,
    },
}

impl Call {
    pub fn new(id: CallId, asked: &AskedCall) -> Self {
        Self {
            view: CallView { id, tool: asked.tool.clone(), arguments: asked.arguments.clone() },
            model_id: asked.model_id.clone(),
            ..Self::default()
        }
    }

    /// Whether a person is asked about it.
    pub fn asks_person(&self) -> bool {
        matches!(self.stage, CallStage::AwaitingApproval(_))
    }

    pub fn is_finished(&self) -> bool {
        matches!(self.stage, CallStage::Finished { .. })
    }

    /// Whether it may run again when its outcome is unknown.
    pub fn may_run_again(&self) -> bool {
        self.implementation.as_ref().is_some_and(|it| it.spec.effects.may_run_again())
    }

    /// Waits for the answer to this frame.
    pub fn wait(&mut self, begun: Seq, stage: CallStage) {
        self.begun = begun;
        self.stage = stage;
    }

    /// Takes what hooks attach to the result.
    pub fn enrich(&mut self, round: Option<&HookRound>) {
        (self.artifacts, self.render) = round.map(HookRound::enrichment).unwrap_or_default();
    }
}

/// One step of a call: where it is recorded, and what it may change.
pub(super) struct CallStep<'a> {
    pub recorder: &'a mut StepRecorder,
    pub session: &'a mut SessionState,
    pub turn: &'a mut Turn,
    pub call: &'a mut Call,
}

impl CallStep<'_> {
    /// Applies the answer that the call waits for; false if this fact is not that.
    pub fn apply_answer(&mut self, body: &Body, cause: Option<Seq>) -> bool {
        let answers = if let Body::ApprovalAnswered(fact) = body { Some(fact.approval) } else { cause };
        if answers != Some(self.call.begun) {
            return false;
        }
        match (&self.call.stage, body) {
            (CallStage::AskingHooks(_), body) => {
                return HookAnswers::of(body).is_some_and(|answers| self.hooks_answered(answers));
            }
            (CallStage::CheckingArguments, Body::ToolChecked(fact)) => self.arguments_checked(&fact.outcome),
            (CallStage::AwaitingApproval(reasons), Body::ApprovalAnswered(fact)) => {
                let hooks = reasons.iter().map(|asked| asked.hook.clone()).collect();
                self.approval_answered(hooks, &fact.answer);
            }
            (CallStage::Running { .. }, Body::ToolReturned(fact)) => self.returned(&fact.outcome),
            (CallStage::RunningChild { stream, .. }, Body::ChildEnded(fact)) if fact.child == *stream => {
                self.child_ended(fact);
            }
            _ => return false,
        }
        true
    }

    /// Starts a call as the model asked for it.
    pub fn start(&mut self) {
        self.announce();
        let tool = &self.call.view.tool;
        self.call.implementation = self.session.implementations(tool).first().cloned();
        if self.call.implementation.is_none() {
            let message = format!("there is no tool `{tool}`");
            return self.fail(Code::ToolUnknown, message);
        }
        self.proceed(HookPoint::ToolModify);
    }

    fn announce(&mut self) {
        let CallView { id, tool, arguments } = &self.call.view;
        self.recorder.record(ToolCalled { call: *id, tool: tool.clone(), arguments: arguments.into() });
    }

    /// The modifiers have answered: the last one that names an implementation chooses it.
    pub fn modified(&mut self, round: Option<&HookRound>) {
        if let Some(id) = round.and_then(HookRound::implementation) {
            let tool = &self.call.view.tool;
            let found = self.session.implementations(tool).iter().find(|it| it.extension.id == *id);
            self.call.implementation = found.cloned();
            if self.call.implementation.is_none() {
                let message = format!("`{id}` has no implementation of `{tool}`");
                return self.fail(Code::ToolUnknown, message);
            }
        }
        self.check_arguments();
    }

    pub fn check_arguments(&mut self) {
        self.call.wait(self.recorder.cause, CallStage::CheckingArguments);
        self.recorder.act(self.call_act().map(Act::CheckArguments));
    }

    fn arguments_checked(&mut self, outcome: &CheckOutcome) {
        match outcome {
            CheckOutcome::Invalid { errors } => return self.fail(Code::ToolArguments, errors.join("; ")),
            CheckOutcome::Coerced { arguments } => self.call.view.arguments = arguments.clone(),
            CheckOutcome::Valid => {}
        }
        self.proceed(HookPoint::ToolGate);
    }

    /// All gates have answered on the final arguments: deny wins, then ask, then allow. Without gates nothing is allowed.
    pub fn decide(&mut self, round: Option<&HookRound>) {
        let Some(round) = round else { return self.fail(Code::ToolDenied, "there is no policy to ask") };
        if let Some(GateReason { hook: by, reason }) = round.closed.clone() {
            let message = format!("denied by {by}: {reason}");
            self.record_verdict(ToolVerdict::Denied { by, reason });
            return self.fail(Code::ToolDenied, message);
        }
        let reasons = self.open_reasons(round);
        if reasons.is_empty() {
            self.record_verdict(ToolVerdict::Allowed);
            return self.dispatch(1);
        }
        self.record_verdict(ToolVerdict::Asked);
        let begun = self.recorder.record(ApprovalRequested {
            call: self.call.view.id,
            arguments: DigestOf::from(&self.call.view.arguments),
            reasons: reasons.clone(),
        });
        self.call.wait(begun, CallStage::AwaitingApproval(reasons));
        self.ask_person();
    }

    fn record_verdict(&mut self, verdict: ToolVerdict) {
        let CallView { id, arguments, .. } = &self.call.view;
        self.recorder.record(ToolDecided { call: *id, arguments: arguments.into(), verdict });
    }

    /// The gates whose question was not answered before, for the session or by an edit.
    fn open_reasons(&self, round: &HookRound) -> Vec<GateReason> {
        let content = self.call.implementation.as_ref().map(|it| &it.extension.digest);
        let approved = content.is_some() && self.session.approved.get(&self.call.view.tool) == content;
        let is_answered = |hook: &HookId| (approved && hook.is_policy()) || self.call.answered.contains(hook);
        round.remarks().filter(|asked| !is_answered(&asked.hook)).collect()
    }

    pub fn ask_person(&mut self) {
        let CallStage::AwaitingApproval(reasons) = &self.call.stage else { return };
        self.recorder.act(Act::AskApproval(Box::new(ApprovalAct {
            decided_by: self.call.begun,
            call: self.call.view.clone(),
            extension: self.call.implementation.as_ref().map(|it| it.extension.id.clone()),
            reasons: reasons.clone(),
        })));
    }

    fn approval_answered(&mut self, asked_by: Vec<HookId>, answer: &Answer) {
        match answer {
            Answer::Approve { scope } => {
                if let (ApprovalScope::Session, Some(it)) = (scope, &self.call.implementation) {
                    self.session.approved.insert(self.call.view.tool.clone(), it.extension.digest);
                }
                self.dispatch(1);
            }
            Answer::Edit { arguments } => {
                self.call.edited |= self.call.view.arguments != *arguments;
                self.call.view.arguments = arguments.clone();
                self.call.answered.extend(asked_by);
                self.check_arguments();
            }
            Answer::Deny { reason } => self.fail(Code::ToolDenied, format!("not approved: {reason}")),
        }
    }

    /// Runs the call on its implementation. The frame is durable before an effect that leaves the machine begins.
    pub fn dispatch(&mut self, attempt: u32) {
        let Some(Implementation { extension, spec, agent }) = &self.call.implementation else { return };
        match agent.clone() {
            Some(AgentUse::Ask(agent)) => return self.open_child(agent),
            Some(AgentUse::HandOver(agent)) => return self.hand_over(Some(agent)),
            Some(AgentUse::HandBack) => return self.hand_over(None),
            None => {}
        }
        let begun = self.recorder.record(ToolDispatched {
            call: self.call.view.id,
            tool: self.call.view.tool.clone(),
            implementation: extension.clone(),
            arguments: DigestOf::from(&self.call.view.arguments),
            effects: spec.effects,
            attempt,
        });
        self.call.wait(begun, CallStage::Running { attempt });
        self.recorder.act(self.call_act().map(Act::Dispatch));
    }

    /// The tool, the child or the handoff has an outcome, which the hooks after a call may change.
    pub fn returned(&mut self, outcome: &ToolOutcome) {
        self.call.result = Some(outcome.told());
        self.call.fault = outcome.fault().cloned();
        self.proceed(HookPoint::ToolAfter);
    }

    /// The result has passed every hook.
    pub fn conclude(&mut self) {
        let result = self.call.result.take().unwrap_or_default();
        let fault = self.call.fault.take();
        let status = if fault.is_some() { CallStatus::Failed } else { CallStatus::Done };
        self.settle(status, result, fault);
    }

    /// The call ends without a result.
    pub fn fail(&mut self, code: Code, message: impl Into<String>) {
        let fault = Fault::new(code, message);
        self.call.artifacts.clear();
        self.settle(code.into(), (&fault).into(), Some(fault));
    }

    fn settle(&mut self, status: CallStatus, content: Content, fault: Option<Fault>) {
        self.recorder.record(ToolSettled {
            call: self.call.view.id,
            status,
            content: DigestOf::from(&content),
            fault,
            artifacts: self.call.artifacts.clone(),
            render: self.call.render.take(),
        });
        self.end_child();
        self.call.stage = CallStage::Finished { content, status };
    }

    /// Ends a call with its turn. One that was running may have had its effect.
    pub fn cancel(&mut self) {
        let ran = match self.call.stage {
            CallStage::Finished { .. } => return,
            CallStage::Queued => {
                self.announce();
                false
            }
            CallStage::Running { .. } | CallStage::RunningChild { .. } => {
                self.recorder.act(Act::Abort { begun_by: self.call.begun });
                true
            }
            _ => {
                self.recorder.act(Act::Abort { begun_by: self.call.begun });
                false
            }
        };
        let unknown = ran && !self.call.may_run_again();
        let message = if unknown { "cancelled while it ran; its outcome is unknown" } else { "cancelled" };
        self.fail(Code::ToolCancelled, message);
    }

    /// What the host needs to check, judge or run the call.
    pub fn call_act(&self) -> Option<Box<CallAct>> {
        let implementation = self.call.implementation.as_ref()?;
        Some(Box::new(CallAct {
            decided_by: self.call.begun,
            call: self.call.view.id,
            spec: implementation.spec.clone(),
            arguments: self.call.view.arguments.clone(),
            extension: implementation.extension.clone(),
            turn: self.turn.context.clone(),
            registry: self.session.registry.view.clone()?,
        }))
    }
}
