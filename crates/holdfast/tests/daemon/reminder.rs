//! A reminder from end to end: a user asks for it on a channel, the agent schedules it, the process is killed and comes back, and when
//! the time has come an agent that is only a manifest handles the event and the user has its message on the channel. Once.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::shared::{Scene, TIMEOUT};
use holdfast_testkit::wasm::telltale;
use serde_json::{Value, json};

/// An agent without any code, which takes what is due.
const KEEPER: &str = "
id: keeper
name: Keeper of reminders
description: Words reminders.
agent:
  model: keeper
  instructions: You are handed a reminder that is due. Word it for the user.
events:
  subscribes:
    - { topic: reminder.due, handler: invoke_agent }
";

const CHANNEL: &str = "
id: relay
name: Relay
entrypoint: relay.wasm
grants: { interfaces: [events] }
";

/// A home with a channel, an agent for reminders, and a model that schedules one after so long.
fn home(span: &str) -> Scene {
    let scene = Scene::new();
    let due = json!({ "in": span, "topic": "reminder.due", "payload": { "text": "call mum" } });
    let main = json!([{ "calls": [{ "tool": "schedule_once", "arguments": due }] }, { "says": "I will remind you." },
        { "says": "Good morning." }]);
    let keeper = json!([{ "says": "It is time to call mum." }]);
    for (name, steps) in [("main", &main), ("keeper", &keeper)] {
        fs::write(scene.root().join(format!("{name}.yaml")), steps.to_string()).unwrap();
    }
    let file = |name: &str| scene.root().join(format!("{name}.yaml")).display().to_string();
    scene.settings(&format!(
        "models:\n  default: main\n  main: {{ provider: script, file: {} }}\n  keeper: {{ provider: script, file: {} }}\nchannels: {{ default: relay }}\n",
        file("main"),
        file("keeper")
    ));
    scene.policy("profile: full-auto\n");
    let extensions = scene.home().join("extensions");
    for (id, manifest) in [("keeper", KEEPER), ("relay", CHANNEL)] {
        fs::create_dir_all(extensions.join(id)).unwrap();
        fs::write(extensions.join(id).join("manifest.yaml"), manifest).unwrap();
    }
    fs::write(extensions.join("relay/relay.wasm"), telltale(1)).unwrap();
    scene.run(&["ext", "grant", "relay"]).ok();
    scene
}

/// A home that is kept up.
pub struct Up<'a> {
    scene: &'a Scene,
    supervisor: Child,
}

impl<'a> Up<'a> {
    pub fn begin(scene: &'a Scene) -> Self {
        let mut command = scene.command(&["up"]);
        let supervisor = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let up = Self { scene, supervisor };
        up.process(None);
        up
    }

    /// The process that owns the home, once there is one that is not this.
    pub fn process(&self, not: Option<u64>) -> u64 {
        until(self.scene, "it comes up", || {
            let ran = self.scene.run(&["status", "--json"]);
            let status: Value = serde_json::from_str(&ran.out).ok()?;
            let process = status["process"].as_u64().filter(|process| Some(*process) != not)?;
            assert_eq!(status["failed"], json!([]), "{status:#}");
            Some(process)
        })
    }

    pub fn down(mut self) {
        self.scene.run(&["down"]).ok();
        until(self.scene, "it ends", || self.supervisor.try_wait().unwrap());
    }
}

impl Drop for Up<'_> {
    fn drop(&mut self) {
        drop(self.supervisor.kill());
        drop(self.supervisor.wait());
    }
}

