//! How a session's acts are performed. Each result goes back to the machine as a fact.

use std::sync::Arc;

use fail::fail_point;
use holdfast_contract::body::Body;
use holdfast_contract::content::Content;
use holdfast_contract::effect::{Act, ApprovalAct, CallAct, ChildAct, Input, ModelAct, SummaryAct};
use holdfast_contract::frame::FrameSource;
use holdfast_contract::hook::HookPoint;
use holdfast_contract::ids::{ExtensionId, HookId, Millis, Seq};
use holdfast_contract::message::{Spent, TurnView};
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::registry::{ExtensionRef, Registry};
use holdfast_contract::session_frames::{
    Answer, ApprovalAnswered, ChildEnded, CompactionProvided, HookDecided, HookFaulted, LimitReached,
    ModelFailed, TimerFired, ToolChecked, ToolReturned, TurnOutcome,
};
use holdfast_contract::tool::ToolOutcome;
use holdfast_contract::wire::{Call, Host, Instance};
use holdfast_kernel::Pending;
use holdfast_model::Model;
use holdfast_policy::PolicyRequest;

use super::preview::Preview;
use super::redacted_output::RedactedOutput;
use super::stream_guard::Guards;
use super::{SessionActor, SessionCommand, ToolAnswer, TurnReport};
use crate::calls::{Admission, CallKey, CallState, later, result_of, run, start_call, wait, wait_timeout};
use crate::clock::SteadyTime;
use crate::host::SessionHost;
use crate::messaging::{QuestionSubject, WaitingQuestion};
use crate::parts::{OutputDelta, OutputKind, SessionEvent};
use crate::runtime::{Inner, code_of};
use crate::usage::cap_place;
use crate::usage::used_by_model;

impl SessionActor {
    pub(super) fn perform(&mut self, act: Act) {
        match act {
            Act::CallHooks(act) => self.call_hooks(*act),
            Act::EvaluatePolicy(act) => self.evaluate_policy(&act),
            Act::CheckArguments(act) => self.check_arguments(&act),
            Act::Dispatch(act) => self.dispatch(*act),
            Act::CallModel(act) => self.call_model(act),
            Act::AskApproval(act) => self.ask_approval(*act),
            Act::AskUi { decided_by, extension, question } => {
                let (inner, session) = (self.inner.clone(), self.session.id().clone());
                let (inbox, asker, asked) = (self.inbox.clone(), extension.clone(), question.clone());
                let waits =
                    self.open_question(decided_by, QuestionSubject::Extension { extension, question });
                self.behind_barrier(decided_by, async move {
                    let (extension, question) = (asker, asked);
                    if waits {
                        let asked = SessionEvent::Question { request: decided_by, extension, question };
                        inner.surface.show(&session, asked);
                    }
                    if !waits || inner.ask_owner(&session, decided_by).await {
                        drop(inbox.send(SessionCommand::dismissed(decided_by)))
                    }
                });
            }
            Act::OpenChild(act) => self.open_child(*act),
            Act::Summarise(act) => self.summarise(*act),
            Act::Deliver { decided_by, outcome, answer, spent } => {
                let inbox = self.inbox.clone();
                self.delivering = true;
                self.behind_barrier(decided_by, async move {
                    fail_point!("driver::before_delivery");
                    drop(inbox.send(SessionCommand::Ended { ended: decided_by, outcome, answer, spent }));
                });
            }
            Act::SetTimer { decided_by, at } => {
                let wait = self.inner.clock.sleep(at.since(self.time.now()));
                let back = self.back(FrameSource::Host, decided_by);
                self.tasks.begin(decided_by, async move {
                    wait.await;
                    back.send(TimerFired { timer: decided_by });
                });
            }
            Act::Abort { begun_by } => {
                self.tasks.abort(begun_by);
                self.instances.give_up(begun_by);
                if let Some(child) = self.children.remove(&begun_by) {
                    self.inner.give_up(&child);
                }
            }
            Act::Lifecycle { .. } | Act::Activate { .. } | Act::RunTask { .. } => {}
        }
    }

    /// Runs something once this frame is on disk. If it never gets there, the session stops.
    fn behind_barrier(&mut self, frame: Seq, then: impl Future<Output = ()> + Send + 'static) {
        let durable = self.log.durable(frame);
        let inbox = self.inbox.clone();
        self.tasks.begin(frame, async move {
            fail_point!("driver::before_barrier");
            match durable.await {
                Ok(()) => {
                    fail_point!("driver::after_barrier");
                    then.await;
                }
                Err(problem) => drop(inbox.send(SessionCommand::Broken(problem))),
            }
        });
    }

