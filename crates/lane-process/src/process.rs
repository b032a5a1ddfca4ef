//! One confined process: spawning it, and failing its requests with the reason when it exits.

pub(crate) mod connection;
mod writer;

use std::ffi::OsString;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::sync::Arc;

use holdfast_contract::manifest::Transport;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::protocol::ToExtension;
use holdfast_contract::wire::Host;
use holdfast_program::{ConfinedProgram, ProgramExit, ProgramPlan, ProgramPorts, gateway, log_stderr};
use holdfast_sandbox::Switch;
use serde_json::Value;
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::folder::FolderPlan;
use crate::process::connection::{Connection, Disconnect, Terms};
use crate::process::writer::WriteHalf;

/// A running process. Dropping it kills it, with every process that it started.
pub(crate) struct Process {
    connection: Arc<Connection>,
    switch: Arc<Switch>,
    /// The ports that it listens on. They are closed with it.
    pub(crate) ports: Arc<ProgramPorts>,
}

impl Process {
    /// Spawns it, confined.
    pub(crate) async fn start(plan: &FolderPlan, terms: Terms) -> Result<Self, Fault> {
        let program = ConfinedProgram::start(program(plan)).await?;
        Self::attach(program, plan.transport, terms)
    }

    fn attach(program: ConfinedProgram, transport: Transport, terms: Terms) -> Result<Self, Fault> {
        let ConfinedProgram { input, output, errors, gateway, connectors, switch, exit } = program;
        let no_pipe = |error| {
            switch.turn_off();
            Fault::new(Code::ExtensionFault, format!("could not open the program's pipes: {error}"))
        };
        let output = pipe::Receiver::from_owned_fd(output).map_err(no_pipe)?;
        let errors = pipe::Receiver::from_owned_fd(errors).map_err(no_pipe)?;
        let (disconnected, disconnect) = oneshot::channel();
        let stderr_task = tokio::spawn(log_stderr(errors, terms.printed()));
        let connection = match transport {
            Transport::Stdio => {
                let input = pipe::Sender::from_owned_fd(input).map_err(no_pipe)?;
                Connection::open(WriteHalf::Pipe(input), output, terms, disconnected)
            }
            Transport::Socket => {
                let socket = StdUnixStream::from(input);
                socket.set_nonblocking(true).map_err(no_pipe)?;
                let (reads, writes) = UnixStream::from_std(socket).map_err(no_pipe)?.into_split();
                tokio::spawn(log_stderr(output, terms.printed()));
                Connection::open(WriteHalf::Socket(writes), reads, terms, disconnected)
            }
        };
        let connection = Arc::new(connection);
        let gateway =
            gateway.map(|listeners| gateway::open(listeners, &connection)).transpose().map_err(no_pipe)?;
        let (weak_connection, kill_switch) = (Arc::downgrade(&connection), switch.clone());
        let ports = Arc::new(ProgramPorts::new(connectors));
        let open_ports = ports.clone();
        tokio::spawn(async move {
            await_exit(weak_connection, (disconnect, exit, stderr_task), kill_switch).await;
            open_ports.close();
            if let Some(gateway) = gateway {
                gateway.abort();
            }
        });
        Ok(Self { connection, switch, ports })
    }

    /// Makes a request.
    pub(crate) async fn request(&self, message: &ToExtension, host: Arc<dyn Host>) -> Result<Value, Fault> {
        self.connection.request(message, host).await
    }

    /// Stops it, and fails all requests with the reason.
    pub(crate) fn stop(&self, why: &Fault) {
        self.connection.close(why);
        self.switch.turn_off();
    }

    /// Why it can take no more requests, if so.
    pub(crate) fn over(&self) -> Option<Fault> {
        self.connection.over()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.connection.close(&Fault::new(Code::ExtensionFault, "the process was stopped"));
        self.ports.close();
        self.switch.turn_off();
    }
}

/// How the program of an activation is started.
fn program(plan: &FolderPlan) -> ProgramPlan {
    let mut readable: Vec<_> = plan.neighbours.iter().map(|(_, folder)| folder.path().to_owned()).collect();
    readable.extend(plan.readable.iter().cloned());
    let mut environment = plan.environment.clone();
    if !plan.neighbours.is_empty() {
        let folders = plan
            .neighbours
            .iter()
            .map(|(id, folder)| (id.to_string(), Value::String(folder.path().display().to_string())));
        let folders = OsString::from(Value::Object(folders.collect()).to_string());
        environment.push(("HOLDFAST_DEPENDS_ON".to_owned(), folders));
    }
    let program = plan.command.program().to_owned();
    ProgramPlan {
        words: std::iter::once(program).chain(plan.command.arguments().iter().cloned()).collect(),
        folder: plan.starts_in.clone(),
        data: plan.data.clone(),
        readable,
        granted: plan.granted.clone(),
        environment,
        variables: plan.variables.clone(),
        hosts: plan.hosts.clone(),
        listen: plan.listen.clone(),
        disk_bytes: plan.disk_bytes,
        socket: plan.transport == Transport::Socket,
        report: plan.report.clone(),
    }
}

/// Waits for the disconnect, then fails all pending requests with the reason: the exit status, or the protocol violation.
async fn await_exit(
    connection: std::sync::Weak<Connection>,
    (disconnect, exit, stderr_task): (oneshot::Receiver<Disconnect>, ProgramExit, JoinHandle<String>),
    switch: Arc<Switch>,
) {
    let why = match disconnect.await {
        Ok(Disconnect::Closed) => exit.reason(stderr_task, &switch).await,
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
