//! The connection to one server: started by the first call that needs it, listed and compared with what was approved, opened again with
//! backoff after it has failed. Nothing else waits for it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use holdfast_contract::log::LogLevel;
use holdfast_contract::problem::{Code, Fault};
use holdfast_program::ProgramPlan;
use holdfast_untrusted_files::TempFolder;
use parking_lot::Mutex;
use rmcp::RoleClient;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, Cursor, GetMeta, ListPromptsResult, ListToolsResult,
    PaginatedRequestParams, ProtocolVersion, RequestId, ServerJsonRpcMessage, ServerResult,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt, RunningService, ServiceError,
};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::calls::ActiveCalls;
use crate::handler::ServerHandler;
use crate::http::HttpAddress;
use crate::listing::{Listing, PinStore, PromptDefinition, ToolDefinition};
use crate::stdio::{self, ClosedReason, ProgramGuard};

/// The delay before a server that has failed is started again: doubled with each failure.
const FIRST_RETRY: Duration = Duration::from_secs(1);
const MAX_RETRY: Duration = Duration::from_secs(300);
/// The most tools, prompts and pages of a listing, and the bytes of all definitions.
const MAX_TOOLS: usize = 1_000;
const MAX_PROMPTS: usize = 1_000;
const MAX_PAGES: usize = 100;
const MAX_LISTING_BYTES: usize = 8 << 20;
/// How long a listing may take that the server announced as changed.
const RELIST_TIMEOUT: Duration = Duration::from_secs(30);
/// The key in `_meta` of a request by which its progress is attributed to a call.
pub(crate) const CALL_KEY: &str = "dev.holdfast/call";

/// How a server is reached.
pub(crate) enum ServerAddress {
    /// A program that is started, its variables before secrets are put in, and its files, which are removed with it.
    Program { plan: Box<ProgramPlan>, env: BTreeMap<String, String>, _code: Option<TempFolder> },
    /// An address.
    Http(HttpAddress),
}

/// What a connection is made of.
pub(crate) struct ServerParts {
    pub address: ServerAddress,
    /// What the pins are for: another source is another server.
    pub source: String,
    pub handler: ServerHandler,
    pub pins: Arc<PinStore>,
    pub start_timeout: Duration,
}

/// A server, connected or not.
pub(crate) struct Server {
    parts: ServerParts,
    state: tokio::sync::Mutex<ServerState>,
    /// The tools whose definitions differ from the approved ones, and how.
    waiting: Mutex<BTreeMap<String, &'static str>>,
}

#[derive(Default)]
struct ServerState {
    session: Option<Arc<ServerSession>>,
    /// How often it has failed in a row, and when it may be tried again.
    failures: u32,
    retry_at: Option<(Instant, Fault)>,
}

/// An open connection.
pub(crate) struct ServerSession {
    pub client: RunningService<RoleClient, ServerHandler>,
    pub listing: Listing,
    closed: ClosedReason,
    _program: Option<ProgramGuard>,
}

impl ServerSession {
    fn is_over(&self) -> bool {
        self.client.is_closed() || self.closed.get().is_some()
    }

    /// Why the connection is over, if it is.
    pub(crate) fn reason(&self) -> Option<Fault> {
        self.closed.get()
    }
}

/// Notes under which token the progress of a call is reported.
pub(crate) fn observe(calls: &ActiveCalls, message: &ClientJsonRpcMessage) {
    let ClientJsonRpcMessage::Request(request) = message else { return };
    let meta = match &request.request {
        ClientRequest::CallToolRequest(request) => request.params.meta.as_ref(),
        _ => None,
    };
    let extra = request.request.get_meta();
    let call = meta.and_then(|meta| meta.get(CALL_KEY)).or_else(|| extra.get(CALL_KEY));
    let token = meta.and_then(|meta| meta.get_progress_token()).or_else(|| extra.get_progress_token());
    if let (Some(call), Some(token)) = (call.and_then(serde_json::Value::as_u64), token) {
        calls.set_token(call, token);
    }
}

