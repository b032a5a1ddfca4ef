//! The extensions of the home under load. What they do outside of the log goes to ledgers in their data folders, which are compared with the
//! log afterwards.

/// The files of the extensions, below the home's folder of them.
pub const FILES: [(&str, &str); 14] = [
    ("channels/spool.py", SPOOL),
    ("tools/book.py", BOOK),
    ("notes/main.py", NOTES),
    ("notes/manifest.yaml", NOTES_MANIFEST),
    ("warden/main.py", WARDEN),
    (
        "warden/manifest.yaml",
        "id: warden\nname: Warden\nentrypoint: main:Warden\nhooks: [{ point: tool_gate }]\n",
    ),
    ("desk/main.py", DESK),
    ("desk/counter.py", COUNTER),
    ("desk/manifest.yaml", "id: desk\nname: Desk\nentrypoint: main:Desk\n"),
    ("screen/main.py", SCREEN),
    ("screen/counter.py", COUNTER),
    ("screen/manifest.yaml", "id: screen\nname: Screen\nentrypoint: main:Screen\n"),
    ("audit/main.py", AUDIT),
    ("audit/manifest.yaml", AUDIT_MANIFEST),
];

/// The channels. Each has its messages in the folder `inbox` of its data, and its answers in the file `sent` there.
pub const CHANNELS: [&str; 3] = ["spool", "desk", "screen"];

/// The schedules, as extension and name. Each counts its runs in the file `runs.NAME` of the extension's data.
pub const SCHEDULES: [(&str, &str); 3] = [("notes", "tick"), ("notes", "tock"), ("audit", "beat")];

/// Extensions that are edited while the home is in use.
pub const EDITED: [&str; 4] = ["tools/book.py", "notes/main.py", "desk/main.py", "warden/main.py"];

/// Takes messages from a spool folder and appends answers to a file. A message's file is removed once the message is on disk, which
/// is when `recv` is called again.
const SPOOL: &str = r#"
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

/// What the channels that are classes share: the same, with the methods of a class.
const COUNTER: &str = r#"
import asyncio, json, os


class Counter:
    async def initialize(self, context):
        self.context = context

    async def run_background(self):
        inbox = self.context.data_dir / "inbox"
        while True:
            for name in sorted(it for it in os.listdir(inbox) if it.endswith(".msg")):
                sender, _, text = (inbox / name).read_text().partition(" ")
                await self.context.on_user_message(text, user_id=sender, message_id=name)
                (inbox / name).unlink()
            await asyncio.sleep(0.02)

    def answered(self, user, text, delivery):
        with open(self.context.data_dir / "sent", "a") as file:
            file.write(json.dumps({"to": user, "text": text, "delivery": delivery}) + "\n")
            file.flush()
            os.fsync(file.fileno())
"#;

/// A channel that is a class.
const DESK: &str = r#"
from counter import Counter


class Desk(Counter):
    async def send_to_user(self, user_id, message, delivery):
        self.answered(user_id, message, delivery)
"#;

/// The same with streams.
const SCREEN: &str = r#"
from counter import Counter


class Screen(Counter):
    async def on_stream_start(self, user_id):
        pass

    async def on_stream_chunk(self, user_id, chunk):
        pass

    async def on_stream_status(self, user_id, status):
        pass

    async def on_stream_end(self, user_id, text, delivery):
        self.answered(user_id, text, delivery)

    async def send_to_user(self, user_id, message, delivery):
        self.answered(user_id, message, delivery)
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

/// The same as a class that needs time to start. Its tasks count their runs, and one of them publishes events: a number is taken before it
/// is published, so that none is published twice, and written down once it is on disk.
const NOTES: &str = r#"
import asyncio, os


class Notes:
    async def initialize(self, context):
        self.context = context
        await asyncio.sleep(0.3)

    def write(self, name, line):
        with open(self.context.data_dir / name, "a") as file:
            file.write(line + "\n")
            file.flush()
            os.fsync(file.fileno())

    def note(self, id: str) -> str:
        self.write("ledger", id)
        return "noted " + id

    def get_tools(self):
        schema = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}
        note = {"name": "note", "description": "Notes an id.", "input_schema": schema, "effects": "write", "function": self.note}
        look = {"name": "look", "description": "Looks an id up.", "input_schema": schema, "effects": "read",
                "function": lambda id: "seen " + id}
        return [note, look]

    async def execute_task(self, task_name):
        self.write("runs." + task_name, task_name)
        for _ in range(3 if task_name == "tick" else 0):
            taken = self.context.data_dir / "taken"
            number = taken.stat().st_size if taken.exists() else 0
            with open(taken, "a") as file:
                file.write(".")
                file.flush()
                os.fsync(file.fileno())
            event = {"topic": "notes.counted", "payload": {"number": number}, "key": f"key{number % 4}"}
            await self.context.ask("event.publish", event)
            self.write("published", str(number))
"#;

const NOTES_MANIFEST: &str = "id: notes\nname: Notes\nentrypoint: main:Notes\nschedules:
  - { name: tick, cron: every 2s }
  - { name: tock, cron: every 5s, missed: run_all }
";

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

/// A subscriber that fails on one delivery in twenty, before or after it has written the event down.
const AUDIT: &str = r#"
import json, os, zlib


class Audit:
    async def initialize(self, context):
        self.context = context

    def write(self, name, line):
        with open(self.context.data_dir / name, "a") as file:
            file.write(line + "\n")
            file.flush()
            os.fsync(file.fileno())

    async def on_event(self, event):
        number = event.payload["number"]
        chance = zlib.crc32(f"{number} {event.attempt}".encode()) % 40
        if chance == 0:
            raise ValueError("planted, before")
        self.write("events", json.dumps({"number": number, "repeat": event.repeat}))
        if chance == 1:
            raise ValueError("planted, after")

    async def execute_task(self, task_name):
        self.write("runs." + task_name, task_name)
"#;

const AUDIT_MANIFEST: &str = "id: audit\nname: Audit\nentrypoint: main:Audit
schedules:
  - { name: beat, cron: every 3s, missed: skip }
events:
  subscribes:
    - { topic: notes.counted, handler: custom }
";
