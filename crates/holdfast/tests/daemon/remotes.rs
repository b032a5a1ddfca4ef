//! Tools of another Holdfast: two homes, each with a process, of which one serves and one calls.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};

use serde_json::{Value, json};

use crate::shared::{Owner, Scene, until};

const TOKEN: &str = "correct-horse-battery-staple";

/// A port that nobody listens on.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A home that serves tools to `laptop`.
fn serving(port: u16, tools: &str) -> Scene {
    let mut scene = Scene::new();
    scene.variable("LAPTOP_TOKEN", TOKEN);
    scene.settings(&format!(
        "models: {{ default: offline }}\nserve:\n  address: 127.0.0.1:{port}\n  tools: [{tools}]\n  callers: {{ laptop: LAPTOP_TOKEN }}\n"
    ));
    scene.policy("profile: full-auto\n");
    scene
}

/// A home that calls it `office`.
fn calling(port: u16, token: &str) -> Scene {
    let mut scene = Scene::new();
    scene.variable("OFFICE_TOKEN", token);
    settings(&scene, port, "");
    scene.policy("profile: full-auto\n");
    scene
}

fn settings(scene: &Scene, port: u16, more: &str) {
    scene.settings(&format!(
        "models: {{ default: offline }}\nremotes:\n  office: {{ address: '127.0.0.1:{port}', token: OFFICE_TOKEN{more} }}\n"
    ));
}

fn remember(scene: &Scene, value: &str) -> crate::shared::Ran {
    scene.run(&["call", "office_kv_set", &json!({ "key": "who", "value": value }).to_string()])
}

fn sessions(scene: &Scene) -> Vec<Value> {
    scene.run(&["session", "list", "--all", "--json"]).ok().lines()
}

