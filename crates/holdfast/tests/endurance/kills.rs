//! Kills at any moment: of the whole tree, of the owner, the supervisor or the extensions' processes alone; between them graceful stops and
//! processes that are stopped for a while. What happens, and when, follows from a seed that is printed: with `HOLDFAST_SEED` set to it, the
//! same happens again.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::examination::{examine, unanswered};
use crate::shared::until;
use crate::traffic::Traffic;

/// The processes below one.
fn below(process: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let children = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let all = children.collect::<Vec<_>>().join(" ");
    let found: Vec<u32> = all.split_whitespace().filter_map(|child| child.parse().ok()).collect();
    found.iter().flat_map(|child| std::iter::once(*child).chain(below(*child))).collect()
}

fn signal(name: &str, processes: &[u32]) {
    let mut command = Command::new("kill");
    command.arg(name).args(processes.iter().map(u32::to_string));
    drop(command.stderr(Stdio::null()).status());
}

/// Whether a process has ended. One that nobody has waited for has.
fn has_ended(process: &u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with(['Z', 'X']))
}

fn is_worker(process: &u32) -> bool {
    fs::read_to_string(format!("/proc/{process}/comm")).is_ok_and(|name| name.starts_with("python"))
}

/// A home that is kept up by its supervisor. A test that fails takes it down.
pub struct Up(Child);

impl Up {
    pub fn start(traffic: &Traffic) -> Self {
        let mut command = traffic.scene.command(&["up"]);
        let report = fs::File::options().create(true).append(true).open(traffic.scene.root().join("up.log"));
        Self(command.stdout(Stdio::null()).stderr(report.unwrap()).spawn().unwrap())
    }

    /// Kills the supervisor, the owner and every process below it.
    pub fn kill(&mut self) {
        let mut all = vec![self.0.id()];
        all.extend(below(self.0.id()));
        signal("-KILL", &all);
        self.0.wait().unwrap();
    }

    /// Sends the supervisor a signal and waits until it and every process below it have ended.
    fn end(&mut self, name: &str) -> Option<i32> {
        let tree = below(self.0.id());
        signal(name, &[self.0.id()]);
        let mut code = None;
        until(&format!("the supervisor has ended after {name}"), || {
            let ended = self.0.try_wait().unwrap();
            code = ended.and_then(|status| status.code());
            ended.is_some()
        });
        until(&format!("no process is left after {name}"), || tree.iter().all(has_ended));
        code
    }

    /// Ends it in good order.
    pub fn down(mut self, traffic: &Traffic) {
        traffic.scene.run(&["down"]).ok();
        self.0.wait().unwrap();
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        if let Ok(None) = self.0.try_wait() {
            self.kill();
        }
    }
}

/// Random numbers that follow from a seed.
struct Dice(u64);

impl Dice {
    fn new() -> Self {
        let given = std::env::var("HOLDFAST_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = given.unwrap_or_else(|| {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
            u64::from(now.subsec_nanos()) ^ now.as_secs() << 20
        });
        println!("HOLDFAST_SEED={seed}");
        Self(seed)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        ((mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 33) % bound
    }

    fn span(&mut self, from: u64, until: u64) -> Duration {
        Duration::from_millis(from + self.below(until - from))
    }
}

/// What happens to a home.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Blow {
    /// Every process is killed.
    KillAll,
    /// The owner is killed: its supervisor starts the next one.
    KillOwner,
    /// The supervisor is killed: the owner and everything below it end.
    KillSupervisor,
    /// The extensions' processes are killed: the home goes on.
    KillWorkers,
    /// It is asked to stop, in the middle of its work.
    Terminate,
    /// The owner is stopped for a while, and goes on.
    PauseOwner,
    /// The extensions' processes are stopped for a while, and go on.
    PauseWorkers,
    /// The owner is killed while it is stopped.
    KillPaused,
}

impl Blow {
    fn is_kill(self) -> bool {
        !matches!(self, Self::Terminate | Self::PauseOwner | Self::PauseWorkers)
    }
}

const BLOWS: [Blow; 8] = [
    Blow::KillAll,
    Blow::KillOwner,
    Blow::Terminate,
    Blow::PauseOwner,
    Blow::KillWorkers,
    Blow::KillSupervisor,
    Blow::PauseWorkers,
    Blow::KillPaused,
];

