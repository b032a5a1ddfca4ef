//! Power loss under the frame log: one workload of a thousand frames, a crash at every I/O step of it, and twenty thousand random
//! states of unsynced writes. No acknowledged frame is lost, no log is unreadable, and no crash looks like tampering.
//!
//! The same examination is then turned on two planted bugs, a sync that is skipped and an acknowledgement that comes early: it must
//! notice both.
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use fail::FailScenario;
use holdfast_contract::content::Content;
use holdfast_contract::frame::{Draft, FrameSource};
use holdfast_contract::ids::{Millis, Seq, StreamId};
use holdfast_contract::session_frames::StateWritten;
use holdfast_contract::system_frames::HeadAnchored;
use holdfast_store::{Head, Store, StoreOptions, StreamLog};
use holdfast_testkit::disk::witness::{Examiner, Recorded, Violation, Witness};
use holdfast_testkit::disk::{Operation, SimulatedDisk, Survival};
use rusqlite::{Connection, OpenFlags};

const DATABASE: &str = "holdfast.db";
const SESSIONS: u64 = 5;

/// A workload that ran to its end, with what it was told on the way.
struct Run {
    disk: SimulatedDisk,
    witness: Witness,
    recorded: Recorded,
}

fn open(disk: &SimulatedDisk) -> Store {
    let options = StoreOptions { vfs: Some(disk.vfs_name().to_owned()), ..StoreOptions::default() };
    Store::open(Path::new(DATABASE), options).unwrap()
}

/// Mixes a number, so that sizes and steps look random and are the same in every run.
fn mix(number: u64) -> u64 {
    let mixed = (number ^ 0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ (mixed >> 29)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 13
}

fn text(seed: u64, length: usize) -> String {
    (seed..).flat_map(|n| format!("{:x}", mix(n)).into_bytes()).take(length).map(char::from).collect()
}

/// Most bodies are small, one in sixteen is a blob, and one in sixteen repeats a blob that is there already.
fn draft(session: u64, seq: Seq) -> Draft {
    let value = match mix(session * 10_000 + seq.0) % 16 {
        0 => text(session * 10_000 + seq.0, 5_000 + seq.0 as usize * 20),
        1 => text(7, 6_000),
        small => text(seq.0, small as usize * 12),
    };
    let body = StateWritten {
        hook: None,
        extension: "notes".into(),
        key: format!("note-{seq}"),
        value: Some(Content::text(value)),
    };
    let cause = seq.0.checked_sub(1).map(Seq);
    Draft { seq, at: Millis(1_700_000_000_000 + seq.0), source: FrameSource::Host, cause, body: body.into() }
}

/// The system stream, which all sessions anchor their heads in.
struct Anchors {
    log: StreamLog,
    next: Mutex<Seq>,
}

impl Anchors {
    fn add(&self, session: &StreamLog) {
        let Head { seq, hash } = session.head().unwrap();
        let mut next = self.next.lock().unwrap();
        let body = HeadAnchored { stream: session.id().clone(), seq, hash };
        let anchor =
            Draft { seq: *next, at: Millis(0), source: FrameSource::Host, cause: None, body: body.into() };
        self.log.append(vec![anchor]).unwrap();
        *next = next.next();
    }
}

/// One session's part of the workload: batches of one to eight frames, each waited for, with anchors and snapshots on the way.
fn write_session(log: &StreamLog, session: u64, places: Range<u64>, anchors: &Anchors, witness: &Witness) {
    let mut next = places.start;
    while next < places.end {
        let end = (next + 1 + mix(session * 1_000 + next) % 8).min(places.end);
        log.append((next..end).map(|seq| draft(session, Seq(seq))).collect()).unwrap();
        let last = Seq(end - 1);
        log.wait_durable(last).unwrap();
        witness.acknowledged(log.id(), last);
        if next / 10 != end / 10 {
            anchors.add(log);
        }
        if next / 40 != end / 40 {
            log.snapshot(last, 1, Box::new(move || Ok(format!("{{\"at\":{last}}}").into_bytes())));
        }
        next = end;
    }
}

/// Both halves of the workload are written by a store of their own. While it runs, another connection copies the write-ahead log
/// into the database now and then, so that crashes meet checkpoints, and logs that begin again, as well as commits.
fn write_half(disk: &SimulatedDisk, places: &Range<u64>, witness: &Witness) {
    let store = open(disk);
    let system = store.stream(&StreamId::system()).unwrap();
    let next = system.head().map_or(Seq(0), |head| head.seq.next());
    let anchors = Anchors { log: system, next: Mutex::new(next) };
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| checkpoint_until(disk, &done));
        let writers: Vec<_> = (0..SESSIONS)
            .map(|session| {
                let log = store.stream(&StreamId::from(format!("session-{session}"))).unwrap();
                let anchors = &anchors;
                scope.spawn(move || write_session(&log, session, places.clone(), anchors, witness))
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        done.store(true, Ordering::Relaxed);
    });
    store.close();
}

