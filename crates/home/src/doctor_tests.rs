//! What `doctor` is told about a home.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::testing::{at, empty, scene, set_mode, write};
use crate::{Home, InitOptions};

/// The names of the checks that are not fine, but for those that depend on the machine.
fn bad(home: &Home) -> Vec<&'static str> {
    let machine = ["space"];
    let checks = home.examine();
    for check in &checks {
        assert_eq!(check.ok, check.help.is_none(), "{check:?}");
    }
    checks
        .iter()
        .filter(|check| !check.ok && !machine.contains(&check.name))
        .map(|check| check.name)
        .collect()
}

#[test]
fn a_new_home_is_fine() {
    let scene = empty();
    assert_eq!(bad(&scene.home), ["home"]);
    scene.home.init(&InitOptions::default()).unwrap();
    assert_eq!(bad(&scene.home), [""; 0]);
    assert_eq!(scene.home.examine().len(), 11);
    let before: Vec<_> = fs::read_dir(scene.home.root()).unwrap().collect();
    scene.home.examine();
    assert_eq!(fs::read_dir(scene.home.root()).unwrap().count(), before.len());
}

#[test]
fn each_thing_that_is_wrong_is_found() {
    type Spoil = fn(&Home);
    let cases: [(&str, Spoil); 7] = [
        ("folder", |home| set_mode(home.root(), 0o755)),
        ("secrets", |home| set_mode(&home.env_file(), 0o644)),
        ("settings", |home| write(home.settings_file(), "modles: {}\n")),
        ("settings", |home| write(home.settings_file(), "log: {}\nlog: {}\n")),
        ("policy", |home| write(home.policy_file(), "profile: lax\n")),
        ("prompts", |home| write(home.prompts().join("main.jinja2"), "{{")),
        ("workspace", |home| {
            write(home.settings_file(), format!("workspace: {}\n", home.prompts().display()));
        }),
    ];
    for (name, spoil) in cases {
        let scene = empty();
        scene.home.init(&InitOptions::default()).unwrap();
        spoil(&scene.home);
        assert_eq!(bad(&scene.home), [name]);
    }
}

#[test]
fn a_linked_home_and_a_deep_one_are_named() {
    let scene = scene();
    let link = scene.folder.path().join("link");
    symlink(scene.home.root(), &link).unwrap();
    let detail =
        |home: &Home, name: &str| home.examine().into_iter().find(|check| check.name == name).unwrap();
    let found = detail(&at(&link), "link");
    assert!(found.ok && found.detail.starts_with("the home is a link to "), "{found:?}");
    let deep = at(&scene.folder.path().join("d".repeat(120)));
    deep.ensure().unwrap();
    let found = detail(&deep, "socket");
    assert!(found.ok && found.detail.contains("so the control socket is /tmp/holdfast-"), "{found:?}");
    assert_eq!(bad(&at(Path::new("/dev/null"))), ["home"]);
}
