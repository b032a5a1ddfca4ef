//! Agents in code, and what the context of a class has for them; services that a class owns; what a single file declares in its head.

use std::fs;

use crate::classes::{call, notes, notes_have, refused, scene};
use crate::shared::{Owner, Scene, bodies, until};
use serde_json::{Value, json};

/// A home with the clerk, whose agents use a script as their model.
fn office(profile: &str, steps: &Value) -> Scene {
    let scene = scene(&["clerk", "teller"]);
    let model = scene.script("office", steps);
    scene.settings(&format!(
        "models: {{ default: '{model}' }}\nagents: {{ bookkeeper: {{ model: offline }} }}\n"
    ));
    scene.policy(&format!("profile: {profile}\n"));
    scene
}

/// Publishes a task for an agent in the background, and names its session.
fn task(scene: &Scene, prompt: &str, agent: &str) -> String {
    let task = json!({ "prompt": prompt, "agent": agent }).to_string();
    let event = scene.run(&["bus", "publish", "system.agent.background", &task]).ok().out;
    format!("task.{}", event.trim().replace('/', "-"))
}

fn replays(scene: &Scene, session: &str) {
    let replay = scene.run(&["replay", session]).ok();
    assert!(replay.out.contains("all identical"), "{replay:#?}");
}

#[test]
fn an_agent_in_code_is_an_agent() {
    let says = |task: &str| json!({ "calls": [{ "tool": "clerk_agent", "arguments": { "task": task } }] });
    let steps = json!([says("books"), says("store"), { "says": "done" }]);
    let scene = office("standard", &json!([]));
    let listed = scene.run(&["agents", "--json"]).ok().out;
    assert!(listed.contains("bookkeeper") && listed.contains("Keeps the books."), "{listed}");
    // It is asked without an approval: it asks for no grants, and what its tools do is judged by itself.
    let ran = scene.turn("s", &steps);
    let frames = scene.frames("s");
    let children: Vec<Value> = bodies(&frames, "child.opened").into_iter().cloned().collect();
    assert_eq!(children.len(), 2, "{ran:#?} {frames:#?}");
    assert_eq!(children[0]["agent"], "bookkeeper");
    assert_eq!(children[0]["limits"]["max_turns"], 2, "those of its manifest");
    assert!(bodies(&frames, "approval.requested").is_empty());
    let child = scene.frames(children[0]["child"].as_str().unwrap());
    assert_eq!(bodies(&child, "model.requested")[0]["model"], "agent:clerk");
    let answer = &bodies(&child, "model.returned")[0]["text"]["json"];
    assert_eq!(answer["task"], "books");
    assert_eq!(answer["turn"], "bookkeeper");
    let context = &answer["context"];
    assert_eq!(context["agent_id"], "bookkeeper");
    assert_eq!(context["session_id"], children[0]["child"]);
    assert_eq!(context["channel_id"], "run");
    assert_eq!(context["metadata"]["turn"], 1);
    // Its task is the model's; what the user said is in the session above it.
    let received = frames.iter().find(|frame| frame["kind"] == "input.received").unwrap();
    assert_eq!(context["user_message"], received["body"]["text"]["json"]);
    assert_eq!(context["correlation_id"], format!("s/{}", received["seq"]));
    // Its own calls of tools are in its session: one that writes is asked about, and nobody was there to answer.
    let second = scene.frames(children[1]["child"].as_str().unwrap());
    let asked = bodies(&second, "host.called");
    assert!(asked.iter().any(|fact| fact["ask"] == "tool.invoke"), "{second:#?}");
    scene.verifies();
    replays(&scene, "s");
    replays(&scene, children[0]["child"].as_str().unwrap());
}

