//! What extensions may ask for that lies outside their call: other extensions, events, the user, the agent, secrets. Each ask has a
//! name, and this is where it is answered. Ask and answer are recorded where the call is: in its session, or in the system stream.

use std::sync::Arc;

use holdfast_bus::NewEvent;
use holdfast_bus::topics::USER_NOTIFY;
use holdfast_contract::body::Body;
use holdfast_contract::content::Content;
use holdfast_contract::ids::{ExtensionId, HookId, Millis, Seq, StreamId};
use holdfast_contract::problem::{Code, Fault, Problem};
use holdfast_contract::registry::ExtensionRef;
use holdfast_contract::session_frames::{HostCalled, SecretUsed};
use holdfast_contract::tool::ToolOutcome;
use holdfast_contract::wire::{Call, Host, Later, Reply};
use holdfast_kernel::registry::RESULTS;
use holdfast_schedules::{Timetable, Zone};
use holdfast_secrets::{ExposeSecret, FoundSecret, SecretName, SecretString};
use serde::Deserialize;
use serde_json::Value;

use crate::calls::{start_call, wait_timeout};
use crate::host::SystemHost;
use crate::messaging::{ASKS, UserNotice};
use crate::network;
use crate::parts::SessionEvent;
use crate::runtime::{Inner, ShutdownRequest};
use crate::setup::reference;
use crate::shared;
use crate::system::MAX_SLEEP;
use crate::usage::DelegatedBudget;

/// How long an ask may take that names no time of its own.
const ASK_TIMEOUT: Millis = Millis(60_000);

/// What waits for a moment.
pub(crate) const SCHEDULE_WAIT: &str = "schedule.wait";

/// The built-in extension that sets others up.
const SETUP: &str = "setup";

/// Who asks.
pub(crate) struct Caller {
    /// The extension.
    pub extension: Arc<ExtensionRef>,
    /// The session that it is called in, if it is called in one.
    pub session: Option<StreamId>,
    /// The frame that the call came of.
    pub under: Option<Seq>,
    /// What its session may use, for agents that it asks.
    pub budget: Option<DelegatedBudget>,
    /// Through whom the user can be asked, where one can.
    pub user: Option<Arc<dyn Host>>,
}

/// `api.call`
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ApiCall {
    extension: ExtensionId,
    method: String,
    #[serde(default)]
    arguments: Value,
}

/// `schedule.next`
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScheduleNext {
    #[serde(default)]
    when: Option<String>,
    #[serde(default, rename = "in")]
    span: Option<String>,
    #[serde(default)]
    timezone: Option<String>,
}

/// `schedule.wait`
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScheduleWait {
    until: Millis,
}

/// `extension.doctor`
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExtensionDoctor {
    /// All, if none is named.
    #[serde(default)]
    extension: Option<ExtensionId>,
}

/// `system.restart` and `system.shutdown`
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct SystemRequest {
    #[serde(default)]
    reason: Option<String>,
}

/// `secret.keep`
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SecretKeep {
    name: String,
    value: String,
}

/// `setup.apply`
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SetupApply {
    extension: ExtensionId,
    name: String,
    value: Value,
}

impl Caller {
    /// Whether it is the built-in extension that sets others up. No folder may take a built-in extension's id.
    fn is_setup(&self) -> bool {
        self.extension.id.as_str() == SETUP
    }
}

