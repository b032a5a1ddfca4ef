//! Host calls: what an extension may ask of the runtime in the middle of a call.
//!
//! [`Inner::serve`] is the dispatch: it checks that the [`Caller`] holds the capability of the [`HostCall`] and passes the call to the
//! module of that capability. Which calls exist, and which grant each needs, is the table in `holdfast_contract::host_call`. A privilege
//! is a grant, never an extension's id. Clock, random bytes, state, messages and questions to the user have frames of their own;
//! `session/host_calls.rs` serves those, and [`SystemHost`] outside a session as far as they exist there.

mod agents;
mod context;
pub(crate) mod discovery;
mod events;
mod extensions;
pub(crate) mod outside;
mod results;
mod schedules;
pub mod secrets;
pub(crate) mod services;
pub(crate) mod setup;
mod system;

use std::future::Future;
use std::sync::{Arc, Weak};

use holdfast_contract::body::Body;
use holdfast_contract::content::Content;
use holdfast_contract::frame::FrameSource;
use holdfast_contract::hook::HookPoint;
use holdfast_contract::host_call::topic::TopicRule;
use holdfast_contract::host_call::{
    CallRecord, Capability, GrantRule, HostCall, HostCallKind, InvalidCall, PROGRAM_START, Redaction,
};
use holdfast_contract::ids::{HookId, Millis, Seq, StreamId};
use holdfast_contract::manifest::{Grants, Profile};
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::registry::ExtensionRef;
use holdfast_contract::role::Role;
use holdfast_contract::session_frames::{HostCalled, SecretUsed, UiQuestion};
use holdfast_contract::system_frames::FoundExtension;
use holdfast_contract::tool::ToolOutcome;
use holdfast_contract::wire::{Host, Later, UpdateSink};
use holdfast_policy::HeldInterfaces;
use serde_json::json;
use tokio::sync::{mpsc, oneshot};

pub(crate) use self::extensions::content_of;
use self::outside::files::FileDeed;
use crate::messaging::{RecordedUpdates, unwanted};
use crate::runtime::Inner;
use crate::session::{ProgressOutput, SessionCommand, SessionHostCall};
use crate::usage::DelegatedBudget;

/// How long a host call may take that names no timeout of its own.
const CALL_TIMEOUT: Millis = Millis(60_000);

/// Who makes a host call.
#[derive(Clone)]
pub(crate) struct Caller {
    /// The extension, with its generation.
    pub extension: Arc<ExtensionRef>,
    /// What it holds.
    pub grants: HeldInterfaces,
    /// The session that it is called in, if it is called in one.
    pub session: Option<StreamId>,
    /// The frame that caused the call.
    pub under: Option<Seq>,
    /// What its session may use, for agents that it invokes.
    pub budget: Option<DelegatedBudget>,
    /// Through whom the user can be asked, where one can.
    pub user: Option<SessionUser>,
    /// Who is told what happens while the call is served, if anybody is.
    pub updates: Option<Arc<RecordedUpdates>>,
}

impl Caller {
    /// Refuses a call of a capability that the extension does not hold.
    pub(crate) fn require(&self, inner: &Inner, kind: HostCallKind) -> Result<(), Fault> {
        self.require_for(inner, kind.capability(), &format!("call `{kind}`"))
    }

    fn require_for(&self, inner: &Inner, capability: Capability, what: &str) -> Result<(), Fault> {
        inner.require(&self.grants, &self.extension, capability, what)
    }

    /// Refuses a topic of the program that the extension may not publish on or subscribe to.
    fn require_topic(&self, inner: &Inner, call: &HostCall) -> Result<(), Fault> {
        let (id, rule) = (&self.extension.id, call.topic_rule());
        let (what, topic) = match call {
            HostCall::EventPublish(it) => ("publish on", it.read.topic.as_str()),
            HostCall::EventSubscribe(it) => ("subscribe to", it.read.topic.as_str()),
            _ => return Ok(()),
        };
        let refused = |why: &str| {
            Err(Fault::new(Code::EventRefused, format!("`{id}` may not {what} `{topic}`: {why}")))
        };
        match rule {
            TopicRule::Open => Ok(()),
            TopicRule::Needs(capability) => self.require_for(inner, capability, &format!("{what} `{topic}`")),
            TopicRule::Channel if inner.has_role(&self.extension, Role::Channel) => Ok(()),
            TopicRule::Channel => refused("only an extension with the `channel` role brings users' messages"),
            TopicRule::Program => refused("only the program itself does"),
            TopicRule::TooWide => {
                refused("the pattern includes topics of the program; name each topic in full")
            }
        }
    }
}

