//! Requests and responses in both directions, one message per line.
//!
//! A protocol violation closes the connection: pending requests fail with the reason, and the process is killed.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use holdfast_contract::host_call::{HostCall, HostCallKind};
use holdfast_contract::ids::ExtensionId;
use holdfast_contract::log::{LogLevel, LogSink};
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::protocol::{
    CallStep, HostQuestion, LogLine, QuestionUpdate, RpcError, ToExtension, ToHost, plain,
};
use holdfast_contract::role::Role;
use holdfast_contract::wire::{CallUpdate, Host, Later, UpdateSink};
use holdfast_jsonrpc::error_code::{INVALID_PARAMS, METHOD_NOT_FOUND};
use holdfast_jsonrpc::{
    Completion, EncodeError, PendingRequests, RpcMessage, encode_request, encode_response, read_line,
};
use holdfast_program::{CallSource, ProgramLog};
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, BufReader};
use tokio::sync::oneshot;

use crate::process::writer::{WriteHalf, Writer};

/// The longest line that either side may send.
pub(crate) const MAX_LINE_BYTES: usize = 8 << 20;
/// Pending requests to one process.
const MAX_PENDING_REQUESTS: usize = 256;
/// Questions that may be under way at once.
const QUESTIONS: usize = 64;
/// Announced connections that have not been made.
const MAX_ANNOUNCED: usize = 64;
/// The methods of [`ToHost`].
const METHODS: [&str; 4] = ["ask", "connecting", "log", "progress"];
/// What only the gateway asks.
const GATEWAYS: [HostCallKind; 2] = [HostCallKind::NetworkConnect, HostCallKind::NetworkConnected];
/// Characters of an invalid line that are part of the error message.
const MAX_EXCERPT_CHARS: usize = 120;

/// The limits of one process, and where its log lines go.
#[derive(Clone)]
pub(crate) struct Terms {
    pub id: ExtensionId,
    pub log: Option<LogSink>,
    /// Host calls that one call may make.
    pub host_calls: u32,
    /// Bytes that may be logged between two requests.
    pub log_bytes: u32,
}

impl Terms {
    /// Logs a line about the process.
    pub(crate) fn log(&self, level: LogLevel, text: &str) {
        if let Some(sink) = &self.log {
            sink(&self.id, level, text);
        }
    }

    /// Where what the process prints goes.
    pub(crate) fn printed(&self) -> ProgramLog {
        ProgramLog { id: self.id.clone(), sink: self.log.clone(), max_bytes: self.log_bytes }
    }
}

/// Why a connection was closed by the other side.
pub(crate) enum Disconnect {
    /// The process has closed its output.
    Closed,
    /// The process has violated the protocol.
    Violation(Fault),
}

/// A connection to a process.
pub(crate) struct Connection {
    writer: Arc<Writer>,
    shared: Arc<Shared>,
}

struct Shared {
    terms: Terms,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    waiting: PendingRequests<Waiting>,
    questions: usize,
    logged: usize,
    /// The calls that announced a connection, for as long as a hook is open.
    announced: VecDeque<u64>,
    /// Why the connection is closed.
    closed: Option<Fault>,
}

struct Waiting {
    reply: oneshot::Sender<Result<Value, Fault>>,
    host: Arc<dyn Host>,
    /// Host calls that it may still make; unlimited for a background loop.
    left: Option<u32>,
    /// Bytes of progress that were reported.
    shown: usize,
    kind: RequestKind,
}

/// What a request is, in the order in which connections that nobody announced are attributed: to a tool call, which a turn waits for,
/// before a hook, and to a hook before anything else, such as the call of a background loop, which is always open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum RequestKind {
    Tool,
    /// A hook or a renderer, which has no side effects.
    Hook,
    Other,
}

impl RequestKind {
    fn of(message: &ToExtension) -> Self {
        match message {
            ToExtension::Tool(_) => Self::Tool,
            ToExtension::Hook(_) | ToExtension::Function { role: Role::Renderer, .. } => Self::Hook,
            _ => Self::Other,
        }
    }
}

impl State {
    /// The call that a new connection belongs to, if any is in progress.
    fn connecting(&mut self) -> Option<&mut Waiting> {
        let hook_decides = self.waiting.oldest_by_mut(|it| it.kind)?.kind == RequestKind::Hook;
        if !hook_decides {
            self.announced.clear();
        }
        while let Some(call) = self.announced.pop_front() {
            if self.waiting.get_mut(call).is_some() {
                return self.waiting.get_mut(call);
            }
        }
        self.waiting.oldest_by_mut(|it| it.kind)
    }

