//! Host calls within a session. Call and answer are recorded before the extension has the answer.
//!
//! The clock, random bytes, the session's state, messages to its model and questions to its user have frames of their own and are
//! served here, because they read or step the session's machine. Every other call is recorded by its name and served by the module of
//! its capability in `crate::host`; the tool searches, which need the machine as well, are in `discovery.rs`.

use std::sync::Arc;

use futures_util::FutureExt;
use holdfast_contract::body::Body;
use holdfast_contract::content::Content;
use holdfast_contract::frame::FrameSource;
use holdfast_contract::hook::HookPoint;
use holdfast_contract::host_call::{HostCall, HostCallKind};
use holdfast_contract::ids::{ExtensionId, HookId, Seq};
use holdfast_contract::message::Limits;
use holdfast_contract::problem::Fault;
use holdfast_contract::registry::ExtensionRef;
use holdfast_contract::session_frames::{
    ClockRead, HostCalled, MessageInjected, RandomDrawn, StateWritten, UiQuestion, UiRequested,
};
use holdfast_contract::tool::ToolOutcome;
use holdfast_contract::wire::UpdateSink;
use tokio::sync::oneshot;

use super::{HostAnswer, SessionActor, SessionCommand, SessionHostCall};
use crate::host::{Caller, SessionUser, is_invocation, refuse_in_hook};
use crate::messaging::{RecordedUpdates, unwanted};
use crate::usage::DelegatedBudget;

/// A host call that has a frame of its own: the frame, and the answer.
struct RecordedCall {
    body: Body,
    answer: Content,
}

impl RecordedCall {
    fn new(body: impl Into<Body>, answer: Content) -> Self {
        Self { body: body.into(), answer }
    }
}

impl SessionActor {
    /// Serves a host call.
    pub(super) fn host_call(&mut self, asked: SessionHostCall) {
        let SessionHostCall { extension, under, hook, call, timeout, updates, reply } = asked;
        if let Err(fault) = self.inner.admit(&extension, &call) {
            let (call, answer) = (call.record_of_refusal(), Err(fault));
            return self.answered(HostAnswer {
                extension,
                under,
                hook,
                call,
                answer,
                spent: None,
                streamed: None,
                reply,
            });
        }
        let id = extension.id.clone();
        let recorded = match call {
            HostCall::Clock => self.clock_read(id, hook),
            HostCall::Random { bytes } => self.random_drawn(id, hook, bytes),
            HostCall::StateGet { key } => self.state_read(id, hook, key),
            HostCall::StateSet { key, value } => {
                RecordedCall::new(StateWritten { extension: id, hook, key, value }, Content::default())
            }
            HostCall::Inject { text } => {
                RecordedCall::new(MessageInjected { extension: id, hook, text }, Content::default())
            }
            HostCall::Ui(question) => match self.may_call(&extension, HostCallKind::Ui) {
                Ok(()) => return self.ask_user(&extension, (under, hook), question, reply),
                Err(refusal) => {
                    let call = HostCall::Ui(question).record();
                    let (answer, spent, streamed) = (Err(refusal), None, None);
                    return self.answered(HostAnswer {
                        extension,
                        under,
                        hook,
                        call,
                        answer,
                        spent,
                        streamed,
                        reply,
                    });
                }
            },
            call => {
                let asked = SessionHostCall { extension, under, hook, call, timeout, updates, reply };
                return self.serve_call(asked);
            }
        };
        let input = self.fact(FrameSource::Extension(extension), Some(under), recorded.body);
        let step = self.step(input).map_err(|problem| problem.to_fault());
        drop(reply.send(step.map(|()| recorded.answer)));
    }

    fn clock_read(&self, extension: ExtensionId, hook: Option<HookId>) -> RecordedCall {
        let value = self.inner.clock.now();
        RecordedCall::new(ClockRead { extension, hook, value }, Content::of(&value))
    }

    fn random_drawn(&self, extension: ExtensionId, hook: Option<HookId>, bytes: u32) -> RecordedCall {
        let bytes = self.inner.entropy.draw_hex(bytes);
        let answer = Content::text(bytes.clone());
        RecordedCall::new(RandomDrawn { extension, hook, bytes }, answer)
    }

    fn state_read(&self, extension: ExtensionId, hook: Option<HookId>, key: String) -> RecordedCall {
        let value = self.session.state(&extension, &key).cloned().unwrap_or_default();
        let read = HostCalled {
            extension,
            hook,
            ask: HostCallKind::StateGet.name().to_owned(),
            arguments: Content::text(key),
            outcome: ToolOutcome::Result(value.clone()),
            spent: None,
            streamed: None,
        };
        RecordedCall::new(read, value)
    }

    /// Asks the user. The answer is sent when the user has given it.
    pub(super) fn ask_user(
        &mut self,
        extension: &Arc<ExtensionRef>,
        (under, hook): (Seq, Option<HookId>),
        question: UiQuestion,
        reply: oneshot::Sender<Result<Content, Fault>>,
    ) {
        let request = self.session.next_seq();
        if matches!(question, UiQuestion::Input { secret: true, .. }) {
            self.unsaid.insert(request);
        }
        let body = UiRequested { extension: extension.id.clone(), hook, question };
        let input = self.fact(FrameSource::Extension(extension.clone()), Some(under), body);
        match self.step(input) {
            Ok(()) => drop(self.asked.insert(request, reply)),
            Err(problem) => drop(reply.send(Err(problem.to_fault()))),
        }
    }

