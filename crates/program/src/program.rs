//! Spawning a confined program, waiting for its exit, and killing every process that it started and that is still running.

use std::ffi::OsString;
use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::{Duration, Instant};

use holdfast_contract::ids::ExtensionId;
use holdfast_contract::log::{LogLevel, LogSink};
use holdfast_contract::manifest::ListenPort;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::wire::Host;
use holdfast_sandbox::{
    ListeningPorts, Network, ProcessLimits, Program, ProgramAccess, ProgramState, Running, SandboxReport,
    Switch, TransparentNetwork, gateway_address, resolver_settings, threads_on_machine,
};
use holdfast_untrusted_files::TempFolder;
use rustix::fs::{Mode, OFlags};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::net::unix::pipe;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::gateway::{GatewayListeners, ports};
use crate::granted::GrantedPaths;
use crate::listening::MAX_CONNECTIONS;
use crate::quota::Quota;

/// Characters of the last line of standard error that are part of the error message.
const MAX_LAST_LINE_CHARS: usize = 200;
/// Bytes of one line of standard error that are logged.
const MAX_STDERR_LINE_BYTES: u64 = 4 << 10;
/// The largest file that a process may write, and its address space.
const FILE_BYTES: u64 = 1 << 30;
const MEMORY_BYTES: u64 = 4 << 30;
/// The maximal number of its processes and threads.
const MAX_TASKS: u32 = 512;
/// How long a process may take to exit after it has closed its output, before it is killed.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);
/// How often the number of processes is checked, where the kernel does not limit it, and by how many the threads of the whole machine
/// must have grown before the processes of one program are counted.
const PROCESS_CHECK_INTERVAL: Duration = Duration::from_millis(50);
const MIN_NEW_THREADS: usize = 256;

/// How a program is started.
#[derive(Clone, Debug)]
pub struct ProgramPlan {
    /// Its name or path, and its arguments.
    pub words: Vec<String>,
    /// The folder that it starts in, which it may read.
    pub folder: PathBuf,
    /// Its own writable folder, which is its home.
    pub data: PathBuf,
    /// Further paths that it may read: those of its lane.
    pub readable: Vec<PathBuf>,
    /// The file trees that it was granted.
    pub granted: GrantedPaths,
    /// Variables besides those that every program has.
    pub environment: Vec<(String, OsString)>,
    /// The granted environment variables of the host, by name. They replace none of the others.
    pub variables: Vec<String>,
    /// The granted hosts. Those with a port of their own can be connected to there without a proxy.
    pub hosts: Vec<String>,
    /// The granted ports to listen on.
    pub listen: Vec<ListenPort>,
    /// Its disk quota in bytes.
    pub disk_bytes: u64,
    /// Whether its standard input is a socket of both directions.
    pub socket: bool,
    /// The confinement that this machine offers.
    pub report: SandboxReport,
}

/// The calls that a program is working on, for what it needs of the host without naming a call.
pub trait CallSource: Send + Sync {
    /// The host of the oldest call in progress that belongs to a turn, where the user can be asked, or else of the oldest call. That call
    /// pays for the host call.
    fn oldest(&self) -> Result<Arc<dyn Host>, Fault>;

    /// Logs a warning.
    fn warn(&self, text: &str);
}

/// How a process exited, and why it was killed, if it was.
type Exited = (std::io::Result<ExitStatus>, Option<String>);

/// A started program. Dropping it leaves the program running: [`Switch::turn_off`] kills it with everything that it started.
pub struct ConfinedProgram {
    /// Its standard input.
    pub input: OwnedFd,
    /// Its standard output.
    pub output: OwnedFd,
    /// Its standard error.
    pub errors: OwnedFd,
    /// What listens on its loopback, where it has one.
    pub gateway: Option<GatewayListeners>,
    /// Sockets of its namespace to connect to its ports with, where it may listen on some.
    pub connectors: Vec<OwnedFd>,
    /// Kills it.
    pub switch: Arc<Switch>,
    /// How it exits.
    pub exit: ProgramExit,
}

/// The exit of a program, which has not come yet.
pub struct ProgramExit(oneshot::Receiver<Exited>);

fn failed(what: &str, error: impl std::fmt::Display) -> Fault {
    Fault::new(Code::ExtensionFault, format!("{what}: {error}"))
}