#[test]
fn an_agent_in_code_is_reached_by_events_and_its_limits_hold() {
    let scene = office("full-auto", &json!([]));
    let _owner = Owner::begin(&scene);
    until("it serves", || scene.run(&["agents"]).out.contains("bookkeeper"));
    let session = task(&scene, "books", "bookkeeper");
    until("it was answered", || scene.run(&["log", "export", &session]).out.contains("\"turn.ended\""));
    let frames = scene.frames(&session);
    let answer = &bodies(&frames, "model.returned")[0]["text"]["json"];
    assert_eq!(answer["context"]["agent_id"], "bookkeeper");
    assert_eq!(answer["context"]["session_id"].as_str(), Some(session.as_str()));
    assert_eq!(answer["context"]["user_message"], "books");
    let event = session.trim_start_matches("task.").replace('-', "/");
    assert_eq!(answer["context"]["correlation_id"].as_str(), Some(event.as_str()), "the event's id");
    // Two model calls are its limit, and the settings say which model it is.
    assert_eq!(call(&scene, "clerk_agent", &json!({ "task": "think 2" })), "offline: 2");
    let third = refused(&scene, "clerk_agent", &json!({ "task": "think 3" }));
    assert!(third.contains("max_turns"), "{third}");
    // What it may take is what the settings say.
    scene.settings(
        "models: { default: offline }\nagents: { bookkeeper: { limits: { time_budget_ms: 1500 } } }\n",
    );
    scene.run(&["down"]).ok();
    let late = refused(&scene, "clerk_agent", &json!({ "task": "sleep" }));
    assert!(late.contains("time_budget_ms"), "{late}");
    scene.verifies();
}

#[test]
fn an_agent_to_whom_a_conversation_is_handed_over_is_told_what_the_user_said() {
    let scene = office("full-auto", &json!([]));
    let manifest = scene.home().join("extensions/clerk/manifest.yaml");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, text.replace("agent:\n", "agent:\n  integration_mode: handoff\n")).unwrap();
    scene.turn(
        "s",
        &json!([{ "calls": [{ "tool": "transfer_to_clerk_agent", "arguments": { "message": "yours" } }] }]),
    );
    let frames = scene.frames("s");
    assert_eq!(bodies(&frames, "agent.changed")[0]["agent"], "bookkeeper", "{frames:#?}");
    let received = frames.iter().find(|frame| frame["kind"] == "input.received").unwrap();
    let answers = bodies(&frames, "model.returned");
    let context = &answers.last().unwrap()["text"]["json"]["context"];
    assert_eq!(context["agent_id"], "bookkeeper");
    assert_eq!(context["session_id"], "s");
    assert_eq!(context["user_message"], received["body"]["text"]["json"]);
    assert_eq!(context["correlation_id"], format!("s/{}", received["seq"]));
    replays(&scene, "s");
    scene.verifies();
}

