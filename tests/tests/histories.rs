//! Recorded histories: every build replays them to the same frames, byte for byte.
//!
//! When the kernel's behaviour changes on purpose, `BEHAVIOUR` goes up, the histories are recorded again with
//! `cargo test -p holdfast-tests --test histories --test generated -- --ignored record`, and the changelog says so.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on should stop loudly")]

use std::sync::Arc;

use holdfast_contract::ids::StreamId;
use holdfast_contract::wire::Lane;
use holdfast_replay::verify;
use holdfast_replay::{Mode, ReplayVerdict, replay};
use holdfast_store::{Store, StoreOptions};
use holdfast_testkit::history::{lab, open, record, unpack};

/// What to do about a history that no longer replays.
const HELP: &str = "This build decides otherwise than the one that recorded the history. If that is not on purpose, it is a bug. If it
is: raise `BEHAVIOUR` in kernel/src/lib.rs, record again with
`cargo test -p holdfast-tests --test histories --test generated -- --ignored record`, and add a line to CHANGELOG.md.";

fn replays(store: &Store, stream: &StreamId, lanes: &[Arc<dyn Lane>]) -> ReplayVerdict {
    let verdict = replay(store, stream, Mode::Strict, lanes);
    let verdict = verdict.unwrap_or_else(|problem| panic!("{stream}: {problem}\n{HELP}"));
    assert!(verdict.identical && verdict.snapshot_identical, "{stream}: {verdict:#?}\n{HELP}");
    verdict
}

#[test]
fn ten_thousand_frames_replay_strictly() {
    let history = open();
    let store = history.store();
    let verdict = replays(&store, &history.session.into(), &lab().lanes());
    assert!(verdict.frames >= 10_000, "{} frames", verdict.frames);
    assert!(verdict.mocked.is_empty(), "everything ran again, except {:?}\n{HELP}", verdict.mocked);
    assert_eq!(verify(&store, None).unwrap().findings, Vec::new());
}

/// A world of `generated.rs`, with everything in it that can happen to a session. Its extensions are not stored, so that they may
/// change: their answers come from the log, everything else is done again.
#[test]
fn a_recorded_world_replays() {
    let (_folder, path) = unpack("world");
    let store = Store::open(&path, StoreOptions::default()).unwrap();
    let streams = store.streams().unwrap();
    assert!(streams.len() > 25, "{} streams", streams.len());
    for info in streams {
        replays(&store, &info.id, &[]);
    }
    assert_eq!(verify(&store, None).unwrap().findings, Vec::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "records the history again"]
async fn record_ten_thousand_frames() {
    record().await;
}
