//! Text of models, tools and extensions through the commands that print it: it does nothing to a terminal, can be seen, and begins no
//! row that looks like one of ours. The findings M3, M5 and M11.

use std::fs;

use holdfast_testkit::terminal::TestTerminal;
use serde_json::Value;

use crate::attacks::{ATTACKS, OWN_ROWS, is_forbidden};
use crate::shared::{Ran, Scene};

const COLUMNS: u16 = 80;

/// A program that has the attacks in its description, its tool's description, its results, errors and log.
const PROGRAM: &str = r#"
import json, sys

def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

with open("attacks.json") as file:
    text = json.load(file)

for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message or "method" not in message:
        continue
    number = message["id"]
    if message["method"] == "hello":
        tool = {"input_schema": {"type": "object"}, "effects": "pure", "description": text}
        send(id=number, result={"protocol": "0.1", "tools": [{"name": name, **tool} for name in ("spill", "crash")]})
    elif message["method"] == "tool" and message["params"]["tool"] == "crash":
        send(id=number, error={"code": 1, "message": text})
    elif message["method"] == "tool":
        send(method="log", params={"level": "warning", "text": text})
        send(id=number, result=text)
    else:
        send(id=number, result=None)
"#;

/// Raises the attacks while it is loaded.
const RAISES: &str = "import json, pathlib\nraise RuntimeError(json.loads((pathlib.Path(__file__).parent / 'attacks.json').read_text()))\n";

/// What YAML takes: it refuses control characters even as escapes.
pub fn yaml_attacks() -> String {
    let seen = ATTACKS.iter().map(|(_, attack)| *attack);
    let seen = seen.filter(|attack| !attack.contains(|it: char| it.is_control() && it != '\n'));
    seen.collect::<Vec<_>>().join("|")
}

/// YAML in ASCII, which has an escape of its own for the higher planes.
pub fn yaml(text: &str) -> String {
    let escape = |letter: char| match u32::from(letter) {
        code @ 0..=0xffff => format!("\\u{code:04x}"),
        code => format!("\\U{code:08x}"),
    };
    format!("\"{}\"", text.chars().map(escape).collect::<String>())
}

/// A model that says this.
fn saying(scene: &Scene, text: &str) -> String {
    let file = scene.root().join("says.yaml");
    fs::write(&file, format!("- says: {}\n", yaml(text))).unwrap();
    format!("script:{}", file.display())
}

/// JSON in ASCII.
pub fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    let mut units = [0; 2];
    for unit in text.chars().flat_map(|letter| letter.encode_utf16(&mut units).to_vec()) {
        out.push_str(&format!("\\u{unit:04x}"));
    }
    out + "\""
}

fn install(scene: &Scene, id: &str, manifest: &str, program: Option<&str>, text: &str) {
    let folder = scene.home().join("extensions").join(id);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("attacks.json"), quoted(text)).unwrap();
    fs::write(folder.join("manifest.yaml"), format!("id: {id}\nname: {id}\n{manifest}")).unwrap();
    if let Some(program) = program {
        fs::write(folder.join("main.py"), program).unwrap();
    }
}

fn planted() -> (Scene, String) {
    let scene = Scene::new();
    let text = ATTACKS.iter().map(|(_, attack)| *attack).collect::<Vec<_>>().join("|");
    let described = format!("description: {}\n", yaml(&yaml_attacks()));
    install(&scene, "spiller", &format!("{described}command: [python3, main.py]\n"), Some(PROGRAM), &text);
    install(&scene, "raiser", "entrypoint: main:Raiser\n", Some(RAISES), &text);
    install(&scene, "adviser", &format!("{described}agent: {{ instructions: Advise. }}\n"), None, &text);
    (scene, text)
}

/// What a terminal would be sent, without what the program writes in places of its own.
#[track_caller]
pub fn is_harmless(what: &str, shown: &str) {
    // In prose an emoji may have one selector of its style.
    let shown = shown.replace("\u{2764}\u{fe0f}", "");
    if let Some(place) = shown.find(is_forbidden) {
        let near: String = shown[place..].chars().take(20).collect();
        panic!("{what} prints {near:?}");
    }
}

