//! A loaded extension that is a process. The first load of an activation starts it to ask for its exports, which the vault caches.
//! Afterwards it is started by its lifecycle or, without one, by the first call, and again by the first call after it has exited.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::FutureExt;
use holdfast_contract::content::Content;
use holdfast_contract::digest::Digest;
use holdfast_contract::host_call::HostCall;
use holdfast_contract::ids::Millis;
use holdfast_contract::log::{LogLevel, LogSink};
use holdfast_contract::manifest::Scope;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::protocol::{
    FEATURES, HookRequest, HookVerdict, PROTOCOL, ProcessHello, ProcessWelcome, ToExtension, ToolRequest,
    plain,
};
use holdfast_contract::registry::Descriptor;
use holdfast_contract::role::{Role, RoleSet};
use holdfast_contract::system_frames::{LifecycleCommand, PortUse};
use holdfast_contract::wire::{Bundle, Call, Host, Instance, InstanceCapabilities, Later, Reply, Vault};
use holdfast_program::PortCounters;
use parking_lot::RwLock;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::{Mutex, OnceCell, Semaphore};
use tokio::time::Instant;

use crate::folder::FolderPlan;
use crate::node::names::PackNames;
use crate::process::Process;
use crate::process::connection::{MAX_LINE_BYTES, Terms};

/// How long a process may take to answer `hello` from when it was spawned, and one that imports packages.
const HELLO_TIMEOUT: Duration = Duration::from_secs(20);
const PACKAGES_HELLO_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a process that has not answered keeps others from being started. One that hangs delays them no longer.
const START_SLICE: Duration = Duration::from_secs(5);
/// How long an idle process without a lifecycle is kept.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// How long the event loop of a pack may take to answer after a call was given up.
const PING_TIMEOUT: Duration = Duration::from_secs(5);

/// A loaded extension that is a process.
pub(crate) struct ProcessInstance(Arc<Inner>);

struct Inner {
    plan: FolderPlan,
    hello: ToExtension,
    terms: Terms,
    /// Of a pack it is another one once loading has activated it.
    exported: RwLock<Arc<Exported>>,
    /// What it registers. Empty until loading where the exports are known only after `initialize`.
    descriptors: OnceCell<Vec<Descriptor>>,
    /// Whether loading has initialised the running process.
    initialised: AtomicBool,
    /// Caches its answer to `hello` for the next load, under this name.
    vault: Arc<dyn Vault>,
    cache_name: String,
    state: Mutex<ProcessState>,
    /// The connections to the ports that it listens on.
    port_counters: Arc<PortCounters>,
    /// The time of the last call.
    last_used: parking_lot::Mutex<Instant>,
}

/// What a process is, as far as that is known.
struct Exported {
    welcome: ProcessWelcome,
    capabilities: InstanceCapabilities,
    /// The tools of a pack that have another name than it gave them.
    names: PackNames,
}

impl Exported {
    fn new(welcome: ProcessWelcome, names: PackNames, plan: &FolderPlan) -> Self {
        Self { capabilities: capabilities(&welcome, plan), welcome, names }
    }
}

/// The process of an extension.
enum ProcessState {
    NotStarted,
    Running(Arc<Process>),
    Stopped,
}

