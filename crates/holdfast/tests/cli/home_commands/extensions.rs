//! `ext enable`, `ext disable`, `ext reload` and `ext remove`.

use std::fs;

use holdfast_testkit::terminal::TestTerminal;

use super::down_and_up;
use crate::shared::{Owner, Scene};

const MANIFEST: &str = "id: scout\nname: Scout\ndescription: Looks around.\nagent: { instructions: Help. }\n";

/// A tool in one file.
const SHOUT: &str = "def run(text: str) -> str:\n    \"\"\"Shouts.\"\"\"\n    return text.upper()\n";

/// A home with an extension that is only a manifest, and settings with comments.
fn scene() -> Scene {
    let scene = Scene::new();
    scene.settings("# Mine.\nmodels: { default: offline } # no network\n");
    install(&scene, MANIFEST);
    scene
}

fn install(scene: &Scene, manifest: &str) {
    let folder = scene.home().join("extensions/scout");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("manifest.yaml"), manifest).unwrap();
}

fn settings(scene: &Scene) -> String {
    fs::read_to_string(scene.home().join("config/settings.yaml")).unwrap()
}

/// The state of an extension, as it is listed.
fn state(scene: &Scene, id: &str) -> String {
    let listed = scene.run(&["ext", "list", "--json"]).ok().lines();
    let found = listed.iter().find(|line| line["id"] == id);
    found.map(|line| line["state"].as_str().unwrap().to_owned()).unwrap_or_default()
}

fn has_agent(scene: &Scene) -> bool {
    scene.run(&["agents", "--json"]).ok().lines().iter().any(|agent| agent["id"] == "scout")
}

#[test]
fn a_disabled_extension_is_listed_and_stays_disabled_until_it_is_enabled() {
    let scene = scene();
    down_and_up(&scene, |scene| {
        assert_eq!((state(scene, "scout").as_str(), has_agent(scene)), ("ACTIVE", true));
        let disabled = scene.run(&["ext", "disable", "scout"]).ok();
        assert_eq!(disabled.out, "scout is DISABLED\n");
        assert_eq!((state(scene, "scout").as_str(), has_agent(scene)), ("DISABLED", false));
        let text = settings(scene);
        assert!(text.starts_with("# Mine.\nmodels: { default: offline } # no network\n"), "{text}");
        assert!(text.contains("  scout:\n    enabled: false\n"), "{text}");
        let again = scene.run(&["ext", "disable", "scout", "--json"]).ok().json();
        assert_eq!(again["state"], "DISABLED");
        let restart = scene.run(&["ext", "restart", "scout"]).fails(2, "HF-9001");
        assert!(restart.err.contains("`holdfast ext enable scout`"), "{restart:#?}");
        scene.run(&["ext", "reload", "scout"]).fails(2, "HF-9001");

        let enabled = scene.run(&["ext", "enable", "scout", "--json"]).ok().json();
        assert_eq!(enabled["state"], "ACTIVE");
        assert!(has_agent(scene) && settings(scene).contains("    enabled: true\n"));
        let unknown = scene.run(&["ext", "disable", "scuot"]).fails(1, "HF-4005");
        assert!(unknown.err.contains("Did you mean `scout`?"), "{unknown:#?}");
    });
}

#[test]
fn built_in_extensions_are_disabled_and_enabled_as_others_are() {
    let scene = Scene::new();
    down_and_up(&scene, |scene| {
        let has_tool =
            || scene.run(&["tools", "--json"]).ok().lines().iter().any(|tool| tool["extension"] == "kv");
        assert!(has_tool());
        for id in ["kv", "length-guard", "shell"] {
            assert_eq!(scene.run(&["ext", "disable", id]).ok().out, format!("{id} is DISABLED\n"));
            assert_eq!(state(scene, id), "DISABLED");
        }
        assert!(!has_tool());
        let refused = scene.run(&["ext", "remove", "kv", "--yes"]).fails(2, "HF-9001");
        assert!(refused.err.contains("`holdfast ext disable kv`"), "{refused:#?}");
        for id in ["kv", "length-guard", "shell"] {
            scene.run(&["ext", "enable", id]).ok();
            assert_eq!(state(scene, id), "ACTIVE", "{id}");
        }
        assert!(has_tool());
        scene.run(&["ext", "reload", "kv"]).fails(2, "HF-9001");
    });
}

