//! What the real process does about pictures of its memory, and where a secret is not.

use std::fs;
use std::process::Command;

use crate::shared::{Scene, contains, tree};
use holdfast_testkit::wasm::talker;
use serde_json::{Value, json};

#[cfg(target_os = "linux")]
#[test]
fn the_process_leaves_no_core_file() {
    use std::os::unix::process::ExitStatusExt;

    let scene = Scene::new();
    // Even where the user's limit allows any.
    let rpc = scene.command(&["rpc"]);
    let mut unlimited = Command::new("sh");
    let program = env!("CARGO_BIN_EXE_holdfast");
    let begin = format!("ulimit -c unlimited; exec {program} --home '{}' rpc", scene.home().display());
    unlimited
        .args(["-c", &begin])
        .current_dir(scene.work())
        .envs(rpc.get_envs().filter_map(|(name, value)| Some((name, value?))));
    unlimited.stdout(std::process::Stdio::piped());
    let mut rpc = crate::shared::Rpc::start(unlimited);

    let limits = fs::read_to_string(format!("/proc/{}/limits", rpc.child.id())).unwrap();
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    let words: Vec<&str> = core.split_whitespace().collect();
    assert_eq!(words[4..6], ["0", "0"], "{core}");
    // What cannot be dumped belongs to root as far as /proc shows it, regardless of the user; and no core is made, not even for a program that
    // takes them.
    let owner = std::os::unix::fs::MetadataExt::uid(
        &fs::metadata(format!("/proc/{}/environ", rpc.child.id())).unwrap(),
    );
    assert_eq!(owner, 0);
    assert!(Command::new("kill").args(["-ABRT", &rpc.child.id().to_string()]).status().unwrap().success());
    let status = rpc.child.wait().unwrap();
    assert_eq!((status.signal(), status.core_dumped()), (Some(6), false));
    assert!(tree(scene.root()).keys().all(|path| !path.ends_with("core")));
    let checks = scene.run(&["doctor", "--json"]).lines();
    let check = checks.iter().find(|check| check["name"] == "core files").unwrap();
    assert_eq!(check["ok"], true, "{check}");
}

#[cfg(all(target_os = "linux", not(feature = "keyring")))]
#[test]
fn settings_that_name_the_keyring_are_reported_by_a_build_without_keyring_support() {
    let scene = Scene::new();
    let check = |scene: &Scene| {
        let checks = scene.run(&["doctor", "--json"]).lines();
        checks.into_iter().find(|check| check["name"] == "keyring").unwrap()
    };
    let unused = check(&scene);
    assert_eq!(unused["ok"], true, "{unused}");
    assert!(unused["detail"].as_str().unwrap().contains("no keyring support"), "{unused}");

    scene.settings("secrets: { store: keyring }\n");
    for arguments in [&["run", "hello"][..], &["tools"]] {
        let ran = scene.run(arguments).ok();
        for part in
            ["warning[HF-1608]", "this build has no keyring support", "--features keyring", "secrets.age"]
        {
            assert!(ran.err.contains(part), "{part} is not in {ran:#?}");
        }
    }
    let named = check(&scene);
    assert_eq!(named["ok"], false, "{named}");
    assert!(named["detail"].as_str().unwrap().contains("no keyring support"), "{named}");
    assert!(named["help"].as_str().unwrap().contains("--features keyring"), "{named}");
}

/// What nobody may find anywhere, and how else it might be written.
const CANARY: &str = "7312345:AAE-canary-kq9vX2";
const CANARY_IN_BASE64: &str = "NzMxMjM0NTpBQUUtY2FuYXJ5LWtxOXZYMg";

#[track_caller]
fn without(what: &str, bytes: &[u8]) {
    for form in [CANARY, CANARY_IN_BASE64] {
        assert!(!contains(bytes, form), "{what} has it: {}", String::from_utf8_lossy(bytes));
    }
}

