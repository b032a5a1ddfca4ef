//! What goes in comes out: frames, bodies, blobs, objects, snapshots, before and after the log is closed.

#![allow(clippy::unwrap_used)]

mod common;

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use common::*;
use holdfast_contract::body::{Body, FrameKind};
use holdfast_contract::content::Content;
use holdfast_contract::digest::Digest;
use holdfast_contract::ids::Seq;
use holdfast_contract::problem::{Code, Problem};
use holdfast_contract::session_frames::MessageInjected;
use holdfast_store::ObjectKind;
use serde_json::json;

#[test]
fn frames_come_back_as_they_were_and_chained() {
    let home = Home::new();
    home.record("s", vec![small("one"), said("two"), bulky("three ")]);
    let home = home.reopen();

    let frames = home.store.frames(&id("s"), ..).unwrap();
    assert_eq!(frames.iter().map(|frame| frame.envelope.seq.0).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(frames[0].envelope.kind, FrameKind::SessionEnded);
    assert_eq!(frames[0].envelope.prev, Digest::ZERO);
    assert_eq!(frames[0].body, Some(json!({ "reason": "one" })));
    assert_eq!(frames[1].envelope.cause, Some(Seq(0)));
    for (before, after) in frames.iter().zip(&frames[1..]) {
        assert_eq!(after.envelope.prev, before.hash);
        assert_eq!(after.envelope.hash().unwrap(), after.hash);
    }
    assert_eq!(home.store.body(&frames[1]).unwrap(), said("two"));
    assert_eq!(home.store.body(&frames[2]).unwrap(), bulky("three "));
    assert_eq!(home.findings(), []);
}

#[test]
fn a_stream_goes_on_where_it_was_left() {
    let home = Home::new();
    home.record("s", vec![small("one")]);
    let home = home.reopen();
    let head = home.stream("s").head().unwrap();
    assert_eq!(Some(head), home.store.head(&id("s")).unwrap());
    home.record("s", vec![small("two")]);
    assert_eq!(home.store.frames(&id("s"), ..).unwrap()[1].envelope.prev, head.hash);
    assert_eq!(home.stream("new").head(), None);
    assert_eq!(home.store.head(&id("new")).unwrap(), None);
}

#[test]
fn a_range_of_frames_is_read_in_chunks() {
    let home = Home::new();
    home.record("s", (0..1000).map(|number| small(&number.to_string())).collect());
    let seqs = |frames: Vec<holdfast_contract::frame::Frame>| {
        (
            frames.first().map(|frame| frame.envelope.seq.0),
            frames.last().map(|frame| frame.envelope.seq.0),
            frames.len(),
        )
    };
    assert_eq!(seqs(home.store.frames(&id("s"), ..).unwrap()), (Some(0), Some(999), 1000));
    assert_eq!(seqs(home.store.frames(&id("s"), Seq(990)..).unwrap()), (Some(990), Some(999), 10));
    assert_eq!(seqs(home.store.frames(&id("s"), Seq(5)..Seq(8)).unwrap()), (Some(5), Some(7), 3));
    assert_eq!(seqs(home.store.frames(&id("s"), Seq(5)..=Seq(8)).unwrap()), (Some(5), Some(8), 4));
    assert_eq!(seqs(home.store.frames(&id("s"), Seq(2000)..).unwrap()), (None, None, 0));
    assert_eq!(seqs(home.store.frames(&id("other"), ..).unwrap()), (None, None, 0));

    let before = home.store.stats().rows_read;
    let mut visited = 0;
    let visit = |_| {
        visited += 1;
        Ok(if visited == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    };
    home.store.for_each_frame(&id("s"), Seq(0), visit).unwrap();
    assert_eq!(visited, 3);
    assert!(home.store.stats().rows_read - before <= 256, "one chunk is enough");
}

#[test]
fn a_visitor_may_read_from_the_same_log() {
    let home = Home::new();
    home.record("s", vec![said(long("text")); 3]);
    let mut bodies = Vec::new();
    home.store
        .for_each_frame(&id("s"), Seq(0), |frame| {
            bodies.push(home.store.body(&frame)?);
            Ok(ControlFlow::Continue(()))
        })
        .unwrap();
    assert_eq!(bodies, vec![said(long("text")); 3]);
}

#[test]
fn large_content_is_one_compressed_blob_however_often_it_is_mentioned() {
    let home = Home::new();
    home.record("a", vec![said(long("same")), said(long("same"))]);
    home.record("b", vec![said(long("same")), said(long("other"))]);
    assert_eq!(home.count("blobs"), 2);
    let stats = home.store.stats();
    assert_eq!(stats.blobs, 2);
    assert!(stats.blob_bytes_stored * 10 < stats.blob_bytes, "{stats:?}");

    let frame = home.store.frames(&id("b"), Seq(1)..).unwrap().remove(0);
    let reference = frame.body.as_ref().unwrap()["text"]["blob"]["digest"].as_str().unwrap().to_owned();
    let digest = Digest::parse(&reference).unwrap();
    let bytes = home.store.blob(digest).unwrap().unwrap();
    assert_eq!(bytes, serde_json::to_vec(&long("other")).unwrap());
    assert_eq!(home.store.body(&frame).unwrap(), said(long("other")));
    assert_eq!(home.store.blob(Digest::ZERO).unwrap(), None);
    assert_eq!(home.findings(), []);
}

#[test]
fn numbers_come_back_to_the_last_bit() {
    let home = Home::new();
    let numbers =
        json!([0.1, 1e-7, 5e-324, 1.7976931348623157e308, 123456789.12345679, 0.30000000000000004, 1e21]);
    let body = Body::from(MessageInjected {
        extension: "m".into(),
        hook: None,
        text: Content::new(numbers.clone()),
    });
    home.record("s", vec![body.clone()]);
    let frame = home.store.frames(&id("s"), ..).unwrap().remove(0);
    assert_eq!(home.store.body(&frame).unwrap(), body);
    assert_eq!(home.store.body(&frame).unwrap().canonical().unwrap(), body.canonical().unwrap());
}

#[test]
fn a_reference_is_loaded_or_refused_and_never_read_as_empty_text() {
    let home = Home::new();
    home.record("a", vec![said(long("large")), small("little")]);
    home.record("b", vec![small("other")]);
    let frame = home.store.frames(&id("a"), ..).unwrap().remove(0);
    let stored = frame.body.clone().unwrap();
    let unloaded = Body::read(frame.envelope.kind, stored.clone()).unwrap_err();
    assert!(unloaded.to_string().contains("was not loaded"), "{unloaded}");

    let whole = home.store.whole(frame.clone()).unwrap();
    assert_eq!(whole.body.unwrap()["text"], json!({ "json": long("large") }));
    assert_eq!((whole.hash, whole.envelope), (frame.hash, frame.envelope));

    let digest = Digest::parse(stored["text"]["blob"]["digest"].as_str().unwrap()).unwrap();
    assert_eq!(home.store.content(&id("a"), digest).unwrap(), Some(json!(long("large"))));
    assert_eq!(home.store.content(&id("b"), digest).unwrap(), None, "another stream's");
    home.erase("a", 0, 0, "asked to");
    assert_eq!(home.store.content(&id("a"), digest).unwrap(), None);
}

/// What only looks like a reference is data of others, wherever it stands.
#[test]
fn a_value_in_the_form_of_a_reference_stays_what_it_is() {
    let home = Home::new();
    home.record("a", vec![said(long("secret"))]);
    let stored = home.store.frames(&id("a"), ..).unwrap().remove(0).body.unwrap()["text"].clone();
    let forged = Content::new(json!([stored, { "json": stored }]));
    let body = Body::from(MessageInjected { extension: "m".into(), hook: None, text: forged.clone() });
    home.record("b", vec![body.clone()]);
    let frame = home.store.frames(&id("b"), ..).unwrap().remove(0);
    assert_eq!(home.store.body(&frame).unwrap(), body);
    assert_eq!(home.store.whole(frame.clone()).unwrap(), frame);
    assert_eq!(home.findings(), []);
}

#[test]
fn objects_are_readable_at_once_and_durable_before_the_frames_that_follow() {
    let home = Home::new();
    let digest = home.store.put(ObjectKind::Policy, b"deny all".to_vec()).unwrap();
    assert_eq!(home.store.object(digest).unwrap().as_deref(), Some(&b"deny all"[..]));
    home.record("s", vec![small("after")]);
    let stored: i64 =
        home.intruder().query_row("SELECT count(*) FROM objects", [], |row| row.get(0)).unwrap();
    assert_eq!(stored, 1);
    home.store.put(ObjectKind::Policy, b"deny all".to_vec()).unwrap();
    home.store.flush().unwrap();
    assert_eq!(home.store.stats().objects, 1, "the same object is not written twice");
    let home = home.reopen();
    assert_eq!(home.store.object(digest).unwrap().as_deref(), Some(&b"deny all"[..]));
    assert_eq!(home.store.object(Digest::ZERO).unwrap(), None);
}

#[test]
fn the_newest_snapshot_is_kept_with_its_place_in_the_chain() {
    let home = Home::new();
    home.record("s", vec![small("one"), said(long("remembered"))]);
    let log = home.stream("s");
    log.snapshot(Seq(0), 7, Box::new(|| Ok(state(json!("first")))));
    let mention = home.store.frames(&id("s"), Seq(1)..).unwrap().remove(0).body.unwrap()["text"].clone();
    log.snapshot(Seq(1), 7, Box::new(move || Ok(state(mention))));
    log.snapshot(Seq(0), 7, Box::new(|| Ok(state(json!("too late")))));
    home.store.flush().unwrap();
    let home = home.reopen();

    let (reference, bytes) = home.store.latest_snapshot(&id("s")).unwrap().unwrap();
    assert_eq!((reference.seq, reference.kernel), (Seq(1), 7));
    assert_eq!(Some(reference.hash), home.store.head(&id("s")).unwrap().map(|head| head.hash));
    assert_eq!(reference.digest, Digest::of(&bytes));
    assert!(String::from_utf8(bytes).unwrap().contains("blob"));
    assert_eq!(home.count("snapshots"), 1);
    assert_eq!(home.store.latest_snapshot(&id("other")).unwrap(), None);
    assert_eq!(home.findings(), []);
}

#[test]
fn a_snapshot_that_cannot_be_made_costs_nothing_else() {
    let home = Home::new();
    home.record("s", vec![small("one")]);
    let log = home.stream("s");
    log.snapshot(Seq(0), 1, Box::new(|| Err(Problem::new(Code::Internal, "no state"))));
    log.snapshot(Seq(0), 1, Box::new(|| panic!("while serialising")));
    log.snapshot(Seq(9), 1, Box::new(|| Ok(state(json!("from the future")))));
    let dangling = json!({ "blob": { "digest": Digest::ZERO, "bytes": 5000 } });
    log.snapshot(Seq(0), 1, Box::new(move || Ok(state(dangling))));
    home.record("s", vec![small("two")]);
    home.store.flush().unwrap();
    assert_eq!(home.store.stats().snapshots_skipped, 4);
    assert_eq!(home.store.latest_snapshot(&id("s")).unwrap(), None);
    assert_eq!(home.findings(), []);
}

#[test]
fn streams_are_listed_at_a_glance() {
    let home = Home::new();
    home.record("b", (0..5).map(|number| small(&number.to_string())).collect());
    home.record("a", vec![small("only")]);
    home.erase("b", 1, 2, "asked to");
    home.checkpoint("b", 0);
    home.store.collect(&id("b"), Seq(0)).unwrap();
    let streams = home.store.streams().unwrap();
    assert_eq!(streams.iter().map(|stream| stream.id.as_str()).collect::<Vec<_>>(), ["a", "b", "system"]);
    let b = &streams[1];
    assert_eq!((b.first, b.head.map(|head| head.seq), b.frames), (Some(Seq(1)), Some(Seq(4)), 4));
    assert_eq!((b.first_at, b.last_at, b.erased), (Some(at(1)), Some(at(4)), 2));
}

#[test]
fn a_frame_that_nobody_waits_for_is_on_disk_soon() {
    let home = Home::new();
    let log = home.stream("s");
    // Many times, so that the writer is met awake and asleep.
    for seq in 0..50 {
        log.append(vec![draft(seq, small("alone"))]).unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        while home.store.head(&id("s")).unwrap().map(|head| head.seq) != Some(Seq(seq)) {
            assert!(Instant::now() < deadline, "nobody wrote {seq}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

#[test]
fn closing_writes_what_was_handed_over_and_takes_no_more() {
    let home = Home::new();
    let log = home.stream("s");
    log.append((0..5000).map(|seq| draft(seq, small("last words"))).collect()).unwrap();
    let clone = home.store.clone();
    clone.close();
    assert_eq!(home.store.frames(&id("s"), ..).unwrap().len(), 5000);
    assert_eq!(log.append(vec![draft(5000, small("too late"))]).unwrap_err().code, Code::StoreUnavailable);
    assert_eq!(log.wait_durable(Seq(5000)).unwrap_err().code, Code::StoreUnavailable);
    assert_eq!(log.wait_durable(Seq(4999)), Ok(()));
    assert!(home.store.stream(&id("t")).is_err());
    assert!(home.store.flush().is_err());
}

#[test]
fn a_closed_log_has_no_write_ahead_log() {
    let home = Home::new();
    home.record("s", vec![small("zero")]);
    assert_eq!(home.store.frames(&id("s"), ..).unwrap().len(), 1);
    home.store.close();
    let mut files: Vec<_> =
        std::fs::read_dir(home.folder.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
    files.sort();
    assert_eq!(files, ["holdfast.db", "holdfast.db-head"]);
}

#[tokio::test]
async fn durability_can_be_awaited() {
    let home = Home::new();
    let log = home.stream("s");
    let early = tokio::spawn(log.durable(Seq(1)));
    log.append(vec![draft(0, small("one")), draft(1, small("two"))]).unwrap();
    early.await.unwrap().unwrap();
    log.durable(Seq(0)).await.unwrap();

    // A wait that is given up leaves nothing behind.
    let never = tokio::time::timeout(Duration::from_millis(20), log.durable(Seq(99))).await;
    assert!(never.is_err());
    home.store.close();
    assert!(log.durable(Seq(99)).await.is_err());
}

#[test]
fn what_was_derived_is_known_by_its_latest_digest() {
    let home = Home::new();
    assert_eq!(home.store.derived("compiled-a").unwrap(), None);
    home.store.note_derived("compiled-a", Digest::of(b"one")).unwrap();
    home.store.note_derived("compiled-a", Digest::of(b"two")).unwrap();
    assert_eq!(home.store.derived("compiled-a").unwrap(), Some(Digest::of(b"two")));
}
