//! Sandboxed extensions as a user meets them: a folder in the home, a grant that is missing, cases of its own, a trial on what was recorded.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::shared::{Scene, TIMEOUT};
use holdfast_bench::{GATE, TOOL};
use holdfast_testkit::wasm::{Gates, gate};
use serde_json::json;

/// Installs an extension, with these further lines in its manifest.
fn install(scene: &Scene, id: &str, component: &[u8], more: &str) -> PathBuf {
    write(&scene.home().join("extensions").join(id), id, component, more)
}

fn write(folder: &Path, id: &str, component: &[u8], more: &str) -> PathBuf {
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join(format!("{id}.wasm")), component).unwrap();
    let manifest = format!("id: {id}\nname: {id}\nentrypoint: {id}.wasm\n{more}");
    fs::write(folder.join("manifest.yaml"), manifest).unwrap();
    folder.to_owned()
}

/// A component that imports `ui`.
fn asks_the_user() -> Vec<u8> {
    let text = include_str!("../../../../tests/hostile/wasm/import-ungranted-ui.wat");
    wat::parse_str(text).unwrap()
}

#[test]
fn a_folder_in_the_home_is_a_tool() {
    let scene = Scene::new();
    install(&scene, "answer", TOOL, "");
    let listed = scene.run(&["ext", "list", "--json"]).ok();
    let answer = listed.lines().into_iter().find(|line| line["id"] == "answer").unwrap();
    assert_eq!((&answer["state"], &answer["lane"]), (&"ACTIVE".into(), &"wasm".into()), "{answer}");
    let called = scene.run(&["call", "bench_answer", "--json"]).ok().json();
    assert_eq!(called["result"], "here", "{called}");
    let session = called["session"].as_str().unwrap();
    let verdict = scene.run(&["replay", session, "--json"]).ok().json();
    assert_eq!(
        (&verdict["identical"], &verdict["mocked"]),
        (&true.into(), &serde_json::json!([])),
        "{verdict}"
    );
    scene.verifies();
}

#[test]
fn setup_asks_for_what_is_missing_and_keeps_it_out_of_sight() {
    let scene = Scene::new();
    install(&scene, "answer", TOOL, "secrets: [SEARCH_KEY]\nsetup_instructions: A key is needed.\n");
    scene.run(&["setup", "nobody"]).fails(1, "HF-4005");
    assert!(scene.run(&["setup", "kv"]).ok().err.contains("kv asks for nothing"));
    let open = scene.run(&["setup", "answer"]);
    assert_eq!(open.code, Some(1), "{}", open.err);
    assert!(
        open.err.contains("A key is needed.") && open.err.contains("missing: SEARCH_KEY"),
        "{}",
        open.err
    );
    scene.run(&["setup", "answer", "--set", "SEARCH_KEY=x"]).fails(2, "HF-9001");
    scene.run(&["setup", "answer", "--set", "colour=red"]).fails(2, "HF-9001");
    let done =
        scene.run_with(&["setup", "answer", "--secret", "SEARCH_KEY", "--json"], b"canary-5512-kq9v\n").ok();
    assert_eq!(done.json()["complete"], true);
    for (path, bytes) in crate::shared::tree(&scene.home()) {
        assert!(!crate::shared::contains(&bytes, "canary-5512-kq9v"), "{}", path.display());
    }
    scene.run(&["setup", "answer"]).ok();
    scene.verifies();
}

#[test]
fn one_that_is_broken_says_why_and_stops_nobody() {
    let scene = Scene::new();
    install(&scene, "answer", TOOL, "");
    install(&scene, "half", &TOOL[..TOOL.len() / 2], "");
    install(&scene, "other", TOOL, "id: another\n");
    fs::create_dir_all(scene.home().join("extensions/misnamed")).unwrap();
    fs::write(scene.home().join("extensions/misnamed/manifest.yml"), "id: misnamed\n").unwrap();
    let listed = scene.run(&["ext", "list", "--json"]).ok();
    for (id, code) in [("half", "HF-4101"), ("other", "HF-1007"), ("misnamed", "HF-1001")] {
        let line = listed.lines().into_iter().find(|line| line["id"] == id).unwrap();
        assert_eq!(line["state"], "ERROR", "{line}");
        assert!(line["fault"].as_str().unwrap().contains(code), "{line}");
    }
    assert_eq!(scene.run(&["call", "bench_answer", "--json"]).ok().json()["result"], "here");
}