impl Inner {
    /// Refuses what needs a capability that an extension does not hold.
    pub(crate) fn require(
        &self,
        grants: &HeldInterfaces,
        extension: &ExtensionRef,
        capability: Capability,
        what: &str,
    ) -> Result<(), Fault> {
        if grants.hold(capability) {
            return Ok(());
        }
        let why = match capability.grant() {
            GrantRule::Nobody => "no extension may, and it cannot be granted".to_owned(),
            _ => {
                let interfaces = vec![capability.name().to_owned()];
                let wanted = Grants { interfaces, ..Grants::default() };
                let help = self.how_to_grant(extension, &wanted, &format!("--interface {capability}"));
                format!("the interface `{capability}` is not granted: {help}")
            }
        };
        Err(Fault::new(Code::ComponentImport, format!("`{}` may not {what}: {why}", extension.id)))
    }

    /// What an activation holds: what its manifest asks for and the user's policy gives, as discovery reported it.
    pub(crate) fn grants_of(&self, extension: &ExtensionRef) -> HeldInterfaces {
        let found = self.extensions.found(&extension.digest).unwrap_or_default();
        self.held_by(&found)
    }

    /// What an extension holds, as discovery reported it. Without a readable policy the narrowest profile counts.
    pub(crate) fn held_by(&self, found: &FoundExtension) -> HeldInterfaces {
        let profile = self.policy_in_force().map_or(Profile::Safe, |policy| policy.profile_name());
        HeldInterfaces::new(&found.lane, profile, found.interfaces.clone())
    }

    fn has_role(&self, extension: &ExtensionRef, role: Role) -> bool {
        self.extensions.instance(extension).is_ok_and(|it| it.capabilities().roles.contains(role))
    }

    /// Counts a host call that is recorded, whatever its answer is. One of too many is refused.
    pub(crate) fn admit(&self, extension: &ExtensionRef, call: &HostCall) -> Result<(), Fault> {
        self.calls.host_rates.admit(&extension.id, call, self.clock.steady())
    }

    /// Serves a host call that is recorded by its name.
    pub(crate) fn serve(
        self: &Arc<Self>,
        caller: Caller,
        call: HostCall,
        timeout: Option<Millis>,
    ) -> Later<Result<Content, Fault>> {
        if let Some(Err(fault)) = call.kind().map(|kind| caller.require(self, kind)) {
            return failed(fault);
        }
        if let Err(fault) = caller.require_topic(self, &call) {
            return failed(fault);
        }
        let within = timeout.unwrap_or(CALL_TIMEOUT);
        match call {
            HostCall::ApiCall(it) => self.api_call(caller, it.read, within),
            HostCall::ServiceGet(it) => self.service_get(&caller, it.read, within),
            HostCall::ServiceCall(it) => self.service_call(&caller, it.read, within),
            HostCall::EventPublish(it) => self.event_publish(&caller, it.read),
            HostCall::EventSubscribe(it) => self.event_subscribe(caller, it.read, true),
            HostCall::EventUnsubscribe(it) => self.event_subscribe(caller, it.read, false),
            HostCall::UserNotify(it) => self.user_notify(&caller, it.read),
            HostCall::ChannelList(_) => ready(Ok(self.channels())),
            HostCall::AgentTask(it) => self.agent_task(&caller, it.read),
            HostCall::AgentBackground(it) => self.agent_background(&caller, it.read),
            HostCall::AgentInvoke(it) => self.agent_invoke(caller, it.read, timeout),
            HostCall::ToolInvoke(it) => self.tool_invoke(caller, it.read, timeout),
            HostCall::ModelInvoke(it) => self.model_invoke(caller, it.read, timeout),
            HostCall::AgentList(_) => ready(Ok(self.agent_list())),
            HostCall::AgentDescribe(it) => ready(self.agent_describe(&caller, &it.read)),
            HostCall::ContextEnrich(it) => self.context_enrich(&caller, it.read),
            HostCall::ThreadList(it) => self.thread_list(it.read),
            HostCall::ThreadUpdate(it) => self.thread_update(it.read),
            HostCall::ThreadHistory(it) => self.thread_history(it.read.0),
            HostCall::ProjectList(_) => self.project_list(),
            HostCall::ProjectUpdate(it) => self.project_update(it.read),
            HostCall::ProjectRemove(it) => self.project_remove(it.read.0),
            HostCall::ScheduleNext(it) => ready(self.schedule_next(&it.read)),
            HostCall::ScheduleWait(it) => self.schedule_wait(it.read),
            HostCall::SecretReference(it) => self.secret_reference(caller, it.read.0),
            HostCall::SecretGet(it) => self.secret_get(caller, it.read.0),
            HostCall::SecretKeep(it) => self.secret_keep(&caller, it.read),
            HostCall::NetworkConnect(it) => self.network_connect(caller, it.read),
            // The outcome of a connection is a fact: it is recorded, and nothing else is done.
            HostCall::NetworkConnected(_) => ready(Ok(Content::default())),
            HostCall::NetworkListen(it) => self.network_listen(caller, it.read),
            HostCall::HttpRequest(it) => self.http_request(caller, it.read, timeout),
            HostCall::FileRead(it) => self.file(&caller, it.read, FileDeed::Read),
            HostCall::FileList(it) => self.file(&caller, it.read, FileDeed::List),
            HostCall::FileStat(it) => self.file(&caller, it.read, FileDeed::Stat),
            HostCall::FileWrite(it) => self.file_write(&caller, it.read),
            HostCall::FileRemove(it) => self.file(&caller, it.read, FileDeed::Remove),
            HostCall::FileMakeFolder(it) => self.file(&caller, it.read, FileDeed::MakeFolder),
            HostCall::EnvironmentGet(it) => ready(self.environment_get(&caller, &it.read.0)),
            HostCall::SystemRestart(it) => ready(self.system_restart(&caller, it.read)),
            HostCall::SystemShutdown(_) => ready(Err(shutdown_refused(&caller.extension))),
            HostCall::ResultRead(it) => self.result_read(&caller, it.read),
            HostCall::SetupOpen(_) => self.setup_open(),
            HostCall::SetupShow(it) => self.setup_show(it.read),
            HostCall::SetupApply(it) => self.setup_apply(it.read),
            HostCall::ExtensionDoctor(it) => self.extension_doctor(it.read),
            HostCall::Invalid(invalid) => failed(refusal(&invalid)),
            HostCall::Clock
            | HostCall::Random { .. }
            | HostCall::StateGet { .. }
            | HostCall::StateSet { .. }
            | HostCall::Inject { .. }
            | HostCall::Ui(_)
            | HostCall::ToolsFind(_)
            | HostCall::CapabilitiesList(_) => {
                let message = format!("`{}` can only be called in a session", call.name());
                failed(Fault::new(Code::ExtensionFault, message))
            }
        }
    }