#[test]
fn the_context_of_an_agent_is_complete() {
    let scene = office("full-auto", &json!([]));
    let facts = call(&scene, "clerk_facts", &json!({}));
    let script = facts["main"].as_str().unwrap().to_owned();
    assert!(script.starts_with("script:"), "{facts}");
    let tools: Vec<&str> = facts["tools"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(tools.contains(&"kv_set") && tools.contains(&"kv_get"), "{facts}");
    assert!(!tools.contains(&"shell") && !tools.contains(&"clerk_agent"), "{facts}");
    assert_eq!(facts["agent"], "bookkeeper");
    assert_eq!(facts["model"], "offline", "the settings come before the manifest");
    assert_eq!(facts["own"], "offline");
    assert_eq!(facts["instructions"], "You are Clerk (clerk) with kv.\n\nBe exact.");
    assert_eq!(facts["schema"], "object");
    // A tool that it has runs; one that it does not have is refused as it would be for a model.
    let stored =
        call(&scene, "clerk_reach", &json!({ "tool": "kv_set", "arguments": { "key": "a", "value": 1 } }));
    assert!(!stored.to_string().contains("HF-"), "{stored}");
    assert_eq!(call(&scene, "kv_get", &json!({ "key": "a" }))["value"], 1);
    let other = call(&scene, "clerk_reach", &json!({ "tool": "shell", "arguments": { "command": "id" } }));
    assert!(other.as_str().unwrap().starts_with("HF-3101"), "{other}");
    let odd = call(&scene, "clerk_reach", &json!({ "tool": "kv_set", "arguments": { "value": 1 } }));
    assert!(odd.as_str().unwrap().starts_with("HF-31"), "the schema is checked: {odd}");
    // A rule of the policy holds for it too.
    scene.policy("profile: full-auto\nrules:\n  - { name: no, decision: deny, match: { tools: [kv_set] }, reason: not today }\n");
    let denied =
        call(&scene, "clerk_reach", &json!({ "tool": "kv_set", "arguments": { "key": "b", "value": 1 } }));
    assert!(denied.as_str().unwrap().contains("not today"), "{denied}");
    scene.verifies();
}

#[test]
fn an_invoked_agent_is_followed_while_it_answers() {
    let steps = json!([
        { "calls": [{ "tool": "kv_set", "arguments": { "key": "a", "value": 1 } }] },
        { "says": "It is written." },
    ]);
    let scene = office("full-auto", &steps);
    let asks = json!([
        { "calls": [{ "tool": "clerk_stream", "arguments": { "prompt": "write" } }] }, { "says": "so be it" },
    ]);
    let ran = scene.turn("s", &asks).ok();
    let frames = scene.frames("s");
    let host = bodies(&frames, "host.called");
    let invoked =
        host.iter().find(|fact| fact["ask"] == "agent.invoke").unwrap_or_else(|| panic!("{ran:#?}"));
    assert!(invoked["outcome"].to_string().contains("It is written."), "{invoked}");
    let result = &bodies(&frames, "tool.returned")[0]["outcome"]["result"]["json"];
    assert_eq!(result["answer"], "It is written.");
    assert_eq!(result["calls"], json!([["kv_set", { "key": "a", "value": 1 }, 0]]), "{result}");
    let chunks: Vec<&str> = result["chunks"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(chunks.concat(), "It is written.");
    scene.verifies();
    replays(&scene, "s");
}

#[test]
fn every_turn_is_watched_in_memory_and_only_agents_answer() {
    let scene = office("full-auto", &json!([{ "says": "Good day." }, { "says": "Good evening." }]));
    let _owner = Owner::begin(&scene);
    until("it serves", || scene.run(&["agents"]).out.contains("bookkeeper"));
    scene.run(&["run", "hello", "--session", "r"]).ok();
    notes_have(&scene, "clerk", "heard hello on run in r for main");
    notes_have(&scene, "clerk", "answered Good day. in r");
    let session = task(&scene, "books", "bookkeeper");
    notes_have(&scene, "clerk", &format!("heard books on task in {session} for bookkeeper"));
    // A notice is nobody's answer, and neither is a tool that is called without a model.
    scene.run(&["call", "kv_set", r#"{"key": "a", "value": 1}"#]).ok();
    scene.run(&["bus", "publish", "system.user.notify", r#"{"text": "a notice"}"#]).ok();
    scene.run(&["run", "bye", "--session", "r"]).ok();
    notes_have(&scene, "clerk", "answered Good evening. in r");
    let notes = notes(&scene, "clerk");
    assert!(!notes.contains("kv_set") && !notes.contains("a notice"), "{notes}");
    assert_eq!(notes.lines().filter(|it| it.starts_with("answered ")).count(), 3, "{notes}");
    let dead = scene.run(&["bus", "dead", "list", "--json"]).out;
    assert!(!dead.contains("agent_response"), "nothing of it is on the bus: {dead}");
    // The log has how many they were. The last one may not have been counted when the home stopped.
    scene.run(&["down"]).ok();
    let system = scene.frames("system");
    let checks =
        bodies(&system, "extension.checked").into_iter().flat_map(|body| body["checks"].as_array().unwrap());
    let counted: u64 = checks.filter(|it| it["id"] == "clerk").filter_map(|it| it["events"].as_u64()).sum();
    assert!(counted == 5 || counted == 6, "{counted}");
}

#[test]
fn a_class_owns_a_service() {
    let scene = office("full-auto", &json!([]));
    let _owner = Owner::begin(&scene);
    until("it serves", || scene.run(&["call", "teller_book", r#"{"line": "x"}"#]).code == Some(0));
    let booked = call(&scene, "teller_book", &json!({ "line": "y" }));
    assert_eq!(booked["report"], json!({ "name": "ledger", "lines": 1 }), "as it was created");
    assert_eq!(booked["lines"], json!(["begin", "x", "x", "y", "y"]), "one object for all");
    let none = refused(&scene, "teller_asks", &json!({ "name": "nothing" }));
    assert!(none.contains("there is no service `nothing`"), "{none}");
}

#[test]
fn a_single_file_declares_what_it_needs_in_its_head() {
    let scene = Scene::new();
    scene.run(&["init"]).ok();
    scene.settings("models: { default: offline }\nextensions: { lookup: { units: imperial } }\n");
    scene.policy("profile: full-auto\n");
    let tool = scene.home().join("extensions/tools/lookup.py");
    fs::create_dir_all(tool.parent().unwrap()).unwrap();
    let code = r#"__effects__ = "network"
__secrets__ = ["LOOKUP_TOKEN"]
__hosts__ = ["api.example.com"]
__settings__ = {"units": "metric", "places": 2}

async def run(name: str) -> list:
    """Looks something up."""
    return [get_setting("units"), get_setting("places"), get_setting("none", 7), bool(get_secret(name)), await get_secret(name) is None]
"#;
    fs::write(&tool, code).unwrap();
    let asks = |name: &str| call(&scene, "lookup", &json!({ "name": name }));
    assert_eq!(asks("LOOKUP_TOKEN"), json!(["imperial", 2, 7, false, true]), "it is not set");
    scene.run_with(&["secret", "set", "LOOKUP_TOKEN"], b"s3cret-lookup-value\n").ok();
    assert_eq!(asks("LOOKUP_TOKEN"), json!(["imperial", 2, 7, false, true]), "it is not granted");
    // What the head asks for is what is granted where nothing is named.
    let granted = scene.run(&["ext", "grant", "lookup"]).ok().out;
    assert!(granted.contains("LOOKUP_TOKEN") && granted.contains("api.example.com"), "{granted}");
    assert_eq!(asks("LOOKUP_TOKEN"), json!(["imperial", 2, 7, true, false]));
    assert_eq!(asks("OTHER_TOKEN"), json!(["imperial", 2, 7, false, true]), "any other is not");
    fs::write(&tool, code.replace(r#"["LOOKUP_TOKEN"]"#, "names()")).unwrap();
    let broken = scene.run(&["ext", "check", "lookup"]);
    assert!(
        broken.err.contains("`__secrets__` cannot be read") && broken.err.contains("line 2"),
        "{broken:#?}"
    );
}

#[test]
fn a_single_channel_connects_with_its_credentials() {
    let scene = Scene::new();
    scene.run(&["init"]).ok();
    scene.settings("models: { default: offline }\n");
    scene.policy("profile: full-auto\n");
    let channel = scene.home().join("extensions/channels/wire.py");
    fs::create_dir_all(channel.parent().unwrap()).unwrap();
    let code = r#"
import asyncio, os

__secrets__ = ["WIRE_TOKEN"]
__settings__ = {"nick": "bot"}

async def connect():
    token = await get_secret("WIRE_TOKEN")
    if token is None:
        raise RuntimeError("no credentials")
    with open(os.path.expanduser("~/connected"), "w") as file:
        file.write(f"{get_setting('nick')} {len(token)}")

async def recv():
    await asyncio.Event().wait()

async def send(message):
    pass
"#;
    fs::write(&channel, code).unwrap();
    scene.run_with(&["secret", "set", "WIRE_TOKEN"], b"0123456789abcdef\n").ok();
    scene.run(&["ext", "grant", "wire"]).ok();
    let _owner = Owner::begin(&scene);
    let written = scene.home().join("data/wire/connected");
    until("it has connected", || fs::read_to_string(&written).is_ok_and(|text| text == "bot 16"));
}
