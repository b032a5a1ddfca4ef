//! The phases of a tool call: modifiers → schema → policy and gates on the final arguments → approval → dispatch → result.
//!
//! Several calls go through at once, each at its own pace; when the last is settled the model hears of all of them.

use super::*;

/// A tool call under way.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(crate = "holdfast_contract::serde")]
pub(super) struct Call {
    pub view: CallView,
    pub model_id: Arc<str>,
    pub wait: Wait,
    implementation: Option<Implementation>,
    /// Who asked for approval before the approver edited the arguments: the edit has answered them.
    answered: Vec<HookId>,
    pub result: Option<Content>,
    fault: Option<Fault>,
    pub artifacts: Vec<Artifact>,
    render: Option<Content>,
}

impl Call {
    pub fn new(id: CallId, asked: &AskedCall) -> Self {
        let AskedCall { model_id, tool, arguments } = asked.clone();
        Self { view: CallView { id, tool, arguments }, model_id, ..Self::default() }
    }

    /// Whether it may run again when nobody knows what came of it.
    pub fn may_run_again(&self) -> bool {
        self.implementation.as_ref().is_some_and(|it| it.spec.effects.may_run_again())
    }

    /// Takes what hooks attach to the result.
    pub fn enrich(&mut self, round: Option<&HookRound>) {
        (self.artifacts, self.render) = round.map(HookRound::enrichment).unwrap_or_default();
    }
}