impl ConfinedProgram {
    /// Spawns it, confined.
    pub async fn start(plan: ProgramPlan) -> Result<Self, Fault> {
        let switch = Arc::new(Switch::default());
        let (begun, started) = oneshot::channel();
        let (ended, exit) = oneshot::channel();
        let held = switch.clone();
        // The kernel kills the process when the thread that spawned it exits, so that thread also waits for it.
        let run = move || run(&plan, &held, begun, ended);
        let thread = std::thread::Builder::new().name("process".to_owned()).spawn(run);
        thread.map_err(|error| failed("could not start a thread", error))?;
        let gone = |_| Fault::new(Code::Internal, "the thread that starts the program has exited");
        let Started { input, output, errors, gateway, connectors } = started.await.map_err(gone)??;
        Ok(Self { input, output, errors, gateway, connectors, switch, exit: ProgramExit(exit) })
    }
}

impl ProgramExit {
    /// Why a program has exited that has closed its output: with its exit status and its last words. It is killed if it has not.
    pub async fn reason(self, stderr_task: JoinHandle<String>, switch: &Switch) -> Fault {
        let ended = tokio::time::timeout(EXIT_TIMEOUT, self.0).await.ok().and_then(Result::ok);
        switch.turn_off();
        let (status, why_killed) = ended.map_or((None, None), |(status, why)| (status.ok(), why));
        let how = status.map(|status| format!(" ({status})")).unwrap_or_default();
        let last = tokio::time::timeout(EXIT_TIMEOUT, stderr_task).await.ok().and_then(Result::ok);
        let last = last.filter(|last| !last.is_empty()).map(|last| format!(": {last}")).unwrap_or_default();
        let message = match &why_killed {
            Some(why) => format!("the process was killed: {why}"),
            None => format!("the process has exited{how}{last}"),
        };
        let killed = why_killed.is_none()
            && status.and_then(|status| status.signal()) == Some(rustix::process::Signal::KILL.as_raw());
        let code = if killed { Code::ProcessKilled } else { Code::ExtensionFault };
        Fault::new(code, message)
    }
}

/// What a started program has for this side: its input, output and standard error, and the sockets of its namespace.
struct Started {
    input: OwnedFd,
    output: OwnedFd,
    errors: OwnedFd,
    gateway: Option<GatewayListeners>,
    connectors: Vec<OwnedFd>,
}

/// The temporary files of a program, which are removed when this is dropped.
struct ProgramScratch {
    /// The folder that it may write.
    folder: TempFolder,
    /// Has what it finds as `/etc/resolv.conf`, and nothing else.
    settings: TempFolder,
}

impl ProgramScratch {
    fn new() -> std::io::Result<Self> {
        let scratch = Self { folder: TempFolder::new()?, settings: TempFolder::new()? };
        fs::write(scratch.resolver_file(), resolver_settings())?;
        Ok(scratch)
    }

    fn resolver_file(&self) -> PathBuf {
        self.settings.path().join("resolv.conf")
    }
}

/// Spawns a program, waits for its exit, and kills the processes that it leaves behind.
fn run(
    plan: &ProgramPlan,
    switch: &Switch,
    begun: oneshot::Sender<Result<Started, Fault>>,
    ended: oneshot::Sender<Exited>,
) {
    let scratch = ProgramScratch::new();
    let scratch = scratch.map_err(|error| failed("could not create a temporary directory", error));
    let started = scratch.and_then(|scratch| Ok((spawn(plan, &scratch)?, scratch)));
    let (running, scratch) = match started {
        Ok(started) => started,
        // The receiver is gone if the start was cancelled, here and below.
        Err(fault) => return drop(begun.send(Err(fault))),
    };
    let Running { input, output, errors, gateway, transparent, connectors, life } = running;
    let gateway = gateway.map(|proxy| GatewayListeners { proxy, transparent });
    let started = Started { input, output, errors, gateway, connectors };
    let wanted = switch.connect(life.group()) && begun.send(Ok(started)).is_ok();
    let why = if wanted { watch(plan, &life, scratch.folder.path()) } else { None };
    let status = life.end(switch);
    drop(scratch);
    drop(ended.send((status, why)));
}

/// Waits for the exit of a process; returns why it must be killed if it exceeds a limit first.
fn watch(plan: &ProgramPlan, life: &ProgramState, scratch: &Path) -> Option<String> {
    let mut quota = Quota::new(plan.disk_bytes, [plan.data.clone(), scratch.to_owned()]);
    let before = threads_on_machine();
    let mut next = Instant::now() + quota.pause();
    loop {
        let pause = if life.is_bounded() {
            next.saturating_duration_since(Instant::now())
        } else {
            PROCESS_CHECK_INTERVAL
        };
        if life.wait(pause) {
            return None;
        }
        // Counting the threads of the whole machine is cheap; counting the processes of one program is not.
        if !life.is_bounded() && threads_on_machine() > before + MIN_NEW_THREADS && life.is_crowded() {
            return Some("it had too many processes".to_owned());
        }
        if Instant::now() >= next {
            if life.shares_too_much() {
                return Some(format!("its processes shared more than {MEMORY_BYTES} bytes of memory"));
            }
            if let Some(why) = quota.exceeded() {
                return Some(why);
            }
            next = Instant::now() + quota.pause();
        }
    }
}