impl Inner {
    /// Answers what an extension asks for by name.
    pub(crate) fn serve(
        self: &Arc<Self>,
        asker: Caller,
        name: &str,
        arguments: &Content,
        timeout: Option<Millis>,
    ) -> Later<Result<Content, Fault>> {
        if ASKS.contains(&name) {
            return self.serve_living(asker, name, arguments, timeout);
        }
        let timeout = timeout.unwrap_or(ASK_TIMEOUT);
        if shared::ASKS.contains(&name) {
            return self.serve_shared(&asker, name, arguments, timeout);
        }
        if network::ASKS.contains(&name) {
            return self.serve_network(asker, name, arguments);
        }
        match name {
            "api.call" => match read(name, arguments) {
                Ok(call) => self.api_call(asker, call, timeout),
                Err(fault) => failed(fault),
            },
            "channel.list" => Box::pin(std::future::ready(Ok(self.channels()))),
            "context.enrich" => match read(name, arguments) {
                Ok(asked) => self.enrich(&asker, asked),
                Err(fault) => failed(fault),
            },
            "result.read" if asker.extension.id.as_str() == RESULTS => {
                match (read(name, arguments), asker.session) {
                    (Ok(asked), Some(session)) => self.read_result(session, asked),
                    (Ok(_), None) => {
                        failed(Fault::new(Code::ResultUnknown, "results are those of a session"))
                    }
                    (Err(fault), _) => failed(fault),
                }
            }
            "system.restart" | "system.shutdown" => {
                let asked = read(name, arguments).and_then(|asked| self.want_it(&asker, name, asked));
                Box::pin(std::future::ready(asked))
            }
            "extension.doctor" if asker.is_setup() => match read(name, arguments) {
                Ok(ExtensionDoctor { extension }) => {
                    let inner = self.clone();
                    Box::pin(async move {
                        let told = inner.troubles(extension.as_ref());
                        told.map(|told| Content::of(&told)).map_err(|problem| problem.to_fault())
                    })
                }
                Err(fault) => failed(fault),
            },
            "schedule.next" => {
                let next =
                    read(name, arguments).and_then(|asked| self.next_due(&asked).map_err(|it| it.to_fault()));
                Box::pin(std::future::ready(next))
            }
            SCHEDULE_WAIT => match read(name, arguments) {
                Ok(ScheduleWait { until }) => self.wait_until(until),
                Err(fault) => failed(fault),
            },
            "secret.reference" => self.secret_reference(&asker, arguments.to_text()),
            "secret.get" => self.secret_get(&asker, arguments.to_text()),
            "secret.keep" => match read(name, arguments) {
                Ok(keep) => self.secret_keep(&asker, keep),
                Err(fault) => failed(fault),
            },
            "setup.open" if asker.is_setup() => {
                let inner = self.clone();
                Box::pin(async move { Ok(Content::of(&*inner.not_set_up().await)) })
            }
            "setup.apply" if asker.is_setup() => match read::<SetupApply>(name, arguments) {
                Ok(SetupApply { extension, name, value }) => {
                    let inner = self.clone();
                    Box::pin(async move {
                        let state = inner.configure(&extension, &name, value).await;
                        state.map(|state| Content::of(&state)).map_err(|problem| problem.to_fault())
                    })
                }
                Err(fault) => failed(fault),
            },
            "setup.show" if asker.is_setup() => {
                let (inner, id) = (self.clone(), ExtensionId::from(arguments.to_text().as_str()));
                Box::pin(async move {
                    let state = inner.setup(&id).await;
                    state.map(|state| Content::of(&state)).map_err(|problem| problem.to_fault())
                })
            }
            _ => {
                let message = format!("the host has nothing called `{name}` for `{}`", asker.extension.id);
                failed(Fault::new(Code::ExtensionFault, message))
            }
        }
    }

    /// Asks whoever owns the process to restart or to stop it.
    fn want_it(&self, asker: &Caller, name: &str, asked: Option<SystemRequest>) -> Result<Content, Fault> {
        if self.shutdown.receiver_count() == 0 {
            let message =
                "nobody here can do that: the home is not up, only in use. `holdfast up` brings it up";
            return Err(Fault::new(Code::ToolFailed, message));
        }
        let reason = match asked.unwrap_or_default().reason {
            Some(why) => format!("`{}` asked for it: {why}", asker.extension.id),
            None => format!("`{}` asked for it", asker.extension.id),
        };
        self.shutdown.send_replace(match name {
            "system.restart" => ShutdownRequest::Restart(reason),
            _ => ShutdownRequest::Stop(reason),
        });
        Ok(Content::default())
    }

    /// When something is next due.
    fn next_due(&self, asked: &ScheduleNext) -> Result<Content, Problem> {
        let now = self.clock.now();
        let zone = match &asked.timezone {
            Some(name) => Zone::named(name)?,
            None => self.home.zone().clone(),
        };
        let next = match (&asked.when, &asked.span) {
            (Some(when), None) => Timetable::parse(when, &zone)?.next_after(now),
            // Counted from the beginning of time, the first repetition comes after one span.
            (None, Some(span)) => {
                let every = Timetable::parse(&format!("every {span}"), &zone)?;
                every.next_after(Millis(0)).map(|span| now.plus(span))
            }
            _ => return Err(Problem::new(Code::ToolArguments, "name one of `when` and `in`")),
        };
        Ok(Content::new(serde_json::json!({ "next": next, "now": now })))
    }

