//! Files that somebody tampered with, and names that try to be something else.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use holdfast_contract::problem::Code;
use tempfile::TempDir;

use crate::testing::{encrypted, got, mode, name, nothing, put, refused, secret, set_mode};
use crate::{Chain, Digester, EnvironmentStore, SecretName, SecretStore, SecretStoreState, StoreKind};

/// A home with one secret.
fn home() -> TempDir {
    let home = tempfile::tempdir().unwrap();
    put(&encrypted(home.path()), "TOKEN", "the old value");
    home
}

#[test]
fn a_key_that_others_can_read_is_not_used() {
    let home = home();
    let key = home.path().join("secrets.key");
    for exposed in [0o644, 0o640, 0o604, 0o620] {
        set_mode(&key, exposed);
        let (code, message) = refused(&encrypted(home.path()));
        assert_eq!(code, "HF-1603");
        assert!(message.contains("chmod 600") && message.contains("replace secrets"), "{message}");
        assert_eq!(mode(&key), exposed, "the mode is not changed silently");
    }
    set_mode(&key, 0o600);
    assert_eq!(got(&encrypted(home.path()), "TOKEN").as_deref(), Some("the old value"));
}

#[test]
fn a_file_that_others_can_write_is_not_used() {
    let home = home();
    set_mode(&home.path().join("secrets.age"), 0o666);
    assert_eq!(refused(&encrypted(home.path())).0, "HF-1603");
}

#[test]
fn links_are_not_followed() {
    for linked in ["secrets.age", "secrets.key"] {
        let (home, elsewhere) = (home(), home());
        let (here, there) = (home.path().join(linked), elsewhere.path().join(linked));
        fs::remove_file(&here).unwrap();
        symlink(&there, &here).unwrap();
        let before = fs::read(&there).unwrap();
        let (code, message) = refused(&encrypted(home.path()));
        assert!(code == "HF-1604" && message.contains("is a link"), "{message}");
        assert_eq!(fs::read(&there).unwrap(), before);
    }
}

#[test]
fn a_link_to_nowhere_is_no_empty_store() {
    let home = home();
    fs::remove_file(home.path().join("secrets.age")).unwrap();
    symlink(home.path().join("planted"), home.path().join("secrets.age")).unwrap();
    assert_eq!(refused(&encrypted(home.path())).0, "HF-1604");
    assert!(!home.path().join("planted").exists());
}

#[test]
fn a_planted_draft_or_lock_leads_nowhere() {
    let home = home();
    let victim = home.path().join("victim");
    fs::write(&victim, "untouched").unwrap();
    symlink(&victim, home.path().join(".secrets.age.draft")).unwrap();
    put(&encrypted(home.path()), "TOKEN", "the new value");
    assert_eq!(fs::read_to_string(&victim).unwrap(), "untouched");
    assert_eq!(got(&encrypted(home.path()), "TOKEN").as_deref(), Some("the new value"));

    fs::remove_file(home.path().join("secrets.lock")).unwrap();
    symlink(&victim, home.path().join("secrets.lock")).unwrap();
    let problem = encrypted(home.path()).set(&name("TOKEN"), &secret("newer")).unwrap_err();
    assert_eq!(problem.code, Code::SecretsUnreadable);
}

#[test]
fn a_pipe_or_a_folder_in_its_place_is_refused_without_waiting() {
    for kind in ["pipe", "folder"] {
        let home = home();
        let path = home.path().join("secrets.age");
        fs::remove_file(&path).unwrap();
        match kind {
            "pipe" => assert!(Command::new("mkfifo").arg(&path).status().unwrap().success()),
            _ => fs::create_dir(&path).unwrap(),
        }
        assert_eq!(refused(&encrypted(home.path())).0, "HF-1604", "{kind}");
    }
}

/// That a file in this state is a problem for readers and writers, and stays as it is.
fn stays_a_problem(home: &Path, bytes: &[u8], why: &str) {
    let path = home.join("secrets.age");
    fs::write(&path, bytes).unwrap();
    let (code, message) = refused(&encrypted(home));
    assert!(["HF-1605", "HF-1606"].contains(&&*code), "{why}: {message}");
    assert!(message.contains("nothing was overwritten"), "{why}: {message}");
    assert_eq!(fs::read(&path).unwrap(), bytes, "{why}");
}

#[test]
fn a_file_that_breaks_off_anywhere_is_no_empty_store() {
    let home = home();
    let whole = fs::read(home.path().join("secrets.age")).unwrap();
    for length in 0..whole.len() {
        stays_a_problem(home.path(), &whole[..length], &format!("{length} bytes"));
    }
}

#[test]
fn a_file_that_was_changed_anywhere_is_noticed() {
    let home = home();
    let whole = fs::read(home.path().join("secrets.age")).unwrap();
    for place in 0..whole.len() {
        let mut changed = whole.clone();
        changed[place] ^= 1;
        stays_a_problem(home.path(), &changed, &format!("byte {place}"));
    }
    stays_a_problem(home.path(), &[&whole[..], b"more"].concat(), "more at its end");
    stays_a_problem(home.path(), b"TOKEN=plain\n", "plain text");
}

