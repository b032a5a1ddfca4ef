//! Plain Python files as extensions: `tools/*.py` and `channels/*.py`, as they were written for another program.

use std::fs;
use std::path::Path;

use crate::shared::{Owner, Scene, until};
use serde_json::{Value, json};

/// A home whose owner lets every tool run: what a file does to the world is not known, and would be asked about.
fn scene() -> Scene {
    let scene = Scene::new();
    scene.run(&["init"]).ok();
    fs::write(scene.home().join("config/policy.yaml"), "profile: full-auto\n").unwrap();
    scene
}

fn write(scene: &Scene, file: &str, text: &str) {
    let path = scene.home().join("extensions").join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn call(scene: &Scene, tool: &str, arguments: &Value) -> String {
    let ran = scene.run(&["call", tool, &arguments.to_string()]);
    format!("{}{}", ran.out, ran.err)
}

/// The schema that a model is shown of a tool.
fn schema(scene: &Scene, tool: &str) -> Value {
    let tools = scene.run(&["tools", "--json"]).ok().out;
    let lines = tools.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut all = lines.flat_map(|line| line.as_array().cloned().unwrap_or_else(|| vec![line]));
    all.find(|it| it["name"] == tool).unwrap_or_else(|| panic!("no {tool}: {tools}"))
}

/// The shape of a tool as people have them: an asynchronous `run`, a helper, a docstring.
const WEATHER: &str = r#"
async def run(city: str) -> str:
    """Get current weather for a city."""
    return await _fetch(f"https://weather.example/{city}?format=3")

async def _fetch(url: str) -> str:
    print("fetching", url)
    return f"sunny at {url}"
"#;

#[test]
fn a_file_with_run_is_a_tool() {
    let scene = scene();
    write(&scene, "tools/get_weather.py", WEATHER);
    let answer = call(&scene, "get_weather", &json!({ "city": "Vienna" }));
    assert!(answer.contains("sunny at https://weather.example/Vienna?format=3"), "{answer}");
    let tool = schema(&scene, "get_weather");
    assert_eq!(tool["description"], "Get current weather for a city.", "{tool:#}");
    let wrong = call(&scene, "get_weather", &json!({ "town": "Vienna" }));
    assert!(wrong.contains("HF-31"), "{wrong}");
    scene.verifies();
}

const RICH: &str = r#"
import dataclasses, enum, typing

class Unit(enum.Enum):
    METRE = "m"
    FOOT = "ft"

@dataclasses.dataclass
class Point:
    x: int
    y: float = 0.5

def run(start: Point, unit: Unit = Unit.METRE, names: typing.Optional[list[str]] = None,
        mode: typing.Literal["near", "far"] = "near", limit: int | None = None, **rest):
    """Measures.

    Args:
        start: Where it begins.
        unit (Unit): What it is
            measured in.
    """
    assert isinstance(start, Point) and isinstance(unit, Unit)
    if mode == "far":
        raise ValueError("too far")
    return {"start": start, "unit": unit, "names": names, "pair": (1, 2)}
"#;

#[test]
fn types_make_the_schema_and_arrive_as_what_they_are() {
    let scene = scene();
    write(&scene, "tools/measure.py", RICH);
    let arguments = json!({ "start": { "x": 3 }, "unit": "ft", "names": ["a"] });
    let ran = scene.run(&["call", "measure", &arguments.to_string()]).ok();
    let value: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(value, json!({ "start": { "x": 3, "y": 0.5 }, "unit": "ft", "names": ["a"], "pair": [1, 2] }));
    let failed = call(&scene, "measure", &json!({ "start": { "x": 3 }, "mode": "far" }));
    assert!(failed.contains("ValueError: too far (measure.py, line 24)"), "{failed}");
    let refused = call(&scene, "measure", &json!({ "start": { "x": 3 }, "unit": "mile" }));
    assert!(refused.contains("HF-31"), "the schema holds: {refused}");
}

#[test]
fn files_come_change_break_and_go() {
    let scene = scene();
    let _owner = Owner::begin(&scene);
    write(&scene, "tools/greet.py", "def run(name: str):\n    return 'hello ' + name\n");
    let greets = |word: &str| call(&scene, "greet", &json!({ "name": "ada" })).contains(word);
    until("a new file is live", || greets("hello ada"));
    write(&scene, "tools/greet.py", "def run(name: str):\n    return 'good day ' + name\n");
    until("an edit is live", || greets("good day ada"));
    write(&scene, "tools/greet.py", "def run(name: str:\n    return\n");
    let doctor = || scene.run(&["ext", "doctor", "greet"]).out;
    until("a broken edit is reported with its line", || doctor().contains("greet.py, line 1"));
    assert!(greets("good day ada"), "the last good version serves");
    write(&scene, "tools/greet.py", "async def walk():\n    return 1\n");
    until("a file without `run` says so", || doctor().contains("there is no function `run`"));
    assert!(greets("good day ada"), "the last good version serves");
    fs::rename(
        scene.home().join("extensions/tools/greet.py"),
        scene.home().join("extensions/tools/_greet.py"),
    )
    .unwrap();
    until("a file that is gone is gone", || !greets("good day ada"));
}

// Finding D9: the documentation said that a single command does not have the tool.
#[test]
fn the_last_good_version_of_a_file_serves_single_commands_too() {
    let scene = scene();
    let greets = || scene.run(&["call", "greet", "{\"name\": \"ada\"}"]);
    write(
        &scene,
        "tools/greet.py",
        "__effects__ = 'pure'\n\ndef run(name: str):\n    return 'hello ' + name\n",
    );
    assert!(greets().ok().out.contains("hello ada"));
    write(&scene, "tools/greet.py", "def run(name: str:\n    return\n");
    for _ in 0..2 {
        assert!(greets().ok().out.contains("hello ada"), "each command is a process of its own");
    }
    let listed = scene.run(&["ext", "list"]).ok().out;
    assert!(listed.contains("greet.py, line 1"), "{listed}");
    // What was never active has nothing to go back to.
    write(&scene, "tools/never.py", "def run(name: str:\n    return\n");
    let never = scene.run(&["call", "never", "{}"]);
    assert!(never.code != Some(0) && never.err.contains("HF-3101"), "{}", never.err);
    assert!(never.err.contains("never.py, line 1"), "the help names the fault: {}", never.err);
}

#[test]
fn a_file_is_checked_by_its_name_and_by_its_path() {
    let scene = scene();
    write(&scene, "tools/one.py", "__effects__ = \"read\"\n\ndef run(a: int) -> int:\n    return a\n");
    let path = scene.home().join("extensions/tools/one.py");
    for named in ["one", path.to_str().unwrap()] {
        let checked = scene.run(&["ext", "check", named]).ok();
        assert!(checked.out.contains("one (read)") && checked.out.contains("it would load"), "{checked:#?}");
    }
    write(&scene, "tools/one.py", "def run(a: int:\n");
    let broken = scene.run(&["ext", "check", "one"]);
    assert!(broken.err.contains("one.py, line 1"), "{broken:#?}");
    scene.run(&["ext", "check", "two"]).fails(1, "HF-4005");
}

/// What `docs/python-files.md` shows first.
#[test]
fn the_first_file_of_the_guide_works_as_it_stands() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/python-files.md");
    let page = fs::read_to_string(page).unwrap();
    let program = page.split_once("```python\n").unwrap().1.split_once("```").unwrap().0;
    let scene = scene();
    write(&scene, "tools/word_count.py", program);
    let answer = call(&scene, "word_count", &json!({ "text": "to be or not to be" }));
    assert!(answer.contains('6'), "{answer}");
}