    /// The way back for the fact that an act leads to.
    pub(super) fn back(&self, source: FrameSource, cause: Seq) -> FactSender {
        let (inner, time, inbox) = (self.inner.clone(), self.time.clone(), self.inbox.clone());
        FactSender { inner, time, inbox, source, cause, owner: None }
    }

    /// The host of a call that this frame has decided.
    pub(super) fn session_host(
        &self,
        extension: &Arc<ExtensionRef>,
        under: Seq,
        hook: Option<HookId>,
    ) -> SessionHost {
        let (inbox, progress) = (self.inbox.clone(), self.progress.clone());
        SessionHost { inbox, progress, extension: extension.clone(), under, hook }
    }

    fn host(&self, act: &CallAct) -> Arc<SessionHost> {
        Arc::new(self.session_host(&act.extension, act.decided_by, None))
    }

    fn evaluate_policy(&mut self, act: &CallAct) {
        let hook = HookId::policy();
        let (point, call) = (HookPoint::ToolGate, Some(act.call));
        let subject = Some((&act.arguments).into());
        let input = match self.inner.policies.get(act.registry.policy) {
            Ok(policy) => {
                let verdict = policy.evaluate(&PolicyRequest {
                    tool: &act.spec,
                    extension: &act.extension,
                    arguments: &act.arguments,
                    turn: &act.turn,
                });
                let decided = HookDecided {
                    hook,
                    point,
                    call,
                    subject,
                    decision: verdict.decision,
                    rule: Some(verdict.rule),
                };
                self.fact(FrameSource::Policy(policy.digest()), Some(act.decided_by), decided)
            }
            Err(problem) => {
                let fault = problem.to_fault();
                self.fact(
                    FrameSource::Host,
                    Some(act.decided_by),
                    HookFaulted { hook, point, call, subject, fault },
                )
            }
        };
        self.queue.push_back(input);
    }

    fn check_arguments(&mut self, act: &CallAct) {
        let outcome = self.inner.calls.check_arguments(&act.spec, &act.arguments);
        let input =
            self.fact(FrameSource::Host, Some(act.decided_by), ToolChecked { call: act.call, outcome });
        self.queue.push_back(input);
    }

    fn dispatch(&mut self, act: CallAct) {
        if !self.progress.has_preview() {
            self.preview(&act.registry, &act.turn);
        }
        let source = FrameSource::Extension(act.extension.clone());
        let host = self.host(&act);
        let now = self.inner.clock.now();
        let afforded = self.inner.usage.daily().before_tool(now, &act.extension.id);
        let instance = match afforded.and_then(|()| self.inner.extensions.instance(&act.extension)) {
            Ok(loaded) => {
                let begun = || CallKey::Tool(act.decided_by, act.call);
                self.instances.begin(act.extension.digest, begun, &loaded)
            }
            Err(fault) => {
                let body = ToolReturned { call: act.call, outcome: ToolOutcome::Failure(fault) };
                let input = self.fact(source, Some(act.decided_by), body);
                self.queue.push_back(input);
                return;
            }
        };
        let CallAct { decided_by, call, spec, arguments, turn, extension, .. } = act;
        let entered = match self.inner.calls.permit(&extension, &spec, self.inner.clock.steady()) {
            Ok(entered) => entered,
            Err(fault) => {
                let body = ToolReturned { call, outcome: ToolOutcome::Failure(fault) };
                let input = self.fact(source, Some(decided_by), body);
                self.queue.push_back(input);
                return;
            }
        };
        let asked = Call::Tool { call, tool: spec.name.clone(), arguments, turn };
        let queues = self.inner.calls.queues(&extension, &spec);
        let (leaves, limit) = (spec.effects.leaves_the_machine(), self.inner.calls.timeout(&spec));
        if leaves || !queues.is_empty() {
            let (inner, time, inbox) = (self.inner.clone(), self.time.clone(), self.inbox.clone());
            let (admission, progress) = (Admission::new(queues), self.progress.clone());
            let returned = async move {
                fail_point!("driver::before_tool");
                let made = || inner.make_pinned(&extension, &instance, asked, host);
                let answer = run(admission, limit, inner.clock.clone(), made).await;
                fail_point!("driver::after_tool");
                let (at, cause) = (time.now(), decided_by);
                progress.shown(&*inner.clock).await;
                let returned = ToolAnswer { call, cause, extension, spec, at, answer, entered };
                drop(inbox.send(SessionCommand::Returned(Box::new(returned))));
            };
            return if leaves {
                self.behind_barrier(decided_by, returned)
            } else {
                self.tasks.begin(decided_by, returned)
            };
        }
        match self.inner.make_pinned(&extension, &instance, asked, host) {
            CallState::Answered(answer) if self.progress.is_shown() => {
                let (at, cause) = (self.time.now(), decided_by);
                self.returned(ToolAnswer { call, cause, extension, spec, at, answer, entered });
            }
            under_way => {
                let (inbox, clock, time) = (self.inbox.clone(), self.inner.clock.clone(), self.time.clone());
                let progress = self.progress.clone();
                self.tasks.begin(decided_by, async move {
                    let answer = wait_timeout(under_way, limit, Code::ToolTimeout, clock.clone()).await;
                    let (at, cause) = (time.now(), decided_by);
                    progress.shown(&*clock).await;
                    let returned = ToolAnswer { call, cause, extension, spec, at, answer, entered };
                    drop(inbox.send(SessionCommand::Returned(Box::new(returned))));
                });
            }
        }
    }