impl ProcessInstance {
    /// Loads an extension. Starts the process to ask for its exports unless they are cached.
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
            line_bytes: MAX_LINE_BYTES as u64,
            features: FEATURES.iter().map(|feature| (*feature).to_owned()).collect(),
            manifest: serde_json::to_value(&plan.manifest).unwrap_or_default(),
            secrets: bundle.grants.secrets.clone(),
            pack: plan.pack.as_ref().map(|pack| pack.settings.clone()),
            catalogue: plan.pack.as_ref().map(|pack| pack.catalogue.clone()).unwrap_or_default(),
        });
        let budgets = bundle.budgets;
        let terms =
            Terms { id: plan.id.clone(), log, host_calls: budgets.host_calls, log_bytes: budgets.log_bytes };
        let cache_name = format!("welcome-{}", Digest::of(plan.identity.as_bytes()));
        let cached: Option<ProcessWelcome> =
            vault.derived(&cache_name).and_then(|bytes| serde_json::from_slice(&bytes).ok());
        // One whose exports are known only after `initialize` is needed at once, and waits for its slot here, where no timeout runs.
        let (process, welcome) = match cached.filter(|welcome| !welcome.later) {
            Some(welcome) => (ProcessState::NotStarted, welcome),
            None => {
                let (process, welcome) = start(&plan, &hello, &terms).await?;
                (ProcessState::Running(Arc::new(process)), welcome)
            }
        };
        let (descriptors, names) = if welcome.later {
            (OnceCell::new(), PackNames::default())
        } else {
            let (descriptors, names) = described(&plan, &welcome)?;
            (OnceCell::from(descriptors), names)
        };
        if matches!(process, ProcessState::Running(_)) {
            vault.keep_derived(&cache_name, &serde_json::to_vec(&welcome).unwrap_or_default());
        }
        let inner = Arc::new(Inner {
            exported: RwLock::new(Arc::new(Exported::new(welcome, names, &plan))),
            plan,
            hello,
            terms,
            descriptors,
            initialised: AtomicBool::default(),
            vault,
            cache_name,
            state: Mutex::new(process),
            port_counters: Arc::default(),
            last_used: parking_lot::Mutex::new(Instant::now()),
        });
        inner.stop_when_idle();
        Ok(Self(inner))
    }
}

/// What a process registers with this welcome, and the tools among it that have another name than it gave them.
fn described(plan: &FolderPlan, welcome: &ProcessWelcome) -> Result<(Vec<Descriptor>, PackNames), Fault> {
    let Some(pack) = &plan.pack else {
        return Ok((welcome.exports().descriptors(&plan.manifest)?, PackNames::default()));
    };
    let (mut welcome, mut manifest) = (welcome.clone(), plan.manifest.clone());
    let names = PackNames::assign(&plan.id, &pack.settings, &pack.taken, &mut welcome, &mut manifest);
    Ok((welcome.exports().descriptors(&manifest)?, names))
}

/// What a program can do. One with a lifecycle, a background loop, a channel or a port keeps running and must not run twice.
fn capabilities(welcome: &ProcessWelcome, plan: &FolderPlan) -> InstanceCapabilities {
    let roles: RoleSet = welcome.functions.keys().copied().collect();
    let lasting = [Role::Lifecycle, Role::Service, Role::Channel];
    let has_lifecycle = lasting.into_iter().any(|role| roles.contains(role)) || !plan.listen.is_empty();
    InstanceCapabilities {
        scope: Scope::Shared,
        replayable: false,
        has_lifecycle,
        exclusive: has_lifecycle,
        synchronous_hooks: false,
        roles,
    }
}

/// As many processes start at once as there are cores: interpreters that start together would all be late.
fn start_slots() -> &'static Semaphore {
    static SLOTS: OnceLock<Semaphore> = OnceLock::new();
    SLOTS.get_or_init(|| Semaphore::new(std::thread::available_parallelism().map_or(1, usize::from)))
}

/// Starts the process and says `hello`.
async fn start(
    plan: &FolderPlan,
    hello: &ToExtension,
    terms: &Terms,
) -> Result<(Process, ProcessWelcome), Fault> {
    if let Some(worker) = &plan.worker {
        worker.check(Path::new(plan.command.program()))?;
    }
    let slot = start_slots().acquire().await;
    let process = Process::start(plan, terms.clone()).await?;
    if let Some(worker) = &plan.worker {
        worker.count_start();
    }
    let limit = if plan.has_packages { PACKAGES_HELLO_TIMEOUT } else { HELLO_TIMEOUT };
    let answer = {
        let request = tokio::time::timeout(limit, process.request(hello, Arc::new(NoHost)));
        let mut request = std::pin::pin!(request);
        match tokio::time::timeout(START_SLICE, &mut request).await {
            Ok(answer) => answer,
            Err(_) => {
                drop(slot);
                request.await
            }
        }
    };
    // Not a fault of its code: the machine may be busy, so that it is started again after a pause.
    let late = |_| {
        let message = format!("the process did not answer `hello` within {} s", limit.as_secs());
        Fault::new(Code::ProcessKilled, message)
    };
    let answer = answer.map_err(late)?.map_err(|fault| as_code(fault, Code::ExtensionFault))?;
    let welcome: ProcessWelcome = read(answer, "hello")?;
    if welcome.protocol != PROTOCOL {
        let theirs = &welcome.protocol;
        let message = format!("the process speaks protocol {theirs:?}; this program speaks {PROTOCOL:?}");
        return Err(Fault::new(Code::ComponentVersion, message));
    }
    if let Some(missing) = welcome.requires.iter().find(|feature| !FEATURES.contains(&feature.as_str())) {
        let message = format!("the process requires `{missing}`, which this program does not support");
        return Err(Fault::new(Code::ComponentVersion, message));
    }
    Ok((process, welcome))
}

