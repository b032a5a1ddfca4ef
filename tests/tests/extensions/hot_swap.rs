//! Extensions in a home's folder: dropped in they are live, changed they are swapped, removed they are gone, and what they did
//! replays without them.
use std::fs;
use std::path::Path;

use holdfast_app::recorded_lanes;
use holdfast_contract::problem::Code;
use holdfast_contract::session_frames::TurnOutcome;
use holdfast_replay::{Mode, replay};
use holdfast_testkit::wasm::{Does, tool};
use holdfast_tests::scene::{Scene, again, call, said, serves, until};

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_folder_is_live_and_a_changed_one_is_swapped() {
    let scene = Scene::new();
    let application = scene.open().await;
    scene.write("echo", &tool("echo", &Does::Says("one")));
    serves(&application, "echo", 1).await;
    assert_eq!(said(&call(&application, "a", "echo").await), "one");

    scene.write("echo", &tool("echo", &Does::Says("two")));
    serves(&application, "echo", 2).await;
    assert_eq!(said(&call(&application, "b", "echo").await), "two");

    fs::remove_dir_all(scene.extension("echo")).unwrap();
    until(&application, "the removal", |_| application.runtime.registry().tools.is_empty()).await;

    for session in ["a", "b"] {
        let verdict = again(&scene, &application, session);
        assert!(verdict.identical && verdict.snapshot_identical, "{session}: {verdict:#?}");
        assert!(verdict.mocked.is_empty(), "{session} really ran again: {:?}", verdict.mocked);
    }
    application.runtime.stop("the test is over").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_component_leaves_the_last_good_one_serving() {
    let scene = Scene::new();
    scene.write("echo", &tool("echo", &Does::Says("one")));
    let application = scene.open().await;
    serves(&application, "echo", 1).await;
    let good = tool("echo", &Does::Says("two"));
    scene.write("echo", &good[..good.len() / 2]);
    until(&application, "the fault", |all| all[0].fault.is_some()).await;
    let all = application.runtime.extensions().await.unwrap();
    assert_eq!(all[0].fault.as_ref().map(|fault| fault.code), Some(Code::ComponentInvalid), "{all:#?}");
    assert_eq!(said(&call(&application, "a", "echo").await), "one");
    application.runtime.stop("the test is over").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_generation_that_keeps_crashing_is_rolled_back() {
    let scene = Scene::new();
    scene.write("echo", &tool("echo", &Does::Says("one")));
    let application = scene.open().await;
    serves(&application, "echo", 1).await;
    scene.write("echo", &tool("echo", &Does::Traps));
    serves(&application, "echo", 2).await;
    for session in ["a", "b", "c"] {
        let report = call(&application, session, "echo").await;
        assert!(said(&report).contains("HF-4105"), "{report:?}");
    }
    serves(&application, "echo", 3).await;
    assert_eq!(said(&call(&application, "d", "echo").await), "one");
    for session in ["a", "d"] {
        let verdict = again(&scene, &application, session);
        assert!(verdict.identical && verdict.mocked.is_empty(), "{session}: {verdict:#?}");
    }
    application.runtime.stop("the test is over").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_was_never_good_is_disabled_with_a_reason() {
    let scene = Scene::new();
    scene.write("echo", &tool("echo", &Does::Loops));
    let settings = scene.folder.path().join("home/config/settings.yaml");
    fs::write(settings, "wasm: { budgets: { fuel: 1000000 } }\n").unwrap();
    let application = scene.open().await;
    serves(&application, "echo", 1).await;
    for session in ["a", "b", "c"] {
        let report = call(&application, session, "echo").await;
        assert!(said(&report).contains("HF-4106"), "{report:?}");
    }
    application.runtime.settled().await.unwrap();
    let all = application.runtime.extensions().await.unwrap();
    assert!(all[0].active.is_none(), "{all:#?}");
    assert_eq!(all[0].fault.as_ref().map(|fault| fault.code), Some(Code::FuelExhausted));
    let report = call(&application, "d", "echo").await;
    assert!(matches!(report.outcome, TurnOutcome::Answered), "the rest goes on: {report:?}");
    application.runtime.stop("the test is over").await.unwrap();
}

/// Puts other bytes in the place of a stored generation's component.
fn swap_stored(database: &Path, from: &[u8], to: &[u8]) {
    let connection = rusqlite::Connection::open(database).unwrap();
    let packed = zstd::encode_all(to, 0).unwrap();
    let digest = holdfast_contract::digest::Digest::of(from);
    let changed = connection
        .execute(
            "UPDATE objects SET size = ?, data = ? WHERE digest = ?",
            rusqlite::params![to.len() as i64, packed, digest.as_bytes()],
        )
        .unwrap();
    assert_eq!(changed, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_swapped_component_is_refused_with_both_digests() {
    let scene = Scene::new();
    let (good, other) = (tool("echo", &Does::Says("one")), tool("echo", &Does::Says("won")));
    scene.write("echo", &good);
    let application = scene.open().await;
    assert_eq!(said(&call(&application, "a", "echo").await), "one");
    application.runtime.stop("the test is over").await.unwrap();
    drop(application);
    swap_stored(&scene.folder.path().join("home/holdfast.db"), &good, &other);
    // Without what was compiled from the right bytes.
    fs::remove_dir_all(scene.folder.path().join("home/generations")).unwrap();

    let plan = scene.plan();
    let store = holdfast_store::Store::open(&plan.home.database(), Default::default()).unwrap();
    let lanes = recorded_lanes(&plan, &store).unwrap();
    let problem = replay(&store, &"a".into(), Mode::Strict, &lanes).unwrap_err();
    assert_eq!(problem.code, Code::ReplayMissing, "{problem}");
    for bytes in [&good, &other] {
        let digest = holdfast_contract::digest::Digest::of(bytes).to_string();
        assert!(problem.what.contains(&digest), "{problem} names {digest}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn altered_compiled_code_is_not_run() {
    let scene = Scene::new();
    scene.write("echo", &tool("echo", &Does::Says("one")));
    let application = scene.open().await;
    assert_eq!(said(&call(&application, "a", "echo").await), "one");
    application.runtime.stop("the test is over").await.unwrap();
    drop(application);
    let generations = scene.folder.path().join("home/generations");
    let mut altered = 0;
    for entry in fs::read_dir(&generations).unwrap() {
        let path = entry.unwrap().path();
        if path.ends_with("executing") {
            continue;
        }
        let mut bytes = fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0xff;
        fs::write(&path, bytes).unwrap();
        altered += 1;
    }
    assert!(altered >= 2, "compiled code and descriptors were kept");
    let application = scene.open().await;
    assert_eq!(said(&call(&application, "b", "echo").await), "one", "compiled again");
    application.runtime.stop("the test is over").await.unwrap();
}
