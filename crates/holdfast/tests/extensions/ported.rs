//! Extensions that were written for other programs, in the shapes that those have and Holdfast's own do not: manifests without grants,
//! setup before health, `sys.exit` in a task, sessions of subprocesses, many of them at once.

mod conversations;
mod import;
mod listening;
mod reports;
mod together;
mod waiting;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Command;

use crate::shared::{Owner, Scene, bodies, until};
use serde_json::{Value, json};

/// A home that lets every tool run.
fn scene() -> Scene {
    let scene = Scene::new();
    scene.run(&["init"]).ok();
    scene.policy("profile: full-auto\n");
    scene
}

/// A class in a folder, with these further lines of its manifest.
fn class(scene: &Scene, id: &str, manifest: &str, code: &str) {
    let folder = scene.home().join("extensions").join(id);
    fs::create_dir_all(&folder).unwrap();
    let head = format!("id: {id}\nname: {id}\nversion: 1.0.0\nentrypoint: main:It\n{manifest}");
    fs::write(folder.join("manifest.yaml"), head).unwrap();
    fs::write(folder.join("main.py"), code).unwrap();
}

/// A single file below `extensions/`.
fn single(scene: &Scene, path: &str, code: &str) {
    let file = scene.home().join("extensions").join(path);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, code).unwrap();
}

fn call(scene: &Scene, tool: &str, arguments: &Value) -> String {
    let ran = scene.run(&["call", tool, &arguments.to_string()]);
    format!("{}{}", ran.out, ran.err)
}

fn state(scene: &Scene, id: &str) -> Value {
    let listed = scene.run(&["ext", "list", "--json"]).lines();
    listed.into_iter().find(|line| line["id"] == id).unwrap_or_default()
}

/// A web server on the loopback of this machine, which answers every request with the same word.
fn server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut request = [0; 4096];
            let _ = stream.read(&mut request);
            let _ =
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nheard");
        }
    });
    port
}

/// A class with a life of its own, which fetches over the network and reads a secret of the user's.
const FETCHER: &str = r#"
import urllib.request

class It:
    async def initialize(self, context):
        self.context = context

    async def run_background(self):
        import asyncio
        await asyncio.Event().wait()

    def get_tools(self):
        def fetch(url: str) -> str:
            return urllib.request.urlopen(url).read().decode()

        async def key() -> str:
            return str(await self.context.get_secret("SHARED_KEY"))

        return [fetch, key]
"#;

#[test]
fn a_class_without_grants_gets_what_the_user_names() {
    let scene = scene();
    class(&scene, "fetcher", "", FETCHER);
    let port = server();
    let url = json!({ "url": format!("http://127.0.0.1:{port}/") });
    let denied = call(&scene, "fetch", &url);
    assert!(denied.contains("403"), "{denied}");
    scene.run(&["ext", "grant", "fetcher", "--interface", "ui"]).fails(2, "HF-9001");
    scene.run(&["ext", "grant", "fetcher"]).fails(2, "HF-9001");
    scene.run(&["ext", "grant", "fetcher", "--network", &format!("127.0.0.1:{port}")]).ok();
    assert!(call(&scene, "fetch", &url).contains("heard"));

    scene.run_with(&["secret", "set", "SHARED_KEY"], b"canary-7719-shared\n").ok();
    let denied = call(&scene, "key", &json!({}));
    assert!(denied.contains("holdfast ext grant fetcher --secret SHARED_KEY"), "{denied}");
    scene.run(&["ext", "grant", "fetcher", "--secret", "SHARED_KEY"]).ok();
    assert!(!call(&scene, "key", &json!({})).contains("None"));
    scene.verifies();
}

