//! Crashes in the middle of a write, and several processes that write at once.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use holdfast_contract::problem::Code;

use crate::files::{self, WriteLock};
use crate::testing::{encrypted, files, given_by_parent, got, name, put, rerun, secret};
use crate::{Digester, SecretStore};

#[test]
fn a_crash_before_the_new_file_is_in_place_leaves_the_old_one() {
    let home = tempfile::tempdir().unwrap();
    put(&encrypted(home.path()), "TOKEN", "old");
    let path = home.path().join("secrets.age");
    for half in [&b""[..], b"age-encryption.org/v1\n-> half a"] {
        // Never committed, as if the process had ended here.
        drop(files::write_draft(&path, half).unwrap());
        assert!(home.path().join(".secrets.age.draft").exists());
        assert_eq!(got(&encrypted(home.path()), "TOKEN").as_deref(), Some("old"));
    }
    put(&encrypted(home.path()), "OTHER", "new");
    assert_eq!(got(&encrypted(home.path()), "TOKEN").as_deref(), Some("old"));
    let names: Vec<_> = files(home.path()).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["secrets.age", "secrets.key", "secrets.lock"], "nothing is left lying about");
}

#[test]
fn a_crash_after_the_key_was_made_costs_nothing() {
    let home = tempfile::tempdir().unwrap();
    put(&encrypted(home.path()), "TOKEN", "old");
    let key = fs::read(home.path().join("secrets.key")).unwrap();
    fs::remove_file(home.path().join("secrets.age")).unwrap();
    put(&encrypted(home.path()), "TOKEN", "new");
    assert_eq!(fs::read(home.path().join("secrets.key")).unwrap(), key);
}

#[test]
fn a_writer_that_is_killed_at_any_moment_leaves_whole_secrets() {
    const TEST: &str = "crash_tests::a_writer_that_is_killed_at_any_moment_leaves_whole_secrets";
    if let Some((home, _)) = given_by_parent() {
        let store = encrypted(&home);
        (0..100_000).for_each(|round| put(&store, "TOKEN", &format!("{round}:").repeat(3_000)));
    }
    let home = tempfile::tempdir().unwrap();
    put(&encrypted(home.path()), "KEPT", "kept");
    for round in 0..12 {
        let written = || fs::metadata(home.path().join("secrets.age")).unwrap().modified().unwrap();
        let before = written();
        let mut writer = rerun(TEST, home.path(), "write", &[]);
        let deadline = Instant::now() + Duration::from_secs(60);
        while written() == before {
            assert!(Instant::now() < deadline, "nothing was written");
            thread::sleep(Duration::from_millis(1));
        }
        thread::sleep(Duration::from_millis(round));
        writer.kill().unwrap();
        writer.wait().unwrap();
        let store = encrypted(home.path());
        assert_eq!(got(&store, "KEPT").as_deref(), Some("kept"));
        let value = got(&store, "TOKEN").unwrap();
        let first = value.split(':').next().unwrap();
        assert_eq!(value, format!("{first}:").repeat(3_000), "a value is whole");
        put(&store, "AFTER", &format!("the lock of the dead is free {round}"));
    }
}

#[test]
fn processes_that_write_at_once_lose_nothing() {
    const TEST: &str = "crash_tests::processes_that_write_at_once_lose_nothing";
    const EACH: usize = 8;
    if let Some((home, who)) = given_by_parent() {
        let store = encrypted(&home);
        (0..EACH).for_each(|count| put(&store, &format!("{who}_{count}"), &who));
        let digest = Digester::open(&home).unwrap().digest("TOKEN", &secret("value"));
        fs::write(home.join(format!("{who}.told")), digest.to_string()).unwrap();
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let who = ["A", "B", "C", "D"];
    let writers = who.map(|who| rerun(TEST, home.path(), who, &[]));
    for mut writer in writers {
        assert!(writer.wait().unwrap().success());
    }
    let store = encrypted(home.path());
    assert_eq!(store.names().unwrap().len(), who.len() * EACH);
    for who in who {
        assert!((0..EACH).all(|count| got(&store, &format!("{who}_{count}")).as_deref() == Some(who)));
    }
    let told = who.map(|who| fs::read_to_string(home.path().join(format!("{who}.told"))).unwrap());
    assert!(told.iter().all(|digest| *digest == told[0]), "one key of digests for all: {told:?}");
}

#[test]
fn waiting_for_the_lock_times_out() {
    let home = tempfile::tempdir().unwrap();
    let held = WriteLock::take(home.path()).unwrap();
    let problem = WriteLock::take_within(home.path(), 3).unwrap_err();
    assert_eq!(problem.code, Code::SecretsBusy);
    drop(held);
    encrypted(home.path()).set(&name("TOKEN"), &secret("value")).unwrap();
}