    /// Records and reports that an extension makes too many host calls outside of a session. Most of them leave nothing behind.
    fn flooded(
        &self,
        extension: &Arc<ExtensionRef>,
        under: Option<Seq>,
        call: &HostCall,
        fault: Fault,
    ) -> Fault {
        if self.calls.host_rates.reports(&extension.id, self.clock.steady()) {
            self.announce_flood(extension, &fault);
            let body = self.host_called(extension, None, call.record_of_refusal(), &Err(fault.clone()));
            self.system.tell_of(FrameSource::Extension(extension.clone()), under, body);
        }
        fault
    }

    /// The fact that records a host call and its answer. Of a secret it has a keyed digest.
    pub(crate) fn host_called(
        &self,
        extension: &ExtensionRef,
        hook: Option<HookId>,
        call: CallRecord,
        answer: &Result<Content, Fault>,
    ) -> Body {
        let CallRecord { kind, name: ask, arguments } = call;
        let is_secret = kind.is_some_and(|kind| kind.redaction() == Redaction::Answer);
        if let (true, Ok(value), Some(secrets)) = (is_secret, answer, self.home.secrets()) {
            let name = arguments.to_text();
            let keyed_digest = secrets.digest(&name, value);
            return SecretUsed { extension: extension.id.clone(), name, keyed_digest }.into();
        }
        let outcome = ToolOutcome::from(answer.clone());
        let (spent, streamed) = (None, None);
        HostCalled { extension: extension.id.clone(), hook, ask, arguments, outcome, spent, streamed }.into()
    }
}

/// Whether a call is answered in a session of its own, and can be followed meanwhile.
pub(crate) fn is_invocation(call: &HostCall) -> bool {
    matches!(call, HostCall::AgentInvoke(_) | HostCall::ToolInvoke(_) | HostCall::ModelInvoke(_))
}

