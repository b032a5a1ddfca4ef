//! What the attempts are after: secrets, servers, sockets and neighbours, all of them real.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use holdfast_contract::content::Content;
use holdfast_contract::host_call::{CallRecord, HostCall};
use holdfast_contract::ids::Millis;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::wire::{Call, Host, Instance, Later, Reply};
use serde_json::{Value, json};

use crate::support::Yard;

/// The secret.
pub const SECRET: &str = "geheim-7b1f0e";

/// A program that executes Python code and reports the outcome: `failed` with the reason, or `worked`.
pub const AGENT: &str = r#"
import ctypes, errno, fcntl, mmap, resource, signal, socket, struct, subprocess, tempfile, threading
libc = ctypes.CDLL(None, use_errno=True)
HERE = os.getcwd()
def system(number, *arguments):
    result = libc.syscall(ctypes.c_long(number), *[a if isinstance(a, (bytes, ctypes.Array)) or hasattr(a, "_obj") else ctypes.c_long(a) for a in arguments])
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result
def connect(family, kind, address, protocol=0):
    s = socket.socket(family, kind, protocol); s.settimeout(10); s.connect(address); s.send(b"hello"); return s
def answered(s):
    if not s.recv(1): raise ConnectionResetError(errno.ECONNRESET, "closed without an answer")
def ask_gateway(text):
    s = socket.create_connection(("127.0.0.1", 3128), 10); s.sendall(text.encode())
    answer = b""
    while True:
        more = s.recv(4096)
        if not more: break
        answer += more
    answer = answer.decode()
    status = answer.split("\r\n")[0]
    if " 200 " not in status + " ": raise OSError(0, status + " " + answer.split("\r\n\r\n")[-1].strip())
    return answer
def attempt(code, scope):
    scope = {**globals(), **scope}
    try:
        os.chdir(HERE)
        exec(code, scope)
        return {"worked": repr(scope.get("result"))}
    except OSError as error: return {"failed": f"{errno.errorcode.get(error.errno, '')} {error.strerror}".strip()}
    except MemoryError: return {"failed": "MemoryError"}
    except Exception as error: return {"failed": f"{type(error).__name__}: {error}"}
"#;

const LOOP: &str = r#"
hello = greet()
while True:
    message = receive()
    if "id" in message:
        arguments = message["params"]["arguments"]
        send(id=message["id"], result=attempt(arguments["code"], {**arguments["scope"], "DATA": hello["params"]["data_dir"]}))
"#;

/// The world around a program.
pub struct World {
    pub yard: Yard,
    outside: PathBuf,
    scope: Value,
    reached: Arc<AtomicUsize>,
    asked: Arc<Mutex<Vec<String>>>,
    port: u16,
    bystander: Child,
    planted: BTreeMap<PathBuf, (Vec<u8>, u32)>,
    /// An open file of this process that a child could inherit.
    _leak: fs::File,
}