#[test]
fn a_class_with_a_life_is_asked_about_in_the_turn() {
    let scene = scene();
    class(&scene, "fetcher", "", FETCHER);
    scene.run_with(&["secret", "set", "SHARED_KEY"], b"canary-7719-shared\n").ok();
    let port = server();
    let steps = json!([
        { "calls": [{ "tool": "fetch", "arguments": { "url": format!("http://127.0.0.1:{port}/") } }] },
        { "calls": [{ "tool": "key", "arguments": {} }] },
        { "says": "done" },
    ]);
    let model = scene.script("asked", &steps);
    let _owner = Owner::begin(&scene);
    let mut rpc = scene.rpc(&[]);
    let opened = rpc.ask("session.open", json!({ "model": model, "answers": true, "channel": "test" }));
    let session = opened["session"].as_str().unwrap().to_owned();
    rpc.send("session.send", json!({ "session": session, "text": "go on" }));
    for what in [format!("reach 127.0.0.1:{port}"), "use the secret `SHARED_KEY`".to_owned()] {
        let frame = rpc.frame("ui.requested");
        let question = frame["body"].to_string();
        assert!(question.contains(&what) && question.contains("always"), "{question}");
        let seq = frame["seq"].clone();
        rpc.ask("ui.answer", json!({ "session": session, "request": seq, "answer": "always" }));
    }
    rpc.frame("turn.ended");
    let frames = scene.frames(&session);
    let returned = serde_json::to_string(&bodies(&frames, "tool.returned")).unwrap();
    assert!(returned.contains("heard") && !returned.contains("canary-7719-shared"), "{returned}");
    let policy = scene.policy_text();
    assert!(policy.contains("SHARED_KEY") && policy.contains(&format!("127.0.0.1:{port}")), "{policy}");
}

/// A class that connects to ports of this machine in the background, again and again, and notes what it gets.
const EAGER: &str = "
import asyncio, urllib.request

class It:
    async def initialize(self, context):
        self.context = context
    def fetch(self, port):
        try:
            return urllib.request.urlopen(f'http://127.0.0.1:{port}/').read().decode()
        except OSError as error:
            return str(error)
    async def run_background(self):
        first = self.context.get_config('first')
        for turn in range(2):
            for port in range(first, first + 5):
                await asyncio.to_thread(self.fetch, port)
        (self.context.data_dir / 'refused').write_text('')
        while (got := await asyncio.to_thread(self.fetch, first)) != 'heard':
            await asyncio.sleep(0.05)
        (self.context.data_dir / 'got').write_text(got)
";