#[test]
fn what_was_not_granted_is_named_and_a_grant_holds_for_this_content_only() {
    let scene = Scene::new();
    let folder = install(&scene, "curious", &asks_the_user(), "grants: { interfaces: [ui] }\n");
    let refused = scene.run(&["ext", "check", "curious"]).fails(1, "HF-4103");
    assert!(refused.err.contains("holdfast ext grant curious --interface ui"), "{}", refused.err);
    scene.run(&["ext", "grant", "curious", "--interface", "network"]).fails(2, "HF-9001");
    scene.run(&["ext", "grant", "curious", "--interface", "ui"]).ok();
    let listed = scene.run(&["ext", "list", "--json"]).ok();
    assert!(listed.lines().iter().any(|line| line["id"] == "curious" && line["state"] == "ACTIVE"));

    let manifest = fs::read_to_string(folder.join("manifest.yaml")).unwrap();
    fs::write(folder.join("manifest.yaml"), format!("{manifest}description: now I am another\n")).unwrap();
    scene.run(&["ext", "check", "curious"]).fails(1, "HF-4103");

    scene.run(&["ext", "grant", "curious", "--folder"]).ok();
    fs::write(folder.join("manifest.yaml"), manifest).unwrap();
    scene.run(&["ext", "check", "curious"]).ok();
    scene.run(&["ext", "revoke", "curious"]).ok();
    scene.run(&["ext", "check", "curious"]).fails(1, "HF-4103");
    scene.run(&["ext", "revoke", "curious"]).fails(2, "HF-9001");
}

#[test]
fn cases_pass_and_fail() {
    let scene = Scene::new();
    let folder = install(&scene, "answer", TOOL, "");
    fs::write(
        folder.join("tests.yaml"),
        "- tool: bench_answer\n  result: here\n- { name: a part, tool: bench_answer, contains: her }\n",
    )
    .unwrap();
    let passed = scene.run(&["ext", "test", "answer"]).ok();
    assert!(passed.out.contains("2 passed, 0 failed"), "{}", passed.out);
    fs::write(folder.join("tests.yaml"), "- { tool: bench_answer, result: there }\n").unwrap();
    let failed = scene.run(&["ext", "test", "answer"]);
    assert_eq!(failed.code, Some(1), "{}", failed.err);
    assert!(failed.out.contains("expected \"there\"") && failed.out.contains("actual   \"here\""));
    fs::write(folder.join("tests.yaml"), "- { tool: bench_answer }\n- { hook: nowhere, decision: allow }\n")
        .unwrap();
    let wrong = scene.run(&["ext", "test", "answer"]).fails(2, "HF-9001");
    assert!(wrong.err.contains("tests.yaml:2"), "{}", wrong.err);
}

#[test]
fn another_build_and_another_policy_are_tried_on_what_was_recorded() {
    let scene = Scene::new();
    install(&scene, "answer", TOOL, "");
    install(&scene, "guard", GATE, "");
    scene.run(&["call", "bench_answer", "--json"]).ok();
    let elsewhere = scene.root().join("builds/guard");
    write(&elsewhere, "guard", &gate(&Gates::AllowsTimes(0), false), "");
    let same = scene.run(&["replay", "--with", "guard"]).ok();
    assert!(same.out.contains("1 same, 0 different, 0 cannot tell"), "{}", same.out);
    let stricter = scene.run(&["replay", "--with", elsewhere.to_str().unwrap()]).ok();
    assert!(stricter.out.contains("it was asked too often"), "{}", stricter.out);
    assert!(stricter.out.contains("0 same, 1 different, 0 cannot tell"), "{}", stricter.out);

    let unknown = scene.root().join("builds/clocked");
    write(&unknown, "clocked", &gate(&Gates::Allows, true), "");
    let new = scene.run(&["replay", "--with", unknown.to_str().unwrap()]).ok();
    assert!(new.out.contains("0 same, 0 different, 1 cannot tell"), "{}", new.out);

    let policy = scene.root().join("policy.yaml");
    fs::write(&policy, "rules:\n  - { name: no, decision: deny, match: { tools: [bench_answer] } }\n")
        .unwrap();
    let denied = scene.run(&["replay", "--with", policy.to_str().unwrap()]).ok();
    assert!(denied.out.contains("1 different"), "{}", denied.out);
}

