//! The owner's side: takes requests, and sends the feeds of the sessions that a client has opened.
//!
//! This file reads messages and hands each request to the handlers of its group: `session`, `extensions`, `system`, `bus`,
//! `schedules`, `secrets`.

mod bus;
mod extensions;
mod schedules;
mod secrets;
mod session;
mod summaries;
mod system;

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use holdfast_contract::content::to_whole_json;
use holdfast_contract::ids::StreamId;
use holdfast_contract::problem::{Code, Problem};
use holdfast_jsonrpc::error_code;
use holdfast_policy::{Policy, Rule};
use holdfast_runtime::{NewSession, Runtime};
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, BufReader};
use tokio::task::JoinSet;

use self::session::OpenedSession;
use crate::active_clients::{ActiveClients, ClientGuard};
use crate::hub::Hub;
use crate::line;
use crate::outgoing::Outgoing;
use crate::protocol::{ClientHello, Request, RequestError, ServerHello, SessionMethod, SessionOpen};

pub use summaries::{FIRST_FRAMES, existing_stream, session_summaries};

/// A new session as the home is set, and what its client should know about it.
pub type CreatedSession = (NewSession, Vec<Problem>);

/// Makes a new session as the home is set.
pub type CreateSession = dyn Fn(&SessionOpen) -> Result<CreatedSession, Problem> + Send + Sync;

/// Writes a rule into the home's policy and gives the policy as it is then.
pub type Remember = dyn Fn(Rule) -> Result<Policy, Problem> + Send + Sync;

/// What a server answers for.
pub struct ServerContext {
    /// The runtime.
    pub runtime: Runtime,
    /// Its surface.
    pub hub: Arc<Hub>,
    /// Who it is.
    pub welcome: ServerHello,
    /// How new sessions are made.
    pub create_session: Box<CreateSession>,
    /// What "always" does.
    pub remember: Box<Remember>,
}

/// How long a client has to take the reason for which it is disconnected.
const LAST_ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// The command that names a session, as it stands in a `command.run` frame.
pub const RENAME: &str = "rename";

/// Answers for an owner. Clones share it.
#[derive(Clone)]
pub struct Server {
    owner: Arc<ServerContext>,
    clients: ActiveClients,
}

/// One connection: the sessions that it has opened, and its queue.
struct Connection {
    owner: Arc<ServerContext>,
    /// Where a client of another process registers.
    clients: Option<ActiveClients>,
    registered: Mutex<Option<ClientGuard>>,
    /// What the client said of itself.
    hello: Mutex<Option<ClientHello>>,
    lines: Outgoing,
    sessions: Mutex<HashMap<StreamId, OpenedSession>>,
}

impl Server {
    /// A server.
    pub fn new(owner: ServerContext) -> Self {
        Self { owner: Arc::new(owner), clients: ActiveClients::default() }
    }

    /// What it answers for.
    pub fn owner(&self) -> &ServerContext {
        &self.owner
    }

    /// The commands of other processes that are being served.
    pub fn active_clients(&self) -> &ActiveClients {
        &self.clients
    }

    /// Serves a connection of this process until its other side has gone.
    pub async fn serve(self, connection: impl AsyncRead + AsyncWrite + Send + 'static) {
        self.serve_as(connection, None).await;
    }

    /// Serves a connection of another process until it has gone.
    pub async fn serve_process(self, connection: impl AsyncRead + AsyncWrite + Send + 'static) {
        let clients = self.clients.clone();
        let _connected = clients.connect();
        self.serve_as(connection, Some(clients)).await;
    }

    /// Requests are taken in their order. Those that wait for a turn are answered when it has ended, all others at once.
    async fn serve_as(
        self,
        connection: impl AsyncRead + AsyncWrite + Send + 'static,
        clients: Option<ActiveClients>,
    ) {
        let (reader, writer) = tokio::io::split(connection);
        let (lines, write) = Outgoing::open(writer);
        let hub = self.owner.hub.clone();
        let written = tokio::spawn(async move {
            if write.await {
                hub.tell_all(
                    None,
                    "disconnected a slow client: too much output was queued for it".to_owned(),
                );
            }
        });
        let gone = lines.clone();
        let (registered, hello, sessions) = (Mutex::default(), Mutex::default(), Mutex::default());
        let connection =
            Arc::new(Connection { owner: self.owner, clients, registered, hello, lines, sessions });
        let (mut tasks, mut refused) = (JoinSet::new(), false);
        let mut reader = BufReader::new(reader);
        loop {
            let line = tokio::select! {
                line = line::read(&mut reader) => line,
                () = gone.closed() => break,
            };
            let line = match line {
                Ok(Some(line)) => line,
                Ok(None) => break,
                Err(problem) => {
                    refused = true;
                    let answer = Err((error_code::INVALID_REQUEST, problem));
                    connection.lines.send(line::answer(Value::Null, answer));
                    break;
                }
            };
            if let Some((id, request)) = connection.request(&line) {
                let connection = connection.clone();
                let mut answer = Box::pin(async move { connection.answer(id, request).await });
                // What was asked first is begun first, so that a client need not wait for one answer before it asks the next.
                if std::future::poll_fn(|context| Poll::Ready(answer.as_mut().poll(context)))
                    .await
                    .is_pending()
                {
                    tasks.spawn(answer);
                }
            }
            while tasks.try_join_next().is_some() {}
        }
        // The client is gone; what was begun goes on in its session.
        tasks.abort_all();
        connection.sessions.lock().clear();
        drop(connection);
        let writing = written.abort_handle();
        if refused {
            // The reason is sent before the connection is closed.
            drop(gone);
            let _sent = tokio::time::timeout(LAST_ANSWER_TIMEOUT, written).await;
        }
        writing.abort();
    }
}

