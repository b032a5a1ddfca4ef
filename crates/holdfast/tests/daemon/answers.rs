//! Approvals that are raised in one place and answered in another, with the process killed in between: asked again, not lost, not
//! doubled. A channel, the client protocol, the chat and `holdfast questions`, with the real program.

use std::fs;

use crate::reminder::{Up, book, kill, sent, until};
use crate::shared::Scene;
use holdfast_testkit::wasm::telltale;
use serde_json::{Value, json};

const CHANNEL: &str = "
id: relay
name: Relay
entrypoint: relay.wasm
grants: { interfaces: [events] }
";

/// A home with a channel whose user `ada` is its owner, and a model that calls a tool which a person is asked about.
fn home() -> Scene {
    let scene = Scene::new();
    let due = json!({ "in": "10h", "text": "call mum" });
    let steps = json!([{ "calls": [{ "tool": "schedule_once", "arguments": due }] }, { "says": "I will remind you." }]);
    let file = scene.root().join("main.yaml");
    fs::write(&file, steps.to_string()).unwrap();
    scene.settings(&format!(
        "models:\n  default: main\n  main: {{ provider: script, file: {} }}\n",
        file.display()
    ));
    scene.policy("profile: standard\nowners:\n  - { channel: relay, user: ada }\n");
    let folder = scene.home().join("extensions/relay");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("manifest.yaml"), CHANNEL).unwrap();
    fs::write(folder.join("relay.wasm"), telltale(1)).unwrap();
    scene.run(&["ext", "grant", "relay"]).ok();
    scene
}

fn says(scene: &Scene, user: &str, text: &str) {
    let said = json!({ "text": text, "user_id": user, "channel_id": "relay" });
    scene.run(&["bus", "publish", "user.message", &said.to_string()]).ok();
}

/// What the channel was given, without marks of repeats.
fn told(scene: &Scene) -> Vec<String> {
    sent(scene).into_iter().map(|text| text.trim_end_matches(" (repeat)").to_owned()).collect()
}

/// Kills the owner once a question waits, and gives the question as the next owner has it.
fn killed_while_asking(scene: &Scene, up: &Up<'_>) -> Value {
    let first = up.process(None);
    let asked = until(scene, "a question", || questions(scene).into_iter().next());
    kill(first);
    up.process(Some(first));
    let again = until(scene, "the same question", || questions(scene).into_iter().next());
    assert_eq!(again["id"], asked["id"]);
    assert_eq!(entries(scene), 0, "nothing runs before the answer");
    again
}

fn questions(scene: &Scene) -> Vec<Value> {
    scene.run(&["questions", "list", "--json"]).ok().lines()
}

/// How many reminders there are.
fn entries(scene: &Scene) -> usize {
    if scene.home().join("data/scheduler/schedules.json").exists() {
        book(scene)["entries"].as_object().map_or(0, |entries| entries.len())
    } else {
        0
    }
}

/// The code of the last message that has one.
fn code(scene: &Scene) -> Option<String> {
    let all = told(scene);
    let offered = |text: &&String| {
        ["yes=yes ", "`yes "].iter().find_map(|before| text.split(before).nth(1)).map(str::to_owned)
    };
    Some(all.iter().rev().find_map(|text| offered(&text))?.chars().take(6).collect())
}

/// The turn was run once, asked once, answered once by this source, and replays.
fn ended_once(scene: &Scene, session: &str, by: &str) {
    until(scene, "the end of the turn", || {
        let frames = scene.frames(session);
        frames.iter().any(|frame| frame["kind"] == "turn.ended").then_some(())
    });
    let frames = scene.frames(session);
    let count = |kind: &str| frames.iter().filter(|frame| frame["kind"] == kind).count();
    assert_eq!((count("input.received"), count("turn.ended")), (1, 1), "{frames:#?}");
    assert_eq!((count("approval.requested"), count("approval.answered")), (1, 1), "{frames:#?}");
    let answered = frames.iter().find(|frame| frame["kind"] == "approval.answered").unwrap();
    assert_eq!(answered["source"], json!({ "surface": by }), "{answered:#}");
    assert_eq!(entries(scene), 1, "the tool ran once");
    let verdict = scene.run(&["replay", session, "--json"]).ok().json();
    assert_eq!(verdict["identical"], true, "{verdict}");
    assert_eq!(questions(scene), Vec::<Value>::new());
}