/// What is called after the attacks were planted.
pub const COMMANDS: &[&[&str]] = &[
    &["call", "spill", "{}"],
    &["call", "crash", "{}"],
    &["--verbose", "call", "spill", "{}"],
    &["run", "/crash {}"],
    &["--verbose", "run", "/spill {}"],
    &["tools"],
    &["agents"],
    &["ext", "list"],
    &["ext", "show", "spiller"],
    &["ext", "show", "raiser"],
    &["ext", "check", "spiller"],
    &["ext", "check", "raiser"],
    &["ext", "check", "adviser"],
    &["ext", "doctor"],
    &["ext", "doctor", "raiser"],
    &["log", "list"],
    &["log", "show", "attacked"],
    &["log", "show", "system"],
    &["session", "list", "--all"],
    &["session", "show", "attacked"],
    &["bus", "status"],
    &["bus", "dead", "list"],
    &["bus", "dead", "show", "\u{1b}[2J\u{202e}"],
    &["policy", "show"],
    &["policy", "explain", "spill"],
    &["model", "list"],
    &["replay", "attacked"],
    &["doctor"],
    &["call", "\u{1b}[2J\u{e0100}", "{}"],
    &["call", "spill", "\u{1b}]0;x\u{7}"],
    &["session", "show", "\u{9b}2J\u{200d}"],
    &["log", "show", "\u{1b}[2J\u{fe0f}"],
    &["ext", "show", "\u{1b}c\u{2060}"],
    &["run", "hello", "--model", "\u{1b}c\u{202e}"],
    &["run", "hello", "--attach", "\u{1b}c\u{202e}"],
    &["no\u{1b}[2Jsuch\u{202e}"],
];

#[test]
fn no_attack_passes_a_command_that_prints() {
    let (scene, text) = planted();
    let says = saying(&scene, &text);
    // No argument of a program has a zero.
    let text = text.replace('\0', "");
    let said = scene.run(&["run", "hello", "--session", "attacked", "--model", &says]).ok();
    is_harmless("run", &format!("{}{}", said.out, said.err));
    // A user's words, and a name for the session, come from a channel or a script as well.
    scene.run(&["run", &text, "--session", "attacked", "--model", &says]).ok();
    scene.run(&["session", "rename", "attacked", &text]).ok();
    for command in COMMANDS {
        let Ran { out, err, .. } = scene.run(command);
        assert!(!out.is_empty() || !err.is_empty(), "{command:?} prints nothing");
        is_harmless(&format!("{command:?}"), &format!("{out}{err}"));
    }
}

/// The rows of a terminal.
fn rows(text: &str) -> Vec<String> {
    let mut rows = Vec::new();
    for line in text.replace('\r', "").split('\n') {
        let letters: Vec<char> = line.chars().collect();
        rows.extend(letters.chunks(usize::from(COLUMNS)).map(|row| row.iter().collect::<String>()));
    }
    rows
}

/// What a command shows on a terminal.
#[track_caller]
pub fn on_terminal(scene: &Scene, arguments: &[&str]) -> String {
    let command = scene.command(arguments);
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", "\"$@\"; echo; echo THE-END", "sh"]).arg(command.get_program());
    shell.args(command.get_args()).current_dir(scene.work());
    for (name, value) in command.get_envs() {
        shell.env(name, value.unwrap_or_default());
    }
    shell.env("TERM", "xterm-256color").env("NO_COLOR", "1");
    let mut terminal = TestTerminal::start_cleared(shell, COLUMNS);
    let shown = terminal.until("THE-END");
    terminal.ends_with(0);
    shown
}

/// Nothing of what a terminal was sent acts on it, and no row looks like one of ours.
#[track_caller]
pub fn is_clean_on_a_terminal(what: &str, shown: &str) {
    for row in rows(shown) {
        assert!(!OWN_ROWS.iter().any(|own| row.starts_with(own)), "{what}: {row:?}");
    }
    is_harmless(&format!("{what} on a terminal"), &shown.replace('\r', ""));
}

#[test]
fn no_attack_begins_a_row_of_the_terminal() {
    let (scene, text) = planted();
    let says = saying(&scene, &text);
    // No argument of a program has a zero.
    let text = text.replace('\0', "");
    scene.run(&["run", &text, "--session", "attacked", "--model", &says]).ok();
    let commands: &[&[&str]] = &[
        &["run", "hello", "--model", &says],
        &["call", "spill", "{}"],
        &["call", "crash", "{}"],
        &["session", "show", "attacked"],
        &["session", "list", "--all"],
        &["log", "show", "attacked"],
        &["tools"],
        &["agents"],
        &["ext", "list"],
        &["ext", "check", "spiller"],
        &["ext", "check", "raiser"],
        &["ext", "doctor"],
    ];
    for command in commands {
        let shown = on_terminal(&scene, command);
        is_clean_on_a_terminal(&format!("{command:?}"), &shown);
    }
}

/// What a program reads is what was written: only a terminal is protected from it.
#[test]
fn a_program_reads_what_was_written() {
    let (scene, text) = planted();
    let ran = scene.run(&["--json", "call", "spill", "{}"]).ok();
    assert_eq!(ran.json()["result"], Value::String(text));
}
