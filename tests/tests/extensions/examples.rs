//! The examples, from source to a recorded session: each is built, dropped into a home, called, swapped, and replayed strictly.
use std::fs;
use std::path::Path;
use std::sync::Arc;

use holdfast_app::Application;
use holdfast_contract::content::Content;
use holdfast_contract::host_call::HostCall;
use holdfast_contract::ids::{CallId, Millis};
use holdfast_contract::problem::Fault;
use holdfast_contract::sandbox::SandboxOptions;
use holdfast_contract::session_frames::TurnOutcome;
use holdfast_contract::wire::{Call, Host, Later, Reply};
use holdfast_testkit::wasm::{MapVault, lane_with};
use holdfast_tests::scene::{Scene, again, said, serves};
use serde_json::json;

/// Copies an example into the home, without what was built before, and builds it there.
fn install(scene: &Scene, id: &str) {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").join(id);
    copy(&from, &scene.extension(id));
    let cargo = scene.extension(id).join("Cargo.toml");
    if let Ok(text) = fs::read_to_string(&cargo) {
        // It names the SDK by where it lies beside the examples.
        let sdk = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sdk").canonicalize().unwrap();
        fs::write(cargo, text.replace("../../sdk", sdk.to_str().unwrap())).unwrap();
    }
    holdfast_authoring::build(&scene.extension(id), &mut |_| {}).unwrap_or_else(|problem| {
        panic!("{problem}\n  the toolchains of the tests are installed by ./scripts/setup guests")
    });
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_owned();
        let is_built = name == "target" || name == ".target";
        let is_component = path.extension().is_some_and(|extension| extension == "wasm");
        if path.is_dir() && !is_built {
            copy(&path, &to.join(name));
        } else if !path.is_dir() && !is_component {
            fs::copy(&path, to.join(name)).unwrap();
        }
    }
}

