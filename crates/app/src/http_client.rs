//! Sends the HTTP requests of extensions. What may be sent, and where to, was decided before.

use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::wire::Later;
use holdfast_model::provider::prepare_tls;
use holdfast_runtime::{HttpClient, IncomingResponse, OutgoingRequest};
use reqwest::redirect::Policy;
use reqwest::{Client, Method};

/// A client that connects to the addresses of each request, and to no other.
pub(crate) struct PinnedClient;

impl HttpClient for PinnedClient {
    fn send(&self, request: OutgoingRequest) -> Later<Result<IncomingResponse, Fault>> {
        Box::pin(async move { send(request).await.map_err(|error| failed(&error)) })
    }
}

enum SendError {
    Http(reqwest::Error),
    Invalid(&'static str),
    TooLarge(usize),
}

impl From<reqwest::Error> for SendError {
    fn from(error: reqwest::Error) -> Self {
        // The address may have a secret in it.
        Self::Http(error.without_url())
    }
}

fn failed(error: &SendError) -> Fault {
    let message = match error {
        SendError::Http(error) => {
            let mut message = error.to_string();
            let mut cause = std::error::Error::source(error);
            while let Some(error) = cause {
                message = format!("{message}: {error}");
                cause = error.source();
            }
            message
        }
        SendError::Invalid(what) => return Fault::new(Code::ToolArguments, *what),
        SendError::TooLarge(max) => format!("the answer has more than {max} bytes"),
    };
    Fault::new(Code::ToolFailed, message)
}

async fn send(request: OutgoingRequest) -> Result<IncomingResponse, SendError> {
    let OutgoingRequest { method, url, addresses, headers, body, timeout, max_bytes } = request;
    prepare_tls();
    // One client for each request: the addresses are those of this request. No proxies: the environment must not reroute it.
    let client = Client::builder()
        .timeout(timeout)
        .redirect(Policy::none())
        .no_proxy()
        .resolve_to_addrs(url.host_str().unwrap_or_default(), &addresses)
        .user_agent(concat!("holdfast/", env!("CARGO_PKG_VERSION")))
        .build()?;
    let method =
        Method::from_bytes(method.as_bytes()).map_err(|_| SendError::Invalid("invalid HTTP method"))?;
    let mut sent = client.request(method, url);
    for (name, value) in headers {
        sent = sent.header(name, value);
    }
    if !body.is_empty() {
        sent = sent.body(body);
    }
    let mut response = sent.send().await?;
    let status = response.status().as_u16();
    let header = |(name, value): (&reqwest::header::HeaderName, &reqwest::header::HeaderValue)| {
        (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
    };
    let headers = response.headers().iter().map(header).collect();
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > max_bytes {
            return Err(SendError::TooLarge(max_bytes));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(IncomingResponse { status, headers, body })
}
