//! What the runtime holds of an extension that is a process. The process is started when it is loaded, and again, where it has no life
//! of its own, at the first call after it has ended.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use holdfast_contract::content::Content;
use holdfast_contract::log::LogSink;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::protocol::{
    Hello, HookRequest, PROTOCOL, ToExtension, ToolRequest, Verdict, Welcome, plain,
};
use holdfast_contract::registry::Descriptor;
use holdfast_contract::role::Role;
use holdfast_contract::system_frames::LifecycleCommand;
use holdfast_contract::wire::{Ask, Bundle, Call, Host, Instance, Later, Reply};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::connection::{LINE_BYTES, Terms};
use crate::folder::Plan;
use crate::process::Process;

/// How long a process may take to say what it is.
const GREETING: Duration = Duration::from_secs(20);
/// How long a process that nobody calls is kept.
const IDLE: Duration = Duration::from_secs(60);

/// An extension that is a process.
pub(crate) struct Extension(Arc<Inner>);

struct Inner {
    plan: Plan,
    hello: ToExtension,
    terms: Terms,
    welcome: Welcome,
    descriptors: Vec<Descriptor>,
    live: Mutex<Option<Arc<Process>>>,
    /// When it was called last.
    used: std::sync::Mutex<Instant>,
}

impl Extension {
    /// Starts the process and asks what it is.
    pub(crate) async fn load(plan: Plan, bundle: Bundle, log: Option<LogSink>) -> Result<Self, Fault> {
        let hello = ToExtension::Hello(Hello {
            protocol: PROTOCOL.to_owned(),
            id: plan.id.clone(),
            version: plan.version.clone(),
            config: plain(&bundle.config).as_object().cloned().unwrap_or_default(),
            data_dir: plan.data.display().to_string(),
            line_bytes: LINE_BYTES as u64,
        });
        let budgets = bundle.budgets;
        let terms =
            Terms { id: plan.id.clone(), log, host_calls: budgets.host_calls, log_bytes: budgets.log_bytes };
        let (process, welcome) = greet(&plan, &hello, &terms).await?;
        let descriptors = welcome.exports().descriptors(&plan.manifest)?;
        let live = Mutex::new(Some(Arc::new(process)));
        let used = std::sync::Mutex::new(Instant::now());
        let inner = Arc::new(Inner { plan, hello, terms, welcome, descriptors, live, used });
        inner.watch();
        Ok(Self(inner))
    }
}

async fn greet(plan: &Plan, hello: &ToExtension, terms: &Terms) -> Result<(Process, Welcome), Fault> {
    let process = Process::start(plan, terms.clone()).await?;
    let answer = tokio::time::timeout(GREETING, process.request(hello, Arc::new(Nobody))).await;
    let late = |_| {
        let message = format!("the process did not answer `hello` within {} s", GREETING.as_secs());
        Fault::new(Code::ExtensionFault, message)
    };
    let welcome: Welcome = read(answer.map_err(late)??, "hello")?;
    if welcome.protocol != PROTOCOL {
        let theirs = &welcome.protocol;
        let message = format!("the process speaks protocol {theirs:?}, and this program {PROTOCOL:?}");
        return Err(Fault::new(Code::ComponentVersion, message));
    }
    Ok((process, welcome))
}

/// What an extension says of its own failure is called by the name of what failed.
fn as_code(fault: Fault, code: Code) -> Fault {
    match fault.code {
        Code::ToolFailed | Code::ToolArguments => Fault { code, ..fault },
        _ => fault,
    }
}

/// An answer, or why it makes no sense.
fn read<T: DeserializeOwned>(answer: Value, method: &str) -> Result<T, Fault> {
    serde_json::from_value(answer)
        .map_err(|error| Fault::new(Code::ExtensionFault, format!("its answer to `{method}`: {error}")))
}

impl Inner {
    /// The process. One that has ended is started again by the first step of a life, or by any call where there is no life.
    async fn process(self: &Arc<Self>, may_start: bool) -> Result<Arc<Process>, Fault> {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        let mut live = self.live.lock().await;
        let why = match &*live {
            Some(process) => match process.over() {
                None => return Ok(process.clone()),
                Some(why) => why,
            },
            None => Fault::new(Code::ExtensionFault, "the process was stopped"),
        };
        *live = None;
        if !may_start {
            return Err(why);
        }
        let (process, welcome) = greet(&self.plan, &self.hello, &self.terms).await?;
        if welcome != self.welcome {
            let message = "the process is not what it was when it was loaded; load it anew";
            return Err(Fault::new(Code::ExtensionFault, message));
        }
        let process = Arc::new(process);
        *live = Some(process.clone());
        self.watch();
        Ok(process)
    }