    /// Attributes the next connection to this call. A hook cannot announce one: it may not connect.
    fn announce(&mut self, call: u64) {
        let connects = self.waiting.get_mut(call).is_some_and(|it| it.kind != RequestKind::Hook);
        if connects && self.announced.len() < MAX_ANNOUNCED {
            self.announced.push_back(call);
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    fn log(&self, level: LogLevel, text: &str) {
        let Some(sink) = &self.terms.log else { return };
        let mut state = self.state();
        let (before, most) = (state.logged, self.terms.log_bytes as usize);
        state.logged = before.saturating_add(text.len());
        let (fits, first) = (state.logged <= most, before <= most);
        drop(state);
        if fits {
            sink(&self.terms.id, level, text);
        } else if first {
            sink(
                &self.terms.id,
                LogLevel::Warning,
                "log limit reached; further lines of this call are dropped",
            );
        }
    }
}

impl Shared {
    /// Reports the progress of a call, up to its byte limit. Ignored if the call has completed.
    fn progress(&self, step: &CallStep) {
        let mut state = self.state();
        let Some(waiting) = state.waiting.get_mut(step.call) else { return };
        waiting.shown = waiting.shown.saturating_add(step.text.len());
        if waiting.shown <= self.terms.log_bytes as usize {
            let host = waiting.host.clone();
            drop(state);
            host.progress(&step.text);
        }
    }
}

impl Connection {
    /// Opens a connection over these streams. `disconnected` receives the reason when the process closes it.
    pub(crate) fn open(
        input: WriteHalf,
        output: impl AsyncRead + Send + Unpin + 'static,
        terms: Terms,
        disconnected: oneshot::Sender<Disconnect>,
    ) -> Self {
        let shared = Arc::new(Shared { terms, state: Mutex::default() });
        let writer = Arc::new(Writer::open(input));
        let (reading, answers) = (shared.clone(), Arc::downgrade(&writer));
        tokio::spawn(async move {
            let why = read(output, &reading, &answers).await;
            // The receiver is gone if the process was dropped first.
            let _ = disconnected.send(why);
        });
        Self { writer, shared }
    }

    /// Closes the connection for this reason. Pending requests fail with it.
    pub(crate) fn close(&self, why: &Fault) {
        let mut state = self.shared.state();
        state.closed.get_or_insert_with(|| why.clone());
        for waiting in state.waiting.drain() {
            // The receiver is gone if the request was cancelled.
            let _ = waiting.reply.send(Err(why.clone()));
        }
    }

    /// Why the connection is closed, if it is.
    pub(crate) fn over(&self) -> Option<Fault> {
        self.shared.state().closed.clone()
    }

    /// Makes a request. Dropping the future cancels it, and the process is notified.
    pub(crate) async fn request(&self, message: &ToExtension, host: Arc<dyn Host>) -> Result<Value, Fault> {
        let (reply, answer) = oneshot::channel();
        let lasts = matches!(message, ToExtension::Function { role: Role::Service, .. });
        let left = (!lasts).then_some(self.shared.terms.host_calls);
        let kind = RequestKind::of(message);
        let id = self.begin(Waiting { reply, host, left, shown: 0, kind })?;
        let mut guard = RequestGuard { connection: self, id, answered: false };
        self.send(Some(id), message).await?;
        let answer = answer.await;
        guard.answered = true;
        answer.unwrap_or_else(|_| Err(Fault::new(Code::ExtensionFault, "the process has disconnected")))
    }

    fn begin(&self, waiting: Waiting) -> Result<u64, Fault> {
        let mut state = self.shared.state();
        if let Some(why) = &state.closed {
            return Err(why.clone());
        }
        if state.waiting.len() >= MAX_PENDING_REQUESTS {
            let message = format!("too many calls are in progress (limit {MAX_PENDING_REQUESTS})");
            return Err(Fault::new(Code::SlotsExhausted, message));
        }
        state.logged = 0;
        Ok(state.waiting.insert(waiting))
    }

    async fn send(&self, id: Option<u64>, message: &ToExtension) -> Result<(), Fault> {
        let line = outgoing(id, message)?;
        if self.writer.send(line).await {
            return Ok(());
        }
        Err(self.over().unwrap_or_else(|| Fault::new(Code::ExtensionFault, "the process has disconnected")))
    }
}

impl CallSource for Connection {
    fn oldest(&self) -> Result<Arc<dyn Host>, Fault> {
        let mut state = self.shared.state();
        let Some(waiting) = state.connecting() else {
            let message = "no call is in progress that the connection could belong to";
            return Err(Fault::new(Code::ToolDenied, message));
        };
        spend(waiting, self.shared.terms.host_calls)?;
        Ok(waiting.host.clone())
    }

    fn warn(&self, text: &str) {
        self.shared.log(LogLevel::Warning, text);
    }
}

/// A request to the process, or a notification, as a line.
fn outgoing(id: Option<u64>, message: &ToExtension) -> Result<String, Fault> {
    encode_request(id, message, MAX_LINE_BYTES).map_err(|error| not_encoded(&error))
}

fn not_encoded(error: &EncodeError) -> Fault {
    match error {
        EncodeError::Json(error) => {
            Fault::new(Code::Internal, format!("a message cannot be encoded as JSON: {error}"))
        }
        EncodeError::TooLong { bytes } => {
            let text = format!("a message of {bytes} bytes is too long for a process");
            Fault::new(Code::AnswerTooLarge, text)
        }
    }
}

/// Cancels a request when it is dropped before the response has arrived.
struct RequestGuard<'a> {
    connection: &'a Connection,
    id: u64,
    answered: bool,
}

impl Drop for RequestGuard<'_> {
    fn drop(&mut self) {
        if self.answered {
            return;
        }
        self.connection.shared.state().waiting.cancel(self.id);
        if let Ok(line) = outgoing(None, &ToExtension::Cancel { id: self.id }) {
            // Best effort: a process whose queue is full is not notified.
            self.connection.writer.try_write(&line);
        }
    }
}

