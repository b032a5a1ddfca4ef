//! Hooks of programs and Python classes have no side effects, whatever the extension was granted: what they would do is refused and
//! recorded, and the turn goes on as the hook's rule says. `privileges.rs` shows the same for host calls.

use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use holdfast_app::Application;
use holdfast_contract::ids::Seq;
use holdfast_contract::manifest::{Access, FileGrant, Grants};
use holdfast_loader::candidate;
use holdfast_policy::{Grant, Tie};
use holdfast_tests::scene::{Scene, again, said, serves};
use serde_json::{Value, json};

/// A class that is alive, so that its `service` call is always open, and whose gate does what the call's arguments say.
const CLASS: &str = r#"
import json, subprocess, urllib.request


def fetch(url):
    return urllib.request.urlopen(url, timeout=30).read().decode()


def write(path):
    with open(path, "w") as file:
        file.write("x")


DEEDS = {"fetch": fetch, "write": write, "start": lambda program: subprocess.run([program])}


class Keeper:
    async def initialize(self, context):
        self.context = context

    async def tool_gate(self, event):
        wanted = event.call.arguments
        for deed, about in wanted.get("gate", {}).items():
            try:
                DEEDS[deed](about)
            except PermissionError:
                if wanted.get("strict"):
                    raise
        write(self.context.data_dir / "judged")
        return {"decision": "allow"}

    def get_tools(self):
        def keeper_fetch(url: str, gate: dict, strict: bool = False) -> str:
            """Fetches."""
            return fetch(url)

        return [{"name": "keeper_fetch", "effects": "read", "function": keeper_fetch}]
"#;

/// A class whose gate waits for what its loop fetches meanwhile.
const LOOPING: &str = r#"
import asyncio, urllib.request


class Keeper:
    async def initialize(self, context):
        self.wanted, self.fetched = asyncio.Queue(), asyncio.Queue()

    async def run_background(self):
        while True:
            url = await self.wanted.get()
            try:
                said = await asyncio.to_thread(lambda: urllib.request.urlopen(url, timeout=30).read().decode())
            except OSError as error:
                said = repr(error)
            await self.fetched.put(said)

    async def tool_gate(self, event):
        await self.wanted.put(event.call.arguments["url"])
        return {"decision": "deny", "reason": f"the loop {await self.fetched.get()}"}

    def get_tools(self):
        return [{"name": "keeper_fetch", "effects": "read", "function": lambda url: url}]
"#;

/// The same as a program that knows nothing but the protocol, with a gate alone.
const PROGRAM: &str = r#"
import json, sys, urllib.error, urllib.request
def say(number, result): print(json.dumps({"jsonrpc": "2.0", "id": number, "result": result}), flush=True)
def fetch(url):
    try: return urllib.request.urlopen(url, timeout=30).read().decode()
    except urllib.error.HTTPError as error: return f"{error.code}: {error.read().decode()}"
for line in sys.stdin:
    request = json.loads(line)
    method, params = request["method"], request.get("params") or {}
    if "id" not in request: continue
    if method == "hello":
        say(request["id"], {"protocol": "0.1", "hooks": ["tool_gate"], "functions": {"service": ["run-background"]},
            "tools": [{"name": "keeper_fetch", "effects": "read"}]})
    elif method == "hook":
        said = fetch(params["call"]["arguments"]["gate"]["fetch"])
        denies = {"decision": "deny", "reason": said}
        say(request["id"], denies if params["call"]["arguments"].get("strict") else {"decision": "allow"})
    elif method == "tool": say(request["id"], fetch(params["arguments"]["url"]))
    elif method != "function": say(request["id"], None)
"#;

/// A server on this machine that counts.
fn server() -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (port, asked) = (listener.local_addr().unwrap().port(), Arc::new(AtomicUsize::new(0)));
    let counted = asked.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            counted.fetch_add(1, Ordering::SeqCst);
            // The client may have sent nothing yet; it is answered all the same.
            let mut head = [0; 4096];
            let _ = std::io::Read::read(&mut stream, &mut head);
            let _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nheard");
        }
    });
    (port, asked)
}

/// Installs the extension with a granted host and a folder that it may write to.
fn install(scene: &Scene, code: &str, how: &str, give: &Grants) {
    let folder = scene.extension("keeper");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("main.py"), code).unwrap();
    let manifest = format!(
        "id: keeper\nname: Keeper\nversion: 1.0.0\n{how}\nhooks: [{{ point: tool_gate }}]\ngrants: {}\n",
        json!(give)
    );
    fs::write(folder.join("manifest.yaml"), manifest).unwrap();
    let plan = scene.plan();
    let found = candidate(&folder, &plan.home.policy(None).unwrap(), None, Default::default()).unwrap();
    let tied_to = Tie::Digest(found.bundle.content());
    plan.home.remember_grant(&Grant { extension: "keeper".into(), tied_to, give: give.clone() }).unwrap();
}

async fn fetches(application: &Application, session: &str, arguments: Value) -> String {
    let new = application.session(session.into(), "test", Some("direct".into())).unwrap();
    let text = format!("/keeper_fetch {arguments}");
    said(&application.runtime.open(new).unwrap().say("test", text.as_str()).await.unwrap())
}

