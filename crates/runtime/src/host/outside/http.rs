//! The capability `http`: a request to a host that may be connected to, as one recorded call. References to secrets are replaced here, on
//! the way out, and their values are redacted in the answer, so that neither the extension nor a frame has them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use holdfast_contract::content::Content;
use holdfast_contract::host_call::arguments::{ConnectArguments, HttpArguments};
use holdfast_contract::ids::{ExtensionId, Millis};
use holdfast_contract::manifest::Grants;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::wire::Later;
use holdfast_secrets::{ExposeSecret, SecretString};
use serde_json::json;
use url::Url;

use super::network::denied;
use super::{received, sent};
use crate::host::Caller;
use crate::host::setup::reference;
use crate::runtime::Inner;

/// The most bytes of a body, in either direction.
const MAX_BODY_BYTES: usize = 4 << 20;

/// The most headers, and the most bytes of all their names and values.
const MAX_HEADERS: usize = 100;
const MAX_HEADER_BYTES: usize = 64 << 10;

/// How long a request may take that names no time, and the longest that it can name.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
const MAX_TIMEOUT: Duration = Duration::from_secs(120);

/// The most redirects that are followed.
const MAX_REDIRECTS: usize = 5;

/// Headers that the host sets, because they decide where a request ends and to whom it goes.
const SET_BY_THE_HOST: &[&str] = &[
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "upgrade",
    "te",
    "trailer",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "expect",
];

/// Headers that are not carried to another host.
const FOR_ONE_HOST: &[&str] = &["authorization", "cookie"];

/// A request as it is sent. It may contain the values of secrets and is not printed.
pub struct OutgoingRequest {
    /// The method.
    pub method: String,
    /// The address, with its host.
    pub url: Url,
    /// The addresses that the host may have; no other is connected to.
    pub addresses: Vec<SocketAddr>,
    /// Names and values.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
    /// How long it may take.
    pub timeout: Duration,
    /// The most bytes of the answer's body.
    pub max_bytes: usize,
}

/// What came back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IncomingResponse {
    /// The status.
    pub status: u16,
    /// Names and values, in their order.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// Sends requests. It follows no redirects, uses no proxy and connects to the given addresses only.
pub trait HttpClient: Send + Sync {
    /// Sends a request. A fault has no value of the request in it.
    fn send(&self, request: OutgoingRequest) -> Later<Result<IncomingResponse, Fault>>;
}

/// A request before references are replaced.
struct Draft {
    method: String,
    url: Url,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    timeout: Duration,
}

fn invalid(message: String) -> Fault {
    Fault::new(Code::ToolArguments, message)
}

impl Inner {
    pub(in crate::host) fn http_request(
        self: &Arc<Self>,
        caller: Caller,
        arguments: HttpArguments,
        within: Option<Millis>,
    ) -> Later<Result<Content, Fault>> {
        let inner = self.clone();
        Box::pin(async move {
            let draft = Draft::read(arguments, within)?;
            let late = format!("no answer within {} ms", draft.timeout.as_millis());
            let response = inner.fetch(&caller, draft, late).await?;
            let IncomingResponse { status, headers, body } = response;
            let body = inner.redacted_bytes(body);
            let mut content =
                Content::new(json!({ "status": status, "headers": headers, "body": sent(body) }));
            // The extension gets what is recorded.
            inner.home.redact_content(&mut content);
            Ok(content)
        })
    }

    /// Sends a request, and follows redirects within what is granted. Only the waiting for answers is timed, not that for the user.
    async fn fetch(
        self: &Arc<Self>,
        caller: &Caller,
        mut draft: Draft,
        late: String,
    ) -> Result<IncomingResponse, Fault> {
        let mut addresses = self.connect(caller, &draft.target()?).await?;
        for followed in 0.. {
            let (request, has_secrets) = self.filled_in(caller, &draft, addresses).await?;
            let client =
                self.home.http().ok_or_else(|| denied("this system has no HTTP client".to_owned()))?;
            let response = tokio::time::timeout(draft.timeout, client.send(request)).await;
            let response = response.map_err(|_| Fault::new(Code::ToolFailed, late.clone()))??;
            let Some(next) = draft.redirected(&response).filter(|_| followed < MAX_REDIRECTS) else {
                return Ok(response);
            };
            let same = next.origin() == draft.url.origin();
            // A secret stays with the host that it was meant for, and nothing goes on unencrypted.
            if !same && (has_secrets || next.scheme() != draft.url.scheme() && next.scheme() != "https") {
                return Ok(response);
            }
            draft.follow(next, response.status, same);
            match self.connect_if_granted(caller, &draft.target()?).await? {
                Some(found) => addresses = found,
                None => return Ok(response),
            }
        }
        Err(Fault::new(Code::Internal, "a redirect was followed without end"))
    }

