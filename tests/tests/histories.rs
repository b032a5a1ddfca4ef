//! Recorded histories: every build replays them to the same frames, byte for byte.
//!
//! When the kernel's behaviour changes on purpose, `BEHAVIOUR` goes up, the histories are recorded anew with
//! `cargo test -p holdfast-tests --test histories -- --ignored`, and the changelog says so.

use holdfast_runtime::replay::{Mode, replay};
use holdfast_runtime::verify::verify;
use holdfast_testkit::history::{lab, open, record};

#[test]
fn ten_thousand_frames_replay_strictly() {
    let history = open();
    let store = history.store();
    let verdict = replay(&store, &history.session.into(), Mode::Strict, &lab().lanes()).unwrap();
    assert!(verdict.frames >= 10_000, "{} frames", verdict.frames);
    assert!(
        verdict.identical && verdict.snapshot_identical,
        "the kernel decides otherwise than it did: {verdict:#?}"
    );
    assert!(verdict.mocked.is_empty(), "everything ran again, except {:?}", verdict.mocked);
    assert_eq!(verify(&store, None).unwrap().findings, Vec::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "records the history anew"]
async fn record_ten_thousand_frames() {
    record().await;
}
