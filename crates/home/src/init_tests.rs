//! Creating a home: what is created, what is kept, and what prevents it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use holdfast_contract::problem::Code;
use rustix::process::geteuid;

use crate::testing::{at, empty, given_by_parent, mode, nothing, rerun, scene, set_mode, write};
use crate::{DetectedModel, HomeEnvironment, InitOptions, OFFLINE, PromptContext, Prompts, Settings};

fn detected() -> InitOptions {
    InitOptions {
        model: Some(DetectedModel {
            name: "local".into(),
            provider: "llama".into(),
            model: "qwen3:8b".into(),
            api_key_env: Some("LOCAL_KEY".into()),
            base_url: Some("http://localhost:11434/".into()),
        }),
    }
}

#[test]
fn a_home_is_made_once_and_never_touched_again() {
    let scene = empty();
    let made = scene.home.init(&detected()).unwrap();
    assert!(made.iter().all(|made| made.new), "{made:?}");
    assert_eq!(made.len(), 8 + 4);
    for made in &made {
        assert_eq!(
            mode(&made.path),
            if made.path.is_dir() { 0o700 } else { 0o600 },
            "{}",
            made.path.display()
        );
    }
    write(scene.home.policy_file(), "profile: safe\n");
    fs::remove_file(scene.home.env_file()).unwrap();
    let again = scene.home.init(&InitOptions::default()).unwrap();
    let new: Vec<_> = again.iter().filter(|made| made.new).map(|made| made.path.clone()).collect();
    assert_eq!(new, [scene.home.env_file()]);
    assert_eq!(fs::read_to_string(scene.home.policy_file()).unwrap(), "profile: safe\n");
    assert!(!scene.home.ensure().unwrap());
}

#[test]
fn what_is_made_can_be_used() {
    for options in [InitOptions::default(), detected()] {
        let scene = empty();
        scene.home.init(&options).unwrap();
        let loaded = Settings::load(&scene.home).unwrap();
        assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
        match options.model {
            None => assert_eq!(loaded.settings.default_model().as_str(), OFFLINE),
            Some(_) => {
                let model = &loaded.settings.models.named[&loaded.settings.default_model()];
                assert_eq!(
                    (model.model.as_deref(), model.api_key_env.as_deref()),
                    (Some("qwen3:8b"), Some("LOCAL_KEY"))
                );
            }
        }
        scene.home.policy(None).unwrap();
        assert_eq!(HomeEnvironment::load(&scene.home, nothing).unwrap().names().count(), 0);
        Prompts::load(&scene.home).unwrap().render("orchestrator", &PromptContext::default()).unwrap();
    }
}

/// Every comment in the made settings that looks like a setting is one.
#[test]
fn the_comments_in_the_settings_are_settings() {
    let scene = empty();
    scene.home.init(&InitOptions::default()).unwrap();
    let text = fs::read_to_string(scene.home.settings_file()).unwrap();
    let keys = ["models", "workspace", "limits", "agents", "extensions", " "];
    let setting = |line: &str| keys.iter().any(|key| line.starts_with(&format!("# {key}")));
    let lines = text.lines().filter(|line| !line.starts_with("# ") || setting(line));
    let plain: Vec<_> = lines.map(|line| line.strip_prefix("# ").unwrap_or(line)).collect();
    write(
        scene.home.settings_file(),
        plain.join("\n").replace("api_key_env: LOCAL_API_KEY ", "api_key_env: KEY "),
    );
    let settings = Settings::load(&scene.home).unwrap().settings;
    assert_eq!(settings.limits.max_tokens, Some(50_000));
    assert_eq!(settings.models.named.len(), 1);
    assert_eq!((settings.agents.len(), settings.extensions.len()), (1, 1));
    assert!(settings.workspace.is_some());
}

