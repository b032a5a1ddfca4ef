//! One call into a plugin: on a thread of its own, with answers to what it asks meanwhile.
//!
//! Code in this process cannot be stopped from outside. A call that is given up (a timeout, a cancelled turn) is told so by `cancel`; as
//! long as it has not returned, its plugin gets no further call.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use holdfast_contract::host_call::HostCall;
use holdfast_contract::ids::ExtensionId;
use holdfast_contract::log::{LogLevel, LogSink};
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::protocol::{
    CallStep, HostQuestion, LogLine, QuestionUpdate, RpcError, ToExtension, plain,
};
use holdfast_contract::role::Role;
use holdfast_contract::wire::{CallUpdate, Host, Later, UpdateSink};
use holdfast_jsonrpc::error_code::{INVALID_PARAMS, METHOD_NOT_FOUND, PARSE_ERROR};
use holdfast_jsonrpc::{RpcMessage, encode_request, encode_response};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};

use crate::crash::{Mark, marked};
use crate::library::{Answers, Library};

/// What this lane understands. A plugin connects without a gateway, so that it has nothing to announce.
pub(crate) const FEATURES: &[&str] = &["ask", "cancel", "log", "progress", "update"];
/// The longest message that either side may send.
pub(crate) const MAX_MESSAGE_BYTES: usize = 8 << 20;
/// How long a new call waits for one that was given up to return.
const RETURN_TIMEOUT: Duration = Duration::from_secs(5);
/// Calls that may be in progress at once, each on its thread.
const MAX_CALLS: usize = 256;
/// How the names of what only a program's gateway asks begin.
const GATEWAYS: &str = "network.";

/// The limits of a plugin's calls, and where its log lines go.
#[derive(Clone)]
pub(crate) struct Terms {
    pub id: ExtensionId,
    pub log: Option<LogSink>,
    /// Host calls that one call may make.
    pub host_calls: u32,
    /// Bytes that one call may log, and that it may show as progress.
    pub log_bytes: u32,
}

/// A loaded library with the calls in progress. Every instance of one activation has the same.
pub(crate) struct Image {
    library: Library,
    mark: Mark,
    next: AtomicU64,
    /// The calls in progress, each with whether it was given up.
    calls: Mutex<BTreeMap<u64, watch::Sender<bool>>>,
    /// How many of them were given up.
    given_up: watch::Sender<usize>,
}

/// Runs work on a thread under a plugin's mark.
pub(crate) async fn on_marked_thread<T: Send + 'static>(
    mark: Mark,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Fault> {
    let (done, answer) = oneshot::channel();
    spawn(move || {
        // The receiver is gone if nobody waits any more.
        let _ = done.send(marked(mark, work));
    })?;
    answer.await.map_err(|_| Fault::new(Code::ExtensionFault, "the plugin's thread has ended"))
}

fn spawn(work: impl FnOnce() + Send + 'static) -> Result<(), Fault> {
    let thread = std::thread::Builder::new().name("plugin".to_owned()).spawn(work);
    thread
        .map(drop)
        .map_err(|error| Fault::new(Code::SlotsExhausted, format!("could not start a thread: {error}")))
}

/// A message as bytes.
pub(crate) fn encoded(id: Option<u64>, message: &ToExtension) -> Result<Vec<u8>, Fault> {
    let line = encode_request(id, message, MAX_MESSAGE_BYTES)
        .map_err(|error| Fault::new(Code::AnswerTooLarge, format!("a message cannot be sent: {error:?}")))?;
    Ok(line.trim_end().as_bytes().to_vec())
}

/// Reads the answer to a request.
pub(crate) fn response(id: u64, answer: Result<Vec<u8>, String>) -> Result<Value, Fault> {
    let violation = |why: String| Fault::new(Code::ExtensionFault, format!("protocol violation: {why}"));
    let answer = answer.map_err(violation)?;
    match RpcMessage::<RpcError>::parse(&answer).map_err(|error| violation(error.to_string()))? {
        RpcMessage::Response { id: of, answer } if of == id => answer.map_err(|error| {
            let code = if error.code == INVALID_PARAMS { Code::ToolArguments } else { Code::ToolFailed };
            Fault::new(code, error.message)
        }),
        RpcMessage::Response { id: of, .. } => Err(violation(format!("{of} is not the id of the request"))),
        _ => Err(violation("the answer is not a response".to_owned())),
    }
}

