//! The owner's side: takes requests, and sends the feeds of the sessions that a client has opened.
//!
//! This file reads messages and hands each request to the handlers of its group: `session`, `extensions`, `system`, `bus`.

mod bus;
mod extensions;
mod session;
mod summaries;
mod system;

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use holdfast_contract::content::to_whole_json;
use holdfast_contract::ids::StreamId;
use holdfast_contract::problem::{Code, Problem};
use holdfast_policy::{Policy, Rule};
use holdfast_runtime::{NewSession, Runtime};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, BufReader};
use tokio::task::JoinSet;

use self::session::OpenedSession;
use crate::active_clients::{ActiveClients, ClientGuard};
use crate::hub::Hub;
use crate::line;
use crate::outgoing::Outgoing;
use crate::protocol::{Request, RequestError, ServerHello, SessionMethod, SessionOpen};

pub use summaries::{existing_stream, session_summaries};

/// Makes a new session as the home is set.
pub type CreateSession = dyn Fn(&SessionOpen) -> Result<NewSession, Problem> + Send + Sync;

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
    pub found: Box<CreateSession>,
    /// What "always" does.
    pub remember: Box<Remember>,
}

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
    pub fn guests(&self) -> &ActiveClients {
        &self.clients
    }

    /// Serves a connection of this process until its other side has gone.
    pub async fn serve(self, connection: impl AsyncRead + AsyncWrite + Send + 'static) {
        self.serve_as(connection, None).await;
    }

    /// Serves a connection of another process until it has gone.
    pub async fn serve_guest(self, connection: impl AsyncRead + AsyncWrite + Send + 'static) {
        let clients = self.clients.clone();
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
                hub.tell_all(None, "a client that did not read what it was sent was disconnected".to_owned());
            }
        });
        let gone = lines.clone();
        let (registered, sessions) = (Mutex::default(), Mutex::default());
        let connection = Arc::new(Connection { owner: self.owner, clients, registered, lines, sessions });
        let mut tasks = JoinSet::new();
        let mut reader = BufReader::new(reader);
        loop {
            let line = tokio::select! {
                line = line::read(&mut reader) => line,
                () = gone.closed() => break,
            };
            let Ok(Some(line)) = line else { break };
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
        // Nobody reads the answers any more; what was begun goes on in its session.
        tasks.abort_all();
        lock(&connection.sessions).clear();
        drop(connection);
        written.abort();
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
                return refuse(Value::Null, line::PARSE_ERROR, format!("this is not JSON: {error}"));
            }
        };
        let Some(fields) = message.as_object_mut() else {
            return refuse(Value::Null, line::INVALID_REQUEST, "a request is a JSON object".to_owned());
        };
        let id = fields.remove("id").unwrap_or_default();
        let params = fields.remove("params").unwrap_or_else(|| json!({}));
        let Some(method) = fields.get("method").and_then(Value::as_str) else {
            return refuse(id, line::INVALID_REQUEST, "a request has a method".to_owned());
        };
        match Request::read(method, params) {
            Ok(request) => Some((id, request)),
            Err(RequestError::UnknownMethod) => {
                refuse(id, line::UNKNOWN_METHOD, format!("there is no method `{method}`"))
            }
            Err(RequestError::InvalidParams(error)) => {
                refuse(id, line::INVALID_PARAMS, format!("`{method}`: {error}"))
            }
        }
    }

    async fn answer(&self, id: Value, request: Request) {
        let opens = matches!(request, Request::Session(SessionMethod::Open(_)));
        let answer = match request {
            Request::Session(method) => self.answer_session(method).await,
            Request::Extensions(method) => self.answer_extensions(method).await,
            Request::System(method) => self.answer_system(method).await,
            Request::Bus(method) => self.answer_bus(method).await,
        };
        let opened = answer.as_ref().ok().filter(|_| opens);
        let session = opened.and_then(|answer| answer["session"].as_str()).map(StreamId::from);
        self.lines.send(line::answer(id, answer.map_err(|problem| (line::FAILED, problem))));
        if let Some(session) = session {
            self.start_feed(&session);
        }
    }

    /// What was done is acknowledged once it is on disk.
    async fn ack_durable(&self) -> Result<Value, Problem> {
        let store = self.owner.runtime.store().clone();
        let flushed = tokio::task::spawn_blocking(move || store.flush()).await;
        flushed.map_err(|error| Problem::new(Code::Internal, error.to_string()))??;
        Ok(json!({}))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
