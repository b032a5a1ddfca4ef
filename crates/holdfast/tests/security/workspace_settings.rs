//! Files of the workspace that run programs on the host: writing one is asked about every time.

use std::fs;

use crate::shared::{Scene, bodies};
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
        ".vscode/tasks.json",
        ".idea/x.xml",
        ".github/workflows/x.yml",
        ".gitlab-ci.yml",
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
