//! Host calls: what an extension may ask of the runtime in the middle of a call.
//!
//! [`Inner::serve`] is the dispatch: it checks that the [`Caller`] holds the capability of the [`HostCall`] and passes the call to the
//! module of that capability. Which calls exist, and which grant each needs, is the table in `holdfast_contract::host_call`. A privilege
//! is a grant, never an extension's id. Clock, random bytes, state, messages and questions to the user have frames of their own; the
//! session's actor serves those, and so do [`SystemHost`] outside a session as far as they exist there.

mod agents;
mod context;
pub(crate) mod discovery;
mod events;
mod extensions;
pub(crate) mod network;
mod results;
mod schedules;
pub mod secrets;
pub(crate) mod services;
pub(crate) mod setup;
mod system;

use std::sync::{Arc, Weak};

use holdfast_contract::body::Body;
use holdfast_contract::content::Content;
use holdfast_contract::frame::FrameSource;
use holdfast_contract::host_call::{
    CallRecord, Capability, GrantRule, HostCall, HostCallKind, InvalidCall, Redaction,
};
use holdfast_contract::ids::{HookId, Millis, Seq, StreamId};
use holdfast_contract::manifest::Grants;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::registry::ExtensionRef;
use holdfast_contract::session_frames::{HostCalled, SecretUsed};
use holdfast_contract::tool::ToolOutcome;
use holdfast_contract::wire::{Host, Later};
use holdfast_policy::GrantedAccess;
use tokio::sync::{mpsc, oneshot};

pub(crate) use self::extensions::content_of;
use crate::runtime::Inner;
use crate::session::SessionCommand;
use crate::usage::DelegatedBudget;

/// How long a host call may take that names no timeout of its own.
const CALL_TIMEOUT: Millis = Millis(60_000);

/// The lane whose extensions hold nothing that they were not granted.
const COMPONENT_LANE: &str = "wasm";

/// Who makes a host call.
pub(crate) struct Caller {
    /// The extension, with its generation.
    pub extension: Arc<ExtensionRef>,
    /// What it holds.
    pub grants: CallerGrants,
    /// The session that it is called in, if it is called in one.
    pub session: Option<StreamId>,
    /// The frame that caused the call.
    pub under: Option<Seq>,
    /// What its session may use, for agents that it invokes.
    pub budget: Option<DelegatedBudget>,
    /// Through whom the user can be asked, where one can.
    pub user: Option<Arc<dyn Host>>,
}

/// The capabilities that one activation holds.
pub(crate) struct CallerGrants {
    is_component: bool,
    granted: GrantedAccess,
}

impl CallerGrants {
    /// Whether the capability is held. Secrets and hosts are granted one by one, so their modules check each call.
    pub(crate) fn hold(&self, capability: Capability) -> bool {
        match capability.grant() {
            GrantRule::Everyone | GrantRule::EachSecret | GrantRule::EachHost => true,
            GrantRule::Components => !self.is_component || self.granted.interface(capability.name()),
            GrantRule::Explicit => self.granted.interface(capability.name()),
        }
    }
}

impl Caller {
    /// Refuses a call of a capability that the extension does not hold.
    pub(crate) fn require(&self, kind: HostCallKind) -> Result<(), Fault> {
        let capability = kind.capability();
        if self.grants.hold(capability) {
            return Ok(());
        }
        let id = &self.extension.id;
        let help = format!("`holdfast ext grant {id} --interface {capability}`");
        let message =
            format!("`{id}` may not call `{kind}`: the interface `{capability}` is not granted: {help}");
        Err(Fault::new(Code::ComponentImport, message))
    }
}

impl Inner {
    /// What an activation holds: what its manifest asks for and the user's policy gives, as discovery reported it.
    pub(crate) fn grants_of(&self, extension: &ExtensionRef) -> CallerGrants {
        let found = self.extensions.found(&extension.digest).unwrap_or_default();
        let granted = Grants { interfaces: found.interfaces, ..Grants::default() };
        CallerGrants { is_component: found.lane == COMPONENT_LANE, granted: GrantedAccess::of(&granted) }
    }

