//! What the tests of the binary share: a home with a workspace beside it, commands on it, and a conversation over `holdfast rpc`.

#![allow(dead_code, reason = "each test uses a part")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// How long anything may take before the test gives up.
pub const TIMEOUT: Duration = Duration::from_secs(180);

/// A folder with a home, a workspace and something outside of both.
pub struct Scene {
    folder: tempfile::TempDir,
    /// What the home is called.
    name: String,
    variables: Vec<(String, String)>,
}

/// How a command ended, and what it said.
#[derive(Clone, Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self { code: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) }
    }
}

impl Ran {
    /// It did what it should.
    #[track_caller]
    pub fn ok(self) -> Self {
        assert_eq!(self.code, Some(0), "{self:#?}");
        self
    }

    /// It ended so, with this problem: what, and what to do.
    #[track_caller]
    pub fn fails(self, exit: i32, code: &str) -> Self {
        assert_eq!(self.code, Some(exit), "{self:#?}");
        let problem = format!("error[{code}]: ");
        let rest = self.err.split_once(&problem).unwrap_or_else(|| panic!("no {code} in {self:#?}")).1;
        assert!(rest.lines().next().is_some_and(|what| what.len() > 8), "{code} says what: {self:#?}");
        assert!(rest.contains("help: "), "{code} says what to do: {self:#?}");
        assert!(!self.err.contains("panicked"), "{self:#?}");
        self
    }

    /// Its output as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }

    /// Its output as JSON lines.
    #[track_caller]
    pub fn lines(&self) -> Vec<Value> {
        let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        self.out.lines().map(parse).collect()
    }
}

impl Scene {
    /// With settings that name the built-in model, so that nothing is looked for on this machine.
    pub fn new() -> Self {
        Self::with_home("home")
    }

    /// The same with a home of this name.
    pub fn with_home(name: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let scene = Self { folder, name: name.to_owned(), variables: Vec::new() };
        for folder in [scene.work(), scene.outside(), scene.home().join("config")] {
            fs::create_dir_all(folder).unwrap();
        }
        scene.settings("models: { default: offline }\n");
        scene
    }

    pub fn root(&self) -> &Path {
        self.folder.path()
    }

    pub fn home(&self) -> PathBuf {
        self.root().join(&self.name)
    }

    /// Stops a process with a signal at a moment at which the code of an extension that is starting is executing: of the one that executes
    /// for a second, as others do not.
    pub fn stop_while_code_executes(&self, process: u64) {
        let file = self.home().join("generations/executing");
        let listed = || {
            let text = fs::read_to_string(&file).unwrap_or_default();
            text.lines().map(str::to_owned).collect::<BTreeSet<_>>()
        };
        let mut throughout = BTreeSet::new();
        until("code executes for a while", || {
            let looks = (0..20).map(|_| {
                std::thread::sleep(Duration::from_millis(50));
                listed()
            });
            throughout = looks.reduce(|seen, look| &seen & &look).unwrap_or_default();
            !throughout.is_empty()
        });
        let signal = |name: &str| {
            let sent = Command::new("kill").args([name, &process.to_string()]).status().unwrap();
            assert!(sent.success(), "{name} {process}");
        };
        // Between two steps of its own the code is not executing.
        until("a moment at which it executes", || {
            signal("-STOP");
            until("it stands still", || {
                let tasks = fs::read_dir(format!("/proc/{process}/task")).unwrap().flatten();
                let mut states = tasks.filter_map(|task| fs::read_to_string(task.path().join("stat")).ok());
                states.all(|state| state.contains(") T "))
            });
            let executes = !listed().is_disjoint(&throughout);
            if !executes {
                signal("-CONT");
            }
            executes
        });
    }

    /// The folder that commands are started in.
    pub fn work(&self) -> PathBuf {
        self.root().join("work")
    }

    pub fn outside(&self) -> PathBuf {
        self.root().join("outside")
    }

    /// Every command has this variable.
    pub fn variable(&mut self, name: &str, value: &str) {
        self.variables.push((name.to_owned(), value.to_owned()));
    }

    pub fn settings(&self, text: &str) {
        fs::write(self.home().join("config/settings.yaml"), text).unwrap();
    }

    pub fn policy(&self, text: &str) {
        fs::write(self.home().join("config/policy.yaml"), text).unwrap();
    }

    pub fn policy_text(&self) -> String {
        fs::read_to_string(self.home().join("config/policy.yaml")).unwrap_or_default()
    }

