//! Runs of the workload in a process of their own, on real files, that end by `kill -9`.
//!
//! A [`Folder`] holds one database and the outside ledger beside it. Each life in it is another process: it takes up whatever the one
//! before left and goes on until everything is said, or until it is killed.
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fail::FailScenario;
use holdfast_contract::tool::EffectClass;
use holdfast_runtime::SystemClock;
use holdfast_store::{Store, StoreOptions};

use super::examine::{Violation, honest, ran_once, read, replays};
use super::ledger::{FileLedger, Noted};
use super::life::{Until, live};
use super::many::{in_parallel, report};
use super::plan::{CONVERSATION, SHORT, Talk};
use super::world::World;

/// Both sides of every barrier: of the frame that decides, of the tool that runs, of the user who is told, of the commit itself.
pub const POINTS: [&str; 7] = [
    "driver::before_barrier",
    "driver::after_barrier",
    "driver::before_tool",
    "driver::after_tool",
    "driver::before_delivery",
    "store::before_commit",
    "store::after_commit_before_ack",
];

/// How a life ends before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kill {
    /// At a failpoint, when it is passed for the so-manieth time.
    At(&'static str, usize),
    /// So long after it began to live.
    After(Duration),
}

/// What is wrong with the program, deliberately.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Planted {
    #[default]
    Nothing,
    /// The store acknowledges before it commits.
    EarlyAcknowledgement,
    /// The undeclared tool is taken for one that only reads.
    TrustInTheUndeclared,
}

/// A database and its ledger.
pub struct Folder {
    folder: tempfile::TempDir,
    planted: Planted,
    talks: &'static str,
}

/// What is said, by its name.
fn talks(name: &str) -> &'static [Talk] {
    if name == "conversation" { CONVERSATION } else { SHORT }
}

/// How a life went.
pub struct Life {
    /// Whether it was killed, and not done before.
    pub killed: bool,
    /// How long it lived.
    pub took: Duration,
}

impl Folder {
    pub fn new(planted: Planted) -> Self {
        Self { folder: tempfile::tempdir().unwrap(), planted, talks: "short" }
    }

    /// One for a program with nothing wrong.
    pub fn honest() -> Self {
        Self::new(Planted::Nothing)
    }

    /// One for the long conversation.
    pub fn conversation() -> Self {
        Self { talks: "conversation", ..Self::honest() }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A life in another process.
    pub fn live(&self, kill: Option<Kill>) -> Life {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "lives_for_its_parent", "--ignored", "--nocapture"]);
        command.env("HOLDFAST_LIFE", self.folder.path()).env("HOLDFAST_TALKS", self.talks);
        command.env_remove("FAILPOINTS").env("RUST_BACKTRACE", "0");
        if let Some(Kill::At(point, hit)) = kill {
            command.env("HOLDFAST_KILL", format!("{point} {hit}"));
        }
        match self.planted {
            Planted::Nothing => {}
            Planted::EarlyAcknowledgement => drop(command.env("FAILPOINTS", "store::ack_early=return")),
            Planted::TrustInTheUndeclared => drop(command.env("HOLDFAST_TRUSTS", "yes")),
        }
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut printed = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        while printed.read_line(&mut line).unwrap() > 0 && !line.ends_with("it lives\n") {}
        let began = Instant::now();
        if let Some(Kill::After(delay)) = kill {
            std::thread::sleep(delay);
            // It may have ended by itself.
            let _gone = child.kill();
        }
        let mut rest = String::new();
        let _cut_short = printed.read_line(&mut rest);
        let output = child.wait_with_output().unwrap();
        let took = began.elapsed();
        let killed = std::os::unix::process::ExitStatusExt::signal(&output.status) == Some(9);
        let complaint = String::from_utf8_lossy(&output.stderr);
        // A program that acknowledges early may trip over it by itself.
        let may_fail = self.planted == Planted::EarlyAcknowledgement;
        assert!(
            killed || may_fail || output.status.success(),
            "a life went wrong: {}\n{rest}{complaint}",
            output.status
        );
        assert!(!killed || kill.is_some(), "somebody else killed it");
        Life { killed, took }
    }

    /// Kills a life, maybe kills the one that recovers, and lets another go on to the end. Tells how much had happened before the first
    /// was killed, if it was not done before.
    pub fn kill_and_recover(&self, first: Kill, second: Option<Kill>) -> Result<Option<usize>, Violation> {
        let killed = self.live(Some(first)).killed;
        let happened = self.happened().len();
        self.look()?;
        if let Some(second) = second {
            self.live(Some(second));
            self.look()?;
        }
        self.live(None);
        self.judge()?;
        Ok(killed.then_some(happened))
    }

    /// How often a life from beginning to end passes each point.
    pub fn hits(&self) -> BTreeMap<String, usize> {
        serde_json::from_slice(&std::fs::read(self.file("hits")).unwrap()).unwrap()
    }

    /// What happened so far.
    pub fn happened(&self) -> Vec<Noted> {
        FileLedger::read(&self.file("ledger"))
    }

    /// Holds what a killed process left against the ledger: on a copy, so that the next life finds it untouched.
    pub fn look(&self) -> Result<(), Violation> {
        let copy = tempfile::tempdir().unwrap();
        for name in ["holdfast.db", "holdfast.db-wal", "holdfast.db-journal"] {
            if self.file(name).exists() {
                std::fs::copy(self.file(name), copy.path().join(name)).unwrap();
            }
        }
        let store = Store::open(&copy.path().join("holdfast.db"), StoreOptions::default())?;
        read(&store, None, honest)?.bears_out(&self.happened())?;
        store.close();
        Ok(())
    }

    /// Holds what the last life left against the ledger of all: everything is said, nothing ran twice, the log verifies and replays.
    pub fn judge(&self) -> Result<(), Violation> {
        let happened = self.happened();
        ran_once(&happened)?;
        let store = Store::open(&self.file("holdfast.db"), StoreOptions::default())?;
        let found = read(&store, None, honest)?;
        found.bears_out(&happened)?;
        for talk in talks(self.talks) {
            assert_eq!(found.turns(talk.session), talk.prompts().count(), "the turns of {}", talk.session);
        }
        replays(&store, self.undeclared())?;
        store.close();
        Ok(())
    }

    fn undeclared(&self) -> EffectClass {
        match self.planted {
            Planted::TrustInTheUndeclared => EffectClass::Read,
            Planted::Nothing | Planted::EarlyAcknowledgement => EffectClass::default(),
        }
    }
}

