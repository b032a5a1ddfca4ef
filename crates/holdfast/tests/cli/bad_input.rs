//! What the program says when what it is given is wrong: a code, what, where, and what to do; the right exit code; nothing half-done;
//! and the next command works.

use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use crate::shared::{Scene, bodies, contains, finish, read_request, tree, until};
use serde_json::json;

const KEY: &str = "sk-planted-4711-0815";
const GET: &[&str] = &["call", "kv_get", r#"{"key": "a"}"#];

/// A file of the home that is wrong: where, what stands there, how the program ends, and what it says of the place.
const FILES: &[(&str, &str, i32, &str, &str)] = &[
    ("config/settings.yaml", "modles: { default: offline }\n", 2, "HF-1103", "settings.yaml:1:1"),
    ("config/settings.yaml", "models:\n  default: [offline]\n", 2, "HF-1101", "settings.yaml:2:"),
    ("config/settings.yaml", "models: five\n", 2, "HF-1101", "settings.yaml:1:9"),
    ("config/settings.yaml", "models: { default: nobody }\n", 2, "HF-5002", ""),
    (
        "config/settings.yaml",
        "models: { default: main, main: { provider: nobody, model: m } }\n",
        2,
        "HF-5008",
        "",
    ),
    ("config/settings.yaml", "models: { default: 'script:/nowhere.yaml' }\n", 2, "HF-5010", "/nowhere.yaml"),
    ("config/settings.yaml", "models: {\n", 2, "HF-1101", "settings.yaml:"),
    ("config/settings.yaml", "\u{0}", 2, "HF-1101", "settings.yaml"),
    ("config/policy.yaml", "rules: [\n", 2, "HF-1201", "policy.yaml:1:8"),
    ("config/policy.yaml", "profile: anything-goes\n", 2, "HF-1201", "policy.yaml:1:"),
    (
        "config/policy.yaml",
        "rules:\n  - { name: a, decision: deny, match: { tools: [shell] }, examples: { not_match: [{ tool: shell }] } }\n",
        2,
        "HF-1202",
        "policy.yaml:2:",
    ),
    ("prompts/main.jinja2", "Hello\n{% if %}\n", 2, "HF-1401", "main.jinja2:2:"),
    ("prompts/orchestrator.jinja2", "{{ nobody.knows }}\n", 2, "HF-1401", "orchestrator.jinja2:1:"),
    (".env", "this is not a line\n", 2, "HF-1301", ".env:1"),
];

#[test]
fn a_file_of_the_home_that_is_wrong_is_named_with_its_place() {
    for (path, text, exit, code, place) in FILES {
        let scene = Scene::new();
        fs::create_dir_all(scene.home().join("prompts")).unwrap();
        let file = scene.home().join(path);
        let good = fs::read(&file).ok();
        scene.secret(&file, text);
        let ran = scene.run(&["run", "hello"]).fails(*exit, code);
        assert!(ran.out.is_empty() && ran.err.contains(place), "{path} {text:?}: {ran:#?}");
        assert_eq!(fs::read_to_string(&file).unwrap(), *text, "it is left as it is");
        // Once it is fixed, everything works as before.
        match good {
            Some(good) => fs::write(&file, good).unwrap(),
            None => fs::remove_file(&file).unwrap(),
        }
        scene.run(&["run", "hello"]).ok();
        scene.verifies();
    }
}

#[test]
fn a_setting_for_what_is_not_installed_is_reported_and_the_rest_works() {
    let scene = Scene::new();
    scene.settings(
        "extensions: { shel: { network: true }, shell: { network: false }, off: { enabled: false } }\n\
         agents: { mian: { model: offline }, main: { model: offline } }\n\
         channels: { default: telegraph, sessions: { telegraph: per_user } }\n\
         context: { providers: { memmory: 100 } }\n",
    );
    let off = scene.home().join("extensions/off");
    fs::create_dir_all(&off).unwrap();
    fs::write(off.join("manifest.yaml"), "id: off\nname: x\nentrypoint: main.py\n").unwrap();
    fs::write(off.join("main.py"), "").unwrap();
    let ran = scene.run(&["run", "hello"]).ok();
    let told: Vec<&str> = ran.err.lines().filter(|line| line.contains("HF-1106")).collect();
    let settings = [
        "extensions.shel",
        "agents.mian",
        "channels.default",
        "channels.sessions.telegraph",
        "context.providers.memmory",
    ];
    for setting in settings {
        assert!(told.iter().any(|line| line.contains(&format!("`{setting}`"))), "{setting}: {ran:#?}");
    }
    assert_eq!(told.len(), settings.len(), "{ran:#?}");
    assert!(ran.err.contains("Did you mean `shell`?"), "{ran:#?}");
}

// An interface that does not exist was accepted everywhere.
#[test]
fn an_interface_that_does_not_exist_is_given_to_nobody() {
    let scene = Scene::new();
    let folder = scene.home().join("extensions/plain");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("main.py"), "class Plain:\n    pass\n").unwrap();
    let manifest = "id: plain\nname: x\nentrypoint: main:Plain\n";
    fs::write(folder.join("manifest.yaml"), manifest).unwrap();
    let ran = scene.run(&["ext", "grant", "plain", "--interface", "agent"]).fails(2, "HF-9001");
    assert!(ran.err.contains("Did you mean `agents`?"), "{ran:#?}");
    scene.run(&["ext", "grant", "plain", "--interface", "shutdown"]).fails(2, "HF-9001");
    fs::write(folder.join("manifest.yaml"), format!("{manifest}grants: {{ interfaces: [nosuch] }}\n"))
        .unwrap();
    let ran = scene.run(&["ext", "check", "plain"]).fails(2, "HF-1007");
    assert!(ran.err.contains("manifest.yaml:4:"), "{ran:#?}");
    fs::remove_dir_all(&folder).unwrap();
    scene.policy(
        "profile: standard\ngrants:\n  - { extension: plain, tied_to: { path: /x }, give: { interfaces: [nosuch] } }\n",
    );
    let ran = scene.run(&["tools"]).fails(2, "HF-1201");
    assert!(ran.err.contains("policy.yaml:3:"), "{ran:#?}");
}

