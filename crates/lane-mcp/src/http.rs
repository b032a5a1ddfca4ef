//! Streamable HTTP. Whether the host may be connected to is the same decision as for a program's gateway, with the same frames; the
//! address that was checked is the one that is used, and no redirect is followed. What a server sends is bounded.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use ::http::{HeaderName, HeaderValue};
use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt};
use holdfast_contract::problem::{Code, Fault};
use holdfast_program::{CallSource, gateway};
use reqwest::header::{ACCEPT, CONTENT_TYPE, WWW_AUTHENTICATE};
use reqwest::{Response, StatusCode};
use rmcp::ErrorData;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, InsufficientScopeError, SseError, StreamableHttpClient,
    StreamableHttpClientTransportConfig, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::{Sse, SseStream};
use url::Url;

use crate::calls::ActiveCalls;
use crate::server::{discovered, discovers, observe};
use crate::stdio::MAX_LINE_BYTES;

const JSON: &str = "application/json";
const EVENT_STREAM: &str = "text/event-stream";
const BOTH: &str = "text/event-stream, application/json";
const SESSION: &str = "mcp-session-id";
const LAST_EVENT: &str = "last-event-id";
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// Bytes that the answer to one request may have in all, as a stream of events.
const MAX_STREAM_BYTES: usize = 64 << 20;

/// Where a server is reached.
#[derive(Clone, Debug)]
pub(crate) struct HttpAddress {
    pub url: Url,
    /// Headers before secrets are put in.
    pub headers: BTreeMap<String, String>,
}