    /// Serves a host call that is recorded by its name.
    fn serve_call(&mut self, asked: SessionHostCall) {
        let SessionHostCall { extension, under, hook, call, timeout, updates, mut reply } = asked;
        if let Some(refusal) = self.refuses_hook(hook.as_ref(), &call) {
            let (call, answer) = (call.record(), Err(refusal));
            return self.answered(HostAnswer {
                extension,
                under,
                hook,
                call,
                answer,
                spent: None,
                streamed: None,
                reply,
            });
        }
        let budget = DelegatedBudget::new(self.left_for(under));
        let caller = self.caller(&extension, (under, hook.clone()), budget.clone());
        let is_invocation = is_invocation(&call);
        let updates = updates.filter(|_| is_invocation).map(|sink| self.recorded_updates(sink));
        let caller = Caller { updates: updates.clone(), ..caller };
        let record = call.record();
        let mut answer = match call {
            HostCall::ToolsFind(it) => self.tools_find(&caller, &it.read),
            HostCall::CapabilitiesList(_) => self.capabilities_list(&caller),
            call => self.inner.serve(caller, call, timeout),
        };
        // An answer that is ready is recorded at once: answers keep the order of the calls.
        if let Some(answer) = (&mut answer).now_or_never() {
            let (spent, streamed) = (budget.used(), updates.map(|updates| updates.streamed()));
            return self.answered(HostAnswer {
                extension,
                under,
                hook,
                call: record,
                answer,
                spent,
                streamed,
                reply,
            });
        }
        let inbox = self.inbox.clone();
        tokio::spawn(async move {
            let answer = if is_invocation {
                let wanted = async {
                    match &updates {
                        None => answer.await,
                        Some(updates) => updates.wanted(answer).await,
                    }
                };
                // An agent is cancelled when its caller has stopped waiting.
                tokio::select! {
                    biased;
                    answer = wanted => answer,
                    () = reply.closed() => Err(unwanted()),
                }
            } else {
                answer.await
            };
            let (spent, streamed) = (budget.used(), updates.map(|updates| updates.streamed()));
            let answered =
                HostAnswer { extension, under, hook, call: record, answer, spent, streamed, reply };
            drop(inbox.send(SessionCommand::Answered(Box::new(answered))));
        });
    }

    /// Numbers a streamed call, so that a replay tells apart those that are under way at once.
    fn recorded_updates(&mut self, sink: Arc<dyn UpdateSink>) -> Arc<RecordedUpdates> {
        self.streamed_calls += 1;
        RecordedUpdates::new(sink, self.streamed_calls)
    }

    /// Refuses a call of a capability that the extension does not hold.
    fn may_call(&self, extension: &ExtensionRef, kind: HostCallKind) -> Result<(), Fault> {
        let grants = self.inner.grants_of(extension);
        self.inner.require(&grants, extension, kind.capability(), &format!("call `{kind}`"))
    }

    /// What is left for a host call under this frame. The model call by which an agent's code is asked is not one that it makes.
    fn left_for(&self, under: Seq) -> Limits {
        let by_code = u32::from(self.code_asked == Some(under));
        Limits { max_turns: self.session.model_calls_left(by_code), ..self.session.left() }
    }

    /// Why a hook may not make a call, if it may not.
    fn refuses_hook(&mut self, hook: Option<&HookId>, call: &HostCall) -> Option<Fault> {
        let hook = hook?;
        // Outside of a turn, where the registry is not known, the strictest rule counts.
        let point = self.pinned_registry().hook(hook).map_or(HookPoint::ToolGate, |entry| entry.spec.point);
        refuse_in_hook(call, point)
    }

    /// An extension that makes a host call in this session.
    fn caller(
        &self,
        extension: &Arc<ExtensionRef>,
        (under, hook): (Seq, Option<HookId>),
        budget: DelegatedBudget,
    ) -> Caller {
        let user = SessionUser { inbox: self.inbox.clone(), extension: extension.clone(), under, hook };
        Caller {
            grants: self.inner.grants_of(extension),
            extension: extension.clone(),
            session: Some(self.session.id().clone()),
            under: Some(under),
            budget: Some(budget),
            user: Some(user),
            updates: None,
        }
    }

    /// Records a host call and its answer, and then sends the answer.
    pub(super) fn answered(&mut self, answered: HostAnswer) {
        let HostAnswer { extension, under, hook, call, answer, spent, streamed, reply } = answered;
        let mut body = self.inner.host_called(&extension, hook, call, &answer);
        if let Body::HostCalled(fact) = &mut body {
            (fact.spent, fact.streamed) = (spent, streamed);
        }
        let input = self.fact(FrameSource::Extension(extension), Some(under), body);
        let recorded = self.step(input).map_err(|problem| problem.to_fault());
        drop(reply.send(recorded.and(answer)));
    }
}
