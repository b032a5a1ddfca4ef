//! One owner at a time: among threads, among processes, and after a crash.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::Barrier;
use std::thread;

use holdfast_contract::problem::Code;

use crate::testing::{at, given_by_parent, scene, write};

#[test]
fn a_home_has_one_owner() {
    let scene = scene();
    assert_eq!(scene.home.owner(), None);
    let owner = scene.home.own().unwrap();
    let own = std::process::id();
    let info = scene.home.owner().unwrap();
    assert!(info.pid == Some(own) && info.since.is_some(), "{info:?}");
    let problem = scene.home.own().unwrap_err();
    assert_eq!(problem.code, Code::HomeOwned);
    assert!(problem.what.ends_with(&format!("is owned by process {own}")), "{problem}");
    assert_eq!(owner.home(), &scene.home);
    drop(owner);
    assert_eq!(scene.home.owner(), None);
    drop(scene.home.own().unwrap());
}

#[test]
fn a_lock_file_alone_is_no_owner() {
    for left in ["", "{\"pid\":1,\"since\":5}", "{\"pid\":4194303}", "nonsense", "\u{0}\u{0}"] {
        let scene = scene();
        write(scene.home.lock_file(), left);
        assert_eq!(scene.home.owner(), None, "{left}");
        scene.home.own().unwrap();
    }
}

#[test]
fn the_new_owner_removes_what_the_last_one_left() {
    let scene = scene();
    drop(std::os::unix::net::UnixListener::bind(scene.home.control_socket()).unwrap());
    assert!(scene.home.control_socket().exists());
    let owner = scene.home.own().unwrap();
    assert!(!scene.home.control_socket().exists());
    // A refused process does not touch the owner's socket.
    write(scene.home.control_socket(), "");
    scene.home.own().unwrap_err();
    assert!(scene.home.control_socket().exists());
    drop(owner);
}

#[test]
fn of_twenty_at_once_one_wins() {
    for _ in 0..20 {
        let scene = scene();
        let start = Barrier::new(21);
        let winners: usize = thread::scope(|scope| {
            let contenders: Vec<_> = (0..20)
                .map(|_| {
                    scope.spawn(|| {
                        start.wait();
                        scene.home.own()
                    })
                })
                .collect();
            start.wait();
            // Somebody who only asks does not get in the way.
            for _ in 0..50 {
                let _ = scene.home.owner();
            }
            // Results are kept until all are in, so that nobody wins because another has released it.
            let results: Vec<_> = contenders.into_iter().map(|contender| contender.join().unwrap()).collect();
            results.iter().filter(|result| result.is_ok()).count()
        });
        assert_eq!(winners, 1);
    }
}

/// Plays a process that wants the home: says whether it got it, and waits until it is told to go.
#[test]
fn contender() {
    let Some(root) = given_by_parent() else { return };
    let owner = at(&root).own();
    let word = match &owner {
        Ok(_) => "won".to_owned(),
        Err(problem) => problem.what.clone(),
    };
    println!("\ncontender: {word}");
    std::io::stdout().flush().unwrap();
    let _ = std::io::stdin().read_line(&mut String::new());
}

fn contend(root: &std::path::Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "owner_tests::contender", "--nocapture"])
        .env("HOLDFAST_TEST_CHILD", root)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn word(child: &mut Child) -> String {
    let lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
    let said =
        lines.map_while(Result::ok).find_map(|line| line.strip_prefix("contender: ").map(str::to_owned));
    said.unwrap_or_default()
}

#[test]
fn of_twenty_processes_one_wins_and_a_killed_one_lets_go() {
    let scene = scene();
    let mut children: Vec<Child> = (0..20).map(|_| contend(scene.home.root())).collect();
    let words: Vec<String> = children.iter_mut().map(word).collect();
    let winner = words.iter().position(|word| word == "won").unwrap();
    assert_eq!(words.iter().filter(|word| *word == "won").count(), 1, "{words:?}");
    let pid = children[winner].id();
    for (index, word) in words.iter().enumerate().filter(|(index, _)| *index != winner) {
        assert!(word.ends_with(&format!("is owned by process {pid}")), "{index}: {word}");
    }
    assert_eq!(scene.home.owner().unwrap().pid, Some(pid));
    write(scene.home.control_socket(), "stale");
    children[winner].kill().unwrap();
    children[winner].wait().unwrap();
    assert!(fs::read_to_string(scene.home.lock_file()).unwrap().contains(&pid.to_string()));
    assert_eq!(scene.home.owner(), None);
    let owner = scene.home.own().unwrap();
    assert!(!scene.home.control_socket().exists());
    drop(owner);
    for mut child in children {
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
