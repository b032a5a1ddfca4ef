//! Requests and answers, both ways, a message to a line.
//!
//! Whoever breaks the rules of the protocol is no longer listened to: what is waited for fails with the reason, and the process ends.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use holdfast_contract::host_call::HostCall;
use holdfast_contract::ids::ExtensionId;
use holdfast_contract::log::{LogLevel, LogSink};
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::protocol::{
    CallStep, HostQuestion, LogLine, RpcError, ToExtension, ToHost, plain, present,
};
use holdfast_contract::role::Role;
use holdfast_contract::wire::Host;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};
use tokio::sync::oneshot;

use crate::writer::{WriteHalf, Writer};

/// The longest line that either side may send.
pub(crate) const LINE_BYTES: usize = 8 << 20;
/// Requests that may be under way at once.
const CALLS: usize = 256;
/// Questions that may be under way at once.
const QUESTIONS: usize = 64;
/// JSON-RPC's numbers for arguments that do not fit, and for a method that is not known.
const INVALID: i64 = -32602;
const UNKNOWN: i64 = -32601;
/// How the names of what only the gateway asks begin.
const GATEWAYS: &str = "network.";
/// Characters of an offending line that are shown.
const SHOWN: usize = 120;

/// What one process is allowed in one call, and whom its log lines go to.
#[derive(Clone)]
pub(crate) struct Terms {
    pub id: ExtensionId,
    pub log: Option<LogSink>,
    /// How often one call may ask the host.
    pub host_calls: u32,
    /// Bytes that may be logged between two requests.
    pub log_bytes: u32,
}

/// Anything that a process may say.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Incoming {
    jsonrpc: String,
    #[serde(default)]
    id: Option<Value>,
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    params: Option<Value>,
    #[serde(default, deserialize_with = "present")]
    result: Option<Value>,
    #[serde(default)]
    error: Option<RpcError>,
}

/// Why there is nothing more to hear.
pub(crate) enum Silence {
    /// The process has closed its output.
    Ended,
    /// It has not kept to the protocol.
    Breach(Fault),
}

/// A conversation with a process.
pub(crate) struct Connection {
    outlet: Arc<Writer>,
    shared: Arc<Shared>,
}

struct Shared {
    terms: Terms,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    last: u64,
    waiting: HashMap<u64, Waiting>,
    /// Requests whose answers are no longer wanted; they may still come.
    given_up: HashSet<u64>,
    questions: usize,
    logged: usize,
    /// Why nothing more is said.
    over: Option<Fault>,
}

struct Waiting {
    reply: oneshot::Sender<Result<Value, Fault>>,
    host: Arc<dyn Host>,
    /// How often it may still ask; a loop in the background, as often as it likes.
    left: Option<u32>,
    /// Bytes of progress that were shown.
    shown: usize,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
            sink(&self.terms.id, LogLevel::Warning, "it logs too much; the rest of this call's is left out");
        }
    }
}

impl Shared {
    /// Shows how a call is getting on, as far as one call may be long about it. A call that is over has nothing to show.
    fn progress(&self, step: &CallStep) {
        let mut state = self.state();
        let Some(waiting) = state.waiting.get_mut(&step.call) else { return };
        waiting.shown = waiting.shown.saturating_add(step.text.len());
        if waiting.shown <= self.terms.log_bytes as usize {
            let host = waiting.host.clone();
            drop(state);
            host.progress(&step.text);
        }
    }
}

impl Connection {
    /// Talks over these. `over` is told once why it has ended, when it has.
    pub(crate) fn open(
        input: WriteHalf,
        output: impl AsyncRead + Send + Unpin + 'static,
        terms: Terms,
        over: oneshot::Sender<Silence>,
    ) -> Self {
        let shared = Arc::new(Shared { terms, state: Mutex::default() });
        let outlet = Arc::new(Writer::open(input));
        let (reading, answers) = (shared.clone(), Arc::downgrade(&outlet));
        tokio::spawn(async move {
            let why = read(output, &reading, &answers).await;
            // Nobody waits for it who is gone.
            let _ = over.send(why);
        });
        Self { outlet, shared }
    }

    /// Nothing more is said, for this reason; whoever waits is told.
    pub(crate) fn close(&self, why: &Fault) {
        let mut state = self.shared.state();
        state.over.get_or_insert_with(|| why.clone());
        for (_, waiting) in state.waiting.drain() {
            // Whoever does not wait any more needs no reason.
            let _ = waiting.reply.send(Err(why.clone()));
        }
    }

