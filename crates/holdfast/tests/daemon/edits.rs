//! Many edits while calls run: every call is answered by one whole version of its file, and no edit, however broken, takes a tool away.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::shared::{Rpc, Scene, until};
use serde_json::{Value, json};

const FILES: usize = 20;
/// More than 50 in a minute.
const EDITS: usize = 60;
const PAUSE: Duration = Duration::from_millis(400);

/// A file that knows its version at both ends, and whose first half is not Python.
fn version(number: usize) -> String {
    let filler = "    'a line that takes up room',\n".repeat(200);
    format!(
        "BEGINNING = {number}\n\ndef run() -> list:\n    \"\"\"Says its version.\"\"\"\n    \
         return [BEGINNING, ENDING]\n\nROOM = (\n{filler})\nENDING = {number}\n"
    )
}

/// Edits as people and their editors do.
fn edit(tools: &Path, file: usize, number: usize) {
    let path = tools.join(format!("tool{file}.py"));
    let text = version(number);
    match number % 5 {
        // Put in place whole.
        0 | 1 => {
            let beside = tools.join(format!(".tool{file}"));
            fs::write(&beside, text).unwrap();
            fs::rename(beside, path).unwrap();
        }
        // Written over.
        2 => fs::write(path, text).unwrap(),
        // Written in two halves.
        3 => {
            let (first, _) = text.split_at(text.len() / 2);
            fs::write(&path, first).unwrap();
            std::thread::sleep(Duration::from_millis(60));
            fs::write(path, text).unwrap();
        }
        // Broken, and left so until its next turn.
        _ => fs::write(path, text.replace("def run()", "def run(:")).unwrap(),
    }
}

/// Calls one tool after the other until it is told to stop, and counts the calls that were answered.
fn call(mut rpc: Rpc, calls: &AtomicUsize, stop: &AtomicBool) -> Rpc {
    let opened = rpc.ask("session.open", json!({ "model": "direct", "channel": "test" }));
    while !stop.load(Ordering::Relaxed) {
        let text = format!("/tool{} {{}}", calls.load(Ordering::Relaxed) % FILES);
        let told = rpc.ask("session.send", json!({ "session": opened["session"], "text": text }));
        let ends = told["answer"]["json"].as_array().unwrap_or_else(|| panic!("{text}: {told:#}"));
        assert!(ends.len() == 2 && ends[0] == ends[1], "two versions in one answer: {told:#}");
        rpc.received.clear();
        calls.fetch_add(1, Ordering::Relaxed);
    }
    rpc
}

#[test]
fn a_storm_of_edits_takes_no_tool_away() {
    let scene = Scene::new();
    scene.run(&["init"]).ok();
    scene.policy("profile: full-auto\n");
    let tools = scene.home().join("extensions/tools");
    for file in 0..FILES {
        fs::write(tools.join(format!("tool{file}.py")), version(0)).unwrap();
    }
    let mut rpc = scene.rpc(&[]);
    until("all are there", || {
        let listed = rpc.ask("tools.list", json!({}));
        let is_ours = |tool: &&Value| tool["name"].as_str().is_some_and(|name| name.starts_with("tool"));
        listed.as_array().unwrap().iter().filter(is_ours).count() == FILES
    });
    let (calls, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let mut rpc = std::thread::scope(|scope| {
        let calling = scope.spawn(|| call(rpc, &calls, &stop));
        for number in 1..=EDITS {
            let before = calls.load(Ordering::Relaxed);
            edit(&tools, (number * 7) % FILES, number);
            std::thread::sleep(PAUSE);
            until("calls go on", || calling.is_finished() || calls.load(Ordering::Relaxed) > before + 1);
            assert!(!calling.is_finished(), "calls have stopped");
        }
        stop.store(true, Ordering::Relaxed);
        calling.join().unwrap()
    });
    // Once all are fixed, each is at its last version.
    for file in 0..FILES {
        fs::write(tools.join(format!("tool{file}.py")), version(1_000 + file)).unwrap();
    }
    let opened = rpc.ask("session.open", json!({ "model": "direct", "channel": "test" }));
    for file in 0..FILES {
        until("the last version is live", || {
            let text = format!("/tool{file} {{}}");
            let told = rpc.ask("session.send", json!({ "session": opened["session"], "text": text }));
            told["answer"].to_string().contains(&format!("{}", 1_000 + file))
        });
    }
    rpc.end();
    scene.verifies();
}