#[test]
fn a_missing_key_is_not_replaced_while_there_are_secrets() {
    let home = home();
    let (key, bytes) = (home.path().join("secrets.key"), fs::read(home.path().join("secrets.age")).unwrap());
    let old = fs::read(&key).unwrap();
    fs::remove_file(&key).unwrap();
    let (code, message) = refused(&encrypted(home.path()));
    assert!(code == "HF-1606" && message.contains("secrets.key is missing"), "{message}");
    assert!(!key.exists());
    for other in ["", "# only a comment\n", "AGE-SECRET-KEY-1NONSENSE\n"] {
        fs::write(&key, other).unwrap();
        set_mode(&key, 0o600);
        assert_eq!(refused(&encrypted(home.path())).0, "HF-1606", "{other:?}");
    }
    let other = self::home();
    fs::copy(other.path().join("secrets.key"), &key).unwrap();
    let (code, message) = refused(&encrypted(home.path()));
    assert!(code == "HF-1606" && message.contains("for another identity"), "{message}");
    assert_eq!(fs::read(home.path().join("secrets.age")).unwrap(), bytes);
    fs::write(&key, old).unwrap();
    assert_eq!(got(&encrypted(home.path()), "TOKEN").as_deref(), Some("the old value"));
}

#[test]
fn a_key_removed_while_the_store_is_open_is_not_replaced() {
    let home = home();
    let store = encrypted(home.path());
    assert_eq!(got(&store, "TOKEN").as_deref(), Some("the old value"));
    fs::remove_file(home.path().join("secrets.key")).unwrap();
    let problem = store.set(&name("TOKEN"), &secret("the new value")).unwrap_err();
    assert_eq!(problem.code, Code::SecretsKey);
    assert!(!home.path().join("secrets.key").exists());
}

#[test]
fn doctor_hears_of_trouble() {
    let home = home();
    set_mode(&home.path().join("secrets.key"), 0o644);
    match encrypted(home.path()).describe().state {
        SecretStoreState::Unavailable(problem) => assert_eq!(problem.code, Code::SecretsExposed),
        SecretStoreState::Ready { .. } => panic!("a key that others can read is not fine"),
    }
}

#[test]
fn names_are_names_and_nothing_else() {
    for wrong in [
        "",
        ".",
        "A.",
        ".A",
        "1A",
        "A B",
        "A=B",
        "A\nB",
        "A'B",
        "../A",
        "a/b",
        "A.B",
        "ext.A.B",
        "É",
        "-a.B",
        "a.B\0",
        &"A".repeat(129),
    ] {
        let problem = wrong.parse::<SecretName>().unwrap_err();
        assert_eq!(problem.code, Code::SecretName, "{wrong:?}");
        assert!(!problem.what.contains('\n'), "{problem}");
    }
    for right in ["A", "_a1", "OPENED_KEY", "brave-key", "telegram_channel.TOKEN", "a-b.c"] {
        assert_eq!(right.parse::<SecretName>().unwrap().to_string(), right);
    }
}

#[test]
fn an_extension_cannot_name_the_secret_of_another() {
    let home = tempfile::tempdir().unwrap();
    let store = encrypted(home.path());
    put(&store, "telegram.TOKEN", "not yours");
    let environment = EnvironmentStore::new(home.path(), nothing);
    let chain = Chain::new(vec![Box::new(environment), Box::new(store)], StoreKind::File).unwrap();
    for asked in ["telegram.TOKEN", "../telegram.TOKEN", "x.telegram.TOKEN"] {
        assert_eq!(chain.find_for(&"spy".into(), asked).unwrap_err().code, Code::SecretName);
    }
    assert!(chain.find_for(&"spy".into(), "TOKEN").unwrap().is_none());
    assert!(chain.find_for(&"telegram.TOKEN\u{0}".into(), "TOKEN").is_err());
}

#[test]
fn the_key_of_digests_is_guarded_too() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("secrets.digest");
    let digest = |home: &TempDir| Digester::open(home.path()).map(|it| it.digest("TOKEN", &secret("value")));
    let first = digest(&home).unwrap();
    assert_eq!(digest(&home).unwrap(), first, "the same after a restart");
    assert_ne!(digest(&tempfile::tempdir().unwrap()).unwrap(), first, "another home has another key");
    let digester = Digester::open(home.path()).unwrap();
    assert_ne!(digester.digest("OTHER", &secret("value")), first);
    assert_ne!(digester.digest("TOKE", &secret("Nvalue")), first);
    assert_eq!(mode(&path), 0o600);

    set_mode(&path, 0o644);
    assert_eq!(digest(&home).unwrap_err().code, Code::SecretsExposed);
    set_mode(&path, 0o600);
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..31]).unwrap();
    assert_eq!(digest(&home).unwrap_err().code, Code::SecretsDamaged);
    assert_eq!(fs::read(&path).unwrap(), &whole[..31]);
}
