//! Erasing, collecting, sweeping and backing up: the log gets smaller or more private, and still verifies.

#![allow(clippy::unwrap_used)]

mod common;

use common::*;
use holdfast_contract::body::Body;
use holdfast_contract::digest::Digest;
use holdfast_contract::frame::Tombstone;
use holdfast_contract::ids::{Millis, Seq};
use holdfast_contract::problem::Code;
use holdfast_contract::registry::RegistryRef;
use holdfast_contract::session_frames::TurnStarted;
use holdfast_contract::system_frames::{LogCheckpointed, PolicyChanged};
use holdfast_store::{ObjectKind, Retention, Store, StoreOptions};
use serde_json::json;

fn numbered(count: u64) -> Vec<Body> {
    (0..count).map(|number| small(&format!("number {number}"))).collect()
}

#[test]
fn an_erased_body_leaves_a_tombstone_and_a_whole_chain() {
    let home = Home::new();
    home.record(
        "s",
        vec![small("before"), small("a secret word"), said(long("a secret text")), small("after")],
    );
    home.record("t", vec![said(long("a secret text")), said(long("only here"))]);
    home.stream("s").snapshot(Seq(3), 1, Box::new(|| Ok(state(json!("a secret state")))));
    home.anchor("s");
    home.store.flush().unwrap();
    assert!(home.file_contains("a secret word"));

    assert_eq!(home.erase("s", 1, 2, "asked to"), 2);
    let frames = home.store.frames(&id("s"), ..).unwrap();
    assert_eq!(frames.len(), 4);
    assert_eq!(frames[1].body, None);
    let recorded = home.store.frames(&id("system"), Seq(1)..).unwrap().remove(0);
    let tombstone = Tombstone { at: recorded.envelope.at, reason: "asked to".to_owned() };
    assert_eq!(frames[1].erased.as_ref(), Some(&tombstone));
    let refused = home.store.body(&frames[1]).unwrap_err();
    assert_eq!(refused.code, Code::StoreErased);
    assert!(refused.what.contains("asked to"), "{refused}");
    assert_eq!(home.store.body(&frames[3]).unwrap(), small("after"));
    assert!(!home.file_contains("a secret word"), "it is still in the file");
    assert_eq!(home.store.latest_snapshot(&id("s")).unwrap(), None, "the state may have held it too");
    assert_eq!(home.count("blobs"), 2, "another stream still refers to the text");
    assert_eq!(home.findings(), []);

    assert_eq!(home.erase("t", 0, 0, "asked to"), 1);
    assert_eq!(home.count("blobs"), 1, "now nobody does");
    assert_eq!(home.erase("t", 0, 1, "all of it"), 1, "what is erased stays erased as it was");
    assert_eq!((home.count("blobs"), home.count("blob_refs")), (0, 0));
    assert_eq!(home.findings(), []);

    home.record("s", vec![small("it goes on")]);
    let home = home.reopen();
    assert_eq!(home.findings(), []);
}