#[test]
fn outside_a_turn_the_user_is_told_what_was_refused() {
    let scene = scene();
    let port = server();
    class(&scene, "first", "", CHANNEL);
    class(&scene, "eager", &format!("config: {{ first: {port} }}\n"), EAGER);
    scene.settings("models: { default: offline }\nchannels: { default: first }\n");
    let _owner = Owner::begin(&scene);
    let data = scene.home().join("data");
    until("it was refused", || data.join("eager/refused").exists());
    let told = || fs::read_to_string(data.join("first/told")).unwrap_or_default();
    let command = |port: u16| format!("`holdfast ext grant eager --network 127.0.0.1:{port}` grants it.");
    until("the user is told of three", || (port..port + 3).all(|port| told().contains(&command(port))));
    scene.run(&["bus", "publish", "system.user.notify", r#"{"text": "the end"}"#]).ok();
    until("what follows comes", || told().contains("the end"));
    assert_eq!(told().matches("grants it.").count(), 3, "each once, and of a few: {}", told());
    scene.run(&["ext", "grant", "eager", "--network", &format!("127.0.0.1:{port}")]).ok();
    until("the command helps", || data.join("eager/got").exists());
    scene.verifies();
}

/// A class that hears what its manifest subscribes to, without a handler in the manifest.
const LISTENER: &str = "
class It:
    async def initialize(self, context):
        self.context = context
    async def on_event(self, event):
        (self.context.data_dir / 'heard').write_text(event.payload['text'])
    async def start(self): ...
";
const SUBSCRIBES: &str = "events: { subscribes: [{ topic: alert.raised }] }\n";

#[test]
fn the_handler_of_a_subscription_may_be_left_out() {
    let scene = scene();
    class(&scene, "listener", SUBSCRIBES, LISTENER);
    let _owner = Owner::begin(&scene);
    scene.run(&["bus", "publish", "alert.raised", r#"{"text": "fire"}"#]).ok();
    until("it is called", || scene.home().join("data/listener/heard").exists());
}

#[test]
fn a_folder_without_a_manifest_is_no_extension() {
    let scene = scene();
    class(&scene, "one", "", "class It:\n    def get_tools(self): return []\n");
    for folder in ["tracing", "__pycache__"] {
        fs::create_dir_all(scene.home().join("extensions").join(folder)).unwrap();
        fs::write(scene.home().join("extensions").join(folder).join("__init__.py"), "").unwrap();
    }
    let listed = scene.run(&["ext", "list"]).ok();
    let all = format!("{}{}", listed.out, listed.err);
    assert!(all.contains("one") && !all.contains("tracing") && !all.contains("__pycache__"), "{all}");
}

/// A class with a priority that says nothing, and with strict tools.
const STRICT: &str = "
from agents import function_tool

class It:
    @property
    def context_priority(self): ...
    async def get_context(self, prompt, turn): return None
    def get_tools(self):
        @function_tool
        def ping(times: int = 2, word: str | None = None, name: str = 'x') -> str:
            return f'{name}{word}' * times
        @function_tool
        def need(name: str) -> str:
            return name
        return [ping, need]
";

#[test]
fn a_priority_of_nothing_and_defaults_of_strict_tools() {
    let scene = scene();
    class(&scene, "strict", "", STRICT);
    // A command waits some seconds only for an extension that starts.
    until("its defaults count", || call(&scene, "ping", &json!({})).contains("xNonexNone"));
    until("the rest is required", || call(&scene, "need", &json!({})).contains("HF-3102"));
}

/// A class whose background task exits, once.
const EXITS: &str = "
import asyncio, os, sys

class It:
    async def initialize(self, context):
        self.mark = context.data_dir / 'exited'
    async def run_background(self):
        if not self.mark.exists():
            self.mark.write_text('')
            sys.exit(3)
        await asyncio.Event().wait()
    def get_tools(self):
        async def alive() -> str:
            return 'still here'
        return [alive]
";

#[test]
fn an_exit_in_a_task_ends_the_process_and_it_is_started_again() {
    let scene = scene();
    class(&scene, "exits", "", EXITS);
    let _owner = Owner::begin(&scene);
    until("it serves again", || call(&scene, "alive", &json!({})).contains("still here"));
    until("its exit is reported", || scene.run(&["ext", "doctor", "exits"]).out.contains("SystemExit: 3"));
}

/// A tool that starts programs in sessions and groups of their own.
const STARTS: &str = "
import subprocess, sys

def run() -> str:
    say = [sys.executable, '-c', 'print(1)']
    options = [{'start_new_session': True}] + ([{'process_group': 0}] if sys.version_info >= (3, 11) else [])
    return ''.join(subprocess.run(say, capture_output=True, text=True, **it).stdout.strip() for it in options)
";

#[test]
fn subprocesses_may_have_sessions_and_groups_of_their_own() {
    let scene = scene();
    single(&scene, "tools/starts.py", STARTS);
    let answer = call(&scene, "starts", &json!({}));
    assert!(answer.trim_matches(['"', '\n']).starts_with('1'), "{answer}");
}

#[test]
fn a_virtual_environment_may_be_first_on_the_path() {
    let mut scene = scene();
    let folder = scene.root().join("environment");
    let made = Command::new("python3").args(["-m", "venv", "--without-pip"]).arg(&folder).status().unwrap();
    assert!(made.success());
    let path = std::env::var("PATH").unwrap();
    scene.variable("PATH", &format!("{}:{path}", folder.join("bin").display()));
    single(
        &scene,
        "tools/here.py",
        "import asyncio, sys\n\nasync def run() -> str:\n    return sys.prefix\n",
    );
    let answer = call(&scene, "here", &json!({}));
    assert!(answer.contains("environment"), "{answer}");
}

/// A class that is well only with its token, as channels are.
const NEEDS_TOKEN: &str = r#"
class It:
    async def initialize(self, context):
        self.context, self.token = context, (context.data_dir / "token")
    async def start(self): ...
    async def run_background(self):
        import asyncio
        if not self.token.exists():
            raise RuntimeError("there is no token")
        (self.context.data_dir / "runs").write_text("")
        await asyncio.Event().wait()
    def health_check(self):
        return self.token.exists()
    def get_setup_schema(self):
        return [{"name": "token", "description": "The token.", "secret": True, "required": True}]
    async def apply_config(self, name, value):
        self.token.write_text(value)
    async def on_setup_complete(self):
        return (True, "all is well") if self.token.exists() else (False, "the token is wanted")
"#;

#[test]
fn an_extension_that_is_not_set_up_need_not_be_well() {
    let scene = scene();
    class(&scene, "channel_like", "", NEEDS_TOKEN);
    let _owner = Owner::begin(&scene);
    until("its loop has ended", || {
        scene.run(&["ext", "doctor", "channel_like"]).out.contains("there is no token")
    });
    assert_eq!(state(&scene, "channel_like")["state"], "ACTIVE");
    let open = scene.run(&["setup", "channel_like", "--json"]);
    assert!(open.out.contains("the token is wanted"), "its own word: {open:#?}");
    let done = scene.run_with(&["setup", "channel_like", "--secret", "token", "--json"], b"abcd\n").ok();
    assert_eq!(done.json()["complete"], true, "{done:#?}");
    until("its loop runs", || scene.home().join("data/channel_like/runs").exists());
}

#[test]
fn an_extension_that_is_down_is_started_for_its_setup() {
    let scene = scene();
    let code = "
class It:
    async def initialize(self, context):
        self.context = context
    async def start(self):
        if not (self.context.data_dir / 'fixed').exists():
            raise RuntimeError('not yet')
    def get_setup_schema(self):
        return [{'name': 'colour', 'required': True}]
    async def on_setup_complete(self):
        return True, 'always ready'
";
    class(&scene, "down", "", code);
    let _owner = Owner::begin(&scene);
    assert_eq!(state(&scene, "down")["state"], "ERROR");
    fs::create_dir_all(scene.home().join("data/down")).unwrap();
    fs::write(scene.home().join("data/down/fixed"), "").unwrap();
    let open = scene.run(&["setup", "down", "--json"]).ok();
    assert!(open.out.contains("always ready"), "the word of the class decides: {open:#?}");
    assert_eq!(state(&scene, "down")["state"], "ACTIVE");
}

/// A class that needs a while to be imported, as with large packages. It notes from when to when that took.
const BUSY: &str = "
import os, time
began = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
end = time.thread_time() + 0.3
while time.thread_time() < end: pass
with open(os.path.join(os.environ['HOME'], 'imported'), 'w') as file:
    file.write(f'{began} {time.clock_gettime_ns(time.CLOCK_MONOTONIC)}')

class It:
    async def initialize(self, context): ...
    def get_tools(self): return []
";

/// A class whose first import never ends.
const HANGS_ONCE: &str = "
import os, time
mark = os.path.join(os.environ['HOME'], 'tried')
if not os.path.exists(mark):
    open(mark, 'w').close()
    time.sleep(3600)

class It:
    async def initialize(self, context): ...
";

/// How many of these spans are under way at once at most.
fn at_once(spans: &[(u64, u64)]) -> usize {
    let during = |at: u64| spans.iter().filter(|(began, ended)| *began <= at && at < *ended).count();
    spans.iter().map(|(began, _)| during(*began)).max().unwrap_or(0)
}

#[test]
fn many_extensions_start_together_and_one_that_hangs_delays_nobody() {
    let scene = scene();
    let cores = std::thread::available_parallelism().unwrap().get();
    let busy: Vec<String> = (0..cores * 4).map(|number| format!("busy{number}")).collect();
    for id in &busy {
        class(&scene, id, "", BUSY);
    }
    class(&scene, "a_hangs", "", HANGS_ONCE);
    let _owner = Owner::starting(&scene);
    // A command that finds no owner would be one.
    until("it owns the home", || scene.run(&["status", "--json"]).json()["process"].is_u64());
    let active = |ids: &[String]| {
        let listed = scene.run(&["ext", "list", "--json"]).lines();
        ids.iter().all(|id| listed.iter().any(|line| line["id"] == **id && line["state"] == "ACTIVE"))
    };
    until("all others are up", || active(&busy));
    assert_ne!(state(&scene, "a_hangs")["state"], "ACTIVE", "the others were not kept waiting");
    let imported = |id: &String| {
        let text = fs::read_to_string(scene.home().join("data").join(id).join("imported")).unwrap();
        let (began, ended) = text.split_once(' ').unwrap();
        (began.parse().unwrap(), ended.parse().unwrap())
    };
    let spans: Vec<(u64, u64)> = busy.iter().map(imported).collect();
    // One that takes long keeps no other from being started.
    let slow = spans.iter().filter(|(began, ended)| ended - began > 5_000_000_000).count();
    assert!(at_once(&spans) <= cores + slow, "more start at once than there are cores: {spans:?}");
    // The one that did not answer in time is not a fault of its code, and is started again.
    until("it is tried again", || active(&["a_hangs".to_owned()]));
    let system = scene.frames("system");
    let states = bodies(&system, "extension.state");
    let late = states.iter().find(|body| body["id"] == "a_hangs" && body["fault"]["code"] == "HF-4012");
    assert!(late.is_some_and(|body| body["again"].is_u64()), "{late:?}");
    assert!(!states.iter().any(|body| busy.iter().any(|id| body["id"] == **id) && body["fault"].is_object()));
}

#[test]
fn a_folder_takes_the_place_of_a_built_in_extension_when_the_user_says_so() {
    let scene = scene();
    let code = "
class It:
    async def get_matching(self, pattern): return {'own': pattern}
    def get_tools(self):
        def kv_get(key: str) -> str:
            return 'from the folder: ' + key
        return [kv_get]
";
    class(&scene, "kv", "", code);
    let listed = scene.run(&["ext", "list"]).ok();
    let told = format!("{}{}", listed.out, listed.err);
    assert!(told.contains("extensions: { kv: { replace: true } }"), "{told}");
    assert!(call(&scene, "kv_get", &json!({ "key": "a" })).contains("\"found\""));
    scene.settings("models: { default: offline }\nextensions: { kv: { replace: true } }\n");
    assert!(call(&scene, "kv_get", &json!({ "key": "a" })).contains("from the folder: a"));
    let kv: Vec<Value> = scene.run(&["ext", "list", "--json"]).ok().lines();
    assert_eq!(kv.iter().filter(|line| line["id"] == "kv" && line["state"] == "ACTIVE").count(), 1);
    fs::remove_dir_all(scene.home().join("extensions/kv")).unwrap();
    assert!(
        call(&scene, "kv_get", &json!({ "key": "a" })).contains("\"found\""),
        "the built-in serves again"
    );
}

#[test]
fn an_agent_with_a_model_that_is_not_configured_uses_the_default() {
    let scene = scene();
    let model = scene.script("main", &json!([{ "says": "a haiku" }]));
    scene.settings(&format!("models: {{ default: '{model}' }}\n"));
    let folder = scene.home().join("extensions/poet");
    fs::create_dir_all(&folder).unwrap();
    let manifest = "id: poet\nname: Poet\nagent: { model: gpt-5-mini, instructions: Write haiku. }\n";
    fs::write(folder.join("manifest.yaml"), manifest).unwrap();
    let ran = scene.run(&["call", "poet", r#"{"task": "rain"}"#]);
    assert!(ran.out.contains("a haiku"), "{ran:#?}");
    let told = scene.run(&["run", "hello"]).err;
    assert_eq!(told.matches("gpt-5-mini").count(), 2, "one warning, with its help: {told}");
    assert!(!told.contains("there is no model `script:"), "the default is a file: {told}");
}

/// Channels that write down what they are told.
const CHANNEL: &str = "
class It:
    async def initialize(self, context): self.context = context
    async def send_message(self, text):
        with open(self.context.data_dir / 'told', 'a') as file: file.write(text + '\\n')
    async def send_to_user(self, user, text): await self.send_message(f'{user}: {text}')
";

#[test]
fn a_notice_goes_to_the_channel_that_the_event_names() {
    let scene = scene();
    class(
        &scene,
        "first",
        "events: { subscribes: [{ topic: door.opened, handler: notify_user }] }\n",
        CHANNEL,
    );
    class(
        &scene,
        "second",
        "events: { subscribes: [{ topic: mail.came, handler: invoke_agent }] }\n",
        CHANNEL,
    );
    scene.settings("models: { default: offline }\nchannels: { default: first }\n");
    let _owner = Owner::begin(&scene);
    scene.run(&["bus", "publish", "mail.came", r#"{"text": "for nobody"}"#]).ok();
    let payload = r#"{"text": "the door", "channel_id": "second"}"#;
    scene.run(&["bus", "publish", "door.opened", payload]).ok();
    let told =
        |id: &str| fs::read_to_string(scene.home().join("data").join(id).join("told")).unwrap_or_default();
    until("the second channel is told", || told("second").contains("the door"));
    assert_eq!(told("first"), "");
    until("what is not an agent is skipped", || {
        scene.run(&["ext", "doctor", "second"]).out.contains("it has no agent: the event was skipped")
    });
    assert!(!scene.run(&["bus", "dead"]).out.contains("mail.came"));
}

#[test]
fn a_missing_package_is_named_with_what_to_do() {
    let scene = scene();
    class(&scene, "needs", "", "import nothing_of_that_name\n");
    until("it is named", || {
        scene.run(&["ext", "list"]);
        scene.run(&["ext", "doctor", "needs"]).out.contains("extensions/needs/requirements.txt")
    });
}

/// A tool that connects without a proxy: it looks a name up, and speaks its own protocol.
const PLAIN: &str = r#"
import ipaddress, socket

def run(host: str, port: int) -> str:
    address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][4][0]
    if host != address and not ipaddress.ip_address(address).is_global:
        return "not public: " + address
    try:
        with socket.create_connection((host, port), timeout=30) as it:
            it.sendall(b"hello\r\n\r\n")
            return it.recv(100).decode().split("\r\n\r\n")[-1]
    except OSError as error:
        return type(error).__name__
"#;

#[test]
fn plain_connections_and_names_go_through_the_gateway() {
    let scene = scene();
    single(&scene, "tools/plain.py", PLAIN);
    let port = server();
    let there = json!({ "host": "127.0.0.1", "port": port });
    // Nothing listens at a port that is not granted.
    assert!(call(&scene, "plain", &there).contains("Error"));
    scene.run(&["ext", "grant", "plain", "--network", &format!("127.0.0.1:{port}")]).ok();
    assert!(call(&scene, "plain", &there).contains("heard"));
    // A name has an address, and what is not granted is refused when it is connected to.
    for (host, port) in [("granted.example", 443), ("169.254.169.254", 80), ("127.0.0.1", 8080)] {
        let named = call(&scene, "plain", &json!({ "host": host, "port": port }));
        assert!(
            named.contains("ConnectionResetError") || named.contains("BrokenPipeError"),
            "{host}: {named}"
        );
    }
    let log = scene.run(&["log", "export", "system"]).out + &scene.run(&["ext", "doctor", "plain"]).out;
    assert!(!log.contains("192.88.99"), "the host is asked about names: {log}");
    scene.verifies();
}

/// A channel as some programs have it: `recv` returns a mapping, `send` takes it with a text, and the token is a variable.
const MAPPED: &str = r#"
import asyncio, os, pathlib

async def connect():
    if not os.environ.get("MAPPED_TOKEN"):
        raise RuntimeError("MAPPED_TOKEN is not set")

async def recv():
    inbox = pathlib.Path(os.environ["HOME"]) / "in"
    while not inbox.exists():
        await asyncio.sleep(0.05)
    text = inbox.read_text()
    inbox.unlink()
    return {"text": text, "chat_id": 777}

async def send(incoming, text):
    with open(pathlib.Path(os.environ["HOME"]) / "sent", "a") as file:
        file.write(f"{incoming['chat_id']!r} {text} {len(os.environ['MAPPED_TOKEN'])}\n")
"#;

#[test]
fn a_channel_of_mappings_and_variables_answers() {
    let scene = scene();
    let project = scene.root().join("pith");
    let place = project.join("workspace/extensions/channels");
    fs::create_dir_all(&place).unwrap();
    fs::write(place.join("mapped.py"), MAPPED).unwrap();
    fs::write(project.join(".env"), "MAPPED_TOKEN=canary-8123\n").unwrap();
    scene.run(&["import", "pith", project.to_str().unwrap()]).ok();
    scene.run(&["ext", "grant", "mapped", "--secret", "MAPPED_TOKEN"]).ok();
    let model = scene.script("answers", &json!([{ "says": "pong" }]));
    scene.settings(&format!("models: {{ default: '{model}' }}\n"));
    let _owner = Owner::begin(&scene);
    let data = scene.home().join("data/mapped");
    until("it has a folder", || data.is_dir());
    fs::write(data.join(".in"), "ping").unwrap();
    fs::rename(data.join(".in"), data.join("in")).unwrap();
    let sent = || fs::read_to_string(data.join("sent")).unwrap_or_default();
    until("it answers", || sent() == "777 pong 11\n");
}
