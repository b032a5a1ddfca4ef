//! A value that must appear nowhere, and a search of everywhere.

use std::fs;
use std::sync::Arc;

use crate::testing::{encrypted, files, name, nothing, put, secret, set_mode};
use crate::{Chain, Digester, EncryptedFile, EnvironmentStore, Keyring, Redactor, SecretStore, StoreKind};

const CANARY: &str = "canary-7f3a \"sings\"/ключ";

/// Forms in which it would be recognised.
fn is_in(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    ["canary-7f3a", "63616e6172792d37663361", "Y2FuYXJ5LTdmM2", "ключ"].iter().any(|form| text.contains(form))
}

fn is_not_in(what: &str, text: &str) {
    assert!(!is_in(text.as_bytes()), "{what} shows it: {text}");
}

#[test]
fn the_search_finds_what_it_searches_for() {
    assert!(is_in(CANARY.as_bytes()));
}

#[test]
fn no_file_but_the_encrypted_one_has_it_and_that_one_not_in_the_open() {
    let home = tempfile::tempdir().unwrap();
    let store = encrypted(home.path());
    put(&store, "TOKEN", CANARY);
    put(&store, "OTHER", "other");
    store.remove(&name("OTHER")).unwrap();
    Digester::open(home.path()).unwrap().digest("TOKEN", &secret(CANARY));
    let found = files(home.path());
    assert_eq!(found.len(), 4);
    for (name, bytes) in found {
        assert!(!is_in(&bytes), "{name}");
    }
}

#[test]
fn nothing_that_is_printed_shows_it() {
    let home = tempfile::tempdir().unwrap();
    let file = encrypted(home.path());
    put(&file, "TOKEN", CANARY);
    is_not_in("the file", &format!("{file:?} {:?}", file.describe()));
    let environment = EnvironmentStore::new(home.path(), |_| Some(CANARY.into()));
    is_not_in(
        "the environment",
        &format!("{environment:?} {:?} {:?}", environment.describe(), environment.get(&name("X"))),
    );
    let keyring = Keyring::over(home.path(), keyring_core::mock::Store::new().unwrap());
    put(&keyring, "TOKEN", CANARY);
    is_not_in("the keyring", &format!("{keyring:?} {:?}", keyring.describe()));
    let passphrase = EncryptedFile::new(home.path(), Some(secret(CANARY)));
    is_not_in("a passphrase", &format!("{passphrase:?} {:?}", passphrase.describe()));

    let chain = Chain::new(vec![Box::new(file), Box::new(keyring)], StoreKind::File).unwrap();
    let found = chain.find(&name("TOKEN")).unwrap().unwrap();
    is_not_in("what was found", &format!("{found:?} {chain:?} {:?} {:?}", chain.names(), chain.describe()));
    let redactor = Arc::new(Redactor::new([(name("TOKEN"), secret(CANARY))]));
    is_not_in("the redactor", &format!("{redactor:?}"));
    let digester = Digester::open(home.path()).unwrap();
    is_not_in(
        "the digester",
        &format!("{digester:?} {:?} {}", digester, digester.digest("TOKEN", &secret(CANARY))),
    );
}

#[test]
fn no_message_shows_it() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("secrets.age");
    put(&encrypted(home.path()), "TOKEN", CANARY);
    let whole = fs::read(&path).unwrap();
    for spoilt in [&whole[..whole.len() - 3], b"", CANARY.as_bytes()] {
        fs::write(&path, spoilt).unwrap();
        let problem = encrypted(home.path()).set(&name("TOKEN"), &secret(CANARY)).unwrap_err();
        is_not_in("a damaged file", &format!("{problem} {problem:?}"));
    }
    fs::write(&path, &whole).unwrap();
    fs::write(home.path().join("secrets.key"), CANARY).unwrap();
    let problem = encrypted(home.path()).get(&name("TOKEN")).unwrap_err();
    is_not_in("a wrong key", &format!("{problem} {problem:?}"));

    fs::write(home.path().join(".env"), format!("TOKEN='{CANARY}\n")).unwrap();
    set_mode(&home.path().join(".env"), 0o600);
    let environment = EnvironmentStore::new(home.path(), nothing);
    for problem in
        [environment.get(&name("A")).unwrap_err(), environment.set(&name("A"), &secret(CANARY)).unwrap_err()]
    {
        is_not_in("a broken line", &format!("{problem} {problem:?}"));
    }
    let problem = encrypted(home.path()).set(&name("X"), &secret(CANARY)).unwrap_err();
    is_not_in("a refusal", &format!("{problem:?}"));
}
