//! Everything that an intruder with the file can change is named; the log as it was written verifies clean.

#![allow(clippy::unwrap_used)]

mod common;

use common::*;
use holdfast_contract::ids::Seq;
use holdfast_contract::problem::Code;
use holdfast_store::{FindingKind, ObjectKind};
use serde_json::json;

/// A log with one of everything: content as a blob (frame 1) and a body as a blob (frame 2) in `a`, with a snapshot; a plain session
/// `b`; one with an erased frame, `c`; one of which two frames were collected, `d`. All are anchored.
fn written() -> Home {
    let home = Home::new();
    home.store.put(ObjectKind::Registry, b"{}".to_vec()).unwrap();
    home.record("a", vec![small("zero"), said(long("one")), bulky("two "), small("three"), small("four")]);
    let mention = home.store.frames(&id("a"), Seq(1)..).unwrap().remove(0).body.unwrap()["text"].clone();
    home.stream("a").snapshot(Seq(4), 1, Box::new(move || Ok(state(mention))));
    home.record("b", vec![small("zero"), small("one"), small("two")]);
    home.record("c", vec![small("zero"), small("private"), small("two")]);
    home.record("d", vec![small("zero"), small("one"), small("two"), small("three")]);
    ["a", "b", "c", "d"].iter().for_each(|stream| home.anchor(stream));
    home.erase("c", 1, 1, "asked to");
    home.checkpoint("d", 1);
    home.store.collect(&id("d"), Seq(1)).unwrap();
    home.store.flush().unwrap();
    home
}

const FRAME: &str = "WHERE seq = 3 AND stream = (SELECT id FROM streams WHERE name = 'a')";