/// Another version of the same source.
fn swap(scene: &Scene, id: &str) {
    let file = scene.extension(id).join("manifest.yaml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("version: 0.1.0", "version: 0.1.1")).unwrap();
}

/// What became of a turn: its answer, or why a guardrail stopped it.
async fn say(application: &Application, session: &str, text: &str) -> String {
    let new = application.session(session.into(), "test", Some("direct".into())).unwrap();
    let report = application.runtime.open(new).unwrap().say("test", text).await.unwrap();
    match &report.outcome {
        TurnOutcome::Blocked { reason } => reason.clone(),
        _ => said(&report),
    }
}

/// Builds, drops in, calls, swaps, calls again, and replays both.
async fn lives(id: &str, text: &str, expected: &str) {
    let scene = Scene::new();
    install(&scene, id);
    let application = scene.open().await;
    serves(&application, id, 1).await;
    let first = say(&application, "a", text).await;
    assert!(first.contains(expected), "{first}");
    swap(&scene, id);
    serves(&application, id, 2).await;
    let second = say(&application, "b", text).await;
    assert_eq!(first, second);
    for session in ["a", "b"] {
        let verdict = again(&scene, &application, session);
        assert!(verdict.identical && verdict.snapshot_identical, "{session}: {verdict:#?}");
        assert!(verdict.mocked.is_empty(), "{session} really ran again: {:?}", verdict.mocked);
    }
    application.runtime.stop("the test is over").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_c_tool_lives() {
    lives("checksum", r#"/crc32 {"text": "123456789"}"#, "cbf43926").await;
}

/// What the published figures are taken with is built from the sources beside it, with today's header. `HOLDFAST_UPDATE=1` takes over what
/// is built.
#[test]
fn the_guests_of_the_figures_are_their_sources() {
    for id in ["gate", "tool"] {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/bench/src/guests").join(id);
        let folder = tempfile::tempdir().unwrap();
        copy(&from, folder.path());
        let built = holdfast_authoring::build(folder.path(), &mut |_| {}).unwrap();
        let (built, kept) = (fs::read(built.component).unwrap(), from.join(format!("{id}.wasm")));
        if std::env::var_os("HOLDFAST_UPDATE").is_some() {
            fs::write(&kept, &built).unwrap();
        }
        assert!(built == fs::read(kept).unwrap(), "{id}: run this test with HOLDFAST_UPDATE=1");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_javascript_tool_lives() {
    lives("json-tools", r#"/json_query {"document": {"a": [1, {"b": 2}]}, "path": "a[1].b"}"#, "2").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_python_tool_lives() {
    lives("text-tools", r#"/slugify {"text": "To be, or not to be"}"#, "to-be-or-not-to-be").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rust_guardrail_lives() {
    let text = "please use AKIAABCDEFGHIJKLMNOP for it";
    lives("secret-guard", text, "what looks like an access key").await;
}

/// Builds a program as its page says, drops it in, and calls it.
async fn program_lives(id: &str, said: &[(&str, &str)]) {
    let scene = Scene::new();
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").join(id);
    copy(&from, &scene.extension(id));
    let page = fs::read_to_string(from.join("README.md")).unwrap();
    let line = page.lines().find_map(|line| line.strip_prefix("    ")).unwrap();
    let built = std::process::Command::new("sh")
        .args(["-c", line])
        .current_dir(scene.extension(id))
        .env_remove("CARGO_TARGET_DIR")
        .status();
    assert!(built.unwrap().success(), "{line}");
    let application = scene.open().await;
    serves(&application, id, 1).await;
    for (text, expected) in said {
        let answer = say(&application, text, text).await;
        assert!(answer.contains(expected), "{text}: {answer}");
    }
    application.runtime.stop("the test is over").await.unwrap();
    for (session, _) in said {
        let verdict = again(&scene, &application, session);
        assert!(verdict.identical && verdict.snapshot_identical, "{session}: {verdict:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_c_program_lives() {
    let started = (r#"/stopwatch_start {"name": "t\"ea"}"#, "started");
    let read = (r#"/stopwatch_read {"name": "t\"ea"}"#, "seconds");
    let unknown = (r#"/stopwatch_read {"name": "egg"}"#, "there is no such stopwatch");
    program_lives("stopwatch", &[started, read, unknown]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rust_program_lives() {
    let added = (r#"/note_add {"text": "The boiler was serviced in May."}"#, "1");
    let found = (r#"/note_find {"words": "BOILER may"}"#, "The boiler was serviced in May.");
    let refused = (r#"/note_add {"text": " "}"#, "a note has some text");
    program_lives("notes", &[added, found, refused]).await;
}

/// Each of them is small enough to be read at one go.
#[test]
fn the_programs_are_short() {
    for source in ["stopwatch/main.c", "notes/src/main.rs"] {
        let text = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").join(source);
        let lines = fs::read_to_string(text).unwrap().lines().count();
        assert!(lines < 150, "{source}: {lines}");
    }
}

/// A host that is never asked.
struct Nobody;

impl Host for Nobody {
    fn call_within(&self, call: HostCall, _: Option<Millis>) -> Later<Result<Content, Fault>> {
        panic!("{call:?}")
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_python_instances_live_at_once() {
    let scene = Scene::new();
    install(&scene, "text-tools");
    let folder = scene.extension("text-tools");
    let component = fs::read(folder.join("text-tools.wasm")).unwrap();
    let manifest = fs::read_to_string(folder.join("manifest.yaml")).unwrap();
    let (vault, options) = (Arc::new(MapVault::default()), SandboxOptions::default());
    let found = vault.add(&manifest, component, &options);
    let loaded = lane_with(&vault, options).load(&found.activation(1)).await.unwrap();
    let live: Vec<_> = (0..200).map(|_| loaded.fresh().unwrap()).collect();
    // Twice, so that each is still there when all have been called.
    for round in 0..2 {
        for (index, instance) in live.iter().enumerate() {
            let call = Call::Tool {
                call: CallId { turn: 1, index: 1 },
                tool: "word_count".into(),
                arguments: Content::new(json!({ "text": "to be or not to be" })),
                turn: Arc::default(),
            };
            let reply = instance.call(call, Arc::new(Nobody)).await;
            let Ok(Reply::Content(counted)) = &reply else { panic!("{round}, {index}: {reply:?}") };
            assert!(counted.to_text().contains('6'), "{counted:?}");
        }
    }
}
