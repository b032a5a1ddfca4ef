//! What a script says, and what is said about one that cannot be used.

use std::path::Path;

use holdfast_contract::message::Usage;
use serde_json::json;

use super::{Script, ScriptStep};

fn steps(text: &str) -> Vec<ScriptStep> {
    Script::parse(Path::new("demo.yaml"), text).unwrap_or_else(|problems| panic!("{problems:#?}")).steps
}

#[test]
fn every_step_can_be_written() {
    let text = r#"
- says: Hello there
- calls:
    - tool: read
      arguments: { path: notes.txt, lines: 3 }
    - tool: clock
- fails: { times: 2, retryable: false, then: { says: at last } }
- hangs
- stalls: I was about to
- says: Thirty.
  reasoning: Five times six.
  usage: { input_tokens: 12, output_tokens: 3, cost_micros: 40 }
"#;
    let usage = Usage { input_tokens: 12, output_tokens: 3, cost_micros: 40 };
    let expected = vec![
        ScriptStep::says("Hello there"),
        ScriptStep::calls([("read", json!({ "path": "notes.txt", "lines": 3 })), ("clock", json!({}))]),
        ScriptStep::Fails { times: 2, retryable: false, then: Box::new(ScriptStep::says("at last")) },
        ScriptStep::Hangs,
        ScriptStep::Stalls("I was about to".to_owned()),
        ScriptStep::Reasons(
            "Five times six.".to_owned(),
            Box::new(ScriptStep::Costs(usage, Box::new(ScriptStep::says("Thirty.")))),
        ),
    ];
    assert_eq!(steps(text), expected);
}

#[test]
fn a_script_that_cannot_be_used_says_where_and_what_to_do() {
    let table = [
        ("- syas: hello\n", "demo.yaml:1:3", "does nothing"),
        ("- says: a\n- says: b\n  calls: [{tool: x}]\n", "demo.yaml:2:3", "one thing"),
        ("- sleeps\n", "demo.yaml:1:3", "`sleeps` is not a step"),
        ("- calls:\n    - arguments: {}\n", "demo.yaml:2:7", "tool"),
        ("- says: a\n- fails: { times: many }\n", "demo.yaml:2:19", "times"),
        ("- says: a\n  mood: glad\n", "demo.yaml:2:3", "mood"),
        ("- says: [\n", "demo.yaml:", "HF-5010"),
        ("", "demo.yaml", "empty"),
        ("says: hello\n", "demo.yaml:1:1", "list"),
    ];
    for (text, place, what) in table {
        let problems = Script::parse(Path::new("demo.yaml"), text).map(|_| ()).unwrap_err();
        let said: Vec<String> = problems.iter().map(ToString::to_string).collect();
        let said = said.join("\n");
        assert!(said.contains(place), "{text:?}: {place} is not in\n{said}");
        assert!(said.contains(what), "{text:?}: {what} is not in\n{said}");
        assert!(said.contains("error[HF-5010]") && said.contains("help: "), "{said}");
    }
}

#[test]
fn a_script_that_is_not_there_says_so() {
    let problems = Script::read(Path::new("/nowhere/demo.yaml")).map(|_| ()).unwrap_err();
    let said = problems[0].to_string();
    assert!(said.contains("/nowhere/demo.yaml") && said.contains("HF-5010"), "{said}");
}

#[test]
fn a_file_that_is_no_script_is_named_without_its_content() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("app.env");
    for text in [
        "DB_PASSWORD=hunter2 STRIPE=sk_live\n",
        "DB_PASSWORD=hunter2\nSTRIPE=sk_live\n",
        "password: hunter2\n",
        "- hunter2\n",
        "- says: [hunter2]\n",
        "- hunter2: sk_live\n",
        "- says: a\n  hunter2: sk_live\n",
        "- calls: [{tool: hunter2 sk_live}]\n",
        "- calls: [{tool: x, arguments: {hunter2: .inf}}]\n",
        "- fails: {times: hunter2}\n",
        "- !hunter2 says: a\n",
        "- says: *hunter2\n",
        "- hunter2: 1\n  hunter2: 2\n",
        "{hunter2\n",
        "hunter2\n---\nhunter2\n",
    ] {
        std::fs::write(&file, text).unwrap();
        let problems = Script::read(&file).map(|_| ()).unwrap_err();
        let said: Vec<String> = problems.iter().map(ToString::to_string).collect();
        let said = said.join("\n");
        assert!(!said.contains("hunter2") && !said.contains("sk_live"), "{text:?}:\n{said}");
        assert!(said.contains("app.env:1:") || said.contains("app.env:2:"), "{text:?}:\n{said}");
        assert!(said.contains("error[HF-5010]") && said.contains("help: "), "{said}");
    }
    std::fs::write(&file, "- says: a\n- fails: { times: many }\n").unwrap();
    let said = Script::read(&file).map(|_| ()).unwrap_err()[0].to_string();
    assert!(said.contains("app.env:2:19 ([1].fails.times)"), "{said}");
}
