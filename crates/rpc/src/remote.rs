//! Serves tools to other Holdfasts, over TCP. A caller is known by its token, gets the tools that the settings list, and nothing else of
//! the client protocol. Each call is a session of its own with the origin `remote/NAME`, so that it passes this home's policy and
//! gates and is recorded like any other.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use holdfast_contract::body::Body;
use holdfast_contract::digest::Digest;
use holdfast_contract::ids::{StreamId, ToolName};
use holdfast_contract::problem::{Code, Fault, Problem};
use holdfast_contract::protocol::{RpcError, ToolSheet, plain};
use holdfast_contract::remote::{
    REMOTE_LINE_BYTES, REMOTE_PROTOCOL, RemoteCall, RemoteHello, RemoteRequest, RemoteWelcome,
};
use holdfast_contract::session_frames::TurnOutcome;
use holdfast_contract::tool::{ToolOutcome, ToolSpec};
use holdfast_jsonrpc::error_code::{INVALID_REQUEST, METHOD_NOT_FOUND};
use holdfast_jsonrpc::{RpcMessage, encode_response, read_line};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::client::Client;
use crate::protocol::{
    SessionFrames, SessionMethod, SessionOpen, SessionOpened, SessionParams, SessionSend, TurnEnd,
};
use crate::server::Server;

/// How long a caller has to say who it is, and the longest line with which it may.
const HELLO_TIMEOUT: Duration = Duration::from_secs(10);
const HELLO_BYTES: usize = 4 << 10;
/// Connections at once.
const MAX_CONNECTIONS: usize = 64;
/// Wrong tokens from one address within the window, after which it is not listened to any more.
const MAX_FAILURES: usize = 5;
const FAILURE_WINDOW: Duration = Duration::from_secs(60);
/// Addresses whose failures are counted.
const MAX_ADDRESSES: usize = 1_024;
/// The model that calls exactly what it is told to.
const DIRECT: &str = "direct";

/// What is served, and to whom.
pub struct RemoteService {
    /// The tools.
    pub tools: Vec<ToolName>,
    /// The callers by name, with the digest of each one's token.
    pub callers: Vec<(String, Digest)>,
}

/// A listener for callers, with what it serves.
struct Service {
    server: Server,
    offer: RemoteService,
    failures: Failures,
}

/// Listens for callers as long as the task lives.
pub fn serve_tools(
    address: SocketAddr,
    server: Server,
    offer: RemoteService,
) -> Result<JoinHandle<()>, Problem> {
    let refused = |error: std::io::Error| {
        Problem::new(Code::RemoteUnavailable, format!("{address} cannot be listened on: {error}"))
    };
    let listener = std::net::TcpListener::bind(address).map_err(refused)?;
    listener.set_nonblocking(true).map_err(refused)?;
    let listener = TcpListener::from_std(listener).map_err(refused)?;
    let service = Arc::new(Service { server, offer, failures: Failures::default() });
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    Ok(tokio::spawn(async move {
        loop {
            let Ok((stream, peer)) = listener.accept().await else { continue };
            // A connection without a place, or from an address that guesses tokens, is closed at once.
            let Ok(place) = places.clone().try_acquire_owned() else { continue };
            if service.failures.is_blocked(peer.ip()) {
                continue;
            }
            let service = service.clone();
            tokio::spawn(async move {
                service.serve(stream, peer.ip()).await;
                drop(place);
            });
        }
    }))
}

/// The wrong tokens of each address.
#[derive(Default)]
struct Failures(Mutex<HashMap<IpAddr, Vec<Instant>>>);

impl Failures {
    fn is_blocked(&self, address: IpAddr) -> bool {
        let mut all = self.0.lock();
        all.retain(|_, times| {
            times.retain(|at| at.elapsed() < FAILURE_WINDOW);
            !times.is_empty()
        });
        all.get(&address).is_some_and(|times| times.len() >= MAX_FAILURES)
    }

    fn add(&self, address: IpAddr) {
        let mut all = self.0.lock();
        if all.len() < MAX_ADDRESSES || all.contains_key(&address) {
            all.entry(address).or_default().push(Instant::now());
        }
    }
}

/// Whether two digests are equal, in a time that does not depend on where they differ.
fn is_equal(a: &Digest, b: &Digest) -> bool {
    let (a, b) = (a.to_string(), b.to_string());
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}

