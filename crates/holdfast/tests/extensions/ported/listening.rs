//! Web servers in extensions: a port that the user granted is reached on this machine's loopback, as long as the extension runs.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use super::{CHANNEL, call, class, scene, state};
use crate::shared::{Owner, Scene, bodies, until};
use serde_json::json;

/// A web server in a thread, as of a class that only starts and stops.
const THREAD: &str = "
import http.server, os, threading

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def do_GET(self):
        body = f'first {self.path}'.encode()
        self.send_response(200)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_): ...

class It:
    async def initialize(self, context):
        self.context = context
    async def start(self):
        address = self.context.get_config('host', '127.0.0.1'), self.context.get_config('port')
        server = http.server.ThreadingHTTPServer(address, Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
    def get_tools(self):
        def leave() -> str:
            os._exit(3)
        return [leave]
";

/// The same on the event loop, in the background task.
const LOOP: &str = "
import asyncio

class It:
    async def initialize(self, context):
        self.port = context.get_config('port')
    async def answer(self, reader, writer):
        path = (await reader.readline()).split()[1]
        while (await reader.readline()).strip():
            pass
        body = b'loop ' + path
        writer.write(b'HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n%s' % (len(body), body))
        await writer.drain()
        writer.close()
    async def run_background(self):
        server = await asyncio.start_server(self.answer, '127.0.0.1', self.port)
        async with server:
            await server.serve_forever()
";

/// A class with a tool that binds what it is told to.
const BINDS: &str = "
import socket

class It:
    async def start(self): ...
    def get_tools(self):
        def bind(port: int, host: str = '127.0.0.1') -> str:
            with socket.socket() as it:
                try:
                    it.bind((host, port))
                    it.listen()
                    return 'bound'
                except OSError as error:
                    return str(error)
        return [bind]
";

/// A port that nothing listens on.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// The body of the answer to a request, if there is one.
fn get(port: u16, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer.split_once("\r\n\r\n")?.1.to_owned())
}

fn reached(port: u16, path: &str, body: &str) {
    until("it is reached", || get(port, path).as_deref() == Some(body));
}

fn doctor(scene: &Scene, id: &str) -> String {
    let ran = scene.run(&["ext", "doctor", id]);
    format!("{}{}", ran.out, ran.err)
}

fn listen(scene: &Scene, id: &str, port: u16) {
    scene.run(&["ext", "grant", id, "--listen", &port.to_string(), "--folder"]).ok();
}

fn web(scene: &Scene, id: &str, port: u16, code: &str) {
    class(scene, id, &format!("config: {{ port: {port} }}\n"), code);
}

#[test]
fn a_web_server_is_reached_once_it_is_granted_and_through_restart_and_reload() {
    let (scene, port) = (scene(), free_port());
    web(&scene, "web", port, THREAD);
    let owner = Owner::begin(&scene);
    let command = format!("holdfast ext grant web --listen {port}");
    until("the fault has the command", || doctor(&scene, "web").contains(&command));
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err(), "nothing listens without the grant");

    listen(&scene, "web", port);
    reached(port, "/a", "first /a");
    assert!(TcpStream::connect(("127.0.0.2", port)).is_err(), "it listens at one address");
    scene.run(&["ext", "restart", "web"]).ok();
    reached(port, "/b", "first /b");
    call(&scene, "leave", &json!({}));
    reached(port, "/c", "first /c");
    web(&scene, "web", port, &THREAD.replace("first", "second"));
    reached(port, "/d", "second /d");

    scene.run(&["down"]).ok();
    drop(owner);
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err(), "it is closed with the extension");
    let frames = scene.frames("system");
    let checked = bodies(&frames, "extension.checked");
    let ports = checked.iter().flat_map(|body| body["checks"].as_array().unwrap());
    let mut ports = ports.flat_map(|check| check["ports"].as_array().cloned().unwrap_or_default());
    let counted = |it: serde_json::Value| it["port"] == port && it["connections"].as_u64() > Some(0);
    assert!(ports.any(counted), "{checked:?}");
    scene.verifies();
}

#[test]
fn a_server_in_the_background_task_is_reached_and_an_ungranted_port_is_told_of() {
    let (scene, port) = (scene(), free_port());
    class(&scene, "first", "", CHANNEL);
    web(&scene, "web", port, LOOP);
    scene.settings("models: { default: offline }\nchannels: { default: first }\n");
    let _owner = Owner::begin(&scene);
    let told = scene.home().join("data/first/told");
    let text = || fs::read_to_string(&told).unwrap_or_default();
    let command = format!("holdfast ext grant web --listen {port}");
    until("the user is told", || text().contains(&command));
    assert!(text().contains(&format!("127.0.0.1:{port}")), "{}", text());
    listen(&scene, "web", port);
    reached(port, "/x", "loop /x");
    // Each of many connections has one of its own inside, and they are given back.
    for number in 0..200 {
        assert_eq!(get(port, &format!("/{number}")), Some(format!("loop /{number}")));
    }
    scene.verifies();
}