/// The environment variables of a program. Those for proxies name the gateway, its only access to the network. Granted variables of the
/// host do not replace any of them.
fn environment<'a>(plan: &'a ProgramPlan, scratch: &Path) -> Vec<(&'a str, OsString)> {
    let mut environment: Vec<(&str, OsString)> = vec![
        ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".into()),
        ("HOME", plan.data.clone().into()),
        ("LANG", "C.UTF-8".into()),
        ("TMPDIR", scratch.into()),
    ];
    if plan.report.namespaces {
        let proxy = OsString::from(format!("http://{}", gateway_address()));
        let names = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];
        environment.extend(names.map(|name| (name, proxy.clone())));
    }
    let own = plan.environment.iter().map(|(name, value)| (name.as_str(), value.clone()));
    environment.extend(own);
    for name in &plan.variables {
        if let Some(value) = std::env::var_os(name)
            && environment.iter().all(|(set, _)| set != name)
        {
            environment.push((name, value));
        }
    }
    environment
}

fn spawn(plan: &ProgramPlan, scratch: &ProgramScratch) -> Result<Running, Fault> {
    // Again at every start: what a granted path leads to may have been replaced.
    plan.granted.check()?;
    let own = std::iter::once(&plan.folder).chain(&plan.readable);
    let readable: Vec<PathBuf> = own.chain(&plan.granted.readable).cloned().collect();
    let writable: Vec<&Path> = [plan.data.as_path(), scratch.folder.path()]
        .into_iter()
        .chain(plan.granted.writable.iter().map(PathBuf::as_path))
        .collect();
    let handles: Vec<OwnedFd> = writable
        .iter()
        .map(|path| {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            rustix::fs::open(*path, flags, Mode::empty())
                .map_err(|error| failed(&path.display().to_string(), error))
        })
        .collect::<Result<_, _>>()?;
    let writable: Vec<_> = writable.into_iter().zip(handles.iter().map(AsFd::as_fd)).collect();
    let (ports, resolver_file) = (ports(&plan.hosts, &plan.listen), scratch.resolver_file());
    let listening = ListeningPorts {
        ports: plan.listen.iter().map(|port| port.number()).collect(),
        connections: MAX_CONNECTIONS,
    };
    let reach = ProgramAccess::new(&readable, Network::Gateway)
        .transparent(TransparentNetwork { ports, resolver_file })
        .listening(listening);
    let program = Program {
        words: &plan.words,
        environment: &environment(plan, scratch.folder.path()),
        folder: &plan.folder,
        folder_handle: None,
        reach: &reach,
        writable: &writable,
        read_only: &[],
        limits: ProcessLimits { file_bytes: FILE_BYTES, memory_bytes: MEMORY_BYTES, cpu_seconds: None },
        tasks: MAX_TASKS,
        socket: plan.socket,
    };
    program.start(&plan.report).map_err(|fault| match fault.code {
        Code::ToolFailed => Fault { code: Code::ExtensionFault, ..fault },
        _ => fault,
    })
}

/// Where what a program writes to standard error goes.
#[derive(Clone)]
pub struct ProgramLog {
    /// Whose program it is.
    pub id: ExtensionId,
    /// Takes the lines.
    pub sink: Option<LogSink>,
    /// Bytes that are logged; what comes after them is dropped.
    pub max_bytes: u32,
}

/// Logs standard error, line by line. Returns the last line, which most often has the reason for a failure.
pub async fn log_stderr(errors: pipe::Receiver, log: ProgramLog) -> String {
    let mut errors = BufReader::new(errors);
    let (mut line, mut left, mut last) = (Vec::new(), u64::from(log.max_bytes), String::new());
    loop {
        line.clear();
        match (&mut errors).take(MAX_STDERR_LINE_BYTES).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return last,
            Ok(_) => {}
        }
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end();
        if !text.trim().is_empty() {
            last = text.trim().chars().take(MAX_LAST_LINE_CHARS).collect();
        }
        let fits = left >= line.len() as u64;
        if let (Some(sink), true, false) = (&log.sink, fits, text.is_empty()) {
            sink(&log.id, LogLevel::Printed, text);
        }
        left = left.saturating_sub(line.len() as u64);
    }
}
