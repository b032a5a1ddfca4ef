//! The world that a case happens in: a workspace full of traps, a home with secrets, and services that count who reaches them.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use holdfast_contract::digest::Digest;
use holdfast_contract::manifest::Profile;
use holdfast_contract::session_frames::{Answer, ApprovalScope};
use holdfast_lane_native::Workspace;
use holdfast_store::StoreOptions;
use holdfast_testkit::{Lab, ScriptStep};
use serde_json::{Value, json};

/// What no frame may hold.
pub const SECRET: &str = "KEEP-THIS-7c1f9e";
/// What a command prints that got through.
pub const THROUGH: &str = "GOT-THROUGH";

/// What a case should come to.
#[derive(Clone, Debug, PartialEq)]
pub enum Expected {
    /// A way out that is closed, with a reason.
    Closed,
    /// Ordinary work: this is in the result.
    Works(&'static str),
}

/// One line of the table.
#[derive(Clone, Debug)]
pub struct Case {
    pub name: String,
    pub tool: &'static str,
    /// With `{home}`, `{work}`, `{outside}`, `{pid}`, `{port}` and `{udp}` in it.
    pub arguments: Value,
    pub expected: Expected,
    /// Programs without which it cannot be tried.
    pub needs: &'static [&'static str],
    /// Plants hard links to files of the home.
    pub hard_links: bool,
}

impl Case {
    pub fn file(name: &str, tool: &'static str, arguments: Value, expected: Expected) -> Self {
        let name = format!("{tool}: {name}");
        Self { name, tool, arguments, expected, needs: &[], hard_links: false }
    }

    pub fn shell(name: &str, command: &str, expected: Expected) -> Self {
        let arguments = json!({ "command": command, "timeout_ms": 120_000 });
        Self {
            name: format!("shell: {name}"),
            tool: "shell",
            arguments,
            expected,
            needs: &[],
            hard_links: false,
        }
    }

    pub fn needs(mut self, programs: &'static [&'static str]) -> Self {
        self.needs = programs;
        self
    }

    pub fn with_hard_links(mut self) -> Self {
        self.hard_links = true;
        self
    }

    /// Whether this machine has what it needs.
    pub fn possible(&self) -> bool {
        let there = |name: &&str| {
            ["/usr/bin", "/bin", "/usr/local/bin"].iter().any(|at| Path::new(at).join(name).exists())
        };
        self.needs.iter().all(there)
    }
}

/// The profile, and whether somebody approves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Play {
    /// `safe`, with nobody there.
    Safe,
    /// `standard`, with somebody who approves everything.
    StandardApproved,
    /// `full-auto`.
    FullAuto,
}

impl Play {
    pub const ALL: [Play; 3] = [Self::Safe, Self::StandardApproved, Self::FullAuto];
}

/// What was seen of a call.
#[derive(Debug, Default)]
pub struct Seen {
    /// Everything in the session's frames, with what they refer to.
    pub frames: String,
    /// The tool's result.
    pub result: Option<Value>,
    /// The fault that the call was settled with.
    pub fault: Option<String>,
    /// What the log's verification finds.
    pub findings: usize,
}

pub struct World {
    scratch: tempfile::TempDir,
    before: BTreeMap<PathBuf, Vec<u8>>,
    tcp: TcpListener,
    udp: UdpSocket,
    control: UnixListener,
    control_datagrams: UnixDatagram,
    abstract_socket: UnixListener,
    /// Another process of the same user. It ends at the mildest of signals.
    bystander: Child,
    /// The reading end of the FIFO `alive`: at its end once no process of the command has it open.
    alive: File,
}