/// What is done, and which findings must be among the results.
const TAMPERINGS: &[(&str, &[&str])] = &[
    // Every column of a frame.
    ("UPDATE frames SET stream = 99 {FRAME}", &["a/3 frame_missing", "system database_damaged"]),
    ("UPDATE frames SET seq = 7 {FRAME}", &["a/3 frame_missing", "a/7 hash_mismatch"]),
    ("UPDATE frames SET at = at + 1 {FRAME}", &["a/3 hash_mismatch"]),
    ("UPDATE frames SET kind = 'session.cancelled' {FRAME}", &["a/3 hash_mismatch"]),
    ("UPDATE frames SET kind = 'turn.started' {FRAME}", &["a/3 hash_mismatch", "a/3 body_unreadable"]),
    ("UPDATE frames SET kind = 'no.such' {FRAME}", &["a/3 row_unreadable"]),
    ("UPDATE frames SET source = '\"kernel\"' {FRAME}", &["a/3 hash_mismatch"]),
    ("UPDATE frames SET source = '\"host\" ' {FRAME}", &["a/3 row_unreadable"]),
    ("UPDATE frames SET source = 'nonsense' {FRAME}", &["a/3 row_unreadable"]),
    ("UPDATE frames SET cause = 0 {FRAME}", &["a/3 hash_mismatch"]),
    ("UPDATE frames SET cause = NULL {FRAME}", &["a/3 hash_mismatch"]),
    ("UPDATE frames SET cause = -1 {FRAME}", &["a/3 row_unreadable"]),
    ("UPDATE frames SET body = CAST('{\"reason\":\"other\"}' AS BLOB) {FRAME}", &["a/3 body_mismatch"]),
    ("UPDATE frames SET body = CAST('not JSON' AS BLOB) {FRAME}", &["a/3 body_mismatch"]),
    ("UPDATE frames SET body = NULL {FRAME}", &["a/3 body_missing"]),
    ("UPDATE frames SET body_digest = zeroblob(32) {FRAME}", &["a/3 hash_mismatch", "a/3 body_mismatch"]),
    ("UPDATE frames SET body_digest = zeroblob(31) {FRAME}", &["a/3 row_unreadable"]),
    ("UPDATE frames SET prev = zeroblob(32) {FRAME}", &["a/3 chain_broken", "a/3 hash_mismatch"]),
    ("UPDATE frames SET hash = zeroblob(32) {FRAME}", &["a/3 hash_mismatch", "a/4 chain_broken"]),
    ("UPDATE frames SET hash = zeroblob(0) {FRAME}", &["a/3 row_unreadable"]),
    ("UPDATE frames SET erased_at = 1 {FRAME}", &["a/3 row_unreadable"]),
    ("UPDATE frames SET erased_reason = 'because' {FRAME}", &["a/3 row_unreadable"]),
    // Tombstones: forged, moved in time, given another reason.
    (
        "UPDATE frames SET erased_at = 1, erased_reason = 'forged', body = NULL {FRAME}",
        &["a/3 erasure_unrecorded"],
    ),
    ("UPDATE frames SET erased_at = erased_at + 1 WHERE erased_at > 0", &["c/1 erasure_unrecorded"]),
    ("UPDATE frames SET erased_reason = 'nothing to see' WHERE erased_at > 0", &["c/1 erasure_unrecorded"]),
    ("UPDATE frames SET erased_at = NULL, erased_reason = NULL WHERE erased_at > 0", &["c/1 body_missing"]),
    // Frames that go, or change places.
    ("DELETE FROM frames {FRAME}", &["a/3 frame_missing"]),
    (
        "DELETE FROM frames WHERE seq = 0 AND stream = (SELECT id FROM streams WHERE name = 'b')",
        &["b/0 frame_missing"],
    ),
    (
        "DELETE FROM frames WHERE seq >= 1 AND stream = (SELECT id FROM streams WHERE name = 'b')",
        &["b/2 tail_cut"],
    ),
    (
        "DELETE FROM frames WHERE stream = (SELECT id FROM streams WHERE name = 'b')",
        &["b frame_missing", "b/2 tail_cut"],
    ),
    ("DELETE FROM frames WHERE kind = 'log.erased'", &["system/4 frame_missing", "c/1 erasure_unrecorded"]),
    ("DELETE FROM frames WHERE kind = 'log.checkpointed'", &["d/1 collection_unrecorded"]),
    // Streams.
    ("DELETE FROM streams WHERE name = 'b'", &["b stream_missing", "system database_damaged"]),
    ("UPDATE streams SET name = 'z' WHERE name = 'b'", &["b stream_missing", "z/0 hash_mismatch"]),
    ("UPDATE streams SET id = 99 WHERE name = 'b'", &["b frame_missing", "system database_damaged"]),
    ("UPDATE streams SET base_seq = 0 WHERE name = 'd'", &["d/0 collection_unrecorded", "d/1 frame_missing"]),
    (
        "UPDATE streams SET base_hash = zeroblob(32) WHERE name = 'd'",
        &["d/1 collection_unrecorded", "d/2 chain_broken"],
    ),
    ("UPDATE streams SET base_seq = NULL WHERE name = 'd'", &["d/0 frame_missing"]),
    (
        "UPDATE streams SET base_seq = 0, base_hash = zeroblob(32) WHERE name = 'b'",
        &["b/0 collection_unrecorded"],
    ),
    ("UPDATE streams SET base_hash = x'00' WHERE name = 'd'", &["d database_damaged"]),
    // Blobs: `one` is content, `two` a body.
    ("UPDATE blobs SET data = zeroblob(10)", &["a/1 blob_damaged", "a/2 blob_damaged"]),
    ("UPDATE blobs SET data = x''", &["a/1 blob_damaged", "a/2 blob_damaged"]),
    ("UPDATE blobs SET size = size + 1", &["a/1 blob_damaged", "a/2 blob_damaged"]),
    ("UPDATE blobs SET size = -1", &["a/1 blob_damaged"]),
    ("UPDATE blobs SET size = 9223372036854775807", &["a/1 blob_damaged"]),
    ("UPDATE blobs SET digest = randomblob(32)", &["a/1 blob_missing", "a/2 body_missing"]),
    ("DELETE FROM blobs", &["a/1 blob_missing", "a/2 body_missing", "a/4 snapshot_damaged"]),
    // Who refers to what: an intruder could have blobs collected by it.
    ("DELETE FROM blob_refs", &["a/1 reference_mismatch", "a/2 reference_mismatch"]),
    ("UPDATE blob_refs SET digest = randomblob(32)", &["a/1 reference_mismatch", "a/2 reference_mismatch"]),
    ("UPDATE blob_refs SET seq = seq + 2", &["a/1 reference_mismatch", "a/2 reference_mismatch"]),
    ("INSERT INTO blob_refs SELECT stream, 0, digest FROM blob_refs", &["a reference_mismatch"]),
    ("DELETE FROM snapshot_refs", &["a/4 reference_mismatch"]),
    // Snapshots.
    ("UPDATE snapshots SET seq = 3", &["a/3 snapshot_mismatch", "a/3 snapshot_damaged"]),
    ("UPDATE snapshots SET hash = zeroblob(32)", &["a/4 snapshot_mismatch"]),
    ("UPDATE snapshots SET kernel = kernel + 1", &["a/4 snapshot_damaged"]),
    ("UPDATE snapshots SET digest = zeroblob(32)", &["a/4 snapshot_damaged"]),
    ("UPDATE snapshots SET digest = x'00'", &["a snapshot_damaged"]),
    ("UPDATE snapshots SET size = 1", &["a/4 snapshot_damaged"]),
    ("UPDATE snapshots SET data = randomblob(100)", &["a/4 snapshot_damaged"]),
    ("UPDATE snapshots SET seal = zeroblob(32)", &["a/4 snapshot_damaged"]),
    ("UPDATE snapshots SET stream = (SELECT id FROM streams WHERE name = 'b')", &["b/4 snapshot_mismatch"]),
    // Objects.
    ("UPDATE objects SET data = zeroblob(3)", &["system object_damaged"]),
    ("UPDATE objects SET size = 9", &["system object_damaged"]),
    ("UPDATE objects SET digest = randomblob(32)", &["system object_damaged"]),
    ("UPDATE objects SET digest = x'00'", &["system object_damaged"]),
];

