//! What the runtime holds of an extension that is a process. One that nobody knows yet is started when it is loaded, and asked what it
//! is. One that is known starts when its life begins or, where it has no life of its own, at the first call; and again at the first
//! call after it has ended.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use holdfast_contract::content::Content;
use holdfast_contract::digest::Digest;
use holdfast_contract::host_call::HostCall;
use holdfast_contract::ids::Millis;
use holdfast_contract::log::LogSink;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::protocol::{
    FEATURES, HookRequest, HookVerdict, PROTOCOL, ProcessHello, ProcessWelcome, ToExtension, ToolRequest,
    plain,
};
use holdfast_contract::registry::Descriptor;
use holdfast_contract::role::Role;
use holdfast_contract::system_frames::LifecycleCommand;
use holdfast_contract::wire::{Bundle, Call, Host, Instance, Later, Reply, Vault};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::{Mutex, OnceCell};
use tokio::time::Instant;

use crate::connection::{LINE_BYTES, Terms};
use crate::folder::FolderPlan;
use crate::process::Process;

/// How long a process may take to say what it is.
const GREETING: Duration = Duration::from_secs(20);
/// How long a process that nobody calls is kept.
const IDLE: Duration = Duration::from_secs(60);

/// An extension that is a process.
pub(crate) struct ProcessInstance(Arc<Inner>);

struct Inner {
    plan: FolderPlan,
    hello: ToExtension,
    terms: Terms,
    welcome: ProcessWelcome,
    /// What it registers. Of one that says more once it is initialised, this is known after loading.
    descriptors: OnceCell<Vec<Descriptor>>,
    /// Whether loading has initialised the process that runs.
    initialised: AtomicBool,
    /// Where it stands what it is, for the next load.
    vault: Arc<dyn Vault>,
    known: String,
    live: Mutex<Live>,
    /// When it was called last.
    used: std::sync::Mutex<Instant>,
}

/// The process of an extension.
enum Live {
    /// It was not needed yet.
    NotYet,
    Runs(Arc<Process>),
    Stopped,
}

impl ProcessInstance {
    /// Starts the process and asks what it is, unless that is known.
    pub(crate) async fn load(
        plan: FolderPlan,
        bundle: Bundle,
        vault: Arc<dyn Vault>,
        log: Option<LogSink>,
    ) -> Result<Self, Fault> {
        let hello = ToExtension::Hello(ProcessHello {
            protocol: PROTOCOL.to_owned(),
            id: plan.id.clone(),
            version: plan.version.clone(),
            config: plain(&bundle.config).as_object().cloned().unwrap_or_default(),
            data_dir: plan.data.display().to_string(),
            line_bytes: LINE_BYTES as u64,
            features: FEATURES.iter().map(|feature| (*feature).to_owned()).collect(),
            manifest: serde_json::to_value(&plan.manifest).unwrap_or_default(),
        });
        let budgets = bundle.budgets;
        let terms =
            Terms { id: plan.id.clone(), log, host_calls: budgets.host_calls, log_bytes: budgets.log_bytes };
        let known = format!("welcome-{}", Digest::of(plan.identity.as_bytes()));
        let remembered = vault.derived(&known).and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let (process, welcome) = match remembered {
            Some(welcome) => (Live::NotYet, welcome),
            None => {
                let (process, welcome) = greet(&plan, &hello, &terms).await?;
                (Live::Runs(Arc::new(process)), welcome)
            }
        };
        let descriptors = match welcome.later {
            true => OnceCell::new(),
            false => OnceCell::from(welcome.exports().descriptors(&plan.manifest)?),
        };
        if matches!(process, Live::Runs(_)) {
            vault.keep_derived(&known, &serde_json::to_vec(&welcome).unwrap_or_default());
        }
        let inner = Arc::new(Inner {
            plan,
            hello,
            terms,
            welcome,
            descriptors,
            initialised: AtomicBool::default(),
            vault,
            known,
            live: Mutex::new(process),
            used: std::sync::Mutex::new(Instant::now()),
        });
        inner.watch();
        Ok(Self(inner))
    }
}