impl Image {
    pub(crate) fn new(library: Library, mark: Mark) -> Self {
        Self {
            library,
            mark,
            next: AtomicU64::new(1),
            calls: Mutex::default(),
            given_up: watch::Sender::new(0),
        }
    }

    /// Answers `hello`. It is not a call: the plugin cannot ask anything meanwhile.
    pub(crate) async fn describe(self: &Arc<Self>, hello: &ToExtension) -> Result<Value, Fault> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (hello, image) = (encoded(Some(id), hello)?, self.clone());
        let work = move || image.library.describe(&hello, MAX_MESSAGE_BYTES);
        response(id, on_marked_thread(self.mark, work).await?)
    }

    /// Whether a call that was given up has not returned.
    pub(crate) fn is_stuck(&self) -> bool {
        *self.given_up.borrow() > 0
    }

    /// Waits for calls that were given up; an error if they do not return.
    pub(crate) async fn returned(&self) -> Result<(), Fault> {
        let mut given_up = self.given_up.subscribe();
        let all = given_up.wait_for(|count| *count == 0);
        match tokio::time::timeout(RETURN_TIMEOUT, all).await {
            Ok(_) => Ok(()),
            Err(_) => {
                let message = "a call that was given up has not returned, so no further call is made";
                Err(Fault::new(Code::PluginStuck, message))
            }
        }
    }

    /// Makes a request. Dropping the future gives the call up.
    pub(crate) async fn request(
        self: &Arc<Self>,
        message: &ToExtension,
        host: Arc<dyn Host>,
        terms: &Terms,
    ) -> Result<Value, Fault> {
        self.returned().await?;
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let lasts = matches!(message, ToExtension::Function { role: Role::Service, .. });
        let request = encoded(Some(id), message)?;
        let given_up = self.begin(id)?;
        let link = HostLink {
            image: self.clone(),
            id,
            given_up,
            host,
            runtime: Handle::current(),
            terms: terms.clone(),
            unlimited: lasts,
            asked: AtomicU32::new(0),
            logged: AtomicUsize::new(0),
            shown: AtomicUsize::new(0),
        };
        let mut guard = CallGuard { image: self.clone(), id, terms: terms.clone(), answered: false };
        let image = self.clone();
        let work = move || {
            let answer = image.library.call(&link, &request, MAX_MESSAGE_BYTES);
            image.end(id);
            answer
        };
        let answer = on_marked_thread(self.mark, work).await;
        guard.answered = true;
        response(id, answer.inspect_err(|_| self.end(id))?)
    }

    /// Begins a call, and gives what tells when it is given up.
    fn begin(&self, id: u64) -> Result<watch::Receiver<bool>, Fault> {
        let mut calls = self.calls.lock();
        if calls.len() >= MAX_CALLS {
            let message = format!("too many calls are in progress (limit {MAX_CALLS})");
            return Err(Fault::new(Code::SlotsExhausted, message));
        }
        let given_up = watch::Sender::new(false);
        let told = given_up.subscribe();
        calls.insert(id, given_up);
        Ok(told)
    }

    fn end(&self, id: u64) {
        if self.calls.lock().remove(&id).is_some_and(|given_up| *given_up.borrow()) {
            self.given_up.send_modify(|count| *count = count.saturating_sub(1));
        }
    }

    /// Whether a call goes on that somebody waits for.
    fn is_wanted(&self, id: u64) -> bool {
        self.calls.lock().get(&id).is_some_and(|given_up| !*given_up.borrow())
    }

    fn give_up(self: &Arc<Self>, id: u64, terms: &Terms) {
        match self.calls.lock().get(&id) {
            Some(given_up) => given_up.send_replace(true),
            None => return,
        };
        self.given_up.send_modify(|count| *count += 1);
        let Ok(cancel) = encoded(None, &ToExtension::Cancel { id }) else { return };
        let (image, terms) = (self.clone(), terms.clone());
        // A plugin that cannot be told finds out when it asks the host for something.
        let _untold = spawn(move || {
            let link = NoLink(terms);
            drop(marked(image.mark, || image.library.call(&link, &cancel, MAX_MESSAGE_BYTES)));
        });
    }
}

