//! Which folder is the home, where its socket is, and which workspace goes with it.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use holdfast_contract::problem::{Code, Severity};

use crate::testing::{at, mode, nothing, scene, set_mode, write};
use crate::{Home, Settings};

fn environment(pairs: &'static [(&str, &str)]) -> impl Fn(&str) -> Option<OsString> {
    move |name| pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value))
}

#[test]
fn the_home_is_found_in_order_and_never_in_the_current_folder() {
    let folder = tempfile::tempdir().unwrap();
    let current = folder.path();
    for planted in ["sandbox", "holdfast", ".local/share/holdfast", "relative/holdfast"] {
        fs::create_dir_all(current.join(planted).join("config")).unwrap();
        write(current.join(planted).join("config/policy.yaml"), "profile: full-auto\n");
    }
    type Case = (Option<&'static str>, &'static [(&'static str, &'static str)], Option<&'static str>);
    let cases: &[Case] = &[
        (Some("/asked"), &[("HOLDFAST_HOME", "/variable"), ("HOME", "/me")], Some("/asked")),
        (Some("./sandbox"), &[("HOME", "/me")], Some("./sandbox")),
        (Some(""), &[("HOME", "/me")], Some("/me/.local/share/holdfast")),
        (None, &[("HOLDFAST_HOME", "/variable"), ("HOME", "/me")], Some("/variable")),
        (None, &[("HOLDFAST_HOME", "./sandbox"), ("HOME", "/me")], Some("./sandbox")),
        (None, &[("HOLDFAST_HOME", ""), ("HOME", "/me")], Some("/me/.local/share/holdfast")),
        (None, &[("XDG_DATA_HOME", "/data"), ("HOME", "/me")], Some("/data/holdfast")),
        (None, &[("XDG_DATA_HOME", "relative"), ("HOME", "/me")], Some("/me/.local/share/holdfast")),
        (None, &[("HOME", "/me")], Some("/me/.local/share/holdfast")),
        (None, &[("XDG_DATA_HOME", "relative"), ("HOME", ".")], None),
        (None, &[("HOME", "")], None),
        (None, &[], None),
    ];
    for (asked, pairs, expected) in cases {
        let home = Home::locate_from(current, asked.map(PathBuf::from), &environment(pairs));
        let Some(expected) = expected else {
            let problem = home.unwrap_err();
            assert_eq!(problem.code, Code::HomeUnavailable, "{asked:?} {pairs:?}");
            assert!(problem.help.contains("--home"), "{problem}");
            continue;
        };
        let expected = expected.strip_prefix("./").map_or(PathBuf::from(expected), |rest| current.join(rest));
        assert_eq!(home.unwrap().root(), expected, "{asked:?} {pairs:?}");
    }
}

#[test]
fn everything_has_its_place() {
    let home = at(Path::new("/h"));
    let places = [
        home.database(),
        home.control_socket(),
        home.settings_file(),
        home.policy_file(),
        home.env_file(),
        home.prompts(),
        home.extensions(),
        home.data(&"kv".into()),
        home.generations(),
        home.environments(),
    ];
    let expected = [
        "/h/holdfast.db",
        "/h/control.sock",
        "/h/config/settings.yaml",
        "/h/config/policy.yaml",
        "/h/.env",
        "/h/prompts",
        "/h/extensions",
        "/h/data/kv",
        "/h/generations",
        "/h/environments",
    ];
    assert_eq!(places.map(|place| place.display().to_string()), expected);
}

#[test]
fn a_deep_home_has_a_short_socket_that_others_find() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = folder.path().join("run");
    fs::create_dir(&runtime).unwrap();
    let deep = folder.path().join("d".repeat(60)).join("e".repeat(60));
    let with_runtime = |name: &str| (name == "XDG_RUNTIME_DIR").then(|| runtime.clone().into_os_string());
    let home = Home::locate(Some(deep.clone()), &with_runtime).unwrap();
    home.ensure().unwrap();
    let owner = home.own().unwrap();
    let socket = home.control_socket();
    assert!(socket.starts_with(&runtime) && socket.as_os_str().len() <= 103, "{}", socket.display());
    assert_eq!(mode(socket.parent().unwrap()), 0o700);
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    // Another process, without that variable, reads where it is.
    assert_eq!(at(&deep).control_socket(), socket);
    drop(owner);
    assert!(!socket.exists());

    set_mode(socket.parent().unwrap(), 0o755);
    let problem = home.own().unwrap_err().to_string();
    assert!(problem.contains("is not a folder of yours alone"), "{problem}");
    assert_eq!(home.owner(), None);
}

#[test]
fn the_workspace_is_beside_the_home() {
    let scene = scene();
    let (folder, home) = (scene.folder.path().canonicalize().unwrap(), &scene.home);
    for name in ["work", "home-work"] {
        fs::create_dir(folder.join(name)).unwrap();
    }
    symlink(&folder, folder.join("work/up")).unwrap();
    let named = |text: &str| Settings { workspace: Some(text.to_owned()), ..Settings::default() };
    let inside = home.root().join("data").display().to_string();
    let cases = [
        (Settings::default(), "work", Ok("work")),
        (Settings::default(), "home-work", Ok("home-work")),
        (named("work"), ".", Ok("work")),
        (named("../home-work"), "work", Ok("home-work")),
        (Settings::default(), ".", Err(Severity::Warning)),
        (Settings::default(), "home/data", Err(Severity::Warning)),
        (named("."), ".", Err(Severity::Error)),
        (named(&inside), "work", Err(Severity::Error)),
        (named("work/up"), ".", Err(Severity::Error)),
        (named("work/up/home"), ".", Err(Severity::Error)),
    ];
    for (settings, current, expected) in cases {
        let found = settings.workspace(home, &folder.join(current));
        match expected {
            Ok(name) => assert_eq!(found, Ok(folder.join(name))),
            Err(severity) => {
                let problem = found.unwrap_err();
                assert_eq!((problem.code, problem.severity), (Code::WorkspaceOverlap, severity), "{problem}");
            }
        }
    }
    let problem = named("nowhere").workspace(home, &folder).unwrap_err();
    assert!(problem.what.ends_with("nowhere is not a folder"), "{problem}");
}

#[test]
fn a_tilde_is_the_users_folder_and_the_problem_names_the_line() {
    let folder = tempfile::tempdir().unwrap();
    let user = folder.path().canonicalize().unwrap();
    let variables = |name: &str| (name == "HOME").then(|| user.clone().into_os_string());
    let home = Home::locate_from(Path::new("/"), None, &variables).unwrap();
    home.ensure().unwrap();
    fs::create_dir(user.join("work")).unwrap();
    for (text, expected) in [("~/work", Some("work")), ("\"~\"", None)] {
        write(home.settings_file(), format!("# mine\nworkspace: {text}\n"));
        let found = Settings::load(&home).unwrap().workspace(&home, Path::new("/"));
        match expected {
            Some(name) => assert_eq!(found.unwrap(), user.join(name)),
            None => assert!(found.unwrap_err().to_string().contains("settings.yaml:2:12 (workspace)")),
        }
    }
    assert!(nothing("HOME").is_none());
}