#[test]
fn what_is_not_granted_cannot_be_bound() {
    let (scene, port) = (scene(), free_port());
    class(&scene, "binds", "", BINDS);
    let bind = |host: &str, port: u16| call(&scene, "bind", &json!({ "host": host, "port": port }));
    let command = |port: u16| format!("holdfast ext grant binds --listen {port}");
    until("it is denied", || bind("127.0.0.1", port).contains(&command(port)));
    listen(&scene, "binds", port);
    let _owner = Owner::begin(&scene);
    until("it may bind what it was granted", || bind("127.0.0.1", port).contains("bound"));
    let other = free_port();
    assert!(bind("127.0.0.1", other).contains(&command(other)), "another port");
    for (host, port) in [("127.0.0.1", 80), ("0.0.0.0", other), ("127.0.0.1", 3128)] {
        let answer = bind(host, port);
        assert!(answer.contains("ermission denied") || answer.contains("in use"), "{host}:{port}: {answer}");
    }
    // All addresses of its own namespace, of which one is forwarded to.
    assert!(bind("0.0.0.0", port).contains("bound"));
    // Where the extension does not accept, no other service is reached instead.
    assert_eq!(get(port, "/"), None);
}

#[test]
fn a_grant_is_for_ports_of_the_loopback_that_are_not_the_systems() {
    let scene = scene();
    class(&scene, "web", "", THREAD);
    for wrong in ["80", "1023", "0", "65536", "3128", "0.0.0.0:8080", "10.0.0.1:8080", "[::1]:8080", "x", ""]
    {
        scene.run(&["ext", "grant", "web", "--listen", wrong]).fails(2, "HF-9001");
    }
    scene.run(&["ext", "grant", "web", "--listen", "127.0.0.1:8080"]).ok();
    assert!(scene.policy_text().contains("8080"), "{}", scene.policy_text());
    class(&scene, "low", "grants: { listen: [80] }\n", THREAD);
    class(&scene, "wide", "grants: { listen: [\"0.0.0.0:8080\"] }\n", THREAD);
    class(&scene, "asks", "grants: { listen: [127.0.0.1:8080, 8081] }\n", THREAD);
    for id in ["low", "wide"] {
        let checked = scene.run(&["ext", "check", id]);
        let all = format!("{}{}", checked.out, checked.err);
        assert!(all.contains("HF-1007") && all.contains("cannot be listened on"), "{id}: {all}");
    }
    let checked = scene.run(&["ext", "check", "asks"]);
    let all = format!("{}{}", checked.out, checked.err);
    assert!(all.contains("holdfast ext grant asks --listen 8080 --listen 8081"), "{all}");
    scene.run(&["ext", "grant", "asks", "--listen", "8082"]).fails(2, "HF-9001");
    scene.run(&["ext", "grant", "asks"]).ok();
    let shown = scene.run(&["ext", "show", "asks"]).ok().out;
    assert!(shown.contains("\"listen\":[8080,8081]"), "{shown}");
    let other = "id: mcp_one\nname: One\nmcp: { command: [python3, x.py] }\ngrants: { listen: [8080] }\n";
    let folder = scene.home().join("extensions/mcp_one");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("manifest.yaml"), other).unwrap();
    let checked = scene.run(&["ext", "check", "mcp_one"]);
    let all = format!("{}{}", checked.out, checked.err);
    assert!(all.contains("HF-4211") && all.contains("`mcp`"), "{all}");
}

#[test]
fn a_port_in_use_is_a_fault_that_says_by_whom() {
    let scene = scene();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    web(&scene, "web", port, THREAD);
    listen(&scene, "web", port);
    let _owner = Owner::begin(&scene);
    let who = format!("process {}", std::process::id());
    until("the fault names the process", || {
        let all = doctor(&scene, "web");
        all.contains("HF-4212") && all.contains(&who)
    });
    drop(taken);
    scene.run(&["ext", "restart", "web"]).ok();
    reached(port, "/", "first /");
    // The first one has it: the second is refused, and does not take it.
    web(&scene, "other", port, &THREAD.replace("first", "other").replace("leave", "go"));
    listen(&scene, "other", port);
    until("the second is refused", || {
        let all = doctor(&scene, "other");
        all.contains("HF-4212") && all.contains("`web` listens there")
    });
    assert_eq!(get(port, "/").as_deref(), Some("first /"));
}

#[test]
fn under_safe_nothing_listens() {
    let (scene, port) = (scene(), free_port());
    web(&scene, "web", port, LOOP);
    listen(&scene, "web", port);
    let text = scene.policy_text().replace("full-auto", "safe");
    scene.policy(&text);
    let _owner = Owner::begin(&scene);
    until("it has failed", || state(&scene, "web")["state"] != "active");
    until("the reason is logged", || doctor(&scene, "web").contains("ermission denied"));
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
}
