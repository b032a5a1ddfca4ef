//! Tests of what counts as a message.

use serde_json::{Value, json};

use crate::RpcMessage;

fn parse(line: &str) -> Result<RpcMessage<Value>, String> {
    RpcMessage::parse(line.as_bytes()).map_err(|error| error.to_string())
}

#[test]
fn requests_notifications_and_responses_are_told_apart() {
    let method = || "m".to_owned();
    assert_eq!(
        parse(r#"{"jsonrpc":"2.0","id":1,"method":"m","params":[]}"#),
        Ok(RpcMessage::Request { id: json!(1), method: method(), params: Some(json!([])) })
    );
    assert_eq!(
        parse(r#"{"jsonrpc":"2.0","method":"m"}"#),
        Ok(RpcMessage::Notification { method: method(), params: None })
    );
    assert_eq!(
        parse(r#"{"jsonrpc":"2.0","id":1,"result":null}"#),
        Ok(RpcMessage::Response { id: json!(1), answer: Ok(Value::Null) })
    );
    assert_eq!(
        parse(r#"{"jsonrpc":"2.0","id":1,"error":{"code":1}}"#),
        Ok(RpcMessage::Response { id: json!(1), answer: Err(json!({ "code": 1 })) })
    );
}

#[test]
fn invalid_messages_are_refused_with_the_reason() {
    for (line, reason) in [
        ("garbage", "expected value"),
        ("[]", "invalid length"),
        (r#"{"jsonrpc":"2.0","method":"m","more":1}"#, "unknown field `more`"),
        (r#"{"jsonrpc":"1.0","method":"m"}"#, "`jsonrpc` is \"1.0\""),
        (r#"{"jsonrpc":"2.0","id":1}"#, "either a result or an error"),
        (r#"{"jsonrpc":"2.0","id":1,"result":1,"error":{}}"#, "either a result or an error"),
        (r#"{"jsonrpc":"2.0","result":1}"#, "neither a request nor a response"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m","result":1}"#, "neither a request nor a response"),
    ] {
        let error = parse(line).unwrap_err();
        assert!(error.contains(reason), "{line}: {error}");
    }
}