/// Replaces the code of a failure that the extension reported by one that fits the call.
fn as_code(fault: Fault, code: Code) -> Fault {
    match fault.code {
        Code::ToolFailed | Code::ToolArguments => Fault { code, ..fault },
        _ => fault,
    }
}

/// Deserialises an answer.
fn read<T: DeserializeOwned>(answer: Value, method: &str) -> Result<T, Fault> {
    serde_json::from_value(answer)
        .map_err(|error| Fault::new(Code::ExtensionFault, format!("invalid answer to `{method}`: {error}")))
}

impl Inner {
    fn exported(&self) -> Arc<Exported> {
        self.exported.read().clone()
    }

    /// The process. One that has exited is restarted by the first lifecycle step, or by any call if it has no lifecycle. A pack is then
    /// activated with the host of that call.
    async fn process(self: &Arc<Self>, may_start: bool, host: &Arc<dyn Host>) -> Result<Arc<Process>, Fault> {
        *self.last_used.lock() = Instant::now();
        let mut state = self.state.lock().await;
        let why = match &*state {
            ProcessState::NotStarted => None,
            ProcessState::Running(process) => match process.over() {
                None => return Ok(process.clone()),
                why => why,
            },
            ProcessState::Stopped => Some(Fault::new(Code::ExtensionFault, "the process was stopped")),
        };
        *state = ProcessState::Stopped;
        if let Some(why) = why.filter(|_| !may_start) {
            return Err(why);
        }
        let (process, mut welcome) = start(&self.plan, &self.hello, &self.terms).await?;
        if self.plan.pack.is_some() && self.descriptors.initialized() {
            welcome = self.initialise(&process, host).await?;
        }
        if welcome != self.exported().welcome {
            // Something besides its files has changed. The next load must not use the cache.
            self.vault.keep_derived(&self.cache_name, b"");
            let message = "the exports of the process have changed since it was loaded; reload it";
            return Err(Fault::new(Code::ExtensionFault, message));
        }
        let process = Arc::new(process);
        *state = ProcessState::Running(process.clone());
        self.stop_when_idle();
        Ok(process)
    }

    /// The process, if it runs.
    async fn running(&self) -> Option<Arc<Process>> {
        match &*self.state.lock().await {
            ProcessState::Running(process) if process.over().is_none() => Some(process.clone()),
            _ => None,
        }
    }

