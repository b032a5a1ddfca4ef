//! MCP servers as extensions: published ones, changed definitions, servers that are slow or dead, and replay without them. Hostile
//! servers are in `hostile.rs`.

mod conformance;
mod hostile;
mod published;

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::shared::{Owner, Scene, bodies, until};

/// The folder of the server that the tests bring along.
fn own_server() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/extensions/mcp")
}

/// The settings of that server in one of its modes.
fn mode(mode: &str) -> Value {
    let folder = own_server();
    let script = folder.join("server.py").display().to_string();
    json!({ "command": "python3", "args": [script, mode], "files": [folder], "start_timeout_ms": 30_000 })
}

/// A home with these servers, in which nobody is asked.
fn home_with(servers: &Value) -> Scene {
    let scene = Scene::new();
    scene.policy("profile: full-auto\n");
    scene.settings(&json!({ "models": { "default": "offline" }, "mcp": { "servers": servers } }).to_string());
    scene
}

fn echo(scene: &Scene, server: &str, text: &str) -> crate::shared::Ran {
    let arguments = json!({ "text": text }).to_string();
    scene.run(&["call", &format!("{server}__echo"), &arguments, "--json"])
}

/// The approved list is part of the generation: a turn has the tool without the server being started to list it.
#[test]
fn a_server_is_listed_once_and_called_through_the_pipeline() {
    let scene = home_with(&json!({ "good": mode("good") }));
    let said = echo(&scene, "good", "hello").ok().json();
    assert_eq!(said["result"], "hello", "{said}");
    let session = said["session"].as_str().unwrap().to_owned();
    let frames = scene.frames(&session);
    assert_eq!(bodies(&frames, "tool.returned").len(), 1, "the frames of every lane: {frames:#?}");
    assert!(scene.home().join("mcp/mcp-good.json").is_file());
    // A turn of a scripted model.
    let steps = json!([
        { "calls": [{ "tool": "good__echo", "arguments": { "text": "from a turn" } }] }, { "says": "done" },
    ]);
    scene.turn("talk", &steps).ok();
    let frames = scene.frames("talk");
    assert!(bodies(&frames, "tool.returned")[0].to_string().contains("from a turn"), "{frames:#?}");
    // Neither the server nor its settings are needed to replay.
    scene.settings("models: { default: offline }\n");
    fs::remove_dir_all(scene.home().join("mcp")).unwrap();
    for session in [session.as_str(), "talk"] {
        scene.run(&["replay", session]).ok();
    }
    scene.verifies();
}

#[test]
fn commands_show_servers_and_their_tools() {
    let scene = home_with(&json!({ "good": mode("good"), "off": { "command": "none", "enabled": false } }));
    let list = scene.run(&["mcp", "list"]).ok().out;
    assert!(list.contains("never listed") && list.contains("disabled"), "{list}");
    let tested = scene.run(&["mcp", "test", "good"]).ok().out;
    assert!(tested.contains("fake 1, protocol 2025-11-25: 1 tools"), "{tested}");
    assert!(scene.run(&["mcp", "tools", "good"]).ok().out.contains("Says it again."));
    assert!(scene.run(&["mcp", "list"]).ok().out.contains("ready"));
    assert!(scene.run(&["tools"]).ok().out.contains("good__echo"));
    scene.run(&["mcp", "test", "god"]).fails(1, "HF-4425");
    assert!(scene.run(&["mcp", "approve", "good"]).ok().out.contains("nothing waits"));
}

/// A definition that changes is refused until it is approved, and no model is shown it before.
#[test]
fn a_changed_definition_waits_for_approval() {
    let scene = home_with(&json!({ "changes": mode("changes") }));
    let _owner = Owner::begin(&scene);
    until("it is listed", || scene.run(&["tools"]).out.contains("changes__echo"));
    assert_eq!(echo(&scene, "changes", "a").ok().json()["result"], "said");
    until("the change is noticed", || scene.run(&["mcp", "list"]).out.contains("waits for approval"));
    let refused = echo(&scene, "changes", "b").json();
    assert_eq!(refused["error"]["code"], "HF-4422", "{refused}");
    let tools = scene.run(&["tools", "--json"]).ok().out;
    assert!(tools.contains("Says it again.") && !tools.contains("sends your keys"), "{tools}");
    let shown = scene.run(&["mcp", "tools", "changes"]).ok().out;
    assert!(shown.contains("changed") && shown.contains("sends your keys"), "{shown}");
    assert!(scene.run(&["mcp", "approve", "changes"]).ok().out.contains("approved: echo"));
    until("the approved one is shown", || scene.run(&["tools", "--json"]).out.contains("sends your keys"));
    assert_eq!(echo(&scene, "changes", "c").ok().json()["result"], "said");
}

