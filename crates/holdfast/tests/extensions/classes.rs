//! Python classes as extensions: `entrypoint: module:Class`, with every role, as they were written for another program.

use std::fs;
use std::path::{Path, PathBuf};

use crate::shared::{Owner, Scene, until};
use holdfast_testkit::wasm::{Does, tool};
use serde_json::{Value, json};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/extensions/classes")
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        if entry.path().is_dir() {
            copy(&entry.path(), &to.join(entry.file_name()))
        } else {
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

/// A home with these classes, whose owner lets every tool run. Notices go to `many`.
pub fn scene(classes: &[&str]) -> Scene {
    let scene = Scene::new();
    scene.run(&["init"]).ok();
    scene.settings(&format!("models: {{ default: offline }}\nchannels: {{ default: {} }}\n", classes[0]));
    scene.policy("profile: full-auto\n");
    for class in classes {
        copy(&fixtures().join(class), &scene.home().join("extensions").join(class));
    }
    scene
}

#[track_caller]
pub fn call(scene: &Scene, tool: &str, arguments: &Value) -> Value {
    let ran = scene.run(&["call", tool, &arguments.to_string()]).ok();
    serde_json::from_str(&ran.out).unwrap_or(Value::String(ran.out.trim().to_owned()))
}

pub fn refused(scene: &Scene, tool: &str, arguments: &Value) -> String {
    let ran = scene.run(&["call", tool, &arguments.to_string()]);
    assert_ne!(ran.code, Some(0), "{ran:#?}");
    ran.err
}

pub fn notes(scene: &Scene, class: &str) -> String {
    fs::read_to_string(scene.home().join("data").join(class).join("notes")).unwrap_or_default()
}

#[track_caller]
pub fn notes_have(scene: &Scene, class: &str, line: &str) {
    until(&format!("`{line}` in the notes"), || notes(scene, class).lines().any(|it| it == line));
}

#[test]
fn tools_of_a_class_are_listed_after_its_initialisation() {
    let scene = scene(&["many"]);
    let checked = scene.run(&["ext", "check", "many"]).ok().out;
    for name in ["many_greet", "many_alpha", "many_helper", "channel"] {
        assert!(checked.contains(name), "{name}: {checked}");
    }
    // What nobody granted is told apart: a class has it by default, and under `safe` less of it.
    let by_default = |shown: &str| {
        let line = shown.lines().find_map(|line| line.trim_start().strip_prefix("by default"));
        line.unwrap_or_else(|| panic!("{shown}")).trim().split(", ").map(str::to_owned).collect::<Vec<_>>()
    };
    let has = |listed: &[String], name: &str| listed.iter().any(|it| it == name);
    let listed = by_default(&checked);
    assert!(has(&listed, "agents") && has(&listed, "channels") && !has(&listed, "setup"), "{listed:?}");
    let safe = by_default(&scene.run(&["--profile", "safe", "ext", "check", "many"]).ok().out);
    assert!(!has(&safe, "agents") && has(&safe, "channels"), "{safe:?}");
    let _owner = Owner::begin(&scene);
    until("it serves", || scene.run(&["ext", "list"]).out.contains("many"));
    assert_eq!(by_default(&scene.run(&["ext", "show", "many"]).ok().out), listed);
    assert_eq!(call(&scene, "many_greet", &json!({ "name": "ada", "times": 2 })), "hello ada hello ada");
    assert_eq!(
        call(&scene, "many_point", &json!({ "point": { "x": 1, "y": 5 } })),
        json!({ "x": 2, "y": 6 })
    );
    assert_eq!(call(&scene, "many_sorry", &json!({ "why": "no luck" })), "sorry: no luck");
    assert_eq!(call(&scene, "many_beta", &json!({})), "beta");
    assert_eq!(call(&scene, "many_greet", &json!({ "name": "ada" })), "hello ada", "defaults are the tool's");
    let strict = refused(&scene, "many_greet", &json!({ "times": 1 }));
    assert!(strict.contains("name"), "what has no default is required: {strict}");
    let failed = refused(&scene, "many_fail", &json!({ "text": "no" }));
    assert!(failed.contains("ValueError: NO! (main.py, line"), "{failed}");
    let helped = call(&scene, "many_helper", &json!({ "task": "this" }));
    assert!(helped.as_str().unwrap().starts_with("done: this for "), "{helped}");
    assert!(refused(&scene, "many_helper", &json!({ "task": "fail" })).contains("it does not work"));
    scene.verifies();
}

#[test]
fn the_context_has_everything() {
    let scene = scene(&["many"]);
    scene.settings(
        "models: { default: offline }\nchannels: { default: many }\nextensions: { many: { greeting: good day } }\n",
    );
    let _owner = Owner::begin(&scene);
    until("its loop runs", || {
        let ran = scene.run(&["call", "many_facts", "{}"]);
        serde_json::from_str::<Value>(&ran.out).is_ok_and(|facts| facts["looping"] == true)
    });
    let mut facts = call(&scene, "many_facts", &json!({}));
    facts.as_object_mut().unwrap().remove("beats");
    assert_eq!(
        facts,
        json!({
            "id": "many", "missing": 7, "data": true, "model": "offline", "agent": "many_agent", "tools": [], "router": "offline",
            "config": { "greeting": "good day", "extra_tools": ["alpha", "beta"] }, "logger": "ext.many", "stranger": null,
            "instructions": "You are many.\n\nBe brief.", "started": { "at": 1 }, "nothing": null, "token": false, "sync": true,
            "looping": true, "one": true,
            "protocols": ["AgentProvider", "ChannelProvider", "ContextProvider", "Extension", "SchedulerProvider", "ServiceProvider",
                "SetupProvider", "StreamingChannelProvider", "ToolProvider"],
        })
    );
    let asked = call(&scene, "many_ask", &json!({ "prompt": "hello" }));
    assert!(!asked["answer"].as_str().unwrap().is_empty(), "{asked}");
    assert_eq!(asked["chunks"], json!([asked["streamed"]]), "{asked}");
    let enriched = call(&scene, "many_enriched", &json!({ "prompt": "the weather?" }));
    let enriched = enriched.as_str().unwrap();
    assert!(enriched.starts_with("[Current Session Context]\n"), "{enriched}");
    assert!(enriched.contains("\n\n---\n\nThey said 'the weather?' on many.\n\n---\n\n"), "{enriched}");
    assert!(enriched.ends_with("\n\n---\n\nthe weather?"), "{enriched}");
    scene.verifies();
}

#[test]
fn it_lives_hears_and_speaks() {
    let scene = scene(&["many"]);
    let owner = Owner::begin(&scene);
    // A task that its own `start` began brings a message in, and the answer comes out.
    let data = scene.home().join("data/many");
    until("it polls", || data.join("in").is_dir());
    fs::write(data.join(".1"), "hello").unwrap();
    fs::rename(data.join(".1"), data.join("in/1")).unwrap();
    until("the user has an answer", || notes(&scene, "many").contains("stream 123456: end "));
    // The manifest's schedule runs a task, which has something to say.
    notes_have(&scene, "many", "out: a beat");
    // Events: its own, and from outside.
    call(&scene, "many_emit", &json!({ "text": "fire" }));
    notes_have(&scene, "many", "alert many.alert fire c1");
    notes_have(&scene, "many", "out: alert: fire");
    scene.run(&["bus", "publish", "many.ask", r#"{"text": "help"}"#]).ok();
    notes_have(&scene, "many", "out: done: help for extension/many");
    // What it says before a turn.
    let said = scene.run(&["run", "what about the weather", "--session", "w"]).ok();
    assert!(!said.out.is_empty());
    let frames = scene.frames("w");
    let injected = frames.iter().find(|frame| frame["kind"] == "context.injected");
    assert!(injected.is_some(), "{frames:#?}");
    scene.run(&["down"]).ok();
    notes_have(&scene, "many", "the loop was cancelled");
    notes_have(&scene, "many", "stopped");
    notes_have(&scene, "many", "destroyed");
    drop(owner);
    scene.verifies();
}

#[test]
fn an_answer_is_streamed_to_a_class_and_sent_whole_where_it_fails() {
    let scene = scene(&["many"]);
    let script = scene.home().join("answers.yaml");
    let steps =
        "- calls: [{ tool: many_beta, arguments: {} }]\n- says: Good evening, Ada.\n- says: Refuse this.\n";
    fs::write(&script, steps).unwrap();
    let model = format!("script:{}", script.display());
    scene.settings(&format!("models: {{ default: '{model}' }}\nchannels: {{ default: many }}\n"));
    let _owner = Owner::begin(&scene);
    let data = scene.home().join("data/many");
    until("it polls", || data.join("in").is_dir());
    let says = |name: &str| {
        fs::write(data.join(format!(".{name}")), "hello").unwrap();
        fs::rename(data.join(format!(".{name}")), data.join("in").join(name)).unwrap();
    };
    says("1");
    notes_have(&scene, "many", r#"stream 123456: end "Good evening, Ada.""#);
    let all = notes(&scene, "many");
    let streamed: Vec<&str> = all.lines().filter_map(|it| it.strip_prefix("stream 123456: ")).collect();
    assert_eq!(streamed[..3], ["start", "status many_beta: started", "status many_beta: done"], "{all}");
    let chunks = streamed.iter().filter_map(|it| it.strip_prefix("chunk "));
    let chunks = chunks.map(|it| serde_json::from_str::<String>(it).unwrap());
    assert_eq!(chunks.collect::<String>(), "Good evening, Ada.");
    assert!(!all.contains("to 123456: "), "what was streamed is not sent as well: {all}");
    says("2");
    notes_have(&scene, "many", "to 123456: Refuse this.");
    let reported = |scene: &Scene| {
        let frames = scene.frames("many.123456");
        let reports = frames.iter().filter(|frame| frame["kind"] == "delivery.reported");
        reports.map(|frame| frame["body"]["fault"].to_string()).collect::<Vec<_>>()
    };
    until("both are on record", || reported(&scene).len() == 2);
    assert_eq!(reported(&scene)[0], "null");
    assert!(reported(&scene)[1].contains("the message is gone"), "{:?}", reported(&scene));
    scene.verifies();
}

#[test]
fn it_is_set_up() {
    let scene = scene(&["many"]);
    let _owner = Owner::begin(&scene);
    until("it asks", || scene.run(&["setup", "many", "--json"]).out.contains("token"));
    scene.run_with(&["setup", "many", "--secret", "token"], b"s3cret-value\n");
    notes_have(&scene, "many", "config token=s3cret-value");
    // Finding B19: what is required cannot be set to nothing.
    for empty in [&b"\n"[..], b"  \n"] {
        scene.run_with(&["setup", "many", "--secret", "token"], empty).fails(2, "HF-9001");
    }
    notes_have(&scene, "many", "config token=s3cret-value");
    let done = scene.run(&["setup", "many", "--set", "parse_mode=HTML"]).ok();
    assert!(format!("{}{}", done.out, done.err).contains("all is well"), "{done:#?}");
    notes_have(&scene, "many", "config parse_mode=HTML");
}

#[test]
fn classes_call_each_other_and_what_is_built_in() {
    let scene = scene(&["many", "other"]);
    let _owner = Owner::begin(&scene);
    until("it serves", || scene.run(&["call", "other_calls", "{}"]).code == Some(0));
    let mut called = call(&scene, "other_calls", &json!({}));
    let failed = called.as_object_mut().unwrap().remove("failed").unwrap();
    assert!(failed.as_str().unwrap().contains("too many positional arguments"), "{failed}");
    assert_eq!(
        called,
        json!({ "sum": 3, "moved": [4, 5], "sync": "sync", "kv": [1, 2], "keys": ["other/key"], "stranger": null, "louder": "HEY" })
    );
    // An edit of what it imports is an edit of it.
    let words = scene.home().join("extensions/many/words.py");
    fs::write(words, "def louder(text):\n    return text + '?'\n").unwrap();
    until("the edit is live", || {
        let ran = scene.run(&["call", "other_calls", "{}"]);
        serde_json::from_str::<Value>(&ran.out).is_ok_and(|called| called["louder"] == "hey?")
    });
    scene.verifies();
}

#[test]
fn the_older_shapes_work() {
    let scene = scene(&["ticker"]);
    let _owner = Owner::begin(&scene);
    notes_have(&scene, "ticker", "tick 2");
    let message = json!({ "text": "hi", "user_id": "ada", "channel_id": "ticker" });
    scene.run(&["bus", "publish", "user.message", &message.to_string()]).ok();
    notes_have(&scene, "ticker", "heard hi");
    until("the user has an answer", || notes(&scene, "ticker").contains("to ada: "));
    // `execute` had something to say, and the only user there is has written here.
    notes_have(&scene, "ticker", "to ada: tick 1");
}

#[test]
fn an_edit_is_live_and_a_broken_one_names_its_line() {
    let scene = scene(&["many"]);
    let _owner = Owner::begin(&scene);
    let says = |word: &str| scene.run(&["call", "many_fail", r#"{"text": "no"}"#]).err.contains(word);
    until("it serves", || says("NO!"));
    let deep = scene.home().join("extensions/many/lib/deep.py");
    fs::write(&deep, "DEPTH = 3\n").unwrap();
    until("an edit below is live", || says("NO!!!"));
    fs::write(&deep, "\nDEPTH = = 3\n").unwrap();
    let doctor = || scene.run(&["ext", "doctor", "many"]).out;
    until("a broken one is reported", || doctor().contains("deep.py, line 2"));
    assert!(says("NO!!!"), "the last good one serves");
    fs::write(&deep, "import nothing_of_that_name\n").unwrap();
    until("a missing import is reported", || doctor().contains("nothing_of_that_name"));
    assert!(doctor().contains("deep.py, line 1"), "{}", doctor());
}

/// What `docs/python-classes.md` shows first.
#[test]
fn the_first_class_of_the_guide_works_as_it_stands() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/python-classes.md");
    let page = fs::read_to_string(page).unwrap();
    let shown = |kind: &str| page.split_once(kind).unwrap().1.split_once("```").unwrap().0.to_owned();
    let scene = scene(&["many"]);
    let folder = scene.home().join("extensions/greeter");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("manifest.yaml"), shown("```yaml\n")).unwrap();
    fs::write(folder.join("main.py"), shown("```python\n")).unwrap();
    assert_eq!(call(&scene, "greet", &json!({ "name": "Ada" })), "hello, Ada");
    let cases = "- tool: greet\n  arguments: { name: Ada }\n  result: hello, Ada\n";
    fs::write(folder.join("tests.yaml"), cases).unwrap();
    let tested = scene.run(&["ext", "test", "greeter"]);
    assert_eq!(tested.code, Some(0), "{tested:#?}");
}

/// A program that shouts: the one of `docs/protocol.md`.
fn shouter() -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/protocol.md");
    let page = fs::read_to_string(page).unwrap();
    page.split_once("```python\n").unwrap().1.split_once("```").unwrap().0.to_owned()
}

#[test]
fn a_session_over_five_lanes_replays_without_any_of_them() {
    let scene = scene(&["many"]);
    let extensions = scene.home().join("extensions");
    let install = |file: &str, content: &[u8]| {
        let path = extensions.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    };
    install("sandboxed/sandboxed.wasm", &tool("hum", &Does::Says("hmm")));
    install("sandboxed/manifest.yaml", b"id: sandboxed\nname: Sandboxed\nentrypoint: sandboxed.wasm\n");
    install("shouter/main.py", shouter().as_bytes());
    install(
        "shouter/manifest.yaml",
        b"id: shouter\nname: Shouter\ncommand: [python3, main.py]\nconfig: { mark: '!' }\n",
    );
    install("tools/whisper.py", b"async def run(text: str) -> str:\n    return text.lower()\n");
    let steps = json!([
        { "calls": [{ "tool": "kv_set", "arguments": { "key": "a", "value": 1 } }] },
        { "calls": [{ "tool": "hum", "arguments": {} }] },
        { "calls": [{ "tool": "shout", "arguments": { "text": "hey" } }] },
        { "calls": [{ "tool": "whisper", "arguments": { "text": "HEY" } }] },
        { "calls": [{ "tool": "many_greet", "arguments": { "name": "ada", "times": 1 } }] },
        { "says": "all five" },
    ]);
    let ran = scene.turn("five", &steps).ok();
    assert!(ran.out.contains("all five"), "{ran:#?}");
    let frames = serde_json::to_string(&scene.frames("five")).unwrap();
    for result in ["hmm", "HEY!", "hey", "hello ada"] {
        assert!(frames.contains(result), "{result}: {frames}");
    }
    // Nothing of them is left, and no program can be found by its name.
    fs::remove_dir_all(&extensions).unwrap();
    fs::remove_dir_all(scene.home().join("data")).unwrap();
    let replay = scene.command(&["replay", "five"]).env("PATH", "").output().unwrap();
    let told = String::from_utf8_lossy(&replay.stdout).into_owned();
    assert!(replay.status.success() && told.contains("all identical"), "{told}");
}