/// Serves a call whether or not somebody waits for it at the moment: an extension can follow several. It ends when nobody can any more.
fn by_itself(
    answer: impl Future<Output = Result<Content, Fault>> + Send + 'static,
) -> Later<Result<Content, Fault>> {
    let (mut reply, answered) = oneshot::channel();
    tokio::spawn(async move {
        let answer = tokio::select! {
            biased;
            answer = answer => answer,
            () = reply.closed() => Err(unwanted()),
        };
        // The receiver is gone if the extension has stopped waiting.
        let _ = reply.send(answer);
    });
    let gone = |_| Fault::new(Code::ExtensionFault, "the runtime has stopped");
    Box::pin(async move { answered.await.map_err(gone)? })
}

/// What no extension may do, whatever it was granted. The table has no grant for it, so that this is never reached.
fn shutdown_refused(extension: &ExtensionRef) -> Fault {
    Fault::new(Code::ComponentImport, format!("`{}` may not stop the process", extension.id))
}

/// Why an invalid call is refused.
fn refusal(call: &InvalidCall) -> Fault {
    let message = format!("invalid host call `{}`: {}", call.name, call.reason);
    Fault::new(Code::ExtensionFault, message)
}

fn ready(answer: Result<Content, Fault>) -> Later<Result<Content, Fault>> {
    Box::pin(std::future::ready(answer))
}

pub(crate) fn failed<T: Send + 'static>(fault: Fault) -> Later<Result<T, Fault>> {
    Box::pin(std::future::ready(Err(fault)))
}

/// The host of one call within a session. The session's actor serves and records.
pub(crate) struct SessionHost {
    pub inbox: mpsc::UnboundedSender<SessionCommand>,
    pub progress: Arc<ProgressOutput>,
    pub extension: Arc<ExtensionRef>,
    pub under: Seq,
    pub hook: Option<HookId>,
}

impl SessionHost {
    fn send(
        &self,
        call: HostCall,
        timeout: Option<Millis>,
        updates: Option<Arc<dyn UpdateSink>>,
    ) -> Later<Result<Content, Fault>> {
        let (reply, answer) = oneshot::channel();
        let (extension, under, hook) = (self.extension.clone(), self.under, self.hook.clone());
        let call = SessionHostCall { extension, under, hook, call, timeout, updates, reply };
        let command = SessionCommand::HostCall(Box::new(call));
        let sent = self.inbox.send(command);
        Box::pin(async move {
            let gone = || Fault::new(Code::SessionEnded, "the session has ended");
            sent.map_err(|_| gone())?;
            answer.await.map_err(|_| gone())?
        })
    }
}

impl Host for SessionHost {
    fn call_within(&self, call: HostCall, timeout: Option<Millis>) -> Later<Result<Content, Fault>> {
        self.send(call, timeout, None)
    }

    fn call_streamed(
        &self,
        call: HostCall,
        timeout: Option<Millis>,
        updates: Arc<dyn UpdateSink>,
    ) -> Later<Result<Content, Fault>> {
        self.send(call, timeout, Some(updates))
    }

    fn progress(&self, text: &str) {
        self.progress.show(&self.extension.id, self.under, text);
    }
}

/// The user of a session, as the host asks them about what an extension wants to do. The extension needs no grant for that.
#[derive(Clone)]
pub(crate) struct SessionUser {
    pub inbox: mpsc::UnboundedSender<SessionCommand>,
    pub extension: Arc<ExtensionRef>,
    pub under: Seq,
    pub hook: Option<HookId>,
}

impl SessionUser {
    /// Asks a question; nothing is the answer where there is none.
    pub(crate) async fn ask(&self, question: UiQuestion) -> Result<Content, Fault> {
        let (reply, answer) = oneshot::channel();
        let (extension, under, hook) = (self.extension.clone(), self.under, self.hook.clone());
        let gone = || Fault::new(Code::SessionEnded, "the session has ended");
        let asked = SessionCommand::Question { extension, under, hook, question, reply };
        self.inbox.send(asked).map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }
}

/// The host of a call outside any session: a lifecycle step, a task, a service, a method for another extension.
pub(crate) struct SystemHost {
    inner: Weak<Inner>,
    extension: Arc<ExtensionRef>,
    /// The frame in the system stream that caused the call.
    under: Option<Seq>,
    /// What is called, if it may have no side effects.
    restricted: Option<Restricted>,
}

/// What is called and may have no side effects.
#[derive(Clone, Copy)]
enum Restricted {
    /// A hook at this point.
    Hook(HookPoint),
    Renderer,
}

impl SystemHost {
    pub(crate) fn new(inner: &Arc<Inner>, extension: Arc<ExtensionRef>, under: Option<Seq>) -> Self {
        Self { inner: Arc::downgrade(inner), extension, under, restricted: None }
    }