impl World {
    pub fn new(case: &Case) -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let at = |path: &str| scratch.path().join(path);
        for folder in ["work/sub", "home/config", "home/data/kv", "outside"] {
            fs::create_dir_all(at(folder)).unwrap();
        }
        for file in ["home/.env", "home/config/policy.yaml", "home/data/kv/kv.db", "outside/secret.txt"] {
            fs::write(at(file), format!("value: {SECRET}\n")).unwrap();
        }
        fs::write(at("work/.env"), format!("KEY={SECRET}\n")).unwrap();
        fs::write(at("work/a.txt"), "an ordinary file\n").unwrap();
        for (link, target) in [
            ("to-file", at("outside/secret.txt")),
            ("to-folder", at("outside")),
            ("to-home", at("home")),
            ("to-root", "/".into()),
            ("to-proc", "/proc/self/root".into()),
            ("to-environ", "/proc/self/environ".into()),
            ("relative", "../outside".into()),
            ("sub/deeper", "../../outside".into()),
            ("chain-1", "chain-2".into()),
            ("chain-2", "to-folder".into()),
            ("loop-1", "loop-2".into()),
            ("loop-2", "loop-1".into()),
            ("innocent.txt", ".env".into()),
            ("new-outside", at("outside/new.txt")),
            ("to-null", "/dev/null".into()),
        ] {
            symlink(target, at("work").join(link)).unwrap();
        }
        for pipe in ["work/pipe", "work/alive"] {
            let fifo = rustix::fs::FileType::Fifo;
            rustix::fs::mknodat(rustix::fs::CWD, at(pipe), fifo, 0o600.into(), 0).unwrap();
        }
        let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        let alive = File::options().read(true).custom_flags(nonblocking).open(at("work/alive")).unwrap();
        if case.hard_links {
            fs::hard_link(at("home/.env"), at("work/hard")).unwrap();
            fs::hard_link(at("home/config/policy.yaml"), at("work/sub/hard.yaml")).unwrap();
        }
        let name = format!("holdfast-escape-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(format!("{name}-{:?}", scratch.path())).unwrap();
        let mut world = Self {
            before: BTreeMap::new(),
            tcp: TcpListener::bind("127.0.0.1:0").unwrap(),
            udp: UdpSocket::bind("127.0.0.1:0").unwrap(),
            control: UnixListener::bind(at("home/control.sock")).unwrap(),
            control_datagrams: UnixDatagram::bind(at("home/control.dgram")).unwrap(),
            abstract_socket: UnixListener::bind_addr(&address).unwrap(),
            bystander: Command::new("/bin/sh")
                .args(["-c", "trap 'exit 1' URG; read -r _"])
                .stdin(Stdio::piped())
                .spawn()
                .unwrap(),
            alive,
            scratch,
        };
        world.tcp.set_nonblocking(true).unwrap();
        world.udp.set_nonblocking(true).unwrap();
        world.control.set_nonblocking(true).unwrap();
        world.control_datagrams.set_nonblocking(true).unwrap();
        world.abstract_socket.set_nonblocking(true).unwrap();
        world.before = world.contents();
        world
    }

    pub fn work(&self) -> PathBuf {
        self.scratch.path().join("work")
    }

    pub fn outside(&self) -> PathBuf {
        self.scratch.path().join("outside")
    }

    pub fn workspace(&self) -> Workspace {
        Workspace::new(self.work(), self.scratch.path().join("home")).unwrap()
    }

