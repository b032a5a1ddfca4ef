//! `up`, `down` and `status`: a home is kept up, whatever happens to its process, and stops when it is told to.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::shared::{Owner, Scene, TIMEOUT, finish, until};
use serde_json::Value;

/// A supervisor that runs.
struct Up<'a> {
    scene: &'a Scene,
    supervisor: Option<Child>,
}

impl<'a> Up<'a> {
    fn begin(scene: &'a Scene) -> Self {
        Self::telling(scene, Stdio::null())
    }

    /// The same, with what it says.
    fn telling(scene: &'a Scene, said: Stdio) -> Self {
        let mut command = scene.command(&["up"]);
        let supervisor = command.stdout(Stdio::null()).stderr(said).spawn().unwrap();
        Self { scene, supervisor: Some(supervisor) }
    }

    /// The home's state, once it is up under a process that is not one of these. Gives that process too.
    fn status(&self, not: &[u64]) -> (Value, u64) {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let ran = self.scene.run(&["status", "--json"]);
            if let Ok(status) = serde_json::from_str::<Value>(&ran.out)
                && status["starting"].is_null()
                && let Some(process) = status["process"].as_u64().filter(|process| !not.contains(process))
            {
                return (status, process);
            }
            assert!(Instant::now() < deadline, "it is not up: {ran:#?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The process that owns the home, as soon as it holds the lock.
    fn owner(&self, not: &[u64]) -> u64 {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let lock = fs::read_to_string(self.scene.home().join("lock")).unwrap_or_default();
            let process =
                lock.split(|letter: char| !letter.is_ascii_digit()).find_map(|word| word.parse().ok());
            if let Some(process) = process.filter(|process| !not.contains(process)) {
                return process;
            }
            assert!(Instant::now() < deadline, "nobody owns the home: {lock:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn ended(mut self) -> Option<i32> {
        finish(self.supervisor.take().unwrap()).code
    }
}

impl Drop for Up<'_> {
    fn drop(&mut self) {
        if let Some(supervisor) = &mut self.supervisor {
            drop(supervisor.kill());
            drop(supervisor.wait());
        }
    }
}

fn kill(process: u64) {
    assert!(Command::new("kill").args(["-9", &process.to_string()]).status().unwrap().success());
}

/// Waits until the log says this.
fn logged(scene: &Scene, kind: &str, what: [&str; 2], times: usize) {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let frames = scene.run(&["log", "export", "system"]);
        let is_it = |line: &&str| line.contains(kind) && what.iter().all(|what| line.contains(what));
        if frames.out.lines().filter(is_it).count() >= times {
            return;
        }
        assert!(Instant::now() < deadline, "no {kind} with {what:?}: {frames:#?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

// Finding D13: `retention` of the settings had no effect.
#[test]
fn the_retention_of_the_settings_is_applied_when_the_home_comes_up() {
    let scene = Scene::new();
    for _ in 0..4 {
        scene.run(&["run", "hello", "--session", "long"]).ok();
    }
    let frames = || scene.run(&["log", "show", "long", "--json"]).ok().lines();
    let before = frames().len();
    assert!(before > 20, "{before}");
    scene.settings("retention: { keep_frames: 10 }\n");
    let owner = Owner::begin(&scene);
    until("old frames are collected", || frames().len() < before);
    assert!(frames().len() >= 10);
    scene.run(&["run", "hello", "--session", "long"]).ok();
    drop(owner);
    scene.verifies();
}

#[test]
fn a_home_comes_up_answers_and_goes_down() {
    let scene = Scene::new();
    let nothing = scene.run(&["status"]);
    assert_eq!((nothing.code, nothing.out.contains("nothing is up")), (Some(1), true), "{nothing:#?}");
    assert!(scene.run(&["down"]).ok().out.contains("nothing is up"));

    let up = Up::begin(&scene);
    let (status, process) = up.status(&[]);
    assert_eq!(status["failed"], Value::Array(Vec::new()), "{status:#}");
    assert!(status["active"].as_u64().unwrap() >= 3, "{status:#}");
    assert!(scene.run(&["status"]).ok().out.contains(&format!("process {process}")));
    assert_eq!(
        (&status["queues"]["open"], &status["spent"]["model_calls"]),
        (&0.into(), &0.into()),
        "{status:#}"
    );
    assert!(!scene.run(&["run", "hello"]).ok().out.is_empty(), "commands attach");
    let (status, _) = up.status(&[]);
    assert!(status["spent"]["model_calls"].as_u64().unwrap() >= 1, "{status:#}");
    assert!(scene.run(&["status"]).ok().out.contains("every extension is healthy"));
    let second = scene.run(&["up", "--unsupervised"]);
    second.fails(2, "HF-1502");
    assert!(scene.run(&["down"]).ok().out.contains("has stopped"));
    assert_eq!(up.ended(), Some(0));
    scene.verifies();
    logged(&scene, "system.stopped", ["", ""], 1);
}

#[test]
fn what_dies_is_started_again_and_so_is_what_asks_for_it() {
    let scene = Scene::new();
    let up = Up::begin(&scene);
    let (_, first) = up.status(&[]);
    kill(first);
    let (_, second) = up.status(&[first]);
    fs::write(scene.home().join(".restart_requested"), "").unwrap();
    let (_, third) = up.status(&[first, second]);
    assert!(!scene.home().join(".restart_requested").exists());
    // A signal to the supervisor stops everything in order.
    let supervisor = up.supervisor.as_ref().unwrap().id();
    assert!(Command::new("kill").arg(supervisor.to_string()).status().unwrap().success());
    assert_eq!(up.ended(), Some(0));
    assert!(third > 0);
    scene.verifies();
}

// Finding H6: Python holds the interface `system` by default, and an extension may ask for a restart all the time.
#[test]
fn an_extension_that_asks_for_restarts_all_the_time_is_held_back() {
    let scene = Scene::new();
    let folder = scene.home().join("extensions/eager");
    fs::create_dir_all(&folder).unwrap();
    let manifest = "id: eager\nname: Eager\nversion: 1.0.0\nentrypoint: main:It\n";
    fs::write(folder.join("manifest.yaml"), manifest).unwrap();
    let code = "import asyncio\nclass It:\n    async def initialize(self, context):\n        self.context = context\n    async def run_background(self):\n        while True:\n            self.context.request_restart()\n            await asyncio.sleep(0.2)\n";
    fs::write(folder.join("main.py"), code).unwrap();
    let said = scene.root().join("said.txt");
    let up = Up::telling(&scene, fs::File::create(&said).unwrap().into());
    let is_held_back = || fs::read_to_string(&said).unwrap().contains("the restart is delayed by");
    until("a restart is delayed", is_held_back);
    // The first start and three restarts.
    let starts = scene.run(&["log", "export", "system"]).ok().out;
    let starts = starts.lines().filter(|line| line.contains("\"system.started\"")).count();
    assert_eq!(starts, 4, "{}", fs::read_to_string(&said).unwrap());
    // It serves meanwhile, and a stop is not delayed.
    assert!(scene.run(&["run", "/kv_get key=a"]).ok().out.contains("kv_get"));
    assert!(scene.run(&["down"]).ok().out.contains("has stopped"));
    assert_eq!(up.ended(), Some(0));
    scene.verifies();
}

#[test]
fn the_owner_goes_with_its_supervisor() {
    let scene = Scene::new();
    let up = Up::begin(&scene);
    let (_, owner) = up.status(&[]);
    drop(up);
    let deadline = Instant::now() + TIMEOUT;
    while scene.run(&["status"]).code == Some(0) {
        assert!(Instant::now() < deadline, "process {owner} lives on");
        std::thread::sleep(Duration::from_millis(50));
    }
    scene.verifies();
}

#[test]
fn an_extension_that_takes_the_process_with_it_is_kept_down_from_the_third_start_on() {
    let scene = Scene::new();
    scene.settings("models: { default: offline }\nwasm: { budgets: { fuel: 9000000000000 } }\n");
    let folder = scene.home().join("extensions/bad");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("manifest.yaml"), "id: bad\nname: Bad\nentrypoint: bad.wasm\n").unwrap();
    fs::write(folder.join("bad.wasm"), holdfast_testkit::wasm::never_starts()).unwrap();
    let up = Up::begin(&scene);
    let mut dead = Vec::new();
    for times in 1..=2 {
        // While it starts, the process dies.
        logged(&scene, "extension.commanded", ["\"start\"", "\"bad\""], times);
        let owner = up.owner(&dead);
        scene.stop_while_code_executes(owner);
        kill(owner);
        dead.push(owner);
    }
    let (status, _) = up.status(&dead);
    // Nothing else is kept down for deaths that it had no part in.
    let failed = status["failed"].as_array().unwrap();
    assert_eq!(
        (failed.len(), &failed[0]["extension"], &failed[0]["code"]),
        (1, &"bad".into(), &"HF-4006".into())
    );
    assert!(failed[0]["fix"].as_str().unwrap().contains("ext restart"), "{status:#}");
    assert!(scene.run(&["run", "/kv_get key=a"]).ok().out.contains("kv_get"), "everything else works");
    assert!(scene.run(&["ext", "doctor", "bad"]).ok().out.contains("HF-4006"));
    fs::remove_dir_all(&folder).unwrap();
    assert!(scene.run(&["down"]).ok().out.contains("has stopped"));
    assert_eq!(up.ended(), Some(0));
}