#[test]
fn a_tool_of_another_holdfast_is_called_recorded_on_both_sides_and_replayed_without_it() {
    let port = free_port();
    let (office, laptop) = (serving(port, "kv_set, kv_get"), calling(port, TOKEN));
    let owner = Owner::begin(&office);
    remember(&laptop, "ada").ok();
    let got = laptop.run(&["call", "office_kv_get", r#"{"key": "who"}"#]).ok();
    assert!(got.out.contains("ada"), "{got:?}");
    let tools = laptop.run(&["tools"]).ok().out;
    assert!(tools.contains("office_kv_get") && !tools.contains("office_shell"), "{tools}");
    // The other side has recorded the calls, and who made them.
    let theirs = sessions(&office);
    let origins: Vec<&str> = theirs.iter().filter_map(|it| it["channel"].as_str()).collect();
    assert_eq!(origins, ["remote/laptop"; 2], "{theirs:?}");
    office.verifies();
    // Here they replay without the other side.
    drop(owner);
    let own = sessions(&laptop);
    assert_eq!(own.len(), 2, "{own:?}");
    for session in own {
        let replayed = laptop.run(&["replay", session["session"].as_str().unwrap()]).ok();
        assert!(format!("{}{}", replayed.out, replayed.err).contains("remote-office"), "{replayed:?}");
    }
    laptop.verifies();
}

#[test]
fn the_policy_of_both_sides_counts() {
    let port = free_port();
    let (office, laptop) = (serving(port, "kv_set"), calling(port, TOKEN));
    let rule = "rules: [{ name: not-from-outside, decision: deny, match: { origins: ['remote/*'] }, reason: Not for you. }]\n";
    office.policy(&format!("profile: full-auto\n{rule}"));
    let _owner = Owner::begin(&office);
    let denied = remember(&laptop, "ada");
    assert!(denied.err.contains("HF-3103") && denied.err.contains("Not for you."), "{denied:?}");
    // What would ask there is denied there: nobody at this end answers for its owner.
    office.policy("profile: standard\n");
    until("the policy is in force", || remember(&laptop, "ada").err.contains("nobody is there to ask"));
    // Here it is judged first, like a tool of this home.
    laptop.policy(
        "profile: full-auto\nrules: [{ name: never, decision: deny, match: { tools: ['office_*'] } }]\n",
    );
    let before = sessions(&office).len();
    remember(&laptop, "ada").fails(3, "HF-3103");
    assert_eq!(sessions(&office).len(), before, "the call did not leave");
}

#[test]
fn a_dead_remote_and_a_wrong_token_take_nothing_else_away() {
    let port = free_port();
    let laptop = calling(port, TOKEN);
    let doctor = laptop.run(&["ext", "doctor", "remote-office"]).out;
    assert!(doctor.contains("HF-4411"), "{doctor}");
    remember(&laptop, "ada").fails(1, "HF-3101");
    laptop.run(&["call", "kv_set", r#"{"key": "a", "value": "b"}"#]).ok();
    let office = serving(port, "kv_set");
    let owner = Owner::begin(&office);
    let stranger = calling(port, "guessed");
    let doctor = stranger.run(&["ext", "doctor", "remote-office"]).out;
    assert!(doctor.contains("HF-4412"), "{doctor}");
    // One that goes while its tools are known.
    let _up = Owner::begin(&laptop);
    remember(&laptop, "ada").ok();
    drop(owner);
    let gone = remember(&laptop, "ada");
    assert!(gone.err.contains("HF-4411"), "{gone:?}");
}

#[test]
fn a_changed_definition_is_reported_and_must_be_accepted() {
    let port = free_port();
    let (office, laptop) = (serving(port, "kv_set"), calling(port, TOKEN));
    let owner = Owner::begin(&office);
    remember(&laptop, "ada").ok();
    drop(owner);
    // Another tool, which nobody has accepted.
    let text = std::fs::read_to_string(office.home().join("config/settings.yaml")).unwrap();
    office.settings(&text.replace("[kv_set]", "[kv_get, kv_set]"));
    let _owner = Owner::begin(&office);
    let doctor = laptop.run(&["ext", "doctor", "remote-office"]).out;
    assert!(doctor.contains("HF-4413") && doctor.contains("`kv_get`"), "{doctor}");
    remember(&laptop, "ada").fails(1, "HF-3101");
    let (_, rest) = doctor.split_once("remotes.office.definitions: ").unwrap();
    let digest: String = rest.chars().take_while(char::is_ascii_hexdigit).collect();
    settings(&laptop, port, &format!(", definitions: '{digest}'"));
    remember(&laptop, "ada").ok();
}

#[test]
fn strangers_learn_nothing_and_are_shut_out() {
    let port = free_port();
    let office = serving(port, "kv_set");
    let _owner = Owner::begin(&office);
    let ask = |line: String| {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
        stream.write_all(line.as_bytes()).ok()?;
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer).ok()?;
        (!answer.is_empty()).then_some(answer)
    };
    let request = |method: &str, params: Value| {
        format!("{}\n", json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }))
    };
    // Nothing of the client protocol, nothing before the token, no endless line.
    let call = request("remote.call", json!({ "tool": "kv_set", "arguments": {} }));
    for line in [request("session.list", json!({})), call, "x".repeat(1 << 20)] {
        let answer = ask(line).unwrap_or_default();
        assert!(!answer.contains("kv_set") && !answer.contains("result"), "{answer}");
    }
    let hello = |token: &str| request("remote.hello", json!({ "protocol": "0.1", "token": token }));
    assert!(ask(hello("guess")).is_some_and(|answer| answer.contains("HF-4412")));
    until("it is shut out", || ask(hello("guess again")).is_none());
    assert_eq!(ask(hello(TOKEN)), None, "for a while, also with the right token");
    assert!(office.is_up());
}

#[test]
fn other_machines_are_refused_unless_the_settings_say_so() {
    let scene = Scene::new();
    let text = "serve: { address: '0.0.0.0:7441', tools: [kv_get], callers: { laptop: LAPTOP_TOKEN } }\n";
    scene.settings(text);
    let refused = scene.run(&["tools"]);
    assert!(refused.err.contains("HF-1101") && refused.err.contains("not encrypted"), "{refused:?}");
    let mut laptop = Scene::new();
    laptop.variable("OFFICE_TOKEN", TOKEN);
    laptop.settings("remotes: { office: { address: '192.0.2.1:7441', token: OFFICE_TOKEN } }\n");
    let doctor = laptop.run(&["ext", "doctor", "remote-office"]).out;
    assert!(doctor.contains("HF-4412") && doctor.contains("insecure: true"), "{doctor}");
}
