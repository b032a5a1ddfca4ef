//! One process, from its start to the end of everything that it started.

use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use holdfast_confinement::{Group, Limits, Reach, Switch};
use holdfast_contract::log::{LogLevel, LogSink};
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::protocol::ToExtension;
use holdfast_contract::wire::Host;
use rustix::fs::{Mode, OFlags};
use rustix::process::Pid;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::net::unix::pipe;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::connection::{Connection, Silence, Terms};
use crate::folder::Plan;

/// Characters of the last line of standard error that are told to whoever waits.
const LAST: usize = 200;
/// Bytes of one line of standard error that are shown.
const SHOWN: u64 = 4 << 10;
/// Bytes that a file may grow to, and that a process may have.
const FILE_BYTES: u64 = 1 << 30;
const MEMORY_BYTES: u64 = 4 << 30;
/// How long a process that was left by its pipe has to be gone, before it is killed.
const PATIENCE: Duration = Duration::from_secs(2);

/// The process waits until its limits are set, and becomes the program.
const BEGIN: &str = r#"read -r _ || exit 125; exec "$@""#;

/// A process that runs. Dropping it ends it, with everything that it started.
pub(crate) struct Process {
    connection: Arc<Connection>,
    switch: Arc<Switch>,
}

fn failed(what: &str, error: impl std::fmt::Display) -> Fault {
    Fault::new(Code::ExtensionFault, format!("{what}: {error}"))
}

impl Process {
    /// Starts it, confined.
    pub(crate) async fn start(plan: &Plan, terms: Terms) -> Result<Self, Fault> {
        let switch = Arc::new(Switch::default());
        let (starting, held) = (plan.clone(), switch.clone());
        let started = tokio::task::spawn_blocking(move || spawn(&starting, &held)).await;
        let Started { child, group, scratch } =
            started.map_err(|error| failed("the program could not be started", error))??;
        Self::attend(child, group, scratch, switch, terms)
    }

    fn attend(
        mut child: Child,
        group: Group,
        scratch: tempfile::TempDir,
        switch: Arc<Switch>,
        terms: Terms,
    ) -> Result<Self, Fault> {
        let lost = || Fault::new(Code::Internal, "a stream of the program is missing");
        let no_pipe = |error| failed("the program cannot be spoken to", error);
        let input = OwnedFd::from(child.stdin.take().ok_or_else(lost)?);
        let output = OwnedFd::from(child.stdout.take().ok_or_else(lost)?);
        let errors = OwnedFd::from(child.stderr.take().ok_or_else(lost)?);
        let (ended, exit) = oneshot::channel();
        let held = switch.clone();
        let keep = move || keep(child, group, scratch, &held, ended);
        let thread = std::thread::Builder::new().name("process".to_owned()).spawn(keep);
        thread.map_err(|error| failed("no thread could be started", error))?;
        let input = pipe::Sender::from_owned_fd(input).map_err(no_pipe)?;
        let output = pipe::Receiver::from_owned_fd(output).map_err(no_pipe)?;
        let errors = pipe::Receiver::from_owned_fd(errors).map_err(no_pipe)?;
        let (over, silence) = oneshot::channel();
        let complaints = tokio::spawn(show(errors, terms.clone()));
        let connection = Arc::new(Connection::open(input, output, terms, over));
        tokio::spawn(mourn(Arc::downgrade(&connection), (silence, exit, complaints), switch.clone()));
        Ok(Self { connection, switch })
    }

    /// Makes a request.
    pub(crate) async fn request(&self, message: &ToExtension, host: Arc<dyn Host>) -> Result<Value, Fault> {
        self.connection.request(message, host).await
    }

    /// Why it does not answer any more, if so.
    pub(crate) fn over(&self) -> Option<Fault> {
        self.connection.over()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.connection.close(&Fault::new(Code::ExtensionFault, "the process was ended"));
        self.switch.turn_off();
    }
}

/// What was started.
struct Started {
    child: Child,
    group: Group,
    scratch: tempfile::TempDir,
}

