//! What the built-in model makes of sentences and commands.

use holdfast_contract::content::Content;
use holdfast_contract::message::Message;
use holdfast_contract::tool::{ToolSpec, agent_arguments_schema};
use serde_json::{Value, json};

use super::words::is_stop_word;
use super::{HINT, Offline};
use crate::Model;
use crate::testing::{ask, calls, listen, result, says, tool, user};

fn tools() -> Vec<ToolSpec> {
    let path = json!({ "type": "string", "description": "The path of the file" });
    vec![
        tool(
            "read_file",
            "Reads a text file from the disk.",
            json!({ "properties": { "path": path, "lines": { "type": "integer" } }, "required": ["path"] }),
        ),
        tool(
            "write_file",
            "Writes text to a file on the disk.",
            json!({ "properties": { "path": path, "content": { "type": "string" } }, "required": ["path", "content"] }),
        ),
        tool(
            "fetch",
            "Fetches a web page by its address.",
            json!({ "properties": { "url": { "type": "string", "format": "uri" } }, "required": ["url"] }),
        ),
        tool(
            "web_search",
            "Searches the web.",
            json!({ "properties": { "query": { "type": "string", "description": "What to look for" } }, "required": ["query"] }),
        ),
        tool("clock", "Tells the current time and date.", json!({ "type": "object" })),
        tool(
            "dice",
            "Rolls dice.",
            json!({ "properties": { "sides": { "type": "integer" } }, "required": ["sides"] }),
        ),
        tool(
            "convert",
            "Converts a temperature between units.",
            json!({ "properties": {
                "degrees": { "type": "number" },
                "unit": { "enum": ["celsius", "fahrenheit"] },
            }, "required": ["degrees", "unit"] }),
        ),
        tool(
            "tag",
            "Sets labels.",
            json!({ "properties": {
                "labels": { "type": "array", "items": { "type": "string" } },
                "force": { "type": "boolean" },
                "count": { "type": "integer" },
            }, "required": ["labels"] }),
        ),
        ToolSpec {
            input_schema: agent_arguments_schema(),
            ..ToolSpec::named("gardener", "Knows about plants and their care.")
        },
    ]
}

/// What it does: a call as `tool {arguments}`, or what it says.
async fn answer(messages: Vec<Message>) -> String {
    let (deltas, received) = listen();
    let returned = Offline.complete(ask(messages, tools()), deltas).await.unwrap();
    let text = returned.text.to_text();
    assert_eq!(received.lock().unwrap().concat(), text, "what is streamed is what is said");
    match returned.calls.first() {
        Some(call) => format!(
            "{} {}",
            call.tool,
            String::from_utf8(holdfast_contract::digest::canonical(call.arguments.value()).unwrap()).unwrap()
        ),
        None => text,
    }
}