    /// The host of the call that the process has been working on for the longest, to ask on its behalf.
    pub(crate) fn oldest(&self) -> Result<Arc<dyn Host>, Fault> {
        let mut state = self.shared.state();
        let oldest = state.waiting.iter_mut().min_by_key(|(id, _)| **id);
        let Some((_, waiting)) = oldest else {
            let message = "no call is under way that the connection could be for";
            return Err(Fault::new(Code::ToolDenied, message));
        };
        spend(waiting, self.shared.terms.host_calls)?;
        Ok(waiting.host.clone())
    }

    /// Writes a line to the log.
    pub(crate) fn warn(&self, text: &str) {
        self.shared.log(LogLevel::Warning, text);
    }

    /// Why nothing more is said, if so.
    pub(crate) fn over(&self) -> Option<Fault> {
        self.shared.state().over.clone()
    }

    /// Makes a request. Dropping the future tells the process that the answer is no longer wanted.
    pub(crate) async fn request(&self, message: &ToExtension, host: Arc<dyn Host>) -> Result<Value, Fault> {
        let (reply, answer) = oneshot::channel();
        let lasts = matches!(message, ToExtension::Function { role: Role::Service, .. });
        let left = (!lasts).then_some(self.shared.terms.host_calls);
        let id = self.begin(Waiting { reply, host, left, shown: 0 })?;
        let mut wanted = Wanted { connection: self, id, answered: false };
        self.say(Some(id), message).await?;
        let answer = answer.await;
        wanted.answered = true;
        answer.unwrap_or_else(|_| Err(Fault::new(Code::ExtensionFault, "the process is gone")))
    }

    fn begin(&self, waiting: Waiting) -> Result<u64, Fault> {
        let mut state = self.shared.state();
        if let Some(why) = &state.over {
            return Err(why.clone());
        }
        if state.waiting.len() >= CALLS {
            let message = format!("{CALLS} calls are under way already");
            return Err(Fault::new(Code::SlotsExhausted, message));
        }
        state.last += 1;
        state.logged = 0;
        let id = state.last;
        state.waiting.insert(id, waiting);
        Ok(id)
    }

    async fn say(&self, id: Option<u64>, message: &ToExtension) -> Result<(), Fault> {
        let line = outgoing(id, message)?;
        if self.outlet.send(line).await {
            return Ok(());
        }
        Err(self.over().unwrap_or_else(|| Fault::new(Code::ExtensionFault, "the process is gone")))
    }
}

/// A request to the process, or a word that needs no answer, as a line.
fn outgoing(id: Option<u64>, message: &ToExtension) -> Result<String, Fault> {
    let head = match id {
        Some(id) => format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},"),
        None => "{\"jsonrpc\":\"2.0\",".to_owned(),
    };
    // The message is an object of its own: the head takes the place of its first brace.
    line(message, head, 1)
}

/// A message as a line, behind a head that takes the place of its first bytes. One that is too long is not sent.
fn line(message: &impl Serialize, head: String, without: usize) -> Result<String, Fault> {
    let text = serde_json::to_string(message)
        .map_err(|error| Fault::new(Code::Internal, format!("a message cannot be written: {error}")))?;
    let mut line = head;
    line.push_str(text.get(without..).unwrap_or_default());
    if line.len() >= LINE_BYTES {
        let text = format!("a message of {} bytes is too long for a process", line.len());
        return Err(Fault::new(Code::AnswerTooLarge, text));
    }
    line.push('\n');
    Ok(line)
}

/// A request whose answer is wanted for as long as this lives.
struct Wanted<'a> {
    connection: &'a Connection,
    id: u64,
    answered: bool,
}

impl Drop for Wanted<'_> {
    fn drop(&mut self) {
        if self.answered {
            return;
        }
        let mut state = self.connection.shared.state();
        if state.waiting.remove(&self.id).is_some() {
            state.given_up.insert(self.id);
        }
        drop(state);
        if let Ok(line) = outgoing(None, &ToExtension::Cancel { id: self.id }) {
            // A process that does not read is not told.
            self.connection.outlet.try_write(&line);
        }
    }
}

/// Listens until there is nothing more to hear, and says why.
async fn read(output: impl AsyncRead + Unpin, shared: &Arc<Shared>, answers: &Weak<Writer>) -> Silence {
    let mut output = BufReader::new(output);
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        match next_line(&mut output, &mut bytes).await {
            Ok(true) => {}
            Ok(false) => return Silence::Ended,
            Err(error) => return broken(&error, &bytes),
        }
        if let Err(error) = handle_line(&bytes, shared, answers) {
            return broken(&error, &bytes);
        }
    }
}

fn broken(why: &str, line: &[u8]) -> Silence {
    let shown: String = String::from_utf8_lossy(line).chars().take(SHOWN).collect();
    let shown = if shown.is_empty() { String::new() } else { format!(": {shown:?}") };
    let message = format!("the process does not keep to the protocol: {why}{shown}");
    Silence::Breach(Fault::new(Code::ExtensionFault, message))
}