#[test]
fn the_log_as_it_was_written_verifies_clean() {
    let home = written();
    assert_eq!(home.findings(), []);
    for stream in ["a", "b", "c", "d", "system"] {
        assert_eq!(home.store.verify(Some(&id(stream))).unwrap(), []);
    }
    let home = home.reopen();
    assert_eq!(home.findings(), []);
    assert_eq!(home.store.verify(Some(&id("nobody"))).unwrap_err().code, Code::StoreMissing);
}

#[test]
fn every_tampering_is_named() {
    let template = written();
    template.store.clone().close();
    for (tampering, expected) in TAMPERINGS {
        let home = copy_of(&template);
        assert_eq!(home.findings(), [], "before: {tampering}");
        home.tamper(&tampering.replace("{FRAME}", FRAME));
        let named = home.named();
        for finding in *expected {
            assert!(
                named.iter().any(|name| name == finding),
                "{tampering}: {finding} is not among {named:?}"
            );
        }
    }
}

/// A log of its own with the same content.
fn copy_of(template: &Home) -> Home {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("holdfast.db");
    template.intruder().execute("VACUUM INTO ?", [path.to_str().unwrap()]).unwrap();
    let store = holdfast_store::Store::open(&path, holdfast_store::StoreOptions::default()).unwrap();
    Home { folder, store }
}

#[test]
fn two_frames_that_changed_places_are_named() {
    let home = written();
    let intruder = home.intruder();
    let a = "stream = (SELECT id FROM streams WHERE name = 'a')";
    for (from, to) in [(3, 99), (4, 3), (99, 4)] {
        intruder.execute(&format!("UPDATE frames SET seq = {to} WHERE seq = {from} AND {a}"), []).unwrap();
    }
    let named = home.named();
    for expected in [
        "a/3 chain_broken",
        "a/3 hash_mismatch",
        "a/4 chain_broken",
        "a/4 hash_mismatch",
        "a/4 anchor_mismatch",
    ] {
        assert!(named.iter().any(|name| name == expected), "{expected} is not among {named:?}");
    }
}

