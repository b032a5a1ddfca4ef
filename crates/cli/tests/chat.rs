//! The chat in a real terminal, or what a pseudo-terminal has of one.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's helpers may panic")]

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use holdfast_testkit::terminal::{TIMEOUT, TestTerminal};

/// Where cargo puts examples: beside the tests.
fn lab() -> std::path::PathBuf {
    let own = std::env::current_exe().unwrap();
    own.parent().and_then(|deps| deps.parent()).unwrap().join("examples/chat_lab")
}

/// Starts the lab's chat.
fn start(home: &std::path::Path, columns: u16, more: &[&str]) -> TestTerminal {
    start_with(home, columns, more, |_| {})
}

fn start_with(
    home: &std::path::Path,
    columns: u16,
    more: &[&str],
    set: impl Fn(&mut Command),
) -> TestTerminal {
    let mut command = Command::new(lab());
    command.arg(home).args(more).env("TERM", "xterm-256color").env("NO_COLOR", "1");
    command.env_remove("EDITOR").env_remove("VISUAL");
    set(&mut command);
    TestTerminal::start(command, columns)
}

const ASKED: &str = "n deny";

/// A FIFO on which the lab waits for a signal of the test.
fn fifo(home: &Path, name: &str) -> PathBuf {
    let fifo = home.join(name);
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    fifo
}

/// Wakes what waits for this FIFO.
fn signal(fifo: &Path) {
    std::fs::write(fifo, "now").unwrap();
}

#[test]
fn talk_and_leave() {
    let home = tempfile::tempdir().unwrap();
    let mut chat = start(home.path(), 80, &[]);
    chat.until("session lab-");
    chat.until("model lab · profile standard");
    chat.says("hello");
    chat.until("  # Heading\r\n  Some bold words and code, long enough to wrap.\r\n\r\n  • item\r\n");
    chat.says("read");
    chat.until("  I use a tool.\r\n");
    chat.until("⏺ file_read {\"path\":\"a\"} … ok ");
    chat.until("The tool gave");
    chat.says("/why");
    chat.until("call 2.1: the model asked for file_read {\"path\":\"a\"}");
    chat.until("policy decided (rule ");
    chat.until("file_read ran: lab 1.0.0");
    chat.until("it ended: ok");
    chat.says("/hlep");
    chat.until("did you mean /help?");
    chat.says("/tools");
    chat.until("file_write");
    chat.says("/frames 3");
    chat.until("turn.ended");
    chat.says("/cost");
    chat.until("model calls");
    chat.says("/sessions");
    chat.until("* lab-");
    chat.says("break");
    let before = chat.until("failed: it is broken ␛[2J");
    assert!(!before.contains("\u{1b}[2J"), "{before:?}");
    chat.until("› ");
    chat.types("\u{4}");
    chat.ends_with(0);
}

#[test]
fn approve_edit_and_deny() {
    let home = tempfile::tempdir().unwrap();
    let mut chat = start(home.path(), 100, &[]);
    chat.says("write");
    chat.until("? file_write wants to run (call 1.1)");
    chat.until("\"path\": \"a\"");
    chat.until(ASKED);
    chat.types("y");
    chat.until("once");
    chat.until("⏺ file_write {\"path\":\"a\"} … ok ");

    chat.says("write");
    chat.until(ASKED);
    chat.types("e");
    chat.until("edit: ");
    chat.types("\u{15}{\"path\": }\r");
    chat.until("this is not JSON");
    chat.until("edit: ");
    chat.types("\u{15}{\"path\":\"b\"}\r");
    chat.until("⏺ file_write {\"path\":\"b\"} … ok ");
    chat.until("The tool gave {\"wrote\":{\"path\":\"b\"}}");

    chat.says("write");
    chat.until(ASKED);
    chat.types("n");
    chat.until("no reason): ");
    chat.types("not nöw\r");
    chat.until("denied: not approved: not nöw");
    chat.says("/why");
    chat.until("denied it: not nöw");
    chat.until("HF-3103");

    chat.says("long");
    chat.until("more lines; v shows all");
    chat.until(ASKED);
    chat.types("v");
    chat.until("39");
    chat.until(ASKED);
    chat.types("s");
    chat.until("for this session");
    chat.says("write");
    chat.until("… ok ");
    chat.says("/quit");
    chat.ends_with(0);
}

#[test]
fn the_users_editor_edits() {
    let home = tempfile::tempdir().unwrap();
    let mut chat = start_with(home.path(), 80, &[], |command| {
        command.env("EDITOR", "sed -i s/\\\"a\\\"/\\\"edited\\\"/");
    });
    chat.says("write");
    chat.until(ASKED);
    chat.types("e");
    chat.until("⏺ file_write {\"path\":\"edited\"} … ok ");
    chat.until("The tool gave");
    chat.says("/quit");
    chat.ends_with(0);
}

