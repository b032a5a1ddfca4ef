//! A stream that fails, fails alone, at its last durable frame, and can be taken up again.

#![allow(clippy::unwrap_used)]

mod common;

use common::*;
use holdfast_contract::ids::{Millis, Seq};
use holdfast_contract::problem::Code;

#[test]
fn a_gap_fails_its_stream_and_no_other() {
    let home = Home::new();
    let (good, bad) = (home.stream("good"), home.stream("bad"));
    bad.append(vec![draft(0, small("zero")), draft(2, small("two")), draft(3, small("three"))]).unwrap();
    good.append(vec![draft(0, small("zero"))]).unwrap();
    let problem = bad.wait_durable(Seq(2)).unwrap_err();
    assert_eq!(problem.code, Code::StoreGap);
    assert!(problem.what.contains("frame 2") && problem.what.contains("expects 1"), "{problem}");
    assert_eq!(bad.wait_durable(Seq(0)), Ok(()), "what came before is on disk");
    assert_eq!(bad.append(vec![draft(1, small("one"))]).unwrap_err().code, Code::StoreGap);
    assert_eq!(bad.wait_durable(Seq(1)).unwrap_err().code, Code::StoreGap);
    good.wait_durable(Seq(0)).unwrap();
    good.append(vec![draft(1, small("one"))]).unwrap();
    good.wait_durable(Seq(1)).unwrap();

    let again = home.stream("bad");
    assert_eq!(again.head().unwrap().seq, Seq(0));
    again.append(vec![draft(1, small("one"))]).unwrap();
    again.wait_durable(Seq(1)).unwrap();
    assert_eq!(
        bad.append(vec![draft(2, small("two"))]).unwrap_err().code,
        Code::StoreGap,
        "the old handle stays failed"
    );
    assert_eq!(home.findings(), []);
}

#[test]
fn a_frame_that_is_there_already_is_a_gap_too() {
    let home = Home::new();
    home.record("s", vec![small("zero")]);
    let log = home.stream("s");
    log.append(vec![draft(0, small("again"))]).unwrap();
    assert_eq!(log.wait_durable(Seq(1)).unwrap_err().code, Code::StoreGap);
    assert_eq!(home.store.frames(&id("s"), ..).unwrap().len(), 1);
}

#[test]
fn a_number_that_cannot_be_stored_fails_its_stream_only() {
    let home = Home::new();
    let (good, bad) = (home.stream("good"), home.stream("bad"));
    let mut frame = draft(0, small("zero"));
    frame.at = Millis(u64::MAX);
    bad.append(vec![frame]).unwrap();
    good.append(vec![draft(0, small("zero"))]).unwrap();
    assert_eq!(bad.wait_durable(Seq(0)).unwrap_err().code, Code::StoreWrite);
    good.wait_durable(Seq(0)).unwrap();
}

#[test]
fn two_handles_share_one_stream() {
    let home = Home::new();
    let (one, other) = (home.stream("s"), home.stream("s"));
    one.append(vec![draft(0, small("zero"))]).unwrap();
    other.append(vec![draft(1, small("one"))]).unwrap();
    one.wait_durable(Seq(1)).unwrap();
    assert_eq!(one.head(), other.head());
}

/// `mount -t tmpfs -o size=3m tmpfs /mnt/small`, then
/// `HOLDFAST_SMALL_DISK=/mnt/small cargo test -p holdfast-store --test failing -- --ignored`.
#[test]
#[ignore = "needs a small disk of its own"]
fn a_disk_that_is_really_full_loses_nothing_that_was_acknowledged() {
    let folder = std::env::var("HOLDFAST_SMALL_DISK").unwrap();
    let ballast = std::path::Path::new(&folder).join("ballast");
    std::fs::write(&ballast, vec![1; 1_000_000]).unwrap();
    let home = Home::within(tempfile::tempdir_in(&folder).unwrap());
    let log = home.stream("s");
    let text = "x".repeat(3000);
    let mut acknowledged = None;
    let problem = loop {
        let seq = acknowledged.map_or(0, |last: u64| last + 1);
        log.append(vec![draft(seq, small(&text))]).unwrap();
        match log.wait_durable(Seq(seq)) {
            Ok(()) => acknowledged = Some(seq),
            Err(problem) => break problem,
        }
    };
    assert_eq!(problem.code, Code::StoreFull);
    assert_eq!(home.store.head(&id("s")).unwrap().map(|head| head.seq.0), acknowledged);
    assert_eq!(home.findings(), []);

    std::fs::remove_file(&ballast).unwrap();
    let next = home.record("s", vec![small("there is room again")]);
    assert_eq!(Some(next.0), acknowledged.map(|last| last + 1));
    let home = home.reopen();
    assert_eq!(home.findings(), []);
}

#[cfg(feature = "failpoints")]
mod with_failpoints {
    use std::sync::Barrier;