/// Reads and handles lines until the connection is closed; returns why.
async fn read(output: impl AsyncRead + Unpin, shared: &Arc<Shared>, answers: &Weak<Writer>) -> Disconnect {
    let mut output = BufReader::new(output);
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        match read_line(&mut output, &mut bytes, MAX_LINE_BYTES).await {
            Ok(true) => {}
            Ok(false) => return Disconnect::Closed,
            Err(error) => return violation(&error.to_string(), &bytes),
        }
        if let Err(error) = handle_line(&bytes, shared, answers) {
            return violation(&error, &bytes);
        }
    }
}

fn violation(why: &str, line: &[u8]) -> Disconnect {
    let excerpt: String = String::from_utf8_lossy(line).chars().take(MAX_EXCERPT_CHARS).collect();
    let excerpt = if excerpt.is_empty() { String::new() } else { format!(": {excerpt:?}") };
    let message = format!("protocol violation: {why}{excerpt}");
    Disconnect::Violation(Fault::new(Code::ExtensionFault, message))
}

/// Handles one line. An error is a protocol violation.
fn handle_line(line: &[u8], shared: &Arc<Shared>, answers: &Weak<Writer>) -> Result<(), String> {
    match RpcMessage::parse(line).map_err(|error| error.to_string())? {
        RpcMessage::Request { id, method, params } => asked(method, params, Some(id), shared, answers),
        RpcMessage::Notification { method, params } => asked(method, params, None, shared, answers),
        RpcMessage::Response { id, answer } => {
            let id = id.as_u64().ok_or_else(|| format!("{id} is not the id of a request"))?;
            answered(id, answer.map_err(failure), shared)
        }
    }
}

/// The fault that an error response becomes.
fn failure(error: RpcError) -> Fault {
    let code = if error.code == INVALID_PARAMS { Code::ToolArguments } else { Code::ToolFailed };
    Fault::new(code, error.message)
}

fn answered(id: u64, answer: Result<Value, Fault>, shared: &Shared) -> Result<(), String> {
    let completion = shared.state().waiting.complete(id);
    match completion {
        Completion::Pending(waiting) => {
            // The receiver is gone if the call was cancelled at this moment.
            let _ = waiting.reply.send(answer);
            Ok(())
        }
        Completion::Cancelled => Ok(()),
        Completion::Unknown => Err(format!("no request is waiting for the response to {id}")),
    }
}

fn asked(
    method: String,
    params: Option<Value>,
    id: Option<Value>,
    shared: &Arc<Shared>,
    answers: &Weak<Writer>,
) -> Result<(), String> {
    let mut request = json!({ "method": method });
    if let (Some(params), Some(fields)) = (params, request.as_object_mut()) {
        fields.insert("params".to_owned(), params);
    }
    match (serde_json::from_value(request), id) {
        (Ok(ToHost::Log(LogLine { level, text })), None) => shared.log(level, &text),
        (Ok(ToHost::Progress(step)), None) => shared.progress(&step),
        (Ok(ToHost::Ask(question)), Some(id)) => ask(question, id, shared, answers),
        (Ok(ToHost::Connecting(step)), Some(id)) => {
            shared.state().announce(step.call);
            say(answers, &id, Ok(Value::Null));
        }
        (Ok(ToHost::Ask(_) | ToHost::Connecting(_)), None) => {
            return Err(format!("a request such as `{method}` needs an id"));
        }
        (Ok(ToHost::Log(_) | ToHost::Progress(_)), Some(_)) => {
            return Err(format!("a notification such as `{method}` has no id"));
        }
        (Err(_), None) if !METHODS.contains(&method.as_str()) => {
            shared.log(LogLevel::Warning, &format!("unknown notification `{method}`"));
        }
        (Err(error), None) => return Err(error.to_string()),
        (Err(error), Some(id)) => {
            let is_known = METHODS.contains(&method.as_str());
            let code = if is_known { INVALID_PARAMS } else { METHOD_NOT_FOUND };
            say(answers, &id, Err(RpcError { code, message: error.to_string(), data: None }));
        }
    }
    Ok(())
}

