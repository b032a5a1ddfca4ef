//! The encrypted file in everyday use.

use std::fs;
use std::time::{Duration, Instant};

use crate::testing::{encrypted, files, got, mode, name, put, refused, secret};
use crate::{EncryptedFile, SecretStore, SecretStoreState, StoreKind};

#[test]
fn a_secret_that_was_set_is_there_after_a_restart() {
    let home = tempfile::tempdir().unwrap();
    put(&encrypted(home.path()), "TOKEN", "one");
    put(&encrypted(home.path()), "telegram.TOKEN", "two");
    put(&encrypted(home.path()), "TOKEN", "three");
    let store = encrypted(home.path());
    assert_eq!(got(&store, "TOKEN").as_deref(), Some("three"));
    assert_eq!(got(&store, "telegram.TOKEN").as_deref(), Some("two"));
    assert_eq!(got(&store, "OTHER"), None);
    assert_eq!(store.names().unwrap(), [name("TOKEN"), name("telegram.TOKEN")]);
}

#[test]
fn what_was_removed_is_gone() {
    let home = tempfile::tempdir().unwrap();
    let store = encrypted(home.path());
    put(&store, "TOKEN", "one");
    assert!(store.remove(&name("TOKEN")).unwrap());
    assert!(!store.remove(&name("TOKEN")).unwrap());
    assert_eq!(got(&encrypted(home.path()), "TOKEN"), None);
}

#[test]
fn nothing_is_made_before_the_first_secret() {
    let home = tempfile::tempdir().unwrap();
    let store = encrypted(home.path());
    assert_eq!(got(&store, "TOKEN"), None);
    assert_eq!(store.describe().state, SecretStoreState::Ready { secrets: 0 });
    assert!(files(home.path()).is_empty());
    assert!(!store.remove(&name("TOKEN")).unwrap());
    assert!(!home.path().join("secrets.key").exists() && !home.path().join("secrets.age").exists());
}

#[test]
fn the_files_are_the_owners_alone_and_in_the_formats_of_age() {
    let home = tempfile::tempdir().unwrap();
    put(&encrypted(home.path()), "TOKEN", "one");
    let names: Vec<_> = files(home.path()).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["secrets.age", "secrets.key", "secrets.lock"]);
    for name in names {
        assert_eq!(mode(&home.path().join(&name)), 0o600, "{name}");
    }
    let bytes = fs::read(home.path().join("secrets.age")).unwrap();
    assert!(bytes.starts_with(b"age-encryption.org/v1\n"));
    let key = fs::read_to_string(home.path().join("secrets.key")).unwrap();
    assert!(key.lines().nth(1).unwrap().starts_with("AGE-SECRET-KEY-1"));
}

#[test]
fn values_come_back_as_they_were() {
    let home = tempfile::tempdir().unwrap();
    let store = encrypted(home.path());
    let long = "x".repeat(200_000);
    for value in ["plain", " spaces ", "line\nbreak\r\n", "\"quotes\" 'and' \\ $HOME", "ключ 🔑 \u{1}", &long]
    {
        put(&store, "TOKEN", value);
        assert_eq!(got(&encrypted(home.path()), "TOKEN").as_deref(), Some(value));
    }
}

#[test]
fn one_store_sees_what_another_wrote() {
    let home = tempfile::tempdir().unwrap();
    let (one, other) = (encrypted(home.path()), encrypted(home.path()));
    for round in 0..5 {
        put(&one, "TOKEN", &format!("one {round}"));
        assert_eq!(got(&other, "TOKEN"), Some(format!("one {round}")));
        put(&other, "OTHER", &format!("other {round}"));
        assert_eq!(got(&one, "OTHER"), Some(format!("other {round}")));
    }
}

#[test]
fn a_passphrase_can_take_the_place_of_the_key() {
    let home = tempfile::tempdir().unwrap();
    let open = |passphrase: &str| EncryptedFile::new(home.path(), Some(secret(passphrase)));
    let store = open("correct horse");
    put(&store, "TOKEN", "one");
    assert!(!home.path().join("secrets.key").exists());
    assert_eq!(got(&store, "TOKEN").as_deref(), Some("one"));
    let began = Instant::now();
    for _ in 0..1_000 {
        assert_eq!(got(&store, "TOKEN").as_deref(), Some("one"));
    }
    assert!(began.elapsed() < Duration::from_secs(60), "the key is not derived for every look");

    let (code, message) = refused(&open("wrong horse"));
    assert!(code == "HF-1606" && message.contains("the passphrase is another"), "{message}");
    let (code, message) = refused(&encrypted(home.path()));
    assert!(code == "HF-1606" && message.contains("Set HOLDFAST_SECRETS_PASSPHRASE"), "{message}");
    assert_eq!(got(&open("correct horse"), "TOKEN").as_deref(), Some("one"));
}

#[test]
fn a_passphrase_does_not_open_what_was_written_for_the_key() {
    let home = tempfile::tempdir().unwrap();
    put(&encrypted(home.path()), "TOKEN", "one");
    let (code, message) = refused(&EncryptedFile::new(home.path(), Some(secret("correct horse"))));
    assert!(code == "HF-1606" && message.contains("Unset HOLDFAST_SECRETS_PASSPHRASE"), "{message}");
    assert_eq!(got(&encrypted(home.path()), "TOKEN").as_deref(), Some("one"));
}

#[test]
fn it_says_where_it_is_and_what_opens_it() {
    let home = tempfile::tempdir().unwrap();
    let store = encrypted(home.path());
    put(&store, "TOKEN", "one");
    let described = store.describe();
    assert_eq!((described.kind, described.state), (StoreKind::File, SecretStoreState::Ready { secrets: 1 }));
    assert!(described.place.ends_with("secrets.age, opened with secrets.key"), "{}", described.place);
}
