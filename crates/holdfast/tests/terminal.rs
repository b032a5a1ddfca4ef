//! The chat as a person has it: the real program in a pseudo-terminal, with a model that plays a script.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on should stop loudly")]

use std::fs;
use std::io::{BufRead, Write};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use holdfast_testkit::terminal::TestTerminal;

const PROGRAM: &str = env!("CARGO_BIN_EXE_holdfast");

/// How long anything may take before the test gives up.
const TIMEOUT: Duration = Duration::from_secs(180);

/// What is said first, then three writes that a person is asked about, an answer that never ends, and another write.
const SCRIPT: &str = r#"
- says: Good morning.
- calls: [{tool: file_write, arguments: {path: one.txt, text: first}}]
- says: The first is written.
- calls: [{tool: file_write, arguments: {path: two.txt, text: second}}]
- says: The second is written.
- calls: [{tool: file_write, arguments: {path: three.txt, text: third}}]
- says: The third was not wanted.
- stalls: "This sentence has no end, however long one waits for the full stop, which is why it has to be cancelled by the person who reads it"
"#;

/// Waits until something holds, which another process brings about.
#[track_caller]
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !holds() {
        assert!(Instant::now() < deadline, "timed out after {TIMEOUT:?} waiting for: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A home, a workspace and a script.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new(script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("work")).unwrap();
        fs::write(folder.path().join("script.yaml"), script).unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self) -> Command {
        let mut command = Command::new(PROGRAM);
        command.arg("--home").arg(self.path("home")).current_dir(self.path("work"));
        command.env("TERM", "xterm-256color").env("NO_COLOR", "1");
        command
            .env_remove("EDITOR")
            .env_remove("VISUAL")
            .env_remove("OPENAI_API_KEY")
            .env_remove("ANTHROPIC_API_KEY");
        command
    }

    fn chat(&self, more: &[&str]) -> TestTerminal {
        self.chat_in("work", more)
    }

    fn chat_in(&self, folder: &str, more: &[&str]) -> TestTerminal {
        let mut command = self.command();
        command.current_dir(self.path(folder)).arg("chat").args(more);
        TestTerminal::start(command, 100)
    }

    fn scripted(&self, more: &[&str]) -> TestTerminal {
        self.scripted_in("work", more)
    }

    fn scripted_in(&self, folder: &str, more: &[&str]) -> TestTerminal {
        let model = format!("script:{}", self.path("script.yaml").display());
        let mut arguments = vec!["--model", &model];
        arguments.extend(more);
        self.chat_in(folder, &arguments)
    }

    fn run(&self, arguments: &[&str]) -> (i32, String) {
        let output = self.command().args(arguments).output().unwrap();
        let text =
            format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        (output.status.code().unwrap(), text)
    }

    fn written(&self, name: &str) -> Option<String> {
        fs::read_to_string(Path::new(&self.path("work")).join(name)).ok()
    }
}

const ASKED: &str = "n deny";

#[test]
fn chat_approve_edit_deny_and_cancel() {
    let place = Place::new(SCRIPT);
    let mut chat = place.scripted(&[]);
    chat.says("hello");
    chat.until("Good morning.");

    chat.says("write the first");
    chat.until("file_write wants to run");
    chat.until(ASKED);
    assert_eq!(place.written("one.txt"), None, "nothing happens before the answer");
    chat.types("y");
    chat.until("file_write one.txt: 5 bytes … ok");
    chat.until("The first is written.");
    assert_eq!(place.written("one.txt").as_deref(), Some("first"));

    chat.says("write the second");
    chat.until(ASKED);
    chat.types("e");
    chat.until("edit: ");
    chat.types("\u{15}{\"path\":\"two.txt\",\"text\":\"edited\"}\r");
    chat.until("The second is written.");
    assert_eq!(place.written("two.txt").as_deref(), Some("edited"));

    chat.says("write the third");
    chat.until(ASKED);
    chat.types("n");
    chat.until("no reason): ");
    chat.types("not today\r");
    chat.until("The third was not wanted.");
    assert_eq!(place.written("three.txt"), None);
    chat.says("/why");
    chat.until("not today");

    chat.says("go on for ever");
    chat.until("This sentence has no");
    chat.types("\u{3}");
    chat.until("cancelled");
    chat.says("/quit");
    chat.ends_with(0);

    let (code, told) = place.run(&["log", "verify"]);
    assert_eq!(code, 0, "{told}");
}