/// Answers a question of the process when the host has.
fn ask(question: HostQuestion, id: Value, shared: &Arc<Shared>, answers: &Weak<Writer>) {
    let host = permitted(&question, shared);
    let (timeout, updates) = (question.timeout_ms, question.updates);
    let call = host.and_then(|host| match HostCall::try_from(question) {
        Ok(call) => Ok((host, call)),
        Err(message) => {
            shared.state().questions -= 1;
            Err(RpcError { code: INVALID_PARAMS, message, data: None })
        }
    });
    let (host, call) = match call {
        Ok(both) => both,
        Err(error) => return say(answers, &id, Err(error)),
    };
    let (shared, answers) = (shared.clone(), answers.clone());
    let answer = if updates {
        let sink = ProcessUpdates { question: id.clone(), answers: answers.clone() };
        host.call_streamed(call, timeout, Arc::new(sink))
    } else {
        host.call_within(call, timeout)
    };
    tokio::spawn(async move {
        let answer = answer.await;
        shared.state().questions -= 1;
        let answer = answer.as_ref().map(plain).map_err(RpcError::from);
        say(&answers, &id, answer);
    });
}

/// Sends a process the updates of one of its questions.
struct ProcessUpdates {
    question: Value,
    answers: Weak<Writer>,
}

impl UpdateSink for ProcessUpdates {
    fn send(&self, update: CallUpdate) -> Later<()> {
        let message = ToExtension::Update(QuestionUpdate::new(self.question.clone(), update));
        let (line, writer) = (outgoing(None, &message), self.answers.upgrade());
        Box::pin(async move {
            // An update that is too long for a line is left out: the answer has all of the text.
            if let (Ok(line), Some(writer)) = (line, writer) {
                // A process that is gone needs no updates.
                let _ = writer.send(line).await;
            }
        })
    }
}

/// The host of the call that a question belongs to, if the call may ask once more.
fn permitted(question: &HostQuestion, shared: &Shared) -> Result<Arc<dyn Host>, RpcError> {
    let mut state = shared.state();
    let refused = |code: Code, message: String| Err(RpcError::from(&Fault::new(code, message)));
    if state.questions >= QUESTIONS {
        return refused(
            Code::HostCallsExhausted,
            format!("{QUESTIONS} questions are waiting for their answers already"),
        );
    }
    let Some(waiting) = state.waiting.get_mut(question.call) else {
        return refused(Code::ToolCancelled, format!("no call {} is under way", question.call));
    };
    // From a hook it is what the worker has kept it from: the host refuses it and records that.
    if GATEWAYS.iter().any(|kind| kind.name() == question.name) && waiting.kind != RequestKind::Hook {
        return refused(Code::ToolDenied, format!("`{}` is for the gateway to ask", question.name));
    }
    spend(waiting, shared.terms.host_calls).map_err(|fault| RpcError::from(&fault))?;
    let host = waiting.host.clone();
    state.questions += 1;
    Ok(host)
}

/// Counts one more question of a call, if it may ask once more.
fn spend(waiting: &mut Waiting, most: u32) -> Result<(), Fault> {
    if waiting.left == Some(0) {
        let message = format!("one call may ask the host {most} times");
        return Err(Fault::new(Code::HostCallsExhausted, message));
    }
    waiting.left = waiting.left.map(|left| left - 1);
    Ok(())
}

/// Answers the process.
fn say(answers: &Weak<Writer>, id: &Value, answer: Result<Value, RpcError>) {
    let line = encode_response(id, answer.as_ref(), MAX_LINE_BYTES).or_else(|error| {
        let error = RpcError::from(&not_encoded(&error));
        encode_response(id, Err(&error), MAX_LINE_BYTES)
    });
    if let (Ok(line), Some(lines)) = (line, answers.upgrade())
        && !lines.try_write(&line)
    {
        tokio::spawn(async move {
            // A process that is gone needs no answer.
            let _ = lines.send(line).await;
        });
    }
}
