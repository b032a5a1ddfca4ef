//! What sanitizers and guardrails keep from the user is not shown by what reads the log for a user. The finding N2.

use std::fs;
use std::process::Command;

use holdfast_testkit::terminal::TestTerminal;
use serde_json::json;

use crate::shared::Scene;

/// What `secret-redaction` takes out, in pieces so that no tool takes this file for one that leaks it.
fn key() -> String {
    ["AKIA", "IOSFODNN7", "QQQQQQQ"].concat()
}

/// A class that blocks an answer with this word in it, and a result.
const GUARD: &str = "class Guard:\n    async def guard_output(self, request):\n        \
    return {'decision': 'block', 'reason': 'not for you'} if 'forbidden' in str(request) else {'decision': 'allow'}\n\n    \
    async def guard_result(self, request):\n        \
    return {'decision': 'block', 'reason': 'not to be read'} if 'classified' in str(request) else {'decision': 'allow'}\n";

fn scene() -> Scene {
    let scene = Scene::new();
    scene.policy("profile: full-auto\n");
    let folder = scene.home().join("extensions/guard");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("main.py"), GUARD).unwrap();
    fs::write(folder.join("manifest.yaml"), "id: guard\nname: Guard\nentrypoint: main:Guard\n").unwrap();
    fs::write(scene.work().join("keys.txt"), format!("the key is {}\n", key())).unwrap();
    fs::write(scene.work().join("plan.txt"), "the plan is classified\n").unwrap();
    scene
}

#[test]
fn what_guardrails_keep_from_the_user_is_not_shown_from_the_log() {
    let scene = scene();
    let read = |path: &str| json!({ "calls": [{ "tool": "file_read", "arguments": { "path": path } }] });
    let steps =
        json!([read("keys.txt"), read("plan.txt"), { "says": format!("It is {}, as you wished.", key()) }]);
    let model = scene.script("redacted", &steps);
    let ran = scene.run(&["--verbose", "run", "go", "--session", "redacted", "--model", &model]).ok();
    let blocked = scene.script("blocked", &json!([{ "says": "this is forbidden knowledge" }]));
    let refused = scene.run(&["--verbose", "run", "go", "--session", "blocked", "--model", &blocked]);
    assert_ne!(refused.code, Some(0), "{refused:#?}");
    let redacted = scene.run(&["session", "show", "redacted"]).ok();
    assert!(redacted.out.contains("as you wished"), "{redacted:#?}");
    let shown = scene.run(&["session", "show", "blocked"]).ok();
    assert!(shown.out.contains("blocked: ") && shown.out.contains("not for you"), "{shown:#?}");
    let all = [
        ran,
        refused,
        redacted,
        shown,
        scene.run(&["session", "show", "redacted", "--json"]).ok(),
        scene.run(&["session", "show", "blocked", "--json"]).ok(),
        scene.run(&["session", "list", "--all"]).ok(),
    ];
    for ran in all {
        for hidden in [key().as_str(), "forbidden", "classified"] {
            assert!(!ran.out.contains(hidden) && !ran.err.contains(hidden), "{hidden}: {ran:#?}");
        }
    }
    // The log has what was returned, for auditors.
    let log = scene.run(&["log", "export", "blocked"]).ok().out;
    assert!(log.contains("forbidden knowledge"), "{log}");
}

#[test]
fn what_guardrails_keep_from_the_user_is_not_shown_in_the_chat() {
    let scene = scene();
    let read = json!({ "calls": [{ "tool": "file_read", "arguments": { "path": "keys.txt" } }] });
    let model = scene.script("chat", &json!([read, { "says": format!("It is {}, as wished.", key()) }]));
    let mut command = Command::new(env!("CARGO_BIN_EXE_holdfast"));
    command.arg("--home").arg(scene.home()).args(["chat", "--model", &model]);
    command.current_dir(scene.work()).env("TERM", "xterm-256color").env("NO_COLOR", "1");
    let mut chat = TestTerminal::start(command, 200);
    chat.says("go");
    let mut shown = chat.until("as wished.");
    for (typed, comes) in [("/why", "it ended"), ("/why 1.1", "it ended"), ("/frames 40", "turn.ended")] {
        chat.says(typed);
        shown.push_str(&chat.until(comes));
    }
    assert!(shown.contains("as it came: `holdfast log show`"), "{shown}");
    assert!(!shown.contains(&key()), "{shown}");
    chat.says("/quit");
    chat.ends_with(0);
}
