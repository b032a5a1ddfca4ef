//! Record, play, and what is said when the tape does not fit.

use std::fs;
use std::sync::Arc;

use holdfast_contract::problem::Code;
use serde_json::json;

use super::{Player, Recorder};
use crate::Model;
use crate::script::{Script, ScriptStep};
use crate::testing::{ask, calls, listen, result, tool, user};

#[tokio::test]
async fn what_was_recorded_is_played_again() {
    let folder = tempfile::tempdir().unwrap();
    let tape = folder.path().join("demo.jsonl");
    let long = "word ".repeat(2_000);
    let script = Script::new([
        ScriptStep::Fails {
            times: 1,
            retryable: true,
            then: Box::new(ScriptStep::Reasons(
                "which file?".to_owned(),
                Box::new(ScriptStep::calls([("read", json!({ "path": "a" }))])),
            )),
        },
        ScriptStep::says(&long).costing(7, 30),
    ]);
    let talk = [
        vec![user("read it")],
        vec![user("read it")],
        vec![
            user("read it"),
            calls(&[("call-1", "read", json!({ "path": "a" }))]),
            result("call-1", "text", false),
        ],
    ];
    let tools = || vec![tool("read", "Reads.", json!({ "type": "object" }))];
    let recorder = Recorder::new(Arc::new(script), &tape).unwrap();
    let mut recorded = Vec::new();
    for messages in talk.clone() {
        let (deltas, received) = listen();
        let answer = recorder.complete(ask(messages, tools()), deltas).await;
        recorded.push((answer, received.lock().unwrap().concat().replace("][", "")));
    }
    let player = Player::open(&tape).unwrap();
    for (messages, (expected, said)) in talk.clone().into_iter().zip(recorded) {
        let (deltas, received) = listen();
        assert_eq!(player.complete(ask(messages, tools()), deltas).await, expected);
        assert_eq!(received.lock().unwrap().concat(), said);
    }
    let again = player.complete(ask(talk[1].clone(), tools()), listen().0).await;
    assert_eq!(again.unwrap().calls.len(), 1, "the last answer to a request is given again");
    assert_eq!(fs::read_to_string(&tape).unwrap().lines().count(), 3);
}

#[tokio::test]
async fn a_request_that_is_not_on_the_tape_names_the_nearest_difference() {
    let folder = tempfile::tempdir().unwrap();
    let tape = folder.path().join("demo.jsonl");
    let recorder = Recorder::new(Arc::new(Script::new([ScriptStep::says("hello")])), &tape).unwrap();
    let tools = || vec![tool("read", "Reads.", json!({ "type": "object" }))];
    recorder.complete(ask(vec![user("good day")], tools()), listen().0).await.unwrap();
    let player = Player::open(&tape).unwrap();
    let table = [
        (
            ask(vec![user("good night")], tools()),
            "message 1 (user): the tape has `good day`, the request `good night`",
        ),
        (ask(vec![user("good day")], vec![]), "the tool `read`, which only the tape has: `Reads.`"),
        (
            ask(vec![user("good day"), user("sir")], tools()),
            "message 2 (user), which the tape does not have: `sir`",
        ),
    ];
    for (request, expected) in table {
        let failed = player.complete(request, listen().0).await.unwrap_err();
        assert_eq!(failed.fault.code, Code::TapeMissing);
        assert!(!failed.retryable);
        assert!(failed.fault.message.contains(expected), "{}", failed.fault.message);
    }
}

#[test]
fn a_damaged_tape_says_where() {
    let folder = tempfile::tempdir().unwrap();
    let tape = folder.path().join("demo.jsonl");
    fs::write(&tape, "\n{\"request\":1}\n").unwrap();
    let said = Player::open(&tape).map(|_| ()).unwrap_err().to_string();
    assert!(said.contains("error[HF-5011]") && said.contains("demo.jsonl:2:1"), "{said}");
    for secret in
        ["DB_PASSWORD=hunter2\n", "\"hunter2\"\n", "{\"hunter2\": 1}\n", "{\"request\": \"hunter2\"}\n"]
    {
        fs::write(&tape, secret).unwrap();
        let said = Player::open(&tape).map(|_| ()).unwrap_err().to_string();
        assert!(said.contains("demo.jsonl:1:1") && !said.contains("hunter2"), "{said}");
    }
    let said = Player::open(&folder.path().join("none")).map(|_| ()).unwrap_err().to_string();
    assert!(said.contains("error[HF-5011]"), "{said}");
}
