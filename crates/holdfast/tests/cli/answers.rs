//! Answers of every length arrive: the log keeps values over 4 KiB as blobs, and no reader is left with the reference.

use crate::shared::{Owner, Scene, bodies};
use serde_json::json;

/// Just below the limit, just above it, and far above it.
const LENGTHS: [usize; 3] = [4_080, 4_100, 200_000];

/// A text in which no part can be taken for another.
fn long(length: usize) -> String {
    let text: String = (0..)
        .flat_map(|number: u32| format!("{number} ").into_bytes())
        .map(char::from)
        .take(length - 1)
        .collect();
    text + "."
}

/// `run` in every form prints the whole answer.
fn prints_whole_answers(scene: &Scene) {
    for length in LENGTHS {
        let text = long(length);
        let model = scene.script(&format!("says-{length}"), &json!([{ "says": text }]));
        let line = format!("{text}\n");
        assert!(scene.run(&["run", "go", "--model", &model]).ok().out == line, "{length}");
        assert!(scene.run(&["-q", "run", "go", "--model", &model]).ok().out == line, "-q, {length}");
        let frames = scene.run(&["--json", "run", "go", "--model", &model]).ok().lines();
        let ended = bodies(&frames, "turn.ended");
        assert!(ended[0]["answer"] == json!({ "json": text }), "--json, {length}");
        assert!(bodies(&frames, "model.returned")[0]["text"] == json!({ "json": text }), "--json, {length}");
    }
}

#[test]
fn run_prints_long_answers_alone() {
    let scene = Scene::new();
    prints_whole_answers(&scene);
    scene.verifies();
}

#[test]
fn run_prints_long_answers_beside_an_owner() {
    let scene = Scene::new();
    let _owner = Owner::begin(&scene);
    prints_whole_answers(&scene);
}

#[test]
fn a_client_gets_everything_it_is_told_over_the_protocol_alone() {
    let scene = Scene::new();
    let mut rpc = scene.rpc(&[]);
    let other = rpc.ask("session.open", json!({ "channel": "test" }))["session"].clone();
    for length in LENGTHS {
        let text = long(length);
        let model = scene.script(&format!("says-{length}"), &json!([{ "says": text }]));
        let opened = rpc.ask("session.open", json!({ "channel": "test", "model": model, "frames_from": 0 }));
        let session = opened["session"].clone();
        let end = rpc.ask("session.send", json!({ "session": session, "text": "go" }));
        assert!(end["answer"] == json!({ "json": text }), "{length}");
        let frame = rpc.wait(|message| {
            message["params"]["stream"] == session && message["params"]["kind"] == "turn.ended"
        });
        let stored = frame["params"]["body"]["answer"].clone();
        let Some(digest) = stored["blob"]["digest"].as_str() else {
            assert!(length < 4096 && stored == json!({ "json": text }), "{stored}");
            continue;
        };
        let fetched = rpc.ask("session.content", json!({ "session": session, "digest": digest }));
        assert!(fetched == json!({ "value": text }), "{length}");
        let refused = rpc.refused("session.content", json!({ "session": other, "digest": digest }));
        assert_eq!(refused["data"]["code"], "HF-2007", "another session's: {refused}");
    }
    rpc.end();
}

/// A client sends values, not references: one that it did not load is refused, and a long one arrives.
#[test]
fn a_client_sends_whole_values() {
    let scene = Scene::new();
    let mut rpc = scene.rpc(&[]);
    let reference = json!({ "blob": { "digest": "0".repeat(64), "bytes": 10_002 } });
    for (result, code, says) in [
        (reference, "HF-9001", "was not loaded"),
        (json!({ "json": long(10_000) }), "HF-3101", "no renderer is registered"),
    ] {
        let asked = json!({ "tool": "shell", "arguments": { "json": {} }, "result": result });
        let refused = rpc.refused("tool.render", asked);
        assert_eq!(refused["data"]["code"], code, "{refused}");
        assert!(refused["message"].as_str().unwrap().contains(says), "{refused}");
    }
    rpc.end();
}