    /// Waits for a moment. The clock may be set meanwhile, so it is looked at now and then.
    fn wait_until(self: &Arc<Self>, until: Millis) -> Later<Result<Content, Fault>> {
        let clock = self.clock.clone();
        Box::pin(async move {
            while clock.now() < until {
                clock.sleep(until.since(clock.now()).min(MAX_SLEEP)).await;
            }
            Ok(Content::of(&clock.now()))
        })
    }

    /// What stands for a secret that an extension may have.
    fn secret_reference(self: &Arc<Self>, asker: &Caller, name: String) -> Later<Result<Content, Fault>> {
        let (id, found) = (asker.extension.id.clone(), self.find_secret(asker, name.clone()));
        Box::pin(async move { found.await.map(|_| Content::text(reference(&id, &name))) })
    }

    /// A secret that an extension may have. Its value goes to the extension, and nowhere else.
    fn secret_get(self: &Arc<Self>, asker: &Caller, name: String) -> Later<Result<Content, Fault>> {
        let found = self.find_secret(asker, name);
        Box::pin(async move { Ok(Content::text(found.await?.value.expose_secret())) })
    }

    /// An extension's own secret, or one for all that it is granted.
    fn find_secret(self: &Arc<Self>, asker: &Caller, name: String) -> Later<Result<FoundSecret, Fault>> {
        let id = asker.extension.id.clone();
        let granted =
            self.extensions.found(&asker.extension.digest).is_some_and(|found| found.secrets.contains(&name));
        let Some(secrets) = self.home.secrets().cloned() else {
            return failed(Fault::new(Code::SecretMissing, "this system keeps no secrets"));
        };
        Box::pin(async move {
            let (owner, asked) = (id.clone(), name.clone());
            let found = secrets.on_thread(move |secrets| secrets.find_for(&owner, &asked)).await;
            match found.map_err(|problem| problem.to_fault())? {
                Some(found) if granted || found.name.extension() == Some(&id) => Ok(found),
                Some(_) => {
                    let help = format!("`holdfast ext grant {id} --secret {name}`");
                    Err(Fault::new(Code::ToolDenied, format!("the secret `{name}` is not granted: {help}")))
                }
                None => {
                    let help = format!("`holdfast setup {id}` asks for what is missing.");
                    Err(Fault::new(Code::SecretMissing, format!("there is no secret `{name}`. {help}")))
                }
            }
        })
    }

    /// Keeps a secret: an extension's own, or any for the extension that sets others up.
    fn secret_keep(self: &Arc<Self>, asker: &Caller, keep: SecretKeep) -> Later<Result<Content, Fault>> {
        let SecretKeep { name, value } = keep;
        let named = match asker.is_setup() {
            true => match name.split_once('.') {
                Some((extension, name)) => SecretName::own(&extension.into(), name),
                None => SecretName::global(&name),
            },
            false => SecretName::own(&asker.extension.id, &name),
        };
        let inner = self.clone();
        Box::pin(async move {
            let kept = inner.keep_secret(named.map_err(|it| it.to_fault())?, SecretString::from(value)).await;
            kept.map(|()| Content::default()).map_err(|problem| problem.to_fault())
        })
    }

    /// The fact that tells of an ask and its answer. Of a secret it tells a digest, and of what is kept only the name.
    pub(crate) fn asked(
        &self,
        extension: &ExtensionRef,
        hook: Option<HookId>,
        (ask, arguments): (String, Content),
        answer: &Result<Content, Fault>,
    ) -> Body {
        if let ("secret.get", Ok(value), Some(secrets)) = (ask.as_str(), answer, self.home.secrets()) {
            let name = arguments.to_text();
            let keyed_digest = secrets.digest(&name, value);
            return SecretUsed { extension: extension.id.clone(), name, keyed_digest }.into();
        }
        let arguments = match (ask.as_str(), arguments.value().and_then(Value::as_object)) {
            ("secret.keep" | "setup.apply", Some(fields)) => {
                let shown = fields.iter().filter(|(name, _)| *name != "value");
                Content::new(shown.map(|(name, value)| (name.clone(), value.clone())).collect())
            }
            _ => arguments,
        };
        let outcome = ToolOutcome::from(answer.clone());
        HostCalled { extension: extension.id.clone(), hook, ask, arguments, outcome, spent: None }.into()
    }

