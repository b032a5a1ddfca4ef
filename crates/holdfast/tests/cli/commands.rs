//! The binary as a user runs it: a demonstration, the log, replay, schemas, and what it says when something is wrong.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn holdfast(home: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_holdfast"))
        .arg("--home")
        .arg(home)
        .args(arguments)
        .env_remove("HOLDFAST_HOME")
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn the_demonstration_verifies_and_replays_in_other_processes() {
    let folder = tempfile::tempdir().unwrap();
    let demo = holdfast(folder.path(), &["demo"]);
    assert!(demo.status.success(), "{}", text(&demo.stdout));
    assert!(
        text(&demo.stdout).contains("36 frames replayed (strict), all identical"),
        "{}",
        text(&demo.stdout)
    );

    let verified = holdfast(folder.path(), &["log", "verify"]);
    assert!(text(&verified.stdout).contains("the log verifies"));
    let replayed = holdfast(folder.path(), &["replay", "demo-1", "--json"]);
    let verdict: Value = serde_json::from_slice(&replayed.stdout).unwrap();
    assert_eq!(
        (&verdict["session"], &verdict["mode"], &verdict["frames"]),
        (&"demo-1".into(), &"strict".into(), &36.into())
    );
    assert_eq!((&verdict["identical"], &verdict["snapshot_identical"]), (&true.into(), &true.into()));
    assert_eq!(verdict["divergence"], Value::Null);

    let shown = holdfast(folder.path(), &["log", "show", "demo-1", "--kind", "tool.decided"]);
    assert_eq!(text(&shown.stdout).lines().count(), 3);
    let exported = holdfast(folder.path(), &["log", "export", "demo-1"]);
    assert_eq!(
        text(&exported.stdout).lines().filter(|line| serde_json::from_str::<Value>(line).is_ok()).count(),
        36
    );
    let listed = holdfast(folder.path(), &["log", "list", "--json"]);
    assert_eq!(text(&listed.stdout).lines().count(), 2);
}

#[test]
fn a_changed_byte_is_found() {
    let folder = tempfile::tempdir().unwrap();
    assert!(holdfast(folder.path(), &["demo"]).status.success());
    let database = rusqlite::Connection::open(folder.path().join("holdfast.db")).unwrap();
    let changed = database.execute("UPDATE frames SET body = CAST(replace(CAST(body AS TEXT), 'hunter2', 'hunter3') AS BLOB) WHERE kind = 'input.received' OR kind = 'model.returned'", []);
    assert!(changed.unwrap() > 0);
    drop(database);
    let verified = holdfast(folder.path(), &["log", "verify"]);
    assert_eq!(verified.status.code(), Some(1));
    assert!(text(&verified.stdout).contains("demo-1 at 5"), "{}", text(&verified.stdout));
    let replayed = holdfast(folder.path(), &["replay", "demo-1"]);
    assert_eq!(replayed.status.code(), Some(1));
    assert!(
        text(&replayed.stdout).contains("differs at frame 5 (model.returned)"),
        "{}",
        text(&replayed.stdout)
    );
}

#[test]
fn erased_content_is_gone_and_the_log_still_verifies() {
    let folder = tempfile::tempdir().unwrap();
    assert!(holdfast(folder.path(), &["demo"]).status.success());
    let erased = holdfast(folder.path(), &["log", "erase", "demo-1", "--reason", "asked by Ada"]);
    assert!(erased.status.success(), "{}", text(&erased.stderr));
    let verified = holdfast(folder.path(), &["log", "verify"]);
    assert!(verified.status.success(), "{}", text(&verified.stdout));
    let everything: Vec<u8> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .flat_map(|path| std::fs::read(path).unwrap())
        .collect();
    let secret = b"hunter2";
    assert!(
        !everything.windows(secret.len()).any(|window| window == secret),
        "no byte of it is left in the home"
    );
    let replayed = holdfast(folder.path(), &["replay", "demo-1"]);
    assert!(text(&replayed.stderr).contains("error[HF-2008]"), "{}", text(&replayed.stderr));
}

#[test]
fn collected_frames_leave_a_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    assert!(holdfast(folder.path(), &["demo"]).status.success());
    let collected = holdfast(folder.path(), &["log", "gc", "--keep-frames", "10"]);
    assert!(text(&collected.stdout).contains("demo-1: 26 frames"), "{}", text(&collected.stdout));
    let verified = holdfast(folder.path(), &["log", "verify"]);
    assert!(verified.status.success(), "{}", text(&verified.stdout));
    assert!(text(&verified.stdout).contains("its beginning was collected"));
}

#[test]
fn what_is_wrong_is_said_with_a_code_and_a_way_out() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty");
    let file = folder.path().join("file");
    std::fs::write(&file, "not a folder").unwrap();
    let recorded = folder.path().join("recorded");
    assert!(holdfast(&recorded, &["demo"]).status.success());
    for (home, arguments, code, exit) in [
        (&empty, &["log", "list"][..], "HF-2007", 2),
        (&recorded, &["log", "show", "nobody"], "HF-2007", 2),
        (&recorded, &["log", "show", "demo-1", "--kind", "tool.decide"], "HF-9001", 2),
        (&recorded, &["replay", "nobody"], "HF-2007", 2),
        (&recorded, &["replay", "demo-1", "--strict", "--mock"], "HF-9001", 2),
        (&recorded, &["schema", "nothing"], "HF-9001", 2),
        (&recorded, &["log", "erase", "system", "--reason", "hiding"], "HF-9001", 2),
        (&recorded, &["frobnicate"], "HF-9001", 2),
        (&recorded, &["demo", "--session", "demo-1"], "HF-3002", 1),
        (&file, &["demo"], "HF-1501", 2),
    ] {
        let output = holdfast(home, arguments);
        let said = text(&output.stderr);
        assert!(said.starts_with(&format!("error[{code}]: ")), "{arguments:?} says {said}");
        assert!(said.contains("help: "), "{arguments:?} says what to do: {said}");
        assert_eq!(output.status.code(), Some(exit), "{arguments:?}: {said}");
    }
}

#[test]
fn schemas_are_json_schemas() {
    let folder = tempfile::tempdir().unwrap();
    assert!(holdfast(folder.path(), &["demo"]).status.success());
    for name in ["frames", "manifest", "policy"] {
        let printed = holdfast(folder.path(), &["schema", name]);
        let schema: Value = serde_json::from_slice(&printed.stdout).unwrap();
        assert!(jsonschema::meta::is_valid(&schema), "{name}");
    }
    let schema: Value =
        serde_json::from_slice(&holdfast(folder.path(), &["schema", "frames"]).stdout).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for stream in ["demo-1", "system"] {
        for line in text(&holdfast(folder.path(), &["log", "export", stream]).stdout).lines() {
            let frame: Value = serde_json::from_str(line).unwrap();
            let errors: Vec<String> = validator.iter_errors(&frame).map(|error| error.to_string()).collect();
            assert!(errors.is_empty(), "{line}\n{errors:#?}");
        }
    }
}
