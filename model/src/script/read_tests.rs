//! What a script says, and what is said about one that cannot be used.

use std::path::Path;

use holdfast_contract::message::Usage;
use serde_json::json;

use super::{Script, Step};

fn steps(text: &str) -> Vec<Step> {
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
        Step::says("Hello there"),
        Step::calls([("read", json!({ "path": "notes.txt", "lines": 3 })), ("clock", json!({}))]),
        Step::Fails { times: 2, retryable: false, then: Box::new(Step::says("at last")) },
        Step::Hangs,
        Step::Stalls("I was about to".to_owned()),
        Step::Reasons(
            "Five times six.".to_owned(),
            Box::new(Step::Costs(usage, Box::new(Step::says("Thirty.")))),
        ),
    ];
    assert_eq!(steps(text), expected);
}

#[test]
fn a_script_that_cannot_be_used_says_where_and_what_to_do() {
    let table = [
        ("- syas: hello\n", "demo.yaml:1:3", "does nothing"),
        ("- says: a\n- says: b\n  calls: [{tool: x}]\n", "demo.yaml:2:3", "one thing"),
        ("- sleeps\n", "demo.yaml:1:3", "`sleeps` is no step"),
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