/// The manifest that the documentation has of an agent without any code.
fn documented_agent() -> String {
    let page = include_str!("../../../../docs/extensions/README.md");
    let section = page.split_once("## No code at all").unwrap().1;
    let block = section.lines().skip_while(|line| !line.starts_with("    "));
    let lines = block.take_while(|line| line.starts_with("    ")).map(|line| &line[4..]);
    lines.map(|line| format!("{line}\n")).collect()
}

#[test]
fn the_documented_agent_without_code_is_live_and_answers() {
    let scene = Scene::new();
    let model = scene.script("summary", &json!([{ "says": "It was 3 of them." }]));
    let file = model.strip_prefix("script:").unwrap();
    let models = format!("models: {{ default: main, main: {{ provider: script, file: {file} }} }}\n");
    scene.settings(&models);
    let manifest = documented_agent();
    assert!(manifest.contains("id: summarist") && manifest.contains("instructions: "), "{manifest}");
    let folder = scene.home().join("extensions/summarist");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("manifest.yaml"), &manifest).unwrap();

    assert!(scene.run(&["ext", "check", "summarist"]).ok().out.contains("it would load"));
    let shown = scene.run(&["ext", "show", "summarist"]).ok().out;
    assert!(shown.contains("ACTIVE") && shown.contains("declarative"), "{shown}");
    let agents = scene.run(&["agents", "--json"]).ok().lines();
    assert!(agents.iter().any(|agent| agent["id"] == "summarist" && agent["mode"] == "tool"), "{agents:?}");
    fs::write(
        folder.join("manifest.yaml"),
        manifest.replace("agent:\n", "agent:\n  integration_mode: handoff\n"),
    )
    .unwrap();
    let table = scene.run(&["agents"]).ok().out;
    let line = table.lines().find(|line| line.starts_with("summarist")).unwrap();
    assert!(table.contains("mode") && line.contains(" handoff "), "{table}");
    fs::write(folder.join("manifest.yaml"), &manifest).unwrap();
    // As a tool.
    let called = scene.run(&["call", "summarist", r#"{"task": "one, two, three"}"#, "--json"]).ok().json();
    assert_eq!(called["result"], "It was 3 of them.", "{called}");
    // As an agent for a task.
    let task = r#"{"prompt": "one, two, three", "agent": "summarist"}"#;
    let event = scene.run(&["bus", "publish", "system.agent.background", task]).ok().out;
    let session = format!("task.{}", event.trim().replace('/', "-"));
    let deadline = Instant::now() + TIMEOUT;
    loop {
        // A command that owns the home for a moment continues pending deliveries.
        scene.run(&["bus", "status"]).ok();
        let frames = scene.run(&["log", "export", &session]);
        let ended = frames.code == Some(0) && frames.out.contains("\"turn.ended\"");
        if ended {
            assert!(frames.out.contains("It was 3 of them.") && frames.out.contains("Keep every number."));
            break;
        }
        assert!(Instant::now() < deadline, "{frames:#?}");
    }
    scene.verifies();
}

#[test]
fn a_limit_is_named_by_where_it_is_set() {
    let scene = Scene::new();
    let list = json!({ "calls": [{ "tool": "file_list", "arguments": {} }] });
    let twice = scene.script("twice", &json!([list, list, { "says": "done" }]));
    let ended = |session: &str, settings: &str, policy: &str| {
        scene.settings(&format!("models: {{ default: offline }}\n{settings}"));
        scene.policy(policy);
        scene.run(&["run", "go", "--model", &twice, "--session", session]).fails(1, "HF-3003").err
    };
    let (global, main) = ("limits: { max_turns: 1 }\n", "agents: { main: { limits: { max_turns: 1 } } }\n");
    for (session, settings, policy, place) in [
        ("a", global, "profile: full-auto\n", "(`limits.max_turns` in the settings)"),
        ("b", main, "profile: full-auto\n", "(`agents.main.limits.max_turns` in the settings)"),
        (
            "c",
            "",
            "profile: full-auto\ncaps: { session: { tool_calls: 1 } }\n",
            "(`caps.session.tool_calls` in the policy)",
        ),
    ] {
        let told = ended(session, settings, policy);
        assert!(told.contains(place), "{place}: {told}");
    }

    scene.policy("profile: full-auto\n");
    let folder = scene.home().join("extensions/hasty");
    fs::create_dir_all(&folder).unwrap();
    let file = twice.strip_prefix("script:").unwrap();
    scene.settings(&format!("models: {{ default: main, main: {{ provider: script, file: {file} }} }}\n"));
    let manifest = "id: hasty\nname: Hasty\ndescription: Has no time.\nagent:\n  instructions: Hurry.\n  uses_tools: [core_tools]\n  limits: { max_turns: 1 }\n";
    fs::write(folder.join("manifest.yaml"), manifest).unwrap();
    let told = scene.run(&["call", "hasty", r#"{"task": "hurry"}"#]).fails(1, "HF-3003").err;
    assert!(told.contains("(`agent.limits.max_turns` in the manifest of `hasty`)"), "{told}");
}

// Findings B16 and B17.
/// What loads and cannot work is found by `ext check`; a single file can be tested.
#[test]
fn check_finds_what_cannot_work_and_a_single_file_has_tests() {
    let scene = Scene::new();
    let folder = scene.home().join("extensions/dreamer");
    fs::create_dir_all(&folder).unwrap();
    let manifest = "id: dreamer\nname: Dreamer\nversion: 1.0.0\ndepends_on: [nosuch]\nagent:\n  model: bigg\n  \
                    instructions: Dream.\n  uses_tools: [nobody]\n";
    fs::write(folder.join("manifest.yaml"), manifest).unwrap();
    scene.settings("models: { default: small, small: { provider: offline } }\n");
    let checked = scene.run(&["ext", "check", "dreamer"]);
    assert_eq!(checked.code, Some(1), "{checked:#?}");
    for named in ["`nosuch`", "`bigg`", "`nobody`"] {
        assert!(checked.err.contains(named), "{named}: {checked:#?}");
    }
    assert!(!checked.out.contains("it would load"), "{checked:#?}");
    // Finding B16: a schedule that nothing runs, and a type that no schema has.
    let timer = scene.home().join("extensions/timer");
    fs::create_dir_all(&timer).unwrap();
    let manifest = "id: timer\nname: Timer\nentrypoint: main:Timer\nschedules:\n  - { name: daily, cron: '0 9 * * *', task: tell }\n";
    fs::write(timer.join("manifest.yaml"), manifest).unwrap();
    let code = "class Timer:\n    def get_tools(self):\n        def tell(**all):\n            return 'x'\n        \
                schema = {'type': 'object', 'properties': {'a': {'type': 'strng'}}}\n        \
                return [{'name': 'tell', 'description': 'x', 'input_schema': schema, 'function': tell}]\n";
    fs::write(timer.join("main.py"), code).unwrap();
    let checked = scene.run(&["ext", "check", "timer"]).fails(1, "HF-1007");
    for named in ["`daily` has nothing to call", "strng"] {
        assert!(checked.err.contains(named), "{named}: {checked:#?}");
    }
    let tools = scene.home().join("extensions/tools");
    fs::create_dir_all(&tools).unwrap();
    fs::write(tools.join("words.py"), "__effects__ = \"pure\"\ndef run(text: str) -> int:\n    \"\"\"Count.\"\"\"\n    return len(text.split())\n").unwrap();
    let untested = scene.run(&["ext", "test", "words"]);
    assert!(untested.err.contains("words.tests.yaml"), "{untested:#?}");
}