/// An invalid answer to discovery, as an error: a server of an earlier revision may answer what it does not know with an empty
/// result, and then the handshake is tried.
pub(crate) fn discovered(answer: ServerJsonRpcMessage) -> ServerJsonRpcMessage {
    match answer {
        ServerJsonRpcMessage::Response(response)
            if !matches!(response.result, ServerResult::DiscoverResult(_)) =>
        {
            let error = rmcp::ErrorData::invalid_request("the answer to discovery is not one", None);
            ServerJsonRpcMessage::error(error, Some(response.id))
        }
        other => other,
    }
}

/// Whether a message asks a server what it supports.
pub(crate) fn discovers(message: &ClientJsonRpcMessage) -> Option<RequestId> {
    match message {
        ClientJsonRpcMessage::Request(request)
            if matches!(request.request, ClientRequest::DiscoverRequest(_)) =>
        {
            Some(request.id.clone())
        }
        _ => None,
    }
}

impl Server {
    pub(crate) fn new(parts: ServerParts) -> Arc<Self> {
        Arc::new(Self { parts, state: tokio::sync::Mutex::default(), waiting: Mutex::default() })
    }

    pub(crate) fn calls(&self) -> &Arc<ActiveCalls> {
        &self.parts.handler.calls
    }

    pub(crate) fn pins(&self) -> &Arc<PinStore> {
        &self.parts.pins
    }

