//! Tests of the codec.

use serde_json::json;

use crate::{EncodeError, LineError, encode_request, encode_response, read_line};

async fn lines(mut bytes: &[u8], limit: usize) -> (Vec<String>, Option<LineError>) {
    let (mut read, mut line) = (Vec::new(), Vec::new());
    loop {
        line.clear();
        match read_line(&mut bytes, &mut line, limit).await {
            Ok(true) => read.push(String::from_utf8_lossy(&line).into_owned()),
            Ok(false) => return (read, None),
            Err(error) => return (read, Some(error)),
        }
    }
}

#[tokio::test]
async fn lines_are_read_up_to_the_limit_and_no_further() {
    assert_eq!(lines(b"", 4).await.0, Vec::<String>::new());
    let (read, error) = lines(b"abcd\n\nx\n", 4).await;
    assert_eq!((read, error.is_none()), (vec!["abcd".to_owned(), String::new(), "x".to_owned()], true));
    let (read, error) = lines(b"ab\nabcde\n", 4).await;
    assert_eq!(read, ["ab"]);
    assert!(matches!(error, Some(LineError::TooLong { limit: 4 })), "{error:?}");
}

#[tokio::test]
async fn a_truncated_line_is_an_error_and_stays_in_the_buffer() {
    let mut line = Vec::new();
    let error = read_line(&mut &b"ab"[..], &mut line, 4).await;
    assert!(matches!(error, Err(LineError::Truncated)), "{error:?}");
    assert_eq!(line, b"ab");
}

#[test]
fn requests_notifications_and_responses_are_one_line_each() {
    let message = json!({ "method": "log", "params": { "text": "a\nb" } });
    assert_eq!(
        encode_request(Some(7), &message, 100).unwrap(),
        "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"log\",\"params\":{\"text\":\"a\\nb\"}}\n"
    );
    assert_eq!(
        encode_request(None, &json!({ "method": "stop" }), 100).unwrap(),
        "{\"jsonrpc\":\"2.0\",\"method\":\"stop\"}\n"
    );
    let answer = encode_response::<()>(&json!("x"), Ok(&json!(null)), 100).unwrap();
    assert_eq!(answer, "{\"id\":\"x\",\"jsonrpc\":\"2.0\",\"result\":null}\n");
    let error = encode_response(&json!(1), Err(&json!({ "code": 1 })), 100).unwrap();
    assert_eq!(error, "{\"id\":1,\"jsonrpc\":\"2.0\",\"error\":{\"code\":1}}\n");
}

#[test]
fn a_line_over_the_limit_is_not_encoded() {
    let error = encode_request(None, &json!({ "method": "stop" }), 10);
    assert!(matches!(error, Err(EncodeError::TooLong { bytes: 33 })), "{error:?}");
}
