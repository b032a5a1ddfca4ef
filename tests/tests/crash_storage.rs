//! Power loss under the frame log: one workload of a thousand frames, a crash at every I/O step of it, and twenty thousand random
//! states of unsynced writes. No acknowledged frame is lost, no log is unreadable, and no crash looks like tampering.
//!
//! The same examination is then turned on two planted bugs, a sync that is skipped and an acknowledgement that comes early: it must
//! notice both. Failpoints are global, so every test here holds a `FailScenario`, and they run one after another.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use fail::FailScenario;
use holdfast_contract::content::Content;
use holdfast_contract::frame::{Draft, Source};
use holdfast_contract::ids::{Millis, Seq, StreamId};
use holdfast_contract::session_frames::StateWritten;
use holdfast_contract::system_frames::HeadAnchored;
use holdfast_store::{Head, Options, Store, StreamLog};
use holdfast_testkit::disk::witness::{Recorded, Violation, Witness, examine};
use holdfast_testkit::disk::{Disk, Survival};

const DATABASE: &str = "holdfast.db";
const SESSIONS: u64 = 5;

/// A workload that ran to its end, with what it was told on the way.
struct Run {
    disk: Disk,
    witness: Witness,
    recorded: Recorded,
}

fn options(disk: &Disk) -> Options {
    Options { vfs: Some(disk.vfs_name().to_owned()), ..Options::default() }
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
        extension: "notes".into(),
        key: format!("note-{seq}"),
        value: Some(Content::text(value)),
    };
    let cause = seq.0.checked_sub(1).map(Seq);
    Draft { seq, at: Millis(1_700_000_000_000 + seq.0), source: Source::Host, cause, body: body.into() }
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
        let anchor = Draft { seq: *next, at: Millis(0), source: Source::Host, cause: None, body: body.into() };
        self.log.append(vec![anchor]).unwrap();
        *next = next.next();
    }
}

/// Appends in batches of one to eight frames, waits for each batch to be acknowledged, and leaves snapshots and anchors on the way.
fn write_session(log: &StreamLog, session: u64, frames: u64, anchors: &Anchors, witness: &Witness) {
    let mut next = 0;
    while next < frames {
        let end = (next + 1 + mix(session * 1_000 + next) % 8).min(frames);
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

/// Runs the workload; `at_start` is called once the store is open.
fn run(frames: u64, at_start: impl FnOnce(&Disk)) -> Run {
    let disk = Disk::new();
    let witness = Witness::of(&disk);
    let store = Store::open(Path::new(DATABASE), options(&disk)).unwrap();
    at_start(&disk);
    let anchors = Anchors { log: store.stream(&StreamId::system()).unwrap(), next: Mutex::default() };
    thread::scope(|scope| {
        for session in 0..SESSIONS {
            let log = store.stream(&StreamId::from(format!("session-{session}"))).unwrap();
            let (anchors, witness) = (&anchors, &witness);
            scope.spawn(move || write_session(&log, session, frames / SESSIONS, anchors, witness));
        }
    });
    store.flush().unwrap();
    let streams = store.streams().unwrap().into_iter();
    let recorded = streams.map(|info| (info.id.clone(), store.frames(&info.id, ..).unwrap())).collect();
    store.close();
    Run { disk, witness, recorded }
}

/// Examines every state on all cores, and returns what is wrong.
fn violations(run: &Run, states: &[(usize, Survival)]) -> Vec<(usize, Survival, Violation)> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut found = Vec::new();
        while let Some((step, survival)) = states.get(next.fetch_add(1, Ordering::Relaxed)).copied() {
            let left = run.disk.crash_at(step, survival);
            if let Err(violation) = examine(&left, Path::new(DATABASE), &run.witness.due(step), &run.recorded) {
                found.push((step, survival, violation));
            }
        }
        found
    };
    let cores = thread::available_parallelism().map_or(2, usize::from);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    })
}

fn report(run: &Run, violations: &[(usize, Survival, Violation)]) -> String {
    let operations = run.disk.operations();
    let line = |(step, survival, violation): &(usize, Survival, Violation)| {
        let before = operations[..*step].last().map_or("the start".to_owned(), ToString::to_string);
        format!("step {step} (after {before}), {survival:?}: {violation}\n")
    };
    violations.iter().take(20).map(line).collect()
}

#[test]
fn no_crash_loses_or_spoils_anything() {
    let scenario = FailScenario::setup();
    let run = run(1_000, |_| {});
    let sessions = run.recorded.iter().filter(|(stream, _)| !stream.is_system());
    assert_eq!(sessions.map(|(_, frames)| frames.len()).sum::<usize>(), 1_000);

    let steps = run.disk.step();
    let every_step = (0..=steps).flat_map(|step| {
        let seed = step as u64;
        [Survival::NothingUnsynced, Survival::Everything, Survival::Random(seed)].map(|survival| (step, survival))
    });
    let at_random = (0..20_000).map(|state| ((mix(state) % (steps as u64 + 1)) as usize, Survival::Random(state << 32)));
    let states: Vec<_> = every_step.chain(at_random).collect();

    let found = violations(&run, &states);
    assert!(found.is_empty(), "{} of {} states:\n{}", found.len(), states.len(), report(&run, &found));
    scenario.teardown();
}

/// The states right after each acknowledgement, with nothing that was not synced.
fn after_each_acknowledgement(run: &Run) -> Vec<(usize, Survival)> {
    run.witness.ledger().iter().map(|noted| (noted.step, Survival::NothingUnsynced)).collect()
}

fn count_lost(found: &[(usize, Survival, Violation)]) -> usize {
    found.iter().filter(|(_, _, violation)| matches!(violation, Violation::Lost { .. })).count()
}

#[test]
fn a_skipped_sync_is_noticed() {
    let scenario = FailScenario::setup();
    let honest = run(100, |_| {});
    assert_eq!(violations(&honest, &after_each_acknowledgement(&honest)), []);
    let skipping = run(100, |disk| disk.ignore_syncs(true));
    let found = violations(&skipping, &after_each_acknowledgement(&skipping));
    assert!(count_lost(&found) > 0, "{}", report(&skipping, &found));
    scenario.teardown();
}

#[test]
fn an_early_acknowledgement_is_noticed() {
    let scenario = FailScenario::setup();
    fail::cfg("store::ack_early", "return").unwrap();
    let hasty = run(100, |_| {});
    let found = violations(&hasty, &after_each_acknowledgement(&hasty));
    assert!(count_lost(&found) > 0, "{}", report(&hasty, &found));
    scenario.teardown();
}