#[test]
fn a_user_decides_over_the_manifest() {
    let scene = Scene::new();
    install(&scene, &format!("{MANIFEST}enabled: false\n"));
    assert_eq!(state(&scene, "scout"), "DISABLED");
    scene.run(&["ext", "enable", "scout"]).ok();
    assert_eq!(state(&scene, "scout"), "ACTIVE");
    // One that cannot be read can be disabled all the same.
    install(&scene, "id: scout\nname: [\n");
    assert_eq!(state(&scene, "scout"), "ERROR");
    assert_eq!(scene.run(&["ext", "disable", "scout"]).ok().out, "scout is DISABLED\n");
    let enabled = scene.run(&["ext", "enable", "scout"]);
    assert_eq!(enabled.code, Some(1), "{enabled:#?}");
    assert!(enabled.out.starts_with("scout is ERROR"), "{enabled:#?}");
}

#[test]
fn an_edit_of_the_settings_disables_an_extension_of_a_running_home() {
    let scene = scene();
    let _owner = Owner::begin(&scene);
    let text = settings(&scene);
    scene.settings(&format!("{text}extensions: {{ scout: {{ enabled: false }} }} # not now\n"));
    crate::shared::until("it is disabled", || state(&scene, "scout") == "DISABLED");
    scene.run(&["ext", "enable", "scout"]).ok();
    let text = settings(&scene);
    assert!(text.contains("extensions: { scout: { enabled: true } } # not now\n"), "{text}");
}

#[test]
fn what_is_neither_enabled_nor_disabled_is_refused() {
    let scene = scene();
    scene.settings("extensions: { scout: { enabled: maybe } }\n");
    let refused = scene.run(&["ext", "list"]).fails(2, "HF-1101");
    assert!(refused.err.contains("`enabled: true` or `enabled: false`"), "{refused:#?}");
}

#[test]
fn an_unchanged_extension_is_reloaded() {
    let scene = scene();
    let _owner = Owner::begin(&scene);
    let generation = || {
        let shown = scene.run(&["ext", "show", "scout", "--json"]).ok().json();
        shown["generation"].as_u64().unwrap()
    };
    let before = generation();
    let reloaded = scene.run(&["ext", "reload", "scout"]).ok();
    assert_eq!(reloaded.out, format!("scout is ACTIVE, generation {}\n", before + 1));
    assert_eq!(scene.run(&["ext", "reload", "scout", "--json"]).ok().json()["generation"], before + 2);
    assert!(generation() == before + 2 && has_agent(&scene));
    scene.run(&["ext", "reload", "scuot"]).fails(1, "HF-4005");
    scene.verifies();
}