    /// The same, for a hook that is called outside of a session.
    pub(crate) fn for_hook(self, point: HookPoint) -> Self {
        Self { restricted: Some(Restricted::Hook(point)), ..self }
    }

    /// The same, for a renderer.
    pub(crate) fn for_renderer(self) -> Self {
        Self { restricted: Some(Restricted::Renderer), ..self }
    }

    /// Why a call is refused, if what makes it may have no side effects.
    fn refusal(&self, call: &HostCall) -> Option<Fault> {
        match self.restricted? {
            Restricted::Hook(point) => refuse_in_hook(call, point),
            Restricted::Renderer => refuse_side_effect(call, HookPoint::ToolAfter, "a renderer"),
        }
    }
}

/// Why a hook at this point may not make a host call, if it may not.
pub(crate) fn refuse_in_hook(call: &HostCall, point: HookPoint) -> Option<Fault> {
    refuse_side_effect(call, point, "a hook")
}

fn refuse_side_effect(call: &HostCall, point: HookPoint, who: &str) -> Option<Fault> {
    let refused = match call.kind() {
        Some(kind) => !kind.is_for_hooks(point),
        None => call.name() == PROGRAM_START,
    };
    let message = || format!("{who} may not call `{}`", call.name());
    refused.then(|| Fault::new(Code::HookSideEffect, message()))
}

impl Host for SystemHost {
    fn call_within(&self, call: HostCall, timeout: Option<Millis>) -> Later<Result<Content, Fault>> {
        self.answer(call, timeout, None)
    }

    fn call_streamed(
        &self,
        call: HostCall,
        timeout: Option<Millis>,
        updates: Arc<dyn UpdateSink>,
    ) -> Later<Result<Content, Fault>> {
        self.answer(call, timeout, Some(updates))
    }
}

impl SystemHost {
    fn answer(
        &self,
        call: HostCall,
        timeout: Option<Millis>,
        updates: Option<Arc<dyn UpdateSink>>,
    ) -> Later<Result<Content, Fault>> {
        let Some(inner) = self.inner.upgrade() else {
            return failed(Fault::new(Code::ExtensionFault, "the runtime has stopped"));
        };
        match call {
            // Not recorded: a loop reads it as often as it likes, and nothing of it is replayed.
            HostCall::Clock => ready(Ok(Content::of(&inner.clock.now()))),
            HostCall::StateGet { .. }
            | HostCall::StateSet { .. }
            | HostCall::Inject { .. }
            | HostCall::Ui(_) => {
                let message = "a call outside any session has no conversation, no state and no user";
                failed(Fault::new(Code::ExtensionFault, message))
            }
            call => {
                let (extension, under) = (self.extension.clone(), self.under);
                let grants = inner.grants_of(&extension);
                let updates =
                    updates.filter(|_| is_invocation(&call)).map(|sink| RecordedUpdates::new(sink, 0));
                let caller = Caller {
                    extension: extension.clone(),
                    grants,
                    session: None,
                    under,
                    budget: None,
                    user: None,
                    updates: updates.clone(),
                };
                // Like the clock, a timer brings in nothing but the time, and a loop waits for ever.
                if matches!(call, HostCall::ScheduleWait(_)) && self.restricted.is_none() {
                    return inner.serve(caller, call, timeout);
                }
                if let Err(fault) = inner.admit(&extension, &call) {
                    return failed(inner.flooded(&extension, under, &call, fault));
                }
                let random = match &call {
                    HostCall::Random { bytes } => Some(*bytes),
                    _ => None,
                };
                let arguments = random.map(|bytes| Content::new(json!({ "bytes": bytes })));
                let record = call.record();
                let record = CallRecord { arguments: arguments.unwrap_or(record.arguments), ..record };
                let is_streamed = updates.is_some();
                let refusal = self.refusal(&call);
                let answer = match (refusal, random) {
                    (Some(refusal), _) => failed(refusal),
                    (None, Some(bytes)) => ready(Ok(Content::text(inner.entropy.draw_hex(bytes)))),
                    (None, None) => inner.serve(caller, call, timeout),
                };
                let answer = async move {
                    let answer = match &updates {
                        None => answer.await,
                        Some(updates) => updates.wanted(answer).await,
                    };
                    let mut body = inner.host_called(&extension, None, record, &answer);
                    if let Body::HostCalled(fact) = &mut body {
                        fact.streamed = updates.map(|updates| updates.streamed());
                    }
                    inner.system.tell_of(FrameSource::Extension(extension), under, body);
                    answer
                };
                if is_streamed { by_itself(answer) } else { Box::pin(answer) }
            }
        }
    }
}