    /// How the definition of a tool differs from the approved one, if it does.
    pub(crate) fn waits_for_approval(&self, tool: &str) -> Option<&'static str> {
        self.waiting.lock().get(tool).copied()
    }

    /// A tool was approved.
    pub(crate) fn approved(&self, tool: &str) {
        self.waiting.lock().remove(tool);
    }

    /// The open connection. One that is over or was never there is opened, unless that failed a moment ago.
    pub(crate) async fn session(&self) -> Result<Arc<ServerSession>, Fault> {
        let mut state = self.state.lock().await;
        if let Some(session) = state.session.as_ref().filter(|session| !session.is_over()) {
            return Ok(session.clone());
        }
        state.session = None;
        if let Some((at, fault)) = state.retry_at.as_ref().filter(|(at, _)| *at > Instant::now()) {
            let seconds = at.saturating_duration_since(Instant::now()).as_secs() + 1;
            let message = format!("{} (it is tried again in {seconds} s)", fault.message);
            return Err(Fault::new(fault.code, message));
        }
        let limit = self.parts.start_timeout;
        let opened = tokio::time::timeout(limit, self.open()).await.unwrap_or_else(|_| {
            let message = format!("the server did not start within {} ms", limit.as_millis());
            Err(Fault::new(Code::McpServerFailed, message))
        });
        match opened {
            Ok(session) => {
                (state.failures, state.retry_at) = (0, None);
                let session = Arc::new(session);
                state.session = Some(session.clone());
                Ok(session)
            }
            Err(fault) => {
                let delay = FIRST_RETRY.saturating_mul(1 << state.failures.min(16)).min(MAX_RETRY);
                state.failures = state.failures.saturating_add(1);
                state.retry_at = Some((Instant::now() + delay, fault.clone()));
                Err(fault)
            }
        }
    }

    /// Closes the connection.
    pub(crate) async fn close(&self) {
        self.state.lock().await.session = None;
    }

    async fn open(&self) -> Result<ServerSession, Fault> {
        let closed = ClosedReason::default();
        let (client, program) = match &self.parts.address {
            ServerAddress::Program { plan, env, .. } => {
                let mut plan = (**plan).clone();
                for word in plan.words.iter_mut().skip(1) {
                    *word = self.calls().substituted(word).await?;
                }
                for (name, value) in env {
                    plan.environment.push((name.clone(), self.calls().substituted(value).await?.into()));
                }
                let (transport, guard) = stdio::start(plan, self.calls(), &closed).await?;
                (self.serve(transport, &closed).await?, Some(guard))
            }
            ServerAddress::Http(address) => {
                let transport = address.transport(self.calls()).await?;
                (self.serve(transport, &closed).await?, None)
            }
        };
        let session = ServerSession { client, listing: Listing::default(), closed, _program: program };
        let listing = self.list(&session).await?;
        self.compare(&listing)?;
        Ok(ServerSession { listing, ..session })
    }

    /// Negotiates the protocol: the newest revision by discovery, otherwise the newest with a handshake.
    async fn serve<T>(
        &self,
        transport: T,
        closed: &ClosedReason,
    ) -> Result<RunningService<RoleClient, ServerHandler>, Fault>
    where
        T: rmcp::transport::Transport<RoleClient> + 'static,
    {
        let lifecycle = ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            legacy_version: Some(ProtocolVersion::V_2025_11_25),
        };
        let served = self.parts.handler.clone().serve_with_lifecycle(transport, lifecycle).await;
        served.map_err(|error| closed.get().unwrap_or_else(|| not_started(&error)))
    }

    /// Lists what the server offers again, because it has said that something changed.
    pub(crate) async fn list_again(&self) -> Result<(), Fault> {
        let session = self.state.lock().await.session.clone();
        let Some(session) = session.filter(|session| !session.is_over()) else { return Ok(()) };
        let late = |_| Fault::new(Code::McpServerFailed, "the server did not list its tools in time");
        let listing = tokio::time::timeout(RELIST_TIMEOUT, self.list(&session)).await.map_err(late)??;
        self.compare(&listing)
    }

    /// Waits until the server says that its lists have changed.
    pub(crate) fn changed(&self) -> &Arc<Notify> {
        &self.parts.handler.changed
    }

    /// Compares what is offered with what was approved.
    fn compare(&self, listing: &Listing) -> Result<(), Fault> {
        let id = self.calls().terms.id.as_str();
        let waiting = self.parts.pins.offer(id, &self.parts.source, listing);
        let waiting = waiting.map_err(|problem| problem.to_fault())?;
        if !waiting.is_empty() {
            let names: Vec<_> = waiting.iter().map(|(name, how)| format!("`{name}` ({how})")).collect();
            let text = format!("tools wait for approval: {}", names.join(", "));
            self.calls().log(LogLevel::Warning, &text);
        }
        *self.waiting.lock() = waiting;
        Ok(())
    }

    async fn list(&self, session: &ServerSession) -> Result<Listing, Fault> {
        let fault = |error: ServiceError| self.fault(session, error);
        let info = session.client.peer().peer_info();
        let capabilities = info.as_ref().map(|info| info.capabilities.clone()).unwrap_or_default();
        let mut listing = Listing {
            server: info
                .as_ref()
                .and_then(|info| info.server_info.as_ref())
                .map_or_else(String::new, |server| {
                    crate::catalogue::shown(&format!("{} {}", server.name, server.version), 100)
                }),
            protocol: info.as_ref().map_or_else(String::new, |info| info.protocol_version.to_string()),
            resources: capabilities.resources.is_some(),
            ..Listing::default()
        };
        let peer = session.client.peer();
        if capabilities.tools.is_some() {
            let mut pages = Pages::default();
            while let Some(page) = pages.next() {
                let ListToolsResult { tools, next_cursor, .. } =
                    peer.list_tools(page).await.map_err(fault)?;
                listing.tools.extend(tools.into_iter().map(definition));
                pages.turn(next_cursor, listing.tools.len(), MAX_TOOLS)?;
            }
        }
        if capabilities.prompts.is_some() {
            let mut pages = Pages::default();
            while let Some(page) = pages.next() {
                let ListPromptsResult { prompts, next_cursor, .. } =
                    peer.list_prompts(page).await.map_err(fault)?;
                listing.prompts.extend(prompts.into_iter().map(|prompt| PromptDefinition {
                    name: prompt.name,
                    description: prompt.description.unwrap_or_default(),
                    arguments: prompt.arguments.into_iter().flatten().map(|argument| argument.name).collect(),
                }));
                pages.turn(next_cursor, listing.prompts.len(), MAX_PROMPTS)?;
            }
        }
        bounded(listing)
    }

    /// What an error of the connection is for the caller.
    pub(crate) fn fault(&self, session: &ServerSession, error: ServiceError) -> Fault {
        if let Some(reason) = session.reason() {
            return reason;
        }
        match error {
            ServiceError::McpError(error) => Fault::new(Code::ToolFailed, error.message.to_string()),
            ServiceError::Cancelled { reason } => {
                Fault::new(Code::ToolCancelled, reason.unwrap_or_else(|| "the call was cancelled".to_owned()))
            }
            other => Fault::new(Code::McpServerFailed, other.to_string()),
        }
    }
}