#[test]
fn ctrl_c_cancels_and_twice_leaves() {
    let home = tempfile::tempdir().unwrap();
    let mut chat = start(home.path(), 80, &[]);
    chat.says("slow");
    chat.until("word3");
    chat.types("\u{3}");
    chat.until("cancelling the turn");
    chat.until("the turn ended early, cancelled");
    // At the prompt: a line is cleared, an empty one says how to leave.
    chat.until("› ");
    chat.types("half a line");
    chat.until("half a line");
    chat.types("\u{3}");
    chat.until("› ");
    chat.types("\u{3}");
    chat.until("Ctrl-C again leaves");
    chat.says("/quit");
    chat.ends_with(0);

    let mut chat = start_with(home.path(), 80, &[], |command| {
        command.env("CHAT_LAB_SLOW", "1");
    });
    chat.says("hang");
    chat.until("Half an answer");
    chat.types("\u{3}");
    chat.until("cancelling the turn");
    chat.types("\u{3}");
    chat.until("left in the middle of a turn");
    chat.ends_with(130);

    let mut chat = start(home.path(), 80, &[]);
    chat.until("› ");
    chat.types("\u{3}");
    chat.until("Ctrl-C again leaves");
    chat.until("› ");
    chat.types("\u{3}");
    chat.ends_with(0);
}

#[test]
fn a_model_cannot_reach_the_terminal() {
    let home = tempfile::tempdir().unwrap();
    let mut chat = start(home.path(), 80, &[]);
    chat.says("evil");
    let before = chat.until("wants to run");
    let shown = &before[before.rfind("evil").unwrap()..];
    assert!(shown.contains("  ␛]0;owned␇␛[2J␛[1;1H? file_write"), "{shown:?}");
    let answer = &shown[shown.find('␛').unwrap()..];
    assert!(!answer.contains(['\u{1b}', '\u{7}', '\u{9b}']), "{answer:?}");
    // No question was asked: the prompt is there.
    chat.says("/quit");
    chat.ends_with(0);
}

#[test]
fn twenty_columns_are_enough() {
    let home = tempfile::tempdir().unwrap();
    let mut chat = start(home.path(), 20, &[]);
    chat.says("hello");
    chat.until(
        "  # Heading\r\n  Some bold words\r\n  and code, long\r\n  enough to wrap.\r\n\r\n  • item\r\n",
    );
    chat.says("write");
    chat.until("? file_write wants");
    chat.until(ASKED);
    chat.types("y");
    chat.until("The tool gave");
    chat.until("› ");
    chat.types("\u{4}");
    chat.ends_with(0);
}

#[test]
fn a_pasted_megabyte_arrives_whole() {
    let home = tempfile::tempdir().unwrap();
    let mut chat = start(home.path(), 80, &[]);
    chat.until("› ");
    let text = format!("count {}", "twenty characters ..\n".repeat(50_000));
    let begun = Instant::now();
    let paste = format!("\u{1b}[200~{text}\u{1b}[201~");
    // A terminal takes what is typed only as fast as it is read, and what is echoed must be read meanwhile.
    let mut sent = 0;
    let mut seen = vec![0; 1 << 16];
    let bytes = paste.as_bytes();
    while sent < bytes.len() {
        let end = (sent + 512).min(bytes.len());
        sent += chat.0.write(&bytes[sent..end]).unwrap();
        let _none = chat.0.try_read(&mut seen);
    }
    chat.types("\r");
    let wanted = format!("I got {} characters.", text.chars().count());
    let answered = |end: &str| end.split_once(&wanted).is_some_and(|(_, rest)| rest.contains("› "));
    let mut all = Vec::new();
    while !answered(&String::from_utf8_lossy(&all[all.len().saturating_sub(2_000)..])) {
        assert!(begun.elapsed() < TIMEOUT, "no answer to what was pasted");
        let read = chat.0.try_read(&mut seen).unwrap_or(0);
        all.extend_from_slice(&seen[..read]);
    }
    chat.types("/quit\r");
    chat.ends_with(0);
}

#[test]
fn lines_are_continued() {
    let home = tempfile::tempdir().unwrap();
    let mut chat = start(home.path(), 80, &[]);
    chat.until("› ");
    chat.types("lines\\\rtwo\u{1b}\rthree\u{1b}[200~ x\nfour \\\nfive\u{1b}[201~\r");
    chat.until("I got 5 lines.");
    chat.says("/quit");
    chat.ends_with(0);
}

