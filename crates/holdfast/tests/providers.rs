//! Real sockets, real providers' words: `OPENAI_API_KEY=… holdfast run "…"` against `@copilotkit/aimock`, one table of scenarios for every
//! shape of API; and every recorded run replays with the server gone.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on should stop loudly"
)]

mod shared;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use shared::{Scene, bodies, contains, tree};

const KEY: &str = "sk-planted-4711-0815";
const NOTES: &str = "The fuse box is behind the blue door.";

/// A server that answers as the providers do.
struct Aimock {
    base: String,
    child: Child,
}

impl Aimock {
    fn start() -> Self {
        let Some(package) = std::env::var_os("HOLDFAST_AIMOCK").map(PathBuf::from) else {
            panic!(
                "HOLDFAST_AIMOCK is not set. `./scripts/test test` sets it; to run this test alone, call `./scripts/setup aimock` \
                 and export HOLDFAST_AIMOCK=…/tools/aimock/node_modules/@copilotkit/aimock in the target folder."
            );
        };
        let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/providers/fixtures.json");
        let mut command = Command::new("node");
        command.arg(package.join("dist/cli.js")).args(["--port", "0", "--fixtures", fixtures]);
        command.env_remove("AIMOCK_API_KEYS").stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("node cannot be started: {error}"));
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let listening =
            lines.find_map(|line| Some(line.split_once("listening on http://")?.1.trim().to_owned()));
        // Nobody reads on, and a full pipe would stop it.
        std::thread::spawn(move || lines.for_each(drop));
        Self { base: format!("http://{}", listening.expect("aimock listens")), child }
    }

    /// What the server was asked so far.
    fn journal(&self) -> Vec<Value> {
        let host = self.base.trim_start_matches("http://");
        let mut stream = TcpStream::connect(host).unwrap();
        write!(stream, "GET /__aimock/journal HTTP/1.0\r\nhost: {host}\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
    }

    fn stop(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        assert!(
            TcpStream::connect(self.base.trim_start_matches("http://")).is_err(),
            "nobody is there any more"
        );
    }
}