/// The id of a request, and what a caller asks, or why a line is not a request.
fn request(line: &[u8]) -> (Value, Result<RemoteRequest, RpcError>) {
    let refuse = |code: i64, message: String| Err(RpcError { code, message, data: None });
    match RpcMessage::<RpcError>::parse(line) {
        Ok(RpcMessage::Request { id, method, params }) => {
            let whole = json!({ "method": method, "params": params });
            (id, serde_json::from_value(whole).or_else(|error| refuse(METHOD_NOT_FOUND, error.to_string())))
        }
        Ok(_) => (Value::Null, refuse(INVALID_REQUEST, "this is not a request".to_owned())),
        Err(error) => (Value::Null, refuse(INVALID_REQUEST, error.to_string())),
    }
}

async fn say(stream: &mut BufReader<TcpStream>, id: &Value, answer: Result<Value, RpcError>) -> bool {
    let line = encode_response(id, answer.as_ref(), REMOTE_LINE_BYTES).or_else(|_| {
        let message = "the answer is too long to be sent".to_owned();
        encode_response(
            id,
            Err(&RpcError::from(&Fault::new(Code::AnswerTooLarge, message))),
            REMOTE_LINE_BYTES,
        )
    });
    match line {
        Ok(line) => stream.get_mut().write_all(line.as_bytes()).await.is_ok(),
        Err(_) => false,
    }
}

impl Service {
    /// Serves a caller until it has gone.
    async fn serve(self: Arc<Self>, stream: TcpStream, peer: IpAddr) {
        let mut stream = BufReader::new(stream);
        let hello = tokio::time::timeout(HELLO_TIMEOUT, self.hello(&mut stream, peer)).await;
        let Ok(Some(caller)) = hello else { return };
        let mut line = Vec::new();
        loop {
            line.clear();
            let Ok(true) = read_line(&mut stream, &mut line, REMOTE_LINE_BYTES).await else { return };
            let (id, asked) = request(&line);
            let answer = match asked {
                Ok(RemoteRequest::Call(call)) => {
                    let Some(answer) = self.call(&caller, call, &mut stream).await else { return };
                    answer.map_err(|fault| RpcError::from(&fault))
                }
                Ok(RemoteRequest::Hello(_)) => {
                    let message = "the caller is known already".to_owned();
                    Err(RpcError { code: INVALID_REQUEST, message, data: None })
                }
                Err(error) => Err(error),
            };
            if !say(&mut stream, &id, answer).await {
                return;
            }
        }
    }

    /// The name of a caller with a valid token. Whatever is wrong, the answer says the same.
    async fn hello(&self, stream: &mut BufReader<TcpStream>, peer: IpAddr) -> Option<String> {
        let mut line = Vec::new();
        let Ok(true) = read_line(stream, &mut line, HELLO_BYTES).await else { return None };
        let (id, asked) = request(&line);
        let hello = match asked {
            Ok(RemoteRequest::Hello(hello)) => Some(hello),
            Ok(RemoteRequest::Call(_)) | Err(_) => None,
        };
        let caller = hello.as_ref().and_then(|hello| self.caller(hello));
        let Some(caller) = caller else {
            self.failures.add(peer);
            let fault = Fault::new(Code::RemoteRefused, "the token is not valid, or the version is another");
            say(stream, &id, Err(RpcError::from(&fault))).await;
            return None;
        };
        let welcome = RemoteWelcome { protocol: REMOTE_PROTOCOL.to_owned(), tools: self.offered() };
        let welcome = serde_json::to_value(&welcome).unwrap_or_default();
        say(stream, &id, Ok(welcome)).await.then_some(caller)
    }