#[test]
fn a_command_that_cannot_be_understood_says_how_it_is_used() {
    let scene = Scene::new();
    scene.run(GET).ok();
    let before = scene.run(&["log", "list", "--json"]).ok().out;
    for (arguments, exit, code) in [
        (&["frobnicate"][..], 2, "HF-9001"),
        (&["tools", "--frobnicate"], 2, "HF-9001"),
        (&["run"], 2, "HF-9001"),
        (&["--profile", "anything-goes", "tools"], 2, "HF-9001"),
        (&["call", "kv_get", "{not json"], 2, "HF-9001"),
        (&["run", "hello", "--model", "nobody"], 2, "HF-5002"),
        (&["run", "hello", "--model", "script:/nowhere.yaml"], 2, "HF-5010"),
        (&["run", "hello", "--model", "cassette:/nowhere.jsonl"], 2, "HF-5011"),
        (&["session", "show", "nobody"], 2, "HF-2007"),
        (&["session", "rename", "nobody", "x"], 2, "HF-2007"),
        (&["session", "delete", "nobody", "--yes"], 2, "HF-2007"),
        (&["session", "delete", "nobody"], 2, "HF-9001"),
        (&["session", "fork", "nobody"], 2, "HF-2007"),
        (&["replay", "nobody"], 2, "HF-2007"),
        (&["ext", "show", "nobody"], 1, "HF-4005"),
        (&["policy", "explain", "nobody"], 1, "HF-3101"),
        (&["policy", "explain", "shell", "--arguments", "{"], 2, "HF-9001"),
        (&["restore", "/nowhere.tar.zst"], 2, "HF-9001"),
        (&["model", "test", "nobody"], 2, "HF-5002"),
    ] {
        scene.run(arguments).fails(exit, code);
    }
    assert_eq!(
        scene.run(&["log", "list", "--json"]).ok().out.lines().count(),
        before.lines().count(),
        "nothing was begun"
    );
    // These reach a session, and are in the log.
    for (arguments, exit, code) in [
        (&["call", "nobody"][..], 1, "HF-3101"),
        (&["call", "kv_get", "[]"], 1, "HF-3102"),
        (&["call", "kv_get", "\"text\""], 1, "HF-3102"),
        (&["call", "kv_get", "null"], 1, "HF-3102"),
        (&["call", "kv_get", r#"{"key": 5, "more": true}"#], 1, "HF-3102"),
        (&["call", "kv get", "{}"], 1, "HF-3102"),
        (&["call", "file_read", r#"{"path": "../outside/x"}"#], 1, "HF-3109"),
        (&["call", "kv_set", r#"{"key": "a", "value": 1}"#], 3, "HF-3103"),
        (&["--profile", "safe", "call", "shell", r#"{"command": "true"}"#], 3, "HF-3103"),
    ] {
        scene.run(arguments).fails(exit, code);
        let mut json = arguments.to_vec();
        json.push("--json");
        let ran = scene.run(&json);
        assert_eq!((ran.code, &ran.json()["error"]["code"]), (Some(exit), &json!(code)), "{ran:#?}");
    }
    scene.run(GET).ok();
    scene.verifies();
}

#[test]
fn what_comes_over_standard_input_may_be_large_but_must_be_text() {
    let scene = Scene::new();
    let ran = scene.run_with(&["run", "-"], b"caf\xe9 au lait").fails(2, "HF-9001");
    assert!(ran.err.contains("not valid UTF-8 (byte 3)"), "{ran:#?}");
    let paste = "0123456789abcde\n".repeat(65_536);
    let model = scene.script("heard", &json!([{ "says": "That was long." }]));
    let ran = scene.run_with(&["run", "-", "--model", &model, "--session", "paste"], paste.as_bytes()).ok();
    assert_eq!(ran.out, "That was long.\n");
    let shown = scene.run(&["session", "show", "paste", "--json"]).ok().lines();
    assert_eq!(shown[0]["text"].as_str().unwrap().len(), 1 << 20);
    let ran = scene.run_with(&["run", "-", "--model", &model], b"").fails(2, "HF-9001");
    assert!(ran.err.contains("the message is empty"), "{ran:#?}");
    scene.verifies();
    scene.run(&["replay", "paste"]).ok();
}

/// Answers every request so.
fn server(answer: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            read_request(&stream);
            drop(stream.write_all(answer.as_bytes()));
        }
    });
    format!("http://{address}/v1")
}

#[test]
fn a_provider_that_does_not_answer_is_named_and_the_key_is_not() {
    let body = format!(
        r#"{{"error":{{"message":"Incorrect API key provided: {KEY}","type":"invalid_request_error"}}}}"#
    );
    let refusing = format!(
        "HTTP/1.1 401 No\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    let refused = server(refusing);
    for (base, code, says) in
        [(refused.as_str(), "HF-5003", "OPENAI_API_KEY"), ("http://127.0.0.1:1/v1", "HF-5005", "127.0.0.1:1")]
    {
        let mut scene = Scene::new();
        scene.settings("");
        scene.variable("OPENAI_API_KEY", KEY);
        scene.variable("OPENAI_BASE_URL", base);
        let ran = scene.run(&["run", "hello", "--session", "one"]).fails(1, code);
        assert!(ran.err.contains(says) && !ran.err.contains("planted"), "{ran:#?}");
        let tested = scene.run(&["model", "test"]).fails(1, code);
        assert!(!tested.err.contains("planted"), "{tested:#?}");
        let frames = scene.frames("one");
        let ended = bodies(&frames, "turn.ended");
        assert_eq!(ended[0]["outcome"]["failed"]["code"], code);
        let attempts = if code == "HF-5005" { 3 } else { 1 };
        assert_eq!(bodies(&frames, "model.requested").len(), attempts, "{code}");
        for (path, content) in tree(scene.root()) {
            assert!(!contains(&content, "planted"), "{}", path.display());
        }
        // The session goes on with a model that answers.
        scene.run(&["run", "hello", "--model", "offline"]).ok();
        scene.verifies();
    }
}

#[test]
fn a_home_that_cannot_be_one_is_refused_and_left_alone() {
    let scene = Scene::new();
    let file = scene.root().join("file");
    fs::write(&file, "not a folder").unwrap();
    for arguments in [GET, &["run", "hello"], &["tools"], &["rpc"]] {
        let ran = finish(scene.command_at(&file, arguments).spawn().unwrap()).fails(2, "HF-1501");
        assert!(ran.err.contains("--> "), "{ran:#?}");
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), "not a folder");

    // A home that another user may not enter. A root that may enter everything becomes nobody first.
    let closed = scene.root().join("closed");
    fs::create_dir(&closed).unwrap();
    let root = Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
    let program = scene.root().join("holdfast");
    fs::copy(env!("CARGO_BIN_EXE_holdfast"), &program).unwrap();
    fs::set_permissions(scene.root(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(if root { 0o700 } else { 0 })).unwrap();
    for arguments in [GET, &["run", "hello"], &["tools"]] {
        let mut command = Command::new(if root { "setpriv" } else { "env" });
        if root {
            command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
        }
        command.arg(&program).arg("--home").arg(&closed).args(arguments).current_dir("/");
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap());
        let ran = finish(
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap(),
        );
        let ran = ran.fails(2, "HF-1501");
        assert!(ran.err.contains("closed"), "{ran:#?}");
    }
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(fs::read_dir(&closed).unwrap().count(), 0);
    finish(scene.command_at(&closed, GET).spawn().unwrap()).ok();
}

#[test]
fn files_of_the_home_are_the_users_alone() {
    let scene = Scene::new();
    // Made by hand, as the first thing that one does.
    fs::set_permissions(scene.home(), fs::Permissions::from_mode(0o755)).unwrap();
    scene.run(GET).ok();
    scene.run(&["backup", scene.root().join("copy").to_str().unwrap()]).ok();
    let files = tree(&scene.home()).into_keys().filter(|path| !path.starts_with(scene.home().join("config")));
    for path in files.chain([scene.root().join("copy")]) {
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{} has {mode:o}", path.display());
    }
}

#[test]
fn a_home_whose_path_is_too_long_for_a_socket_has_one_elsewhere() {
    let scene = Scene::new();
    let deep = scene.root().join("d".repeat(120)).join("e".repeat(100));
    let run = |arguments: &[&str]| finish(scene.command_at(&deep, arguments).spawn().unwrap());
    run(GET).ok();
    let owner = crate::shared::Rpc::start(scene.command_at(&deep, &["rpc"]));
    run(GET).ok();
    assert!(!deep.join("control.sock").exists());
    let socket = fs::read_to_string(deep.join("control.path")).unwrap();
    assert!(fs::metadata(&socket).is_ok(), "{socket}");
    owner.end();
    assert!(fs::metadata(&socket).is_err(), "it goes with its owner");
    run(&["log", "verify"]).ok();
}

#[test]
fn a_log_of_a_newer_version_is_left_alone() {
    let scene = Scene::new();
    scene.run(GET).ok();
    let database = scene.home().join("holdfast.db");
    let newer = |version: u32| {
        let connection = rusqlite::Connection::open(&database).unwrap();
        connection.pragma_update(None, "journal_mode", "DELETE").unwrap();
        let current: u32 = connection.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
        connection.pragma_update(None, "user_version", version).unwrap();
        current
    };
    let current = newer(99);
    let before = fs::read(&database).unwrap();
    for arguments in [GET, &["run", "hello"], &["log", "list"], &["session", "list"], &["tools"], &["rpc"]] {
        scene.run(arguments).fails(2, "HF-2002");
    }
    assert_eq!(scene.run(&["doctor"]).code, Some(1));
    assert!(fs::read(&database).unwrap() == before, "it is byte for byte what it was");
    newer(current);
    scene.run(GET).ok();
    scene.verifies();
}

/// However many come at once: all are served, and the home has one owner at a time.
#[test]
fn twenty_commands_at_once_on_one_home_all_succeed() {
    let scene = Scene::new();
    for _ in 0..3 {
        let children: Vec<_> = (0..20).map(|_| scene.command(GET).spawn().unwrap()).collect();
        for child in children {
            let ran = finish(child).ok();
            assert!(ran.out.contains("\"found\": false"), "{ran:#?}");
        }
    }
    // An owner starts after the last one has stopped.
    let (mut owners, mut alive) = (0, false);
    for frame in scene.frames("system") {
        match frame["kind"].as_str().unwrap() {
            "system.started" => {
                assert!(!alive, "two owners at once: {frame}");
                (owners, alive) = (owners + 1, true);
            }
            "system.stopped" => alive = false,
            _ => {}
        }
    }
    assert!(owners >= 1 && !alive, "{owners}");
    assert_eq!(scene.run(&["log", "list", "--json"]).ok().out.lines().count(), 61);
    scene.verifies();
}

#[test]
fn an_owner_that_is_killed_takes_nobody_with_it() {
    let scene = Scene::new();
    let owner = scene.rpc(&[]);
    let model = scene.script("stalls", &json!([{ "stalls": "I was about to" }]));
    let mut command = scene.command(&["run", "go on", "--session", "attached", "--model", &model]);
    let attached = command.spawn().unwrap();
    let piped = scene.command(&["rpc"]).stdin(Stdio::piped()).spawn().unwrap();
    until("the turn", || {
        let shown = scene.run(&["log", "show", "attached", "--kind", "model.requested"]);
        shown.code == Some(0) && !shown.out.is_empty()
    });
    owner.kill();
    let ran = finish(attached).fails(1, "HF-7001");
    assert!(ran.out.is_empty(), "a truncated answer is not printed: {ran:#?}");
    finish(piped).fails(1, "HF-7001");
    // The files of the dead process do not block the next one.
    assert!(scene.home().join("control.sock").exists());
    scene.run(GET).ok();
    scene.verifies();
    let frames = scene.frames("attached");
    assert_eq!(bodies(&frames, "input.received").len(), 1);
    assert!(bodies(&frames, "turn.ended").is_empty(), "the turn waits to be taken up");
    let mut next = scene.rpc(&[]);
    next.ask("session.open", json!({ "session": "attached" }));
    next.ask("session.cancel", json!({ "session": "attached" }));
    let ended = next.frame("turn.ended");
    assert!(ended["body"]["outcome"]["cancelled"].is_object(), "{ended}");
    next.end();
    scene.verifies();
}

/// Ctrl-C cancels the turn, and the log says so.
#[test]
fn an_interrupted_turn_ends_with_130() {
    for beside_an_owner in [false, true] {
        let scene = Scene::new();
        let owner = beside_an_owner.then(|| scene.rpc(&[]));
        let model = scene.script("stalls", &json!([{ "stalls": "I was about to" }]));
        let child = scene.command(&["run", "go on", "--session", "one", "--model", &model]).spawn().unwrap();
        until("the turn", || {
            let shown = scene.run(&["log", "show", "one", "--kind", "model.requested"]);
            shown.code == Some(0) && !shown.out.is_empty()
        });
        assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
        finish(child).fails(130, "HF-3004");
        let frames = scene.frames("one");
        assert!(bodies(&frames, "turn.ended")[0]["outcome"]["cancelled"].is_object());
        if let Some(owner) = owner {
            owner.end();
        }
        scene.run(GET).ok();
        scene.verifies();
    }
}

/// `holdfast … | head`: the reader may close the pipe at any time.
#[test]
fn a_reader_that_goes_away_is_no_reason_to_panic() {
    let scene = Scene::new();
    for arguments in [&["run", "hello"][..], GET, &["tools"], &["frobnicate"], &["run", "hello", "--json"]] {
        let mut child = scene.command(arguments).spawn().unwrap();
        drop((child.stdout.take(), child.stderr.take()));
        let code = child.wait().unwrap().code();
        assert!(matches!(code, Some(0..=3 | 141)), "{arguments:?}: {code:?}");
    }
    scene.verifies();
}
