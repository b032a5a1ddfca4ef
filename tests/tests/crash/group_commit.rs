//! Group commit: sixty-four appenders, each waiting for its own acknowledgement, share their syncs.
use std::path::Path;
use std::thread;
use std::time::Duration;

use fail::FailScenario;
use holdfast_contract::content::Content;
use holdfast_contract::frame::{Draft, FrameSource};
use holdfast_contract::ids::{Millis, Seq, StreamId};
use holdfast_contract::session_frames::StateWritten;
use holdfast_store::{Store, StoreOptions, StreamLog};
use holdfast_testkit::disk::witness::{Examiner, Witness};
use holdfast_testkit::disk::{SimulatedDisk, Survival};

const DATABASE: &str = "holdfast.db";
const APPENDERS: u64 = 64;
const FRAMES_EACH: u64 = 100;

fn draft(seq: u64) -> Draft {
    let body = StateWritten {
        hook: None,
        extension: "notes".into(),
        key: format!("note-{seq}"),
        value: Some(Content::text("…")),
    };
    Draft { seq: Seq(seq), at: Millis(seq), source: FrameSource::Host, cause: None, body: body.into() }
}

fn append_and_wait(log: &StreamLog, witness: &Witness) {
    for seq in 0..FRAMES_EACH {
        log.append(vec![draft(seq)]).unwrap();
        log.wait_durable(Seq(seq)).unwrap();
        witness.acknowledged(log.id(), Seq(seq));
    }
}

#[test]
fn sixty_four_appenders_need_one_sync_per_thirty_two_frames_at_most() {
    let _failpoints = FailScenario::setup();
    let disk = SimulatedDisk::new();
    // Long enough for every appender to come to the processor meanwhile, even on a busy machine.
    disk.set_sync_delay(Duration::from_millis(20));
    let witness = Witness::of(&disk);
    let options = StoreOptions { vfs: Some(disk.vfs_name().to_owned()), ..StoreOptions::default() };
    let store = Store::open(Path::new(DATABASE), options).unwrap();
    let logs: Vec<_> = (0..APPENDERS)
        .map(|appender| store.stream(&StreamId::from(format!("session-{appender}"))).unwrap())
        .collect();

    let before = disk.counts();
    thread::scope(|scope| {
        for log in &logs {
            scope.spawn(|| append_and_wait(log, &witness));
        }
    });
    let syncs = disk.counts().syncs - before.syncs;

    let frames = APPENDERS * FRAMES_EACH;
    println!("{frames} frames, {syncs} syncs: {:.1} frames per sync", frames as f64 / syncs as f64);
    assert!(syncs <= frames / 32, "{syncs} syncs for {frames} frames");

    // Sharing syncs is worth nothing if it weakens them.
    let end = disk.step();
    let streams = store.streams().unwrap().into_iter();
    let recorded = streams.map(|info| (info.id.clone(), store.frames(&info.id, ..).unwrap())).collect();
    let left = disk.crash_at(end, Survival::NothingUnsynced);
    let examiner = Examiner::new(Path::new(DATABASE), &recorded);
    assert_eq!(examiner.examine(&left, &witness.due(end)), Ok(()));
    store.close();
}
