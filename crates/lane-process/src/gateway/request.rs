//! What a program asks of its gateway: a tunnel to a host, or one plain request that is passed on.

/// Bytes that the head of a request may have.
pub(crate) const HEAD_BYTES: usize = 32 << 10;

/// A request to the gateway.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ProxyRequest {
    /// Bytes both ways: `CONNECT`.
    Tunnel { host: String, port: u16 },
    /// One plain request, in the form in which the host has it, and how long its body is.
    Plain { host: String, port: u16, head: Vec<u8>, length: u64 },
}

/// A request that is not served: the status, and why.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Wrong(pub &'static str, pub &'static str);

const BAD: &str = "400 Bad Request";

/// Fields that are for the gateway, or that it answers for itself.
const OURS: &[&str] =
    &["host", "connection", "keep-alive", "proxy-connection", "proxy-authorization", "te", "upgrade"];

impl ProxyRequest {
    /// Reads the head of a request, up to its empty line.
    pub(crate) fn parse(head: &[u8]) -> Result<Self, Wrong> {
        let whole = head.strip_suffix(b"\r\n\r\n").filter(|head| head.len() <= HEAD_BYTES);
        let whole =
            whole.ok_or(Wrong("431 Request Header Fields Too Large", "the request's head is too long"))?;
        let text = std::str::from_utf8(whole).map_err(|_| Wrong(BAD, "the request is no text"))?;
        // A server may take a lone line break for the end of a line, and so one field for two.
        if text.split("\r\n").any(|line| line.contains(['\r', '\n', '\0'])) {
            return Err(Wrong(BAD, "a line of the request contains a control character"));
        }
        let mut lines = text.split("\r\n");
        let words: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
        let [method, target, version] = words[..] else {
            return Err(Wrong(BAD, "the request makes no sense"));
        };
        if !["HTTP/1.1", "HTTP/1.0"].contains(&version) {
            return Err(Wrong(BAD, "the request is of no version that is known here"));
        }
        if method == "CONNECT" {
            let (host, port) = authority(target, None)?;
            return Ok(Self::Tunnel { host, port });
        }
        let Some(rest) = strip_scheme(target) else {
            return Err(Wrong(
                BAD,
                "this is a proxy: ask for a whole `http://` address, or `CONNECT` to a host and port",
            ));
        };
        let at = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority_text, path) = rest.split_at(at);
        let (host, port) = authority(authority_text, Some(80))?;
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        // The host is the one that was asked about, whatever the fields say.
        let mut passed =
            format!("{method} {path} HTTP/1.1\r\nHost: {authority_text}\r\nConnection: close\r\n");
        let mut length = None;
        for line in lines {
            let (name, value) = line.split_once(':').ok_or(Wrong(BAD, "a field has no name"))?;
            let plain = name.to_ascii_lowercase();
            if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_graphic()) {
                return Err(Wrong(BAD, "a field has a name that is none"));
            }
            if plain == "transfer-encoding" {
                return Err(Wrong("411 Length Required", "the body's length must be known"));
            }
            if plain == "content-length" {
                let number =
                    value.trim().parse().map_err(|_| Wrong(BAD, "the body's length is no number"))?;
                if length.replace(number).is_some() {
                    return Err(Wrong(BAD, "the body's length is given twice"));
                }
            }
            if !OURS.contains(&plain.as_str()) {
                passed.push_str(line);
                passed.push_str("\r\n");
            }
        }
        passed.push_str("\r\n");
        Ok(Self::Plain { host, port, head: passed.into_bytes(), length: length.unwrap_or(0) })
    }

    /// The host and port that it is for.
    pub(crate) fn target(&self) -> (&str, u16) {
        match self {
            Self::Tunnel { host, port } | Self::Plain { host, port, .. } => (host, *port),
        }
    }
}

fn strip_scheme(target: &str) -> Option<&str> {
    let (scheme, rest) = target.split_once("://")?;
    scheme.eq_ignore_ascii_case("http").then_some(rest)
}

/// A host and a port. An address of the sixth version stands in brackets.
fn authority(text: &str, usual: Option<u16>) -> Result<(String, u16), Wrong> {
    let wrong = || Wrong(BAD, "the request names no host and port");
    let (host, port) = match text.strip_prefix('[').map(|rest| rest.split_once(']').ok_or_else(wrong)) {
        Some(split) => {
            let (address, rest) = split?;
            let port = if rest.is_empty() { None } else { Some(rest.strip_prefix(':').ok_or_else(wrong)?) };
            (address, port)
        }
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let known = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:".contains(&byte);
    if host.is_empty() || host.len() > 253 || !host.bytes().all(known) {
        return Err(wrong());
    }
    let port = match port {
        Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => port.parse().map_err(|_| wrong())?,
        Some(_) => return Err(wrong()),
        None => usual.ok_or_else(wrong)?,
    };
    if port == 0 { Err(wrong()) } else { Ok((host.to_owned(), port)) }
}

#[cfg(test)]
#[allow(clippy::panic, reason = "a test that cannot go on should stop loudly")]
mod tests {
    use super::*;

    fn parse(head: &str) -> Result<ProxyRequest, Wrong> {
        ProxyRequest::parse(format!("{head}\r\n\r\n").as_bytes())
    }

    #[test]
    fn a_tunnel_names_its_host_and_port() {
        let tunnel = |host: &str, port| Ok(ProxyRequest::Tunnel { host: host.to_owned(), port });
        assert_eq!(
            parse("CONNECT a.example:443 HTTP/1.1\r\nHost: other.example:1"),
            tunnel("a.example", 443)
        );
        assert_eq!(parse("CONNECT [::1]:8 HTTP/1.0"), tunnel("::1", 8));
        for bad in [
            "CONNECT a.example HTTP/1.1",
            "CONNECT :1 HTTP/1.1",
            "CONNECT a:0 HTTP/1.1",
            "CONNECT a:+1 HTTP/1.1",
            "CONNECT a@b:1 HTTP/1.1",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_plain_request_goes_to_the_host_that_it_names() {
        let head = "POST http://a.example/x?y HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 3\r\nProxy-Authorization: x\r\nX: 1";
        let Ok(ProxyRequest::Plain { host, port, head, length }) = parse(head) else { panic!("it is plain") };
        assert_eq!((host.as_str(), port, length), ("a.example", 80, 3));
        let head = String::from_utf8_lossy(&head).into_owned();
        assert_eq!(
            head,
            "POST /x?y HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\nContent-Length: 3\r\nX: 1\r\n\r\n"
        );
    }

    #[test]
    fn what_makes_no_sense_is_not_passed_on() {
        for bad in [
            "GET / HTTP/1.1",
            "GET https://a.example/ HTTP/1.1",
            "GET http://user@a.example/ HTTP/1.1",
            "GET http://a.example/ HTTP/2",
            "GET http://a.example/ x HTTP/1.1",
            "GET http://a.example/ HTTP/1.1\r\nno field",
            "GET http://a.example/ HTTP/1.1\r\n X: folded",
            "POST http://a.example/ HTTP/1.1\r\nTransfer-Encoding: chunked",
            "POST http://a.example/ HTTP/1.1\r\nContent-Length: -1",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
        assert!(ProxyRequest::parse(&vec![b'x'; HEAD_BYTES + 9]).is_err());
    }
}