#[tokio::test]
async fn sentences_and_commands_become_calls() {
    let table = [
        // Commands: JSON, pairs, quotes, types by schema, a bare text for the only required parameter.
        (r#"/read_file {"path":"a.txt"}"#, r#"read_file {"path":"a.txt"}"#),
        ("/read_file path=a.txt lines=3", r#"read_file {"lines":3,"path":"a.txt"}"#),
        (
            r#"/write_file path=a.txt content="two words""#,
            r#"write_file {"content":"two words","path":"a.txt"}"#,
        ),
        ("/tag labels=red,blue force=yes count=2", r#"tag {"count":2,"force":true,"labels":["red","blue"]}"#),
        (r#"/tag labels=["red"] force=off"#, r#"tag {"force":false,"labels":["red"]}"#),
        ("/clock", "clock {}"),
        ("/web_search rust agent runtimes", r#"web_search {"query":"rust agent runtimes"}"#),
        (r#"/web_search "a = b""#, r#"web_search {"query":"a = b"}"#),
        ("/dice 20", r#"dice {"sides":20}"#),
        ("/convert degrees=36.6 unit=celsius", r#"convert {"degrees":36.6,"unit":"celsius"}"#),
        // Sentences: paths, addresses, numbers, words of an enum, quotes, the rest of the sentence.
        ("Please read the file notes/today.md.", r#"read_file {"path":"notes/today.md"}"#),
        ("read ./Cargo.toml", r#"read_file {"path":"./Cargo.toml"}"#),
        ("Read the file \"my notes.txt\"", r#"read_file {"path":"my notes.txt"}"#),
        (
            r#"write "hello there" to the file out.txt"#,
            r#"write_file {"content":"hello there","path":"out.txt"}"#,
        ),
        ("fetch https://example.com/a?b=1", r#"fetch {"url":"https://example.com/a?b=1"}"#),
        ("search the web for durable agents", r#"web_search {"query":"durable agents"}"#),
        ("tell me the current time", "clock {}"),
        ("roll a dice with 6 sides", r#"dice {"sides":6}"#),
        ("convert 21.5 degrees to Fahrenheit", r#"convert {"degrees":21.5,"unit":"fahrenheit"}"#),
        ("gardener, how often do roses want water?", r#"gardener {"task":"how often do roses want water?"}"#),
    ];
    for (said, expected) in table {
        assert_eq!(answer(vec![user(said)]).await, expected, "{said}");
    }
}

#[tokio::test]
async fn what_does_not_fit_is_answered_plainly() {
    let table = [
        ("hello", "No tool fits that clearly. These are the tools:"),
        ("Why is the sky blue?", "No tool fits"),
        ("What time is it?", "No tool fits"),
        (
            "read the file",
            "`read_file` seems to fit, but I do not see what `path` shall be. Call it with `/read_file path=…`.",
        ),
        ("roll a dice", "do not see what `sides` shall be"),
        ("convert 20 degrees to kelvin", "do not see what `unit` shall be"),
        ("/read_fil path=a", "There is no tool `read_fil`. Did you mean `/read_file`?"),
        ("/write_file path=a.txt", "`content` is missing. Call it with `/write_file path=… content=…`."),
        ("/tag {\"labels\":", "The arguments are not a JSON object"),
        ("/write_file a.txt", "`a.txt` is not `key=value`."),
    ];
    for (said, expected) in table {
        let answer = answer(vec![user(said)]).await;
        assert!(answer.contains(expected), "{said}: {answer}");
    }
}

#[tokio::test]
async fn results_are_reported_and_failures_too() {
    let asked = || vec![user("read a.txt"), calls(&[("call-1", "read_file", json!({ "path": "a.txt" }))])];
    let done = [asked(), vec![result("call-1", "forty-two", false)]].concat();
    let said = answer(done).await;
    assert!(said.starts_with("I called `read_file path=\"a.txt\"`. It answered:\n\nforty-two"), "{said}");
    let denied = [asked(), vec![result("call-1", "error HF-3103: not here", true)]].concat();
    let said = answer(denied).await;
    assert!(
        said.starts_with("I called `read_file path=\"a.txt\"`. It failed: error HF-3103: not here"),
        "{said}"
    );
}

#[tokio::test]
async fn structured_results_are_lists_and_not_json() {
    let rows: Vec<Value> =
        (0..25).map(|n| json!({ "path": format!("f{n}"), "kind": "file", "bytes": n })).collect();
    let value = json!({ "entries": rows, "truncated": false, "none": [] });
    let mut returned = result("call-1", "", false);
    if let Message::Tool { content, .. } = &mut returned {
        *content = Content::new(value);
    }
    let said =
        answer(vec![user("list the files"), calls(&[("call-1", "read_file", json!({}))]), returned]).await;
    assert!(
        said.contains("\n\nentries:\n- f0 (bytes: 0, kind: file)\n- f1 (bytes: 1, kind: file)\n"),
        "{said}"
    );
    assert!(
        said.contains("- f19 (bytes: 19, kind: file)\n- … and 5 more\nnone: []\ntruncated: false"),
        "{said}"
    );
}

#[tokio::test]
async fn the_way_to_a_language_model_is_shown_once() {
    let first = answer(vec![user("hello")]).await;
    assert!(first.ends_with(HINT));
    let second = answer(vec![user("hello"), says(&first), user("hello again")]).await;
    assert!(!second.contains(HINT), "{second}");
}

#[tokio::test]
async fn the_same_conversation_gets_the_same_answer() {
    let conversation = || vec![user("hello"), says("hm"), user("tell me the current date")];
    assert_eq!(answer(conversation()).await, answer(conversation()).await);
}

#[test]
fn stop_words_are_found_in_any_case() {
    assert!(is_stop_word("The") && !is_stop_word("rose"));
}
