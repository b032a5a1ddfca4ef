//! One process owns a home and others attach to it: they print what they print alone, and a client of the protocol can hold a whole
//! conversation, answer what waits for a person, and take up what a dead owner left.

use std::fs;

use crate::shared::{Ran, Rpc, Scene, bodies, contains, finish, tree};
use serde_json::{Value, json};

fn set(key: &str) -> Value {
    json!({ "calls": [{ "tool": "kv_set", "arguments": { "key": key, "value": key } }] })
}

fn says(text: &str) -> Value {
    json!({ "says": text })
}

/// What was said, without ids, times, digests and widths.
fn plain(text: &str) -> String {
    let mut words = Vec::new();
    for line in text.lines() {
        // The last part of an id may have letters alone.
        let is_id = |word: &str| word.len() == 4 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
        let word = |word: &str| {
            if is_id(word) || word.bytes().any(|byte| byte.is_ascii_digit()) {
                "#".to_owned()
            } else {
                word.to_owned()
            }
        };
        let apart = line.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
        words.push(apart.map(word).collect::<Vec<_>>().join(" "));
    }
    words.join("\n")
}

#[test]
fn a_command_prints_the_same_beside_an_owner_and_alone() {
    let (alone, beside) = (Scene::new(), Scene::new());
    let owner = beside.rpc(&[]);
    let lines: &[&[&str]] = &[
        &["call", "kv_get", r#"{"key": "a"}"#],
        &["call", "kv_get", r#"{"key": "a"}"#, "--json"],
        &["call", "kv_set", r#"{"key": "a", "value": 1}"#],
        &["call", "kv_set", r#"{"key": "a", "value": 1}"#, "--json"],
        &["call", "nobody", "{}"],
        &["call", "file_list", "-q"],
        &["run", "hello", "--session", "one"],
        &["run", "/file_list", "--session", "one"],
        &["run", "hello", "--session", "two", "--json"],
        &["run", "hello", "--model", "nobody"],
        &["-v", "run", "/kv_get key=a", "--session", "three"],
        &["tools"],
        &["tools", "--json"],
        &["agents"],
        &["ext", "list"],
        &["ext", "list", "--json"],
        &["ext", "show", "kv"],
        &["ext", "show", "nobody"],
        &["session", "rename", "one", "The first"],
        &["session", "show", "one"],
        &["session", "show", "two", "--json"],
        &["session", "show", "nobody"],
        &["session", "list", "--all"],
        &["session", "list", "--json"],
        &["session", "fork", "one"],
        &["log", "show", "one"],
        &["log", "show", "one", "--json", "--kind", "turn.ended"],
        &["log", "export", "two"],
        &["log", "verify", "one"],
        &["replay", "one"],
        &["policy", "show"],
        &["policy", "explain", "kv_set", "--json"],
        &["policy", "explain", "kv", "kv_get"],
        &["model", "list"],
        &["session", "delete", "two", "--yes"],
        &["log", "gc", "--keep-frames", "5"],
        &["log", "verify"],
    ];
    for line in lines {
        let (one, other): (Ran, Ran) = (alone.run(line), beside.run(line));
        assert_eq!(one.code, other.code, "{line:?}: {one:#?} {other:#?}");
        let sorted = |text: &str| {
            // The folders have other names.
            let roots = [&alone, &beside].map(|scene| scene.root().display().to_string());
            let text = roots.iter().fold(text.to_owned(), |text, root| text.replace(root.as_str(), "/scene"));
            let mut lines: Vec<String> = plain(&text).lines().map(str::to_owned).collect();
            // Sessions that ended in the same millisecond are in no order.
            // What two context providers ask for at the same time is recorded as it comes.
            if line.contains(&"list") || line.contains(&"gc") || line.contains(&"show") {
                lines.sort();
            }
            lines
        };
        // How many owners there were stands in the system's stream alone.
        let counts = line == &["log", "verify"];
        if !counts {
            assert_eq!(sorted(&one.out), sorted(&other.out), "{line:?}");
        }
        assert_eq!(sorted(&one.err), sorted(&other.err), "{line:?}");
    }
    owner.end();
    alone.verifies();
    beside.verifies();
}

/// Says something, and returns the outcome once every question to the user has been answered so.
fn turn(rpc: &mut Rpc, session: &str, answers: &[Value]) -> (Vec<Value>, Value) {
    let sent = rpc.send("session.send", json!({ "session": session, "text": "go on" }));
    let mut asked = Vec::new();
    for answer in answers {
        let waiting = rpc.approval(session);
        let params = json!({ "session": session, "approval": waiting["approval"], "answer": answer });
        rpc.ask("approval.answer", params);
        asked.push(waiting);
    }
    let end = rpc.answer(sent);
    assert!(end.get("error").is_none(), "{end}");
    assert!(!rpc.asks_more(), "it asked once more: {:#?}", rpc.received);
    (asked, end["result"].clone())
}

fn kept(scene: &Scene, key: &str) -> Value {
    let got = scene.run(&["call", "kv_get", &json!({ "key": key }).to_string(), "--json"]).ok().json();
    got["result"]["value"].clone()
}

#[test]
fn a_conversation_over_rpc_with_every_answer() {
    let scene = Scene::new();
    scene.policy("# Mine.\nprofile: standard\n");
    let steps = json!([
        set("once"),
        says("1"),
        set("denied"),
        says("2"),
        set("edited"),
        says("3"),
        set("session"),
        says("4"),
        set("again"),
        says("5"),
    ]);
    let model = scene.script("answers", &steps);
    let mut rpc = scene.rpc(&[]);
    let open =
        json!({ "session": "talk", "create": true, "model": model, "answers": true, "frames_from": 0 });
    let opened = rpc.ask("session.open", open);
    assert_eq!((&opened["session"], &opened["resumed"]), (&json!("talk"), &json!(false)));

    let (asked, end) = turn(&mut rpc, "talk", &[json!("once")]);
    assert_eq!((&asked[0]["tool"], &asked[0]["arguments"]["key"]), (&json!("kv_set"), &json!("once")));
    assert!(asked[0]["reasons"][0]["reason"].as_str().unwrap().contains("asks first"), "{asked:#?}");
    assert_eq!((&end["outcome"], &end["answer"]["json"]), (&json!("answered"), &json!("1")));
    assert_eq!(kept(&scene, "once"), "once");

    let deny = json!({ "deny": { "reason": "not today" } });
    turn(&mut rpc, "talk", &[deny]);
    assert_eq!(kept(&scene, "denied"), Value::Null);

    // Other arguments are another call: every gate is asked again, and the person has decided on these already.
    let edit = json!({ "edit": { "arguments": { "key": "edited", "value": "by hand" } } });
    turn(&mut rpc, "talk", &[edit]);
    assert_eq!(kept(&scene, "edited"), "by hand");

    turn(&mut rpc, "talk", &[json!("session")]);
    turn(&mut rpc, "talk", &[]);
    assert_eq!((kept(&scene, "session"), kept(&scene, "again")), (json!("session"), json!("again")));
    assert_eq!(
        scene.policy_text(),
        "# Mine.\nprofile: standard\n",
        "nothing was to be remembered for longer"
    );

    // Every frame came, once and in order, as it is stored.
    let stored = scene.frames("talk");
    rpc.wait(|message| message["method"] == "frame" && message["params"] == *stored.last().unwrap());
    let mut came: Vec<Value> = rpc
        .received
        .iter()
        .filter(|message| message["method"] == "frame")
        .map(|message| message["params"].clone())
        .collect();
    came.push(stored.last().unwrap().clone());
    assert_eq!(came, stored);
    let texts: String = rpc
        .received
        .iter()
        .filter(|message| message["method"] == "text")
        .filter_map(|message| message["params"]["text"].as_str())
        .collect();
    assert_eq!(texts, "12345");
    rpc.end();
    scene.verifies();
    scene.run(&["replay", "talk"]).ok();
}

#[test]
fn always_is_a_rule_from_the_next_turn_on() {
    let scene = Scene::new();
    scene.policy("# Mine.\nprofile: standard\n");
    let model = scene.script("always", &json!([set("a"), says("1"), set("b"), says("2")]));
    let mut rpc = scene.rpc(&[]);
    let open = |session: &str| json!({ "session": session, "create": true, "model": model, "answers": true });
    rpc.ask("session.open", open("one"));
    let (asked, _) = turn(&mut rpc, "one", &[json!("always")]);
    let text = scene.policy_text();
    assert!(text.starts_with("# Mine.\nprofile: standard\n") && text.contains("always/kv/kv_set"), "{text}");
    let explained = scene.run(&["policy", "explain", "kv_set", "--json"]).ok().json();
    assert_eq!(explained["verdict"], json!({ "decision": "allow", "rule": "always/kv/kv_set" }));
    // In this session and in others, and for the next owner of the home.
    turn(&mut rpc, "one", &[]);
    rpc.ask("session.open", open("two"));
    turn(&mut rpc, "two", &[]);
    let frames = scene.frames("two");
    let decided = bodies(&frames, "hook.decided");
    let ruled: Vec<_> = decided.iter().map(|body| &body["rule"]).filter(|rule| !rule.is_null()).collect();
    assert_eq!(ruled, ["always/kv/kv_set"]);
    // An answer to an unknown or answered question is refused, and writes nothing.
    for approval in [asked[0]["approval"].clone(), json!(6), json!(0), json!(4711)] {
        let again = json!({ "session": "one", "approval": approval, "answer": "always" });
        assert!(rpc.refused("approval.answer", again)["data"]["code"].as_str().unwrap().starts_with("HF-"));
    }
    assert_eq!(scene.policy_text(), text);
    rpc.end();
    scene.run(&["call", "kv_set", r#"{"key": "c", "value": 1}"#]).ok();
    scene.run(&["--profile", "safe", "call", "kv_set", r#"{"key": "c", "value": 2}"#]).fails(3, "HF-3103");
    assert_eq!(kept(&scene, "c"), 1);
    scene.verifies();
}

#[test]
fn under_safe_always_is_once() {
    let scene = Scene::new();
    scene.policy("profile: safe\n");
    let model = scene.script("safe", &json!([set("a"), says("1"), set("b"), says("2")]));
    let mut rpc = scene.rpc(&[]);
    rpc.ask("session.open", json!({ "session": "one", "create": true, "model": model, "answers": true }));
    turn(&mut rpc, "one", &[json!("always")]);
    turn(&mut rpc, "one", &[json!("session")]);
    assert_eq!(scene.policy_text(), "profile: safe\n");
    rpc.end();
    scene.verifies();
}

#[test]
fn two_clients_see_the_same_and_the_first_answer_counts() {
    let scene = Scene::new();
    let model = scene.script("two", &json!([set("a"), says("done")]));
    let mut owner = scene.rpc(&[]);
    let mut guest = scene.rpc(&[]);
    let open = json!({ "session": "one", "create": true, "model": model, "answers": true });
    owner.ask("session.open", open.clone());
    assert_eq!(guest.ask("session.open", open.clone())["resumed"], true);
    let sent = owner.send("session.send", json!({ "session": "one", "text": "go on" }));
    let (mine, theirs) = (owner.approval("one"), guest.approval("one"));
    assert_eq!(mine, theirs);
    // A client that comes later finds it in its feed, which begins with the running turn.
    let mut late = scene.rpc(&[]);
    late.ask("session.open", open);
    assert_eq!(late.approval("one"), mine);
    let answer = json!({ "session": "one", "approval": mine["approval"], "answer": "once" });
    guest.ask("approval.answer", answer.clone());
    for client in [&mut owner, &mut guest, &mut late] {
        assert_eq!(client.frame("approval.answered")["body"]["approval"], mine["approval"]);
        assert_eq!(client.frame("turn.ended")["body"]["outcome"], "answered");
    }
    assert_eq!(owner.refused("approval.answer", answer)["data"]["code"], "HF-3002");
    assert_eq!(owner.answer(sent)["result"]["outcome"], "answered");
    late.end();
    guest.end();
    owner.end();
    assert_eq!(kept(&scene, "a"), "a");
    scene.verifies();
}

#[test]
fn a_turn_is_cancelled_in_the_middle_of_its_answer() {
    let scene = Scene::new();
    let model = scene.script("stalls", &json!([{ "stalls": "I was about to say something, and then I thought about it for so long that nothing more was written" }, says("done")]));
    let mut rpc = scene.rpc(&[]);
    rpc.ask("session.open", json!({ "session": "one", "create": true, "model": model }));
    let sent = rpc.send("session.send", json!({ "session": "one", "text": "go on" }));
    let waits = rpc.send("session.wait", json!({ "session": "one" }));
    let text = rpc.notice("text")["text"].clone();
    assert!(text.as_str().unwrap().starts_with("I was about to"), "{text}");
    rpc.ask("session.cancel", json!({ "session": "one" }));
    for id in [sent, waits] {
        let end = rpc.answer(id);
        assert!(end["result"]["outcome"]["cancelled"]["reason"].is_string(), "{end}");
    }
    assert_eq!(rpc.refused("session.cancel", json!({ "session": "one" }))["data"]["code"], "HF-3002");
    // What follows at once finds the turn that was asked for before it.
    let sent = rpc.send("session.send", json!({ "session": "one", "text": "go on" }));
    rpc.ask("session.cancel", json!({ "session": "one" }));
    assert!(rpc.answer(sent)["result"]["outcome"]["cancelled"].is_object());
    rpc.end();
    scene.verifies();
}

#[test]
fn what_is_no_request_is_answered_and_the_conversation_goes_on() {
    let scene = Scene::new();
    for beside_an_owner in [false, true] {
        let owner = beside_an_owner.then(|| scene.rpc(&[]));
        let mut rpc = scene.rpc(&[]);
        for (line, code) in [("not json", -32700), ("{\"id\": 1", -32700), ("[1, 2]", -32600), ("5", -32600)]
        {
            rpc.write(line.as_bytes());
            let answer = rpc.answer_to_nothing();
            assert_eq!(answer["error"]["code"], code, "{line}: {answer}");
            assert_eq!(answer["error"]["data"]["code"], "HF-9001");
        }
        rpc.write(b"\xff\xfe");
        assert_eq!(rpc.answer_to_nothing()["error"]["code"], -32700);
        rpc.write(b"   ");
        for (method, params, code) in [
            ("nobody", json!({}), -32601),
            ("", json!({}), -32601),
            ("session.send", json!({ "session": "one" }), -32602),
            ("session.send", json!({ "session": 5, "text": "x" }), -32602),
            ("session.send", json!([]), -32602),
            ("tools.list", json!({ "more": 1 }), -32602),
            ("approval.answer", json!({ "session": "one", "approval": 1, "answer": "perhaps" }), -32602),
            ("hello", json!({ "version": 2, "client": "test" }), -32000),
            ("session.open", json!({ "session": "nobody" }), -32000),
            ("session.send", json!({ "session": "nobody", "text": "x" }), -32000),
            ("ui.answer", json!({ "session": "nobody", "request": 1, "answer": true }), -32000),
            ("policy.explain", json!({ "tool": "nobody" }), -32000),
        ] {
            let refusal = rpc.refused(method, params.clone());
            assert_eq!(refusal["code"], code, "{method} {params}: {refusal}");
            let data = &refusal["data"];
            assert!(
                data["code"].as_str().unwrap().starts_with("HF-") && data["help"].as_str().unwrap().len() > 5,
                "{refusal}"
            );
        }
        // A message of a megabyte is one like any other.
        let session = format!("large-{beside_an_owner}");
        rpc.ask("session.open", json!({ "session": session, "create": true, "model": scene.script("large", &json!([says("long")])) }));
        assert_eq!(
            rpc.refused("ui.answer", json!({ "session": session, "request": 1, "answer": true }))["data"]["code"],
            "HF-3002"
        );
        let end = rpc.ask("session.send", json!({ "session": session, "text": "word ".repeat(200_000) }));
        assert_eq!(end["answer"]["json"], "long");
        // The last request needs no newline, and its answer comes before the end.
        rpc.end();
        if let Some(owner) = owner {
            owner.end();
        }
        let request = format!(
            r#"{{"id":"last","method":"session.send","params":{{"session":"{session}","text":"more"}}}}"#
        );
        let ran = scene.run_with(&["rpc"], request.as_bytes()).ok();
        assert!(
            ran.lines().iter().any(|line| line["id"] == "last" && line["result"]["outcome"] == "answered"),
            "{ran:#?}"
        );
    }
    scene.verifies();
}

#[test]
fn an_approval_outlives_its_owner() {
    for killed in [false, true] {
        let scene = Scene::new();
        let model = scene.script("waits", &json!([set("a"), says("done")]));
        let mut first = scene.rpc(&[]);
        first.ask(
            "session.open",
            json!({ "session": "one", "create": true, "model": model, "answers": true }),
        );
        first.send("session.send", json!({ "session": "one", "text": "go on" }));
        let asked = first.approval("one");
        // The first one ends without an answer, or is ended.
        if killed {
            first.kill()
        } else {
            first.end()
        }
        assert_eq!(kept(&scene, "a"), Value::Null);
        let mut second = scene.rpc(&[]);
        let opened = second.ask("session.open", json!({ "session": "one", "answers": true }));
        assert_eq!(opened["resumed"], true);
        let again = second.approval("one");
        assert_eq!((&again["approval"], &again["tool"]), (&asked["approval"], &asked["tool"]));
        let waits = second.send("session.wait", json!({ "session": "one" }));
        second.ask(
            "approval.answer",
            json!({ "session": "one", "approval": again["approval"], "answer": "once" }),
        );
        assert_eq!(second.answer(waits)["result"]["outcome"], "answered");
        second.end();
        assert_eq!(kept(&scene, "a"), "a");
        scene.verifies();
        scene.run(&["replay", "one"]).ok();
    }
}

#[test]
fn forked_renamed_deleted_and_brought_back() {
    const SAID: &str = "the password is swordfish";
    let scene = Scene::new();
    fs::write(scene.work().join("notes.txt"), "Nothing much.").unwrap();
    let look = json!({ "calls": [{ "tool": "file_read", "arguments": { "path": "notes.txt" } }] });
    let model = scene.script("long", &json!([look, says("I see."), says("And now?"), says("Elsewhere.")]));
    let say = |session: &str, text: &str| {
        scene.run(&["run", text, "--session", session, "--model", &model]).ok().out
    };
    let mut owner = scene.rpc(&[]);
    assert_eq!(say("one", SAID), "I see.\n");
    let first = scene.frames("one").len();
    assert_eq!(say("one", "more"), "And now?\n");

    // A copy goes on from where the first turn ended, and the original is as it was.
    let at = (first - 1).to_string();
    let fork = scene.run(&["session", "fork", "one", "--at", &at, "--json"]).ok().json();
    let fork = fork["session"].as_str().unwrap().to_owned();
    let before = scene.frames("one");
    assert_eq!(say(&fork, "another way"), "And now?\n");
    assert_eq!(scene.frames("one"), before);
    scene.run(&["replay", &fork]).ok();
    scene.run(&["session", "rename", &fork, "The other way"]).ok();
    // A later command does not take the name away.
    owner.ask("command.run", json!({ "session": fork, "command": "help" }));
    let listed = scene.run(&["session", "list"]).ok().out;
    assert!(listed.contains("The other way") && listed.contains(SAID), "{listed}");

    // A copy of the home while it is in use.
    let archive = scene.root().join("copy.tar.zst");
    scene.run(&["backup", archive.to_str().unwrap()]).ok();
    scene.run(&["backup", archive.to_str().unwrap()]).fails(2, "HF-2001");

    // Deleted is gone: no byte of it is left, and the log still proves itself.
    scene.run(&["session", "delete", "one", "--yes"]).ok();
    scene.run(&["session", "delete", &fork, "--yes"]).ok();
    owner.end();
    for (path, content) in tree(&scene.home()) {
        assert!(!contains(&content, "swordfish"), "it is still in {}", path.display());
    }
    scene.verifies();
    scene.run(&["replay", "one"]).fails(1, "HF-2008");

    let elsewhere = scene.root().join("elsewhere");
    let there = |arguments: &[&str]| finish(scene.command_at(&elsewhere, arguments).spawn().unwrap());
    there(&["restore", archive.to_str().unwrap()]).ok();
    there(&["log", "verify"]).ok();
    there(&["replay", "one", "--strict"]).ok();
    there(&["replay", &fork]).ok();
    assert!(there(&["session", "show", "one"]).ok().out.contains(SAID));
    assert_eq!(there(&["run", "more", "--session", "one"]).ok().out, "Elsewhere.\n");
    there(&["restore", archive.to_str().unwrap()]).fails(2, "HF-9001");
    there(&["log", "verify"]).ok();
}

// Finding B4.
/// A command works in the folder in which it was started, also if another process owns the home and was started elsewhere.
#[test]
fn a_command_beside_an_owner_works_in_its_own_folder() {
    let scene = Scene::new();
    fs::write(scene.work().join("of-the-owner.txt"), "").unwrap();
    fs::write(scene.outside().join("of-the-command.txt"), "").unwrap();
    let owner = scene.rpc(&[]);
    let mut command = scene.command(&["call", "file_list", "-q"]);
    let listed = command.current_dir(scene.outside()).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(listed.contains("of-the-command.txt") && !listed.contains("of-the-owner.txt"), "{listed}");
    owner.end();
    // An owner in a folder above the home takes no tools away from the others.
    let above = crate::shared::Rpc::start({
        let mut command = scene.command(&["rpc"]);
        command.current_dir(scene.root());
        command
    });
    let listed = scene.run(&["call", "file_list", "-q"]).ok();
    assert!(listed.out.contains("of-the-owner.txt"), "{listed:#?}");
    above.end();
    scene.verifies();
}

// Finding B4.
/// `--profile` is that of the sessions which a command starts: it holds beside another owner, and does not reach other sessions.
#[test]
fn a_profile_holds_for_the_sessions_of_its_client_alone() {
    let scene = Scene::new();
    let write = r#"{"key": "a", "value": 1}"#;
    let owner = scene.rpc(&["--profile", "full-auto"]);
    scene.run(&["call", "kv_set", write]).fails(3, "HF-3103");
    let lax = scene.run(&["--profile", "full-auto", "run", "/kv_set key=b value=1", "--session", "lax"]).ok();
    assert!(lax.out.contains("kv_set"), "{lax:#?}");
    let decided = scene.frames("lax");
    let rules: Vec<_> = bodies(&decided, "hook.decided").iter().map(|body| body["rule"].clone()).collect();
    assert!(rules.contains(&json!("full-auto/write")), "{rules:?}");
    let tools = scene.run(&["--profile", "full-auto", "tools", "--json"]).ok().lines();
    assert!(tools.iter().all(|tool| tool["policy"] == "allow"), "{tools:#?}");
    // A session keeps its own.
    scene.run(&["--profile", "safe", "run", "hello", "--session", "lax"]).fails(2, "HF-1506");
    scene.run(&["run", "/kv_set key=c value=1", "--session", "lax"]).ok();
    assert_eq!(kept(&scene, "c"), 1);
    owner.end();
    scene.run(&["replay", "lax"]).ok();
    // Of a home that is up under a profile, a session may only ask for a stricter one.
    let mut up = scene.command(&["--profile", "safe", "up", "--unsupervised"]).spawn().unwrap();
    crate::shared::until("the owner listens", || scene.run(&["status"]).out.contains("process"));
    scene.run(&["--profile", "full-auto", "call", "kv_set", write]).fails(2, "HF-1506");
    scene.run(&["down"]).ok();
    up.wait().unwrap();
    scene.verifies();
}