/// Gives a call up when it is dropped before the answer has arrived.
struct CallGuard {
    image: Arc<Image>,
    id: u64,
    terms: Terms,
    answered: bool,
}

impl Drop for CallGuard {
    fn drop(&mut self) {
        if !self.answered {
            self.image.give_up(self.id, &self.terms);
        }
    }
}

fn said(id: &Value, answer: Result<Value, RpcError>) -> Vec<u8> {
    let line = encode_response(id, answer.as_ref(), MAX_MESSAGE_BYTES).or_else(|error| {
        let message = format!("an answer cannot be sent: {error:?}");
        let error = RpcError::from(&Fault::new(Code::AnswerTooLarge, message));
        encode_response(id, Err(&error), MAX_MESSAGE_BYTES)
    });
    line.unwrap_or_default().trim_end().as_bytes().to_vec()
}

fn refused(code: Code, message: String) -> RpcError {
    RpcError::from(&Fault::new(code, message))
}

fn read<T: DeserializeOwned>(params: Option<Value>) -> Result<T, RpcError> {
    serde_json::from_value(params.unwrap_or_default()).map_err(|error| RpcError {
        code: INVALID_PARAMS,
        message: error.to_string(),
        data: None,
    })
}

/// Answers a plugin in the middle of a call.
struct HostLink {
    image: Arc<Image>,
    id: u64,
    given_up: watch::Receiver<bool>,
    host: Arc<dyn Host>,
    runtime: Handle,
    terms: Terms,
    /// A background loop asks as often as it likes.
    unlimited: bool,
    asked: AtomicU32,
    logged: AtomicUsize,
    shown: AtomicUsize,
}

impl Answers for HostLink {
    fn answer(&self, message: &[u8]) -> Vec<u8> {
        match RpcMessage::<RpcError>::parse(message) {
            Ok(RpcMessage::Request { id, method, params }) if method == "ask" => {
                said(&id, read(params).and_then(|question| self.ask(&id, question)))
            }
            Ok(RpcMessage::Request { id, method, .. }) => {
                let message = format!("there is no request `{method}`");
                said(&id, Err(RpcError { code: METHOD_NOT_FOUND, message, data: None }))
            }
            Ok(RpcMessage::Notification { method, params }) => {
                match method.as_str() {
                    "log" => self.log(read(params)),
                    "progress" => self.progress(read(params)),
                    _ => self.warn(&format!("unknown notification `{method}`")),
                }
                Vec::new()
            }
            Ok(RpcMessage::Response { .. }) => {
                self.warn("a response was sent to the host, which has not asked anything");
                Vec::new()
            }
            Err(error) => {
                let error = RpcError { code: PARSE_ERROR, message: error.to_string(), data: None };
                said(&Value::Null, Err(error))
            }
        }
    }
}

