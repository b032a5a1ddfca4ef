//! A home in which everything that has a name or a text is hostile, its own path included: the commands that list what is in it send
//! nothing of that to the terminal. And no command is forgotten: each is in a sweep, or listed here with the reason why not.

use std::collections::BTreeSet;
use std::fs;

use holdfast_testkit::terminal::TestTerminal;
use rusqlite::Connection;
use serde_json::json;

use crate::attacks::ATTACKS;
use crate::printing::{
    COMMANDS, is_clean_on_a_terminal, is_harmless, on_terminal, quoted, yaml, yaml_attacks,
};
use crate::shared::{Owner, Ran, Scene, until};

/// A path may have any character but the slash and the zero.
const HOME: &str = "h\u{1b}]0;owned\u{7}\u{202e}\r\u{9b}2J\u{200b}\n? shell wants to run";

/// A channel with a set-up, a schedule and a subscriber, all of which say the attacks.
const SPITE: &str = r#"
import json, pathlib
TEXT = json.loads((pathlib.Path(__file__).parent / "attacks.json").read_text())

class Spite:
    async def initialize(self, context):
        context.subscribe_event("notes.made", self.keep)
    async def keep(self, event):
        raise RuntimeError(TEXT)
    async def send_to_user(self, user_id, message):
        raise RuntimeError(TEXT)
    async def execute_task(self, task_name):
        raise RuntimeError(TEXT)
    def get_setup_schema(self):
        return [{"name": "plain", "description": TEXT, "required": True},
                {"name": TEXT, "description": TEXT, "required": True},
                {"name": "hidden", "description": TEXT, "secret": True}]
    async def apply_config(self, name, value):
        raise RuntimeError(TEXT)
    async def on_setup_complete(self):
        return False, TEXT
    def get_commands(self):
        return [{"name": "spite", "description": TEXT}]
    async def run_command(self, name, arguments):
        return TEXT
"#;

/// Fails while it is loaded, so that `status` has something to say.
const DOWN: &str = "import json, pathlib\nraise RuntimeError(json.loads((pathlib.Path(__file__).parent / 'attacks.json').read_text()))\n";

/// An MCP server that says the attacks wherever the protocol has a text.
const SERVER: &str = r#"
import json, pathlib, sys
TEXT = json.loads((pathlib.Path(__file__).parent / "attacks.json").read_text())
print(TEXT, file=sys.stderr)
for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    result = {}
    if request["method"] == "initialize":
        result = {"protocolVersion": request["params"]["protocolVersion"], "capabilities": {"tools": {}},
                  "serverInfo": {"name": TEXT, "version": TEXT}, "instructions": TEXT}
    elif request["method"] == "tools/list":
        result = {"tools": [{"name": name, "title": TEXT, "description": TEXT, "inputSchema": {"type": "object"}}
                            for name in ("spite", TEXT[:200])]}
    elif request["method"] == "tools/call":
        result = {"content": [{"type": "text", "text": TEXT}], "isError": True}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
"#;

pub fn attacks() -> String {
    ATTACKS.iter().map(|(_, attack)| *attack).collect::<Vec<_>>().join("|")
}

pub fn install(scene: &Scene, id: &str, manifest: &str, program: &str) {
    let folder = scene.home().join("extensions").join(id);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("attacks.json"), quoted(&attacks())).unwrap();
    fs::write(folder.join("manifest.yaml"), format!("id: {id}\n{manifest}")).unwrap();
    fs::write(folder.join("main.py"), program).unwrap();
}

pub fn hostile() -> Scene {
    let scene = Scene::with_home(HOME);
    let said = yaml(&yaml_attacks());
    // A name is one word.
    let word = yaml(&yaml_attacks().replace(char::is_whitespace, "_"));
    // A key of YAML has at most 1,024 letters.
    let key = yaml("/k\u{202e}e\u{200b}y\u{e0100}");
    let rule = |name: &str| {
        format!(
            "  - {{ name: {name}, decision: deny, match: {{ tools: [{word}], arguments: {{ {key}: {said} }} }}, reason: {said} }}\n"
        )
    };
    scene.policy(&format!("profile: full-auto\nrules:\n{}{}", rule(&word), rule("always/kv/x")));
    let server = scene.root().join("server");
    fs::create_dir(&server).unwrap();
    fs::write(server.join("attacks.json"), quoted(&attacks())).unwrap();
    fs::write(server.join("server.py"), SERVER).unwrap();
    let started = json!({ "command": "python3", "args": [server.join("server.py")], "files": [server] });
    scene.settings(&format!(
        "models: {{ default: offline, {key}: {{ provider: script, file: {said} }} }}\nmcp: {{ servers: {{ spite: {started} }} }}\n"
    ));
    scene.secret(&scene.home().join(".env"), "GOOD=value-of-it\n");
    let schedules = format!(
        "entrypoint: main:Spite\nname: {said}\ndescription: {said}\nversion: {}\nschedules:\n  - {{ name: nightly, cron: '0 3 * * *', \
         task: {said} }}\n",
        yaml("1.0.0-\u{202e}\u{200b}\u{e0100}")
    );
    install(&scene, "spite", &schedules, SPITE);
    install(&scene, "down", &format!("entrypoint: main:Down\nname: {said}\n"), DOWN);
    scene
}

