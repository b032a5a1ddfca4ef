//! Requests of a program to its gateway: a tunnel to a host, or one plain request to forward.
//!
//! The head is parsed by `httparse`, under stricter rules than HTTP has where leniency would let two parsers disagree: no bare line
//! feeds, no folded headers, no repeated `Host` or `Content-Length`, no `Transfer-Encoding`.

use httparse::{EMPTY_HEADER, Error, Header, Request, Status};

/// The largest head of a request.
pub(crate) const MAX_HEAD_BYTES: usize = 32 << 10;

/// A request to the gateway.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ProxyRequest {
    /// Bytes both ways: `CONNECT`.
    Tunnel { host: String, port: u16 },
    /// One plain request, with the head to send to the host, and the length of its body.
    Plain { host: String, port: u16, head: Vec<u8>, length: u64 },
}

/// A request that is refused.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Rejection {
    /// The status code and phrase of the response.
    pub status: &'static str,
    pub reason: &'static str,
}

/// Headers that are for the gateway, or that it sets itself.
const NOT_FORWARDED: &[&str] =
    &["host", "connection", "keep-alive", "proxy-connection", "proxy-authorization", "te", "upgrade"];

fn bad(reason: &'static str) -> Rejection {
    Rejection { status: "400 Bad Request", reason }
}

impl ProxyRequest {
    /// Parses the head of a request, including its empty line.
    pub(crate) fn parse(head: &[u8]) -> Result<Self, Rejection> {
        let whole = head.strip_suffix(b"\r\n\r\n").filter(|head| head.len() <= MAX_HEAD_BYTES);
        let whole = whole.ok_or(Rejection {
            status: "431 Request Header Fields Too Large",
            reason: "the head of the request is too long",
        })?;
        if std::str::from_utf8(whole).is_err() {
            return Err(bad("the head of the request is not valid UTF-8"));
        }
        let lines = line_count(whole).ok_or(bad("a line of the head does not end with CRLF"))?;
        let mut headers = vec![EMPTY_HEADER; lines];
        let mut request = Request::new(&mut headers);
        match request.parse(head).map_err(rejected)? {
            Status::Complete(parsed) if parsed == head.len() => {}
            _ => return Err(bad("invalid request line")),
        }
        let (Some(method), Some(target)) = (request.method, request.path) else {
            return Err(bad("invalid request line"));
        };
        let length = body_length(request.headers)?;
        if method == "CONNECT" {
            let (host, port) = authority(target, None)?;
            return Ok(Self::Tunnel { host, port });
        }
        let rest = strip_scheme(target).ok_or(bad(
            "this is a proxy: request an absolute `http://` address, or `CONNECT` to a host and port",
        ))?;
        let at = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority_text, path) = rest.split_at(at);
        let (host, port) = authority(authority_text, Some(80))?;
        let head = forwarded(method, authority_text, path, request.headers);
        Ok(Self::Plain { host, port, head, length })
    }

    /// The host and port that it is for.
    pub(crate) fn target(&self) -> (&str, u16) {
        match self {
            Self::Tunnel { host, port } | Self::Plain { host, port, .. } => (host, *port),
        }
    }
}

/// The number of lines; none where a carriage return or a line feed stands alone, or the request line is empty.
fn line_count(head: &[u8]) -> Option<usize> {
    let feeds = head.iter().filter(|byte| **byte == b'\n').count();
    let returns = head.iter().filter(|byte| **byte == b'\r').count();
    let ends = head.windows(2).filter(|pair| pair == b"\r\n").count();
    (feeds == ends && returns == ends && !head.starts_with(b"\r\n")).then_some(ends + 1)
}

fn rejected(error: Error) -> Rejection {
    bad(match error {
        Error::HeaderName => "invalid header name",
        Error::HeaderValue => "invalid header value",
        Error::Version => "unsupported HTTP version",
        Error::NewLine => "a line of the head does not end with CRLF",
        Error::TooManyHeaders => "too many headers",
        Error::Token | Error::Status => "invalid request line",
    })
}

/// The length of the body. Repeated and ambiguous headers are refused, because the host might read them in another way.
fn body_length(headers: &[Header<'_>]) -> Result<u64, Rejection> {
    let count = |name: &str| headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name)).count();
    if count("transfer-encoding") > 0 {
        return Err(Rejection {
            status: "411 Length Required",
            reason: "`Transfer-Encoding` is not supported: send `Content-Length`",
        });
    }
    if count("host") > 1 {
        return Err(bad("duplicate `Host` header"));
    }
    if count("content-length") > 1 {
        return Err(bad("duplicate `Content-Length` header"));
    }
    let Some(header) = headers.iter().find(|header| header.name.eq_ignore_ascii_case("content-length"))
    else {
        return Ok(0);
    };
    let digits = std::str::from_utf8(header.value).ok().map(str::trim);
    let digits = digits.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    digits.and_then(|text| text.parse().ok()).ok_or(bad("invalid `Content-Length`"))
}

/// The head that is sent to the host. `Host` is the host that was checked, independent of the program's header.
fn forwarded(method: &str, authority: &str, path: &str, headers: &[Header<'_>]) -> Vec<u8> {
    let slash = if path.starts_with('/') { "" } else { "/" };
    let mut head =
        format!("{method} {slash}{path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n").into_bytes();
    for Header { name, value } in headers {
        if !NOT_FORWARDED.iter().any(|ours| name.eq_ignore_ascii_case(ours)) {
            head.extend_from_slice(name.as_bytes());
            head.extend_from_slice(b": ");
            head.extend_from_slice(value);
            head.extend_from_slice(b"\r\n");
        }
    }
    head.extend_from_slice(b"\r\n");
    head
}

fn strip_scheme(target: &str) -> Option<&str> {
    let (scheme, rest) = target.split_once("://")?;
    scheme.eq_ignore_ascii_case("http").then_some(rest)
}

/// A host and a port. An IPv6 address is in brackets.
fn authority(text: &str, default_port: Option<u16>) -> Result<(String, u16), Rejection> {
    let invalid = || bad("the request has no valid host and port");
    let (host, port) = match text.strip_prefix('[').map(|rest| rest.split_once(']').ok_or_else(invalid)) {
        Some(split) => {
            let (address, rest) = split?;
            let port = if rest.is_empty() { None } else { Some(rest.strip_prefix(':').ok_or_else(invalid)?) };
            (address, port)
        }
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:".contains(&byte);
    if host.is_empty() || host.len() > 253 || !host.bytes().all(is_allowed) {
        return Err(invalid());
    }
    let port = match port {
        Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
            port.parse().map_err(|_| invalid())?
        }
        Some(_) => return Err(invalid()),
        None => default_port.ok_or_else(invalid)?,
    };
    if port == 0 { Err(invalid()) } else { Ok((host.to_owned(), port)) }
}
