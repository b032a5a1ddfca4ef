use holdfast_contract::host_call::arguments::SentBytes;

use super::*;

fn draft(method: &str, url: &str, headers: &[(&str, &str)]) -> Result<Draft, Fault> {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let body = SentBytes::Text("question".to_owned());
    Draft::read(
        HttpArguments { method: method.to_owned(), url: url.to_owned(), headers, body, timeout_ms: None },
        None,
    )
}

fn redirect(status: u16, to: &str) -> IncomingResponse {
    IncomingResponse { status, headers: vec![("Location".to_owned(), to.to_owned())], body: Vec::new() }
}

#[test]
fn what_decides_where_a_request_goes_is_refused() {
    let refused = |method: &str, url: &str, headers: &[(&str, &str)]| {
        draft(method, url, headers).err().map(|fault| fault.code) == Some(Code::ToolArguments)
    };
    for url in
        ["ftp://a.example", "a.example", "https://", "http://user:word@a.example", "file:///etc/passwd"]
    {
        assert!(refused("GET", url, &[]), "{url}");
    }
    for method in ["", "get", "CONNECT", "GET /"] {
        assert!(refused(method, "http://a.example", &[]), "{method}");
    }
    for header in [
        ("Host", "b.example"),
        ("content-length", "0"),
        ("Transfer-Encoding", "chunked"),
        ("X", "a\r\nHost: b"),
    ] {
        assert!(refused("GET", "http://a.example", &[header]), "{header:?}");
    }
    assert!(draft("GET", "http://[::1]:8080/a", &[("X", "a")]).is_ok());
}

#[test]
fn a_redirect_loses_what_was_for_one_host() {
    let headers = [("Authorization", "word"), ("Cookie", "one"), ("Content-Type", "text/plain"), ("X", "y")];
    let mut it = draft("POST", "https://a.example/one", &headers).unwrap();
    assert_eq!(it.redirected(&redirect(200, "/two")), None);
    assert_eq!(it.redirected(&redirect(302, "ftp://a.example/")), None);
    let next = it.redirected(&redirect(302, "/two")).unwrap();
    assert_eq!(next.as_str(), "https://a.example/two");
    it.follow(next, 302, true);
    assert_eq!((it.method.as_str(), it.body.len(), it.headers.len()), ("GET", 0, 3), "a POST becomes a GET");
    let next = it.redirected(&redirect(307, "https://b.example/")).unwrap();
    it.follow(next, 307, false);
    assert_eq!(it.headers, [("X".to_owned(), "y".to_owned())]);
}

#[test]
fn references_are_those_of_the_extension() {
    let id = ExtensionId::from("weather");
    let text = "Bearer secret:weather/TOKEN, secret:weather/A-b_1/x secret:other/TOKEN secret:weather/";
    assert_eq!(referred(&id, text), ["TOKEN", "A-b_1"]);
}