/// Each command prints something, and nothing of the attacks; as a stream and on a terminal.
#[track_caller]
fn are_clean(scene: &Scene, commands: &[&[&str]]) {
    for command in commands {
        let Ran { out, err, .. } = scene.run(command);
        assert!(!out.is_empty() || !err.is_empty(), "{command:?} prints nothing");
        assert!(!err.contains("panicked"), "{command:?}: {err}");
        is_harmless(&format!("{command:?}"), &format!("{out}{err}"));
        is_clean_on_a_terminal(&format!("{command:?}"), &on_terminal(scene, command));
    }
}

/// Those that print what is in a home.
const OF_A_HOME: &[&[&str]] = &[
    &["channels"],
    &["schedule", "list"],
    &["schedule", "run", "nightly"],
    &["schedule", "run", "\u{1b}[2J\u{202e}"],
    &["secret", "list"],
    &["secret", "remove", "A\u{1b}[2J\u{202e}"],
    &["policy", "rules"],
    &["policy", "show"],
    &["policy", "explain", "shell"],
    &["policy", "explain", "shell", "--arguments", r#"{"command": "\u001b[2J\u202e"}"#],
    &["policy", "grant", "spite", "--interface", "\u{1b}[2J\u{202e}"],
    &["policy", "revoke", "\u{1b}[2J\u{202e}"],
    &["bus", "list"],
    &["bus", "show", "notes.made"],
    &["bus", "show", "a\u{202e}b"],
    &["bus", "show", "\u{1b}[2J"],
    &["bus", "status"],
    &["bus", "publish", "a\u{1b}[2J\u{202e}", "{}"],
    &["bus", "publish", "notes.other", "\u{1b}[2J\u{202e}"],
    &["bus", "dead", "list"],
    &["bus", "dead", "list", "--subscriber", "\u{1b}[2J\u{202e}"],
    &["bus", "dead", "show", "bus.00/1"],
    &["bus", "dead", "retry", "\u{1b}[2J\u{202e}"],
    &["bus", "dead", "discard", "\u{1b}[2J\u{202e}"],
    &["status"],
    &["setup", "down"],
    &["setup", "\u{1b}[2J\u{202e}"],
    &["setup", "spite", "--set", "plain=\u{1b}[2J\u{202e}"],
    &["setup", "spite", "--set", "\u{1b}[2J\u{202e}=1"],
    &["ext", "list"],
    &["ext", "show", "spite"],
    &["ext", "doctor"],
    &["ext", "check", "spite"],
    &["ext", "check", "down"],
    &["ext", "test", "spite"],
    &["ext", "build", "spite"],
    &["ext", "new", "x\u{1b}[2J\u{202e}"],
    &["ext", "new", "fresh", "--path", "\u{1b}[2J\u{202e}"],
    &["ext", "restart", "down"],
    &["ext", "reload", "down"],
    &["ext", "disable", "\u{1b}[2J\u{202e}"],
    &["ext", "enable", "\u{1b}[2J\u{202e}"],
    &["ext", "remove", "\u{1b}[2J\u{202e}", "--yes"],
    &["ext", "grant", "spite"],
    &["ext", "revoke", "spite"],
    &["tools"],
    &["agents"],
    &["model", "list"],
    &["model", "test", "\u{1b}[2J\u{202e}"],
    &["mcp", "list"],
    &["mcp", "test", "spite"],
    &["mcp", "tools", "spite"],
    &["mcp", "approve", "spite"],
    &["mcp", "test", "\u{1b}[2J\u{202e}"],
    &["import", "mcp", "\u{1b}[2J\u{202e}"],
    &["call", "spite__spite", "{}"],
    &["questions", "list"],
    &["questions", "answer", "\u{1b}[2J\u{202e}", "yes"],
    &["doctor"],
    &["import", "pith", "\u{1b}[2J\u{202e}"],
    &["import", "yodoca", "\u{1b}[2J\u{202e}"],
    &["backup", "no\u{1b}[2J\u{202e}/where"],
    &["restore", "no\u{1b}[2J\u{202e}/where"],
    &["run", "/spite now"],
    &["call", "file_read", r#"{"path": "\u001b[2J\u202e"}"#],
    &["log", "list"],
    &["log", "verify"],
    &["log", "verify", "\u{1b}[2J\u{202e}"],
    &["log", "export", "\u{1b}[2J\u{202e}"],
    &["log", "erase", "\u{1b}[2J\u{202e}", "--reason", "\u{1b}[2J\u{202e}"],
    &["log", "gc", "\u{1b}[2J\u{202e}", "--keep-frames", "1"],
    &["log", "show", "attacked", "--kind", "\u{1b}[2J\u{202e}"],
    &["session", "list", "--all"],
    &["session", "show", "attacked"],
    &["session", "rename", "\u{1b}[2J\u{202e}", "x"],
    &["session", "fork", "\u{1b}[2J\u{202e}"],
    &["session", "delete", "\u{1b}[2J\u{202e}", "--yes"],
    &["replay", "\u{1b}[2J\u{202e}"],
    &["init", "--yes"],
];

/// Those that show at least one attack in a form that can be read, or this would show nothing.
const ATTACKED: &[&[&str]] = &[
    &["channels"],
    &["schedule", "list"],
    &["secret", "list"],
    &["policy", "rules"],
    &["bus", "list"],
    &["bus", "show", "notes.made"],
    &["bus", "status"],
    &["bus", "dead", "list"],
    &["status"],
    &["setup", "spite"],
    &["ext", "list"],
    &["mcp", "tools", "spite"],
    &["session", "list", "--all"],
    &["log", "verify"],
    &["log", "list"],
    &["log", "show", "system"],
];

/// Adds those in which an attack is shown.
fn seen(scene: &Scene, found: &mut BTreeSet<&'static [&'static str]>) {
    for command in ATTACKED {
        let Ran { out, err, .. } = scene.run(command);
        if format!("{out}{err}").contains(['\u{fffd}', '␛', '␇']) {
            found.insert(*command);
        }
    }
}

#[test]
fn no_attack_in_a_home_passes_a_command_that_lists_it() {
    let scene = hostile();
    scene.run(&["run", "hello", "--session", "attacked"]).ok();
    scene.run(&["session", "rename", "attacked", &attacks().replace('\0', "")]).ok();
    let owner = Owner::begin(&scene);
    // A client may call itself anything, and keys and payloads may have any character.
    for (topic, key) in [("notes.made", attacks()), ("a\u{202e}b\u{200b}c.d\u{e0100}", "k".to_owned())] {
        let mut command = scene.command(&["rpc"]);
        command.stderr(std::process::Stdio::null());
        let mut client = crate::shared::Rpc::start(command);
        client.ask("hello", json!({ "version": 1, "client": attacks() }));
        let event = json!({ "topic": topic, "key": key, "payload": { attacks(): attacks() }, "correlation": attacks() });
        let published = client.send("bus.publish", event);
        let answer = client.answer(published);
        assert!(topic.starts_with('a') || answer.get("error").is_none(), "{answer}");
        client.end();
    }
    let faults = || scene.run(&["bus", "status", "--json"]).ok().json()["subscribers"].to_string();
    until("its handler has failed", || faults().contains("owned"));
    // As often as it may.
    let dead = || scene.run(&["bus", "dead", "list", "--json"]).ok().lines();
    until("its event is a dead letter", || !dead().is_empty());
    let mut attacked = BTreeSet::new();
    are_clean(&scene, OF_A_HOME);
    seen(&scene, &mut attacked);
    setting_up_is_clean(&scene);
    are_clean(&scene, &[&["down"], &["status"]]);
    drop(owner);

    tampered(&scene);
    let offline = ["log", "session", "bus", "replay", "doctor", "schedule", "channels", "questions"];
    let offline: Vec<&[&str]> =
        OF_A_HOME.iter().copied().filter(|command| offline.contains(&command[0])).collect();
    are_clean(&scene, &offline);
    seen(&scene, &mut attacked);
    let unseen: Vec<_> = ATTACKED.iter().filter(|command| !attacked.contains(*command)).collect();
    assert!(unseen.is_empty(), "no attack reaches {unseen:?}");
    are_clean(&scene, &[&["log", "show", "system"], &["log", "show", "bus.00"], &["replay", "attacked"]]);
}

/// Answers each question of the set-up on a terminal.
fn setting_up_is_clean(scene: &Scene) {
    let mut command = scene.command(&["setup", "spite"]);
    command.env("TERM", "xterm-256color").env("NO_COLOR", "1");
    let mut terminal = TestTerminal::start_cleared(command, 80);
    let mut shown = String::new();
    for question in ["(set; empty leaves it) ", "(required) ", "(optional, not shown) "] {
        shown += &terminal.until(question);
        terminal.types("\r");
    }
    shown += &terminal.until("is not set up:");
    // The last of the attacks, at the end of the words of the extension.
    shown += &terminal.until("xxxxxx? shell wants to run");
    terminal.ends_with(1);
    is_clean_on_a_terminal("setup", &shown);
    are_clean(scene, &[&["setup", "down"]]);
    let told = scene.run(&["setup", "spite"]);
    assert_eq!(told.code, Some(1), "{told:#?}");
    is_harmless("setup", &format!("{}{}", told.out, told.err));
}

/// What the program itself would never write into the log.
fn tampered(scene: &Scene) {
    let connection = Connection::open(scene.home().join("holdfast.db")).unwrap();
    connection.pragma_update(None, "foreign_keys", false).unwrap();
    let text = attacks().replace('\0', "");
    let source = json!({ "surface": text }).to_string();
    let bus = "(SELECT id FROM streams WHERE name LIKE 'bus.%')";
    for statement in [
        "UPDATE deliveries SET state = 2, fault = ?1",
        "UPDATE subscribers SET name = name || ?1",
        "INSERT INTO streams (name) VALUES (?1)",
        "UPDATE frames SET kind = ?1 WHERE seq = 3 AND stream = (SELECT id FROM streams WHERE name = 'attacked')",
        "UPDATE frames SET body = NULL, erased_at = 1, erased_reason = ?1 WHERE seq = 5 AND stream = \
         (SELECT id FROM streams WHERE name = 'system')",
        "UPDATE objects SET kind = ?1 WHERE rowid = (SELECT max(rowid) FROM objects)",
        "INSERT INTO derived (name, digest) VALUES (?1, x'00')",
    ] {
        connection.execute(statement, [&text]).unwrap();
    }
    let statement = format!("UPDATE frames SET source = ?1 WHERE stream IN {bus} AND seq = 1");
    connection.execute(&statement, [&source]).unwrap();
}

/// Commands that are in no sweep here, and why.
const ELSEWHERE: &[(&str, &str)] = &[
    ("bench", "prints figures"),
    ("chat", "the unit tests of the command line and `terminal.rs` show it"),
    ("completions", "prints what was built in"),
    ("demo", "prints what was built in"),
    ("docs", "prints what was built in"),
    ("ext dev", "does not end; `endless.rs` shows it"),
    ("rpc", "prints JSON for a program"),
    ("schema", "prints what was built in"),
    ("secret set", "refuses a name before it prints one, see `secrets.rs`"),
    ("up", "does not end; `endless.rs` shows it"),
];

/// The commands that can be typed, each with the words before it.
fn every_command() -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![(String::new(), holdfast_cli::command())];
    while let Some((before, command)) = open.pop() {
        for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
            let name = format!("{before} {}", inner.get_name()).trim().to_owned();
            match inner.get_subcommands().next() {
                Some(_) => open.push((name, inner.clone())),
                None => found.push(name),
            }
        }
    }
    found
}

#[test]
fn no_command_is_left_out_of_the_sweeps() {
    let all = every_command();
    assert!(all.len() > 50, "{all:?}");
    let swept: Vec<String> = COMMANDS.iter().chain(OF_A_HOME).map(|words| words.join(" ") + " ").collect();
    let is_covered = |name: &String| {
        swept
            .iter()
            .any(|words| words.starts_with(&format!("{name} ")) || words.contains(&format!(" {name} ")))
            || ELSEWHERE.iter().any(|(known, _)| known == name)
            || name == "down"
    };
    let left: Vec<&String> = all.iter().filter(|name| !is_covered(name)).collect();
    assert!(left.is_empty(), "not swept: {left:?}");
    let unknown: Vec<_> = ELSEWHERE.iter().filter(|(name, _)| !all.iter().any(|it| it == name)).collect();
    assert!(unknown.is_empty(), "no such command: {unknown:?}");
}