/// The pages of a list. A cursor that comes again would never end.
struct Pages {
    next: Option<Option<Cursor>>,
    seen: BTreeSet<Cursor>,
}

impl Default for Pages {
    fn default() -> Self {
        Self { next: Some(None), seen: BTreeSet::new() }
    }
}

impl Pages {
    fn next(&mut self) -> Option<Option<PaginatedRequestParams>> {
        let cursor = self.next.take()?;
        Some(cursor.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor))))
    }

    fn turn(&mut self, cursor: Option<Cursor>, listed: usize, most: usize) -> Result<(), Fault> {
        let refused = |what: String| Err(Fault::new(Code::McpProtocol, what));
        if listed > most {
            return refused(format!("the server lists more than {most} entries"));
        }
        let Some(cursor) = cursor else { return Ok(()) };
        if !self.seen.insert(cursor.clone()) {
            return refused("a cursor of the server's list leads back to itself".to_owned());
        }
        if self.seen.len() > MAX_PAGES {
            return refused(format!("the server's list has more than {MAX_PAGES} pages"));
        }
        self.next = Some(Some(cursor));
        Ok(())
    }
}

/// A tool's definition, as far as it is shown to anybody.
fn definition(tool: rmcp::model::Tool) -> ToolDefinition {
    ToolDefinition {
        name: tool.name.into_owned(),
        title: tool.title,
        description: tool.description.map(|text| text.into_owned()).unwrap_or_default(),
        input_schema: serde_json::Value::Object((*tool.input_schema).clone()),
        output_schema: tool.output_schema.map(|schema| serde_json::Value::Object((*schema).clone())),
        annotations: tool.annotations.and_then(|hints| serde_json::to_value(hints).ok()),
    }
}

/// A listing in a fixed order that is not too large and names no tool twice.
fn bounded(mut listing: Listing) -> Result<Listing, Fault> {
    let bytes = serde_json::to_vec(&listing).map_or(usize::MAX, |bytes| bytes.len());
    if bytes > MAX_LISTING_BYTES {
        let what = format!(
            "the definitions of the server have {bytes} bytes; at most {MAX_LISTING_BYTES} are taken"
        );
        return Err(Fault::new(Code::McpProtocol, what));
    }
    listing.tools.sort_by(|one, other| one.name.cmp(&other.name));
    if let Some([first, _]) = listing.tools.windows(2).find(|pair| pair[0].name == pair[1].name) {
        let what = format!("the server lists two tools named `{}`", crate::catalogue::shown(&first.name, 80));
        return Err(Fault::new(Code::McpProtocol, what));
    }
    Ok(listing)
}

/// Why a server could not be started.
fn not_started(error: &ClientInitializeError) -> Fault {
    if error.is_authorization_required() || error.auth_challenge().is_some() {
        return Fault::new(Code::McpLogin, "the server requires a login");
    }
    Fault::new(Code::McpServerFailed, crate::catalogue::shown(&error.to_string(), 400))
}