    /// A tool's answer becomes a fact. It has to keep the tool's promise.
    pub(super) fn returned(&mut self, returned: ToolAnswer) {
        let ToolAnswer { call, cause, extension, spec, at, answer, entered } = returned;
        let outcome = match answer.and_then(result_of) {
            Ok(result) => self.inner.calls.check_result(&spec, result),
            Err(fault) => ToolOutcome::Failure(fault),
        };
        entered.settled(&extension, &spec, &outcome, (at, self.inner.clock.steady()));
        let (source, cause, body) =
            (FrameSource::Extension(extension), Some(cause), ToolReturned { call, outcome }.into());
        self.queue.push_back(Input { at, source, cause, body });
    }

    fn call_model(&mut self, act: Box<ModelAct>) {
        let back = self.back(FrameSource::Model(act.model.clone()), act.decided_by);
        let model = match code_of(&act) {
            Some(code) => code.and_then(|extension| self.ask_code(&act, extension)),
            None => self.inner.models.get(&act.model),
        };
        let model = match model {
            Ok(model) => model,
            Err(fault) => {
                let failed = ModelFailed::new(fault, false);
                let input = self.fact(back.source, Some(act.decided_by), failed);
                self.queue.push_back(input);
                return;
            }
        };
        let (ledger, now) = (&self.inner.usage.daily(), self.inner.clock.now());
        let owner = ledger.enabled().then(|| act.registry.owner(&act.turn.agent).cloned()).flatten();
        if let Some(reached) = ledger.before_model(now, owner.as_ref()) {
            let LimitReached { limit, allowed, .. } = reached;
            let what = limit.with_place(Some(&cap_place(limit, owner.as_ref())));
            let fault = Fault::new(Code::BudgetSpent, format!("daily limit reached: {allowed} {what}"));
            let failed = ModelFailed { limit: Some(reached), ..ModelFailed::new(fault, false) };
            let input = self.fact(back.source, Some(act.decided_by), failed);
            self.queue.push_back(input);
            return;
        }
        if !model.price_known() && self.bounds_money(&act.registry) {
            let message = format!(
                "the price of `{}` is unknown, and money is limited: set `price_in` and `price_out` of it",
                act.model
            );
            let failed = ModelFailed::new(Fault::new(Code::PriceUnknown, message), false);
            let input = self.fact(back.source, Some(act.decided_by), failed);
            self.queue.push_back(input);
            return;
        }
        if !model.price_known() {
            self.tell_of_missing_price(&act);
        }
        let back = FactSender { owner, ..back };
        let preview = self.preview(&act.registry, &act.turn);
        let (session, output) = (self.session.id(), self.output.clone());
        let shown = RedactedOutput::new(&self.inner, session, act.decided_by, output, &preview);
        let guards = Guards::of(self, &act);
        let (clock, wait, decided_by) = (self.inner.clock.clone(), act.delay, act.decided_by);
        let request = Box::new(self.model_request(*act));
        self.behind_barrier(decided_by, async move {
            if wait > Millis(0) {
                clock.sleep(wait).await;
            }
            let following = async {
                match guards {
                    None => Some(shown.clone().follow(model, request).await),
                    Some(guards) => guards.follow(shown.clone(), model, request, &back).await,
                }
            };
            match shown.sanitizing(following).await {
                Some(Ok(returned)) => back.send(returned),
                Some(Err(failed)) => back.send(failed),
                // A guardrail blocks what was written, and the rest of it is not read.
                None => {}
            }
        });
    }

