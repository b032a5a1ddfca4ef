//! `schedule list` and `schedule run`.

use std::fs;

use super::down_and_up;
use crate::shared::{Owner, Scene, bodies};

const NOTES: &str = r#"
class Notes:
    async def initialize(self, context):
        self.data = context.data_dir

    async def execute_task(self, task_name):
        with open(self.data / "runs", "a") as file:
            file.write(task_name + "\n")
        if (self.data / "fail").exists():
            raise RuntimeError("the shelf is full")
"#;

const MANIFEST: &str = "id: notes\nname: Notes\nentrypoint: main:Notes\nschedules:\n  \
    - { name: nightly, cron: '0 3 * * *', timezone: Europe/Vienna, task: tidy }\n  \
    - { name: yearly, cron: '@yearly' }\n";

fn scene() -> Scene {
    let scene = Scene::new();
    scene.policy("profile: full-auto\n");
    let folder = scene.home().join("extensions/notes");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("main.py"), NOTES).unwrap();
    fs::write(folder.join("manifest.yaml"), MANIFEST).unwrap();
    scene
}

fn runs(scene: &Scene) -> String {
    fs::read_to_string(scene.home().join("data/notes/runs")).unwrap_or_default()
}

#[test]
fn schedules_are_listed_and_run_now() {
    let scene = scene();
    let listed = scene.run(&["schedule", "list"]).ok();
    for part in ["nightly", "notes", "0 3 * * *", "Europe/Vienna", "never"] {
        assert!(listed.out.contains(part), "{part}: {listed:#?}");
    }
    assert_eq!(runs(&scene), "", "listing starts nothing");
    down_and_up(&scene, |scene| {
        drop(fs::remove_file(scene.home().join("data/notes/runs")));
        let ran = scene.run(&["schedule", "run", "nightly"]).ok();
        assert_eq!((ran.out.as_str(), runs(scene).as_str()), ("notes/nightly succeeded\n", "tidy\n"));
        fs::write(scene.home().join("data/notes/fail"), "").unwrap();
        let failed = scene.run(&["schedule", "run", "notes/nightly", "--json"]);
        assert_eq!((failed.code, &failed.json()["outcome"]), (Some(1), &"failed".into()), "{failed:#?}");
        assert!(failed.json()["fault"].as_str().unwrap().contains("the shelf is full"), "{failed:#?}");
        fs::remove_file(scene.home().join("data/notes/fail")).unwrap();

        let lines = scene.run(&["schedule", "list", "--json"]).ok().lines();
        let nightly = lines.iter().find(|line| line["id"] == "notes/nightly").unwrap();
        assert_eq!(
            (&nightly["last"]["outcome"], &nightly["zone"]),
            (&"failed".into(), &"Europe/Vienna".into())
        );
        assert!(nightly["next"].as_u64().unwrap() > nightly["last"]["due"].as_u64().unwrap(), "{nightly}");
        let listed = scene.run(&["schedule", "list"]).ok();
        assert!(listed.out.contains("failed: "), "{listed:#?}");

        let unknown = scene.run(&["schedule", "run", "nigthly"]).fails(1, "HF-4307");
        assert!(unknown.err.contains("There are: notes/nightly, notes/yearly"), "{unknown:#?}");
    });
    let frames = scene.frames("system");
    assert_eq!(bodies(&frames, "schedule.fired").len(), 4);
    assert_eq!(bodies(&frames, "schedule.ended").iter().filter(|ended| !ended["fault"].is_null()).count(), 2);
    scene.verifies();
}

#[test]
fn a_home_without_schedules_says_so() {
    let scene = Scene::new();
    let empty = scene.run(&["schedule", "list"]).ok();
    assert!(empty.out.contains("no schedules; an extension lists them under `schedules`"), "{empty:#?}");
    assert_eq!(scene.run(&["schedule", "list", "--json"]).ok().out, "");
    scene.run(&["schedule", "run", "any"]).fails(1, "HF-4307");
}

#[test]
fn a_name_that_two_extensions_have_is_not_guessed() {
    let scene = scene();
    let other = scene.home().join("extensions/other");
    fs::create_dir_all(&other).unwrap();
    fs::write(other.join("main.py"), NOTES).unwrap();
    fs::write(other.join("manifest.yaml"), MANIFEST.replace("id: notes", "id: other")).unwrap();
    let _owner = Owner::begin(&scene);
    let several = scene.run(&["schedule", "run", "yearly"]).fails(2, "HF-9001");
    assert!(several.err.contains("Name one of: notes/yearly, other/yearly."), "{several:#?}");
    scene.run(&["schedule", "run", "other/yearly"]).ok();
}