/// Kills one life in a folder of its own for each time that each point is passed in a life that nobody disturbs, each third again while it
/// recovers, and has all of them brought to an end.
pub fn killed_at_every_hit(folder: fn() -> Folder) {
    let undisturbed = folder();
    undisturbed.live(None);
    undisturbed.judge().unwrap();
    let hits = undisturbed.hits();
    let every_hit = |point| (1..=hits[point]).map(move |hit| Kill::At(point, hit));
    let kills: Vec<Kill> = POINTS.into_iter().flat_map(every_hit).collect();
    let killed = AtomicUsize::new(0);
    let found = in_parallel(&kills, |place, kill| {
        let again = (place % 3 == 0).then(|| Kill::At(POINTS[place % POINTS.len()], 1 + place % 5));
        killed.fetch_add(usize::from(folder().kill_and_recover(*kill, again)?.is_some()), Ordering::Relaxed);
        Ok(())
    });
    assert!(found.is_empty(), "{}", report(&found));
    let killed = killed.into_inner();
    println!("{} hits of {} points, {killed} kills", kills.len(), POINTS.len());
    // How often a point is passed differs a little from life to life, so a last hit may not come.
    assert!(killed * 10 >= kills.len() * 9, "only {killed} of {} were killed", kills.len());
}

/// The other process.
pub fn live_for_parent() {
    let Ok(folder) = std::env::var("HOLDFAST_LIFE") else { return };
    let folder = Path::new(&folder);
    let scenario = FailScenario::setup();
    let hits = watch_points();
    let undeclared = match std::env::var("HOLDFAST_TRUSTS") {
        Ok(_) => EffectClass::Read,
        Err(_) => EffectClass::default(),
    };
    let world = World { undeclared, ..World::new(Arc::new(FileLedger::open(&folder.join("ledger")))) };
    let threads =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
    println!("it lives");
    let store = Store::open(&folder.join("holdfast.db"), StoreOptions::default()).unwrap();
    let talks = talks(&std::env::var("HOLDFAST_TALKS").unwrap_or_default());
    threads.block_on(live(&world, store.clone(), Arc::new(SystemClock), talks, Until::AllIsSaid)).unwrap();
    drop(threads);
    store.close();
    std::fs::write(folder.join("hits"), serde_json::to_vec(&*hits.lock().unwrap()).unwrap()).unwrap();
    scenario.teardown();
}

type Hits = Arc<Mutex<BTreeMap<&'static str, usize>>>;

/// Counts how often each point is passed, and dies at the one that was named.
fn watch_points() -> Hits {
    let kill = std::env::var("HOLDFAST_KILL").unwrap_or_default();
    let hits = Hits::default();
    for point in POINTS {
        let (hits, kill) = (hits.clone(), kill.clone());
        let count = move || {
            let hit = {
                let mut hits = hits.lock().unwrap();
                let hit = hits.entry(point).or_default();
                *hit += 1;
                *hit
            };
            if kill == format!("{point} {hit}") {
                die();
            }
        };
        fail::cfg_callback(point, count).unwrap();
    }
    hits
}

/// A real `kill -9`, from outside. This thread goes no further; what the others still do until the signal comes is theirs.
fn die() {
    let _status = Command::new("sh").args(["-c", "kill -9 $PPID"]).status();
    std::thread::sleep(Duration::from_secs(60));
}