fn checkpoint_until(disk: &SimulatedDisk, done: &AtomicBool) {
    let connection =
        Connection::open_with_flags_and_vfs(DATABASE, OpenFlags::default(), disk.vfs_name()).unwrap();
    let mut copied = disk.step();
    while !done.load(Ordering::Relaxed) {
        if disk.step() > copied + 150 {
            connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())).unwrap();
            copied = disk.step();
        }
        thread::sleep(Duration::from_micros(100));
    }
}

/// Runs the workload; `at_start` is called once the database is there.
fn run(frames: u64, at_start: impl FnOnce(&SimulatedDisk)) -> Run {
    let disk = SimulatedDisk::new();
    let witness = Witness::of(&disk);
    open(&disk).close();
    at_start(&disk);
    let half = frames / SESSIONS / 2;
    write_half(&disk, &(0..half), &witness);
    write_half(&disk, &(half..2 * half), &witness);
    let store = open(&disk);
    let streams = store.streams().unwrap().into_iter();
    let recorded = streams.map(|info| (info.id.clone(), store.frames(&info.id, ..).unwrap())).collect();
    store.close();
    Run { disk, witness, recorded }
}

/// A power loss to look at.
#[derive(Clone)]
struct Crash {
    disk: SimulatedDisk,
    step: usize,
    survival: Survival,
    /// What had been acknowledged up to this step of the workload must be there.
    due: usize,
}

impl fmt::Display for Crash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operations = self.disk.operations();
        let before = operations[..self.step].last().map_or("the start".to_owned(), ToString::to_string);
        write!(f, "step {} (after {before}) with {:?}", self.step, self.survival)
    }
}

impl Run {
    fn crash(&self, step: usize, survival: Survival) -> Crash {
        Crash { disk: self.disk.clone(), step, survival, due: step }
    }

    /// Right after each acknowledgement, with nothing that was not synced.
    fn crashes_after_acknowledgements(&self) -> Vec<Crash> {
        let ledger = self.witness.ledger();
        ledger.iter().map(|noted| self.crash(noted.step, Survival::NothingUnsynced)).collect()
    }

    /// Examines every crash on all cores, and returns those that did harm.
    fn harmful(&self, crashes: &[Crash]) -> Vec<(Crash, Violation)> {
        let examiner = Examiner::new(Path::new(DATABASE), &self.recorded);
        let next = AtomicUsize::new(0);
        let work = || {
            let mut harmful = Vec::new();
            while let Some(crash) = crashes.get(next.fetch_add(1, Ordering::Relaxed)) {
                let left = crash.disk.crash_at(crash.step, crash.survival);
                if let Err(violation) = examiner.examine(&left, &self.witness.due(crash.due)) {
                    harmful.push((crash.clone(), violation));
                }
            }
            harmful
        };
        let cores = thread::available_parallelism().map_or(2, usize::from);
        let harmful = thread::scope(|scope| {
            let workers: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
            workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
        });
        println!("{} crashes came down to {} contents", crashes.len(), examiner.contents());
        harmful
    }

    fn assert_harmless(&self, crashes: &[Crash]) {
        let harmful = self.harmful(crashes);
        assert!(harmful.is_empty(), "{} of {} crashes:\n{}", harmful.len(), crashes.len(), summary(&harmful));
    }
}

