//! The chat as a person has it: the real program in a pseudo-terminal, with a model that plays a script.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on should stop loudly")]

use std::fs;
use std::path::Path;
use std::process::Command;

use holdfast_testkit::terminal::TestTerminal;

const PROGRAM: &str = env!("CARGO_BIN_EXE_holdfast");

/// What is said first, then three writes that a person is asked about, an answer that never ends, and another write.
const SCRIPT: &str = r#"
- says: Good morning.
- calls: [{tool: file_write, arguments: {path: one.txt, text: first}}]
- says: The first is written.
- calls: [{tool: file_write, arguments: {path: two.txt, text: second}}]
- says: The second is written.
- calls: [{tool: file_write, arguments: {path: three.txt, text: third}}]
- says: The third was not wanted.
- stalls: This sentence has no end
"#;

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
        let mut command = self.command();
        command.arg("chat").args(more);
        TestTerminal::start(command, 100)
    }

    fn scripted(&self, more: &[&str]) -> TestTerminal {
        let model = format!("script:{}", self.path("script.yaml").display());
        let mut arguments = vec!["--model", &model];
        arguments.extend(more);
        self.chat(&arguments)
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

const ASKED: &str = "v all: ";

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
        assert!(output.status.success() && told.contains(&format!("I called `{tool}")), "{told}");
        assert!(told.contains(&format!("{tool} ran: ")) && told.contains("policy decided"), "{told}");
        assert!(!told.contains("It answered:\n\n{"), "a person reads it, not a parser: {told}");
    }
}
