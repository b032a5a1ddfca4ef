//! An in-memory vault, and programs in Python.

use std::collections::BTreeMap;
use std::panic::Location;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use holdfast_contract::budgets::Budgets;
use holdfast_contract::content::Content;
use holdfast_contract::digest::Digest;
use holdfast_contract::host_call::HostCall;
use holdfast_contract::ids::{Generation, Millis};
use holdfast_contract::log::{LogLevel, LogSink};
use holdfast_contract::manifest::Grants;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::registry::ExtensionRef;
use holdfast_contract::wire::{Bundle, Call, Host, Instance, Lane, Later, Reply, Vault};
use holdfast_lane_process::{Places, ProcessLane};
use serde_json::{Value, json};

/// After this a test gives up. It only has to be longer than the slowest machine needs.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The disk quota of programs in these tests.
pub const DISK_BYTES: u64 = 32 << 20;

/// The prelude of every program: `send`, `receive`, and `greet`, which answers `hello`.
pub const PRELUDE: &str = r#"
import json, os, sys, time
def send(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n"); sys.stdout.flush()
def receive():
    line = sys.stdin.readline()
    if not line: sys.exit(0)
    return json.loads(line)
def greet(**more):
    hello = receive()
    send(id=hello["id"], result={"protocol": "0.1", "tools": [{"name": "go"}], **more})
    return hello
"#;

/// Where a test's programs live.
pub struct Yard {
    pub folder: tempfile::TempDir,
    vault: Arc<MemoryVault>,
    pub lane: ProcessLane,
    #[allow(dead_code, reason = "not every test looks at the log")]
    pub lines: Arc<Mutex<Vec<String>>>,
}

#[derive(Default)]
struct MemoryVault(Mutex<BTreeMap<Digest, Vec<u8>>>, Mutex<BTreeMap<String, Vec<u8>>>);

impl Vault for MemoryVault {
    fn bundle(&self, digest: Digest) -> Result<Bundle, Fault> {
        Ok(serde_json::from_slice(&self.file(digest)?).unwrap())
    }

    fn file(&self, digest: Digest) -> Result<Vec<u8>, Fault> {
        let missing = || Fault::new(Code::ExtensionGone, "not here");
        self.0.lock().unwrap().get(&digest).cloned().ok_or_else(missing)
    }

    fn derived(&self, name: &str) -> Option<Vec<u8>> {
        self.1.lock().unwrap().get(name).cloned()
    }

    fn keep_derived(&self, name: &str, bytes: &[u8]) {
        self.1.lock().unwrap().insert(name.to_owned(), bytes.to_vec());
    }
}

impl Yard {
    pub fn new() -> Self {
        Self::with(|lane| lane)
    }

    /// A yard whose lane is set up like this.
    pub fn with(set: impl FnOnce(ProcessLane) -> ProcessLane) -> Self {
        Self::made(set, |places| places)
    }

    /// A yard of a home that lies elsewhere.
    #[allow(dead_code, reason = "one test uses it")]
    pub fn at_home(home: &str) -> Self {
        Self::made(|lane| lane, |places| Places { home: home.into(), ..places })
    }

    /// The same, on a machine with this confinement.
    #[allow(dead_code, reason = "one test uses it")]
    pub fn of_home(home: &str, report: holdfast_sandbox::SandboxReport) -> Self {
        Self::made(|lane| lane.on(report), |places| Places { home: home.into(), ..places })
    }

    fn made(set: impl FnOnce(ProcessLane) -> ProcessLane, placed: impl FnOnce(Places) -> Places) -> Self {
        let (folder, vault) = (tempfile::tempdir().unwrap(), Arc::new(MemoryVault::default()));
        let lines = Arc::new(Mutex::new(Vec::new()));
        let places = placed(Places::within(folder.path()));
        let kept = lines.clone();
        let sink: LogSink = Arc::new(move |_, level: LogLevel, line: &str| {
            kept.lock().unwrap().push(format!("{level:?}: {line}"));
        });
        let lane = set(ProcessLane::new(vault.clone(), places).with_log(sink));
        Self { folder, vault, lane, lines }
    }

    /// Loads a program.
    pub async fn load(&self, id: &str, script: &str) -> Result<Arc<dyn Instance>, Fault> {
        self.load_with(id, script, "").await
    }

    /// Loads a program with more in its manifest.
    pub async fn load_with(&self, id: &str, script: &str, more: &str) -> Result<Arc<dyn Instance>, Fault> {
        self.load_granted(id, script, more, Grants::default()).await
    }

    /// Loads a program with more in its manifest, and with grants.
    pub async fn load_granted(
        &self,
        id: &str,
        script: &str,
        more: &str,
        grants: Grants,
    ) -> Result<Arc<dyn Instance>, Fault> {
        let script = format!("{PRELUDE}\n{script}").into_bytes();
        let code = Digest::of(&script);
        let bundle = Bundle {
            lane: "process".to_owned(),
            manifest: format!("id: {id}\nname: {id}\ncommand: [python3, -u, -S, main.py]\n{more}"),
            entrypoint: String::new(),
            files: BTreeMap::from([("main.py".to_owned(), code)]),
            config: Content::new(json!({})),
            grants,
            budgets: Budgets {
                host_calls: 20,
                log_bytes: 4096,
                disk_bytes: DISK_BYTES,
                ..Budgets::default()
            },
            pinned: None,
        };
        let bytes = serde_json::to_vec(&bundle).unwrap();
        let digest = Digest::of(&bytes);
        self.vault.0.lock().unwrap().extend([(code, script), (digest, bytes)]);
        let version = "1.0.0".into();
        self.lane.load(&ExtensionRef { id: id.into(), version, digest, generation: Generation(1) }).await
    }

    /// The processes that run on this yard's code or data, by what `/proc` says of their working folder.
    pub fn running(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir("/proc").unwrap().flatten();
        let folders = entries.filter_map(|entry| std::fs::read_link(entry.path().join("cwd")).ok());
        folders.filter(|folder| folder.starts_with(self.folder.path())).collect()
    }

    /// Waits until nothing of it runs any more.
    pub async fn empties(&self) {
        eventually(|| self.running().is_empty()).await;
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Waits for something that a process brings about.
#[allow(dead_code, reason = "not every test waits")]
#[track_caller]
pub fn eventually(mut happened: impl FnMut() -> bool) -> impl Future<Output = ()> {
    let (deadline, caller) = (Instant::now() + TIMEOUT, Location::caller());
    async move {
        while !happened() {
            assert!(Instant::now() < deadline, "it did not happen: {caller}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// Calls the tool `go`.
#[allow(dead_code, reason = "not every test calls it so")]
pub async fn go(instance: &Arc<dyn Instance>, arguments: Value) -> Result<Value, Fault> {
    let call = Call::Tool {
        call: holdfast_contract::ids::CallId { turn: 1, index: 1 },
        tool: "go".into(),
        arguments: Content::new(arguments),
        turn: Arc::default(),
    };
    match instance.call(call, Arc::new(Echo)).await? {
        Reply::Content(content) => Ok(content.value().clone()),
        other => panic!("{other:?}"),
    }
}

/// A host that answers every question with the question.
#[allow(dead_code, reason = "not every test calls it so")]
pub struct Echo;

impl Host for Echo {
    fn call_within(&self, call: HostCall, _: Option<Millis>) -> Later<Result<Content, Fault>> {
        Box::pin(std::future::ready(Ok(Content::text(format!("{call:?}")))))
    }
}