/// The next line without its end; false where there is none.
async fn next_line(output: &mut (impl AsyncBufReadExt + Unpin), line: &mut Vec<u8>) -> Result<bool, String> {
    let mut within = output.take(LINE_BYTES as u64 + 1);
    let read = within.read_until(b'\n', line).await.map_err(|error| format!("it cannot be read: {error}"))?;
    match line.pop() {
        Some(b'\n') => Ok(true),
        None => Ok(false),
        Some(_) if read > LINE_BYTES => Err(format!("a line is longer than {LINE_BYTES} bytes")),
        Some(last) => {
            line.push(last);
            Err("it ended in the middle of a line".to_owned())
        }
    }
}

/// Takes one line. An error is a breach of the protocol.
fn handle_line(line: &[u8], shared: &Arc<Shared>, answers: &Weak<Writer>) -> Result<(), String> {
    let message: Incoming = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    if message.jsonrpc != "2.0" {
        return Err(format!("`jsonrpc` is {:?} and not \"2.0\"", message.jsonrpc));
    }
    match message {
        Incoming { method: Some(method), id, params, result: None, error: None, .. } => {
            asked(method, params, id, shared, answers)
        }
        Incoming { method: None, id: Some(id), params: None, result, error, .. } => {
            let answer = match (result, error) {
                (Some(result), None) => Ok(result),
                (None, Some(error)) => Err(failure(error)),
                _ => return Err("an answer has either a result or an error".to_owned()),
            };
            let id = id.as_u64().ok_or_else(|| format!("{id} is no request's id"))?;
            answered(id, answer, shared)
        }
        _ => Err("it is neither a request nor an answer".to_owned()),
    }
}

/// What an extension's own failure is to whoever called it.
fn failure(error: RpcError) -> Fault {
    let code = if error.code == INVALID { Code::ToolArguments } else { Code::ToolFailed };
    Fault::new(code, error.message)
}

fn answered(id: u64, answer: Result<Value, Fault>, shared: &Shared) -> Result<(), String> {
    let mut state = shared.state();
    if let Some(waiting) = state.waiting.remove(&id) {
        // Nobody waits any more: the answer came as it was given up.
        let _ = waiting.reply.send(answer);
        return Ok(());
    }
    match state.given_up.remove(&id) {
        true => Ok(()),
        false => Err(format!("nobody asked for the answer to {id}")),
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
        (Ok(ToHost::Ask(_)), None) => return Err("a question has an id".to_owned()),
        (Ok(ToHost::Log(_) | ToHost::Progress(_)), Some(_)) => {
            return Err(format!("a notice such as `{method}` has no id"));
        }
        (Err(_), None) if !["ask", "log", "progress"].contains(&method.as_str()) => {
            shared.log(LogLevel::Warning, &format!("it says `{method}`, which means nothing here"));
        }
        (Err(error), None) => return Err(error.to_string()),
        (Err(error), Some(id)) => {
            let code = if method == "ask" { INVALID } else { UNKNOWN };
            say(answers, &id, Err(RpcError { code, message: error.to_string(), data: None }));
        }
    }
    Ok(())
}

/// Answers a question of the process when the host has.
fn ask(question: HostQuestion, id: Value, shared: &Arc<Shared>, answers: &Weak<Writer>) {
    let host = permitted(&question, shared);
    let timeout = question.timeout_ms;
    let call = host.and_then(|host| match HostCall::try_from(question) {
        Ok(call) => Ok((host, call)),
        Err(message) => {
            shared.state().questions -= 1;
            Err(RpcError { code: INVALID, message, data: None })
        }
    });
    let (host, call) = match call {
        Ok(both) => both,
        Err(error) => return say(answers, &id, Err(error)),
    };
    let (shared, answers) = (shared.clone(), answers.clone());
    let answer = host.call_within(call, timeout);
    tokio::spawn(async move {
        let answer = answer.await;
        shared.state().questions -= 1;
        let answer = answer.as_ref().map(plain).map_err(RpcError::from);
        say(&answers, &id, answer);
    });
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
    let Some(waiting) = state.waiting.get_mut(&question.call) else {
        return refused(Code::ToolCancelled, format!("no call {} is under way", question.call));
    };
    if question.name.starts_with(GATEWAYS) {
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
    let message = match &answer {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err(error) => json!({ "jsonrpc": "2.0", "id": id, "error": error }),
    };
    let line = line(&message, String::new(), 0).or_else(|fault| {
        let error = json!({ "jsonrpc": "2.0", "id": id, "error": RpcError::from(&fault) });
        line(&error, String::new(), 0)
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