impl StepContext<'_> {
    /// Takes up a call as the model asked for it.
    pub fn take_up(&mut self, call: &mut Call) {
        self.announce(call);
        let tool = &call.view.tool;
        call.implementation = self.base.implementations(tool).first().cloned();
        if call.implementation.is_none() {
            let message = format!("there is no tool `{tool}`");
            return self.fail(call, Code::ToolUnknown, message);
        }
        self.proceed(Some(call), P::ToolModify);
    }

    fn announce(&mut self, call: &Call) {
        let CallView { id, tool, arguments } = &call.view;
        self.desk.record(ToolCalled { call: *id, tool: tool.clone(), arguments: arguments.into() });
    }

    /// The modifiers have spoken: the last one who names an implementation chooses it.
    pub fn modified(&mut self, call: &mut Call, round: Option<&HookRound>) {
        if let Some(id) = round.and_then(HookRound::implementation) {
            let tool = &call.view.tool;
            let found = self.base.implementations(tool).iter().find(|it| it.extension.id == *id);
            call.implementation = found.cloned();
            if call.implementation.is_none() {
                let message = format!("`{id}` has no implementation of `{tool}`");
                return self.fail(call, Code::ToolUnknown, message);
            }
        }
        self.check(call);
    }

    pub fn check(&mut self, call: &mut Call) {
        call.wait = Wait { begun: self.desk.cause, stage: Stage::Checking };
        self.desk.act(self.call_act(call).map(Act::CheckArguments));
    }

    pub fn checked(&mut self, call: &mut Call, outcome: &CheckOutcome) {
        match outcome {
            CheckOutcome::Invalid { errors } => {
                return self.fail(call, Code::ToolArguments, errors.join("; "));
            }
            CheckOutcome::Coerced { arguments } => call.view.arguments = arguments.clone(),
            CheckOutcome::Valid => {}
        }
        self.proceed(Some(call), P::ToolGate);
    }

    /// All gates have spoken on the final arguments: deny wins, then ask, then allow. Without gates nothing is allowed.
    pub fn decide(&mut self, call: &mut Call, round: Option<&HookRound>) {
        let Some(round) = round else {
            return self.fail(call, Code::ToolDenied, "there is no policy to ask");
        };
        let (id, arguments) = (call.view.id, DigestOf::from(&call.view.arguments));
        let decided = |verdict| ToolDecided { call: id, arguments: arguments.clone(), verdict };
        if let Some(GateReason { hook: by, reason }) = round.closed.clone() {
            let message = format!("denied by {by}: {reason}");
            self.desk.record(decided(ToolVerdict::Denied { by, reason }));
            return self.fail(call, Code::ToolDenied, message);
        }
        let digest = call.implementation.as_ref().map(|it| &it.extension.digest);
        let remembered = digest.is_some() && self.base.approved.get(&call.view.tool) == digest;
        let has_answer = |hook: &HookId| (remembered && hook.is_policy()) || call.answered.contains(hook);
        let reasons: Vec<GateReason> = round.remarks().filter(|asked| !has_answer(&asked.hook)).collect();
        if reasons.is_empty() {
            self.desk.record(decided(ToolVerdict::Allowed));
            return self.dispatch(call, 1);
        }
        self.desk.record(decided(ToolVerdict::Asked));
        let begun = self.desk.record(ApprovalRequested { call: id, arguments, reasons: reasons.clone() });
        call.wait = Wait { begun, stage: Stage::Approving(reasons) };
        self.ask_person(call);
    }

    pub fn ask_person(&mut self, call: &Call) {
        let Wait { begun, stage: Stage::Approving(reasons) } = &call.wait else { return };
        let extension = call.implementation.as_ref().map(|it| it.extension.id.clone());
        let (call, reasons) = (call.view.clone(), reasons.clone());
        let act = ApprovalAct { decided_by: *begun, call, extension, reasons };
        self.desk.act(Act::AskApproval(Box::new(act)));
    }

    pub fn answered(&mut self, call: &mut Call, reasons: Vec<GateReason>, answer: &Answer) {
        match answer {
            Answer::Approve { scope } => {
                if let (ApprovalScope::Session, Some(it)) = (scope, &call.implementation) {
                    self.base.approved.insert(call.view.tool.clone(), it.extension.digest);
                }
                self.dispatch(call, 1);
            }
            Answer::Edit { arguments } => {
                call.view.arguments = arguments.clone();
                call.answered.extend(reasons.into_iter().map(|asked| asked.hook));
                self.check(call);
            }
            Answer::Deny { reason } => {
                self.fail(call, Code::ToolDenied, format!("not approved: {reason}"));
            }
        }
    }

    /// Hands the call to its implementation. The frame is durable before an effect that leaves the machine begins.
    pub fn dispatch(&mut self, call: &mut Call, attempt: u32) {
        let Some(Implementation { extension, spec, agent }) = &call.implementation else { return };
        match agent.clone() {
            Some(AgentUse::Ask(agent)) => return self.open_child(call, agent),
            Some(AgentUse::HandOver(agent)) => return self.hand_over(call, Some(agent)),
            Some(AgentUse::HandBack) => return self.hand_over(call, None),
            None => {}
        }
        let (implementation, effects) = (extension.clone(), spec.effects);
        let CallView { id, tool, arguments } = &call.view;
        let (call_id, tool, arguments) = (*id, tool.clone(), arguments.into());
        let dispatched = ToolDispatched { call: call_id, tool, implementation, arguments, effects, attempt };
        call.wait = Wait { begun: self.desk.record(dispatched), stage: Stage::Running(attempt) };
        self.desk.act(self.call_act(call).map(Act::Dispatch));
    }

    fn open_child(&mut self, call: &mut Call, agent: AgentId) {
        let depth = self.base.start.depth;
        if depth >= self.base.start.settings.depth_cap {
            let message = format!("`{agent}` would be agent {} deep", u32::from(depth) + 1);
            return self.fail(call, Code::ChildDepth, message);
        }
        let limits = self.remaining(&agent);
        let child: StreamId = format!("{}.{}", self.base.id, call.view.id).into();
        let begun = self.desk.record(ChildOpened { call: call.view.id, child: child.clone(), agent, limits });
        call.wait = Wait { begun, stage: Stage::Child(child, limits) };
        self.run_child(call);
    }

    /// Asks the outside to open, or to take up again, the child that a call waits for.
    pub fn run_child(&mut self, call: &Call) {
        let Wait { begun, stage: Stage::Child(child, limits) } = &call.wait else { return };
        let agent = call.implementation.as_ref().and_then(|it| it.agent.as_ref()?.agent());
        let Some(agent) = agent.cloned() else { return };
        let (decided_by, child, limits) = (*begun, child.clone(), *limits);
        let (depth, registry) = (self.base.start.depth.saturating_add(1), self.base.registry.clone());
        let CallView { id: call, arguments, .. } = call.view.clone();
        let turn = self.turn.context.clone();
        let act = ChildAct { decided_by, call, child, agent, arguments, limits, depth, registry, turn };
        self.desk.act(Act::OpenChild(Box::new(act)));
    }

    pub fn returned(&mut self, call: &mut Call, outcome: &ToolOutcome) {
        call.result = Some(outcome.told());
        call.fault = outcome.fault().cloned();
        self.proceed(Some(call), P::ToolAfter);
    }

    /// The result has passed every hook.
    pub fn conclude(&mut self, call: &mut Call) {
        let (result, fault) = (call.result.take(), call.fault.take());
        let status = if fault.is_some() { CallStatus::Failed } else { CallStatus::Done };
        self.settle(call, status, result.unwrap_or_default(), fault);
    }

    /// The call does not come to a result.
    pub fn fail(&mut self, call: &mut Call, code: Code, message: impl Into<String>) {
        let fault = Fault::new(code, message);
        call.artifacts.clear();
        self.settle(call, code.into(), (&fault).into(), Some(fault));
    }

    fn settle(&mut self, call: &mut Call, status: CallStatus, content: Content, fault: Option<Fault>) {
        let (artifacts, render) = (call.artifacts.clone(), call.render.take());
        let (call_id, told) = (call.view.id, DigestOf::from(&content));
        self.desk.record(ToolSettled { call: call_id, status, content: told, fault, artifacts, render });
        call.wait.stage = Stage::Settled(content, status);
    }

    /// Settles a call whose turn ends. One that was running may have had its effect.
    pub fn cancel_call(&mut self, call: &mut Call) {
        match call.wait.stage {
            Stage::Settled(..) => return,
            Stage::Idle => self.announce(call),
            _ => self.desk.act(Act::Abort { begun_by: call.wait.begun }),
        }
        let ran = matches!(call.wait.stage, Stage::Running(_) | Stage::Child(..));
        let message = match ran && !call.may_run_again() {
            true => "cancelled while it ran; its outcome is unknown",
            false => "cancelled",
        };
        self.fail(call, Code::ToolCancelled, message);
    }

    /// What the outside needs to check, judge or run a call.
    pub fn call_act(&self, call: &Call) -> Option<Box<CallAct>> {
        let (implementation, registry) = (call.implementation.as_ref()?, self.base.registry.view.as_ref()?);
        Some(Box::new(CallAct {
            decided_by: call.wait.begun,
            call: call.view.id,
            spec: implementation.spec.clone(),
            arguments: call.view.arguments.clone(),
            extension: implementation.extension.clone(),
            turn: self.turn.context.clone(),
            registry: registry.clone(),
        }))
    }
}