async fn greet(
    plan: &FolderPlan,
    hello: &ToExtension,
    terms: &Terms,
) -> Result<(Process, ProcessWelcome), Fault> {
    let process = Process::start(plan, terms.clone()).await?;
    if let Some(worker) = &plan.worker {
        worker.one_more();
    }
    let answer = tokio::time::timeout(GREETING, process.request(hello, Arc::new(Nobody))).await;
    let late = |_| {
        let message = format!("the process did not answer `hello` within {} s", GREETING.as_secs());
        Fault::new(Code::ExtensionFault, message)
    };
    let answer = answer.map_err(late)?.map_err(|fault| as_code(fault, Code::ExtensionFault))?;
    let welcome: ProcessWelcome = read(answer, "hello")?;
    if welcome.protocol != PROTOCOL {
        let theirs = &welcome.protocol;
        let message = format!("the process speaks protocol {theirs:?}, and this program {PROTOCOL:?}");
        return Err(Fault::new(Code::ComponentVersion, message));
    }
    if let Some(missing) = welcome.requires.iter().find(|feature| !FEATURES.contains(&feature.as_str())) {
        let message = format!("the process requires `{missing}`, which this program does not understand");
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
            Live::NotYet => None,
            Live::Runs(process) => match process.over() {
                None => return Ok(process.clone()),
                why => why,
            },
            Live::Stopped => Some(Fault::new(Code::ExtensionFault, "the process was stopped")),
        };
        *live = Live::Stopped;
        if let Some(why) = why.filter(|_| !may_start) {
            return Err(why);
        }
        let (process, welcome) = greet(&self.plan, &self.hello, &self.terms).await?;
        if welcome != self.welcome {
            // Whatever it depends on besides its files has changed. The next load asks it anew.
            self.vault.keep_derived(&self.known, b"");
            let message = "the process is not what it was when it was loaded; load it anew";
            return Err(Fault::new(Code::ExtensionFault, message));
        }
        let process = Arc::new(process);
        *live = Live::Runs(process.clone());
        self.watch();
        Ok(process)
    }

    /// The process, if there is one.
    async fn running(&self) -> Option<Arc<Process>> {
        match &*self.live.lock().await {
            Live::Runs(process) if process.over().is_none() => Some(process.clone()),
            _ => None,
        }
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
                match &*live {
                    Live::Runs(process) if !idle || Arc::strong_count(process) > 1 => {}
                    Live::Runs(_) | Live::Stopped => return *live = Live::Stopped,
                    Live::NotYet => return,
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

    /// What it registers. One that says more once it is initialised is initialised for it, and not again afterwards.
    async fn registers(self: &Arc<Self>, host: Arc<dyn Host>) -> Result<Vec<Descriptor>, Fault> {
        let described = self.descriptors.get_or_try_init(|| async {
            let process = self.process(true).await?;
            let said = async |message: &ToExtension| {
                let answer = process.request(message, host.clone()).await;
                answer.map_err(|fault| as_code(fault, Code::ExtensionFault))
            };
            said(&ToExtension::Initialize).await?;
            let welcome: ProcessWelcome = read(said(&self.hello).await?, "hello")?;
            let descriptors = welcome.exports().descriptors(&self.plan.manifest)?;
            self.initialised.store(true, Ordering::SeqCst);
            Ok(descriptors)
        });
        described.await.cloned()
    }

    async fn life(self: &Arc<Self>, step: LifecycleCommand, host: Arc<dyn Host>) -> Result<Reply, Fault> {
        let (function, message) = match step {
            LifecycleCommand::Load => return self.registers(host).await.map(Reply::Descriptors),
            LifecycleCommand::Initialize => {
                let done = self.initialised.swap(false, Ordering::SeqCst);
                if done && self.process(false).await.is_ok() {
                    return Ok(Reply::Done);
                }
                ("initialize", ToExtension::Initialize)
            }
            LifecycleCommand::Start => ("start", ToExtension::Start),
            LifecycleCommand::Stop => ("stop", ToExtension::Stop),
            LifecycleCommand::Destroy => ("destroy", ToExtension::Destroy),
        };
        let ending = matches!(step, LifecycleCommand::Stop | LifecycleCommand::Destroy);
        let process = match ending {
            // What is not there needs no end.
            true => Ok(self.running().await),
            // What has no life is started by whoever calls it.
            false if !self.lives() => Ok(None),
            false => self.process(step == LifecycleCommand::Initialize).await.map(Some),
        };
        let told = match process {
            Ok(Some(process)) if self.welcome.has(Role::Lifecycle, function) => {
                let told = process.request(&message, host).await;
                told.map(drop).map_err(|fault| as_code(fault, Code::ExtensionFault))
            }
            other => other.map(drop),
        };
        if step == LifecycleCommand::Destroy {
            *self.live.lock().await = Live::Stopped;
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
                let turn = (&turn).into();
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
                let verdict: Option<HookVerdict> = read(answer, method)?;
                Reply::Decision(verdict.unwrap_or(HookVerdict::Continue).into())
            }
            _ => Reply::Content(Content::new(answer)),
        })
    }
}

impl Instance for ProcessInstance {
    fn call(&self, call: Call, host: Arc<dyn Host>) -> Later<Result<Reply, Fault>> {
        let inner = self.0.clone();
        let mut answer: Later<_> = Box::pin(async move { inner.call(call, host).await });
        // Begun at once, so that the process works while the caller goes on with what it has to do. Whoever waits looks again.
        match answer.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(done) => Box::pin(std::future::ready(done)),
            Poll::Pending => answer,
        }
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
    fn call_within(&self, _: HostCall, _: Option<Millis>) -> Later<Result<Content, Fault>> {
        let fault =
            Fault::new(Code::ToolDenied, "nothing can be asked before the process has said what it is");
        Box::pin(std::future::ready(Err(fault)))
    }
}