impl HttpAddress {
    /// Connects, if the host may be connected to.
    pub(crate) async fn transport(
        &self,
        calls: &Arc<ActiveCalls>,
    ) -> Result<StreamableHttpClientTransport<BoundedClient>, Fault> {
        let invalid = |why: String| Fault::new(Code::McpServerFailed, why);
        let host = self.url.host_str().ok_or_else(|| invalid(format!("`{}` names no host", self.url)))?;
        let port = self.url.port_or_known_default().unwrap_or(443);
        let client = pinned_client(calls, host, port).await?;
        let mut headers = HashMap::new();
        for (name, value) in &self.headers {
            let value = calls.substituted(value).await?;
            let name =
                HeaderName::try_from(name.as_str()).map_err(|error| invalid(format!("`{name}`: {error}")))?;
            let mut value =
                HeaderValue::try_from(value).map_err(|error| invalid(format!("`{name}`: {error}")))?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        let mut config = StreamableHttpClientTransportConfig::with_uri(self.url.as_str());
        config.custom_headers = headers;
        config.max_sse_event_size = MAX_LINE_BYTES;
        let client = BoundedClient { client, calls: calls.clone() };
        Ok(StreamableHttpClientTransport::with_client(client, config))
    }
}

/// A client that reaches one host at the address that was checked, and nothing else.
pub(crate) async fn pinned_client(
    calls: &Arc<ActiveCalls>,
    host: &str,
    port: u16,
) -> Result<reqwest::Client, Fault> {
    let source: Weak<dyn CallSource> = Arc::downgrade(&(calls.clone() as Arc<dyn CallSource>));
    let name = host.trim_start_matches('[').trim_end_matches(']');
    let probe = gateway::connect(&source, name, port).await.map_err(|fault| match fault.code {
        Code::ToolFailed => Fault::new(Code::McpServerFailed, fault.message),
        _ => fault,
    })?;
    let failed = |error: String| Fault::new(Code::McpServerFailed, error);
    // An error means that a provider is installed already.
    drop(rustls::crypto::ring::default_provider().install_default());
    let address = probe.peer_addr().map_err(|error| failed(error.to_string()))?;
    reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .connect_timeout(CONNECT_TIMEOUT)
        .resolve_to_addrs(host, &[address])
        .build()
        .map_err(|error| failed(error.to_string()))
}

/// Why a request failed.
#[derive(Debug)]
pub(crate) struct HttpFailure(String);

impl fmt::Display for HttpFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for HttpFailure {}

type HttpError = StreamableHttpError<HttpFailure>;

fn failure(error: impl fmt::Display) -> HttpError {
    StreamableHttpError::Client(HttpFailure(error.to_string()))
}

/// A client whose answers are bounded.
#[derive(Clone)]
pub(crate) struct BoundedClient {
    client: reqwest::Client,
    calls: Arc<ActiveCalls>,
}

/// What every request of one kind has.
struct RequestParts {
    session_id: Option<Arc<str>>,
    token: Option<String>,
    headers: HashMap<HeaderName, HeaderValue>,
}

impl RequestParts {
    fn on(self, mut request: reqwest::RequestBuilder) -> reqwest::RequestBuilder {
        if let Some(session_id) = self.session_id {
            request = request.header(SESSION, session_id.as_ref());
        }
        if let Some(token) = self.token {
            request = request.bearer_auth(token);
        }
        for (name, value) in self.headers {
            request = request.header(name, value);
        }
        request
    }
}

/// The challenge of an answer that wants a login.
fn login_wanted(response: &Response) -> Option<HttpError> {
    let challenge = response.headers().get(WWW_AUTHENTICATE)?.to_str().ok()?.to_owned();
    match response.status() {
        StatusCode::UNAUTHORIZED => {
            Some(StreamableHttpError::AuthRequired(AuthRequiredError::new(challenge)))
        }
        StatusCode::FORBIDDEN => {
            Some(StreamableHttpError::InsufficientScope(InsufficientScopeError::new(challenge, None)))
        }
        _ => None,
    }
}

fn media_type(response: &Response) -> String {
    let header = response.headers().get(CONTENT_TYPE).and_then(|it| it.to_str().ok()).unwrap_or_default();
    header.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// The body of an answer, up to the limit of a message.
async fn body(response: Response) -> Result<Vec<u8>, HttpError> {
    let mut stream = response.bytes_stream();
    let mut body = Vec::new();
    while let Some(chunk) = stream.next().await {
        body.extend_from_slice(&chunk.map_err(failure)?);
        if body.len() > MAX_LINE_BYTES {
            return Err(failure(format!("the answer has more than {MAX_LINE_BYTES} bytes")));
        }
    }
    Ok(body)
}

/// Events of an answer, each up to the limit of a message, and all up to a limit if there is one.
fn events(response: Response, most: Option<usize>) -> BoxStream<'static, Result<Sse, SseError>> {
    let bounded = bounded(
        response.bytes_stream().map(|chunk| chunk.map_err(|error| HttpFailure(error.to_string()))),
        most,
    );
    SseStream::from_bytes_stream(bounded).boxed()
}

fn bounded<B: AsRef<[u8]>>(
    stream: impl Stream<Item = Result<B, HttpFailure>> + Send + 'static,
    most: Option<usize>,
) -> impl Stream<Item = Result<B, HttpFailure>> + Send + 'static {
    let (mut all, mut event, mut newlines) = (0_usize, 0_usize, 0_u8);
    stream.map(move |chunk| {
        let chunk = chunk?;
        for byte in chunk.as_ref() {
            event += 1;
            newlines = match byte {
                b'\n' => newlines + 1,
                b'\r' => newlines,
                _ => 0,
            };
            if newlines >= 2 {
                (event, newlines) = (0, 0);
            }
        }
        all += chunk.as_ref().len();
        if event > MAX_LINE_BYTES {
            return Err(HttpFailure(format!("an event has more than {MAX_LINE_BYTES} bytes")));
        }
        match most.filter(|most| all > *most) {
            Some(most) => Err(HttpFailure(format!("the answer has more than {most} bytes"))),
            None => Ok(chunk),
        }
    })
}

