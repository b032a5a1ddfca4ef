//! Tests of what the gateway accepts, with heads on which two parsers could disagree.

use super::request::{MAX_HEAD_BYTES, ProxyRequest, Rejection};

fn parse(head: &str) -> Result<ProxyRequest, Rejection> {
    ProxyRequest::parse(format!("{head}\r\n\r\n").as_bytes())
}

#[test]
fn a_tunnel_names_its_host_and_port() {
    let tunnel = |host: &str, port| Ok(ProxyRequest::Tunnel { host: host.to_owned(), port });
    assert_eq!(parse("CONNECT a.example:443 HTTP/1.1\r\nHost: other.example:1"), tunnel("a.example", 443));
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
fn a_plain_request_is_forwarded_to_the_host_in_its_address() {
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
fn a_target_without_a_path_is_forwarded_with_one() {
    let Ok(ProxyRequest::Plain { head, .. }) = parse("GET http://a.example?q HTTP/1.1") else {
        panic!("it is plain")
    };
    assert!(head.starts_with(b"GET /?q HTTP/1.1\r\n"), "{}", String::from_utf8_lossy(&head));
}

#[test]
fn invalid_requests_are_refused() {
    for bad in [
        "GET / HTTP/1.1",
        "GET https://a.example/ HTTP/1.1",
        "GET http://user@a.example/ HTTP/1.1",
        "GET http://a.example/ HTTP/2",
        "GET http://a.example/ x HTTP/1.1",
        "GET  http://a.example/ HTTP/1.1",
        "GET http://a.example/",
        "\r\nGET http://a.example/ HTTP/1.1",
        "GET http://a.example/ HTTP/1.1\r\nno field",
        "GET http://a.example/ HTTP/1.1\r\n X: folded",
        "POST http://a.example/ HTTP/1.1\r\nTransfer-Encoding: chunked",
        "POST http://a.example/ HTTP/1.1\r\nContent-Length: -1",
        "",
    ] {
        assert!(parse(bad).is_err(), "{bad}");
    }
    assert!(ProxyRequest::parse(b"GET http://a.example/ HTTP/1.1\r\nX: \xff\r\n\r\n").is_err());
}

#[test]
fn request_smuggling_is_refused() {
    for (attack, headers, reason) in [
        ("obs-fold", "X: 1\r\n Host: evil.example", "invalid header name"),
        ("obs-fold with a tab", "X: 1\r\n\tHost: evil.example", "invalid header name"),
        ("duplicate Host", "Host: a.example\r\nhost: evil.example", "duplicate `Host` header"),
        ("duplicate length", "Content-Length: 3\r\nContent-Length: 30", "duplicate `Content-Length` header"),
        ("equal lengths", "Content-Length: 3\r\ncontent-length: 3", "duplicate `Content-Length` header"),
        ("list of lengths", "Content-Length: 3, 30", "invalid `Content-Length`"),
        ("signed length", "Content-Length: +3", "invalid `Content-Length`"),
        ("hexadecimal length", "Content-Length: 0x3", "invalid `Content-Length`"),
        ("empty length", "Content-Length:", "invalid `Content-Length`"),
        ("bare CR in a value", "X: 1\rHost: evil.example", "does not end with CRLF"),
        ("bare CR at the end", "X: 1\r", "does not end with CRLF"),
        ("bare LF", "X: 1\nHost: evil.example", "does not end with CRLF"),
        ("NUL in a value", "X: a\0b", "invalid header value"),
        ("NUL in a name", "X\0: a", "invalid header name"),
        ("control character", "X: a\x07b", "invalid header value"),
        ("no colon", "X 1", "invalid header name"),
        ("empty name", ": 1", "invalid header name"),
        ("space before the colon", "Content-Length : 3", "invalid header name"),
        ("encoding and length", "Content-Length: 3\r\nTransfer-Encoding: chunked", "`Transfer-Encoding`"),
        ("encoding in other case", "tRANSFER-eNCODING: identity", "`Transfer-Encoding`"),
    ] {
        for line in ["POST http://a.example/ HTTP/1.1", "CONNECT a.example:443 HTTP/1.1"] {
            let rejection = parse(&format!("{line}\r\n{headers}")).unwrap_err();
            assert!(rejection.reason.contains(reason), "{attack}: {rejection:?}");
        }
    }
}

#[test]
fn an_oversized_head_is_refused() {
    let line = "GET http://a.example/ HTTP/1.1\r\nX: ";
    let fits = "x".repeat(MAX_HEAD_BYTES - line.len());
    assert!(parse(&format!("{line}{fits}")).is_ok());
    let rejection = parse(&format!("{line}{fits}x")).unwrap_err();
    assert!(rejection.status.starts_with("431"), "{rejection:?}");
    let endless = ProxyRequest::parse(&vec![b'x'; MAX_HEAD_BYTES + 9]).unwrap_err();
    assert!(endless.status.starts_with("431"), "{endless:?}");
    let many = "X: 1\r\n".repeat(4_000);
    assert!(parse(&format!("GET http://a.example/ HTTP/1.1\r\n{many}Y: 1")).is_ok());
}