    /// Tells the user, once for each model, that a limit on money which the profile sets does not hold for it.
    fn tell_of_missing_price(&mut self, act: &ModelAct) {
        let Some(micros) = self.session.settings().limits.session_cost_micros else { return };
        if !self.unpriced.insert(act.model.clone()) {
            return;
        }
        let text = format!(
            "the price of `{}` is unknown, so the limit of {} dollars for this session does not count for it; limits on tokens and time \
             do. Set `price_in` and `price_out` of it (0 if it is free).",
            act.model,
            micros / 1_000_000
        );
        let kind = OutputKind::Progress { extension: "policy".into() };
        let delta = OutputDelta { after: act.decided_by, kind, text };
        self.inner.surface.show(self.session.id(), SessionEvent::Output(delta));
    }

    /// The code of an extension in place of a model. Like a tool, it runs again after a crash only if that changes nothing.
    fn ask_code(&mut self, act: &ModelAct, extension: Arc<ExtensionRef>) -> Result<Arc<dyn Model>, Fault> {
        let agent = act.registry.agent(&act.turn.agent);
        if self.attempt > 1 && agent.is_some_and(|agent| !agent.effects.may_run_again()) {
            let message = "the agent was interrupted by a crash: what it has done is unknown";
            return Err(Fault::new(Code::ToolInterrupted, message));
        }
        self.code_asked = Some(act.decided_by);
        let host = Arc::new(self.session_host(&extension, act.decided_by, None));
        Ok(self.inner.code_agent(extension, host))
    }

    /// Whether the user limits money. What a profile sets where nobody says anything does not count as such a limit.
    fn bounds_money(&self, registry: &Registry) -> bool {
        let limits = self.session.settings().limits;
        let policy = self.inner.policies.get(registry.policy).ok();
        let usual = policy.as_ref().and_then(|policy| policy.caps().session.dollars).map(|cap| cap.micros);
        limits.max_cost_micros.is_some()
            || limits.session_cost_micros.is_some_and(|most| Some(most) != usual)
            || policy.is_some_and(|policy| policy.caps_money())
    }

    /// What the guardrails of a turn mean for what is shown before its answer.
    fn preview(&self, registry: &Registry, turn: &TurnView) -> Preview {
        let preview = Preview::of(&self.inner, registry, turn, self.progress.asked());
        self.progress.set_preview(&preview);
        preview
    }

    fn ask_approval(&mut self, act: ApprovalAct) {
        let approval = act.decided_by;
        let ApprovalAct { call, extension, reasons, .. } = act;
        let registry = self.pinned_registry();
        let stack = registry.tool(&call.tool).map(|entry| entry.stack.as_slice()).unwrap_or_default();
        let mut own = stack.iter().filter(|it| Some(&it.extension.id) == extension.as_ref());
        let implementation = own.next().map(|it| ExtensionRef::clone(&it.extension));
        let pending = Pending { approval, call, extension, implementation, reasons };
        self.approvals.insert(approval, pending.clone());
        let (inner, session) = (self.inner.clone(), self.session.id().clone());
        let waits = self.open_question(
            approval,
            QuestionSubject::Approval {
                tool: pending.call.tool.clone(),
                extension: pending.extension.clone(),
                arguments: pending.call.arguments.clone(),
                reasons: pending.reasons.clone(),
            },
        );
        let back = self.back(FrameSource::Host, approval);
        self.behind_barrier(approval, async move {
            let reason = if waits {
                inner.surface.show(&session, SessionEvent::Approval(pending));
                inner.ask_owner(&session, approval).await.then_some("nobody answered in time")
            } else {
                Some("nobody is there to ask")
            };
            if let Some(reason) = reason {
                let answer = Answer::Deny { reason: reason.to_owned() };
                back.send(ApprovalAnswered { approval, answer });
            }
        });
    }

    /// Notes a question if it may wait for a person, and says whether it may.
    fn open_question(&self, request: Seq, subject: QuestionSubject) -> bool {
        let (inner, session) = (&self.inner, self.session.id().clone());
        let waits = inner.waits_for_a_person(&session, request);
        if waits {
            let origin = inner.session_origin(&session).unwrap_or_default();
            let since = inner.clock.now();
            inner.messaging.questions.add(WaitingQuestion { session, request, origin, since, subject });
        }
        waits
    }

