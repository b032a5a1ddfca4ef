//! Databases that were damaged in every way that is easy to plant: each is reported with a code or a finding, none makes the program
//! panic, and what is not damaged can still be exported. Damaged backups are in `backups`.

mod commands;

use std::fs;
use std::path::Path;

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::shared::{Scene, finish, until};

/// What a damage leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// `log verify` fails with this code or finding.
    Reported(&'static str),
    /// It fails, or the damage is without effect: then nothing that is exported differs.
    ReportedOrHarmless,
    /// The log is as it was: what was removed is made again.
    Harmless,
}

use Outcome::{Harmless, Reported, ReportedOrHarmless};

type Damage = Box<dyn Fn(&Path)>;

fn database(home: &Path) -> std::path::PathBuf {
    home.join("holdfast.db")
}

fn sql(statement: &'static str) -> Damage {
    Box::new(move |home| {
        let connection = Connection::open(database(home)).unwrap();
        connection.pragma_update(None, "foreign_keys", false).unwrap();
        let changed = connection.execute(statement, []).unwrap();
        assert!(changed > 0, "nothing to damage: {statement}");
    })
}

fn bytes(change: impl Fn(&mut Vec<u8>) + 'static) -> Damage {
    Box::new(move |home| {
        let mut all = fs::read(database(home)).unwrap();
        change(&mut all);
        fs::write(database(home), all).unwrap();
    })
}

/// A byte at so many thousandths of the file is flipped.
fn flipped(thousandths: usize) -> Damage {
    bytes(move |all| {
        let at = (all.len() - 1) * thousandths / 1000;
        all[at] ^= 0x55;
    })
}

fn swapped(first: usize, second: usize) -> Damage {
    bytes(move |all| {
        let page = |number: usize| (number - 1) * 4096..number * 4096;
        let (one, two) = (all[page(first)].to_vec(), all[page(second)].to_vec());
        all[page(first)].copy_from_slice(&two);
        all[page(second)].copy_from_slice(&one);
    })
}

fn cut(thousandths: usize) -> Damage {
    bytes(move |all| all.truncate(all.len() * thousandths / 1000))
}

fn wal(change: impl Fn(Vec<u8>) -> Option<Vec<u8>> + 'static) -> Damage {
    Box::new(move |home| {
        let path = home.join("holdfast.db-wal");
        match change(fs::read(&path).unwrap()) {
            Some(left) => fs::write(&path, left).unwrap(),
            None => fs::remove_file(&path).unwrap(),
        }
    })
}

const OF_BAD: &str = "(SELECT id FROM streams WHERE name = 'bad')";