    /// A file that only this user can read.
    pub fn secret(&self, path: &Path, text: &str) {
        fs::write(path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    }

    /// A script of these steps, as the name of a model.
    pub fn script(&self, name: &str, steps: &Value) -> String {
        let file = self.root().join(format!("{name}.yaml"));
        fs::write(&file, steps.to_string()).unwrap();
        format!("script:{}", file.display())
    }

    /// The program on this home, with nothing of this process's environment but the way to programs.
    pub fn command(&self, arguments: &[&str]) -> Command {
        self.command_at(&self.home(), arguments)
    }

    pub fn command_at(&self, home: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_holdfast"));
        command.arg("--home").arg(home).args(arguments).current_dir(self.work()).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", self.root());
        command.envs(self.variables.iter().cloned());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Whether the home is up and all of its extensions have started or failed.
    pub fn is_up(&self) -> bool {
        let status = serde_json::from_str::<Value>(&self.run(&["status", "--json"]).out).unwrap_or_default();
        status["process"].is_u64() && status["starting"].is_null()
    }

    pub fn run(&self, arguments: &[&str]) -> Ran {
        finish(self.command(arguments).spawn().unwrap())
    }

    pub fn run_with(&self, arguments: &[&str], input: &[u8]) -> Ran {
        let mut child = self.command(arguments).stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_vec();
        // One that does not read its input may have ended before it is written.
        let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
        let ran = finish(child);
        writer.join().unwrap();
        ran
    }

    /// One turn of this script in a session of this name.
    pub fn turn(&self, session: &str, steps: &Value) -> Ran {
        let model = self.script(session, steps);
        self.run(&["run", "go on", "--session", session, "--model", &model, "--json"])
    }

    /// The frames of a stream, with or without an owner.
    pub fn frames(&self, stream: &str) -> Vec<Value> {
        self.run(&["log", "export", stream]).ok().lines()
    }

    pub fn verifies(&self) {
        let verified = self.run(&["log", "verify"]);
        assert_eq!(verified.code, Some(0), "{verified:#?}");
    }

    pub fn rpc(&self, arguments: &[&str]) -> Rpc {
        let mut all = arguments.to_vec();
        all.push("rpc");
        Rpc::start(self.command(&all))
    }
}

/// Waits for a command; one that hangs fails the test.
#[track_caller]
pub fn finish(child: Child) -> Ran {
    let pid = child.id();
    let (done, ended) = channel();
    let watchdog = std::thread::spawn(move || {
        if ended.recv_timeout(TIMEOUT) == Err(RecvTimeoutError::Timeout) {
            drop(Command::new("kill").args(["-9", &pid.to_string()]).status());
            return true;
        }
        false
    });
    let output = child.wait_with_output().unwrap();
    done.send(()).unwrap_or_default();
    let ran = Ran::from(output);
    assert!(!watchdog.join().unwrap(), "it hung: {ran:#?}");
    ran
}

/// `holdfast rpc`, at the other end of two pipes.
pub struct Rpc {
    pub child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Value>,
    /// What came while something else was waited for.
    pub received: Vec<Value>,
    /// The approvals that were asked about, by session and frame.
    approvals: BTreeSet<(String, u64)>,
    next: u64,
}

impl Rpc {
    pub fn start(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let (input, output) = (child.stdin.take(), child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let message = serde_json::from_str(&line).unwrap_or(Value::String(line));
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let (received, approvals) = (Vec::new(), BTreeSet::new());
        let mut rpc = Self { child, input, lines, received, approvals, next: 0 };
        let welcome = rpc.ask("hello", json!({ "version": 1, "client": "test" }));
        assert_eq!(welcome["version"], 1, "{welcome}");
        rpc
    }

    pub fn write(&mut self, line: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line).and_then(|()| input.write_all(b"\n")).and_then(|()| input.flush()).unwrap();
    }

    /// Asks, and gives the number under which the answer will come.
    pub fn send(&mut self, method: &str, params: Value) -> u64 {
        self.next += 1;
        let message = json!({ "jsonrpc": "2.0", "id": self.next, "method": method, "params": params });
        self.write(message.to_string().as_bytes());
        self.next
    }

    /// The first message that fits, of those that came and those to come.
    #[track_caller]
    pub fn wait(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        if let Some(place) = self.received.iter().position(&fits) {
            return self.received.remove(place);
        }
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(message) if fits(&message) => return message,
                Ok(message) => self.received.push(message),
                Err(_) => panic!("it never came; what came: {:#?}", self.received),
            }
        }
    }

    #[track_caller]
    pub fn answer(&mut self, id: u64) -> Value {
        self.wait(|message| message["id"] == id)
    }

    /// Asks, and gives the result.
    #[track_caller]
    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        let answer = self.answer(id);
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// Asks for what is refused, and gives the refusal.
    #[track_caller]
    pub fn refused(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        let answer = self.answer(id);
        assert!(answer.get("result").is_none(), "{method}: {answer}");
        answer["error"].clone()
    }

