//! One confined process: spawning it, waiting for its exit, and killing every process that it has left behind.

pub(crate) mod connection;
mod writer;

use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::{Duration, Instant};

use holdfast_contract::log::{LogLevel, LogSink};
use holdfast_contract::manifest::Transport;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::protocol::ToExtension;
use holdfast_contract::wire::Host;
use holdfast_sandbox::{
    Network, ProcessLimits, Program, ProgramAccess, ProgramState, Running, SandboxReport, Switch,
    TransparentListeners, TransparentNetwork, gateway_address, threads_on_machine,
};
use holdfast_untrusted_files::TempFolder;
use rustix::fs::{Mode, OFlags};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::folder::{FolderPlan, RESOLVER_FILE};
use crate::gateway;
use crate::process::connection::{Connection, Disconnect, Terms};
use crate::process::writer::WriteHalf;
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

/// A running process. Dropping it kills it, with every process that it started.
pub(crate) struct Process {
    connection: Arc<Connection>,
    switch: Arc<Switch>,
}

fn failed(what: &str, error: impl std::fmt::Display) -> Fault {
    Fault::new(Code::ExtensionFault, format!("{what}: {error}"))
}

/// A started program: its input, output and standard error, and the listeners of its gateway.
type Started = (OwnedFd, OwnedFd, OwnedFd, Option<(std::net::TcpListener, Option<TransparentListeners>)>);

/// How a process exited, and why it was killed, if it was.
type Exited = (std::io::Result<ExitStatus>, Option<String>);

impl Process {
    /// Spawns it, confined.
    pub(crate) async fn start(plan: &FolderPlan, terms: Terms) -> Result<Self, Fault> {
        let switch = Arc::new(Switch::default());
        let (begun, started) = oneshot::channel();
        let (ended, exit) = oneshot::channel();
        let (plan, held, transport) = (plan.clone(), switch.clone(), plan.manifest.transport);
        // The kernel kills the process when the thread that spawned it exits, so that thread also waits for it.
        let run = move || run(&plan, &held, begun, ended);
        let thread = std::thread::Builder::new().name("process".to_owned()).spawn(run);
        thread.map_err(|error| failed("could not start a thread", error))?;
        let gone = |_| Fault::new(Code::Internal, "the thread that starts the program has exited");
        let begun = started.await.map_err(gone)??;
        Self::attach(begun, transport, exit, switch, terms)
    }

    fn attach(
        (input, output, errors, gateway): Started,
        transport: Transport,
        exit: oneshot::Receiver<Exited>,
        switch: Arc<Switch>,
        terms: Terms,
    ) -> Result<Self, Fault> {
        let no_pipe = |error| {
            switch.turn_off();
            failed("could not open the program's pipes", error)
        };
        let output = pipe::Receiver::from_owned_fd(output).map_err(no_pipe)?;
        let errors = pipe::Receiver::from_owned_fd(errors).map_err(no_pipe)?;
        let (disconnected, disconnect) = oneshot::channel();
        let stderr_task = tokio::spawn(log_stderr(errors, terms.clone()));
        let connection = match transport {
            Transport::Stdio => {
                let input = pipe::Sender::from_owned_fd(input).map_err(no_pipe)?;
                Connection::open(WriteHalf::Pipe(input), output, terms, disconnected)
            }
            Transport::Socket => {
                let socket = StdUnixStream::from(input);
                socket.set_nonblocking(true).map_err(no_pipe)?;
                let (reads, writes) = UnixStream::from_std(socket).map_err(no_pipe)?.into_split();
                tokio::spawn(log_stderr(output, terms.clone()));
                Connection::open(WriteHalf::Socket(writes), reads, terms, disconnected)
            }
        };
        let connection = Arc::new(connection);
        let gateway = gateway.map(|(proxy, transparent)| gateway::open(proxy, transparent, &connection));
        let gateway = gateway.transpose().map_err(no_pipe)?;
        let (weak_connection, kill_switch) = (Arc::downgrade(&connection), switch.clone());
        tokio::spawn(async move {
            await_exit(weak_connection, (disconnect, exit, stderr_task), kill_switch).await;
            if let Some(gateway) = gateway {
                gateway.abort();
            }
        });
        Ok(Self { connection, switch })
    }

    /// Makes a request.
    pub(crate) async fn request(&self, message: &ToExtension, host: Arc<dyn Host>) -> Result<Value, Fault> {
        self.connection.request(message, host).await
    }

    /// Why it can take no more requests, if so.
    pub(crate) fn over(&self) -> Option<Fault> {
        self.connection.over()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.connection.close(&Fault::new(Code::ExtensionFault, "the process was stopped"));
        self.switch.turn_off();
    }
}

/// Spawns a program, waits for its exit, and kills the processes that it leaves behind.
fn run(
    plan: &FolderPlan,
    switch: &Switch,
    begun: oneshot::Sender<Result<Started, Fault>>,
    ended: oneshot::Sender<Exited>,
) {
    let scratch = TempFolder::new();
    let scratch = scratch.map_err(|error| failed("could not create a temporary directory", error));
    let started = scratch.and_then(|scratch| Ok((spawn(plan, scratch.path())?, scratch)));
    let (running, scratch) = match started {
        Ok(started) => started,
        // The receiver is gone if the start was cancelled, here and below.
        Err(fault) => return drop(begun.send(Err(fault))),
    };
    let Running { input, output, errors, gateway, transparent, life } = running;
    let gateway = gateway.map(|proxy| (proxy, transparent));
    let wanted = switch.connect(life.group()) && begun.send(Ok((input, output, errors, gateway))).is_ok();
    let why = if wanted { watch(plan, &life, scratch.path()) } else { None };
    let status = life.end(switch);
    drop(scratch);
    drop(ended.send((status, why)));
}

