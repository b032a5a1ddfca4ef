//! A disk that runs full, or fails, while frames are appended: one clear error, nothing half-written, everything acknowledged still
//! there, and the stream goes on once the disk has space again.
use std::path::Path;

use fail::FailScenario;
use holdfast_contract::content::Content;
use holdfast_contract::frame::{Draft, FrameSource};
use holdfast_contract::ids::{Millis, Seq, StreamId};
use holdfast_contract::problem::{Code, Problem};
use holdfast_contract::session_frames::StateWritten;
use holdfast_store::{Store, StoreOptions, StreamLog};
use holdfast_testkit::disk::witness::{Examiner, Recorded, Witness};
use holdfast_testkit::disk::{DiskFault, SimulatedDisk, Survival};

const DATABASE: &str = "holdfast.db";

fn open(disk: &SimulatedDisk) -> Store {
    let options = StoreOptions { vfs: Some(disk.vfs_name().to_owned()), ..StoreOptions::default() };
    Store::open(Path::new(DATABASE), options).unwrap()
}

fn draft(seq: Seq, bytes: usize) -> Draft {
    let body = StateWritten {
        hook: None,
        extension: "notes".into(),
        key: format!("note-{seq}"),
        value: Some(Content::text("0123456789abcdef".repeat(bytes / 16))),
    };
    Draft { seq, at: Millis(seq.0), source: FrameSource::Host, cause: None, body: body.into() }
}

fn append(log: &StreamLog, seq: Seq, bytes: usize, witness: &Witness) -> Result<(), Problem> {
    log.append(vec![draft(seq, bytes)])?;
    log.wait_durable(seq)?;
    witness.acknowledged(log.id(), seq);
    Ok(())
}

/// Appends until the store refuses; gives the place that was refused, and the refusal.
fn append_until_refused(log: &StreamLog, from: Seq, witness: &Witness) -> (Seq, Problem) {
    let mut seq = from;
    loop {
        match append(log, seq, 3_000, witness) {
            Ok(()) => seq = seq.next(),
            Err(problem) => return (seq, problem),
        }
    }
}

fn recorded(store: &Store) -> Recorded {
    let streams = store.streams().unwrap().into_iter();
    streams.map(|info| (info.id.clone(), store.frames(&info.id, ..).unwrap())).collect()
}

/// Makes the disk refuse, and follows the store through it and out again.
fn comes_through(refuse: impl FnOnce(&SimulatedDisk), code: Code) {
    let disk = SimulatedDisk::new();
    let witness = Witness::of(&disk);
    let store = open(&disk);
    let (busy, quiet) = (StreamId::from("busy"), StreamId::from("quiet"));
    let (busy_log, quiet_log) = (store.stream(&busy).unwrap(), store.stream(&quiet).unwrap());
    for seq in (0..5).map(Seq) {
        append(&quiet_log, seq, 100, &witness).unwrap();
        append(&busy_log, seq, 100, &witness).unwrap();
    }

    refuse(&disk);
    // A snapshot is written less carefully than frames; failing at it must not make what follows careless too.
    quiet_log.snapshot(Seq(4), 1, Box::new(|| Ok(b"[0,1,2,3,4]".repeat(1_000))));
    store.flush().unwrap();
    let (refused, problem) = append_until_refused(&busy_log, Seq(5), &witness);
    assert_eq!(problem.code, code, "{problem}");
    let refused_at = disk.step();

    // What is there is what was acknowledged, on this disk and on one that loses power now.
    assert_eq!(store.head(&busy).unwrap().unwrap().seq.next(), refused);
    assert_eq!(store.head(&quiet).unwrap().unwrap().seq, Seq(4));
    assert_eq!(store.verify(None).unwrap(), []);

    disk.heal();
    let busy_log = store.stream(&busy).unwrap();
    assert_eq!(busy_log.head().unwrap().seq.next(), refused);
    append(&busy_log, refused, 3_000, &witness).unwrap();
    let quiet_log = store.stream(&quiet).unwrap();
    append(&quiet_log, Seq(5), 100, &witness).unwrap();
    assert_eq!(store.verify(None).unwrap(), []);

    let recorded = recorded(&store);
    store.close();
    let examiner = Examiner::new(Path::new(DATABASE), &recorded);
    for step in refused_at.saturating_sub(20)..=disk.step() {
        for survival in [Survival::NothingUnsynced, Survival::Everything, Survival::Random(step as u64)] {
            let left = disk.crash_at(step, survival);
            assert_eq!(examiner.examine(&left, &witness.due(step)), Ok(()), "{step} {survival:?}");
        }
    }
}

#[test]
fn a_disk_without_room_to_grow() {
    let _failpoints = FailScenario::setup();
    comes_through(|disk| disk.set_quota(Some(disk.used() + 200_000)), Code::StoreFull);
}

#[test]
fn a_disk_that_is_full_at_once() {
    let _failpoints = FailScenario::setup();
    comes_through(|disk| disk.fail_after(0, DiskFault::FullDisk), Code::StoreFull);
}

#[test]
fn a_disk_that_is_full_in_the_middle_of_a_commit() {
    let _failpoints = FailScenario::setup();
    for writes in 1..12 {
        comes_through(|disk| disk.fail_after(writes, DiskFault::FullDisk), Code::StoreFull);
    }
}

#[test]
fn a_disk_that_fails_to_write_or_to_sync() {
    let _failpoints = FailScenario::setup();
    for operations in 0..6 {
        comes_through(|disk| disk.fail_after(operations, DiskFault::Write), Code::StoreWrite);
        comes_through(|disk| disk.fail_after(operations, DiskFault::Sync), Code::StoreWrite);
    }
}
