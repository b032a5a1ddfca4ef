//! A process that dies in marked code leaves the mark; one that dies elsewhere leaves none.

use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use holdfast_contract::digest::Digest;

use crate::crash::{Mark, left_behind, marked, watch};

const PATH: &str = "HOLDFAST_TEST_CRASH_FILE";
const HOW: &str = "HOLDFAST_TEST_CRASH_HOW";

fn mark() -> Digest {
    Digest::of(b"a plugin")
}

/// What the child does: this test again, in a process that is told to die.
#[test]
fn whose_code_ended_the_process_is_known() {
    if let (Ok(path), Ok(how)) = (std::env::var(PATH), std::env::var(HOW)) {
        watch(path.as_ref()).unwrap();
        let dies = move || match how.as_str() {
            "abort" => std::process::abort(),
            "exit" => std::process::exit(3),
            "killed" => nap_until_killed(),
            _ => {
                let dead = std::thread::spawn(|| std::process::abort());
                drop(dead.join());
            }
        };
        std::thread::spawn(move || marked(Mark::of(mark()), dies)).join().unwrap();
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("crashed");
    for (how, leaves) in [("abort", true), ("exit", true), ("killed", false), ("another thread", false)] {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "crash_tests::whose_code_ended_the_process_is_known"])
            .env(PATH, &path)
            .env(HOW, how)
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let status = child.wait().unwrap();
        assert!(status.signal().is_some() || status.code() == Some(3), "{how}: {status}");
        let expected = if leaves { vec![mark()] } else { Vec::new() };
        assert_eq!(left_behind(&path), expected, "{how}");
    }
}

/// Kills the whole process from outside of the marked code's thread, as another process would.
fn nap_until_killed() {
    let own = std::process::id().to_string();
    let status = Command::new("kill").args(["-KILL", &own]).status();
    unreachable!("{status:?}");
}