    use fail::FailScenario;
    use holdfast_store::ObjectKind;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_full_disk_fails_the_streams_of_that_commit_and_no_other() {
        let scenario = FailScenario::setup();
        let home = Home::new();
        home.record("unlucky", vec![small("zero")]);
        let bystander = home.stream("bystander");
        let unlucky = home.stream("unlucky");

        fail::cfg("store::commit_error", "1*return(full)").unwrap();
        unlucky.append((1..100).map(|seq| draft(seq, said(long("lost")))).collect()).unwrap();
        let problem = unlucky.wait_durable(Seq(50)).unwrap_err();
        assert_eq!(problem.code, Code::StoreFull);
        assert_eq!(unlucky.append(vec![draft(100, small("more"))]).unwrap_err().code, Code::StoreFull);
        bystander.append(vec![draft(0, small("zero"))]).unwrap();
        bystander.wait_durable(Seq(0)).unwrap();

        assert_eq!(home.store.frames(&id("unlucky"), ..).unwrap().len(), 1, "nothing of the batch is there");
        assert_eq!(home.count("blobs"), 0);
        let again = home.stream("unlucky");
        assert_eq!(again.head().unwrap().seq, Seq(0));
        again.append(vec![draft(1, small("one"))]).unwrap();
        again.wait_durable(Seq(1)).unwrap();
        assert_eq!(home.findings(), []);
        assert_eq!(home.store.stats().failed_commits, 1);
        scenario.teardown();
    }

    #[test]
    fn a_stream_whose_first_frame_failed_can_begin_again() {
        let scenario = FailScenario::setup();
        let home = Home::new();
        fail::cfg("store::commit_error", "1*return").unwrap();
        let log = home.stream("s");
        log.append(vec![draft(0, small("zero"))]).unwrap();
        assert_eq!(log.wait_durable(Seq(0)).unwrap_err().code, Code::StoreWrite);
        assert_eq!(home.store.head(&id("s")).unwrap(), None);
        home.record("s", vec![small("zero")]);
        assert_eq!(home.findings(), []);
        scenario.teardown();
    }

    #[test]
    fn frames_that_were_queued_behind_a_failure_are_not_written() {
        let scenario = FailScenario::setup();
        let home = Home::new();
        let log = home.stream("s");
        fail::cfg("store::before_commit", "1*sleep(100)").unwrap();
        fail::cfg("store::commit_error", "1*off->1*return(full)").unwrap();
        log.append(vec![draft(0, small("durable"))]).unwrap();
        log.wait_durable(Seq(0)).unwrap();
        log.append(vec![draft(1, small("lost"))]).unwrap();
        log.append(vec![draft(2, small("lost too"))]).unwrap();
        assert_eq!(log.wait_durable(Seq(2)).unwrap_err().code, Code::StoreFull);
        home.store.flush().unwrap();
        assert_eq!(home.store.frames(&id("s"), ..).unwrap().len(), 1);
        scenario.teardown();
    }

    #[test]
    fn an_object_of_a_failed_commit_is_written_with_the_next_one() {
        let scenario = FailScenario::setup();
        let home = Home::new();
        fail::cfg("store::commit_error", "1*return").unwrap();
        let digest = home.store.put(ObjectKind::Policy, b"policy".to_vec()).unwrap();
        let log = home.stream("s");
        log.append(vec![draft(0, small("with it"))]).unwrap();
        assert!(log.wait_durable(Seq(0)).is_err());
        assert_eq!(home.count("objects"), 0);
        assert!(home.store.object(digest).unwrap().is_some(), "it can be read all the same");
        home.record("t", vec![small("zero")]);
        assert_eq!(home.count("objects"), 1);
        scenario.teardown();
    }

    #[test]
    fn a_snapshot_that_cannot_be_written_harms_nobody() {
        let scenario = FailScenario::setup();
        let home = Home::new();
        home.record("s", vec![small("zero")]);
        let log = home.stream("s");
        fail::cfg("store::commit_error", "1*return(full)").unwrap();
        log.snapshot(Seq(0), 1, Box::new(|| Ok(state(json!("lost")))));
        home.store.flush().unwrap();
        assert_eq!(home.store.latest_snapshot(&id("s")).unwrap(), None);
        home.record("s", vec![small("one")]);
        assert_eq!(home.store.stats().snapshots_skipped, 1);
        scenario.teardown();
    }

    #[test]
    fn nothing_is_acknowledged_before_it_is_committed_unless_the_bug_is_planted() {
        let scenario = FailScenario::setup();
        let home = Home::new();
        let log = home.stream("s");
        let reached = std::sync::Arc::new(Barrier::new(2));
        let (writer, released) = (reached.clone(), std::sync::Arc::new(Barrier::new(2)));
        let gate = released.clone();
        fail::cfg_callback("store::before_commit", move || {
            writer.wait();
            gate.wait();
        })
        .unwrap();
        log.append(vec![draft(0, small("zero"))]).unwrap();
        reached.wait();
        assert_eq!(log.head(), None, "the commit has not happened, so neither has the acknowledgement");
        released.wait();
        log.wait_durable(Seq(0)).unwrap();

        fail::cfg("store::ack_early", "return").unwrap();
        log.append(vec![draft(1, small("one"))]).unwrap();
        reached.wait();
        assert_eq!(log.wait_durable(Seq(1)), Ok(()), "the planted bug");
        assert_eq!(home.store.head(&id("s")).unwrap().unwrap().seq, Seq(0));
        fail::remove("store::before_commit");
        released.wait();
        scenario.teardown();
    }
}
