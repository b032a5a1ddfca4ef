//! `bus list`, `bus show` and `bus dead`.

use std::fs;

use super::down_and_up;
use crate::shared::{Owner, Scene, until};

#[test]
fn topics_and_their_last_events_are_listed() {
    let scene = Scene::new();
    for number in 0..3 {
        let payload = format!("{{ \"number\": {number} }}");
        scene.run(&["bus", "publish", "notes.made", &payload, "--key", "mine"]).ok();
    }
    scene.run(&["bus", "publish", "lights.on"]).ok();
    down_and_up(&scene, |scene| {
        let listed = scene.run(&["bus", "list", "--json"]).ok().lines();
        let named = |topic: &str| listed.iter().find(|line| line["topic"] == topic).unwrap().clone();
        assert_eq!((&named("notes.made")["events"], &named("lights.on")["events"]), (&3.into(), &1.into()));
        assert_eq!((&named("notes.made")["open"], &named("notes.made")["dead"]), (&0.into(), &0.into()));
        let table = scene.run(&["bus", "list"]).ok();
        assert!(table.out.starts_with("topic") && table.out.contains("notes.made"), "{table:#?}");

        let events = scene.run(&["bus", "show", "notes.made", "--json"]).ok().lines();
        let numbers: Vec<_> =
            events.iter().map(|event| event["payload"]["number"].as_u64().unwrap()).collect();
        assert_eq!(numbers, [2, 1, 0], "the latest first");
        assert!(events[0]["event"].as_str().unwrap().starts_with("bus.0"), "{events:#?}");
        let last = scene.run(&["bus", "show", "notes.made", "--limit", "1"]).ok();
        assert_eq!(last.out.lines().count(), 2, "{last:#?}");
        for part in ["mine", "rpc", "{\"number\":2}"] {
            assert!(last.out.contains(part), "{part}: {last:#?}");
        }
        let unknown = scene.run(&["bus", "show", "notes.mode"]).fails(1, "HF-8014");
        assert!(unknown.err.contains("Did you mean `notes.made`?"), "{unknown:#?}");
    });
}

#[test]
fn a_bus_without_events_says_so() {
    let scene = Scene::new();
    let empty = scene.run(&["bus", "list"]).ok();
    assert!(empty.out.contains("no events; `holdfast bus publish TOPIC JSON`"), "{empty:#?}");
    assert_eq!(scene.run(&["bus", "list", "--json"]).ok().out, "");
    let unknown = scene.run(&["bus", "show", "any.topic"]).fails(1, "HF-8014");
    assert!(unknown.err.contains("There are no events yet"), "{unknown:#?}");
}

#[test]
#[cfg(target_os = "linux")]
fn events_show_their_state_for_each_subscriber() {
    let scene = Scene::new();
    scene.policy("profile: full-auto\n");
    let folder = scene.home().join("extensions/keeper");
    fs::create_dir_all(&folder).unwrap();
    let handler = "class Keeper:\n    async def initialize(self, context):\n        \
        context.subscribe_event('notes.made', self.keep)\n\n    \
        async def keep(self, event):\n        pass\n";
    fs::write(folder.join("main.py"), handler).unwrap();
    let manifest = "id: keeper\nname: Keeper\nentrypoint: main:Keeper\n\
        events: { subscribes: [{ topic: notes.made, handler: custom }] }\n";
    fs::write(folder.join("manifest.yaml"), manifest).unwrap();
    let _owner = Owner::begin(&scene);
    scene.run(&["bus", "publish", "notes.made", "{}"]).ok();
    let state = || {
        let events = scene.run(&["bus", "show", "notes.made", "--json"]).ok().lines();
        events[0]["deliveries"].as_object().unwrap().values().next().cloned().unwrap_or_default()
    };
    until("it is delivered", || state() == "delivered");
    let topics = scene.run(&["bus", "list", "--json"]).ok().lines();
    let notes = topics.iter().find(|line| line["topic"] == "notes.made").unwrap();
    assert!(notes["subscribers"][0].as_str().unwrap().starts_with("keeper/"), "{notes}");
    let shown = scene.run(&["bus", "show", "notes.made"]).ok();
    assert!(shown.out.contains(": delivered"), "{shown:#?}");
}

#[test]
#[cfg(target_os = "linux")]
fn all_dead_letters_are_retried_or_those_of_one_subscriber() {
    let scene = Scene::new();
    scene.policy("profile: full-auto\n");
    let folder = scene.home().join("extensions/keeper");
    fs::create_dir_all(&folder).unwrap();
    let handler = "class Keeper:\n    async def initialize(self, context):\n        \
        self.folder = context.data_dir\n        \
        context.subscribe_event('notes.made', self.keep)\n        \
        context.subscribe_event('lights.on', self.keep)\n\n    \
        async def keep(self, event):\n        \
        if not (self.folder / 'open').exists():\n            raise RuntimeError('closed')\n        \
        with open(self.folder / 'kept', 'a') as file:\n            file.write('kept\\n')\n";
    fs::write(folder.join("main.py"), handler).unwrap();
    let manifest = "id: keeper\nname: Keeper\nentrypoint: main:Keeper\n\
        events: { subscribes: [{ topic: notes.made, handler: custom }, { topic: lights.on, handler: custom }] }\n";
    fs::write(folder.join("manifest.yaml"), manifest).unwrap();
    let _owner = Owner::begin(&scene);
    let nothing = scene.run(&["bus", "dead", "retry", "--all"]).ok();
    assert_eq!(nothing.out, "", "there is nothing to retry");
    for (topic, key) in [("notes.made", "a"), ("notes.made", "b"), ("lights.on", "c")] {
        scene.run(&["bus", "publish", topic, "{}", "--key", key]).ok();
    }
    let dead = || scene.run(&["bus", "dead", "list", "--json"]).ok().lines().len();
    until("all attempts have failed", || dead() == 3);
    let data = scene.home().join("data/keeper");
    let kept = || fs::read_to_string(data.join("kept")).unwrap_or_default().lines().count();
    fs::write(data.join("open"), "").unwrap();
    let some = scene.run(&["bus", "dead", "retry", "--all", "--subscriber", "keeper/lights.on"]).ok();
    assert_eq!(some.out.lines().count(), 1, "{some:#?}");
    assert!(some.out.contains("is tried again by keeper/lights.on"), "{some:#?}");
    until("the one is delivered", || kept() == 1);
    assert_eq!(dead(), 2);
    let rest = scene.run(&["bus", "dead", "retry", "--all"]).ok();
    assert_eq!(rest.out.lines().count(), 2, "{rest:#?}");
    until("the others are delivered", || kept() == 3);
    assert_eq!(dead(), 0);
    scene.verifies();
}
