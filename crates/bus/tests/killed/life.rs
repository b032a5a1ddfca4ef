//! One process: it opens the bus as it finds it, publishes its share of the events, and goes on until all is dealt with or
//! it is killed.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fail::FailScenario;
use holdfast_bus::{Bus, BusSettings, Clock, Delivery, Entropy, NewEvent, Subscription};
use holdfast_contract::content::Content;
use holdfast_contract::ids::Millis;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::wire::Later;
use holdfast_store::{Store, StoreOptions};

use super::ledger::{Ledger, Noted};
use super::plan::{self, Act};

/// Both sides of every barrier: of the event that is published, of the acknowledgement, of the handler, of its outcome, of the
/// commit itself.
pub const POINTS: [&str; 8] = [
    "bus::before_append",
    "bus::before_acknowledgement",
    "bus::after_durable",
    "bus::before_handler",
    "bus::after_handler",
    "bus::before_record",
    "store::before_commit",
    "store::after_commit_before_ack",
];

const PUBLISHERS: u64 = 8;

/// How a life ends before its time.
#[derive(Clone, Copy, Debug)]
pub enum Kill {
    /// When a point is passed for the so-manieth time.
    At(&'static str, usize),
    /// So long after it began.
    After(Duration),
}

/// How a life ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// All was dealt with.
    Done,
    /// It was killed as it was to be.
    Killed,
    /// A handler killed it before.
    KilledByHandler,
}

/// A database and the ledger beside it.
pub struct Folder {
    folder: tempfile::TempDir,
    events: u64,
    /// Whether the store acknowledges before it commits, deliberately.
    hasty: bool,
}

impl Folder {
    /// For so many events in all.
    pub fn new(events: u64) -> Self {
        Self { folder: tempfile::tempdir().unwrap(), events, hasty: false }
    }

    /// The same with a planted bug: the store acknowledges before it commits.
    pub fn hasty(events: u64) -> Self {
        Self { hasty: true, ..Self::new(events) }
    }

    pub fn database(&self) -> PathBuf {
        self.folder.path().join("holdfast.db")
    }

    pub fn events(&self) -> u64 {
        self.events
    }

    pub fn happened(&self) -> Vec<Noted> {
        Ledger::read(&self.folder.path().join("ledger"))
    }

    /// A life in another process, which publishes the events below `until`.
    pub fn live(&self, until: u64, kill: Option<Kill>) -> End {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "lives_for_its_parent", "--ignored", "--nocapture"]);
        command.env("HOLDFAST_LIFE", self.folder.path()).env("HOLDFAST_UNTIL", until.to_string());
        command.env_remove("FAILPOINTS").env("RUST_BACKTRACE", "0");
        if let Some(Kill::At(point, hit)) = kill {
            command.env("HOLDFAST_KILL", format!("{point} {hit}"));
        }
        if self.hasty {
            command.env("FAILPOINTS", "store::ack_early=return");
        }
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut printed = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        while printed.read_line(&mut line).unwrap() > 0 && !line.ends_with("it lives\n") {}
        let mut in_time = matches!(kill, Some(Kill::At(..)));
        if let Some(Kill::After(delay)) = kill {
            std::thread::sleep(delay);
            in_time = child.try_wait().unwrap().is_none();
            // It may have ended by itself.
            let _gone = child.kill();
        }
        let output = child.wait_with_output().unwrap();
        let killed = std::os::unix::process::ExitStatusExt::signal(&output.status) == Some(9);
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(killed || output.status.success(), "a life went wrong: {}\n{complaint}", output.status);
        match (killed, in_time) {
            (false, _) => End::Done,
            (true, true) => End::Killed,
            (true, false) => End::KilledByHandler,
        }
    }

    /// Lives until all is dealt with, however often a handler kills the process.
    pub fn live_to_the_end(&self) {
        let lives = (0..500).take_while(|_| self.live(self.events, None) != End::Done).count();
        assert!(lives < 500, "it never came to its end");
    }
}

struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Millis {
        Millis(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64)
    }

    fn steady(&self) -> Millis {
        self.now()
    }

    fn sleep(&self, span: Millis) -> Later<()> {
        Box::pin(tokio::time::sleep(Duration::from_millis(span.0)))
    }
}

struct Dice;

impl Entropy for Dice {
    fn draw(&self, count: u32) -> Vec<u8> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
        plan::mix(now).to_le_bytes().into_iter().cycle().take(count as usize).collect()
    }
}

/// The other process.
pub fn live_for_parent() {
    let Ok(folder) = std::env::var("HOLDFAST_LIFE") else { return };
    let until: u64 = std::env::var("HOLDFAST_UNTIL").unwrap().parse().unwrap();
    let folder = Path::new(&folder);
    let scenario = FailScenario::setup();
    watch_points();
    let before = Ledger::read(&folder.join("ledger"));
    let acknowledged: BTreeSet<u64> = before
        .iter()
        .filter_map(|noted| match noted {
            Noted::Acknowledged { event } => Some(*event),
            _ => None,
        })
        .collect();
    let ledger = Arc::new(Ledger::open(&folder.join("ledger")));
    let threads =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
    println!("it lives");
    let store = Store::open(&folder.join("holdfast.db"), StoreOptions::default()).unwrap();
    threads.block_on(live(&store, &ledger, acknowledged, until));
    drop(threads);
    store.close();
    scenario.teardown();
}