#[test]
fn nothing_is_left_of_erased_bodies_in_a_busy_file() {
    const STREAMS: u64 = 6;
    const FRAMES: u64 = 200;
    let home = Home::new();
    // Bodies of all lengths that stand in their rows, in interleaved streams.
    let body = |stream: u64, seq: u64| {
        small(&format!(
            "<secret-{stream}-{seq}>{}",
            "pad".repeat(((stream * 331 + seq * 977) % 1300) as usize)
        ))
    };
    for first in (0..FRAMES).step_by(5) {
        for stream in 0..STREAMS {
            home.record(&format!("s{stream}"), (first..first + 5).map(|seq| body(stream, seq)).collect());
        }
    }
    let secrets = || {
        let bytes = home.bytes();
        let found = bytes.split(|byte| *byte == b'<').filter_map(|rest| rest.strip_prefix(b"secret-"));
        let found =
            found.filter_map(|rest| std::str::from_utf8(rest.split(|byte| *byte == b'>').next()?).ok());
        found.map(str::to_owned).collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(secrets().len() as u64, STREAMS * FRAMES);

    // In stretches that leave holes, so that pages are merged and what stays is moved about; then the rest.
    let mut erased = std::collections::BTreeSet::new();
    for (stream, from, to) in
        [(3, 0, 40), (3, 90, 120), (1, 20, 180), (4, 0, 199), (3, 0, 199), (1, 0, 199), (0, 50, 60)]
    {
        home.erase(&format!("s{stream}"), from, to, "asked to");
        erased.extend((from..=to).map(|seq| format!("{stream}-{seq}")));
        let left = secrets();
        let kept: Vec<_> = left.intersection(&erased).collect();
        assert!(kept.is_empty(), "still in the file: {kept:?}");
        assert_eq!(left.len() + erased.len(), (STREAMS * FRAMES) as usize);
    }
    assert_eq!(home.findings(), []);
}

#[test]
fn an_erasure_that_is_not_on_record_is_refused() {
    let home = Home::new();
    home.record("s", numbered(3));
    let tombstone = Tombstone { at: Millis(1), reason: "in silence".to_owned() };
    let refused = home.store.erase(&id("s"), Seq(0), Seq(1), tombstone).unwrap_err();
    assert_eq!(refused.code, Code::StoreMissing);
    assert_eq!(home.store.frames(&id("s"), ..).unwrap()[0].erased, None);
}

#[test]
fn what_the_system_stream_proves_cannot_be_erased() {
    let home = Home::new();
    home.record("s", numbered(3));
    home.anchor("s");
    home.record("system", vec![small("gossip")]);
    assert_eq!(home.erase("system", 0, 100, "tidy"), 1, "only the gossip goes");
    home.tamper("DELETE FROM frames WHERE seq = 2 AND stream = (SELECT id FROM streams WHERE name = 's')");
    assert_eq!(home.named(), ["s/2 tail_cut"]);
}

#[test]
fn collected_frames_go_with_their_blobs_and_the_chain_stays_proven() {
    let home = Home::new();
    home.record(
        "s",
        vec![small("zero"), said(long("old")), bulky("large"), said(long("kept")), small("four")],
    );
    home.anchor("s");
    assert_eq!(home.count("blobs"), 3);

    let early = home.store.collect(&id("s"), Seq(2)).unwrap_err();
    assert_eq!(early.code, Code::StoreMissing, "nothing goes before its checkpoint is recorded");
    home.checkpoint("s", 2);
    assert_eq!(home.store.collect(&id("s"), Seq(3)).unwrap_err().code, Code::StoreMissing);
    assert_eq!(home.store.collect(&id("s"), Seq(9)).unwrap_err().code, Code::StoreMissing);
    assert_eq!(home.store.collect(&id("nobody"), Seq(0)).unwrap_err().code, Code::StoreMissing);

    let collected = home.store.collect(&id("s"), Seq(2)).unwrap();
    assert_eq!((collected.frames, collected.blobs), (3, 2));
    assert_eq!(home.store.frames(&id("s"), ..).unwrap().len(), 2);
    assert_eq!(home.findings(), []);
    assert_eq!(home.store.collect(&id("s"), Seq(2)).unwrap().frames, 0, "once is enough");

    let home = home.reopen();
    home.record("s", vec![small("five")]);
    assert_eq!(home.findings(), []);
}

#[test]
fn a_stream_can_be_collected_whole_and_go_on() {
    let home = Home::new();
    home.record("s", numbered(10_000));
    home.anchor("s");
    let head = home.store.head(&id("s")).unwrap();
    home.checkpoint("s", 9_999);
    assert_eq!(home.store.collect(&id("s"), Seq(9_999)).unwrap().frames, 10_000);
    assert_eq!(home.store.head(&id("s")).unwrap(), head);
    assert_eq!(home.findings(), []);
    let home = home.reopen();
    home.record("s", vec![small("and on")]);
    assert_eq!(home.store.frames(&id("s"), ..).unwrap()[0].envelope.seq, Seq(10_000));
    assert_eq!(home.findings(), []);
}

#[test]
fn a_collection_that_a_crash_cut_short_is_out_of_sight_and_finished_later() {
    let home = Home::new();
    home.record("s", numbered(10));
    home.checkpoint("s", 4);
    // What the first step of a collection leaves: the base has moved, the frames are still there.
    home.tamper(
        "UPDATE streams SET base_seq = 4, base_hash = (SELECT hash FROM frames WHERE seq = 4 AND stream = streams.id)
         WHERE name = 's'",
    );
    assert_eq!(home.store.frames(&id("s"), ..).unwrap().len(), 5);
    assert_eq!(home.store.streams().unwrap()[0].frames, 5);
    assert_eq!(home.findings(), []);
    assert_eq!(home.store.collect(&id("s"), Seq(4)).unwrap().frames, 5);
    assert_eq!(home.findings(), []);
}

#[test]
fn a_snapshot_outlives_the_frames_it_includes() {
    let home = Home::new();
    home.record("s", vec![said(long("early")), small("one"), small("two")]);
    let mention = home.store.frames(&id("s"), ..).unwrap().remove(0).body.unwrap()["text"].clone();
    home.stream("s").snapshot(Seq(1), 1, Box::new(move || Ok(state(mention))));
    home.checkpoint("s", 1);
    let collected = home.store.collect(&id("s"), Seq(1)).unwrap();
    assert_eq!((collected.frames, collected.blobs), (2, 0), "the snapshot still needs the text");
    assert_eq!(home.store.latest_snapshot(&id("s")).unwrap().unwrap().0.seq, Seq(1));
    assert_eq!(home.findings(), []);

    home.stream("s").snapshot(Seq(2), 1, Box::new(|| Ok(state(json!("forgotten")))));
    home.store.flush().unwrap();
    assert_eq!(home.count("blobs"), 0, "the next one does not");

    home.record("s", vec![small("three")]);
    home.checkpoint("s", 3);
    home.store.collect(&id("s"), Seq(3)).unwrap();
    assert_eq!(
        home.store.latest_snapshot(&id("s")).unwrap(),
        None,
        "one that cannot be continued from is useless"
    );
    assert_eq!(home.findings(), []);
}

#[test]
fn the_system_stream_keeps_what_it_still_proves() {
    let home = Home::new();
    home.record("s", numbered(5));
    home.record("system", numbered(3));
    home.anchor("s");
    home.checkpoint("s", 1);
    home.store.collect(&id("s"), Seq(1)).unwrap();
    let last = home.store.head(&id("system")).unwrap().unwrap().seq;
    home.checkpoint("system", last.0);
    let refused = home.store.collect(&id("system"), last).unwrap_err();
    assert_eq!(refused.code, Code::StoreMissing);

    let renewed = home.store.evidence_to_renew(last).unwrap();
    assert_eq!(renewed.len(), 2, "the anchor and the checkpoint");
    home.record("system", renewed);
    assert_eq!(home.store.evidence_to_renew(last).unwrap(), []);
    assert_eq!(home.store.collect(&id("system"), last).unwrap().frames, last.0 + 1);
    assert_eq!(home.findings(), []);

    home.erase("s", 3, 3, "asked to");
    let last = home.store.head(&id("system")).unwrap().unwrap().seq;
    home.checkpoint("system", last.0);
    home.record("system", home.store.evidence_to_renew(last).unwrap());
    let refused = home.store.collect(&id("system"), last).unwrap_err();
    assert!(refused.what.contains("erasure"), "{refused}");
    assert_eq!(home.findings(), []);
}

#[test]
fn retention_says_how_far_to_collect() {
    let frames = || (0..10).map(|seq| (Seq(seq), Millis(seq * 100)));
    let last = |max_age: Option<u64>, max_frames| {
        let retention = Retention { max_age: max_age.map(Millis), max_frames };
        retention.last_to_go(frames(), Seq(9), Millis(1000))
    };
    assert_eq!(last(None, None), None);
    assert_eq!(last(None, Some(10)), None);
    assert_eq!(last(None, Some(4)), Some(Seq(5)));
    assert_eq!(last(None, Some(0)), Some(Seq(9)));
    assert_eq!(last(Some(300), None), Some(Seq(6)));
    assert_eq!(last(Some(5000), None), None);
    assert_eq!(last(Some(300), Some(2)), Some(Seq(7)));

    let home = Home::new();
    home.record("s", numbered(10));
    let retention = Retention { max_frames: Some(3), max_age: None };
    let head = home.store.collectable(&id("s"), retention, at(0)).unwrap().unwrap();
    assert_eq!(head.seq, Seq(6));
    home.record("system", vec![LogCheckpointed { stream: id("s"), seq: head.seq, hash: head.hash }.into()]);
    assert_eq!(home.store.collect(&id("s"), head.seq).unwrap().frames, 7);
    assert_eq!(home.store.collectable(&id("s"), retention, at(0)).unwrap(), None);
    assert_eq!(home.store.collectable(&id("nobody"), retention, at(0)).unwrap(), None);
}

#[test]
fn objects_stay_as_long_as_something_names_them() {
    let home = Home::new();
    let policy = home.store.put(ObjectKind::Policy, b"the policy".to_vec()).unwrap();
    let registry =
        home.store.put(ObjectKind::Registry, format!("{{\"policy\":\"{policy}\"}}").into_bytes()).unwrap();
    let unused = home.store.put(ObjectKind::Prompt, b"never used".to_vec()).unwrap();
    let old = home.store.put(ObjectKind::Policy, b"the old policy".to_vec()).unwrap();
    home.record("system", vec![PolicyChanged { policy: old, reason: "start".to_owned() }.into()]);
    home.record(
        "s",
        vec![TurnStarted { turn: 1, registry: RegistryRef { seq: Seq(0), digest: registry } }.into()],
    );
    assert_eq!(home.store.sweep().unwrap(), 0, "what was put just now may be named any moment");

    let home = home.reopen();
    assert_eq!(home.store.sweep().unwrap(), 1);
    assert_eq!(home.store.object(unused).unwrap(), None);
    for named in [policy, registry, old] {
        assert!(home.store.object(named).unwrap().is_some());
    }
    home.checkpoint("s", 0);
    home.store.collect(&id("s"), Seq(0)).unwrap();
    assert_eq!(home.store.sweep().unwrap(), 2, "the registry, and the policy that only it named");
    assert!(home.store.object(old).unwrap().is_some());
    assert_eq!(home.store.object(Digest::of(b"the policy")).unwrap(), None);
    assert_eq!(home.findings(), []);
}

#[test]
fn a_backup_is_a_log_of_its_own() {
    let home = Home::new();
    home.record("s", vec![small("zero"), said(long("one"))]);
    home.stream("s").append(vec![draft(2, small("not waited for"))]).unwrap();
    let copy = home.folder.path().join("copy.db");
    home.store.backup(&copy).unwrap();
    home.record("t", vec![small("later")]);

    let backup = Store::open(&copy, StoreOptions::default()).unwrap();
    assert_eq!(backup.frames(&id("s"), ..).unwrap(), home.store.frames(&id("s"), ..).unwrap());
    assert_eq!(backup.streams().unwrap().len(), 1);
    assert_eq!(backup.verify(None).unwrap(), []);
    backup.close();
    home.store.backup(&copy).unwrap();
    let backup = Store::open(&copy, StoreOptions::default()).unwrap();
    assert_eq!(backup.streams().unwrap().len(), 2, "the newer backup takes the place of the older");

    let nowhere = home.store.backup(&home.path().join("below/a/file.db")).unwrap_err();
    assert_eq!(nowhere.code, Code::StoreUnavailable);
}

// Finding D13: the file did not become smaller.
#[test]
fn the_file_becomes_smaller_once_much_of_it_is_free() {
    let home = Home::new();
    let noise = |number: u64| {
        (0..500)
            .map(|at| Digest::of(&[number, at].map(u64::to_le_bytes).concat()).to_string())
            .collect::<String>()
    };
    home.record("s", (0..100).map(|number| said(noise(number))).collect());
    home.record("t", vec![said(noise(100))]);
    assert_eq!(home.store.shrink().unwrap(), 0, "nothing is free");
    home.checkpoint("s", 98);
    home.store.collect(&id("s"), Seq(98)).unwrap();
    // Closing it brings everything into the file.
    let home = home.reopen();
    let before = std::fs::metadata(home.path()).unwrap().len();
    let freed = home.store.shrink().unwrap();
    let after = std::fs::metadata(home.path()).unwrap().len();
    assert!(freed > 1 << 20, "{before} {after} {freed}");
    assert!(after < before / 2, "{before} {after}");
    assert_eq!(home.store.shrink().unwrap(), 0, "nothing is left to do");
    home.record("s", vec![small("it goes on")]);
    assert_eq!(home.findings(), []);
    let home = home.reopen();
    assert_eq!(home.findings(), []);
    assert_eq!(home.store.frames(&id("t"), ..).unwrap().len(), 1);
}