/// What a server that does not know discovery answers to it: an error of the protocol, so that the handshake is tried.
fn legacy_answer(
    message: &ClientJsonRpcMessage,
    status: StatusCode,
    body: &[u8],
) -> Option<StreamableHttpPostResponse> {
    let id = discovers(message)?;
    let refuses_login = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    if !status.is_client_error() || refuses_login {
        return None;
    }
    let error = match serde_json::from_slice(body) {
        Ok(ServerJsonRpcMessage::Error(error)) => error.error,
        _ => ErrorData::invalid_request(format!("HTTP {status}"), None),
    };
    Some(StreamableHttpPostResponse::Json(ServerJsonRpcMessage::error(error, Some(id)), None))
}

impl BoundedClient {
    async fn post(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        parts: RequestParts,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        observe(&self.calls, &message);
        let in_session = parts.session_id.is_some();
        let request = parts.on(self.client.post(uri.as_ref()).header(ACCEPT, BOTH));
        let response = request.json(&message).send().await.map_err(failure)?;
        if let Some(wanted) = login_wanted(&response) {
            return Err(wanted);
        }
        let (status, kind) = (response.status(), media_type(&response));
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status == StatusCode::NOT_FOUND && in_session {
            return Err(StreamableHttpError::SessionExpired);
        }
        let session = response.headers().get(SESSION).and_then(|it| it.to_str().ok()).map(str::to_owned);
        if status.is_success() && kind == EVENT_STREAM {
            return Ok(StreamableHttpPostResponse::Sse(events(response, Some(MAX_STREAM_BYTES)), session));
        }
        let body = body(response).await?;
        if !status.is_success() {
            if let Some(answer) = legacy_answer(&message, status, &body) {
                return Ok(answer);
            }
            return match serde_json::from_slice(&body) {
                Ok(error @ ServerJsonRpcMessage::Error(_)) => {
                    Ok(StreamableHttpPostResponse::Json(error, session))
                }
                _ => Err(failure(format!("HTTP {status}"))),
            };
        }
        let is_request = matches!(message, ClientJsonRpcMessage::Request(_));
        match serde_json::from_slice(&body) {
            Ok(answer) if kind == JSON && discovers(&message).is_some() => {
                Ok(StreamableHttpPostResponse::Json(discovered(answer), session))
            }
            Ok(answer) if kind == JSON => Ok(StreamableHttpPostResponse::Json(answer, session)),
            _ if !is_request => Ok(StreamableHttpPostResponse::Accepted),
            Ok(_) => Err(StreamableHttpError::UnexpectedContentType(Some(kind))),
            Err(error) => Err(StreamableHttpError::Deserialize(error)),
        }
    }

    async fn open_stream(
        &self,
        uri: Arc<str>,
        last_event_id: Option<String>,
        parts: RequestParts,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, HttpError> {
        let mut request = parts.on(self.client.get(uri.as_ref()).header(ACCEPT, BOTH));
        if let Some(last) = last_event_id {
            request = request.header(LAST_EVENT, last);
        }
        let response = request.send().await.map_err(failure)?;
        if let Some(wanted) = login_wanted(&response) {
            return Err(wanted);
        }
        let status = response.status();
        match (status, media_type(&response).as_str()) {
            (StatusCode::METHOD_NOT_ALLOWED, _) => Err(StreamableHttpError::ServerDoesNotSupportSse),
            (status, EVENT_STREAM) if status.is_success() => Ok(events(response, None)),
            (status, kind) if status.is_success() => {
                Err(StreamableHttpError::UnexpectedContentType(Some(kind.to_owned())))
            }
            _ => Err(failure(format!("HTTP {status}"))),
        }
    }
}

impl StreamableHttpClient for BoundedClient {
    type Error = HttpFailure;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        self.post(uri, message, RequestParts { session_id, token, headers }).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), HttpError> {
        let parts = RequestParts { session_id: Some(session_id), token, headers };
        let response = parts.on(self.client.delete(uri.as_ref())).send().await.map_err(failure)?;
        match response.status() {
            StatusCode::METHOD_NOT_ALLOWED => Ok(()),
            status if status.is_success() => Ok(()),
            status => Err(failure(format!("HTTP {status}"))),
        }
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, HttpError> {
        self.open_stream(uri, last_event_id, RequestParts { session_id, token, headers }).await
    }
}