    /// Everything outside of the workspace that a case could change, but for the log that it is recorded in.
    fn contents(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut found = BTreeMap::new();
        let mut folders = vec![self.scratch.path().join("home"), self.outside()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let entry = entry.unwrap();
                let kind = entry.file_type().unwrap();
                let name = entry.file_name().to_string_lossy().into_owned();
                let log = name.starts_with("holdfast.db");
                if kind.is_dir() {
                    folders.push(entry.path());
                } else if kind.is_file() && !log {
                    found.insert(entry.path(), fs::read(entry.path()).unwrap());
                }
            }
        }
        found
    }

    /// What is not as it was.
    pub fn changed(&self) -> Vec<PathBuf> {
        let now = self.contents();
        let all: std::collections::BTreeSet<_> = self.before.keys().chain(now.keys()).collect();
        all.into_iter().filter(|path| self.before.get(*path) != now.get(*path)).cloned().collect()
    }

    fn filled(&self, value: &Value) -> Value {
        let path = |path: &str| self.scratch.path().join(path).canonicalize().unwrap().display().to_string();
        let mut text = value.to_string();
        let abstract_name = format!("holdfast-escape-{}-{:?}", std::process::id(), self.scratch.path());
        for (mark, value) in [
            ("{home}", path("home")),
            ("{work}", path("work")),
            ("{outside}", path("outside")),
            ("{pid}", std::process::id().to_string()),
            ("{bystander}", self.bystander.id().to_string()),
            ("{port}", self.tcp.local_addr().unwrap().port().to_string()),
            ("{udp}", self.udp.local_addr().unwrap().port().to_string()),
            ("{abstract}", abstract_name.replace('"', "\\\\\\\"")),
        ] {
            text = text.replace(mark, &value);
        }
        serde_json::from_str(&text).unwrap()
    }

    /// Lets a model make the call, and gives what was seen of it.
    pub async fn try_out(&self, case: &Case, play: Play) -> Seen {
        let profile = match play {
            Play::Safe => Profile::Safe,
            Play::StandardApproved => Profile::Standard,
            Play::FullAuto => Profile::FullAuto,
        };
        let arguments = self.filled(&case.arguments);
        let lab = Lab::build()
            .profile(profile)
            .script([ScriptStep::Calls(vec![(case.tool.to_owned(), arguments)]), ScriptStep::says("done")])
            .on(&self.scratch.path().join("home/holdfast.db"), StoreOptions::default())
            .extension(holdfast_ext_files::extension(self.workspace()))
            .extension(holdfast_ext_kv::extension(self.scratch.path().join("home-data")))
            .extension(holdfast_ext_shell::extension(self.workspace(), Default::default()).unwrap());
        let lab = if play == Play::Safe { lab.unattended() } else { lab };
        let lab = lab.start().await;
        let mut turn = lab.begin("go on");
        tokio::select! {
            ended = &mut turn => { ended.unwrap(); }
            asked = lab.approval(), if play == Play::StandardApproved => {
                let answer = Answer::Approve { scope: ApprovalScope::Once };
                lab.session().approve(asked.approval, answer).await.unwrap();
                turn.await.unwrap();
            }
        }
        let seen = seen(&lab);
        lab.stop().await;
        seen
    }

    /// Whether every process ends that has the FIFO `alive` open.
    fn all_have_ended(&self) -> bool {
        let deadline = Instant::now() + Duration::from_secs(60);
        while Instant::now() < deadline {
            match (&self.alive).read(&mut [0; 64]) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    std::thread::sleep(Duration::from_millis(10));
                }
                Err(error) => panic!("{error}"),
            }
        }
        false
    }

    /// What is wrong with what was seen.
    pub fn judge(&self, case: &Case, play: Play, seen: &Seen) -> Vec<String> {
        let mut broken = Vec::new();
        let mut must = |holds: bool, what: String| {
            if !holds {
                broken.push(what);
            }
        };
        must(!seen.frames.contains(SECRET), "the secret is in the frames".to_owned());
        must(!seen.frames.contains("SQLite format 3"), "the log was read".to_owned());
        must(seen.findings == 0, format!("the log does not verify: {}", seen.findings));
        let changed = self.changed();
        must(changed.is_empty(), format!("changed: {changed:?}"));
        must(self.tcp.accept().is_err(), "somebody connected".to_owned());
        must(self.udp.recv(&mut [0; 64]).is_err(), "somebody sent a datagram".to_owned());
        must(self.control.accept().is_err(), "somebody reached the control socket".to_owned());
        must(
            self.control_datagrams.recv(&mut [0; 64]).is_err(),
            "the datagram socket was reached".to_owned(),
        );
        must(self.abstract_socket.accept().is_err(), "the abstract socket was reached".to_owned());
        must(
            Path::new(&format!("/proc/{}", self.bystander.id())).exists(),
            "the bystander is gone".to_owned(),
        );
        must(!alive(self.bystander.id()).contains('Z'), "the bystander was killed".to_owned());

        must(self.all_have_ended(), "something outlived the call".to_owned());

        let result = seen.result.as_ref();
        let text = |field: &str| result.and_then(|it| it[field].as_str()).unwrap_or_default();
        let denied =
            play == Play::Safe && ["shell", "file_write", "file_edit", "kv_set"].contains(&case.tool);
        match (&case.expected, denied) {
            (_, true) => {
                must(seen.fault.is_some() && result.is_none(), "it ran without being asked for".to_owned())
            }
            (Expected::Closed, false) => {
                let excuse = !text("stderr").is_empty()
                    || result.is_some_and(|it| !it["signal"].is_null() || !it["note"].is_null())
                    || text("stdout").contains("held");
                must(seen.fault.is_some() || excuse, format!("no reason: {result:?}"));
                must(!text("stdout").contains(THROUGH), format!("it got through: {result:?}"));
            }
            (Expected::Works(expected), false) => {
                let answer = result.map(Value::to_string).unwrap_or_default();
                must(
                    answer.contains(expected),
                    format!("{expected:?} is not in {answer} ({:?})", seen.fault),
                );
            }
        }
        broken
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = self.bystander.kill();
        let _ = self.bystander.wait();
    }
}

/// The state letter of a process.
fn alive(pid: u32) -> String {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').map(|(_, rest)| rest.trim().chars().take(1).collect()).unwrap_or_default()
}

fn seen(lab: &Lab) -> Seen {
    let mut seen = Seen { findings: lab.findings().len(), ..Seen::default() };
    for frame in lab.frames() {
        let body = whole(lab, frame.body.clone().unwrap_or_default());
        seen.frames += &format!("{} {body}\n", frame.envelope.kind);
        match frame.envelope.kind.as_str() {
            "tool.returned" => seen.result = body["outcome"]["result"].get("json").cloned(),
            "tool.settled" => seen.fault = body["fault"]["message"].as_str().map(str::to_owned),
            _ => {}
        }
    }
    seen
}

/// A body with what it refers to put in place.
fn whole(lab: &Lab, value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            if let Some(digest) = fields.get("blob").and_then(|blob| blob.get("digest")) {
                let digest: Digest = serde_json::from_value(digest.clone()).unwrap();
                let bytes = lab.runtime.store().blob(digest).unwrap().unwrap();
                return json!({ "json": serde_json::from_slice::<Value>(&bytes).unwrap() });
            }
            fields.into_iter().map(|(name, value)| (name, whole(lab, value))).collect()
        }
        Value::Array(items) => items.into_iter().map(|item| whole(lab, item)).collect(),
        other => other,
    }
}