/// Uses the home for some time.
fn work(traffic: &mut Traffic, life: Duration) {
    let end = Instant::now() + life;
    while let Some(rest) = end.checked_duration_since(Instant::now()) {
        traffic.post();
        std::thread::sleep(rest.min(Duration::from_millis(300)));
    }
}

fn strike(blow: Blow, up: &mut Up, traffic: &mut Traffic, pause: Duration) {
    let tree = below(up.0.id());
    let owner: Vec<u32> = tree.iter().take(1).copied().collect();
    let workers: Vec<u32> = tree.iter().filter(|process| is_worker(process)).copied().collect();
    match blow {
        Blow::KillAll => {
            up.kill();
            until("no process is left", || tree.iter().all(has_ended));
        }
        Blow::KillOwner => signal("-KILL", &owner),
        Blow::KillWorkers => signal("-KILL", &workers),
        Blow::KillSupervisor => drop(up.end("-KILL")),
        Blow::Terminate => {
            // A supervisor that was started a moment ago may not handle signals yet.
            let code = up.end("-TERM");
            assert!(code == Some(0) || (code.is_none() && tree.is_empty()), "a graceful stop: {code:?}");
        }
        Blow::PauseOwner | Blow::PauseWorkers | Blow::KillPaused => {
            let stopped = if blow == Blow::PauseWorkers { workers } else { owner };
            signal("-STOP", &stopped);
            // Messages arrive meanwhile.
            work(traffic, pause);
            signal(if blow == Blow::KillPaused { "-KILL" } else { "-CONT" }, &stopped);
        }
    }
    if matches!(blow, Blow::KillAll | Blow::KillSupervisor | Blow::Terminate) {
        *up = Up::start(traffic);
    }
}

/// Waits until every message is answered and every event delivered, as long as further ones are: after many kills the queues are long, and
/// how fast they get shorter is the machine's.
pub fn drain(traffic: &Traffic) {
    let progress = || (traffic.answers(), traffic.delivered().len());
    let undelivered = || {
        let delivered: BTreeSet<u64> = traffic.delivered().iter().map(|(number, _)| *number).collect();
        traffic.published().iter().filter(|number| !delivered.contains(number)).count()
    };
    let is_done = || {
        traffic.waiting() == 0
            && traffic.answers() >= traffic.messages
            && undelivered() == 0
            && unanswered(traffic).is_empty()
    };
    while !is_done() {
        let before = progress();
        until(&format!("more than {before:?} answers and events of {} messages", traffic.messages), || {
            progress() != before || is_done()
        });
    }
}

#[test]
fn nothing_is_lost_and_nothing_happens_twice_when_a_home_in_use_is_killed_at_any_moment() {
    let given: Option<usize> = std::env::var("HOLDFAST_KILLS").ok().and_then(|kills| kills.parse().ok());
    // The short form has each of them once.
    let short = BLOWS.iter().filter(|blow| blow.is_kill()).count();
    let (wanted, longest) = given.map_or((short, 2_000), |kills| (kills, 6_000));
    if wanted == 0 {
        return;
    }
    let mut dice = Dice::new();
    let mut traffic = Traffic::new();
    let began = Instant::now();
    let mut up = Up::start(&traffic);
    let (mut blows, mut struck, mut kills) = (BLOWS.to_vec(), BTreeMap::new(), 0);
    // As many kills as are wanted, with pauses and graceful stops between them.
    while kills < wanted || !blows.is_empty() && given.is_none() {
        if blows.is_empty() {
            blows = BLOWS.to_vec();
        }
        let blow = blows.swap_remove(dice.below(blows.len() as u64) as usize);
        // One in three while it starts, the others up to some seconds into its work.
        let life = match dice.below(3) {
            0 => dice.span(0, 800),
            _ => dice.span(200, longest),
        };
        work(&mut traffic, life);
        let pause = dice.span(50, 2_000);
        strike(blow, &mut up, &mut traffic, pause);
        *struck.entry(blow).or_insert(0) += 1;
        kills += usize::from(blow.is_kill());
        if blow.is_kill() && kills.is_multiple_of(25) {
            let (messages, answers) = (traffic.messages, traffic.answers());
            println!("{kills} kills, {messages} messages, {answers} answers after {:?}", began.elapsed());
        }
    }
    println!("{kills} kills of {struck:?} in {:?}; {} messages wait", began.elapsed(), traffic.waiting());
    drain(&traffic);
    up.down(&traffic);
    let findings = examine(&traffic);
    println!("{kills} kills of {struck:?} in {:?}: {findings:#?}", began.elapsed());
}
