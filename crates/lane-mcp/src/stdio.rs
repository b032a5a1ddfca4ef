//! Messages over the streams of a confined program, one in each line. What a program sends is bounded: the length of a line, the number
//! of lines that are not messages, and the notifications that it sends unasked. What breaks the protocol closes the connection.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use holdfast_contract::log::LogLevel;
use holdfast_contract::problem::{Code, Fault};
use holdfast_jsonrpc::{LineError, read_line};
use holdfast_program::{ConfinedProgram, ProgramLog, ProgramPlan, gateway, log_stderr};
use holdfast_sandbox::Switch;
use parking_lot::Mutex;
use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::BufReader;
use tokio::net::unix::pipe;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::calls::ActiveCalls;
use crate::server::{discovered, discovers, observe};

/// The longest line that either side may send.
pub(crate) const MAX_LINE_BYTES: usize = 8 << 20;
/// Lines that are not messages and are skipped.
const MAX_ODD_LINES: u32 = 16;
/// Notifications and requests between two of our messages.
const MAX_UNASKED: u32 = 10_000;
/// Messages that are received and not yet taken.
const MAX_QUEUED_MESSAGES: usize = 64;
/// Characters of an invalid line that are part of the error message.
const MAX_EXCERPT_CHARS: usize = 120;
/// Requests that are not answered, because they were cancelled or because the server never answers.
const MAX_OPEN_REQUESTS: usize = 4_096;

/// Why a connection is over.
#[derive(Clone, Default)]
pub(crate) struct ClosedReason(Arc<Mutex<Option<Fault>>>);

impl ClosedReason {
    pub(crate) fn set(&self, fault: Fault) {
        self.0.lock().get_or_insert(fault);
    }

    pub(crate) fn get(&self) -> Option<Fault> {
        self.0.lock().clone()
    }
}

/// Kills a program when it is dropped.
pub(crate) struct KillOnDrop(Arc<Switch>);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        self.0.turn_off();
    }
}

/// What must be kept as long as a program is in use.
pub(crate) struct ProgramGuard {
    _kill: KillOnDrop,
    gateway: Option<JoinHandle<()>>,
}

impl Drop for ProgramGuard {
    fn drop(&mut self) {
        if let Some(gateway) = &self.gateway {
            gateway.abort();
        }
    }
}

/// A message could not be sent.
#[derive(Debug)]
pub(crate) struct SendFailed(String);

impl fmt::Display for SendFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SendFailed {}

/// The transport over a program's streams.
pub(crate) struct ProgramTransport {
    input: Arc<tokio::sync::Mutex<pipe::Sender>>,
    /// What the reader has received. Reading a line must not be cancelled halfway, so a task does it.
    messages: mpsc::Receiver<ServerJsonRpcMessage>,
    reader: JoinHandle<()>,
    calls: Arc<ActiveCalls>,
    exchange: Arc<Mutex<Exchange>>,
    switch: Arc<Switch>,
}

impl Drop for ProgramTransport {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

/// What both directions know.
#[derive(Default)]
struct Exchange {
    /// Our requests that are not answered.
    open: HashSet<RequestId>,
    /// The request that asks the server what it supports.
    discovery: Option<RequestId>,
    /// Notifications and requests of the server since our last message.
    unasked: u32,
}

/// Reads what a program sends.
struct MessageReader {
    output: BufReader<pipe::Receiver>,
    line: Vec<u8>,
    calls: Arc<ActiveCalls>,
    closed: ClosedReason,
    exchange: Arc<Mutex<Exchange>>,
    odd: u32,
    exit: Option<(holdfast_program::ProgramExit, JoinHandle<String>)>,
    switch: Arc<Switch>,
}

/// Starts a server's program.
pub(crate) async fn start(
    plan: ProgramPlan,
    calls: &Arc<ActiveCalls>,
    closed: &ClosedReason,
) -> Result<(ProgramTransport, ProgramGuard), Fault> {
    let ConfinedProgram { input, output, errors, gateway, switch, exit, .. } =
        ConfinedProgram::start(plan).await?;
    let kill = KillOnDrop(switch.clone());
    let no_pipe = |error: std::io::Error| {
        Fault::new(Code::McpServerFailed, format!("could not open the program's pipes: {error}"))
    };
    let input = pipe::Sender::from_owned_fd(input).map_err(no_pipe)?;
    let output = pipe::Receiver::from_owned_fd(output).map_err(no_pipe)?;
    let errors = pipe::Receiver::from_owned_fd(errors).map_err(no_pipe)?;
    let terms = &calls.terms;
    let log = ProgramLog { id: terms.id.clone(), sink: terms.log.clone(), max_bytes: terms.log_bytes };
    let stderr_task = tokio::spawn(log_stderr(errors, log));
    let gateway = gateway.map(|listeners| gateway::open(listeners, calls)).transpose().map_err(no_pipe)?;
    let exchange = Arc::new(Mutex::new(Exchange::default()));
    let mut reader = MessageReader {
        output: BufReader::new(output),
        line: Vec::new(),
        calls: calls.clone(),
        closed: closed.clone(),
        exchange: exchange.clone(),
        odd: 0,
        exit: Some((exit, stderr_task)),
        switch: switch.clone(),
    };
    let (received, messages) = mpsc::channel(MAX_QUEUED_MESSAGES);
    let reader = tokio::spawn(async move {
        while let Some(message) = reader.next().await {
            if received.send(message).await.is_err() {
                return;
            }
        }
    });
    let input = Arc::new(tokio::sync::Mutex::new(input));
    let transport = ProgramTransport { input, messages, reader, calls: calls.clone(), exchange, switch };
    Ok((transport, ProgramGuard { _kill: kill, gateway }))
}

impl MessageReader {
    fn violation(&mut self, why: &str) -> Option<ServerJsonRpcMessage> {
        let excerpt: String = String::from_utf8_lossy(&self.line).chars().take(MAX_EXCERPT_CHARS).collect();
        let excerpt = if excerpt.is_empty() { String::new() } else { format!(": {excerpt:?}") };
        self.closed.set(Fault::new(Code::McpProtocol, format!("{why}{excerpt}")));
        self.switch.turn_off();
        None
    }