/// Waits for the exit of a process; returns why it must be killed if it exceeds a limit first.
fn watch(plan: &FolderPlan, life: &ProgramState, scratch: &Path) -> Option<String> {
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
            if let Some(why) = quota.exceeded() {
                return Some(why);
            }
            next = Instant::now() + quota.pause();
        }
    }
}

/// The environment variables of a program. Those for proxies name the gateway, its only access to the network. Granted variables of the
/// host do not replace any of them.
fn environment<'a>(plan: &'a FolderPlan, scratch: &Path, report: &SandboxReport) -> Vec<(&'a str, OsString)> {
    let mut environment: Vec<(&str, OsString)> = vec![
        ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".into()),
        ("HOME", plan.data.clone().into()),
        ("LANG", "C.UTF-8".into()),
        ("TMPDIR", scratch.into()),
    ];
    if report.namespaces {
        let proxy = OsString::from(format!("http://{}", gateway_address()));
        let names = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];
        environment.extend(names.map(|name| (name, proxy.clone())));
    }
    if !plan.neighbours.is_empty() {
        let folders = plan
            .neighbours
            .iter()
            .map(|(id, folder)| (id.to_string(), Value::String(folder.path().display().to_string())));
        environment.push(("HOLDFAST_DEPENDS_ON", Value::Object(folders.collect()).to_string().into()));
    }
    for name in &plan.variables {
        if let Some(value) = std::env::var_os(name)
            && environment.iter().all(|(set, _)| set != name)
        {
            environment.push((name, value));
        }
    }
    environment
}

fn spawn(plan: &FolderPlan, scratch: &Path) -> Result<Running, Fault> {
    let report = &plan.report;
    let mut readable = vec![plan.code.path().to_owned()];
    readable.extend(plan.neighbours.iter().map(|(_, folder)| folder.path().to_owned()));
    readable.extend(plan.readable.iter().cloned());
    let writable: Vec<&Path> = [plan.data.as_path(), scratch]
        .into_iter()
        .chain(plan.writable.iter().map(std::path::PathBuf::as_path))
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
    let transparent =
        TransparentNetwork { ports: plan.ports.clone(), resolver_file: plan.code.path().join(RESOLVER_FILE) };
    let program = plan.command.program().to_owned();
    let words: Vec<String> =
        std::iter::once(program).chain(plan.command.arguments().iter().cloned()).collect();
    let program = Program {
        words: &words,
        environment: &environment(plan, scratch, report),
        folder: plan.code.path(),
        folder_handle: None,
        reach: &ProgramAccess::new(&readable, Network::Gateway).transparent(transparent),
        writable: &writable,
        read_only: &[],
        limits: ProcessLimits { file_bytes: FILE_BYTES, memory_bytes: MEMORY_BYTES, cpu_seconds: None },
        tasks: MAX_TASKS,
        socket: plan.manifest.transport == Transport::Socket,
    };
    program.start(report).map_err(|fault| match fault.code {
        Code::ToolFailed => Fault { code: Code::ExtensionFault, ..fault },
        _ => fault,
    })
}

/// Waits for the disconnect, then fails all pending requests with the reason: the exit status, or the protocol violation.
async fn await_exit(
    connection: std::sync::Weak<Connection>,
    (disconnect, exit, stderr_task): (
        oneshot::Receiver<Disconnect>,
        oneshot::Receiver<Exited>,
        JoinHandle<String>,
    ),
    switch: Arc<Switch>,
) {
    let why = match disconnect.await {
        Ok(Disconnect::Closed) => {
            let ended = tokio::time::timeout(EXIT_TIMEOUT, exit).await.ok().and_then(Result::ok);
            switch.turn_off();
            let (status, why_killed) = ended.map_or((None, None), |(status, why)| (status.ok(), why));
            let how = status.map(|status| format!(" ({status})")).unwrap_or_default();
            let last = tokio::time::timeout(EXIT_TIMEOUT, stderr_task).await.ok().and_then(Result::ok);
            let last =
                last.filter(|last| !last.is_empty()).map(|last| format!(": {last}")).unwrap_or_default();
            let message = match &why_killed {
                Some(why) => format!("the process was killed: {why}"),
                None => format!("the process has exited{how}{last}"),
            };
            let killed = why_killed.is_none()
                && status.and_then(|status| status.signal()) == Some(rustix::process::Signal::KILL.as_raw());
            let code = if killed { Code::ProcessKilled } else { Code::ExtensionFault };
            Fault::new(code, message)
        }
        Ok(Disconnect::Violation(fault)) => {
            switch.turn_off();
            fault
        }
        Err(_) => return,
    };
    if let Some(connection) = connection.upgrade() {
        connection.close(&why);
    }
}

/// Logs standard error, line by line. Returns the last line, which most often has the reason for a failure.
async fn log_stderr(errors: pipe::Receiver, terms: Terms) -> String {
    let Terms { id, log, log_bytes, .. } = terms;
    let mut errors = BufReader::new(errors);
    let (mut line, mut left, mut last) = (Vec::new(), u64::from(log_bytes), String::new());
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
        log_line(&log, &id, if fits { text } else { "" });
        left = left.saturating_sub(line.len() as u64);
    }
}

fn log_line(log: &Option<LogSink>, id: &holdfast_contract::ids::ExtensionId, text: &str) {
    if let (Some(sink), false) = (log, text.is_empty()) {
        sink(id, LogLevel::Printed, text);
    }
}