#[test]
fn a_rewritten_session_does_not_match_its_anchor() {
    let home = written();
    home.intruder()
        .execute_batch(
            "DELETE FROM frames WHERE stream = (SELECT id FROM streams WHERE name = 'b');
             DELETE FROM streams WHERE name = 'b';",
        )
        .unwrap();
    let home = home.reopen();
    home.record("b", vec![small("never"), small("happened"), small("like this")]);
    assert_eq!(home.named(), ["b/2 anchor_mismatch", "system log_cut"]);
}

#[test]
fn findings_of_one_stream_do_not_hide_another_s() {
    let home = written();
    home.tamper("UPDATE frames SET at = at + 1 WHERE seq = 1 AND kind = 'session.ended'");
    let b = home.store.verify(Some(&id("b"))).unwrap();
    assert_eq!(b.len(), 1);
    assert_eq!((b[0].kind, b[0].seq), (FindingKind::HashMismatch, Some(Seq(1))));
    assert_eq!(b[0].to_string(), "b/1: hash_mismatch: the envelope does not hash to what was stored");
    assert_eq!(home.store.verify(Some(&id("a"))).unwrap(), []);
    assert!(home.findings().iter().any(|finding| finding.stream == id("b")));
}

#[test]
fn what_is_damaged_is_never_handed_out_as_good() {
    let home = written();
    home.tamper("UPDATE blobs SET data = zeroblob(10)");
    home.tamper("UPDATE snapshots SET data = zeroblob(10)");
    home.tamper("UPDATE objects SET data = zeroblob(10)");
    let frame = home.store.frames(&id("a"), Seq(1)..=Seq(1)).unwrap().remove(0);
    assert_eq!(home.store.body(&frame).unwrap_err().code, Code::StoreCorrupt);
    assert_eq!(home.store.frames(&id("a"), Seq(2)..).unwrap_err().code, Code::StoreCorrupt);
    assert_eq!(home.store.latest_snapshot(&id("a")).unwrap(), None, "a snapshot is only a cache");
    let object = holdfast_contract::digest::Digest::of(b"{}");
    assert_eq!(home.store.object(object).unwrap_err().code, Code::StoreCorrupt);

    home.tamper("UPDATE frames SET kind = 'no.such' WHERE seq = 0 AND kind = 'session.ended'");
    assert_eq!(home.store.frames(&id("b"), ..).unwrap_err().code, Code::StoreCorrupt);
    home.tamper("DELETE FROM blobs");
    assert_eq!(home.store.body(&frame).unwrap_err().code, Code::StoreMissing);
    assert_eq!(home.store.frames(&id("a"), Seq(2)..).unwrap_err().code, Code::StoreMissing);
}

#[test]
fn broken_pages_are_findings_not_failures() {
    let home = written();
    home.record("a", (0..300).map(|number| said(format!("text {number}"))).collect());
    let Home { folder, store } = home;
    store.close();
    let path = folder.path().join("holdfast.db");
    let whole = std::fs::read(&path).unwrap();
    let pages = whole.len() / 4096;
    // The first page tells SQLite what the file is; without it nothing can be opened.
    for page in 1..pages {
        let mut bytes = whole.clone();
        bytes[page * 4096..page * 4096 + 64].fill(0x5a);
        std::fs::write(&path, &bytes).unwrap();
        let Ok(store) = holdfast_store::Store::open(&path, holdfast_store::StoreOptions::default()) else {
            continue;
        };
        let findings = store.verify(None).unwrap();
        assert!(!findings.is_empty(), "page {page} is broken, and nobody noticed");
        store.close();
    }
}

#[test]
fn every_kind_of_finding_has_a_name_and_a_sentence() {
    for kind in FindingKind::ALL {
        assert!(
            !kind.describe().is_empty() && kind.as_str().chars().all(|c| c.is_ascii_lowercase() || c == '_')
        );
    }
    assert_eq!(serde_json::to_value(FindingKind::TailCut).unwrap(), json!("tail_cut"));
}