    /// Stops a process without a lifecycle after an idle timeout. The next call starts it again.
    fn stop_when_idle(self: &Arc<Self>) {
        if self.exported().capabilities.has_lifecycle {
            return;
        }
        let watched = Arc::downgrade(self);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(IDLE_TIMEOUT).await;
                let Some(inner) = watched.upgrade() else { return };
                let mut state = inner.state.lock().await;
                let idle = inner.last_used.lock().elapsed() >= IDLE_TIMEOUT;
                // A call in progress holds a reference too.
                match &*state {
                    ProcessState::Running(process) if !idle || Arc::strong_count(process) > 1 => {}
                    ProcessState::Running(_) | ProcessState::Stopped => {
                        return *state = ProcessState::Stopped;
                    }
                    ProcessState::NotStarted => return,
                }
            }
        });
    }

    /// What a call needs and the extension does not have.
    fn missing(&self, call: &Call) -> Option<String> {
        let welcome = &self.exported().welcome;
        match call {
            Call::Task { .. } if !welcome.has(Role::Scheduler, "execute-task") => Some("tasks".to_owned()),
            Call::Api { .. } if welcome.methods.is_none() => Some("methods".to_owned()),
            Call::Function { role, function, .. } if !welcome.has(*role, function) => {
                Some(format!("function `{function}`"))
            }
            _ => None,
        }
    }

    /// What it registers. Where the exports are known only after `initialize`, loading initialises it, and the lifecycle does not again.
    async fn registers(self: &Arc<Self>, host: Arc<dyn Host>) -> Result<Vec<Descriptor>, Fault> {
        let described = self.descriptors.get_or_try_init(|| async {
            let process = self.process(true, &host).await?;
            let welcome = self.initialise(&process, &host).await?;
            let (descriptors, names) = described(&self.plan, &welcome)?;
            self.initialised.store(true, Ordering::SeqCst);
            if self.plan.pack.is_some() {
                for problem in welcome.problems.iter().cloned().chain(names.notes()) {
                    self.terms.log(LogLevel::Warning, &problem);
                }
                // With it, the next load need not start the process. What did not work may work then.
                let kept =
                    welcome.problems.is_empty().then(|| serde_json::to_vec(&welcome).unwrap_or_default());
                self.vault.keep_derived(&self.cache_name, &kept.unwrap_or_default());
                *self.exported.write() = Arc::new(Exported::new(welcome, names, &self.plan));
                self.stop_when_idle();
            }
            Ok(descriptors)
        });
        described.await.cloned()
    }

    /// Initialises a process whose exports are known only afterwards, and asks for them.
    async fn initialise(&self, process: &Process, host: &Arc<dyn Host>) -> Result<ProcessWelcome, Fault> {
        let request = async |message: &ToExtension| {
            let answer = process.request(message, host.clone()).await;
            answer.map_err(|fault| as_code(fault, Code::ExtensionFault))
        };
        request(&ToExtension::Initialize).await?;
        read(request(&self.hello).await?, "hello")
    }

    /// Stops a process whose code does not return to its event loop: a pack that has not heard that a call is over hears nothing else
    /// either.
    async fn stop_if_stuck(&self) {
        let Some(process) = self.running().await else { return };
        let ping = process.request(&ToExtension::Ping, Arc::new(NoHost));
        if tokio::time::timeout(PING_TIMEOUT, ping).await.is_err() {
            let message =
                format!("the process was stopped: its code kept it busy for {} s", PING_TIMEOUT.as_secs());
            self.terms.log(LogLevel::Error, &message);
            process.stop(&Fault::new(Code::PackUnresponsive, message));
        }
    }

    /// Listens on the ports that it was granted, from when it is started. Not before: an earlier generation may have them.
    async fn open_ports(&self, process: &Process) -> Result<(), Fault> {
        process.ports.open(&self.plan.id, &self.plan.listen, &self.port_counters).await
    }

    async fn lifecycle(
        self: &Arc<Self>,
        step: LifecycleCommand,
        host: Arc<dyn Host>,
    ) -> Result<Reply, Fault> {
        let (function, message) = match step {
            LifecycleCommand::Load => return self.registers(host).await.map(Reply::Descriptors),
            // Its process is activated wherever it starts.
            LifecycleCommand::Initialize if self.plan.pack.is_some() => {
                if self.exported().capabilities.has_lifecycle {
                    self.process(true, &host).await?;
                }
                return Ok(Reply::Done);
            }
            LifecycleCommand::Initialize => {
                let done = self.initialised.swap(false, Ordering::SeqCst);
                if done && self.process(false, &host).await.is_ok() {
                    return Ok(Reply::Done);
                }
                ("initialize", ToExtension::Initialize)
            }
            LifecycleCommand::Start => ("start", ToExtension::Start),
            LifecycleCommand::Stop => ("stop", ToExtension::Stop),
            LifecycleCommand::Destroy => ("destroy", ToExtension::Destroy),
        };
        let exported = self.exported();
        let ending = matches!(step, LifecycleCommand::Stop | LifecycleCommand::Destroy);
        let process = if ending {
            // A process that does not run need not be started to be stopped.
            Ok(self.running().await)
        } else if exported.capabilities.has_lifecycle {
            self.process(step == LifecycleCommand::Initialize, &host).await.map(Some)
        } else {
            Ok(None)
        };
        if let Ok(Some(process)) = &process
            && step == LifecycleCommand::Start
        {
            self.open_ports(process).await?;
        }
        let ports = process.as_ref().ok().and_then(|process| Some(process.as_ref()?.ports.clone()));
        let told = match process {
            Ok(Some(process)) if exported.welcome.has(Role::Lifecycle, function) => {
                let told = process.request(&message, host).await;
                told.map(drop).map_err(|fault| as_code(fault, Code::ExtensionFault))
            }
            other => other.map(drop),
        };
        // Closed before the generation that follows opens them.
        if let Some(ports) = ports.filter(|_| ending) {
            ports.release();
        }
        if step == LifecycleCommand::Destroy {
            *self.state.lock().await = ProcessState::Stopped;
        }
        told.map(|()| Reply::Done)
    }

    async fn call(self: &Arc<Self>, call: Call, host: Arc<dyn Host>) -> Result<Reply, Fault> {
        if let Some(missing) = self.missing(&call) {
            return Err(Fault::new(Code::ExtensionFault, format!("`{}` has no {missing}", self.plan.id)));
        }
        let exported = self.exported();
        let has_lifecycle = exported.capabilities.has_lifecycle;
        let (method, message) = match call {
            Call::Lifecycle(step) => return self.lifecycle(step, host).await,
            Call::Health if !exported.welcome.has(Role::Lifecycle, "health-check") => {
                let gone = has_lifecycle && self.process(false, &host).await.is_err();
                return Ok(Reply::Health(!gone));
            }
            Call::Health => ("health", ToExtension::Health),
            Call::Hook(input) => ("hook", ToExtension::Hook(HookRequest::from(&input))),
            Call::Tool { call, tool, arguments, turn } => {
                let (turn, tool) = ((&turn).into(), exported.names.own(tool));
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
        let process = self.process(!has_lifecycle, &host).await?;
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
        let is_lifecycle = matches!(call, Call::Lifecycle(_));
        let mut answer: Later<_> = Box::pin(async move {
            let mut given_up = inner.plan.pack.is_some().then(|| GivenUp(Some(inner.clone())));
            let answer = inner.call(call, host).await;
            if let Some(given_up) = &mut given_up {
                given_up.0 = None;
            }
            answer.map_err(|fault| match fault.code {
                // A start that was interrupted is repeated; a call is not, because it may have had its effect.
                Code::ProcessKilled if !is_lifecycle => Fault { code: Code::ExtensionFault, ..fault },
                _ => fault,
            })
        });
        // Polled once here, so that the request is sent and the process works on it while the caller does other things.
        match (&mut answer).now_or_never() {
            Some(done) => Box::pin(std::future::ready(done)),
            None => answer,
        }
    }

    fn capabilities(&self) -> InstanceCapabilities {
        self.0.exported().capabilities
    }

    fn take_port_use(&self) -> Vec<PortUse> {
        self.0.port_counters.take()
    }
}

/// A call to a pack. Where it is dropped before it is answered, its process is asked whether it still listens.
struct GivenUp(Option<Arc<Inner>>);

impl Drop for GivenUp {
    fn drop(&mut self) {
        let runtime = tokio::runtime::Handle::try_current().ok();
        if let (Some(inner), Some(runtime)) = (self.0.take(), runtime) {
            runtime.spawn(async move { inner.stop_if_stuck().await });
        }
    }
}

/// The host of `hello`, which is not part of a call: every host call is refused.
struct NoHost;

impl Host for NoHost {
    fn call_within(&self, _: HostCall, _: Option<Millis>) -> Later<Result<Content, Fault>> {
        let fault = Fault::new(
            Code::ToolDenied,
            "host calls are not allowed before the process has answered `hello`",
        );
        Box::pin(std::future::ready(Err(fault)))
    }
}