impl HostLink {
    fn ask(&self, id: &Value, question: HostQuestion) -> Result<Value, RpcError> {
        if question.call != self.id || !self.image.is_wanted(self.id) {
            return Err(refused(Code::ToolCancelled, format!("no call {} is under way", question.call)));
        }
        if question.name.starts_with(GATEWAYS) {
            let message = format!("`{}` is for the gateway to ask", question.name);
            return Err(refused(Code::ToolDenied, message));
        }
        let most = self.terms.host_calls;
        if !self.unlimited && self.asked.fetch_add(1, Ordering::Relaxed) >= most {
            let message = format!("one call may ask the host {most} times");
            return Err(refused(Code::HostCallsExhausted, message));
        }
        let (timeout, updates) = (question.timeout_ms, question.updates);
        let call = HostCall::try_from(question).map_err(|message| RpcError {
            code: INVALID_PARAMS,
            message,
            data: None,
        })?;
        let (host, (done, answer)) = (self.host.clone(), mpsc::sync_channel(1));
        let mut given_up = self.given_up.clone();
        let sink =
            PluginUpdates { image: self.image.clone(), question: id.clone(), terms: self.terms.clone() };
        self.runtime.spawn(async move {
            let answer = if updates {
                host.call_streamed(call, timeout, Arc::new(sink))
            } else {
                host.call_within(call, timeout)
            };
            let answer = tokio::select! {
                answer = answer => answer,
                // A call that nobody waits for must not wait for an answer either, or it would never return.
                _ = given_up.wait_for(|given_up| *given_up) => {
                    Err(Fault::new(Code::ToolCancelled, "the call was given up"))
                }
            };
            // The receiver waits as long as its thread lives.
            let _ = done.send(answer);
        });
        // The runtime drops the task when it shuts down.
        let stopped = |_| refused(Code::ToolCancelled, "the program is stopping".to_owned());
        let answer = answer.recv().map_err(stopped)?;
        answer.as_ref().map(plain).map_err(RpcError::from)
    }

    fn log(&self, line: Result<LogLine, RpcError>) {
        match line {
            Ok(LogLine { level, text }) => self.write(level, &text),
            Err(error) => self.warn(&format!("invalid notification `log`: {}", error.message)),
        }
    }

    fn progress(&self, step: Result<CallStep, RpcError>) {
        match step {
            Ok(CallStep { call, text }) if call == self.id && self.image.is_wanted(call) => {
                let before = self.shown.fetch_add(text.len(), Ordering::Relaxed);
                if before.saturating_add(text.len()) <= self.terms.log_bytes as usize {
                    self.host.progress(&text);
                }
            }
            Ok(_) => {}
            Err(error) => self.warn(&format!("invalid notification `progress`: {}", error.message)),
        }
    }

    fn warn(&self, text: &str) {
        self.write(LogLevel::Warning, text);
    }

    fn write(&self, level: LogLevel, text: &str) {
        let Some(sink) = &self.terms.log else { return };
        let most = self.terms.log_bytes as usize;
        let before = self.logged.fetch_add(text.len(), Ordering::Relaxed);
        if before.saturating_add(text.len()) <= most {
            sink(&self.terms.id, level, text);
        } else if before <= most {
            let dropped = "log limit reached; further lines of this call are dropped";
            sink(&self.terms.id, LogLevel::Warning, dropped);
        }
    }
}

/// Tells a plugin what happens while one of its questions is answered, on a thread of its own: the one that asked waits for the answer.
struct PluginUpdates {
    image: Arc<Image>,
    question: Value,
    terms: Terms,
}

impl UpdateSink for PluginUpdates {
    fn send(&self, update: CallUpdate) -> Later<()> {
        let message = ToExtension::Update(QuestionUpdate::new(self.question.clone(), update));
        let (image, link) = (self.image.clone(), NoLink(self.terms.clone()));
        let told = encoded(None, &message).map(|message| {
            let mark = image.mark;
            on_marked_thread(mark, move || drop(image.library.call(&link, &message, MAX_MESSAGE_BYTES)))
        });
        Box::pin(async move {
            // One that is too long for a message is left out: the answer has all of the text.
            if let Ok(told) = told {
                let _done = told.await;
            }
        })
    }
}

/// Answers what a plugin asks where it may ask nothing.
struct NoLink(Terms);

impl Answers for NoLink {
    fn answer(&self, message: &[u8]) -> Vec<u8> {
        match RpcMessage::<RpcError>::parse(message) {
            Ok(RpcMessage::Request { id, .. }) => {
                let message = format!("`{}` may not ask the host here", self.0.id);
                said(&id, Err(refused(Code::ToolDenied, message)))
            }
            _ => Vec::new(),
        }
    }
}
