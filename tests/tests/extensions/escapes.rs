//! Ways out of the workspace, each tried through the real runtime under every profile. A way out is closed when no secret is in
//! any frame, nothing outside has changed, nobody outside was reached, and the call says why it failed. Ordinary work is in the
//! same table, so that a sandbox in which nothing works is noticed too.
//!
//! The cases run in a process of their own that was started with a secret in its environment and an open file with another one.

mod file_cases;
mod shell_cases;
mod world;

use std::io::Read;
use std::process::Command;
use std::sync::mpsc::channel;
use std::time::Duration;

use holdfast_contract::host_call::HostCall;
use holdfast_contract::ids::Millis;
use holdfast_contract::wire::{Call, Host, Instance, Lane, Later, Reply};
use holdfast_contract::{content::Content, problem::Fault};
use holdfast_lane_native::{NativeExtension, NativeLane};
use serde_json::{Value, json};
use world::{Case, Expected, Play, SECRET, World};

/// After this a test gives up. It only has to be longer than the slowest machine needs.
const TIMEOUT: Duration = Duration::from_secs(60);

fn cases() -> Vec<Case> {
    file_cases::all().into_iter().chain(shell_cases::all()).collect()
}

#[test]
fn the_table_is_long() {
    let cases = cases();
    let escapes = cases.iter().filter(|case| case.expected == Expected::Closed).count();
    assert!(escapes >= 80, "{escapes} ways out");
    assert!(cases.len() - escapes >= 10, "{} ordinary cases", cases.len() - escapes);
    let names: std::collections::BTreeSet<_> = cases.iter().map(|case| &case.name).collect();
    assert_eq!(names.len(), cases.len(), "names are unique");
}

#[test]
fn nothing_escapes_under_safe() {
    in_another_process(Play::Safe);
}

#[test]
fn nothing_escapes_under_standard_with_everything_approved() {
    in_another_process(Play::StandardApproved);
}

#[test]
fn nothing_escapes_under_full_auto() {
    in_another_process(Play::FullAuto);
}

/// Runs the table in a process with secrets in its environment and among its open files.
fn in_another_process(play: Play) {
    let leak = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(leak.path(), SECRET).unwrap();
    let script = r#"exec 7<"$1"; shift; exec "$@""#;
    let output = Command::new("/bin/sh")
        .args(["-c", script, "sh"])
        .arg(leak.path())
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "escapes::cases_for_parent", "--ignored", "--nocapture"])
        .env("HOLDFAST_TEST_KEY", SECRET)
        .env("HOLDFAST_ESCAPES", format!("{play:?}"))
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{play:?}\n{out}\n{err}");
    assert!(out.contains("all cases held"), "{out}");
}

/// Not a test of its own: what [`in_another_process`] starts.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "started by the tests themselves"]
async fn cases_for_parent() {
    let Ok(wanted) = std::env::var("HOLDFAST_ESCAPES") else { return };
    let play = Play::ALL.into_iter().find(|play| format!("{play:?}") == wanted).unwrap();
    let only = std::env::var("HOLDFAST_CASE").unwrap_or_default();
    let mut cases = cases();
    cases.retain(|case| case.name.contains(&only) && case.possible());
    let count = cases.len();
    let queue = std::sync::Arc::new(std::sync::Mutex::new(cases));
    let workers: Vec<_> = (0..4).map(|_| tokio::spawn(work_off(queue.clone(), play))).collect();
    let mut broken = Vec::new();
    for worker in workers {
        broken.extend(worker.await.unwrap());
    }
    assert!(broken.is_empty(), "{} of {count} cases:\n  {}", broken.len(), broken.join("\n  "));
    println!("all cases held: {count}");
}

async fn work_off(queue: std::sync::Arc<std::sync::Mutex<Vec<Case>>>, play: Play) -> Vec<String> {
    let mut broken = Vec::new();
    loop {
        let Some(case) = queue.lock().unwrap().pop() else { return broken };
        let world = World::new(&case);
        let seen = world.try_out(&case, play).await;
        let found = world.judge(&case, play, &seen);
        broken.extend(found.into_iter().map(|why| format!("{}: {why}", case.name)));
    }
}

struct Nobody;

impl Host for Nobody {
    fn call_within(&self, _: HostCall, _: Option<Millis>) -> Later<Result<Content, Fault>> {
        Box::pin(std::future::pending())
    }
}

/// Without walls the same commands find what they are after: the traps are real.
#[test]
fn without_walls_the_traps_are_sprung() {
    let case = Case::shell("plain", "true", Expected::Closed);
    let world = World::new(&case);
    for command in ["cat ../outside/secret.txt", "cat to-file", "cat chain-1/secret.txt", "cat to-home/.env"]
    {
        let output =
            Command::new("/bin/sh").args(["-c", command]).current_dir(world.work()).output().unwrap();
        assert!(String::from_utf8_lossy(&output.stdout).contains(SECRET), "{command}");
    }
    std::fs::write(world.outside().join("secret.txt"), "changed").unwrap();
    assert_eq!(world.changed(), [world.outside().join("secret.txt")]);
    let seen = world::Seen { frames: SECRET.to_owned(), ..Default::default() };
    let broken = world.judge(&case, Play::FullAuto, &seen);
    assert_eq!(broken.len(), 3, "the secret, the change and the missing reason: {broken:?}");
}