    /// Ends a process that has no life of its own once nobody has called it for a while. The next call starts it again.
    fn watch(self: &Arc<Self>) {
        if self.lives() {
            return;
        }
        let watched = Arc::downgrade(self);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(IDLE).await;
                let Some(inner) = watched.upgrade() else { return };
                let mut live = inner.live.lock().await;
                let idle = inner.used.lock().unwrap_or_else(PoisonError::into_inner).elapsed() >= IDLE;
                // Whoever is being served holds it too.
                if live.as_ref().is_none_or(|process| idle && Arc::strong_count(process) == 1) {
                    *live = None;
                    return;
                }
            }
        });
    }

    fn lives(&self) -> bool {
        let lasting = [Role::Lifecycle, Role::Service, Role::Channel];
        lasting.iter().any(|role| self.welcome.functions.contains_key(role))
    }

    /// What a call asks for that it has not, if so.
    fn lacks(&self, call: &Call) -> Option<String> {
        match call {
            Call::Task { .. } if !self.welcome.has(Role::Scheduler, "execute-task") => {
                Some("tasks".to_owned())
            }
            Call::Api { .. } if self.welcome.methods.is_none() => Some("methods".to_owned()),
            Call::Function { role, function, .. } if !self.welcome.has(*role, function) => {
                Some(format!("function `{function}`"))
            }
            _ => None,
        }
    }

    async fn life(self: &Arc<Self>, step: LifecycleCommand, host: Arc<dyn Host>) -> Result<Reply, Fault> {
        let (function, message) = match step {
            LifecycleCommand::Load => return Ok(Reply::Descriptors(self.descriptors.clone())),
            LifecycleCommand::Initialize => ("initialize", ToExtension::Initialize),
            LifecycleCommand::Start => ("start", ToExtension::Start),
            LifecycleCommand::Stop => ("stop", ToExtension::Stop),
            LifecycleCommand::Destroy => ("destroy", ToExtension::Destroy),
        };
        let ending = matches!(step, LifecycleCommand::Stop | LifecycleCommand::Destroy);
        let told = match self.process(step == LifecycleCommand::Initialize).await {
            Ok(process) if self.welcome.has(Role::Lifecycle, function) => {
                let told = process.request(&message, host).await;
                told.map(drop).map_err(|fault| as_code(fault, Code::ExtensionFault))
            }
            // What is gone needs no end.
            Err(_) if ending => Ok(()),
            other => other.map(drop),
        };
        if step == LifecycleCommand::Destroy {
            *self.live.lock().await = None;
        }
        told.map(|()| Reply::Done)
    }

    async fn call(self: &Arc<Self>, call: Call, host: Arc<dyn Host>) -> Result<Reply, Fault> {
        if let Some(lacking) = self.lacks(&call) {
            return Err(Fault::new(Code::ExtensionFault, format!("`{}` has no {lacking}", self.plan.id)));
        }
        let (method, message) = match call {
            Call::Lifecycle(step) => return self.life(step, host).await,
            Call::Health if !self.welcome.has(Role::Lifecycle, "health-check") => {
                let gone = self.lives() && self.process(false).await.is_err();
                return Ok(Reply::Health(!gone));
            }
            Call::Health => ("health", ToExtension::Health),
            Call::Hook(input) => ("hook", ToExtension::Hook(HookRequest::from(&input))),
            Call::Tool { call, tool, arguments, turn } => {
                let (arguments, turn) = (plain(&arguments), (&turn).into());
                ("tool", ToExtension::Tool(ToolRequest { call, tool, arguments, turn }))
            }
            Call::Task { task } => ("task", ToExtension::Task { task }),
            Call::Api { method, arguments } => {
                ("api", ToExtension::Api { method, arguments: plain(&arguments) })
            }
            Call::Function { role, function, arguments } => {
                let arguments = plain(&arguments);
                ("function", ToExtension::Function { role, function, arguments })
            }
        };
        let process = self.process(!self.lives()).await?;
        let answer = process.request(&message, host).await;
        let answer = answer.map_err(|fault| match method {
            "hook" => as_code(fault, Code::HookFault),
            "health" => as_code(fault, Code::ExtensionFault),
            _ => fault,
        })?;
        Ok(match method {
            "health" => Reply::Health(read(answer, method)?),
            "hook" => {
                let verdict: Option<Verdict> = read(answer, method)?;
                Reply::Decision(verdict.unwrap_or(Verdict::Continue).into())
            }
            _ => Reply::Content(Content::new(answer)),
        })
    }
}

impl Instance for Extension {
    fn call(&self, call: Call, host: Arc<dyn Host>) -> Later<Result<Reply, Fault>> {
        let inner = self.0.clone();
        Box::pin(async move { inner.call(call, host).await })
    }

    fn lives(&self) -> bool {
        self.0.lives()
    }

    fn alone(&self) -> bool {
        self.0.lives()
    }

    fn has(&self, role: Role) -> bool {
        self.0.welcome.functions.contains_key(&role)
    }
}

/// The host before anything is called: nobody to ask.
struct Nobody;

impl Host for Nobody {
    fn ask(&self, _: Ask) -> Later<Result<Content, Fault>> {
        let fault =
            Fault::new(Code::ToolDenied, "nothing can be asked before the process has said what it is");
        Box::pin(std::future::ready(Err(fault)))
    }
}
