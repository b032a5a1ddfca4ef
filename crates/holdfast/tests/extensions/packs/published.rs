//! Packs as their authors publish them, from the registry by settings alone, in a fresh home.

use serde_json::json;

use super::call;
use crate::shared::{Scene, bodies};

fn home_with(packs: &serde_json::Value, profile: &str) -> Scene {
    let scene = Scene::new();
    scene.policy(&format!("profile: {profile}\n"));
    scene.settings(&json!({ "models": { "default": "offline" }, "packs": packs }).to_string());
    scene
}

#[test]
fn the_tools_of_the_cli_executor_are_listed_and_called_and_ask() {
    let packs = json!([{ "package": "@framers/agentos-ext-cli-executor", "version": "1.2.0" }]);
    let scene = home_with(&packs, "full-auto");
    let listed = scene.run(&["tools", "--json"]).ok().out;
    for tool in ["shell_execute", "list_directory", "cli-executor__file_read"] {
        assert!(listed.contains(tool), "{tool}: {listed}");
    }
    assert!(listed.contains("command"), "the tools have schemas: {listed}");
    let ran = call(&scene, "shell_execute", &json!({ "command": "echo from the shell" }));
    assert!(ran["result"].to_string().contains("from the shell"), "{ran}");
    // A call has side effects, and is asked about where the profile asks.
    scene.policy("profile: standard\n");
    let steps = json!([
        { "calls": [{ "tool": "shell_execute", "arguments": { "command": "echo asked" } }] }, { "says": "done" },
    ]);
    scene.turn("talk", &steps);
    let frames = scene.frames("talk");
    assert_eq!(bodies(&frames, "approval.requested").len(), 1, "{frames:#?}");
}

#[test]
fn the_pii_guardrail_sanitises_what_a_model_reads_and_says() {
    let packs = json!([{ "package": "@framers/agentos-ext-pii-redaction", "version": "0.2.1" }]);
    let scene = home_with(&packs, "full-auto");
    scene.turn("talk", &json!([{ "says": "SSN 078-05-1120" }])).ok();
    let frames = scene.frames("talk");
    let decided = json!(bodies(&frames, "hook.decided")).to_string();
    assert!(decided.contains("[SSN]"), "{decided}");
    let shown = json!(bodies(&frames, "turn.ended")).to_string();
    assert!(shown.contains("[SSN]") && !shown.contains("078-05-1120"), "{shown}");
    scene.run(&["replay", "talk"]).ok();
    scene.verifies();
}
