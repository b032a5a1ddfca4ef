//! Files of the workspace that run programs on the host: writing one is asked about every time.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::shared::{Scene, bodies, bounded, finish};
use serde_json::json;

// Finding M10.
#[test]
fn no_rule_and_no_profile_allows_writing_what_runs_on_the_host() {
    let scene = Scene::new();
    scene.policy(
        "profile: full-auto\nrules:\n  - { name: mine, decision: allow, match: { tools: ['file_*'] } }\n",
    );
    let paths = [
        ".git/config",
        ".git/hooks/post-commit",
        "sub/.git/config",
        ".envrc",
        ".bashrc",
        ".profile",
        "sub/.zshenv",
        ".ssh/config",
        ".gitconfig",
        ".rvmrc",
        ".vscode/tasks.json",
        ".idea/x.xml",
        ".claude/settings.json",
        ".codex/config.toml",
        ".gemini/settings.json",
        ".mise/config.toml",
        ".mise.local.toml",
        ".github/workflows/x.yml",
        ".gitlab-ci.yml",
        ".travis.yml",
        "Jenkinsfile",
        "azure-pipelines.yml",
        ".gitmodules",
        ".pre-commit-config.yaml",
        "lefthook.yml",
        "mine.code-workspace",
        "sub/.nvim.lua",
        ".woodpecker/build.yml",
        ".yarnrc.yml",
        ".cargo/config.toml",
        ".devcontainer.json",
        ".devcontainer/devcontainer.json",
        "mise.toml",
        "mise.local.toml",
        ".direnv/bin/x",
        ".helix/config.toml",
        ".vs/launch.vs.json",
        ".continue/settings.json",
        ".cline/x",
        ".clinerules",
        ".roo/mcp.json",
        ".kiro/settings/mcp.json",
        "lefthook-local.toml",
        ".husky/pre-commit",
        ".circleci/settings.yml",
        ".drone.yml",
        ".buildkite/pipeline.yml",
        "bitbucket-pipelines.yml",
        "azure-pipelines.nightly.yml",
        "AGENTS.md",
        "sub/CLAUDE.md",
        "CLAUDE.local.md",
        "GEMINI.md",
        ".cursorrules",
        ".cursor/rules/x.mdc",
        ".windsurfrules",
        "agents.md",
        "own.git/hooks/post-update",
        "JENKINSFILE",
        "./.git/config",
        ".GIT/config",
        "link/config",
    ];
    fs::create_dir_all(scene.work().join(".git/hooks")).unwrap();
    fs::write(scene.work().join(".git/config"), "[core]\n").unwrap();
    std::os::unix::fs::symlink(".git", scene.work().join("link")).unwrap();
    for (number, path) in paths.iter().enumerate() {
        let call =
            json!({ "tool": "file_write", "arguments": { "path": path, "text": "x", "overwrite": true } });
        let ran = scene.turn(&format!("s{number}"), &json!([{ "calls": [call] }, { "says": "done" }]));
        assert_eq!(
            fs::read_to_string(scene.work().join(".git/config")).unwrap(),
            "[core]\n",
            "{path}: {ran:#?}"
        );
        let target = scene.work().join(path);
        assert!(path.ends_with("config") || !target.exists(), "{path}: {ran:#?}");
    }
    assert!(!scene.work().join("sub/.git/config").exists() && !scene.work().join(".GIT").exists());
    let call = json!({ "tool": "file_write", "arguments": { "path": ".gitignore", "text": "x" } });
    scene.turn("ordinary", &json!([{ "calls": [call] }, { "says": "done" }])).ok();
    assert_eq!(fs::read_to_string(scene.work().join(".gitignore")).unwrap(), "x");
}

// Finding M10: a command can create what it cannot change, and the user is told.
#[cfg(target_os = "linux")]
#[test]
fn the_user_is_told_what_a_command_has_created_that_runs_on_the_host() {
    let scene = Scene::new();
    scene.policy("profile: full-auto\n");
    let call = |command: &str| json!({ "calls": [{ "tool": "shell", "arguments": { "command": command } }] });
    let create = call("mkdir -p sub/.git && echo x > sub/.git/config");
    let model = scene.script("m", &json!([create, call("echo x > fine"), { "says": "done" }]));
    let mut client = scene.rpc(&[]);
    client.ask("session.open", json!({ "session": "s", "create": true, "model": model, "channel": "test" }));
    let sent = client.send("session.send", json!({ "session": "s", "text": "go on" }));
    let told = client.notice("progress");
    assert!(told["extension"] == "shell" && told["text"].as_str().unwrap().contains("sub/.git"), "{told}");
    client.answer(sent);
    client.end();
    let frames = scene.frames("s");
    let warned: Vec<bool> = bodies(&frames, "tool.returned")
        .iter()
        .map(|body| body.to_string().contains("created or replaced"))
        .collect();
    assert_eq!(warned, [true, false], "{frames:#?}");
    scene.verifies();
}

// Finding M10: a command takes its own right to read a folder away, and the next one gives it back and writes.
#[cfg(target_os = "linux")]
#[test]
fn a_closed_folder_hides_nothing_from_the_protection() {
    let scene = Scene::new();
    scene.policy("profile: full-auto\n");
    for mode in ["000", "100", "400", "200"] {
        let config = scene.work().join(format!("sub{mode}/deep/.git/config"));
        fs::create_dir_all(config.parent().unwrap()).unwrap();
        fs::write(&config, "[core]\n").unwrap();
        for command in [
            format!("chmod {mode} sub{mode}; echo on"),
            format!("chmod 700 sub{mode}; echo fsmonitor >> sub{mode}/deep/.git/config; echo on"),
        ] {
            let arguments = json!({ "command": command }).to_string();
            let ran = finish(bounded(&scene.command(&["call", "shell", &arguments])).spawn().unwrap());
            assert!(ran.out.contains("on"), "{mode}: {ran:#?}");
        }
        fs::set_permissions(scene.work().join(format!("sub{mode}")), fs::Permissions::from_mode(0o700))
            .unwrap();
        assert_eq!(fs::read_to_string(&config).unwrap(), "[core]\n", "{mode}");
    }
}

// Finding M9: what an extension does in its own folder does not keep commands from running.
#[cfg(target_os = "linux")]
#[test]
fn a_closed_folder_of_an_extension_does_not_stop_the_shell() {
    let scene = Scene::new();
    scene.run(&["init"]).ok();
    scene.policy("profile: full-auto\n");
    let closed = scene.home().join("data/x/closed");
    fs::create_dir_all(closed.join("inner")).unwrap();
    fs::write(scene.home().join("data/x/one"), "").unwrap();
    // Both names are in the home.
    fs::hard_link(scene.home().join("data/x/one"), scene.home().join("data/x/two")).unwrap();
    for mode in [0o000, 0o400] {
        fs::set_permissions(&closed, fs::Permissions::from_mode(mode)).unwrap();
        let call = ["call", "shell", r#"{ "command": "echo on" }"#];
        let ran = finish(bounded(&scene.command(&call)).spawn().unwrap());
        assert!(ran.code == Some(0) && ran.out.contains("on"), "{ran:#?}");
    }
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
    // One in the workspace is another matter.
    fs::hard_link(scene.home().join("data/x/one"), scene.work().join("three")).unwrap();
    let ran = scene.run(&["call", "shell", r#"{ "command": "echo on" }"#]);
    assert!(ran.code != Some(0) && ran.err.contains("HF-3109"), "{ran:#?}");
}