    /// The request with the values of the secrets that it refers to, and whether there are any.
    async fn filled_in(
        self: &Arc<Self>,
        caller: &Caller,
        draft: &Draft,
        addresses: Vec<SocketAddr>,
    ) -> Result<(OutgoingRequest, bool), Fault> {
        let body = std::str::from_utf8(&draft.body).unwrap_or_default();
        let texts = draft.headers.iter().map(|(_, value)| value.as_str());
        let names: Vec<String> = {
            let texts =
                [draft.url.path(), draft.url.query().unwrap_or_default(), body].into_iter().chain(texts);
            let mut names: Vec<String> =
                texts.flat_map(|text| referred(&caller.extension.id, text)).collect();
            // A name that begins with another is replaced first.
            names.sort_by_key(|name| std::cmp::Reverse(name.len()));
            names.dedup();
            names
        };
        let (mut url, mut headers, mut sent) = (draft.url.clone(), draft.headers.clone(), draft.body.clone());
        if !names.is_empty() {
            self.check_destination(caller, draft, &addresses)?;
        }
        for name in &names {
            let (reference, value) = (reference(&caller.extension.id, name), self.value(caller, name).await?);
            let value = value.expose_secret();
            let coded: String = url::form_urlencoded::byte_serialize(value.as_bytes()).collect();
            let coded = coded.replace('+', "%20");
            url.set_path(&draft_path(&url).replace(&reference, &coded));
            if let Some(query) = url.query().map(|query| query.replace(&reference, &coded)) {
                url.set_query(Some(&query));
            }
            for (_, text) in &mut headers {
                *text = text.replace(&reference, value);
            }
            if let Ok(text) = std::str::from_utf8(&sent) {
                sent = text.replace(&reference, value).into_bytes();
            }
        }
        let request = OutgoingRequest {
            method: draft.method.clone(),
            url,
            addresses,
            headers,
            body: sent,
            timeout: draft.timeout,
            max_bytes: MAX_BODY_BYTES,
        };
        Ok((request, !names.is_empty()))
    }

    /// Refuses to send secrets to a host that no grant covers, or for others to read on the way.
    fn check_destination(
        &self,
        caller: &Caller,
        draft: &Draft,
        addresses: &[SocketAddr],
    ) -> Result<(), Fault> {
        let target = draft.target()?;
        let ConnectArguments { host, port } = &target;
        if !self.takes_secrets(caller, &target)? {
            let wanted = Grants { network: vec![format!("{host}:{port}")], ..Grants::default() };
            let option = format!("--network {host}:{port}");
            let help = self.how_to_grant(&caller.extension, &wanted, &option);
            return Err(denied(format!("a secret is sent to granted hosts only: {help}")));
        }
        let stays_here = addresses.iter().all(|address| address.ip().is_loopback());
        if draft.url.scheme() != "https" && !stays_here {
            return Err(denied("a secret is sent over `https` only".to_owned()));
        }
        Ok(())
    }

    async fn value(self: &Arc<Self>, caller: &Caller, name: &str) -> Result<SecretString, Fault> {
        Ok(self.find_secret(caller.clone(), name.to_owned()).await?.value)
    }

    /// Redacts the values of secrets in bytes. Bytes that are not text are searched as if each were a letter.
    fn redacted_bytes(&self, body: Vec<u8>) -> Vec<u8> {
        match String::from_utf8(body) {
            Ok(text) => self.home.redact_text(text).into_bytes(),
            Err(other) => {
                let letters: String = other.as_bytes().iter().map(|byte| char::from(*byte)).collect();
                let redacted = self.home.redact_text(letters);
                redacted.chars().map(|letter| u8::try_from(letter).unwrap_or(b'?')).collect()
            }
        }
    }
}