/// The host calls of a session: the hook, the call, its arguments, and the code with which it was refused.
fn calls(application: &Application, session: &str) -> Vec<Value> {
    application.runtime.store().flush().unwrap();
    let frames = application.runtime.store().frames(&session.into(), Seq(0)..).unwrap();
    let called = frames.into_iter().filter(|frame| frame.envelope.kind.as_str() == "host.called");
    called
        .map(|frame| {
            let body = frame.body.unwrap();
            json!([body["hook"], body["ask"], body["arguments"]["json"], body["outcome"]["failure"]["code"]])
        })
        .collect()
}

fn granted(port: u16, folder: &std::path::Path) -> Grants {
    let path = folder.to_str().unwrap().to_owned();
    Grants {
        network: vec![format!("127.0.0.1:{port}")],
        files: vec![FileGrant { path, access: Access::Write }],
        ..Grants::default()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gate_of_a_class_reaches_no_granted_host_and_writes_no_granted_folder() {
    let (scene, (port, asked)) = (Scene::new(), server());
    let shared = scene.folder.path().join("shared");
    fs::create_dir_all(&shared).unwrap();
    install(&scene, CLASS, "entrypoint: main:Keeper", &granted(port, &shared));
    let application = scene.open().await;
    serves(&application, "keeper", 1).await;
    let (url, path) = (format!("http://127.0.0.1:{port}/today"), shared.join("note"));
    let gate = json!({ "fetch": url, "write": path, "start": "/bin/true" });
    // What the gate is kept from, it survives, and it has no objection; its tool may connect.
    assert_eq!(fetches(&application, "one", json!({ "url": url, "gate": gate })).await, "heard");
    assert_eq!((asked.load(Ordering::SeqCst), path.exists()), (1, false));
    let refused = |call: &str, arguments: Value| json!(["keeper/0", call, arguments, "HF-3206"]);
    let host = json!({ "host": "127.0.0.1", "port": port });
    let made = calls(&application, "one");
    let expected = [
        refused("network.connect", host.clone()),
        refused("program.start", json!({ "operation": "subprocess.Popen", "program": "/bin/true" })),
        refused("file.write", json!({ "path": path })),
    ];
    assert_eq!(made[..3], expected, "{made:#?}");
    assert_eq!((&made[3][1], &made[3][2]), (&json!("network.connect"), &host));
    // Its own data folder is its own.
    assert!(scene.folder.path().join("home/data/keeper/judged").exists());
    // One that does not expect it has failed, and a gate that fails has denied.
    let arguments = json!({ "url": url, "gate": { "fetch": url }, "strict": true });
    let denied = fetches(&application, "two", arguments).await;
    assert!(denied.contains("PermissionError"), "{denied}");
    assert_eq!(calls(&application, "two"), [refused("network.connect", host)]);
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    for session in ["one", "two"] {
        assert!(again(&scene, &application, session).identical, "{session}");
    }
    application.runtime.stop("the test is over").await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_of_a_program_counts_as_its_hooks_while_one_is_open() {
    let (scene, (port, asked)) = (Scene::new(), server());
    let shared = scene.folder.path().join("shared");
    fs::create_dir_all(&shared).unwrap();
    install(&scene, PROGRAM, "command: [python3, -S, main.py]", &granted(port, &shared));
    let application = scene.open().await;
    serves(&application, "keeper", 1).await;
    let url = format!("http://127.0.0.1:{port}/today");
    let arguments = |strict: bool| json!({ "url": url, "gate": { "fetch": url }, "strict": strict });
    let denied = fetches(&application, "one", arguments(true)).await;
    assert!(denied.contains("403: ") && denied.contains("a hook may not call `network.connect`"), "{denied}");
    let host = json!({ "host": "127.0.0.1", "port": port });
    let refused = json!(["keeper/0", "network.connect", host, "HF-3206"]);
    assert_eq!(calls(&application, "one"), std::slice::from_ref(&refused));
    assert_eq!(asked.load(Ordering::SeqCst), 0);
    assert_eq!(fetches(&application, "two", arguments(false)).await, "heard", "its tool connects");
    assert_eq!(calls(&application, "two")[0], refused);
    application.runtime.stop("the test is over").await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_loop_of_a_class_connects_while_its_gate_is_asked() {
    let (scene, (port, asked)) = (Scene::new(), server());
    let shared = scene.folder.path().join("shared");
    fs::create_dir_all(&shared).unwrap();
    install(&scene, LOOPING, "entrypoint: main:Keeper", &granted(port, &shared));
    let application = scene.open().await;
    serves(&application, "keeper", 1).await;
    let url = format!("http://127.0.0.1:{port}/today");
    let denied = fetches(&application, "one", json!({ "url": url })).await;
    assert!(denied.contains("the loop heard"), "{denied}");
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    assert!(calls(&application, "one").is_empty(), "it is not the gate's");
    let made = calls(&application, "system");
    assert!(made.iter().any(|call| call[1] == "network.connect" && call[3].is_null()), "{made:#?}");
    application.runtime.stop("the test is over").await.unwrap();
}
