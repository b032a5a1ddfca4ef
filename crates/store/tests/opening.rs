//! Opening: what is found at the path decides, and nothing is touched that should not be.

#![allow(clippy::unwrap_used)]

mod common;

use std::path::Path;

use common::*;
use holdfast_contract::digest::Digest;
use holdfast_contract::ids::Seq;
use holdfast_contract::problem::{Code, Problem};
use holdfast_store::{Store, StoreOptions, VERSION};
use rusqlite::Connection;
use serde_json::json;

fn open(path: &Path) -> Result<Store, Problem> {
    Store::open(path, StoreOptions::default())
}

fn refused(path: &Path) -> Problem {
    open(path).err().unwrap()
}

/// Every file of a folder with its bytes.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap()))
        .collect();
    files.sort();
    files
}

#[test]
fn a_newer_log_is_refused_and_not_touched() {
    let home = Home::new();
    home.record("s", vec![small("from the future")]);
    let Home { folder, store } = home;
    store.close();
    let path = folder.path().join("holdfast.db");
    Connection::open(&path).unwrap().pragma_update(None, "user_version", VERSION + 1).unwrap();
    let before = files(folder.path());

    let problem = refused(&path);
    assert_eq!(problem.code, Code::StoreNewer);
    assert!(problem.what.contains(&format!("format {}", VERSION + 1)), "{problem}");
    assert_eq!(files(folder.path()), before);
}

#[test]
fn a_newer_log_is_refused_even_if_only_its_write_ahead_log_says_so() {
    let home = Home::new();
    let future = home.intruder();
    future.pragma_update(None, "user_version", VERSION + 1).unwrap();
    assert_eq!(refused(&home.path()).code, Code::StoreNewer);
}

#[test]
fn a_path_that_cannot_be_written_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a-file");
    std::fs::write(&file, "plain").unwrap();
    for path in [
        file.join("holdfast.db"),
        folder.path().join("no/such/folder/holdfast.db"),
        "/proc/holdfast.db".into(),
    ] {
        let problem = refused(&path);
        assert_eq!(problem.code, Code::StoreUnavailable, "{problem}");
        assert!(problem.to_string().contains(path.to_str().unwrap()), "{problem}");
    }
}

#[test]
fn a_file_that_is_no_log_is_refused_and_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("holdfast.db");
    std::fs::write(&path, "these are not the bytes of a database ".repeat(200)).unwrap();
    let before = files(folder.path());
    assert_eq!(refused(&path).code, Code::StoreCorrupt);
    assert_eq!(files(folder.path()), before);

    std::fs::remove_file(&path).unwrap();
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE someone (elses TEXT)").unwrap();
    let before = files(folder.path());
    let problem = refused(&path);
    assert_eq!(problem.code, Code::StoreCorrupt);
    assert!(problem.what.contains("not a log of Holdfast's"), "{problem}");
    assert_eq!(files(folder.path()), before);
}

#[test]
fn a_log_with_a_broken_first_page_is_refused() {
    let home = Home::new();
    home.record("s", vec![small("one")]);
    let Home { folder, store } = home;
    store.close();
    let path = folder.path().join("holdfast.db");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[100..2000].fill(0x5a);
    std::fs::write(&path, bytes).unwrap();
    assert_eq!(refused(&path).code, Code::StoreCorrupt);
}

#[test]
fn an_empty_file_becomes_a_log() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("name with spaces, ?query#hash and %41.db");
    std::fs::write(&path, "").unwrap();
    let store = open(&path).unwrap();
    assert_eq!(store.streams().unwrap(), []);
    assert_eq!(store.migration(), None);
    store.close();
    open(&path).unwrap();
}

/// A log of format 1, which did not count references and did not seal snapshots.
fn format_1(path: &Path) {
    let home = Home::new();
    home.record("s", vec![small("zero"), said(long("content")), bulky("body")]);
    home.stream("s").snapshot(Seq(2), 1, Box::new(|| Ok(state(json!("old")))));
    home.store.flush().unwrap();
    let connection = home.intruder();
    connection.execute("VACUUM INTO ?", [path.to_str().unwrap()]).unwrap();
    Connection::open(path)
        .unwrap()
        .execute_batch(
            "DROP TABLE deliveries; DROP TABLE subscribers; DROP TABLE event_names;
             DROP TABLE derived; DROP TABLE blob_refs; DROP TABLE snapshot_refs; DROP INDEX evidence; DROP INDEX tombstones;
             ALTER TABLE snapshots DROP COLUMN seal;
             PRAGMA user_version = 1;",
        )
        .unwrap();
}