    /// Tells the user something that came of no conversation: on the default channel, or where the program is watched if there is
    /// none. The same key is told once.
    pub(crate) async fn notify_user(&self, extension: ExtensionId, text: &str, key: String) {
        let text = self.home.hide_in_text(text.to_owned());
        if self.default_channel().is_ok() {
            let notice = UserNotice { text: text.clone(), channel_id: None, user_id: None };
            let event = NewEvent::new(USER_NOTIFY, Content::of(&notice)).idempotency(key);
            if self.publish(event).await.is_ok() {
                return;
            }
        }
        self.surface.show(&StreamId::system(), SessionEvent::Notice { extension, text });
    }

    /// Refuses an extension that reaches for another without having said that it depends on it.
    pub(crate) fn must_depend(&self, extension: &ExtensionRef, other: &ExtensionId) -> Result<(), Fault> {
        if self.extensions.depends_on(extension, other) {
            return Ok(());
        }
        let message = format!("`{}` does not depend on `{other}`", extension.id);
        let help = format!("List `{other}` under `depends_on` in its manifest.");
        Err(Fault::new(Code::ExtensionDependency, format!("{message}. {help}")))
    }

    /// Calls a method of another extension: of whichever generation serves now, so that a reload leaves nobody behind.
    fn api_call(
        self: &Arc<Self>,
        asker: Caller,
        call: ApiCall,
        timeout: Millis,
    ) -> Later<Result<Content, Fault>> {
        let ApiCall { extension, method, arguments } = call;
        if let Err(fault) = self.must_depend(&asker.extension, &extension) {
            return failed(fault);
        }
        if method.starts_with(shared::RESERVED) {
            let message =
                format!("`{method}` is the host's to call: ask for `service.get` and `service.call`");
            return failed(Fault::new(Code::ToolDenied, message));
        }
        let (inner, arguments) = (self.clone(), Content::new(arguments));
        let comes_up = asker.session.is_none();
        Box::pin(async move {
            if comes_up {
                // What it depends on may come up at the same time.
                let inactive = || Fault::new(Code::ExtensionUnknown, format!("`{extension}` is not active"));
                inner.soon(|inner| inner.extensions.active(&extension).ok_or_else(inactive)).await?;
            }
            let (serving, _guard) = inner.extensions.enter(&extension, timeout).await?;
            let instance = inner.extensions.instance(&serving)?;
            let host = Arc::new(SystemHost::new(&inner, serving, None));
            let made = start_call(&instance, Call::Api { method: method.clone(), arguments }, host);
            let reply = wait_timeout(made, timeout, Code::ExtensionFault, inner.clock.clone()).await?;
            content_of(reply, &extension, &method)
        })
    }
}

/// What an extension has to say when it is called by a function's name.
pub(crate) fn content_of(reply: Reply, id: &ExtensionId, function: &str) -> Result<Content, Fault> {
    match reply {
        Reply::Content(content) => Ok(content),
        Reply::Done => Ok(Content::default()),
        other => {
            let message = format!("`{id}` answered `{function}` with {other:?}");
            Err(Fault::new(Code::ExtensionFault, message))
        }
    }
}

/// The arguments of an ask.
pub(crate) fn read<T: for<'a> Deserialize<'a>>(name: &str, arguments: &Content) -> Result<T, Fault> {
    let value = arguments.value().cloned().unwrap_or_default();
    serde_json::from_value(value).map_err(|error| {
        Fault::new(
            Code::ExtensionFault,
            format!("`{name}` was asked for in a way that makes no sense: {error}"),
        )
    })
}

pub(crate) fn failed<T: Send + 'static>(fault: Fault) -> Later<Result<T, Fault>> {
    Box::pin(std::future::ready(Err(fault)))
}