impl Connection {
    /// A line as a request. What is not a request is refused.
    fn request(&self, line: &[u8]) -> Option<(Value, Request)> {
        let refuse = |id: Value, code: i64, what: String| {
            let problem = Problem::new(Code::UsageInvalid, what);
            let help = "`holdfast schema rpc` prints what can be asked.";
            self.lines.send(line::answer(id, Err((code, problem.help(help)))));
            None
        };
        if line.trim_ascii().is_empty() {
            return None;
        }
        let mut message: Value = match serde_json::from_slice(line) {
            Ok(message) => message,
            Err(error) => {
                return refuse(Value::Null, error_code::PARSE_ERROR, format!("this is not JSON: {error}"));
            }
        };
        let Some(fields) = message.as_object_mut() else {
            return refuse(Value::Null, error_code::INVALID_REQUEST, "a request is a JSON object".to_owned());
        };
        let id = fields.remove("id").unwrap_or_default();
        let params = fields.remove("params").unwrap_or_else(|| json!({}));
        let Some(method) = fields.get("method").and_then(Value::as_str) else {
            return refuse(id, error_code::INVALID_REQUEST, "a request has a method".to_owned());
        };
        match Request::read(method, params) {
            Ok(request) => Some((id, request)),
            Err(RequestError::UnknownMethod) => {
                refuse(id, error_code::METHOD_NOT_FOUND, format!("there is no method `{method}`"))
            }
            Err(RequestError::InvalidParams(error)) => {
                refuse(id, error_code::INVALID_PARAMS, format!("`{method}`: {error}"))
            }
        }
    }

    async fn answer(&self, id: Value, request: Request) {
        // An owner that ends waits for the turns of other processes that run.
        let takes_turn = matches!(
            request,
            Request::Session(
                SessionMethod::Send(_)
                    | SessionMethod::Wait(_)
                    | SessionMethod::Compact(_)
                    | SessionMethod::CommandRun(_)
            )
        );
        let running = match &self.clients {
            Some(clients) if takes_turn && self.registered.lock().is_none() => match clients.enter() {
                Some(running) => Some(running),
                None => {
                    let ending = Err((error_code::SERVER_ERROR, is_ending()));
                    return self.lines.send(line::answer(id, ending));
                }
            },
            _ => None,
        };
        let opens = matches!(request, Request::Session(SessionMethod::Open(_)));
        let answer = match request {
            Request::Session(method) => self.answer_session(method).await,
            Request::Extensions(method) => self.answer_extensions(method).await,
            Request::System(method) => self.answer_system(method).await,
            Request::Bus(method) => self.answer_bus(method).await,
            Request::Schedules(method) => self.answer_schedules(method).await,
            Request::Secrets(method) => self.answer_secrets(method).await,
        };
        let opened = answer.as_ref().ok().filter(|_| opens);
        let session = opened.and_then(|answer| answer["session"].as_str()).map(StreamId::from);
        self.lines.send(line::answer(id, answer.map_err(|problem| (error_code::SERVER_ERROR, problem))));
        if let Some(session) = session {
            self.start_feed(&session);
        }
        drop(running);
    }

    /// What was done is acknowledged once it is on disk.
    async fn ack_durable(&self) -> Result<Value, Problem> {
        let store = self.owner.runtime.store().clone();
        let flushed = tokio::task::spawn_blocking(move || store.flush()).await;
        flushed.map_err(|error| Problem::new(Code::Internal, error.to_string()))??;
        Ok(json!({}))
    }
}

/// Why an owner that is about to end takes nothing more.
fn is_ending() -> Problem {
    Problem::new(Code::ConnectionLost, "the process that owns the home is ending")
}

fn value(answer: &impl Serialize) -> Result<Value, Problem> {
    to_whole_json(answer).map_err(|error| Problem::new(Code::Internal, error.to_string()))
}

/// A value of an enumeration, as it is written.
fn word(choice: &impl Serialize) -> String {
    match serde_json::to_value(choice) {
        Ok(Value::String(word)) => word,
        Ok(Value::Object(fields)) => fields.into_iter().next().map(|(name, _)| name).unwrap_or_default(),
        _ => String::new(),
    }
}