/// The violations, each with how often it was met and where first.
fn summary(harmful: &[(Crash, Violation)]) -> String {
    let mut kinds: BTreeMap<_, (usize, &Crash)> = BTreeMap::new();
    for (crash, violation) in harmful {
        kinds.entry(violation.to_string()).or_insert((0, crash)).0 += 1;
    }
    kinds
        .iter()
        .map(|(violation, (times, first))| format!("{times} times, first at {first}: {violation}\n"))
        .collect()
}

fn count_lost(harmful: &[(Crash, Violation)]) -> usize {
    harmful.iter().filter(|(_, violation)| matches!(violation, Violation::Lost { .. })).count()
}

/// A sync of the database itself ends a checkpoint.
fn ends_checkpoint(operation: &Operation) -> bool {
    matches!(operation, Operation::Sync { name } if **name == *DATABASE)
}

/// A write at the very beginning of the write-ahead log restarts it.
fn begins_log(operation: &Operation) -> bool {
    matches!(operation, Operation::Write { name, offset: 0, .. } if name.ends_with("-wal"))
}

#[test]
fn no_crash_loses_or_spoils_anything() {
    let scenario = FailScenario::setup();
    let run = run(1_000, |_| {});
    let sessions = run.recorded.iter().filter(|(stream, _)| !stream.is_system());
    assert_eq!(sessions.map(|(_, frames)| frames.len()).sum::<usize>(), 1_000);

    let operations = run.disk.operations();
    let checkpoints = operations.iter().filter(|operation| ends_checkpoint(operation)).count();
    let logs = operations.iter().filter(|operation| begins_log(operation)).count();
    println!("{} steps, {checkpoints} checkpoints, {logs} logs", operations.len());
    assert!(checkpoints > 2 && logs > 2, "crashes meet checkpoints and logs that restart");

    let steps = operations.len();
    let every_step = (0..=steps).flat_map(|step| {
        let random = (0..3).map(Survival::Random);
        let survivals = [Survival::NothingUnsynced, Survival::Everything].into_iter().chain(random);
        survivals.map(move |survival| (step, survival))
    });
    let at_random =
        (0..20_000).map(|state| ((mix(state) % (steps as u64 + 1)) as usize, Survival::Random(state + 3)));
    let crashes: Vec<_> =
        every_step.chain(at_random).map(|(step, survival)| run.crash(step, survival)).collect();
    run.assert_harmless(&crashes);
    scenario.teardown();
}

#[test]
fn a_crash_during_the_recovery_from_a_crash_does_no_harm() {
    let scenario = FailScenario::setup();
    let run = run(200, |_| {});
    let steps = run.disk.step() as u64;
    let mut crashes = Vec::new();
    for seed in 0..40 {
        let due = (mix(seed) % (steps + 1)) as usize;
        let disk = run.disk.crash_at(due, Survival::Random(seed));
        open(&disk).close();
        for step in 0..=disk.step() {
            let survivals = [Survival::NothingUnsynced, Survival::Everything, Survival::Random(seed)];
            crashes.extend(survivals.map(|survival| Crash { disk: disk.clone(), step, survival, due }));
        }
    }
    run.assert_harmless(&crashes);
    scenario.teardown();
}

#[test]
fn a_skipped_sync_is_noticed() {
    let scenario = FailScenario::setup();
    let honest = run(100, |_| {});
    honest.assert_harmless(&honest.crashes_after_acknowledgements());
    let skipping = run(100, |disk| disk.ignore_syncs(true));
    let harmful = skipping.harmful(&skipping.crashes_after_acknowledgements());
    assert!(count_lost(&harmful) > 0, "{}", summary(&harmful));
    scenario.teardown();
}

#[test]
fn an_early_acknowledgement_is_noticed() {
    let scenario = FailScenario::setup();
    fail::cfg("store::ack_early", "return").unwrap();
    // Long enough for those who were told too early to say so before the sync is done.
    let hasty = run(100, |disk| disk.set_sync_delay(Duration::from_millis(5)));
    let harmful = hasty.harmful(&hasty.crashes_after_acknowledgements());
    assert!(count_lost(&harmful) > 0, "{}", summary(&harmful));
    scenario.teardown();
}