    /// Serves a host call that is recorded by its name.
    pub(crate) fn serve(
        self: &Arc<Self>,
        caller: Caller,
        call: HostCall,
        timeout: Option<Millis>,
    ) -> Later<Result<Content, Fault>> {
        if let Some(Err(fault)) = call.kind().map(|kind| caller.require(kind)) {
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
            HostCall::ContextEnrich(it) => self.context_enrich(&caller, it.read),
            HostCall::ScheduleNext(it) => ready(self.schedule_next(&it.read)),
            HostCall::ScheduleWait(it) => self.schedule_wait(it.read),
            HostCall::SecretReference(it) => self.secret_reference(&caller, it.read.0),
            HostCall::SecretGet(it) => self.secret_get(&caller, it.read.0),
            HostCall::SecretKeep(it) => self.secret_keep(&caller, it.read),
            HostCall::NetworkConnect(it) => self.network_connect(caller, it.read),
            // The outcome of a connection is a fact: it is recorded, and nothing else is done.
            HostCall::NetworkConnected(_) => ready(Ok(Content::default())),
            HostCall::SystemRestart(it) => ready(self.system_restart(&caller, it.read)),
            HostCall::SystemShutdown(it) => ready(self.system_shutdown(&caller, it.read)),
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
        HostCalled { extension: extension.id.clone(), hook, ask, arguments, outcome, spent: None }.into()
    }
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
    pub extension: Arc<ExtensionRef>,
    pub under: Seq,
    pub hook: Option<HookId>,
}

impl Host for SessionHost {
    fn call_within(&self, call: HostCall, timeout: Option<Millis>) -> Later<Result<Content, Fault>> {
        let (reply, answer) = oneshot::channel();
        let (extension, hook) = (self.extension.clone(), self.hook.clone());
        let command = SessionCommand::HostCall { extension, under: self.under, hook, call, timeout, reply };
        let sent = self.inbox.send(command);
        Box::pin(async move {
            let gone = || Fault::new(Code::SessionEnded, "the session has ended");
            sent.map_err(|_| gone())?;
            answer.await.map_err(|_| gone())?
        })
    }

    fn progress(&self, text: &str) {
        let (extension, text) = (self.extension.id.clone(), text.to_owned());
        // Nobody watches a session that has ended.
        let _ = self.inbox.send(SessionCommand::Progress { extension, under: self.under, text });
    }
}

/// The host of a call outside any session: a lifecycle step, a task, a service, a method for another extension.
pub(crate) struct SystemHost {
    inner: Weak<Inner>,
    extension: Arc<ExtensionRef>,
    /// The frame in the system stream that caused the call.
    under: Option<Seq>,
}

impl SystemHost {
    pub(crate) fn new(inner: &Arc<Inner>, extension: Arc<ExtensionRef>, under: Option<Seq>) -> Self {
        Self { inner: Arc::downgrade(inner), extension, under }
    }
}

impl Host for SystemHost {
    fn call_within(&self, call: HostCall, timeout: Option<Millis>) -> Later<Result<Content, Fault>> {
        let Some(inner) = self.inner.upgrade() else {
            return failed(Fault::new(Code::ExtensionFault, "the runtime has stopped"));
        };
        match call {
            HostCall::Clock => ready(Ok(Content::of(&inner.clock.now()))),
            HostCall::Random { bytes } => ready(Ok(Content::text(inner.entropy.draw_hex(bytes)))),
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
                let caller = Caller {
                    extension: extension.clone(),
                    grants,
                    session: None,
                    under,
                    budget: None,
                    user: None,
                };
                // Like the clock, a timer brings in nothing but the time, and a loop waits for ever.
                if matches!(call, HostCall::ScheduleWait(_)) {
                    return inner.serve(caller, call, timeout);
                }
                let record = call.record();
                let answer = inner.serve(caller, call, timeout);
                Box::pin(async move {
                    let answer = answer.await;
                    let body = inner.host_called(&extension, None, record, &answer);
                    inner.system.tell_of(FrameSource::Extension(extension), under, body);
                    answer
                })
            }
        }
    }
}