/// An approval waits while its process dies; another process takes the session up and answers it.
#[test]
fn an_approval_is_answered_in_a_second_process() {
    let place = Place::new(
        "- calls: [{tool: file_write, arguments: {path: late.txt, text: late}}]\n- says: It is written.\n",
    );
    let mut first = place.scripted(&[]);
    first.until("session ");
    let session: String = first.until(" ·").trim().to_owned();
    first.says("write it");
    first.until(ASKED);
    let process = first.process();
    assert!(Command::new("kill").args(["-9", &process.to_string()]).status().unwrap().success());
    drop(first);
    assert_eq!(place.written("late.txt"), None);

    let mut second = place.chat(&["--session", &session]);
    second.until("file_write wants to run");
    second.until(ASKED);
    second.types("y");
    second.until("It is written.");
    assert_eq!(place.written("late.txt").as_deref(), Some("late"));
    second.says("/quit");
    second.ends_with(0);
    let (code, told) = place.run(&["replay", &session]);
    assert_eq!(code, 0, "{told}");
}

/// The last chat is continued, and not what else was said in the home since.
#[test]
fn the_last_chat_is_continued() {
    let place = Place::new("- says: Good morning.\n- says: Still here.\n- says: And again.\n");
    let mut none = place.chat(&["-c"]);
    none.until("there is no chat to go on with");
    none.until("begins one");
    let mut first = place.scripted(&[]);
    first.until("session ");
    let session = first.until(" ·").trim().to_owned();
    first.says("hello");
    first.until("Good morning.");
    first.says("/quit");
    first.ends_with(0);
    let (code, told) = place.run(&["run", "something else"]);
    assert_eq!(code, 0, "{told}");
    for (option, answer) in [("-c", "Still here."), ("--continue", "And again.")] {
        let mut next = place.chat(&[option]);
        next.until("session ");
        assert_eq!(next.until(" ·").trim(), session, "{option}");
        next.says("are you there?");
        next.until(answer);
        next.says("/quit");
        next.ends_with(0);
    }
}

/// Finding B8: the first answer of a fresh home was shown twice, as if it had been changed.
#[test]
fn the_first_answer_of_a_fresh_home_is_shown_once() {
    for _ in 0..3 {
        let place = Place::new("- says: Good morning.\n");
        let mut chat = place.scripted(&[]);
        chat.says("hello");
        let before = chat.until("Good morning.");
        chat.says("/quit");
        let after = chat.until("holdfast chat");
        chat.ends_with(0);
        let seen = before + &after;
        assert!(!seen.contains("was changed") && !seen.contains("Good morning."), "{seen}");
    }
}

#[test]
fn a_chat_says_where_a_limit_is_set() {
    let place = Place::new("- calls: [{tool: file_list, arguments: {}}]\n- says: Never.\n");
    fs::create_dir_all(place.path("home/config")).unwrap();
    let settings = "models: { default: offline }\nagents: { main: { limits: { max_turns: 1 } } }\n";
    fs::write(place.path("home/config/settings.yaml"), settings).unwrap();
    let mut chat = place.scripted(&[]);
    chat.says("go on");
    chat.until("the limit on model calls in a turn is `agents.main.limits.max_turns` in the settings");
    chat.says("/quit");
    chat.ends_with(0);
}

/// Another command beside a running chat goes to the chat's process, prints what it always prints, and disturbs nothing.
#[test]
fn a_call_beside_a_chat() {
    let place = Place::new("- says: Good morning.\n- says: And good night.\n");
    fs::write(place.path("work").join("note.txt"), "a note\n").unwrap();
    let alone = place.run(&["call", "file_read", "{\"path\":\"note.txt\"}", "--quiet"]);
    let mut chat = place.scripted(&[]);
    chat.says("hello");
    chat.until("Good morning.");
    let beside = place.run(&["call", "file_read", "{\"path\":\"note.txt\"}", "--quiet"]);
    assert_eq!(beside, alone);
    assert_eq!(beside.0, 0);
    let (code, tools) = place.run(&["tools", "--json"]);
    assert!(code == 0 && tools.contains("\"shell\""), "{tools}");
    // Nobody who could answer is in that session, so it is denied, chat or no chat.
    let (code, told) = place.run(&["call", "shell", "{\"command\":\"true\"}"]);
    assert!(code == 3 && told.contains("HF-3103"), "{told}");
    chat.says("good night");
    chat.until("And good night.");
    chat.says("/quit");
    chat.ends_with(0);
    let (code, told) = place.run(&["log", "verify"]);
    assert_eq!(code, 0, "{told}");
}