#[test]
fn a_pending_approval_is_asked_again_when_the_session_is_taken_up() {
    let home = tempfile::tempdir().unwrap();
    let mut chat = start(home.path(), 80, &[]);
    chat.until("session ");
    let id = chat.until(" · model").trim().to_owned();
    chat.says("write");
    chat.until(ASKED);
    // Ctrl-D leaves the question open.
    chat.types("\u{4}");
    chat.ends_with(0);

    let mut chat = start(home.path(), 80, &[&id]);
    chat.until("› write");
    chat.until("? file_write wants to run (call 1.1)");
    chat.until(ASKED);
    chat.types("y");
    chat.until("⏺ file_write");
    chat.until("The tool gave");
    chat.says("/quit");
    chat.ends_with(0);

    let mut chat = start(home.path(), 80, &[&id]);
    chat.until("› write");
    chat.until("The tool gave");
    chat.until("› ");
    let process = chat.0.get_process().pid();
    let killed = Command::new("kill").args(["-TERM", &process.to_string()]).status().unwrap();
    assert!(killed.success());
    chat.until("\u{1b}[?2004l");
    chat.ends_with(0);
}

#[test]
fn an_owner_that_disconnects_is_reported() {
    let home = tempfile::tempdir().unwrap();
    let gone = fifo(home.path(), "gone");
    let mut chat = start_with(home.path(), 80, &[], |command| {
        command.env("CHAT_LAB_GONE", &gone);
    });
    chat.until("› ");
    signal(&gone);
    chat.until("disconnected from the process that owns the home");
    chat.until("holdfast chat --session");
    chat.until("lab-1");
    chat.ends_with(1);
}

#[test]
fn without_a_terminal_lines_are_read_as_they_are() {
    let home = tempfile::tempdir().unwrap();
    let mut chat =
        Command::new(lab()).arg(home.path()).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    chat.stdin.take().unwrap().write_all(b"hello\nwrite\ny\n").unwrap();
    let mut out = String::new();
    chat.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    assert!(chat.wait().unwrap().success(), "{out}");
    assert!(out.contains("# Heading\nSome bold words and code, long enough to wrap.\n"), "{out}");
    // Nobody is there to say yes: what is piped in is said, and never taken for an answer.
    assert!(out.contains("denied: not approved: "), "{out}");
    assert!(!out.contains('\u{1b}'), "{out}");
}

#[test]
fn extensions_ask_the_user() {
    let home = tempfile::tempdir().unwrap();
    let mut chat = start(home.path(), 80, &[]);
    chat.says("ask select");
    chat.until("? `lab` asks:\r\n  Well␛[2J?\r\n");
    chat.until("  r red, b blue: ");
    // Neither is one of them, and the question stays.
    chat.types("7y");
    chat.types("b");
    chat.until("blue\r\n");
    chat.until("The tool gave blue");
    chat.says("ask confirm");
    chat.until("y yes, n no: ");
    chat.types("y");
    chat.until("The tool gave true");
    chat.says("ask secret");
    chat.until("secret, not shown; `lab` receives it: ");
    chat.types("hunter2\u{7f}3\r");
    let shown = chat.until("The tool");
    assert!(!shown.contains("hunter"), "{shown:?}");
    chat.says("ask");
    chat.until("  : ");
    chat.types("fr\u{7f}ee\r");
    chat.until("The tool gave fee");
    chat.says("/quit");
    chat.ends_with(0);
}

#[test]
fn a_question_that_another_client_answered_is_withdrawn() {
    let home = tempfile::tempdir().unwrap();
    let other = fifo(home.path(), "other");
    let mut chat = start_with(home.path(), 80, &[], |command| {
        command.env("CHAT_LAB_OTHER", &other);
    });
    chat.until("session lab-1");
    chat.says("write");
    chat.until(ASKED);
    signal(&other);
    chat.until("answered elsewhere");
    chat.until("denied: not approved: ");
    chat.until("somebody else said no");
    chat.says("/quit");
    chat.ends_with(0);
}

#[test]
fn the_terminal_is_left_as_it_was_found() {
    // The owner goes while the prompt is shown, and while a question is.
    for says in [None, Some("write")] {
        let home = tempfile::tempdir().unwrap();
        let gone = fifo(home.path(), "gone");
        let script = format!(
            "stty -g; echo begun; {} {}; echo modes; stty -g; echo over",
            lab().display(),
            home.path().display()
        );
        let mut command = Command::new("sh");
        command.args(["-c", &script]).env("TERM", "xterm").env("NO_COLOR", "1").env("CHAT_LAB_GONE", &gone);
        let mut chat = TestTerminal::start(command, 80);
        let found = chat.until("begun").trim().to_owned();
        match says {
            Some(text) => {
                chat.says(text);
                chat.until(ASKED);
            }
            None => drop(chat.until("› ")),
        }
        signal(&gone);
        chat.until("disconnected from the process that owns the home");
        chat.until("modes");
        assert_eq!(chat.until("over").trim(), found);
    }
}