impl Drop for Aimock {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A way in which providers speak, and how a user names the provider: by variables alone, or in the settings.
struct Shape {
    provider: &'static str,
    variables: fn(&str) -> Vec<(&'static str, String)>,
    settings: fn(&str) -> String,
    /// The same provider's other model, for when the first cannot answer.
    spare: fn(&str) -> String,
}

const SHAPES: &[Shape] = &[
    Shape {
        provider: "openai",
        variables: |base| vec![("OPENAI_API_KEY", KEY.to_owned()), ("OPENAI_BASE_URL", format!("{base}/v1"))],
        settings: |_| "models:\n".to_owned(),
        spare: |base| format!("provider: openai, base_url: '{base}/v1', api_key_env: OPENAI_API_KEY"),
    },
    Shape {
        provider: "anthropic",
        variables: |base| {
            vec![("ANTHROPIC_API_KEY", KEY.to_owned()), ("ANTHROPIC_BASE_URL", base.to_owned())]
        },
        settings: |_| "models:\n".to_owned(),
        spare: |base| format!("provider: anthropic, base_url: '{base}', api_key_env: ANTHROPIC_API_KEY"),
    },
    Shape {
        provider: "gemini",
        variables: |_| vec![("MY_KEY", KEY.to_owned())],
        settings: |base| {
            format!(
                "models:\n  default: main\n  main: {{ provider: gemini, model: gemini-2.5-flash, base_url: '{base}', api_key_env: MY_KEY, reasoning: low }}\n"
            )
        },
        spare: |base| format!("provider: gemini, base_url: '{base}', api_key_env: MY_KEY"),
    },
    Shape {
        provider: "ollama",
        variables: |_| Vec::new(),
        settings: |base| {
            format!(
                "models:\n  default: main\n  main: {{ provider: ollama, model: llama3.2, base_url: '{base}' }}\n"
            )
        },
        spare: |base| format!("provider: ollama, base_url: '{base}'"),
    },
];

/// What the server answers to `greet me`: more than the sanitizers of answers hold back.
const GREETING: &str = "Good day to you, and welcome aboard. The anchor is up, the wind is fair and the coffee is hot: tell me where you would like to go.\n";

/// One line of the table: what is said, the exit code, the answer or the problem's code, and how often the model was asked.
const SCENARIOS: &[(&str, i32, &str, &[u64])] = &[
    ("greet me", 0, GREETING, &[1]),
    ("look around", 0, "One file, and I read it.\n", &[1, 1]),
    ("think first", 0, "Forty-two.\n", &[1]),
    ("come in", 0, "Now there is room.\n", &[1, 2]),
    ("fall over", 1, "HF-5001", &[1, 2, 3]),
    ("tell a story", 0, "Once upon a time. The end.\n", &[1, 2]),
];

/// A scene whose model is asked over the wire, and its server.
fn wired(shape: &Shape) -> (Scene, Aimock) {
    let server = Aimock::start();
    let mut scene = Scene::new();
    let settings = (shape.settings)(&server.base);
    scene.settings(if settings == "models:\n" { "" } else { &settings });
    for (variable, value) in (shape.variables)(&server.base) {
        scene.variable(variable, &value);
    }
    (scene, server)
}

fn plays(shape: &Shape) {
    let name = shape.provider;
    let (scene, server) = wired(shape);
    fs::write(scene.work().join("notes.txt"), NOTES).unwrap();

    for (said, exit, expected, attempts) in SCENARIOS {
        let session = said.replace(' ', "-");
        let ran = scene.run(&["run", said, "--session", &session]);
        match exit {
            0 => assert_eq!((ran.code, ran.out.as_str()), (Some(0), *expected), "{name}: {said}: {ran:#?}"),
            exit => drop(ran.fails(*exit, expected)),
        }
        let frames = scene.frames(&session);
        let asked: Vec<u64> =
            bodies(&frames, "model.requested").iter().map(|body| body["attempt"].as_u64().unwrap()).collect();
        assert_eq!(asked, *attempts, "{name}: {said}");
        // Who asks again waits first, and the log has how long.
        for body in bodies(&frames, "model.requested") {
            assert_eq!(body["attempt"] != 1, body["delay"] != 0, "{name}: {said}: {body}");
        }
        checked(name, &server, said, &frames);
    }

    // The answer comes in pieces.
    let mut rpc = scene.rpc(&[]);
    rpc.ask("session.open", json!({ "session": "pieces", "create": true }));
    rpc.ask("session.send", json!({ "session": "pieces", "text": "greet me" }));
    let pieces = rpc.received.iter().filter(|message| message["method"] == "text").count();
    assert!(pieces > 1, "{name}: {pieces} pieces");
    rpc.end();

    // Every attempt went over the wire: eleven in the table, and one in pieces.
    assert_eq!(server.journal().len(), 12, "{name}");
    for (path, content) in tree(scene.root()) {
        assert!(!contains(&content, KEY), "{name}: the key is in {}", path.display());
    }

    server.stop();
    for (said, ..) in SCENARIOS {
        let replayed = scene.run(&["replay", &said.replace(' ', "-"), "--strict", "--json"]);
        let verdict = replayed.json();
        assert_eq!(
            (
                replayed.code,
                &verdict["mode"],
                &verdict["identical"],
                &verdict["snapshot_identical"],
                &verdict["divergence"]
            ),
            (Some(0), &json!("strict"), &json!(true), &json!(true), &Value::Null),
            "{name}: {said}: {verdict}"
        );
    }
    scene.verifies();
    scene.run(&["run", "greet me"]).fails(1, "HF-5005");
}

/// An agent without code, as a home has it.
fn agent(scene: &Scene, id: &str, mode: &str) {
    let folder = scene.home().join("extensions").join(id);
    fs::create_dir_all(&folder).unwrap();
    let manifest = format!(
        "id: {id}\nname: The {id}\ndescription: Knows about houses.\nagent:\n  integration_mode: {mode}\n  uses_tools: [core_tools]\n  parameters: {{ temperature: 0.25 }}\n"
    );
    fs::write(folder.join("manifest.yaml"), manifest).unwrap();
    fs::write(folder.join("prompt.jinja2"), "You are {{ name }}, who knows about houses.").unwrap();
}

/// A task for which two tools and an agent are asked at once, then handed over to another agent, and back; a model that fails and another
/// that answers in its place; a stream that breaks off. With the server gone, all of it replays.
fn orchestrates(shape: &Shape) {
    let name = shape.provider;
    let server = Aimock::start();
    let mut scene = Scene::new();
    let (settings, spare) = ((shape.settings)(&server.base), (shape.spare)(&server.base));
    scene.settings(&format!(
        "{settings}  spare: {{ model: spare-model, {spare} }}\nagents:\n  main: {{ fallback: [spare] }}\n"
    ));
    for (variable, value) in (shape.variables)(&server.base) {
        scene.variable(variable, &value);
    }
    fs::write(scene.work().join("notes.txt"), NOTES).unwrap();
    agent(&scene, "helper", "tool");
    agent(&scene, "sage", "handoff");

    for (said, answer) in [
        ("arrange it", "I am the sage. What about the fuse box?\n"),
        ("nothing more", "Here I am again.\n"),
        ("stumble", "The spare one answers.\n"),
        ("break off", "A whole sentence.\n"),
    ] {
        let ran = scene.run(&["run", said, "--session", "day"]);
        assert_eq!((ran.code, ran.out.as_str()), (Some(0), answer), "{name}: {said}: {ran:#?}");
    }
    let frames = scene.frames("day");
    let of = |kind: &str, field: &str| -> Vec<String> {
        bodies(&frames, kind).iter().map(|body| body[field].as_str().unwrap_or_default().to_owned()).collect()
    };
    assert_eq!(of("tool.dispatched", "tool"), ["file_list", "file_read"], "{name}: both tools");
    assert_eq!(of("child.opened", "agent"), ["helper"], "{name}: the agent that is asked");
    assert_eq!(of("agent.changed", "agent"), ["sage", "main"], "{name}: over and back");
    assert!(of("model.requested", "model").contains(&"spare".to_owned()), "{name}: the other model");
    let failures: Vec<String> = bodies(&frames, "model.failed")
        .iter()
        .map(|body| body["fault"]["code"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(failures, ["HF-5001", "HF-5001", "HF-5001", "HF-5006"], "{name}");
    let asked: Vec<String> = server.journal().iter().map(|entry| entry["body"].to_string()).collect();
    let told = |words: &str| asked.iter().filter(|body| body.contains(words)).count();
    assert!(told("It is about a fuse box.") >= 2, "{name}: what the agent said is told");
    assert!(told("You are The sage, who knows about houses.") >= 2, "{name}: the sage has its own words");
    assert!(told("You are The helper") == 1, "{name}: and so has the helper");
    let theirs: Vec<&String> = asked.iter().filter(|body| body.contains("who knows about houses")).collect();
    let warm = |body: &str| body.contains("\"temperature\":0.25");
    assert!(
        theirs.len() >= 3 && theirs.iter().all(|body| warm(body)),
        "{name}: their parameters: {theirs:?}"
    );
    assert_eq!(asked.iter().filter(|body| warm(body)).count(), theirs.len(), "{name}: theirs alone");
    server.stop();
    for session in
        ["day".to_owned(), bodies(&frames, "child.opened")[0]["child"].as_str().unwrap().to_owned()]
    {
        let verdict = scene.run(&["replay", &session, "--strict", "--json"]).json();
        assert_eq!(
            (&verdict["identical"], &verdict["divergence"]),
            (&json!(true), &Value::Null),
            "{name}: {verdict}"
        );
    }
    scene.verifies();
}

/// What the frames of a scenario must say besides.
fn checked(name: &str, server: &Aimock, said: &str, frames: &[Value]) {
    let failures: Vec<&str> =
        bodies(frames, "model.failed").iter().map(|body| body["fault"]["code"].as_str().unwrap()).collect();
    let answered = bodies(frames, "model.returned");
    match said {
        "look around" => {
            let tools: Vec<&str> =
                bodies(frames, "tool.dispatched").iter().map(|body| body["tool"].as_str().unwrap()).collect();
            assert_eq!(tools, ["file_list", "file_read"], "{name}");
            assert!(bodies(frames, "tool.settled").iter().all(|body| body["status"] == "done"), "{name}");
            assert_eq!(answered[0]["calls"].as_array().unwrap().len(), 2, "{name}: both at once");
            let last = server.journal().pop().unwrap()["body"].to_string();
            assert!(last.contains(NOTES), "{name}: the model was told what is in the file: {last}");
        }
        "think first" => {
            let reasoning = answered[0]["reasoning"].to_string();
            assert!(reasoning.contains("Six times seven."), "{name}: {reasoning}");
        }
        "come in" => assert_eq!(failures, ["HF-5004"], "{name}"),
        "fall over" => assert_eq!(failures, ["HF-5001"; 3], "{name}"),
        "tell a story" => assert_eq!(failures, ["HF-5006"], "{name}"),
        _ => assert!(failures.is_empty(), "{name}: {failures:?}"),
    }
}

#[test]
fn openai() {
    plays(&SHAPES[0]);
}

#[test]
fn anthropic() {
    plays(&SHAPES[1]);
}

#[test]
fn gemini() {
    plays(&SHAPES[2]);
}

#[test]
fn ollama() {
    plays(&SHAPES[3]);
}

#[test]
fn openai_orchestrates() {
    orchestrates(&SHAPES[0]);
}

#[test]
fn anthropic_orchestrates() {
    orchestrates(&SHAPES[1]);
}

#[test]
fn gemini_orchestrates() {
    orchestrates(&SHAPES[2]);
}

#[test]
fn ollama_orchestrates() {
    orchestrates(&SHAPES[3]);
}

/// A picture, as far as its first bytes tell, and the same in base64.
const PICTURE: &[u8] = b"\x89PNG\r\n\x1a\n....";
const PICTURE_IN_BASE64: &str = "iVBORw0KGgouLi4u";

/// Too large by a byte.
const TOO_LARGE: usize = (20 << 20) + 1;

/// The last request had both files.
#[track_caller]
fn had_both(server: &Aimock, requests: usize) {
    let mut journal = server.journal();
    assert_eq!(journal.len(), requests);
    let asked = journal.pop().unwrap()["body"].to_string();
    assert!(asked.contains("notes.txt") && asked.contains(NOTES), "the text, with its name: {asked}");
    assert!(asked.contains(PICTURE_IN_BASE64), "the picture: {asked}");
}

#[test]
fn files_that_are_attached_reach_the_model() {
    let (scene, server) = wired(&SHAPES[0]);
    let file = |name: &str, content: &[u8]| {
        let path = scene.outside().join(name);
        fs::write(&path, content).unwrap();
        path.display().to_string()
    };
    let (notes, picture) = (file("notes.txt", NOTES.as_bytes()), file("cat.png", PICTURE));
    let ran = scene.run(&["run", "greet me", "--attach", &notes, "--attach", &picture, "--session", "run"]);
    assert_eq!(ran.ok().out, GREETING);
    had_both(&server, 1);

    let large = file("large.bin", &vec![0xff; TOO_LARGE]);
    let missing = scene.outside().join("nowhere.txt").display().to_string();
    for refused in [large, missing] {
        let ran = scene.run(&["run", "greet me", "--attach", &refused, "--session", "run"]);
        ran.fails(2, "HF-9003");
    }
    assert_eq!(server.journal().len(), 1, "nobody was asked");
    assert_eq!(bodies(&scene.frames("run"), "input.received").len(), 1, "and nothing was said");
    scene.verifies();
}

#[test]
fn files_that_are_sent_over_rpc_reach_the_model() {
    let (scene, server) = wired(&SHAPES[0]);
    let mut rpc = scene.rpc(&[]);
    rpc.ask("session.open", json!({ "session": "sent", "create": true }));
    let send =
        |attachments: Value| json!({ "session": "sent", "text": "greet me", "attachments": attachments });
    let notes = json!({ "name": "notes.txt", "media_type": "text/plain", "text": NOTES });
    let picture = json!({ "name": "cat.png", "media_type": "image/png", "base64": PICTURE_IN_BASE64 });
    let end = rpc.ask("session.send", send(json!([notes, picture])));
    assert_eq!(end["outcome"], "answered", "{end}");
    had_both(&server, 1);

    let large = json!({ "name": "large.txt", "media_type": "text/plain", "text": "x".repeat(TOO_LARGE) });
    let empty = json!({ "name": "empty.png", "media_type": "image/png" });
    for refused in [large, empty] {
        let error = rpc.refused("session.send", send(json!([refused])));
        assert_eq!(error["data"]["code"], "HF-9003", "{error}");
    }
    assert_eq!(server.journal().len(), 1, "nobody was asked");
    rpc.end();
    assert_eq!(bodies(&scene.frames("sent"), "input.received").len(), 1, "and nothing was said");
    scene.verifies();
}