/// A host that lets one name through, to the server on this machine, and nothing else.
struct Gate {
    port: u16,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Host for Gate {
    fn call_within(&self, call: HostCall, _: Option<Millis>) -> Later<Result<Content, Fault>> {
        let CallRecord { name, arguments, .. } = call.record();
        let value = arguments.value().clone();
        self.asked.lock().unwrap().push(format!("{name} {value}"));
        let granted = value["host"] == "granted.example" && value["port"] == 80;
        let answer = match (name.as_str(), granted) {
            ("network.connect", true) => Ok(json!({ "addresses": [format!("127.0.0.1:{}", self.port)] })),
            ("network.connected", true) => Ok(Value::Null),
            _ => Err(Fault::new(Code::ToolDenied, "it is not granted")),
        };
        Box::pin(std::future::ready(answer.map(Content::new)))
    }
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

impl World {
    pub async fn new() -> Self {
        let yard = Yard::new();
        let outside = yard.path().to_owned();
        write(&outside.join(".ssh/id"), SECRET);
        write(&outside.join("holdfast.db"), SECRET);
        write(&outside.join("config/policy.yaml"), SECRET);
        write(&outside.join("data/other/kept"), SECRET);
        write(&outside.join("code/process/other/main.py"), SECRET);
        let reached = Arc::new(AtomicUsize::new(0));
        let port = listen(&reached, &outside.join("control.sock"));
        let bystander = Command::new("/bin/sleep").arg("600").spawn().unwrap();
        let leak = fs::File::open(outside.join(".ssh/id")).unwrap();
        rustix::io::fcntl_setfd(&leak, rustix::io::FdFlags::empty()).unwrap();
        let scope = json!({
            "W": outside, "HOST": std::process::id(), "PORT": port, "VICTIM": bystander.id(),
            "OTHER": outside.join("data/other"), "CONTROL": outside.join("control.sock"), "ABSTRACT": abstract_name(port),
        });
        let planted = look(&outside);
        let asked = Arc::default();
        Self { yard, outside, scope, reached, asked, port, bystander, planted, _leak: leak }
    }

    pub async fn load(&self, id: &str) -> Arc<dyn Instance> {
        self.yard.load(id, &format!("{AGENT}\n{LOOP}")).await.unwrap()
    }

    /// Has a program try something.
    pub async fn attempt(&self, it: &Arc<dyn Instance>, code: &str) -> Result<Value, Fault> {
        let call = Call::Tool {
            call: Default::default(),
            tool: "go".into(),
            arguments: Content::new(json!({ "code": code, "scope": self.scope })),
            turn: Arc::default(),
        };
        let gate = Gate { port: self.port, asked: self.asked.clone() };
        match it.call(call, Arc::new(gate)).await? {
            Reply::Content(content) => Ok(content.value().clone()),
            other => panic!("{other:?}"),
        }
    }

    /// Tries the same as an ordinary process of this user.
    pub fn attempt_without_walls(&self, code: &str) -> Value {
        let script = format!(
            "import json, os, sys\n{AGENT}\ngiven = json.loads(sys.argv[1])\nprint(json.dumps(attempt(given['code'], given['scope'])))"
        );
        let given = json!({ "code": code, "scope": self.scope }).to_string();
        let output = Command::new("python3").args(["-c", &script, &given]).output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
    }

    /// Checks that nothing outside has changed, and that nothing was reached except by the granted connections.
    pub fn is_untouched(&self, reached: usize) {
        let now = look(&self.outside);
        for (path, before) in &self.planted {
            assert_eq!(now.get(path), Some(before), "{}", path.display());
        }
        let new: Vec<_> = now.keys().filter(|path| !self.planted.contains_key(*path)).collect();
        let own = |path: &Path| {
            let inside = path.strip_prefix(&self.outside).unwrap();
            inside.starts_with("data/attacker")
                || inside.starts_with("data/bomb")
                || inside.starts_with("code/process")
        };
        assert!(new.iter().all(|path| own(path)), "{new:?}");
        assert_eq!(self.reached.load(Ordering::SeqCst), reached, "{:?}", self.asked.lock().unwrap());
        let state = fs::read_to_string(format!("/proc/{}/stat", self.bystander.id())).unwrap();
        assert!(!state.contains(") Z"), "the bystander lives");
        let asked = self.asked.lock().unwrap();
        assert!(asked.iter().all(|it| it.starts_with("network.")), "{asked:?}");
    }

    /// No folder for temporary files is left.
    pub fn leaves_no_scratch(&self) {
        let left = || {
            let entries = fs::read_dir(std::env::temp_dir()).unwrap().flatten();
            entries.filter(|entry| entry.path().join("of-the-bomb").exists()).count()
        };
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(120);
        while left() > 0 {
            assert!(std::time::Instant::now() < deadline, "{} folders are left", left());
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = self.bystander.kill();
        let _ = self.bystander.wait();
    }
}

fn abstract_name(port: u16) -> String {
    format!("holdfast-escapes-{port}")
}

/// Listens on every kind of local socket, and counts connections.
fn listen(reached: &Arc<AtomicUsize>, control: &Path) -> u16 {
    let (tcp, udp) = loop {
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        if let Ok(udp) = UdpSocket::bind(tcp.local_addr().unwrap()) {
            break (tcp, udp);
        }
    };
    let port = tcp.local_addr().unwrap().port();
    let path = UnixListener::bind(control).unwrap();
    let name = SocketAddr::from_abstract_name(abstract_name(port)).unwrap();
    let hidden = UnixListener::bind_addr(&name).unwrap();
    let count = |reached: &Arc<AtomicUsize>| {
        reached.fetch_add(1, Ordering::SeqCst);
    };
    let counted = reached.clone();
    std::thread::spawn(move || {
        for stream in tcp.incoming().flatten() {
            count(&counted);
            std::thread::spawn(move || answer(stream));
        }
    });
    for listener in [path, hidden] {
        let counted = reached.clone();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                count(&counted);
                let _ = stream.read(&mut [0; 16]);
            }
        });
    }
    let counted = reached.clone();
    std::thread::spawn(move || {
        let mut received = [0; 16];
        while udp.recv(&mut received).is_ok() {
            count(&counted);
        }
    });
    port
}

/// Answers with what it was asked.
fn answer(mut stream: std::net::TcpStream) {
    let mut received = [0; 4096];
    let read = stream.read(&mut received).unwrap_or(0);
    let body = String::from_utf8_lossy(&received[..read]).replace("\r\n", "|");
    let _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
}

/// Every file in a folder, with its content and mode.
fn look(folder: &Path) -> BTreeMap<PathBuf, (Vec<u8>, u32)> {
    let (mut found, mut folders) = (BTreeMap::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let about = entry.metadata().unwrap();
            if about.is_dir() {
                folders.push(entry.path());
            } else if about.is_file() {
                found.insert(entry.path(), (fs::read(entry.path()).unwrap(), about.permissions().mode()));
            }
        }
    }
    found
}