/// The shape of a channel as people have them.
const CHANNEL: &str = r#"
import asyncio, os

async def connect() -> None:
    """A mailbox in a folder."""
    os.makedirs(os.path.expanduser("~/in"), exist_ok=True)
    os.makedirs(os.path.expanduser("~/out"), exist_ok=True)

async def recv() -> Message:
    while True:
        for name in sorted(os.listdir(os.path.expanduser("~/in"))):
            path = os.path.expanduser(f"~/in/{name}")
            text = open(path).read()
            os.remove(path)
            return Message(text=text, sender="ada", channel="mailbox")
        await asyncio.sleep(0.05)

async def send(message: Message) -> None:
    with open(os.path.expanduser("~/out/") + message.sender, "a") as file:
        file.write(message.text + "\n")
"#;

#[test]
fn a_file_with_connect_recv_and_send_is_a_channel() {
    let scene = scene();
    write(&scene, "channels/mailbox.py", CHANNEL);
    let _owner = Owner::begin(&scene);
    let data = scene.home().join("data/mailbox");
    until("it has connected", || data.join("in").is_dir());
    fs::write(data.join("in/.1"), "hello").unwrap();
    fs::rename(data.join("in/.1"), data.join("in/1")).unwrap();
    until("the user has an answer", || {
        fs::read_to_string(data.join("out/ada")).is_ok_and(|answer| !answer.is_empty())
    });
    scene.verifies();
}

/// A tool that makes a file, and a channel that sends files.
const DRAW: &str = r#"
import base64

def run() -> dict:
    """Draws a chart."""
    picture = base64.b64encode(b"\x89PNG chart").decode()
    return {"attachments": [{"name": "../chart.png", "media_type": "image/png", "base64": picture}]}
"#;
const SENDS: &str = r#"
import pathlib

