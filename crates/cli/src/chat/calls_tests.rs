use holdfast_contract::content::DigestOf;
use holdfast_contract::message::{AskedCall, Usage};
use holdfast_contract::session_frames::{ModelReturned, ToolCalled, ToolSettled};
use serde_json::{Value, json};

use super::*;

const CALL: CallId = CallId { turn: 1, index: 1 };

fn tool(render: Option<Value>, renders: bool) -> ToolInfo {
    let text = String::new;
    ToolInfo {
        name: "look".into(),
        description: text(),
        effects: text(),
        extension: text(),
        version: text(),
        lane: text(),
        generation: 1,
        policy: text(),
        input_schema: json!({}),
        render,
        renders,
    }
}

/// A call of the tool that comes to this, as the chat hears of it.
fn over(tool: ToolInfo, result: Value, status: CallStatus, by_hook: Option<Value>) -> Over {
    let mut calls = Calls::default();
    calls.learn(&[tool]);
    let (arguments, result) = (Content::new(json!({ "path": "a.txt" })), Content::new(result));
    let asked = AskedCall { model_id: "1".into(), tool: "look".into(), arguments: arguments.clone() };
    let bodies = [
        Body::from(ModelReturned {
            text: "".into(),
            reasoning: None,
            calls: vec![asked],
            usage: Usage::default(),
        }),
        Body::from(ToolCalled { call: CALL, tool: "look".into(), arguments: DigestOf::from(&arguments) }),
        Body::from(ToolReturned { call: CALL, outcome: ToolOutcome::Result(result.clone()) }),
        Body::from(ToolSettled {
            call: CALL,
            status,
            content: DigestOf::from(&result),
            fault: None,
            artifacts: Vec::new(),
            render: by_hook.map(Content::new),
        }),
    ];
    let ended = bodies.iter().filter_map(|body| calls.frame(Millis(0), body, TextStyle::Plain, 80));
    ended.last().unwrap()
}

#[test]
fn without_a_hint_a_call_is_its_line() {
    let over = over(tool(None, false), json!("much text"), CallStatus::Done, None);
    assert_eq!(over.line, "⏺ look {\"path\":\"a.txt\"} … ok 0 ms");
    assert!(over.block.is_empty() && over.asked.is_none());
}

#[test]
fn a_tools_hint_shows_its_result_and_a_hooks_hint_counts_for_more() {
    let hinted =
        || tool(Some(json!({ "as": "code", "of": "text", "summary": "{path}: {lines} lines" })), false);
    let result = || json!({ "text": "+one", "lines": 1 });
    let own = over(hinted(), result(), CallStatus::Done, None);
    assert_eq!((own.line.as_str(), own.block.as_str()), ("⏺ look a.txt: 1 lines … ok 0 ms", "  +one\n"));
    let hooked = over(hinted(), result(), CallStatus::Done, Some(json!({ "as": "markdown", "of": "lines" })));
    assert_eq!(hooked.line, "⏺ look {\"path\":\"a.txt\"} … ok 0 ms");
    assert_eq!(hooked.block, "  1\n");
    let failed = over(hinted(), result(), CallStatus::Failed, None);
    assert!(failed.line.ends_with("failed") && failed.block.is_empty(), "what failed has no result to show");
}

#[test]
fn an_extension_that_shows_calls_itself_is_asked_with_what_the_model_was_told() {
    let asked = over(tool(None, true), json!("told"), CallStatus::Done, None).asked.unwrap();
    assert_eq!((asked.tool.as_str(), asked.result.to_text().as_str()), ("look", "told"));
    assert_eq!(asked.arguments.value()["path"], "a.txt");
    assert!(over(tool(None, true), json!("x"), CallStatus::Denied, None).asked.is_none());
}

#[test]
fn a_call_that_runs_is_shown_with_its_arguments() {
    let mut calls = Calls::default();
    let arguments = Content::new(json!({ "command": "sleep 4\u{1b}[2J" }));
    let call = |index| CallId { turn: 1, index };
    calls.know(&arguments);
    let run = |calls: &mut Calls, index, runs| {
        let open = Open { tool: "shell".into(), arguments: Some(arguments.clone()), since: Millis(0), runs };
        calls.open.insert(call(index), open);
    };
    run(&mut calls, 1, None);
    assert_eq!(calls.running(), None, "it waits");
    run(&mut calls, 1, Some(Instant::now()));
    assert_eq!(calls.running().unwrap(), r#"⏺ shell {"command":"sleep 4\u001b[2J"} …"#);
    run(&mut calls, 1, Instant::now().checked_sub(std::time::Duration::from_secs(7)));
    assert!(calls.running().unwrap().ends_with("} … 7 s"));
    run(&mut calls, 2, Some(Instant::now()));
    assert_eq!(calls.running().unwrap(), "⏺ shell, shell … 7 s");
}

#[test]
fn short_arguments_are_shown_before_long_ones() {
    let arguments =
        Content::new(json!({ "new": "x".repeat(200), "old": "y".repeat(100), "path": "src/a.rs" }));
    assert!(shortest_first(&arguments).starts_with(r#"{"path":"src/a.rs","old":"yyy"#));
    assert_eq!(shortest_first(&Content::new(json!("text"))), Content::new(json!("text")).to_text());
}