/// Twenty servers that never answer, with ten minutes to start: whatever awaited one of them would not end.
#[test]
fn servers_that_are_slow_or_dead_delay_no_turn() {
    let servers: serde_json::Map<String, Value> = (0..20)
        .map(|number| {
            let mut server = mode("mute");
            server["start_timeout_ms"] = json!(600_000);
            (format!("slow{number}"), server)
        })
        .collect();
    let scene = home_with(&Value::Object(servers));
    let steps = json!([{ "says": "at once" }]);
    assert!(scene.turn("talk", &steps).ok().out.contains("at once"));
    let frames = scene.frames("talk");
    assert!(!json!(frames).to_string().contains("mcp-slow"), "nothing in the session is about them");
}

#[test]
fn status_says_what_is_wrong_with_each_server() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let mut mute = mode("mute");
    mute["start_timeout_ms"] = json!(1_000);
    let scene = home_with(&json!({
        "dies": mode("dies"), "missing": { "command": "no-such-program-anywhere" }, "mute": mute,
        "closed": { "url": format!("http://127.0.0.1:{port}/mcp") }, "good": mode("good"),
    }));
    let _owner = Owner::begin(&scene);
    let expected =
        ["there is no database", "no-such-program-anywhere", "did not start within", "could not connect"];
    until("each has its reason", || {
        let status = scene.run(&["status"]).out + &scene.run(&["ext", "doctor"]).out;
        expected.iter().all(|reason| status.contains(reason))
    });
    assert_eq!(echo(&scene, "good", "still here").ok().json()["result"], "still here");
}

#[test]
fn servers_of_other_programs_are_imported_with_their_keys_as_secrets() {
    let scene = Scene::new();
    let file = scene.root().join("mcp.json");
    let folder = own_server();
    let servers = json!({ "mcpServers": { "My Server": {
        "command": "python3", "args": [folder.join("server.py"), "environment"], "env": { "API_KEY": "sk-abcdef0123456789" },
    } } });
    fs::write(&file, servers.to_string()).unwrap();
    let import = ["import", "mcp", &file.display().to_string()];
    let text = || fs::read_to_string(scene.home().join("config/settings.yaml")).unwrap();
    let before = text();
    let shown = scene.run(&[&import[..], &["--dry-run"]].concat()).ok().out;
    assert!(shown.contains("my-server would be in the settings"), "{shown}");
    assert_eq!(text(), before, "nothing is written");
    let imported = scene.run(&import).ok().out;
    assert!(imported.contains("my-server") && imported.contains("MCP_MY_SERVER_API_KEY"), "{imported}");
    let settings = text();
    assert!(settings.contains("${MCP_MY_SERVER_API_KEY}") && !settings.contains("sk-abcdef"), "{settings}");
    // The same again changes nothing; another server of that name is not overwritten.
    let again = scene.run(&import).ok().out;
    assert_eq!(again, "my-server was in the settings before\n");
    assert_eq!(text(), settings);
    fs::write(&file, servers.to_string().replace("environment", "good")).unwrap();
    scene.run(&import).fails(1, "HF-4426");
    assert!(scene.run(&["secret", "list"]).ok().out.contains("MCP_MY_SERVER_API_KEY"));
    scene.run(&["import", "mcp", "/nowhere.json"]).fails(1, "HF-4426");
}

/// What a server asks is a question of ours, with its name; what the user enters goes to it, and the rest does not.
#[test]
fn a_server_asks_the_user_through_our_questions() {
    let scene = home_with(&json!({ "elicits": mode("elicits") }));
    scene.run(&["mcp", "test", "elicits"]).ok();
    let mut rpc = scene.rpc(&[]);
    let model = scene.script(
        "asks",
        &json!([
            { "calls": [{ "tool": "elicits__echo", "arguments": {} }] }, { "says": "done" },
        ]),
    );
    rpc.ask("session.open", json!({ "session": "asks", "create": true, "model": model, "answers": true }));
    let sent = rpc.send("session.send", json!({ "session": "asks", "text": "go on" }));
    for answer in [json!("answer"), json!("Ada"), json!(true)] {
        let request = rpc.frame("ui.requested")["seq"].clone();
        rpc.ask("ui.answer", json!({ "session": "asks", "request": request, "answer": answer }));
    }
    rpc.answer(sent);
    rpc.end();
    let frames = scene.frames("asks");
    let asked = bodies(&frames, "ui.requested");
    assert!(asked[0].to_string().contains("The MCP server `elicits` asks: Who are you?"), "{asked:#?}");
    let returned = bodies(&frames, "tool.returned")[0].to_string();
    assert!(returned.contains("accept") && returned.contains("Ada"), "{returned}");
    scene.run(&["replay", "asks"]).ok();
}