    /// The next message; nothing if the connection is over.
    async fn next(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            self.line.clear();
            match read_line(&mut self.output, &mut self.line, MAX_LINE_BYTES).await {
                Ok(true) => {}
                Ok(false) | Err(LineError::Truncated | LineError::Io(_)) => return self.ended().await,
                Err(error @ LineError::TooLong { .. }) => return self.violation(&error.to_string()),
            }
            if self.line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            match serde_json::from_slice::<ServerJsonRpcMessage>(&self.line) {
                Ok(message) => return self.accept(message),
                Err(error) => {
                    self.odd += 1;
                    if self.odd > MAX_ODD_LINES {
                        return self.violation(&format!(
                            "more than {MAX_ODD_LINES} lines are not messages: {error}"
                        ));
                    }
                    let text = String::from_utf8_lossy(&self.line).into_owned();
                    self.calls
                        .log(LogLevel::Warning, &format!("skipped a line that is not a message: {text}"));
                }
            }
        }
    }

    /// A message as it is passed on, if it fits.
    fn accept(&mut self, message: ServerJsonRpcMessage) -> Option<ServerJsonRpcMessage> {
        let answered = match &message {
            ServerJsonRpcMessage::Response(response) => Some(response.id.clone()),
            ServerJsonRpcMessage::Error(error) => error.id.clone(),
            ServerJsonRpcMessage::Request(_) | ServerJsonRpcMessage::Notification(_) => {
                let unasked = {
                    let mut exchange = self.exchange.lock();
                    exchange.unasked += 1;
                    exchange.unasked
                };
                if unasked > MAX_UNASKED {
                    return self
                        .violation(&format!("more than {MAX_UNASKED} messages that nobody asked for"));
                }
                return Some(message);
            }
        };
        let Some(id) = answered else { return Some(message) };
        let (is_ours, discovery) = {
            let mut exchange = self.exchange.lock();
            (exchange.open.remove(&id), exchange.discovery.as_ref() == Some(&id))
        };
        match (is_ours, discovery) {
            (false, _) => self.violation("a response to a request that was not made"),
            (true, true) => Some(discovered(message)),
            (true, false) => Some(message),
        }
    }

    async fn ended(&mut self) -> Option<ServerJsonRpcMessage> {
        if let Some((exit, stderr_task)) = self.exit.take() {
            let fault = exit.reason(stderr_task, &self.switch).await;
            self.closed.set(Fault::new(Code::McpServerFailed, fault.message));
        }
        None
    }
}

impl Transport<RoleClient> for ProgramTransport {
    type Error = SendFailed;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let mut exchange = self.exchange.lock();
        exchange.unasked = 0;
        if let ClientJsonRpcMessage::Request(request) = &message {
            if exchange.open.len() >= MAX_OPEN_REQUESTS {
                exchange.open.clear();
            }
            exchange.open.insert(request.id.clone());
        }
        exchange.discovery = discovers(&message).or(exchange.discovery.take());
        drop(exchange);
        observe(&self.calls, &message);
        let input = self.input.clone();
        async move {
            let failed = |error: String| SendFailed(error);
            let mut line = serde_json::to_vec(&message).map_err(|error| failed(error.to_string()))?;
            if line.len() > MAX_LINE_BYTES {
                return Err(failed(format!("a message of {} bytes is too long for a server", line.len())));
            }
            line.push(b'\n');
            let mut input = input.lock().await;
            tokio::io::AsyncWriteExt::write_all(&mut *input, &line)
                .await
                .map_err(|error| failed(error.to_string()))
        }
    }

    fn receive(&mut self) -> impl Future<Output = Option<ServerJsonRpcMessage>> + Send {
        self.messages.recv()
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.switch.turn_off();
        Ok(())
    }
}