async fn live(store: &Store, ledger: &Arc<Ledger>, acknowledged: BTreeSet<u64>, until: u64) {
    let subscriptions = (0..plan::SUBSCRIBERS).map(|subscriber| subscription(subscriber, ledger)).collect();
    let (clock, dice) = (Arc::new(SystemClock), Arc::new(Dice));
    let bus = Bus::open(store.clone(), clock, dice, BusSettings::default(), subscriptions).await.unwrap();
    let publishers: Vec<_> = (0..PUBLISHERS)
        .map(|publisher| {
            let (bus, ledger, acknowledged) = (bus.clone(), Arc::clone(ledger), acknowledged.clone());
            tokio::spawn(async move {
                // Those of one key are published by one publisher, in order.
                let mine = |event: &u64| plan::mix(event + 1_000_000) % 40 % PUBLISHERS == publisher;
                for event in (0..until).filter(mine).filter(|event| !acknowledged.contains(event)) {
                    let new = NewEvent::new(plan::topic(event), Content::text(event.to_string()));
                    let new = new.key(plan::key(event)).idempotency(event.to_string());
                    bus.publish(new).await.unwrap();
                    ledger.note(Noted::Acknowledged { event });
                }
            })
        })
        .collect();
    for publisher in publishers {
        publisher.await.unwrap();
    }
    while bus.status().subscribers.iter().any(|subscriber| subscriber.open > 0) {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    bus.close(Millis(10_000)).await;
}

fn subscription(subscriber: u64, ledger: &Arc<Ledger>) -> Subscription {
    let ledger = Arc::clone(ledger);
    let handler = move |delivery: Delivery| handle(subscriber, Arc::clone(&ledger), delivery);
    let patterns = plan::patterns(subscriber);
    let patterns: Vec<_> = patterns.iter().map(String::as_str).collect();
    let terms = Subscription::new(plan::name(subscriber), &patterns, handler).unwrap();
    Subscription {
        max_attempts: plan::MAX_ATTEMPTS,
        backoff: plan::BACKOFF,
        deadline: plan::DEADLINE,
        backlog: 100_000,
        ..terms
    }
}

async fn handle(subscriber: u64, ledger: Arc<Ledger>, delivery: Delivery) -> Result<(), Fault> {
    let Delivery { event, attempt, repeat } = delivery;
    // Those who take everything also get notices of dead letters.
    let Ok(event) = event.payload.to_text().parse() else { return Ok(()) };
    ledger.note(Noted::Called { subscriber, event, attempt, repeat });
    match plan::act(subscriber, event) {
        Act::Fail(times) if attempt <= times => return Err(Fault::new(Code::ExtensionFault, "told to")),
        Act::FailAlways => return Err(Fault::new(Code::ExtensionFault, "always told to")),
        Act::Panic => std::panic::resume_unwind(Box::new("told to")),
        Act::Hang if attempt == 1 => std::future::pending().await,
        Act::Kill(times) if attempt <= times => die(),
        _ => {}
    }
    ledger.note(Noted::Took { subscriber, event });
    Ok(())
}

/// Dies at the point that was named, when it is passed for the so-manieth time.
fn watch_points() {
    let Ok(kill) = std::env::var("HOLDFAST_KILL") else { return };
    let (point, hit) = kill.split_once(' ').unwrap();
    let (hit, passed): (usize, _) = (hit.parse().unwrap(), AtomicUsize::new(0));
    let count = move || {
        if passed.fetch_add(1, Ordering::Relaxed) + 1 == hit {
            // What the other threads were told, they have a moment to act upon.
            std::thread::sleep(Duration::from_millis(3));
            die();
        }
    };
    fail::cfg_callback(point, count).unwrap();
}

/// A real `kill -9`. This thread goes no further; what the others still do until the signal comes is theirs.
fn die() {
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).unwrap();
    std::thread::sleep(Duration::from_secs(60));
}

/// What happened, by what it happened to.
pub type Counted = BTreeMap<&'static str, usize>;

/// Counts what kinds of things happened, for a report.
pub fn count(happened: &[Noted]) -> Counted {
    let counted = Mutex::new(Counted::new());
    for noted in happened {
        let kind = match noted {
            Noted::Acknowledged { .. } => "acknowledged",
            Noted::Called { repeat: true, .. } => "repeats",
            Noted::Called { .. } => "first calls",
            Noted::Took { .. } => "taken",
        };
        *counted.lock().unwrap().entry(kind).or_default() += 1;
    }
    counted.into_inner().unwrap()
}