#[test]
fn a_secret_is_in_no_file_no_export_no_backup_no_log_line_and_no_request() {
    let mut scene = Scene::new();
    let folder = scene.home().join("extensions/talker");
    fs::create_dir_all(&folder).unwrap();
    let manifest = "id: talker\nname: Talker\nentrypoint: talker.wasm\nsecrets: [TOKEN]\n";
    fs::write(folder.join("manifest.yaml"), manifest).unwrap();
    // A careless extension: the value is in its code, as if somebody had told it, and it logs it.
    fs::write(folder.join("talker.wasm"), talker("chatter", &format!("sending with {CANARY}"))).unwrap();
    fs::write(folder.join("tests.yaml"), "- { tool: chatter, arguments: {}, result: logged }\n").unwrap();
    let tape = scene.root().join("tape.jsonl");
    let call = json!([{ "calls": [{ "tool": "chatter", "arguments": {} }] }, { "says": "I have it." }]);
    let script = scene.script("steps", &call);
    let model = json!({ "provider": "script", "file": script.strip_prefix("script:"), "record": tape });
    scene.settings(&json!({ "models": { "default": "main", "main": model } }).to_string());
    scene.policy("profile: full-auto\n");
    scene.variable("RUST_BACKTRACE", "1");
    scene.run_with(&["setup", "talker", "--secret", "TOKEN"], format!("{CANARY}\n").as_bytes()).ok();

    let said = format!("my token is {CANARY}, in other words {CANARY_IN_BASE64}");
    let ran = scene.run(&["run", &said, "--session", "s", "--verbose", "--json"]).ok();
    let notice = json!({ "text": said, "channel_id": "nowhere" });
    scene.run(&["bus", "publish", "system.user.notify", &notice.to_string()]).ok();
    scene.run(&["session", "rename", "s", &said]).ok();
    let mut rpc = scene.rpc(&[]);
    rpc.ask("command.run", json!({ "session": "s", "command": "help", "arguments": said }));
    rpc.end();
    let tested = scene.run(&["ext", "test", "talker"]).ok();
    assert!(tested.err.contains("sending with [secret talker.TOKEN]"), "{tested:#?}");
    let requests = fs::read(&tape).unwrap();
    assert!(contains(&requests, "[secret talker.TOKEN]"), "{}", String::from_utf8_lossy(&requests));

    for (what, bytes) in [
        ("the turn", ran.out.as_bytes()),
        ("what the turn says", ran.err.as_bytes()),
        ("what a test says", tested.out.as_bytes()),
        ("the log lines", tested.err.as_bytes()),
        ("the model's requests", &requests),
    ] {
        without(what, bytes);
    }
    let streams = scene.run(&["log", "list", "--json"]).ok().lines();
    assert!(streams.len() >= 3, "{streams:?}");
    for stream in streams {
        let stream = stream["stream"].as_str().or(stream["id"].as_str()).unwrap().to_owned();
        for command in ["export", "show"] {
            without(&stream, scene.run(&["log", command, &stream]).ok().out.as_bytes());
        }
    }
    // Everything in the home but the careless extension itself, and what is kept of it; and the same of a backup that was restored.
    let archive = scene.root().join("backup.tar.zst");
    scene.run(&["backup", &archive.display().to_string()]).ok();
    let restored = scene.root().join("restored");
    let back = scene.command_at(&restored, &["restore", &archive.display().to_string()]).spawn().unwrap();
    crate::shared::finish(back).ok();
    for home in [scene.home(), restored] {
        for (path, bytes) in tree(&home) {
            let own =
                path.extension().is_some_and(|it| it == "wasm") || path.starts_with(home.join("generations"));
            if !own {
                without(&path.display().to_string(), &bytes);
            }
        }
    }
    let verdict: Value = scene.run(&["replay", "s", "--json"]).ok().json();
    assert_eq!(verdict["identical"], true, "{verdict}");
    scene.verifies();
}