    fn open_child(&mut self, act: ChildAct) {
        let back = self.back(FrameSource::Host, act.decided_by);
        let (inner, parent) = (self.inner.clone(), self.session.id().clone());
        let settings = self.session.settings().clone();
        let (call, child) = (act.call, act.child.clone());
        self.children.insert(act.decided_by, child.clone());
        self.behind_barrier(act.decided_by, async move {
            let (outcome, spent) = match inner.run_child(parent, settings, act).await {
                Ok(report) => {
                    let spent = report.spent;
                    (child_outcome(report), spent)
                }
                Err(problem) => (ToolOutcome::Failure(problem.to_fault()), Spent::default()),
            };
            back.send(ChildEnded { call, child, outcome, spent });
        });
    }

    fn summarise(&mut self, act: SummaryAct) {
        let back = self.back(FrameSource::Host, act.decided_by);
        let model = act.model.as_ref().and_then(|name| self.inner.models.get(name).ok());
        self.behind_barrier(act.decided_by, async move {
            let outcome = match (model, act.model.clone()) {
                (Some(model), Some(name)) => crate::runtime::summary::summary(model, name, act).await,
                _ => (
                    ToolOutcome::Failure(Fault::new(Code::ModelUnknown, "no model can summarise")),
                    Default::default(),
                ),
            };
            back.send(CompactionProvided { outcome: outcome.0, usage: outcome.1 });
        });
    }
}

impl Inner {
    /// Makes a call on the code that a turn is pinned to. An exclusive extension may have to be replaced by its next generation: such a
    /// call waits while that happens, and is made only if this is still the code that serves.
    pub(crate) fn make_pinned(
        self: &Arc<Self>,
        extension: &Arc<ExtensionRef>,
        instance: &Arc<dyn Instance>,
        call: Call,
        host: Arc<dyn Host>,
    ) -> CallState {
        if !instance.capabilities().exclusive {
            return start_call(instance, call, host);
        }
        let (inner, extension) = (self.clone(), extension.clone());
        later(Box::pin(async move {
            let (serving, _guard) = inner.extensions.enter_pinned(&extension).await?;
            wait(start_call(&inner.extensions.instance(&serving)?, call, host)).await
        }))
    }
}

fn child_outcome(TurnReport { outcome, answer, limit_set_in, .. }: TurnReport) -> ToolOutcome {
    match (outcome, answer) {
        (TurnOutcome::Answered, Some(answer)) => ToolOutcome::Result(answer),
        (TurnOutcome::Failed(fault), _) => ToolOutcome::Failure(fault),
        (TurnOutcome::Limited(limit), _) => ToolOutcome::Failure(Fault::new(
            Code::TurnLimit,
            format!("the agent was ended by a limit on {}", limit.with_place(limit_set_in.as_deref())),
        )),
        (TurnOutcome::Blocked { reason }, _) => ToolOutcome::Failure(Fault::new(Code::GuardBlocked, reason)),
        (TurnOutcome::Cancelled { reason }, _) => {
            ToolOutcome::Failure(Fault::new(Code::TurnCancelled, reason))
        }
        (TurnOutcome::Answered, None) => ToolOutcome::Result(Content::text("")),
    }
}

/// The way back to an actor from a task that it began.
pub(super) struct FactSender {
    inner: Arc<Inner>,
    time: Arc<SteadyTime>,
    inbox: tokio::sync::mpsc::UnboundedSender<SessionCommand>,
    source: FrameSource,
    cause: Seq,
    /// The extension that pays for what the fact says was used.
    owner: Option<ExtensionId>,
}

impl FactSender {
    pub(super) fn send(self, body: impl Into<Body>) {
        self.tell(self.source.clone(), body);
    }

    /// Sends a fact that comes from another source, on the way to the one that is waited for.
    pub(super) fn tell(&self, source: FrameSource, body: impl Into<Body>) {
        let body = body.into();
        self.inner.usage.meter().count(&body);
        self.inner.usage.daily().enter(self.inner.clock.now(), self.owner.as_ref(), used_by_model(&body));
        let input = Input { at: self.time.now(), source, cause: Some(self.cause), body };
        drop(self.inbox.send(SessionCommand::Fact(Box::new(input))));
    }
}
