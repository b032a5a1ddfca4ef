//! The system's keyring: what we do with one, on a stand-in; with a real one where the build has the feature and the machine the programs for it; on a
//! machine without; and in a build without.

use std::path::Path;

use holdfast_contract::problem::Code;
use keyring_core::mock;

#[cfg(feature = "keyring")]
use crate::testing::{given_by_parent, rerun};
use crate::testing::{got, name, put, secret};
use crate::{Keyring, SecretStore, SecretStoreState, StoreKind};

/// What holds for every keyring.
fn keeps_secrets(home: &Path, other: &Keyring, open: impl Fn() -> Keyring) {
    let store = open();
    assert_eq!((store.kind(), got(&store, "TOKEN")), (StoreKind::Keyring, None));
    put(&store, "TOKEN", "one");
    put(&store, "telegram.TOKEN", "two \"quoted\"\nline");
    put(&store, "TOKEN", "three");
    let store = open();
    assert_eq!(got(&store, "TOKEN").as_deref(), Some("three"));
    assert_eq!(got(&store, "telegram.TOKEN").as_deref(), Some("two \"quoted\"\nline"));
    assert_eq!(store.names().unwrap(), [name("TOKEN"), name("telegram.TOKEN")]);
    assert_eq!(store.describe().state, SecretStoreState::Ready { secrets: 2 });
    assert!(store.describe().place.contains(&home.display().to_string()));
    assert_eq!(other.names().unwrap(), [], "another home's are its own");
    assert_eq!(got(other, "TOKEN"), None);
    assert!(store.remove(&name("TOKEN")).unwrap() && !store.remove(&name("TOKEN")).unwrap());
    assert_eq!(got(&open(), "TOKEN"), None);
    assert!(store.remove(&name("telegram.TOKEN")).unwrap());
}

#[test]
fn a_keyring_keeps_secrets_of_each_home_apart() {
    let store = mock::Store::new().unwrap();
    let open = |home: &str| Keyring::over(Path::new(home), store.clone());
    keeps_secrets(Path::new("/home/one"), &open("/home/one/inner"), || open("/home/one"));
}

#[test]
#[cfg(all(target_os = "linux", not(feature = "keyring")))]
fn a_build_without_keyring_support_says_so_and_what_to_do() {
    let home = tempfile::tempdir().unwrap();
    let store = Keyring::new(home.path());
    let problem = store.get(&name("TOKEN")).unwrap_err();
    assert_eq!(problem.code, Code::KeyringUnavailable);
    let shown = problem.to_string();
    for part in ["HF-1608", "this build has no keyring support", "`--features keyring`", "`secrets.age`"] {
        assert!(shown.contains(part), "{part} is not in {shown}");
    }
    let problems = [
        store.set(&name("TOKEN"), &secret("the value")).unwrap_err(),
        store.remove(&name("TOKEN")).unwrap_err(),
        store.names().unwrap_err(),
    ];
    assert!(problems.iter().all(|other| *other == problem), "{problems:?}");
    assert_eq!(store.describe().state, SecretStoreState::Unavailable(problem));
}

#[test]
#[cfg(feature = "keyring")]
fn a_machine_without_a_keyring_says_so() {
    const TEST: &str = "keyring_tests::a_machine_without_a_keyring_says_so";
    let folder = tempfile::tempdir().unwrap();
    let Some((home, _)) = given_by_parent() else {
        let nowhere = format!("unix:path={}/no-bus", folder.path().display());
        let variables = [("DBUS_SESSION_BUS_ADDRESS", nowhere.as_str())];
        assert!(rerun(TEST, folder.path(), "child", &variables).wait().unwrap().success());
        return;
    };
    let store = Keyring::new(&home);
    let problem = store.get(&name("TOKEN")).unwrap_err();
    assert_eq!(problem.code, Code::KeyringUnavailable);
    assert!(problem.to_string().contains("keep secrets in `secrets.age` instead"), "{problem}");
    assert_eq!(store.set(&name("TOKEN"), &secret("the value")).unwrap_err().code, Code::KeyringUnavailable);
    assert_eq!(store.describe().state, SecretStoreState::Unavailable(store.names().unwrap_err()));
}

/// Runs with a bus and a keyring of its own, if the machine has the programs.
#[test]
#[cfg(all(target_os = "linux", feature = "keyring"))]
fn the_secret_service_keeps_secrets() {
    const TEST: &str = "keyring_tests::the_secret_service_keeps_secrets";
    if let Some((home, _)) = given_by_parent() {
        let open = |home: &Path| Keyring::new(home);
        keeps_secrets(&home, &open(&home.join("other")), || open(&home));
        assert_eq!(open(&home).names().unwrap(), []);
        return;
    }
    use std::process::Command;
    let is_there = |program: &str| Command::new(program).arg("--version").output().is_ok();
    if !is_there("dbus-run-session") || !is_there("gnome-keyring-daemon") {
        eprintln!("not run: there is no Secret Service to start");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let script = "printf password | gnome-keyring-daemon --unlock --components=secrets >/dev/null && exec \"$0\" --exact \"$1\"";
    let output = Command::new("dbus-run-session")
        .args(["--", "sh", "-c", script])
        .arg(std::env::current_exe().unwrap())
        .arg(TEST)
        .env("HOLDFAST_TEST_CHILD", format!("child={}", folder.path().display()))
        .env("XDG_DATA_HOME", folder.path().join("data"))
        .env("XDG_RUNTIME_DIR", folder.path())
        .env("HOME", folder.path())
        .output()
        .unwrap();
    let shown =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && shown.contains("1 passed"), "{shown}");
    assert!(folder.path().join("data/keyrings").exists(), "it was another keyring");
}