#[test]
fn an_older_log_is_backed_up_and_carried_forward() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("holdfast.db");
    format_1(&path);

    let store = open(&path).unwrap();
    let migration = store.migration().unwrap().clone();
    assert_eq!((migration.from, migration.to), (1, VERSION));
    assert_eq!(migration.backup, folder.path().join("holdfast.db.v1.bak"));
    assert_eq!(store.verify(None).unwrap(), [], "the references were counted");
    let frames = store.frames(&id("s"), ..).unwrap();
    assert_eq!(store.body(&frames[1]).unwrap(), said(long("content")));
    assert_eq!(store.body(&frames[2]).unwrap(), bulky("body"));
    assert_eq!(store.latest_snapshot(&id("s")).unwrap(), None, "a cache is rebuilt");
    store.close();

    let backup = Connection::open(&migration.backup).unwrap();
    let version: u32 = backup.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    let frames: i64 = backup.query_row("SELECT count(*) FROM frames", [], |row| row.get(0)).unwrap();
    assert_eq!((version, frames), (1, 3), "the backup is the log as it was");

    let store = open(&path).unwrap();
    assert_eq!(store.migration(), None, "once is enough");
}

#[test]
fn a_log_of_format_3_gets_delivery_rows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("holdfast.db");
    let home = Home::new();
    home.record("s", vec![small("zero")]);
    home.intruder().execute("VACUUM INTO ?", [path.to_str().unwrap()]).unwrap();
    let older =
        "DROP TABLE deliveries; DROP TABLE subscribers; DROP TABLE event_names; PRAGMA user_version = 3;";
    Connection::open(&path).unwrap().execute_batch(older).unwrap();

    let store = open(&path).unwrap();
    let migration = store.migration().unwrap().clone();
    assert_eq!((migration.from, migration.to), (3, VERSION));
    assert_eq!(store.frames(&id("s"), ..).unwrap().len(), 1);
    assert_eq!(store.deliveries(&id("s"), |_| true).unwrap(), []);
    store.subscriber("someone").unwrap();
    assert_eq!(store.verify(None).unwrap(), []);
}

#[test]
fn a_migration_that_fails_leaves_the_log_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("holdfast.db");
    format_1(&path);
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE blob_refs (in_the TEXT)").unwrap();
    let problem = refused(&path);
    assert_eq!(problem.code, Code::StoreMigration);
    assert!(problem.what.contains("holdfast.db.v1.bak"), "{problem}");
    let connection = Connection::open(&path).unwrap();
    let version: u32 = connection.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    let snapshots: i64 =
        connection.query_row("SELECT count(*) FROM snapshots", [], |row| row.get(0)).unwrap();
    assert_eq!((version, snapshots), (1, 1));
}

#[test]
fn an_unknown_vfs_is_a_problem_not_a_panic() {
    let folder = tempfile::tempdir().unwrap();
    let options = StoreOptions { vfs: Some("no such vfs".to_owned()), ..StoreOptions::default() };
    let problem = Store::open(&folder.path().join("holdfast.db"), options).err().unwrap();
    assert_eq!(problem.code, Code::StoreUnavailable);
}

#[test]
fn the_built_in_vfs_can_be_named() {
    let folder = tempfile::tempdir().unwrap();
    let options = StoreOptions { vfs: Some("unix".to_owned()), ..StoreOptions::default() };
    let store = Store::open(&folder.path().join("holdfast.db"), options).unwrap();
    let log = store.stream(&id("s")).unwrap();
    log.append(vec![draft(0, small("through it"))]).unwrap();
    log.wait_durable(Seq(0)).unwrap();
    store.backup(&folder.path().join("copy.db")).unwrap();
    assert_eq!(store.frames(&id("s"), ..).unwrap()[0].envelope.prev, Digest::ZERO);
}

// A command that reads the log of a new home may come while its owner makes it.
#[test]
fn a_log_that_several_open_at_once_is_created_once() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..50 {
        let path = folder.path().join(format!("{round}.db"));
        let barrier = std::sync::Barrier::new(3);
        std::thread::scope(|scope| {
            let opened = || {
                barrier.wait();
                open(&path).map(drop)
            };
            let all: Vec<_> = (0..3).map(|_| scope.spawn(opened)).collect();
            for one in all {
                one.join().unwrap().unwrap();
            }
        });
    }
}
