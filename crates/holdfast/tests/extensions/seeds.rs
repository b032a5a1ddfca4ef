//! Extensions as the documents show them that Holdfast is based on, with only the lines added that those leave out: plain files, classes
//! of the nano-kernel, and classes of the system that came after it.

use std::fs;
use std::path::Path;

use crate::shared::{Owner, Scene, until};
use serde_json::{Value, json};

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

/// A home with the extensions of these documents.
fn scene(documents: &[&str], channel: &str) -> Scene {
    let scene = Scene::new();
    scene.run(&["init"]).ok();
    let model = scene.script("model", &json!([{ "says": "It is noted." }]));
    let file = model.trim_start_matches("script:");
    scene.settings(&format!(
        "models:\n  default: main\n  main: {{ provider: script, file: {file} }}\n  gpt-5-mini: {{ provider: script, file: {file} }}\n\
         channels: {{ default: {channel} }}\n"
    ));
    scene.policy("profile: full-auto\n");
    for document in documents {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/extensions/seeds").join(document);
        copy(&from, &scene.home().join("extensions"));
    }
    scene
}

fn notes(scene: &Scene, extension: &str) -> String {
    fs::read_to_string(scene.home().join("data").join(extension).join("notes")).unwrap_or_default()
}

/// Puts a message where a channel looks for one.
fn message(scene: &Scene, channel: &str, text: &str) {
    let inbox = scene.home().join("data").join(channel).join("in");
    until("the channel looks", || inbox.is_dir());
    fs::write(inbox.join("part"), text).unwrap();
    fs::rename(inbox.join("part"), inbox.join("1")).unwrap();
}

#[test]
fn files_are_tools_and_channels() {
    let scene = scene(&["003"], "slack");
    let _owner = Owner::begin(&scene);
    let weather = || scene.run(&["call", "get_weather", r#"{"city": "Vienna"}"#]).out;
    until("the tool answers", || weather().contains("sunny at https://wttr.in/Vienna?format=3"));
    assert!(!scene.run(&["ext", "list"]).ok().out.contains("_httpx"), "a helper is not an extension");
    message(&scene, "slack", "hello");
    until("an answer comes", || notes(&scene, "slack").contains("slack U1 T7: It is noted."));
    // An edit of what a tool imports is an edit of the tool.
    let helper = scene.home().join("extensions/tools/_httpx.py");
    let text = fs::read_to_string(&helper).unwrap();
    fs::write(&helper, text.replace("sunny", "rainy")).unwrap();
    until("the edit is live", || weather().contains("rainy at"));
    scene.verifies();
}

#[test]
fn a_channel_says_what_it_is() {
    let scene = scene(&["003"], "slack");
    let frames = scene.run(&["ext", "list"]).ok();
    assert!(frames.out.contains("slack"), "{frames:#?}");
    let system = scene.frames("system");
    let text = serde_json::to_string(&system).unwrap();
    assert!(text.contains("Initialize Slack connection and authenticate."), "{text}");
}

#[test]
fn classes_of_the_first_system() {
    let scene = scene(&["001"], "telegram_channel");
    let _owner = Owner::begin(&scene);
    message(&scene, "telegram_channel", "Hello");
    until("an answer comes", || {
        notes(&scene, "telegram_channel").contains("MarkdownV2 123456: It is noted.")
    });
    let seen = || scene.run(&["call", "reminders_seen", "{}"]).out;
    until("others are told of it", || seen().contains("Hello"));
    assert!(scene.home().join("data/reminders/alive").exists(), "its loop runs");
    let open = scene.run(&["setup", "telegram_channel", "--json"]);
    assert!(open.out.contains("@BotFather"), "{open:#?}");
    scene.run_with(&["setup", "telegram_channel", "--secret", "token"], b"12345678\n").ok();
    let done = scene.run(&["setup", "telegram_channel", "--json"]).ok();
    assert!(done.out.contains("a token of 8 letters"), "{done:#?}");
    scene.verifies();
}

#[test]
fn classes_of_the_second_system() {
    let scene = scene(&["000", "001"], "telegram_channel");
    let _owner = Owner::begin(&scene);
    message(&scene, "telegram_channel", "Hello");
    until("an answer comes", || notes(&scene, "telegram_channel").contains("123456: It is noted."));
    assert!(scene.run(&["call", "my_tool", r#"{"arg": "x"}"#]).ok().out.contains("Result: x"));
    for (topic, text) in [("alert.urgent", "from its code"), ("alert.calm", "from its manifest")] {
        scene.run(&["bus", "publish", topic, &json!({ "text": text }).to_string()]).ok();
        until("the user is told", || notes(&scene, "telegram_channel").contains(text));
    }
    assert!(scene.run(&["call", "recall", r#"{"task": "it"}"#]).ok().out.contains("I recall it"));
    let said = scene.run(&["run", "hello", "--session", "s", "--json"]).ok();
    assert!(said.out.contains("It is noted."), "{said:#?}");
    let frames = serde_json::to_string(&scene.frames("s")).unwrap();
    assert!(frames.contains("remembered for "), "{frames}");
    let tools: Vec<Value> = scene.run(&["tools", "--json"]).ok().lines();
    let text = serde_json::to_string(&tools).unwrap();
    assert!(text.contains("simple_agent") && text.contains("Recalls."), "{text}");
    scene.verifies();
}