// Findings B4 and B5.
/// Two terminals in two folders: each has its own workspace, and when the first leaves, the turn of the second goes on.
#[test]
fn two_chats_have_their_own_workspaces_and_end_on_their_own() {
    let place = Place::new(
        "- says: Good morning.\n- calls: [{tool: file_write, arguments: {path: late.txt, text: late}}]\n\
         - says: It is written.\n- says: Still here.\n",
    );
    fs::create_dir(place.path("other")).unwrap();
    let mut first = place.scripted(&[]);
    first.says("hello");
    first.until("Good morning.");
    let mut second = place.scripted_in("other", &[]);
    second.until(&format!("folder {}", place.path("other").canonicalize().unwrap().display()));
    second.says("hello");
    second.until("Good morning.");
    second.says("write it");
    second.until(ASKED);
    first.says("/quit");
    first.ends_with(0);
    second.types("y");
    second.until("It is written.");
    assert_eq!(fs::read_to_string(place.path("other/late.txt")).unwrap(), "late");
    assert_eq!(place.written("late.txt"), None);
    second.says("still there?");
    second.until("Still here.");
    second.says("/quit");
    second.ends_with(0);
    let (code, told) = place.run(&["log", "verify"]);
    assert_eq!(code, 0, "{told}");
}

// Finding B5.
/// A command that owns the home waits for the turn of a chat that came later, and the chat goes on after it.
#[test]
fn a_chat_goes_on_after_the_command_that_owned_the_home() {
    let place = Place::new(
        "- calls: [{tool: file_write, arguments: {path: late.txt, text: late}}]\n\
         - says: It is written.\n- says: Still here.\n",
    );
    let mut command = place.command();
    command.arg("rpc").stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut owner = command.spawn().unwrap();
    let (mut asks, answers) = (owner.stdin.take().unwrap(), owner.stdout.take().unwrap());
    writeln!(asks, r#"{{"id": 1, "method": "system.status", "params": {{}}}}"#).unwrap();
    let mut answer = String::new();
    std::io::BufReader::new(answers).read_line(&mut answer).unwrap();
    let mut chat = place.scripted(&[]);
    chat.says("write it");
    chat.until(ASKED);
    drop(asks);
    chat.types("y");
    chat.until("It is written.");
    assert!(owner.wait().unwrap().success());
    chat.until("goes on with another one");
    chat.says("still there?");
    chat.until("Still here.");
    chat.says("/quit");
    chat.ends_with(0);
    let (code, told) = place.run(&["log", "verify"]);
    assert_eq!(code, 0, "{told}");
}

// Finding B4.
/// In the folder above the home there is no workspace, and the chat says so; a session that is resumed elsewhere keeps its own.
#[test]
fn a_chat_says_where_its_tools_work() {
    let place =
        Place::new("- says: Good morning.\n- calls: [{tool: file_list, arguments: {}}]\n- says: Seen.\n");
    let mut above = place.scripted_in(".", &[]);
    above.until("HF-1503");
    above.until("no file tools");
    above.says("/quit");
    above.ends_with(0);
    let mut first = place.scripted(&[]);
    first.until("session ");
    let session: String = first.until(" ·").trim().to_owned();
    first.says("hello");
    first.until("Good morning.");
    first.says("/quit");
    first.ends_with(0);
    fs::create_dir(place.path("other")).unwrap();
    fs::write(place.path("work/of-work.txt"), "").unwrap();
    let mut again = place.chat_in("other", &["--session", &session]);
    again.until("where this session was started");
    again.says("list");
    again.until("Seen.");
    again.says("/quit");
    again.ends_with(0);
    let (_, frames) = place.run(&["log", "export", &session]);
    assert!(frames.contains("of-work.txt"), "{frames}");
}

// Finding B6.
/// A reminder that is set in a chat is shown in it; one that is due while no chat is open, in the next one.
#[test]
fn a_reminder_is_shown_in_the_chat() {
    let place = Place::new("[]");
    let mut chat = place.chat(&[]);
    chat.says(r#"/schedule_once {"in": "1s", "text": "tea is ready"}"#);
    chat.until(ASKED);
    chat.types("y");
    chat.until("scheduler:");
    chat.until("tea is ready");
    chat.says(r#"/schedule_once {"in": "1s", "text": "the bread is done"}"#);
    chat.until(ASKED);
    chat.types("y");
    chat.until("I called");
    chat.says("/quit");
    chat.ends_with(0);
    let mut next = place.chat(&[]);
    next.until("scheduler:");
    next.until("the bread is done");
    next.says("/quit");
    next.ends_with(0);
    let (code, dead) = place.run(&["bus", "dead", "list", "--json"]);
    assert!(code == 0 && !dead.contains("HF-8011"), "{dead}");
}

/// A reminder that is set in a fresh home outlives a kill of every process, and is shown in the next chat, once.
#[test]
fn a_reminder_outlives_a_kill_and_is_shown_once() {
    let place = Place::new("[]");
    let mut chat = place.chat(&[]);
    chat.says(r#"/schedule_once {"in": "5s", "text": "tea is ready"}"#);
    chat.until(ASKED);
    chat.types("y");
    chat.until("I called");
    let owner = place.run(&["status", "--json"]).1;
    let owner = owner.split(r#""process":"#).nth(1).unwrap().trim_start();
    let owner: String = owner.chars().take_while(char::is_ascii_digit).collect();
    for process in [owner, chat.process().to_string()] {
        // The chat may be the owner.
        let _gone = Command::new("kill").args(["-9", &process]).status().unwrap();
    }
    drop(chat);
    let mut next = place.chat(&[]);
    next.until("scheduler:");
    next.until("tea is ready");
    next.says("/quit");
    next.ends_with(0);
    let mut last = place.chat(&[]);
    last.says(r#"/kv_get {"key": "nothing"}"#);
    let shown = last.until("I called");
    assert!(!shown.contains("tea is ready"), "{shown}");
    last.says("/quit");
    last.ends_with(0);
    let (code, events) = place.run(&["bus", "show", "system.user.notify", "--json"]);
    assert!(code == 0 && events.matches("tea is ready").count() == 1, "{events}");
    let (code, dead) = place.run(&["bus", "dead", "list", "--json"]);
    assert!(code == 0 && dead.trim().is_empty(), "{dead}");
}

/// What is typed in a chat is on the bus, once, and leads to one turn.
#[test]
fn a_chat_is_a_channel() {
    let place = Place::new("- says: Good morning.\n");
    let mut chat = place.scripted(&[]);
    chat.until("session ");
    let session: String = chat.until(" ·").trim().to_owned();
    chat.says("hello");
    chat.until("Good morning.");
    chat.says("/quit");
    chat.ends_with(0);
    let (code, events) = place.run(&["bus", "show", "user.message", "--json"]);
    let events: Vec<&str> = events.lines().collect();
    assert!(code == 0 && events.len() == 1, "{events:?}");
    for part in [r#""channel_id":"chat""#, r#""user_id":"owner""#, r#""text":"hello""#, session.as_str()] {
        assert!(events[0].contains(part), "{part} in {events:?}");
    }
    let (_, frames) = place.run(&["log", "export", &session]);
    assert_eq!(frames.matches(r#""kind":"input.received""#).count(), 1, "{frames}");
    let (code, told) = place.run(&["replay", &session]);
    assert_eq!(code, 0, "{told}");
}

// Finding B6.
/// Something that the user is to be told waits for a chat, across a restart, and no shutdown waits for it.
#[test]
fn a_notice_without_a_channel_waits_for_the_next_chat() {
    let place = Place::new("[]");
    let mut up = place.command().args(["up", "--unsupervised"]).spawn().unwrap();
    until("the owner listens", || place.run(&["status"]).1.contains("process"));
    let (code, told) = place.run(&["bus", "publish", "system.user.notify", r#"{"text": "the tide turns"}"#]);
    assert_eq!(code, 0, "{told}");
    // It is waited for channels that come up, and then for a chat.
    let waits = |told: &str| {
        told.lines().any(|line| line.contains("router.terminal") && line.contains(r#""open":1"#))
    };
    until("the notice waits for a chat", || waits(&place.run(&["bus", "status", "--json"]).1));
    assert_eq!(place.run(&["down"]).0, 0);
    up.wait().unwrap();
    let mut chat = place.chat(&[]);
    chat.until("the tide turns");
    chat.says("/quit");
    chat.ends_with(0);
    let (code, dead) = place.run(&["bus", "dead", "list", "--json"]);
    assert!(code == 0 && dead.trim().is_empty(), "{dead}");
}

/// Without a terminal and without anything to say there is one turn that calls a tool, whatever the folder.
#[test]
fn without_a_terminal_a_demonstration_calls_a_tool() {
    for (folder, tool) in [("work", "file_list"), ("home", "kv_get")] {
        let place = Place::new("[]");
        fs::create_dir_all(place.path("home")).unwrap();
        let mut command = place.command();
        command.current_dir(place.path(folder)).stdin(std::process::Stdio::null());
        let output = command.output().unwrap();
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && told.contains(&format!("I called `{tool}")), "{told}{errors}");
        assert!(told.contains(&format!("{tool} ran: ")) && told.contains("policy decided"), "{told}");
        assert!(!told.contains("It answered:\n\n{"), "a person reads it, not a parser: {told}");
    }
}