    /// The answer to what was not a request.
    #[track_caller]
    pub fn answer_to_nothing(&mut self) -> Value {
        self.wait(|message| message["id"].is_null() && message.get("error").is_some())
    }

    /// The next notice of this kind.
    #[track_caller]
    pub fn notice(&mut self, method: &str) -> Value {
        self.wait(|message| message["method"] == method)["params"].clone()
    }

    /// The next frame of this kind, as it is stored.
    #[track_caller]
    pub fn frame(&mut self, kind: &str) -> Value {
        self.wait(|message| message["method"] == "frame" && message["params"]["kind"] == kind)["params"]
            .clone()
    }

    /// The next call that waits for an approval in a session. Its frame stays among what was heard.
    #[track_caller]
    pub fn approval(&mut self, session: &str) -> Value {
        let known = self.approvals.clone();
        let fits = |message: &Value| is_new_approval(message, &known);
        let frame = match self.received.iter().find(|message| fits(message)) {
            Some(frame) => frame.clone(),
            None => {
                let frame = self.wait(fits);
                self.received.push(frame.clone());
                frame
            }
        };
        let approval = frame["params"]["seq"].clone();
        self.approvals.insert((session.to_owned(), approval.as_u64().unwrap()));
        self.ask("approval.show", json!({ "session": session, "approval": approval }))
    }

    /// Whether a call waits for an approval that nobody has asked about.
    pub fn asks_more(&self) -> bool {
        self.received.iter().any(|message| is_new_approval(message, &self.approvals))
    }

    /// Ends it in good order.
    #[track_caller]
    pub fn end(mut self) {
        drop(self.input.take());
        let deadline = Instant::now() + TIMEOUT;
        while self.child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < deadline, "rpc does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(self.child.wait().unwrap().success());
    }

    /// Ends it as a power cut would.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Rpc {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn is_new_approval(message: &Value, known: &BTreeSet<(String, u64)>) -> bool {
    let frame = &message["params"];
    if message["method"] != "frame" || frame["kind"] != "approval.requested" {
        return false;
    }
    let session = frame["stream"].as_str().unwrap_or_default().to_owned();
    !known.contains(&(session, frame["seq"].as_u64().unwrap_or_default()))
}

/// Every file below a folder and what is in it; links by where they lead.
pub fn tree(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let kind = fs::symlink_metadata(&path).unwrap().file_type();
            let content = match kind {
                kind if kind.is_symlink() => {
                    fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
                }
                kind if kind.is_file() => fs::read(&path).unwrap(),
                kind if kind.is_dir() => {
                    folders.push(path.clone());
                    b"folder".to_vec()
                }
                _ => b"special".to_vec(),
            };
            found.insert(path, content);
        }
    }
    found
}

/// The bodies of frames of a kind.
pub fn bodies<'a>(frames: &'a [Value], kind: &str) -> Vec<&'a Value> {
    frames.iter().filter(|frame| frame["kind"] == kind).map(|frame| &frame["body"]).collect()
}

pub fn contains(bytes: &[u8], needle: &str) -> bool {
    bytes.windows(needle.len()).any(|window| window == needle.as_bytes())
}

/// Reads a request of HTTP to its end: closing a connection on what was not read would reset it.
pub fn read_request(stream: &TcpStream) -> String {
    let mut reader = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    while !head.ends_with("\r\n\r\n") {
        let from = head.len();
        if reader.read_line(&mut head).unwrap() == 0 {
            return head;
        }
        if let Some(value) = head[from..].to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    head + &String::from_utf8_lossy(&body)
}

/// Waits until something holds.
#[track_caller]
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// An owner of the home that lives until it is killed.
pub struct Owner(Child);

impl Owner {
    pub fn begin(scene: &Scene) -> Self {
        let owner = Self::starting(scene);
        until("it comes up", || scene.is_up());
        owner
    }

    /// One whose extensions may not have started yet.
    pub fn starting(scene: &Scene) -> Self {
        let mut command = scene.command(&["up", "--unsupervised"]);
        Self(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// The command as a user whom permissions hold back, also when the tests run as root.
pub fn bounded(command: &Command) -> Command {
    let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
    let mut bounded = Command::new(if is_root { "setpriv".as_ref() } else { command.get_program() });
    if is_root {
        bounded.arg("--bounding-set=-dac_override,-dac_read_search").arg(command.get_program());
    }
    bounded.args(command.get_args()).env_clear();
    bounded.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    if let Some(folder) = command.get_current_dir() {
        bounded.current_dir(folder);
    }
    bounded.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    bounded
}