/// The damages of a database that was closed.
fn damages() -> Vec<(&'static str, Outcome, Damage)> {
    let frame = |change: &str| -> Damage {
        let statement = format!("UPDATE frames SET {change} WHERE stream = {OF_BAD} AND seq = 2");
        sql(Box::leak(statement.into_boxed_str()))
    };
    let mut all: Vec<(&'static str, Outcome, Damage)> = vec![
        ("time of a frame", Reported("hash_mismatch"), frame("at = at + 1")),
        ("kind of a frame", Reported("hash_mismatch"), frame("kind = 'turn.ended'")),
        ("unknown kind", Reported("row_unreadable"), frame("kind = 'no.such'")),
        ("source of a frame", Reported("row_unreadable"), frame("source = '{'")),
        ("cause of a frame", Reported("hash_mismatch"), frame("cause = 0")),
        ("body of a frame", Reported("body_mismatch"), frame("body = x'7b7d'")),
        ("no body", Reported("body_missing"), frame("body = NULL")),
        ("digest of a body", Reported("hash_mismatch"), frame("body_digest = zeroblob(32)")),
        ("short digest", Reported("row_unreadable"), frame("body_digest = x'00'")),
        ("previous hash", Reported("hash_mismatch"), frame("prev = zeroblob(32)")),
        ("hash of a frame", Reported("hash_mismatch"), frame("hash = zeroblob(32)")),
        ("half a tombstone", Reported("row_unreadable"), frame("erased_at = 1")),
        (
            "an erasure",
            Reported("erasure_unrecorded"),
            frame("body = NULL, erased_at = 1, erased_reason = 'x'"),
        ),
        ("negative time", Reported("row_unreadable"), frame("at = -1")),
        ("a far place", Reported("frame_missing"), frame("seq = 1000000")),
        (
            "a frame deleted",
            Reported("frame_missing"),
            sql("DELETE FROM frames WHERE seq = 3 AND stream = (SELECT id FROM streams WHERE name = 'bad')"),
        ),
        (
            "the last frames deleted",
            Reported("tail_cut"),
            sql("DELETE FROM frames WHERE seq > 5 AND stream = (SELECT id FROM streams WHERE name = 'bad')"),
        ),
        (
            "all frames deleted",
            Reported("frame_missing"),
            sql("DELETE FROM frames WHERE stream = (SELECT id FROM streams WHERE name = 'bad')"),
        ),
        // Finding L9: without hashing, by deleting the newest rows.
        (
            "the newest frame of the system stream deleted",
            Reported("log_cut"),
            sql(
                "DELETE FROM frames WHERE (stream, seq) IN (SELECT stream, max(seq) FROM frames WHERE stream = \
                 (SELECT id FROM streams WHERE name = 'system') GROUP BY stream)",
            ),
        ),
        (
            "the newest half of the system stream deleted",
            Reported("log_cut"),
            sql(
                "DELETE FROM frames WHERE stream = (SELECT id FROM streams WHERE name = 'system') AND seq > \
                 (SELECT max(seq) / 2 FROM frames WHERE stream = (SELECT id FROM streams WHERE name = 'system'))",
            ),
        ),
        ("a stream deleted", Reported("stream_missing"), sql("DELETE FROM streams WHERE name = 'bad'")),
        (
            "a stream renamed",
            Reported("stream_missing"),
            sql("UPDATE streams SET name = 'x' WHERE name = 'bad'"),
        ),
        (
            "frames of another stream",
            Reported("hash_mismatch"),
            sql("UPDATE frames SET stream = (SELECT id FROM streams WHERE name = 'bad'), seq = seq + 10000
                 WHERE stream = (SELECT id FROM streams WHERE name = 'spare')"),
        ),
        (
            "a collection",
            Reported("collection_unrecorded"),
            sql("UPDATE streams SET base_seq = 1, base_hash = zeroblob(32) WHERE name = 'bad'"),
        ),
        (
            "the newest frames of system",
            Reported("log_cut"),
            sql(
                "DELETE FROM frames WHERE stream = (SELECT id FROM streams WHERE name = 'system') AND seq > 20",
            ),
        ),
        ("data of blobs", Reported("blob_damaged"), sql("UPDATE blobs SET data = x'00'")),
        ("size of blobs", Reported("blob_damaged"), sql("UPDATE blobs SET size = size + 1")),
        ("blobs deleted", Reported("blob_missing"), sql("DELETE FROM blobs")),
        ("references deleted", Reported("reference_mismatch"), sql("DELETE FROM blob_refs")),
        (
            "a reference added",
            Reported("reference_mismatch"),
            sql("INSERT INTO blob_refs SELECT id, 1, zeroblob(32) FROM streams WHERE name = 'bad'"),
        ),
        ("data of objects", Reported("object_damaged"), sql("UPDATE objects SET data = x'00'")),
        ("size of objects", Reported("object_damaged"), sql("UPDATE objects SET size = 1")),
        ("objects deleted", Reported("not_checked"), sql("DELETE FROM objects")),
        (
            "objects of another digest",
            Reported("object_damaged"),
            sql("UPDATE objects SET digest = randomblob(32)"),
        ),
        ("state of a snapshot", Reported("snapshot_damaged"), sql("UPDATE snapshots SET data = x'00'")),
        ("place of a snapshot", Reported("snapshot"), sql("UPDATE snapshots SET seq = 0")),
        ("seal of a snapshot", Reported("snapshot"), sql("UPDATE snapshots SET seal = zeroblob(32)")),
        ("kernel of a snapshot", Reported("snapshot"), sql("UPDATE snapshots SET kernel = 999")),
        ("snapshots deleted", Harmless, sql("DELETE FROM snapshots")),
        (
            "a delivery of no event",
            Reported("delivery_mismatch"),
            sql(
                "INSERT INTO deliveries SELECT id, 99999, 1, 0, 0, 1, 0, 0, 0, 0, NULL FROM streams WHERE name = 'bad'",
            ),
        ),
        (
            "a delivery of no stream",
            Reported("database_damaged"),
            sql("INSERT INTO deliveries VALUES (99, 1, 1, 0, 7, 1, 0, 0, 0, 0, NULL)"),
        ),
        (
            "a name of no event",
            Reported("delivery_mismatch"),
            sql("INSERT INTO event_names SELECT zeroblob(32), id, 1, 0 FROM streams WHERE name = 'bad'"),
        ),
        (
            "a subscriber without a name",
            Reported("delivery_mismatch"),
            sql("INSERT INTO subscribers (name) VALUES ('')"),
        ),
        ("a zeroed header", Reported("HF-2005"), bytes(|all| all[..100].fill(0))),
        ("another header", Reported("HF-2005"), bytes(|all| all[..16].copy_from_slice(b"not a database!!"))),
        ("another application", Reported("HF-2005"), bytes(|all| all[68..72].fill(7))),
        (
            "a newer format",
            Reported("HF-2002"),
            bytes(|all| all[60..64].copy_from_slice(&99u32.to_be_bytes())),
        ),
        ("an empty file", Reported("log_cut"), bytes(Vec::clear)),
        ("another page size", Reported("HF-2005"), bytes(|all| all[16..18].copy_from_slice(&[0x20, 0]))),
        ("only zeros", Reported("HF-2005"), bytes(|all| all.fill(0))),
        ("a text file", Reported("HF-2005"), bytes(|all| *all = b"hello\n".repeat(2000))),
        ("cut in half", Reported("HF-2005"), cut(500)),
        ("cut by a page", ReportedOrHarmless, bytes(|all| all.truncate(all.len() - 4096))),
        ("cut to a page", Reported("HF-2005"), bytes(|all| all.truncate(4096))),
        ("pages swapped", ReportedOrHarmless, swapped(3, 4)),
        ("more pages swapped", ReportedOrHarmless, swapped(5, 12)),
        ("a page zeroed", ReportedOrHarmless, bytes(|all| all[4096 * 4..4096 * 5].fill(0))),
        ("deleted", Reported("HF-2007"), Box::new(|home| fs::remove_file(database(home)).unwrap())),
        (
            "a head file from before",
            Harmless,
            Box::new(|home| fs::remove_file(home.join("holdfast.db-head")).unwrap()),
        ),
        (
            "a damaged head file",
            Harmless,
            Box::new(|home| fs::write(home.join("holdfast.db-head"), "nonsense").unwrap()),
        ),
        (
            "an older database",
            Reported("log_cut"),
            Box::new(|home| fs::copy(home.join("older.db"), database(home)).map(drop).unwrap()),
        ),
    ];
    all.extend(
        [5, 60, 150, 290, 410, 530, 640, 750, 870, 990]
            .map(|at| ("a flipped byte", ReportedOrHarmless, flipped(at))),
    );
    all
}

/// The damages of a database whose owner was killed.
fn crashed() -> Vec<(&'static str, Outcome, Damage)> {
    vec![
        ("-wal deleted", Reported("log_cut"), wal(|_| None)),
        ("-wal emptied", Reported("log_cut"), wal(|_| Some(Vec::new()))),
        ("-wal cut in half", Reported("log_cut"), wal(|all| Some(all[..all.len() / 2].to_vec()))),
        ("-wal cut by a page", Reported("log_cut"), wal(|all| Some(all[..all.len() - 4120].to_vec()))),
        (
            "-wal with a flipped byte",
            Reported("log_cut"),
            wal(|mut all| {
                let at = all.len() * 2 / 3;
                all[at] ^= 1;
                Some(all)
            }),
        ),
        (
            "-wal with another header",
            Reported("log_cut"),
            wal(|mut all| {
                all[..32].fill(0);
                Some(all)
            }),
        ),
        ("-shm deleted", Harmless, Box::new(|home| drop(fs::remove_file(home.join("holdfast.db-shm"))))),
        (
            "-shm damaged",
            Harmless,
            Box::new(|home| fs::write(home.join("holdfast.db-shm"), vec![7; 32768]).unwrap()),
        ),
    ]
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let name = entry.file_name();
        if entry.file_type().unwrap().is_file() && name.to_string_lossy() != "lock" {
            fs::copy(entry.path(), to.join(name)).unwrap();
        }
    }
}