fn spawn(plan: &Plan, switch: &Switch) -> Result<Started, Fault> {
    let scratch = tempfile::Builder::new().prefix("holdfast-").tempdir();
    let scratch = scratch.map_err(|error| failed("no folder for temporary files", error))?;
    let mut group = Group::start().map_err(|error| failed("no process group", error))?;
    let started = begin(plan, &group, scratch.path());
    match started {
        Ok(child) if switch.connect(group.id()) => Ok(Started { child, group, scratch }),
        Ok(mut child) => {
            group.end();
            let _ = child.wait();
            Err(Fault::new(Code::ToolCancelled, "the program was given up before it began"))
        }
        Err(fault) => {
            group.end();
            Err(fault)
        }
    }
}

fn begin(plan: &Plan, group: &Group, scratch: &Path) -> Result<Child, Fault> {
    let mut readable = vec![plan.code.path().to_owned()];
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
    let handles: Vec<_> = handles.iter().map(AsFd::as_fd).collect();
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", BEGIN, "sh", plan.command.program()])
        .args(plan.command.arguments())
        .env_clear()
        .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
        .env("HOME", &plan.data)
        .env("LANG", "C.UTF-8")
        .env("TMPDIR", scratch)
        .current_dir(plan.code.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = Reach::new(&readable, false).start(command, &handles, group)?;
    let limits = Limits { file_bytes: FILE_BYTES, memory_bytes: MEMORY_BYTES, cpu_seconds: None };
    let limited =
        limits.set(Pid::from_child(&child)).map_err(|error| failed("the limits cannot be set", error));
    let begun = limited.and_then(|()| {
        let told = child.stdin.as_mut().map_or(Ok(()), |begin| begin.write_all(b"\n"));
        told.map_err(|error| failed("the program could not be started", error))
    });
    match begun {
        Ok(()) => Ok(child),
        Err(fault) => {
            group.kill();
            let _ = child.wait();
            Err(fault)
        }
    }
}

/// Waits for the end of a process, and ends what it leaves behind.
fn keep(
    mut child: Child,
    mut group: Group,
    scratch: tempfile::TempDir,
    switch: &Switch,
    ended: oneshot::Sender<std::io::Result<ExitStatus>>,
) {
    let status = child.wait();
    switch.disconnect();
    group.end();
    drop(scratch);
    // Nobody may be there any more to hear of it.
    let _ = ended.send(status);
}

/// Tells whoever waits for answers why there will be none: how the process ended, or what it did wrong.
async fn mourn(
    connection: std::sync::Weak<Connection>,
    (silence, exit, complaints): (
        oneshot::Receiver<Silence>,
        oneshot::Receiver<std::io::Result<ExitStatus>>,
        JoinHandle<String>,
    ),
    switch: Arc<Switch>,
) {
    let why = match silence.await {
        Ok(Silence::Ended) => {
            let status = tokio::time::timeout(PATIENCE, exit).await.ok().and_then(Result::ok);
            switch.turn_off();
            let how = status.and_then(Result::ok).map(|status| format!(" ({status})")).unwrap_or_default();
            let last = tokio::time::timeout(PATIENCE, complaints).await.ok().and_then(Result::ok);
            let last =
                last.filter(|last| !last.is_empty()).map(|last| format!(": {last}")).unwrap_or_default();
            Fault::new(Code::ExtensionFault, format!("the process has ended{how}{last}"))
        }
        Ok(Silence::Breach(fault)) => {
            switch.turn_off();
            fault
        }
        Err(_) => return,
    };
    if let Some(connection) = connection.upgrade() {
        connection.close(&why);
    }
}

/// Standard error, line by line, into the log. Gives the last of it, which most often says what went wrong.
async fn show(errors: pipe::Receiver, terms: Terms) -> String {
    let Terms { id, log, log_bytes, .. } = terms;
    let mut errors = BufReader::new(errors);
    let (mut line, mut left, mut last) = (Vec::new(), u64::from(log_bytes), String::new());
    loop {
        line.clear();
        match (&mut errors).take(SHOWN).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return last,
            Ok(_) => {}
        }
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end();
        if !text.trim().is_empty() {
            last = text.trim().chars().take(LAST).collect();
        }
        let fits = left >= line.len() as u64;
        tell(&log, &id, if fits { text } else { "" });
        left = left.saturating_sub(line.len() as u64);
    }
}

fn tell(log: &Option<LogSink>, id: &holdfast_contract::ids::ExtensionId, text: &str) {
    if let (Some(sink), false) = (log, text.is_empty()) {
        sink(id, LogLevel::Warning, text);
    }
}
