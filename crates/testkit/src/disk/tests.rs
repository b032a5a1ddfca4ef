//! The simulated disk against SQLite itself: what is committed survives, what is not synced may not, and faults reach the caller.

use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::image::Image;
use super::{DiskFault, Operation, SimulatedDisk, Survival};

fn open(disk: &SimulatedDisk) -> Connection {
    let connection =
        Connection::open_with_flags_and_vfs("test.db", OpenFlags::default(), disk.vfs_name()).unwrap();
    connection.busy_timeout(Duration::from_secs(60)).unwrap();
    let mode: String = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0)).unwrap();
    assert_eq!(mode, "wal");
    connection
        .execute_batch(
            "PRAGMA synchronous = FULL; CREATE TABLE IF NOT EXISTS t (n INTEGER PRIMARY KEY, pad BLOB)",
        )
        .unwrap();
    connection
}

fn insert(connection: &Connection, n: u32) {
    connection.execute("INSERT INTO t VALUES (?1, randomblob(?2))", (n, 100 + n * 37 % 9000)).unwrap();
}

fn rows(connection: &Connection) -> u32 {
    let check: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(check, "ok");
    let (count, top): (u32, u32) = connection
        .query_row("SELECT count(*), coalesce(max(n), 0) FROM t", [], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap();
    assert_eq!(count, top, "rows are there up to one and none after");
    count
}

/// Runs a workload and returns the disk with the step at which each row was committed.
fn workload(disk: &SimulatedDisk, count: u32) -> Vec<usize> {
    let connection = open(disk);
    connection.pragma_update(None, "wal_autocheckpoint", 40).unwrap();
    let commit = |n| {
        insert(&connection, n);
        disk.step()
    };
    (1..=count).map(commit).collect()
}

fn survivals(step: usize) -> impl Iterator<Item = Survival> {
    let random = (0..6).map(move |seed| Survival::Random(seed + step as u64 * 100));
    [Survival::NothingUnsynced, Survival::Everything].into_iter().chain(random)
}

/// How many committed rows a crash at every step loses over all its ways to survive.
fn lost(disk: &SimulatedDisk, committed: &[usize]) -> u32 {
    let mut lost = 0;
    for step in committed[0]..=disk.step() {
        let due = committed.partition_point(|at| *at <= step) as u32;
        for survival in survivals(step) {
            lost += due.saturating_sub(rows(&open(&disk.crash_at(step, survival))));
        }
    }
    lost
}

#[test]
fn committed_rows_survive_a_crash_at_every_step() {
    let disk = SimulatedDisk::new();
    let committed = workload(&disk, 60);
    assert_eq!(lost(&disk, &committed), 0);
}

#[test]
fn ignored_syncs_lose_committed_rows() {
    let disk = SimulatedDisk::new();
    drop(open(&disk));
    disk.ignore_syncs(true);
    workload(&disk, 5);
    assert_eq!(rows(&open(&disk.crash_at(disk.step(), Survival::NothingUnsynced))), 0);
    assert_eq!(rows(&open(&disk.crash_at(disk.step(), Survival::Everything))), 5);
}

#[test]
fn a_crash_while_a_database_is_made_leaves_one_that_opens() {
    let disk = SimulatedDisk::new();
    drop(open(&disk));
    for step in 0..=disk.step() {
        for survival in survivals(step) {
            assert_eq!(rows(&open(&disk.crash_at(step, survival))), 0, "{step} {survival:?}");
        }
    }
}

#[test]
fn a_crash_during_recovery_loses_nothing() {
    let disk = SimulatedDisk::new();
    let committed = workload(&disk, 30);
    let first = disk.crash_at(committed[29], Survival::Random(7));
    insert(&open(&first), 31);
    for step in 0..=first.step() {
        for survival in survivals(step) {
            assert!(rows(&open(&first.crash_at(step, survival))) >= 30, "{step} {survival:?}");
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_state() {
    let disk = SimulatedDisk::new();
    workload(&disk, 10);
    let whole = |seed| {
        let files = disk
            .crash_at(disk.step() - 3, Survival::Random(seed))
            .shared
            .lock()
            .journal
            .crash_at(0, Survival::Everything);
        files.iter().map(|(name, image)| (name.to_string(), bytes_of(image))).collect::<Vec<_>>()
    };
    assert_eq!(whole(5), whole(5));
    assert!((0..20).any(|seed| whole(seed) != whole(5)));
}

fn bytes_of(image: &Image) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(image.length()).unwrap()];
    image.read(0, &mut bytes);
    bytes
}

#[test]
fn readers_and_a_writer_share_a_database() {
    let disk = SimulatedDisk::new();
    let writer = open(&disk);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let reader = open(&disk);
                let mut seen = 0;
                while seen < 300 {
                    let now = rows(&reader);
                    assert!(now >= seen, "a reader never goes back");
                    seen = now;
                }
            });
        }
        (1..=300).for_each(|n| insert(&writer, n));
    });
}

#[test]
fn disks_do_not_meet() {
    let (one, other) = (SimulatedDisk::new(), SimulatedDisk::new());
    assert_ne!(one.vfs_name(), other.vfs_name());
    insert(&open(&one), 1);
    assert_eq!(rows(&open(&other)), 0);
}

#[test]
fn a_disk_outlives_its_handle_while_files_are_open() {
    let connection = open(&SimulatedDisk::new());
    let other = SimulatedDisk::new();
    insert(&connection, 1);
    assert_eq!(rows(&connection), 1);
    assert_eq!(rows(&open(&other)), 0);
}

#[test]
fn syncs_and_writes_are_counted_and_journalled() {
    let disk = SimulatedDisk::new();
    let connection = open(&disk);
    let before = disk.counts();
    insert(&connection, 1);
    let after = disk.counts();
    assert_eq!(after.syncs, before.syncs + 1);
    assert!(after.bytes >= before.bytes + 4096);
    let operations = disk.operations();
    assert_eq!(operations.len(), disk.step());
    assert_eq!(operations.last(), Some(&Operation::Sync { name: "test.db-wal".into() }));
}

#[test]
fn a_full_disk_refuses_and_recovers() {
    let disk = SimulatedDisk::new();
    let connection = open(&disk);
    insert(&connection, 1);
    disk.set_quota(Some(disk.used() + 1000));
    let refusal = connection.execute("INSERT INTO t VALUES (2, zeroblob(20000))", []).unwrap_err();
    assert_eq!(refusal.sqlite_error_code(), Some(ErrorCode::DiskFull));
    assert_eq!(rows(&connection), 1);
    disk.heal();
    insert(&connection, 2);
    assert_eq!(rows(&connection), 2);
}

#[test]
fn faults_strike_after_their_count() {
    for fault in [DiskFault::FullDisk, DiskFault::Write, DiskFault::Sync] {
        let disk = SimulatedDisk::new();
        let connection = open(&disk);
        disk.fail_after(0, fault);
        assert!(connection.execute("INSERT INTO t VALUES (1, NULL)", []).is_err(), "{fault:?}");
        disk.heal();
        insert(&connection, 1);
        assert_eq!(rows(&connection), 1);
    }
    let disk = SimulatedDisk::new();
    drop(open(&disk));
    disk.fail_after(0, DiskFault::Read);
    assert!(Connection::open_with_flags_and_vfs("test.db", OpenFlags::default(), disk.vfs_name()).is_err());
}