fn draft_path(url: &Url) -> String {
    url.path().to_owned()
}

impl Draft {
    fn read(arguments: HttpArguments, within: Option<Millis>) -> Result<Self, Fault> {
        let HttpArguments { method, url, headers, body, timeout_ms } = arguments;
        let url =
            Url::parse(&url).map_err(|error| invalid(format!("`url` is not a valid address: {error}")))?;
        if !["http", "https"].contains(&url.scheme()) || url.host_str().is_none() {
            return Err(invalid("`url` begins with `http://` or `https://` and has a host".to_owned()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(invalid("`url` has no user and no password; use a header".to_owned()));
        }
        if method.is_empty()
            || !method.bytes().all(|letter| letter.is_ascii_uppercase())
            || method == "CONNECT"
        {
            return Err(invalid(format!("`{method}` is not a method that can be sent")));
        }
        check_headers(&headers)?;
        let body = received(body)?;
        if body.len() > MAX_BODY_BYTES {
            return Err(invalid(format!("a body may have {MAX_BODY_BYTES} bytes")));
        }
        let asked = timeout_ms.map(Duration::from_millis).unwrap_or(DEFAULT_TIMEOUT);
        let timeout = within.map_or(asked, |within| asked.min(Duration::from_millis(within.0)));
        Ok(Self { method, url, headers, body, timeout: timeout.min(MAX_TIMEOUT) })
    }

    fn target(&self) -> Result<ConnectArguments, Fault> {
        match (self.url.host_str(), self.url.port_or_known_default()) {
            (Some(host), Some(port)) => {
                let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
                Ok(ConnectArguments { host, port })
            }
            _ => Err(invalid("`url` has no host".to_owned())),
        }
    }

    /// Where a response leads to, if it is a redirect.
    fn redirected(&self, response: &IncomingResponse) -> Option<Url> {
        if ![301, 302, 303, 307, 308].contains(&response.status) {
            return None;
        }
        let place = response.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("location"));
        let next = self.url.join(&place?.1).ok()?;
        (["http", "https"].contains(&next.scheme()) && next.host_str().is_some()).then_some(next)
    }

    fn follow(&mut self, next: Url, status: u16, same_host: bool) {
        self.url = next;
        if status == 303 || [301, 302].contains(&status) && self.method == "POST" {
            self.method = "GET".to_owned();
            self.body.clear();
            self.headers.retain(|(name, _)| !name.to_ascii_lowercase().starts_with("content-"));
        }
        if !same_host {
            self.headers.retain(|(name, _)| !FOR_ONE_HOST.contains(&name.to_ascii_lowercase().as_str()));
        }
    }
}

fn check_headers(headers: &[(String, String)]) -> Result<(), Fault> {
    let bytes: usize = headers.iter().map(|(name, value)| name.len() + value.len()).sum();
    if headers.len() > MAX_HEADERS || bytes > MAX_HEADER_BYTES {
        let what = format!("a request may have {MAX_HEADERS} headers of {MAX_HEADER_BYTES} bytes together");
        return Err(invalid(what));
    }
    for (name, value) in headers {
        if SET_BY_THE_HOST.contains(&name.to_ascii_lowercase().as_str()) {
            return Err(invalid(format!("the host sets the header `{name}`")));
        }
        if value.contains(['\r', '\n', '\0']) {
            return Err(invalid(format!("the value of `{name}` has a line break in it")));
        }
    }
    Ok(())
}

/// The names of the secrets that a text refers to, as references of this extension.
fn referred(id: &ExtensionId, text: &str) -> Vec<String> {
    let beginning = reference(id, "");
    let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
    let found = text.split(&beginning).skip(1).map(|rest| {
        let end = rest.find(|letter| !is_of_name(letter)).unwrap_or(rest.len());
        rest[..end].to_owned()
    });
    found.filter(|name| !name.is_empty()).collect()
}

#[cfg(test)]
#[path = "http_tests.rs"]
mod tests;
