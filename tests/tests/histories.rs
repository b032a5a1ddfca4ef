//! Recorded histories: every build replays them to the same frames, byte for byte.
//!
//! When the kernel's behaviour changes on purpose, `BEHAVIOUR` goes up, the histories are recorded again with
//! `cargo test -p holdfast-tests --test histories --test generated -- --ignored record`, and the changelog says so.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on should stop loudly")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdfast_contract::body::{FrameKind, FrameOrigin};
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

/// The workspace's root.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Every file under a folder with this ending, by its path from the root, in order.
fn files(folder: &str, ending: &str) -> BTreeMap<String, String> {
    let (root, mut found) = (root(), BTreeMap::new());
    let mut folders = vec![root.join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() && name != "target" && name != "node_modules" {
                folders.push(path);
            } else if name.ends_with(ending) {
                let from_root = path.strip_prefix(&root).unwrap().to_string_lossy().replace('\\', "/");
                found.insert(from_root, std::fs::read_to_string(&path).unwrap());
            }
        }
    }
    found
}

/// The kinds of all frames of a recorded history.
fn kinds_of(store: &Store) -> BTreeSet<FrameKind> {
    let streams = store.streams().unwrap();
    let frames = streams.iter().flat_map(|info| store.frames(&info.id, ..).unwrap());
    frames.map(|frame| frame.envelope.kind).collect()
}

/// A recorded log that has this kind, else a test that looks for it in the log that it makes.
fn evidence(kind: FrameKind, logs: &[(String, BTreeSet<FrameKind>)], tests: &[(&String, &String)]) -> String {
    if let Some((log, _)) = logs.iter().find(|(_, kinds)| kinds.contains(&kind)) {
        return log.clone();
    }
    let looks_for = [format!("FrameKind::{kind:?}"), format!("Body::{kind:?}("), format!("\"{kind}\"")];
    let looks = |(_, text): &&(&String, &String)| looks_for.iter().any(|words| text.contains(words.as_str()));
    tests.iter().find(looks).map(|(path, _)| (*path).clone()).unwrap_or_default()
}

/// What writes each kind of frame, and where it is recorded: an inventory that is generated and committed. A kind that is documented and
/// that nothing writes, or that no recorded log and no test has, does not pass.
#[test]
fn every_kind_of_frame_is_written_and_recorded() {
    let is_kind = |word: &str| FrameKind::parse(word);
    let goldens = files("tests/golden", ".snap").into_iter();
    let mut logs: Vec<_> =
        goldens.map(|(path, text)| (path, text.split_whitespace().filter_map(is_kind).collect())).collect();
    logs.push(("tests/histories/ten_thousand.db.zst".to_owned(), kinds_of(&open().store())));
    let (_folder, path) = unpack("world");
    let world = Store::open(&path, StoreOptions::default()).unwrap();
    logs.push(("tests/histories/world.db.zst".to_owned(), kinds_of(&world)));

    let mut sources = files("crates", ".rs");
    sources.extend(files("tests/tests", ".rs"));
    let is_test =
        |path: &str| path.ends_with("_tests.rs") || path.contains("/tests/") || path.contains("/testkit/");
    let this = "tests/tests/histories.rs";
    let (tests, product): (Vec<_>, Vec<_>) = sources.iter().partition(|(path, _)| is_test(path));
    let tests: Vec<_> = tests.into_iter().filter(|(path, _)| *path != this).collect();
    let mut inventory = String::from(
        "# Generated by `every_kind_of_frame_is_written_and_recorded`. A source file under `recorded in` is a test\n\
         # that looks for the kind in the log that it makes.\nkind | written in | recorded in\n",
    );
    let mut missing = Vec::new();
    for kind in FrameKind::ALL {
        // The kernel makes decisions; facts come from those who see them. Surfaces and replay only read both.
        let writers: &[&str] = match kind.origin() {
            FrameOrigin::Decision => &["crates/kernel/"],
            FrameOrigin::Fact => &["crates/runtime/", "crates/bus/", "crates/model/"],
        };
        let maker = format!("{kind:?} {{");
        let writes = |(path, text): &&(&String, &String)| {
            writers.iter().any(|writer| path.starts_with(writer)) && text.contains(&maker)
        };
        let written = product.iter().find(writes).map(|(path, _)| path.as_str()).unwrap_or_default();
        let recorded = evidence(*kind, &logs, &tests);
        if written.is_empty() || recorded.is_empty() {
            missing.push(format!("{kind}: written in `{written}`, recorded in `{recorded}`"));
        }
        inventory.push_str(&format!("{kind} | {written} | {recorded}\n"));
    }
    assert!(
        missing.is_empty(),
        "documented and not written, or in no log of a test:\n{}",
        missing.join("\n")
    );
    let path = root().join("tests/golden/frame_kinds.txt");
    if std::env::var_os("HOLDFAST_UPDATE").is_some() {
        std::fs::write(&path, &inventory).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == inventory,
        "tests/golden/frame_kinds.txt is stale: run this test with HOLDFAST_UPDATE=1"
    );
}