async def send_file(file, user):
    folder = pathlib.Path.home() / "files"
    folder.mkdir(exist_ok=True)
    (folder / f"{user} {file.media_type.replace('/', ' ')}").write_bytes(file.content)
"#;

#[test]
fn a_file_that_a_tool_makes_is_saved_and_sent() {
    let scene = scene();
    write(&scene, "tools/draw.py", DRAW);
    let folder = scene.home().parent().unwrap().join("saved");
    let ran = scene.run(&["run", "/draw {}", "--save", folder.to_str().unwrap()]).ok();
    assert_eq!(fs::read(folder.join("chart.png")).unwrap(), b"\x89PNG chart", "{ran:#?}");
    let ran = scene.run(&["run", "/draw {}"]).ok();
    assert!(ran.err.contains("made ../chart.png (image/png, 10 bytes); --save FOLDER keeps it"), "{ran:#?}");

    write(&scene, "channels/mailbox.py", &format!("{CHANNEL}{SENDS}"));
    let _owner = Owner::begin(&scene);
    let data = scene.home().join("data/mailbox");
    until("the channel is connected", || data.join("in").is_dir());
    fs::write(data.join(".1"), "/draw {}").unwrap();
    fs::rename(data.join(".1"), data.join("in/1")).unwrap();
    until("the file is sent", || {
        fs::read(data.join("files/ada image png")).is_ok_and(|sent| sent == b"\x89PNG chart")
    });
    assert!(fs::read_to_string(data.join("out/ada")).is_ok_and(|answer| !answer.is_empty()));
    scene.verifies();
}

/// A channel that shows questions with buttons, whose user always takes the first one.
const BUTTONS: &str = r#"
async def send_question(text, choices, user):
    home = os.path.expanduser("~/")
    with open(home + "asked", "a") as file:
        file.write(f"{user}: {text} {[it['label'] for it in choices]}\n")
    with open(home + ".pressed", "w") as file:
        file.write(choices[0]["answer"])
    os.rename(home + ".pressed", home + "in/pressed")
"#;

/// The same as a class, which notes what it is given.
const PANEL: &str = r#"
class Panel:
    id = "panel"
    name = "Panel"
    version = "1.0.0"

    async def initialize(self, context):
        self.context = context

    async def send_to_user(self, user_id: str, message: str) -> None:
        self.note(f"{user_id}: {message}")

    async def send_question(self, user_id, text, choices, delivery) -> None:
        self.note(f"{user_id} is asked: {choices[1]['label']}={choices[1]['answer']} {delivery['id'][:4]}")

    def note(self, text):
        with open(self.context.data_dir / "notes", "a") as file:
            file.write(text + "\n")
"#;

#[test]
fn a_channel_in_python_shows_questions_and_its_owner_answers() {
    let scene = scene();
    scene.policy("owners:\n  - { channel: mailbox, user: ada }\n  - { channel: panel, user: ada }\n");
    write(&scene, "channels/mailbox.py", &format!("{CHANNEL}{BUTTONS}"));
    write(&scene, "panel/manifest.yaml", "id: panel\nname: Panel\nentrypoint: main:Panel\n");
    write(&scene, "panel/main.py", PANEL);
    let _owner = Owner::begin(&scene);
    let data = scene.home().join("data/mailbox");
    until("the channel is connected", || data.join("in").is_dir());
    let wish = r#"/schedule_once {"in": "10h", "text": "tea"}"#;
    fs::write(data.join(".1"), wish).unwrap();
    fs::rename(data.join(".1"), data.join("in/1")).unwrap();
    let text = |file: &Path| fs::read_to_string(file).unwrap_or_default();
    until("the answer", || text(&data.join("out/ada")).contains("`schedule_once` was approved."));
    until("the end", || text(&data.join("out/ada")).contains("I called"));
    let asked = text(&data.join("asked"));
    assert!(
        asked.starts_with("ada: ? `schedule_once` of `scheduler` wants to run (session mailbox.ada)\n"),
        "{asked}"
    );
    assert!(asked.trim_end().ends_with("['yes', 'session', 'no']"), "{asked}");

    let said = json!({ "text": wish, "user_id": "ada", "channel_id": "panel" });
    scene.run(&["bus", "publish", "user.message", &said.to_string()]).ok();
    let notes = scene.home().join("data/panel/notes");
    until("the question", || text(&notes).contains("ada is asked: session=session "));
    assert!(text(&notes).trim_end().ends_with(" bus."), "{}", text(&notes));
    let question = scene.run(&["questions", "list", "--json"]).ok().json();
    scene.run(&["questions", "answer", question["id"].as_str().unwrap(), "no", "not", "now"]).ok();
    until("the remark", || text(&notes).contains("answered elsewhere: denied"));
    scene.verifies();
}