#[test]
fn an_approval_of_a_channel_is_answered_by_a_command_after_a_kill() {
    let scene = home();
    let up = Up::begin(&scene);
    says(&scene, "ada", "remind me to call mum");
    until(&scene, "the code", || code(&scene));
    let question = killed_while_asking(&scene, &up);
    assert_eq!((&question["channel"], &question["user"]), (&json!("relay"), &json!("ada")));
    assert_eq!((&question["tool"], &question["arguments"]["in"]), (&json!("schedule_once"), &json!("10h")));
    let id = question["id"].as_str().unwrap();
    scene.run(&["questions", "answer", id, "perhaps"]).fails(2, "HF-9001");
    scene.run(&["questions", "answer", id, "yes"]).ok();
    ended_once(&scene, "relay.ada", "approval");
    until(&scene, "the rest", || (told(&scene).len() >= 3).then_some(()));
    let told = told(&scene);
    let with = |part: &str| told.iter().filter(|text| text.contains(part)).count();
    assert_eq!(
        (with("wants to run (session relay.ada)\n{"), with("I will remind you.")),
        (1, 1),
        "{told:#?}"
    );
    assert_eq!(with("answered elsewhere: approved"), 1, "{told:#?}");
    // The second answer is too late, and says so.
    scene.run(&["questions", "answer", id, "no"]).fails(2, "HF-2007");
    up.down();
    scene.verifies();
}

#[test]
fn an_approval_of_a_channel_is_answered_there_with_its_code_after_a_kill() {
    let scene = home();
    let up = Up::begin(&scene);
    says(&scene, "ada", "remind me to call mum");
    let code = until(&scene, "the code", || code(&scene));
    killed_while_asking(&scene, &up);
    // Somebody else who has read the code has a turn of their own, and is denied.
    says(&scene, "mallory", &format!("yes {code}"));
    until(&scene, "an answer for Mallory", || {
        told(&scene).contains(&"mallory: I will remind you.".to_owned()).then_some(())
    });
    assert_eq!(entries(&scene), 0);
    let denied = scene.frames("relay.mallory");
    let answered = denied.iter().find(|frame| frame["kind"] == "approval.answered").unwrap();
    assert_eq!(answered["body"]["answer"]["deny"]["reason"], "nobody is there to ask", "{answered:#}");
    says(&scene, "ada", &format!("yes {code}"));
    ended_once(&scene, "relay.ada", "relay/ada");
    up.down();
    scene.verifies();
}

#[test]
fn an_approval_of_the_terminal_is_answered_on_a_channel_after_a_kill() {
    let scene = home();
    let up = Up::begin(&scene);
    let mut client = scene.rpc(&[]);
    let open = json!({ "channel": "chat", "answers": true, "notices": true });
    let session = client.ask("session.open", open)["session"].as_str().unwrap().to_owned();
    client.send("session.send", json!({ "session": session, "text": "remind me to call mum" }));
    client.approval(&session);
    killed_while_asking(&scene, &up);
    drop(client);
    // Nobody was asked on the channel; the owner there sees what waits.
    assert_eq!(told(&scene), Vec::<String>::new());
    says(&scene, "ada", "/questions");
    let code = until(&scene, "the list", || code(&scene));
    says(&scene, "ada", &format!("yes {code}"));
    ended_once(&scene, &session, "relay/ada");
    until(&scene, "the reply", || {
        told(&scene).contains(&"ada: `schedule_once` was approved.".to_owned()).then_some(())
    });
    up.down();
    scene.verifies();
}

#[test]
fn an_approval_of_a_channel_is_answered_over_the_protocol_after_a_kill() {
    let scene = home();
    let up = Up::begin(&scene);
    says(&scene, "ada", "remind me to call mum");
    until(&scene, "the code", || code(&scene));
    let question = killed_while_asking(&scene, &up);
    let mut client = scene.rpc(&[]);
    let listed = client.ask("questions.list", json!({}));
    assert_eq!(listed, json!([question]));
    let (session, approval) = (&question["session"], &question["request"]);
    let shown = client.ask("approval.show", json!({ "session": session, "approval": approval }));
    assert_eq!(shown["tool"], "schedule_once");
    let yes = json!({ "session": session, "approval": approval, "answer": "once" });
    client.ask("approval.answer", yes.clone());
    client.refused("approval.answer", yes);
    ended_once(&scene, "relay.ada", "approval");
    drop(client);
    up.down();
    scene.verifies();
}

/// Without an owner, the command that answers goes on with the turn itself.
#[test]
fn an_approval_of_a_chat_that_died_is_answered_by_a_command_alone() {
    let scene = home();
    let mut client = scene.rpc(&[]);
    let session = client.ask("session.open", json!({ "channel": "chat", "answers": true }))["session"]
        .as_str()
        .unwrap()
        .to_owned();
    client.send("session.send", json!({ "session": session, "text": "remind me to call mum" }));
    client.approval(&session);
    kill(u64::from(client.child.id()));
    client.child.wait().unwrap();
    let question = questions(&scene).remove(0);
    assert_eq!(question["session"], json!(session));
    // To look at it changes nothing.
    assert_eq!(questions(&scene), std::slice::from_ref(&question));
    let ran = scene.run(&["questions", "answer", question["id"].as_str().unwrap(), "yes"]).ok();
    assert!(ran.out.contains("I will remind you."), "{ran:#?}");
    ended_once(&scene, &session, "approval");
    scene.verifies();
}
