//! Many appenders share a sync, a full queue holds them back, and nobody is left waiting.

#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use common::*;
use holdfast_contract::ids::Seq;
use holdfast_store::{Store, StoreOptions};

#[test]
fn sixty_four_appenders_share_their_commits() {
    const APPENDERS: u64 = 64;
    const ROUNDS: u64 = 50;
    let home = Home::new();
    std::thread::scope(|scope| {
        for appender in 0..APPENDERS {
            let log = home.stream(&format!("session-{appender}"));
            scope.spawn(move || {
                for seq in 0..ROUNDS {
                    log.append(vec![draft(seq, small("mine"))]).unwrap();
                    log.wait_durable(Seq(seq)).unwrap();
                }
            });
        }
    });
    let stats = home.store.stats();
    assert_eq!(stats.frames, APPENDERS * ROUNDS);
    let shared = stats.frames as f64 / stats.commits as f64;
    // How many depends on the disk; `tests/tests/crash/group_commit.rs` counts on one of a known speed.
    assert!(shared >= 2.0, "only {shared:.1} frames shared a commit");
    assert_eq!(home.findings(), []);
}

#[test]
fn a_full_queue_holds_appenders_back_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let options = StoreOptions { queue: 8, linger: Duration::from_millis(50), ..StoreOptions::default() };
    let store = Store::open(&folder.path().join("holdfast.db"), options).unwrap();
    std::thread::scope(|scope| {
        for appender in 0..4 {
            let log = store.stream(&id(&format!("s{appender}"))).unwrap();
            scope.spawn(move || {
                for seq in 0..500 {
                    log.append(vec![draft(seq, small("pressed"))]).unwrap();
                }
                log.wait_durable(Seq(499)).unwrap();
            });
        }
    });
    assert_eq!(store.stats().frames, 2000);
    assert_eq!(store.verify(None).unwrap(), []);
}

#[test]
fn more_frames_than_one_transaction_takes_are_written_in_order() {
    let home = Home::new();
    let log = home.stream("s");
    for start in (0..30_000).step_by(100) {
        log.append((start..start + 100).map(|seq| draft(seq, small("many"))).collect()).unwrap();
    }
    log.wait_durable(Seq(29_999)).unwrap();
    assert_eq!(home.store.streams().unwrap()[0].frames, 30_000);
}

#[test]
fn a_long_write_ahead_log_is_copied_into_the_file() {
    let home = Home::new();
    let log = home.stream("s");
    let text = "x".repeat(3000);
    for seq in 0..12_000 {
        log.append(vec![draft(seq, small(&text))]).unwrap();
    }
    log.wait_durable(Seq(11_999)).unwrap();
    home.store.flush().unwrap();
    assert!(home.store.stats().checkpoints > 0);
    let wal = std::fs::metadata(home.folder.path().join("holdfast.db-wal")).unwrap().len();
    assert!(wal < 80 * 1024 * 1024, "the write-ahead log has {wal} bytes");
}

#[test]
fn a_log_verifies_clean_while_it_is_written() {
    let home = Home::new();
    let writing = std::sync::atomic::AtomicBool::new(true);
    std::thread::scope(|scope| {
        for appender in 0..4 {
            let (home, writing) = (&home, &writing);
            scope.spawn(move || {
                let name = format!("s{appender}");
                while writing.load(std::sync::atomic::Ordering::Relaxed) {
                    home.record(&name, vec![small("zero"), said(long("shared")), bulky(&name)]);
                }
            });
        }
        for round in 0..10 {
            let streams = home.store.streams().unwrap();
            streams
                .iter()
                .filter(|stream| !stream.id.is_system())
                .for_each(|stream| home.anchor(stream.id.as_str()));
            assert_eq!(home.findings(), [], "round {round}");
        }
        writing.store(false, std::sync::atomic::Ordering::Relaxed);
    });
}