/// When the runtime is killed in the middle of a command, the command and all it started die with it.
#[test]
fn a_killed_runtime_takes_its_commands_along() {
    let scratch = tempfile::tempdir().unwrap();
    for folder in ["work", "home"] {
        std::fs::create_dir(scratch.path().join(folder)).unwrap();
    }
    let alive = scratch.path().join("work/alive");
    assert!(Command::new("mkfifo").arg(&alive).status().unwrap().success());
    let mut runtime = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "escapes::long_command_for_parent", "--ignored", "--nocapture"])
        .env("HOLDFAST_LONG_COMMAND", scratch.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    // Opened once the command runs, at its end once no process of the command lives.
    let (opened, ended) = (channel(), channel());
    std::thread::spawn(move || {
        let mut fifo = std::fs::File::open(alive).unwrap();
        opened.0.send(()).unwrap();
        ended.0.send(fifo.read_to_end(&mut Vec::new())).unwrap();
    });
    opened.1.recv_timeout(TIMEOUT).expect("the command began");
    runtime.kill().unwrap();
    runtime.wait().unwrap();
    ended.1.recv_timeout(TIMEOUT).expect("the command and all it started have ended").unwrap();
}

/// The extension as the native lane runs it.
async fn loaded(extension: NativeExtension) -> std::sync::Arc<dyn Instance> {
    let lane = NativeLane::default();
    let found = lane.add(extension);
    lane.load(&found.activation(1)).await.unwrap()
}

/// Not a test of its own: the runtime that is killed.
#[tokio::test]
#[ignore = "started by the tests themselves"]
async fn long_command_for_parent() {
    let Some(at) = std::env::var_os("HOLDFAST_LONG_COMMAND").map(std::path::PathBuf::from) else { return };
    let workspace = holdfast_ext_shell::Workspace::new(at.join("work"), at.join("home")).unwrap();
    let shell = loaded(holdfast_ext_shell::extension(workspace, Default::default()).unwrap()).await;
    let command = "exec 9>alive; (while :; do sleep 60; done) & sleep 600";
    let call = Call::Tool {
        call: Default::default(),
        tool: "shell".into(),
        arguments: Content::new(json!({ "command": command, "timeout_ms": 500_000 })),
        turn: Default::default(),
    };
    let _ = shell.call(call, std::sync::Arc::new(Nobody)).await;
}

/// A folder of the workspace turns into a link to the outside and back, all the time, while files are read and written in it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_that_is_swapped_while_tools_run_leads_nowhere() {
    use std::sync::atomic::{AtomicBool, Ordering};

    let world = World::new(&file_cases::all()[0]);
    let flip = world.work().join("flip");
    let link = world.work().join("other");
    std::fs::create_dir(&flip).unwrap();
    std::fs::write(flip.join("secret.txt"), "inside").unwrap();
    std::os::unix::fs::symlink(world.outside(), &link).unwrap();
    let stop = std::sync::Arc::new(AtomicBool::new(false));
    let flipper = std::thread::spawn({
        let (stop, flip, link) = (stop.clone(), flip.clone(), link.clone());
        move || {
            let mut flips = 0u64;
            while !stop.load(Ordering::Relaxed) {
                let flags = rustix::fs::RenameFlags::EXCHANGE;
                rustix::fs::renameat_with(rustix::fs::CWD, &flip, rustix::fs::CWD, &link, flags).unwrap();
                flips += 1;
            }
            flips
        }
    });
    let files = loaded(holdfast_ext_files::extension(world.workspace())).await;
    let (mut inside, mut refused) = (0, 0);
    for round in 0..4000 {
        let (tool, arguments) = match round % 5 {
            0 | 1 => ("file_read", json!({ "path": "flip/secret.txt" })),
            2 => ("file_write", json!({ "path": "flip/new.txt", "text": "mine", "overwrite": true })),
            3 => ("file_search", json!({ "path": "flip", "pattern": "." })),
            _ => ("file_edit", json!({ "path": "flip/secret.txt", "old": "inside", "new": "inside" })),
        };
        let call = Call::Tool {
            call: Default::default(),
            tool: tool.into(),
            arguments: Content::new(arguments),
            turn: Default::default(),
        };
        let answer = files.call(call, std::sync::Arc::new(Nobody)).await;
        let text = match &answer {
            Ok(Reply::Content(content)) => content.to_text(),
            Ok(other) => panic!("{other:?}"),
            Err(fault) => fault.to_string(),
        };
        assert!(!text.contains(SECRET), "{tool}: {text}");
        if tool == "file_read" {
            inside += u32::from(answer.is_ok());
            refused += u32::from(answer.is_err());
        }
    }
    stop.store(true, Ordering::Relaxed);
    let flips = flipper.join().unwrap();
    assert!(inside > 10 && refused > 10, "both were met: {inside} inside, {refused} refused, {flips} flips");
    let names: Vec<_> =
        std::fs::read_dir(world.outside()).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert!(!names.iter().any(|name| name == "new.txt"), "{names:?}");
    assert!(world.changed().is_empty());
}

/// A flood of output is taken off the pipe, and neither the log nor the memory grows with it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gigabyte_of_output_is_bounded() {
    let peak = || -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap().to_owned();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    let mut case = Case::shell("flood", "yes | head -c 1000000000", Expected::Closed);
    // A busy machine takes a while to carry a gigabyte.
    case.arguments["timeout_ms"] = json!(120_000);
    let world = World::new(&case);
    let before = peak();
    let seen = world.try_out(&case, Play::FullAuto).await;
    let result: Value = seen.result.clone().unwrap();
    assert_eq!((result["exit_code"].clone(), result["truncated"].clone()), (json!(0), json!(true)));
    assert!(result["stdout"].as_str().unwrap().len() < 70_000);
    assert!(peak() - before < 64 * 1024, "{} KiB more", peak() - before);
}
