//! What the real process does about pictures of its memory, and where a secret is not.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on should stop loudly"
)]

mod shared;

use std::fs;
use std::process::Command;

use shared::Scene;

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
    unlimited.args(["-c", &begin]).current_dir(scene.work()).envs(rpc.get_envs().filter_map(|(name, value)| Some((name, value?))));
    unlimited.stdout(std::process::Stdio::piped());
    let mut rpc = shared::Rpc::start(unlimited);

    let limits = fs::read_to_string(format!("/proc/{}/limits", rpc.child.id())).unwrap();
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    let words: Vec<&str> = core.split_whitespace().collect();
    assert_eq!(words[4..6], ["0", "0"], "{core}");
    // What cannot be dumped belongs to root as far as /proc shows it, whoever runs it; and no core is made, not even for a program that
    // takes them.
    let owner = std::os::unix::fs::MetadataExt::uid(&fs::metadata(format!("/proc/{}/environ", rpc.child.id())).unwrap());
    assert_eq!(owner, 0);
    assert!(Command::new("kill").args(["-ABRT", &rpc.child.id().to_string()]).status().unwrap().success());
    let status = rpc.child.wait().unwrap();
    assert_eq!((status.signal(), status.core_dumped()), (Some(6), false));
    assert!(shared::tree(scene.root()).keys().all(|path| !path.ends_with("core")));
    let checks = scene.run(&["doctor", "--json"]).lines();
    let check = checks.iter().find(|check| check["name"] == "core files").unwrap();
    assert_eq!(check["ok"], true, "{check}");
}
