//! The method table and the schema have the same methods, and what is written is read back.

use std::collections::BTreeSet;

use serde_json::json;

use super::*;

#[test]
fn the_schema_has_every_method_of_the_table() {
    let names: Vec<&str> = Request::TABLES.iter().copied().flatten().map(|row| row.name).collect();
    let unique: BTreeSet<&str> = names.iter().copied().collect();
    assert_eq!(unique.len(), names.len(), "a method is in the table twice");
    let schema = schema();
    let choices = schema["request"]["oneOf"].as_array().unwrap().iter();
    let described: BTreeSet<&str> =
        choices.map(|choice| choice["properties"]["method"]["const"].as_str().unwrap()).collect();
    assert_eq!(described, unique);
}

#[test]
fn a_request_is_read_by_the_name_of_its_method() {
    let sent = Request::from(SessionMethod::Cancel(SessionParams { session: "one".into() }));
    let written = serde_json::to_value(&sent).unwrap();
    assert_eq!(written, json!({ "method": "session.cancel", "params": { "session": "one" } }));
    let read = Request::read("session.cancel", written["params"].clone());
    assert!(matches!(read, Ok(Request::Session(SessionMethod::Cancel(_)))));
    assert!(matches!(Request::read("session.dance", json!({})), Err(RequestError::UnknownMethod)));
    let invalid = Request::read("tools.list", json!({ "more": 1 }));
    assert!(matches!(invalid, Err(RequestError::InvalidParams(_))));
}