#[test]
fn odd_names_of_models_are_quoted() {
    for (name, model) in [("yes", "1"), ("my model", "a: b # c"), ("a:", "\"quoted\"\n"), ("-", "*x")] {
        let scene = empty();
        let mut options = detected();
        if let Some(detected) = &mut options.model {
            (detected.name, detected.model) = (name.to_owned(), "m".to_owned());
            detected.provider = model.to_owned();
        }
        scene.home.init(&options).unwrap();
        let text = fs::read(scene.home.settings_file()).unwrap();
        // Whether they can be names is for the reader to say; here they must only stay what they are.
        let read = Settings::parse(Path::new("s.yaml"), &text);
        let problems = read.map_or_else(|rejected| rejected.to_string(), |_| String::new());
        assert!(!problems.contains("not valid YAML"), "{problems}");
    }
}

#[test]
fn a_file_where_a_folder_should_be() {
    let scene = empty();
    write(scene.home.root().to_owned(), "");
    let problem = scene.home.init(&detected()).unwrap_err();
    assert_eq!(problem.code, Code::HomeUnavailable);
    assert!(problem.what.ends_with("home is not a folder, and must be one"), "{problem}");
    let below = at(&scene.home.root().join("deeper"));
    assert!(below.ensure().unwrap_err().what.contains("cannot be made: not a directory"));
    assert!(below.own().unwrap_err().what.contains("cannot be made: not a directory"));
}

#[test]
fn a_file_in_the_place_of_config_is_a_problem_and_no_default() {
    let scene = empty();
    fs::create_dir(scene.home.root()).unwrap();
    write(scene.home.root().join("config"), "");
    assert!(scene.home.ensure().unwrap_err().what.contains("config is not a folder"));
    let problem = Settings::load(&scene.home).unwrap_err();
    assert!(problem.to_string().contains("must be a folder; move it away"), "{problem}");
}

#[test]
fn a_link_to_nothing_is_not_written_through() {
    let scene = scene();
    let elsewhere = scene.folder.path().join("elsewhere");
    symlink(&elsewhere, scene.home.env_file()).unwrap();
    scene.home.init(&detected()).unwrap();
    assert!(!elsewhere.exists());
}

#[test]
fn a_home_that_may_not_be_written_or_read() {
    let Some(place) = given_by_parent() else {
        let become_nobody = if geteuid().is_root() {
            "exec setpriv --reuid 65534 --regid 65534 --clear-groups \"$0\" --exact \"$1\""
        } else {
            "exec \"$0\" --exact \"$1\""
        };
        return rerun("init_tests::a_home_that_may_not_be_written_or_read", become_nobody);
    };
    let home = at(&place.join("closed/home"));
    fs::create_dir(place.join("closed")).unwrap();
    set_mode(&place.join("closed"), 0o500);
    let problem = home.ensure().unwrap_err().to_string();
    assert!(
        problem.starts_with("error[HF-1501]") && problem.contains("cannot be made: permission denied"),
        "{problem}"
    );
    set_mode(&place.join("closed"), 0o700);
    home.init(&InitOptions::default()).unwrap();
    set_mode(home.root(), 0o500);
    let problem = home.own().unwrap_err().to_string();
    assert!(problem.contains("lock cannot be locked: permission denied"), "{problem}");
    let bad: Vec<_> = home.examine().into_iter().filter(|check| !check.ok).map(|check| check.name).collect();
    assert_eq!(bad, ["writing"]);
    set_mode(home.root(), 0o700);
    set_mode(&home.settings_file(), 0o000);
    let problem = Settings::load(&home).unwrap_err().to_string();
    assert!(
        problem.starts_with("error[HF-1102]") && problem.contains("cannot be read: permission denied"),
        "{problem}"
    );
}

#[test]
fn a_home_on_a_read_only_mount() {
    let Some(place) = given_by_parent() else {
        let may_mount = std::process::Command::new("unshare").args(["-m", "true"]).status();
        if may_mount.is_ok_and(|status| status.success()) {
            let mount = "unshare -m sh -c 'mount -t tmpfs -o ro none \"$2\" && exec \"$0\" --exact \"$1\"' \"$0\" \"$1\" \"$2\"";
            rerun("init_tests::a_home_on_a_read_only_mount", mount);
        }
        return;
    };
    for problem in [at(&place.join("home")).init(&detected()).unwrap_err(), at(&place).own().unwrap_err()] {
        assert_eq!(problem.code, Code::HomeUnavailable);
        assert!(problem.to_string().contains("help: It is on a read-only mount"), "{problem}");
    }
}