    /// Compares with every token, whichever fits.
    fn caller(&self, hello: &RemoteHello) -> Option<String> {
        let given = Digest::of(hello.token.as_bytes());
        let fits = |found: Option<&String>, (name, token): &'_ (String, Digest)| {
            let fits = is_equal(&given, token);
            if fits { Some(name.clone()) } else { found.cloned() }
        };
        let mut found = None;
        for caller in &self.offer.callers {
            found = fits(found.as_ref(), caller);
        }
        found.filter(|_| hello.protocol == REMOTE_PROTOCOL)
    }

    /// The tools that are offered and there, in the order of their names.
    fn offered(&self) -> Vec<ToolSheet> {
        let registry = self.server.owner().runtime.registry();
        let mut offered: Vec<ToolSheet> = registry
            .tools
            .iter()
            .filter(|entry| self.offer.tools.contains(&entry.name))
            .filter_map(|entry| entry.stack.first().map(|active| sheet(&active.spec)))
            .collect();
        offered.sort_by(|a, b| a.name.cmp(&b.name));
        offered
    }

    /// Runs a tool. None if the caller has gone meanwhile: then the turn is cancelled.
    async fn call(
        &self,
        caller: &str,
        call: RemoteCall,
        stream: &mut BufReader<TcpStream>,
    ) -> Option<Result<Value, Fault>> {
        if !self.offer.tools.contains(&call.tool) {
            return Some(Err(Fault::new(Code::ToolUnknown, format!("`{}` is not offered", call.tool))));
        }
        let (own, its) = tokio::io::duplex(1 << 16);
        tokio::spawn(self.server.clone().serve(its));
        let (client, _notices) = Client::new(own);
        let opened = match open(&client, caller).await {
            Ok(opened) => opened,
            Err(problem) => return Some(Err(problem.to_fault())),
        };
        let mut outcome = std::pin::pin!(run(&client, &opened, &call));
        tokio::select! {
            outcome = &mut outcome => Some(outcome.unwrap_or_else(|problem| Err(problem.to_fault()))),
            // A caller that waits for an answer sends nothing: it has gone, or it breaks the protocol.
            _ = stream.fill_buf() => {
                let session: StreamId = opened.session.clone();
                let cancel = SessionMethod::Cancel(SessionParams { session });
                let _already_ended = client.ask::<Value>(&cancel).await;
                None
            }
        }
    }
}

fn sheet(spec: &ToolSpec) -> ToolSheet {
    ToolSheet {
        name: spec.name.clone(),
        description: spec.description.clone(),
        input_schema: plain(&spec.input_schema),
        output_schema: spec.output_schema.as_ref().map(plain),
        effects: spec.effects,
        timeout_ms: spec.timeout,
        concurrency: spec.concurrency,
        render: spec.render.as_ref().map(plain),
        priority: None,
        required_secrets: Vec::new(),
    }
}

/// Opens the session of a call. Nobody at the other end answers approvals: this home's policy says whether they wait or are denied.
async fn open(client: &Client, caller: &str) -> Result<SessionOpened, Problem> {
    let channel = format!("remote/{caller}");
    client.hello(&channel).await?;
    let open = SessionOpen { model: Some(DIRECT.into()), channel, ..SessionOpen::default() };
    client.ask(&SessionMethod::Open(open)).await
}

/// Runs the turn of a call, and finds what the tool returned in its frames.
async fn run(
    client: &Client,
    opened: &SessionOpened,
    call: &RemoteCall,
) -> Result<Result<Value, Fault>, Problem> {
    let session = opened.session.clone();
    let text = format!("/{} {}", call.tool, call.arguments);
    let send = SessionSend { session: session.clone(), text, attachments: Vec::new() };
    let end: TurnEnd = client.ask(&SessionMethod::Send(send)).await?;
    let (from, to) = (opened.next, Some(end.ended));
    let frames = client.frames(SessionFrames { session, from, to, kinds: Vec::new(), limit: None }).await?;
    let mut found = None;
    for frame in &frames {
        let outcome = match client.body(frame).await? {
            Body::ToolReturned(returned) => returned.outcome,
            Body::ChildEnded(ended) => ended.outcome,
            Body::ToolSettled(settled) => match settled.fault {
                Some(fault) => ToolOutcome::Failure(fault),
                None => continue,
            },
            _ => continue,
        };
        found = Some(match outcome {
            ToolOutcome::Result(content) => Ok(plain(&content)),
            ToolOutcome::Failure(fault) => Err(fault),
        });
    }
    Ok(found.unwrap_or_else(|| Err(ended(&end))))
}

/// Why a turn has no call that ended.
fn ended(end: &TurnEnd) -> Fault {
    match &end.outcome {
        TurnOutcome::Failed(fault) => fault.clone(),
        TurnOutcome::Blocked { reason } => Fault::new(Code::ToolDenied, reason.clone()),
        TurnOutcome::Cancelled { reason } => Fault::new(Code::ToolCancelled, reason.clone()),
        TurnOutcome::Limited(_) => Fault::new(Code::ToolDenied, "a limit of the remote home was reached"),
        TurnOutcome::Answered => Fault::new(Code::ToolFailed, "the tool was not called"),
    }
}