/// Waits for something; what does not come about fails the test, with what the bus has to say.
#[track_caller]
pub fn until<T>(scene: &Scene, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        if let Some(found) = look() {
            return found;
        }
        if Instant::now() > deadline {
            let status = scene.run(&["bus", "status"]);
            panic!("{what}: it does not come about\n{status:#?}\n{:#?}", frames(scene));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The frames of the bus.
fn frames(scene: &Scene) -> Vec<Value> {
    let streams = (0..8).map(|stream| format!("bus.{stream:02}"));
    let all = streams.flat_map(|stream| {
        let ran = scene.run(&["log", "export", &stream]);
        if ran.code == Some(0) { ran.lines() } else { Vec::new() }
    });
    all.collect()
}

/// The events that were published on a topic.
fn events(scene: &Scene, topic: &str) -> Vec<Value> {
    let is_it =
        |frame: &Value| frame["kind"] == "event.published" && frame["body"]["topic"].as_str() == Some(topic);
    frames(scene).into_iter().filter(is_it).map(|frame| frame["body"]["payload"]["json"].clone()).collect()
}

/// What the channel was given for its users, in order.
pub fn sent(scene: &Scene) -> Vec<String> {
    let told = events(scene, "relay").into_iter().filter(|told| told[1] == "sent");
    told.map(|told| format!("{}: {}{}", told[2].as_str().unwrap(), told[3].as_str().unwrap(), repeat(&told)))
        .collect()
}

fn repeat(told: &Value) -> &'static str {
    if told[5] == true { " (repeat)" } else { "" }
}

fn says(scene: &Scene, text: &str) {
    let said = json!({ "text": text, "user_id": "ada", "channel_id": "relay" });
    scene.run(&["bus", "publish", "user.message", &said.to_string()]).ok();
}

pub fn book(scene: &Scene) -> Value {
    let file = scene.home().join("data/scheduler/schedules.json");
    serde_json::from_slice(&fs::read(file).unwrap()).unwrap()
}

/// Kills a process at once.
pub fn kill(process: u64) {
    assert!(Command::new("kill").args(["-9", &process.to_string()]).status().unwrap().success());
}

/// A home whose owner was killed after a reminder was acknowledged and before it was due, and its supervisor. None if the machine was
/// too slow for this span.
fn killed_in_time<'a>(scene: &'a Scene) -> Option<Up<'a>> {
    let up = Up::begin(scene);
    let first = up.process(None);
    says(scene, "remind me to call mum");
    until(scene, "the acknowledgement", || (!sent(scene).is_empty()).then_some(()));
    kill(first);
    assert_eq!(sent(scene), ["ada: I will remind you."]);
    let entry = book(scene)["entries"]["s1"].clone();
    let open = entry["next"].is_u64() && entry["firing"].is_null() && entry["fired"].is_null();
    if !open {
        return None;
    }
    assert_eq!(events(scene, "reminder.due"), Vec::<Value>::new());
    up.process(Some(first));
    Some(up)
}

#[test]
fn a_reminder_outlives_its_process_and_comes_once() {
    let scenes = ["4s", "15s", "45s"].map(home);
    let (scene, up) = scenes
        .iter()
        .find_map(|scene| killed_in_time(scene).map(|up| (scene, up)))
        .expect("the process could not be killed before the reminder was due");

    until(scene, "the reminder", || (sent(scene).len() == 2).then_some(()));
    let happened = || {
        assert_eq!(events(scene, "reminder.due"), [json!({ "text": "call mum" })], "it fires once");
        assert_eq!(events(scene, "channel.out.relay").len(), sent(scene).len(), "each message goes out once");
        assert_eq!(sent(scene)[..2], ["ada: I will remind you.", "*: It is time to call mum."]);
        let sessions = scene.run(&["session", "list", "--json"]).ok().lines();
        let tasks = sessions.iter().filter_map(|session| session["session"].as_str());
        let tasks: Vec<&str> = tasks.filter(|id| id.starts_with("task.")).collect();
        assert_eq!(tasks.len(), 1, "the agent is asked once: {sessions:?}");
        let frames = scene.frames(tasks[0]);
        let turns = frames.iter().filter(|frame| frame["kind"] == "turn.ended").count();
        assert_eq!(turns, 1, "the agent answers once: {frames:#?}");
        assert_eq!(frames[0]["body"]["agent"], "keeper");
        let verdict = scene.run(&["replay", tasks[0], "--json"]).ok().json();
        assert_eq!(verdict["identical"], true, "{verdict}");
        let entry = book(scene)["entries"]["s1"].clone();
        assert_eq!((&entry["next"], &entry["fired"][1]), (&Value::Null, &"done".into()), "{entry}");
    };
    until(scene, "its end", || book(scene)["entries"]["s1"]["fired"].is_array().then_some(()));
    happened();

    // Killed and stopped once more. A later message's effects come after anything that would be repeated.
    let second = up.process(None);
    kill(second);
    up.process(Some(second));
    up.down();
    let up = Up::begin(scene);
    says(scene, "good morning");
    until(scene, "an answer", || (sent(scene).len() == 3).then_some(()));
    assert_eq!(sent(scene)[2], "ada: Good morning.");
    happened();
    up.down();
    happened();
    scene.verifies();
}
