//! `.env` and the process's variables as a store.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use holdfast_contract::problem::Code;
use proptest::prelude::*;
use tempfile::TempDir;

use crate::testing::{got, mode, name, nothing, put, secret, set_mode};
use crate::{EnvironmentStore, SecretStore, SecretStoreState};

fn home(text: &str) -> TempDir {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join(".env"), text).unwrap();
    set_mode(&home.path().join(".env"), 0o600);
    home
}

fn text(home: &Path) -> String {
    fs::read_to_string(home.join(".env")).unwrap()
}

#[test]
fn a_variable_of_the_process_comes_before_the_file() {
    let home = home("TOKEN=file\nOTHER=file\nEMPTY=\n");
    let process = |name: &str| match name {
        "TOKEN" => Some(OsString::from("process")),
        "OTHER" => Some(OsString::new()),
        _ => None,
    };
    let store = EnvironmentStore::new(home.path(), process);
    assert_eq!(got(&store, "TOKEN").as_deref(), Some("process"));
    assert_eq!(got(&store, "OTHER").as_deref(), Some("file"), "an empty variable is not set");
    assert_eq!((got(&store, "EMPTY"), got(&store, "MISSING")), (None, None));
    assert_eq!(store.names().unwrap(), [name("OTHER"), name("TOKEN")]);
    let problem = store.set(&name("TOKEN"), &secret("new")).unwrap_err();
    assert_eq!(problem.code, Code::SecretReadOnly, "it would not count");
}

#[test]
fn setting_changes_one_line_and_leaves_the_rest() {
    let home = home("# keys\nA='one'\nexport TOKEN = old # mine\n\nB=\"${A} two\"\n");
    let store = EnvironmentStore::new(home.path(), nothing);
    put(&store, "TOKEN", "new value");
    assert_eq!(text(home.path()), "# keys\nA='one'\n\nB=\"${A} two\"\nTOKEN='new value'\n");
    put(&store, "telegram.TOKEN", "own");
    assert_eq!(got(&store, "telegram.TOKEN").as_deref(), Some("own"));
    assert!(store.remove(&name("TOKEN")).unwrap());
    assert!(!store.remove(&name("TOKEN")).unwrap());
    assert_eq!(text(home.path()), "# keys\nA='one'\n\nB=\"${A} two\"\ntelegram.TOKEN='own'\n");
    assert_eq!(mode(&home.path().join(".env")), 0o600);
}

#[test]
fn a_value_of_several_lines_goes_as_a_whole() {
    let home = home("PEM='-----BEGIN\nTOKEN=not a line of its own\n-----END'\nTOKEN=a\nTOKEN=b\n");
    let store = EnvironmentStore::new(home.path(), nothing);
    assert_eq!(got(&store, "TOKEN").as_deref(), Some("b"));
    assert!(store.remove(&name("PEM")).unwrap());
    assert_eq!(text(home.path()), "TOKEN=a\nTOKEN=b\n");
    assert!(store.remove(&name("TOKEN")).unwrap());
    assert_eq!(text(home.path()), "");
}

#[test]
fn what_cannot_be_changed_alone_is_not_changed() {
    let before = "A=one\nB=\"${A} two\"\n";
    let home = home(before);
    let store = EnvironmentStore::new(home.path(), nothing);
    let problem = store.set(&name("A"), &secret("new")).unwrap_err();
    assert_eq!(problem.code, Code::SecretReadOnly);
    assert_eq!(text(home.path()), before);
    let problem = store.set(&name("my-ext.KEY"), &secret("new")).unwrap_err();
    assert_eq!(problem.code, Code::SecretReadOnly);
}

#[test]
fn a_file_that_others_can_reach_or_that_is_broken_is_not_used() {
    let home = home("TOKEN=file\n");
    let store = EnvironmentStore::new(home.path(), nothing);
    set_mode(&home.path().join(".env"), 0o644);
    assert_eq!(store.get(&name("TOKEN")).unwrap_err().code, Code::EnvironmentExposed);
    assert_eq!(store.set(&name("TOKEN"), &secret("new")).unwrap_err().code, Code::EnvironmentExposed);
    assert!(matches!(store.describe().state, SecretStoreState::Unavailable(_)));
    set_mode(&home.path().join(".env"), 0o600);
    fs::write(home.path().join(".env"), "TOKEN='the secret\n").unwrap();
    let problem = store.set(&name("OTHER"), &secret("new")).unwrap_err();
    assert!(!problem.to_string().contains("the secret"), "{problem}");
    assert_eq!(text(home.path()), "TOKEN='the secret\n");
}

#[test]
fn a_link_is_read_and_never_written_through() {
    let (home, elsewhere) = (tempfile::tempdir().unwrap(), home("TOKEN=there\n"));
    symlink(elsewhere.path().join(".env"), home.path().join(".env")).unwrap();
    let store = EnvironmentStore::new(home.path(), nothing);
    assert_eq!(got(&store, "TOKEN").as_deref(), Some("there"));
    assert_eq!(store.set(&name("TOKEN"), &secret("new")).unwrap_err().code, Code::SecretsUnreadable);
    assert_eq!(text(elsewhere.path()), "TOKEN=there\n");
}

#[test]
fn the_first_secret_makes_the_file() {
    let home = tempfile::tempdir().unwrap();
    put(&EnvironmentStore::new(home.path(), nothing), "TOKEN", "first");
    assert_eq!(text(home.path()), "TOKEN='first'\n");
    assert_eq!(mode(&home.path().join(".env")), 0o600);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_value_comes_back_as_it_was_or_is_refused(
        value in prop_oneof!["[ -~]{1,30}", "[a'\"\\\\$#\n {}]{1,12}", "\\PC{1,20}"],
        lines in prop::collection::vec("(A|B|TOKEN)=('[a-z\n#$ ]{0,8}'|\"[a-z #]{0,8}\"|[a-z]{0,4})", 0..4),
    ) {
        let before = lines.join("\n");
        let home = home(&before);
        let store = EnvironmentStore::new(home.path(), nothing);
        let others = |store: &EnvironmentStore| (got(store, "A"), got(store, "B"));
        let kept = others(&store);
        match store.set(&name("TOKEN"), &secret(&value)) {
            Ok(()) => prop_assert_eq!(got(&store, "TOKEN"), Some(value)),
            Err(_) => prop_assert_eq!(text(home.path()), before),
        }
        prop_assert_eq!(others(&store), kept);
    }
}