/// Tries one damage after the other on copies of a home. `good` is the session that must stay readable.
fn sweep(scene: &Scene, home: &Path, good: &str, damages: Vec<(&'static str, Outcome, Damage)>) {
    let export = |home: &Path, session: &str| {
        finish(scene.command_at(home, &["log", "export", session]).spawn().unwrap())
    };
    let copied = |name: &str| {
        let to = scene.root().join("copies").join(name);
        copy(home, &to);
        to
    };
    let whole = copied("whole");
    let verified = finish(scene.command_at(&whole, &["log", "verify"]).spawn().unwrap()).ok();
    let exported = export(&whole, good).ok().out;
    assert!(exported.lines().count() > 5, "{verified:#?}");
    let mut wrong = Vec::new();
    for (number, (name, outcome, damage)) in damages.into_iter().enumerate() {
        let home = copied(&number.to_string());
        damage(&home);
        let verified = finish(scene.command_at(&home, &["log", "verify"]).spawn().unwrap());
        let said = format!("{}{}", verified.out, verified.err);
        let readable = export(&home, good);
        let intact = readable.code == Some(0) && readable.out == exported;
        let fits = match outcome {
            Reported(what) => verified.code != Some(0) && said.contains(what),
            ReportedOrHarmless => verified.code != Some(0) || intact,
            Harmless => verified.code == Some(0) && intact,
        };
        let loud = readable.code == Some(0) || readable.err.contains("error[HF-");
        let tells_itself = said.contains("help: Run `holdfast log verify`");
        if !fits || !loud || tells_itself || said.contains("panicked") || readable.err.contains("panicked") {
            wrong.push(format!("{name}: {outcome:?}\n{verified:#?}\n{}", readable.err));
        }
        // A damage to another session keeps nothing from being exported.
        let elsewhere =
            ["of a frame", "body", "digest", "a frame deleted", "tombstone", "a delivery", "snapshot"];
        if elsewhere.iter().any(|part| name.contains(part)) && !intact {
            wrong.push(format!("{name}: `{good}` cannot be exported\n{readable:#?}"));
        }
        fs::remove_dir_all(&home).unwrap();
    }
    assert!(wrong.is_empty(), "{} damages:\n{}", wrong.len(), wrong.join("\n"));
}

/// Has everything in the database itself.
fn settle(home: &Path) {
    let connection = Connection::open(database(home)).unwrap();
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    connection.close().unwrap();
    for name in ["holdfast.db-wal", "holdfast.db-shm"] {
        let _absent = fs::remove_file(home.join(name));
    }
}

fn says(text: &str) -> Value {
    json!([{ "says": text }])
}

/// A home with three sessions, and an older copy of its database.
fn recorded() -> Scene {
    let scene = Scene::new();
    scene.run(&["init"]).ok();
    scene.turn("spare", &says("spare")).ok();
    scene.run(&["bus", "publish", "notes.made", "{}"]).ok();
    settle(&scene.home());
    fs::copy(database(&scene.home()), scene.home().join("older.db")).unwrap();
    scene.turn("good", &says("good")).ok();
    scene.turn("bad", &says(&"a long answer, which is a blob ".repeat(400))).ok();
    settle(&scene.home());
    scene
}

// Issue 19: sixty damaged databases.
#[test]
fn every_damaged_database_is_reported_and_the_rest_is_exported() {
    let scene = recorded();
    let damages = damages();
    assert!(damages.len() >= 60, "{}", damages.len());
    sweep(&scene, &scene.home(), "good", damages);
}

// Finding of `reliability.md`, section Low: a write-ahead log that was cut or deleted was a shorter log that verified.
#[test]
fn a_cut_or_deleted_write_ahead_log_is_noticed() {
    let scene = Scene::new();
    scene.run(&["init"]).ok();
    scene.turn("good", &says("good")).ok();
    // The owner is killed after its last write was acknowledged. What is not acknowledged, as in the middle of a start, may be lost.
    let mut owner = scene.rpc(&[]);
    until("the owner has started", || owner.ask("system.status", json!({}))["starting"].is_null());
    owner.ask("session.rename", json!({ "session": "good", "name": "renamed" }));
    owner.child.kill().unwrap();
    owner.child.wait().unwrap();
    assert!(fs::metadata(scene.home().join("holdfast.db-wal")).unwrap().len() > 8240);
    sweep(&scene, &scene.home(), "good", crashed());
}

// Finding D17: a limit on file sizes ended the process by a signal, and nothing said why.
#[test]
fn a_limit_on_file_sizes_is_reported_and_nothing_is_lost() {
    let scene = Scene::new();
    scene.run(&["init"]).ok();
    scene.turn("before", &says("before")).ok();
    let mut noise = vec![0; 400 << 10];
    std::io::Read::read_exact(&mut fs::File::open("/dev/urandom").unwrap(), &mut noise).unwrap();
    let text: String = noise.iter().map(|byte| char::from(b'A' + byte % 26)).collect();
    let model = scene.script("long", &says(&text));
    let whole = scene.command(&["run", "go", "--session", "long", "--model", &model]);
    // What is written at once has at most 128 KiB.
    let mut limited = std::process::Command::new("/bin/sh");
    limited.args(["-c", "ulimit -f 256; exec \"$@\"", "sh"]).arg(whole.get_program()).args(whole.get_args());
    limited.current_dir(scene.work()).env_clear().env("HOME", scene.root());
    limited.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    limited.stdin(std::process::Stdio::null());
    limited.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let failed = finish(limited.spawn().unwrap());
    assert!(failed.code.is_some_and(|code| code != 0), "it is not ended by a signal: {failed:#?}");
    assert!(failed.err.contains("HF-2016"), "{failed:#?}");
    scene.verifies();
    assert!(scene.frames("before").len() > 5);
    scene.turn("after", &says("after")).ok();
}

// Finding of `reliability.md`, section Low: a line over 64 MB closed the connection without a reason.
#[test]
fn a_line_over_the_limit_is_answered_before_the_connection_is_closed() {
    let scene = Scene::new();
    let mut rpc = scene.rpc(&[]);
    rpc.write(&vec![b'x'; (64 << 20) + 1]);
    let refused = rpc.wait(|message| message["error"]["data"]["code"] == "HF-9001");
    assert!(refused["id"].is_null(), "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("64 MiB"), "{refused}");
}