#[test]
#[cfg(target_os = "linux")]
fn a_program_is_reloaded_and_serves_calls() {
    let scene = Scene::new();
    scene.policy("profile: full-auto\n");
    let file = scene.home().join("extensions/tools/shout.py");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, SHOUT).unwrap();
    let _owner = Owner::begin(&scene);
    let called =
        || scene.run(&["call", "shout", r#"{"text": "hello"}"#, "--json"]).ok().json()["result"].clone();
    assert_eq!(called(), "HELLO");
    scene.run(&["ext", "reload", "shout"]).ok();
    assert_eq!(called(), "HELLO");
    scene.run(&["ext", "disable", "shout"]).ok();
    scene.run(&["call", "shout", "{}"]).fails(1, "HF-3101");
    scene.run(&["ext", "enable", "shout"]).ok();
    assert_eq!(called(), "HELLO");
    scene.verifies();
}

#[test]
fn a_broken_extension_is_not_reloaded() {
    let scene = scene();
    let _owner = Owner::begin(&scene);
    install(&scene, "id: scout\nname: [\n");
    let reloaded = scene.run(&["ext", "reload", "scout"]);
    assert_eq!(reloaded.code, Some(1), "{reloaded:#?}");
    assert!(reloaded.out.contains("manifest.yaml"), "the fault says where: {reloaded:#?}");
    install(&scene, MANIFEST);
    scene.run(&["ext", "reload", "scout"]).ok();
}

#[test]
fn a_removed_extension_keeps_its_data_unless_that_is_removed_too() {
    down_and_up(&Scene::new(), |scene| {
        let (folder, data) = (scene.home().join("extensions/scout"), scene.home().join("data/scout"));
        for flag in [None, Some("--data")] {
            install(scene, MANIFEST);
            crate::shared::until("it is there", || state(scene, "scout") == "ACTIVE");
            fs::create_dir_all(&data).unwrap();
            fs::write(data.join("notes"), "mine").unwrap();
            let asked = scene.run(&["ext", "remove", "scout"]).fails(2, "HF-9001");
            assert!(asked.err.contains("`--yes`") && folder.exists(), "{asked:#?}");
            let command: Vec<&str> = ["ext", "remove", "scout", "--yes"].into_iter().chain(flag).collect();
            let removed = scene.run(&command).ok();
            assert!(removed.out.contains("extensions/scout"), "{removed:#?}");
            assert!(!folder.exists() && state(scene, "scout").is_empty());
            assert_eq!(data.exists(), flag.is_none(), "{removed:#?}");
            let said = if flag.is_none() { "kept its data" } else { "removed its data" };
            assert!(removed.out.contains(said), "{removed:#?}");
        }
        let unknown = scene.run(&["ext", "remove", "scout", "--yes"]).fails(1, "HF-4005");
        assert!(unknown.err.contains("There are: "), "{unknown:#?}");
    });
}

#[test]
fn a_link_to_an_extension_is_removed_and_what_it_points_to_stays() {
    let scene = scene();
    let (installed, elsewhere) = (scene.home().join("extensions/scout"), scene.outside().join("scout"));
    fs::rename(&installed, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &installed).unwrap();
    let removed = scene.run(&["ext", "remove", "scout", "--yes", "--json"]).ok().json();
    assert_eq!((&removed["data_removed"], &removed["grants_revoked"]), (&false.into(), &false.into()));
    assert!(fs::symlink_metadata(&installed).is_err() && elsewhere.join("manifest.yaml").is_file());
}

#[test]
fn a_single_file_is_removed_with_its_grants() {
    let scene = Scene::new();
    let file = scene.home().join("extensions/tools/shout.py");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, SHOUT).unwrap();
    scene.run(&["ext", "grant", "shout", "--interface", "ui"]).ok();
    let removed = scene.run(&["ext", "remove", "shout", "--yes"]).ok();
    assert!(removed.out.contains("revoked its grants") && !file.exists(), "{removed:#?}");
    assert!(!scene.policy_text().contains("shout"), "{}", scene.policy_text());
}

#[test]
fn removing_is_asked_about_on_a_terminal() {
    let scene = scene();
    // What was typed before the question does not answer it.
    for (early, answer, code) in [("y\n", "n\r", 1), ("y\ny\ny\n", "\r", 1), ("n\n", "y\r", 0)] {
        let mut command = scene.command(&["ext", "remove", "scout"]);
        command.env("TERM", "xterm-256color").env("NO_COLOR", "1");
        let mut terminal = TestTerminal::start_cleared(command, 80);
        terminal.types(early);
        terminal.until("Remove `scout`? [y/N] ");
        terminal.types(answer);
        terminal.ends_with(code);
        assert_eq!(scene.home().join("extensions/scout").exists(), code == 1);
    }
}
