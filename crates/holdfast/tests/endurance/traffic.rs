//! The home that is put under load: a channel with a spool folder, tools with a ledger outside of the log, a gate, a schedule.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::model_server::ModelServer;
use crate::shared::Scene;

/// Takes messages from a spool folder and appends answers to a file. A message's file is removed once the message is on disk, which
/// is when `recv` is called again.
const CHANNEL: &str = r#"
"""A spool folder."""
import asyncio, json, os, pathlib

HOME = pathlib.Path.home()
taken = None


async def connect() -> None:
    (HOME / "inbox").mkdir(exist_ok=True)


async def recv() -> Message:
    global taken
    if taken is not None:
        taken.unlink(missing_ok=True)
    while True:
        for name in sorted(os.listdir(HOME / "inbox")):
            if name.endswith(".msg"):
                taken = HOME / "inbox" / name
                sender, _, text = taken.read_text().partition(" ")
                return Message(text=text, sender=sender, channel="spool", metadata={"message_id": name})
        await asyncio.sleep(0.02)


async def send(message: Message) -> None:
    line = {"to": message.sender, "text": message.text, "delivery": message.metadata.get("delivery")}
    with open(HOME / "sent", "a") as file:
        file.write(json.dumps(line) + "\n")
        file.flush()
        os.fsync(file.fileno())
"#;

/// A tool with a side effect that the log cannot undo.
const BOOK: &str = r#"
import os, pathlib

__effects__ = "write"


def run(id: str) -> str:
    """Books an id."""
    with open(pathlib.Path.home() / "ledger", "a") as file:
        file.write(id + "\n")
        file.flush()
        os.fsync(file.fileno())
    return "booked " + id
"#;

/// The same as a class that needs time to start.
const NOTES: &str = r#"
import asyncio, os


class Notes:
    async def initialize(self, context):
        self.context = context
        await asyncio.sleep(0.3)

    def note(self, id: str) -> str:
        with open(self.context.data_dir / "ledger", "a") as file:
            file.write(id + "\n")
            file.flush()
            os.fsync(file.fileno())
        return "noted " + id

    def get_tools(self):
        schema = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}
        note = {"name": "note", "description": "Notes an id.", "input_schema": schema, "effects": "write", "function": self.note}
        look = {"name": "look", "description": "Looks an id up.", "input_schema": schema, "effects": "read",
                "function": lambda id: "seen " + id}
        return [note, look]

    async def execute_task(self, task_name):
        with open(self.context.data_dir / "ticks", "a") as file:
            file.write("tick\n")
            file.flush()
            os.fsync(file.fileno())
"#;

const NOTES_MANIFEST: &str =
    "id: notes\nname: Notes\nentrypoint: main:Notes\nschedules:\n  - { name: tick, cron: every 2s }\n";

/// Denies what is marked as forbidden, and needs time to start as well.
const WARDEN: &str = r#"
import asyncio


class Warden:
    async def initialize(self, context):
        await asyncio.sleep(0.5)

    async def tool_gate(self, request):
        if request["call"]["arguments"]["id"].endswith("forbidden"):
            return {"decision": "deny", "reason": "forbidden"}
        return {"decision": "allow"}
"#;

/// What a message asks for, by its number.
const KINDS: [&str; 4] = ["book", "note", "look", "book-forbidden"];

/// A home under load.
pub struct Traffic {
    pub scene: Scene,
    /// How many messages were put into the spool folder.
    pub messages: usize,
}

/// An answer that the channel sent.
#[derive(Clone, Debug)]
pub struct Sent {
    pub to: String,
    pub text: String,
    pub repeat: bool,
}

impl Traffic {
    pub fn new() -> Self {
        let (scene, model) = (Scene::new(), ModelServer::start());
        let url = format!("http://127.0.0.1:{}/v1", model.port);
        scene.settings(&format!(
            "models:\n  default: main\n  main: {{ provider: openai_compatible, model: m, base_url: '{url}' }}\n"
        ));
        scene.policy("profile: full-auto\n");
        let extensions = scene.home().join("extensions");
        for (path, text) in [
            ("channels/spool.py", CHANNEL),
            ("tools/book.py", BOOK),
            ("notes/main.py", NOTES),
            ("notes/manifest.yaml", NOTES_MANIFEST),
            ("warden/main.py", WARDEN),
            (
                "warden/manifest.yaml",
                "id: warden\nname: Warden\nentrypoint: main:Warden\nhooks: [{ point: tool_gate }]\n",
            ),
        ] {
            let path = extensions.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        fs::create_dir_all(scene.home().join("data/spool/inbox")).unwrap();
        Self { scene, messages: 0 }
    }

    /// Puts the next message of one of three users into the spool folder.
    pub fn post(&mut self) {
        let number = self.messages;
        self.messages += 1;
        let (id, tool) = message(number);
        let inbox = self.scene.home().join("data/spool/inbox");
        let text = format!("user{} {id} {tool}", number % 3);
        let (draft, path) = (inbox.join(format!("{number:06}.tmp")), inbox.join(format!("{number:06}.msg")));
        fs::write(&draft, text).unwrap();
        fs::rename(draft, path).unwrap();
    }

    /// Every answer that was sent, in order.
    pub fn sent(&self) -> Vec<Sent> {
        let text = fs::read_to_string(self.scene.home().join("data/spool/sent")).unwrap_or_default();
        let read = |line: &str| {
            let line: Value = serde_json::from_str(line).ok()?;
            Some(Sent {
                to: line["to"].as_str()?.to_owned(),
                text: line["text"].as_str()?.to_owned(),
                repeat: line["delivery"]["repeat"] == true,
            })
        };
        // The last line may be half written.
        text.lines().filter_map(read).collect()
    }

    /// How often the scheduled task ran, as it counted itself.
    pub fn ticks(&self) -> usize {
        let ledger = self.scene.home().join("data/notes/ticks");
        fs::read_to_string(ledger).unwrap_or_default().lines().count()
    }

    /// How often each id had its effect.
    pub fn effects(&self) -> BTreeMap<String, usize> {
        let mut counted = BTreeMap::new();
        for ledger in ["data/book/ledger", "data/notes/ledger"] {
            let path: PathBuf = self.scene.home().join(ledger);
            for id in fs::read_to_string(path).unwrap_or_default().lines() {
                *counted.entry(id.to_owned()).or_default() += 1;
            }
        }
        counted
    }
}

/// The id of a message and the tool that it asks for.
pub fn message(number: usize) -> (String, &'static str) {
    match KINDS[number % KINDS.len()] {
        "book-forbidden" => (format!("m{number:06}-forbidden"), "book"),
        tool => (format!("m{number:06}"), tool),
    }
}
