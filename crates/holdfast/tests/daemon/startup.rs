//! A home that starts: who waits for whom, what commands see meanwhile, and what they do not start.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::shared::{Owner, Scene, finish, until};
use serde_json::json;

fn install(scene: &Scene, id: &str, class: &str, code: &str) {
    let folder = scene.home().join("extensions").join(id);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("main.py"), code).unwrap();
    let manifest = format!("id: {id}\nname: {class}\nentrypoint: main:{class}\n");
    fs::write(folder.join("manifest.yaml"), manifest).unwrap();
}

fn scene() -> Scene {
    let scene = Scene::new();
    scene.run(&["init"]).ok();
    scene.policy("profile: full-auto\n");
    scene
}

fn start(scene: &Scene) -> Running {
    let mut command = scene.command(&["up", "--unsupervised"]);
    Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
}

/// An owner that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

// Finding D15.
#[test]
fn status_answers_at_once_and_says_what_is_starting() {
    for code in [
        "import asyncio\n\n\nclass Slow:\n    async def initialize(self, context):\n        await asyncio.sleep(600)\n",
        "import asyncio\n\n\nclass Slow:\n    async def start(self):\n        await asyncio.sleep(600)\n",
        "import time\n\ntime.sleep(600)\n\n\nclass Slow:\n    pass\n",
    ] {
        answers_at_once(code);
    }
}

fn answers_at_once(code: &str) {
    let scene = scene();
    install(&scene, "slow", "Slow", code);
    let _owner = start(&scene);
    until("it answers while an extension hangs", || {
        let status = serde_json::from_str(&scene.run(&["status", "--json"]).out).unwrap_or(json!({}));
        status["starting"] == json!(["slow"])
    });
    assert!(scene.run(&["status"]).ok().out.contains("starting: slow"));
    // Others are served, after the ten seconds at most that it had to start.
    assert!(scene.run(&["run", "/kv_get key=a"]).ok().out.contains("kv_get"));
    let begun = Instant::now();
    assert!(scene.run(&["status"]).ok().out.contains("starting: slow"));
    assert!(begun.elapsed() < Duration::from_secs(10));
}

// Finding D16.
#[test]
fn what_is_listed_on_a_home_that_is_down_is_not_started() {
    let scene = scene();
    scene.run(&["run", "hello", "--session", "said"]).ok();
    let code = "class Letters:\n    async def initialize(self, context):\n        self.context = context\n        \
                self.note('initialised')\n\n    async def start(self):\n        self.note('started')\n        \
                await self.context.on_user_message(text='go on', user_id='1', channel=self)\n\n    \
                async def run_background(self):\n        self.note('in the background')\n        \
                import asyncio\n        await asyncio.sleep(600)\n\n    \
                async def send_to_user(self, user_id, message, delivery):\n        \
                self.note('sent ' + delivery['id'] + ' ' + str(delivery['repeat']))\n\n    \
                def note(self, text):\n        with open(self.context.data_dir / 'notes', 'a') as file:\n            \
                file.write(text + '\\n')\n";
    install(&scene, "letters", "Letters", code);
    let notes = || fs::read_to_string(scene.home().join("data/letters/notes")).unwrap_or_default();
    for listing in [
        &["ext", "list"] as &[&str],
        &["ext", "show", "letters"],
        &["ext", "doctor"],
        &["tools"],
        &["agents"],
        &["session", "list"],
        &["bus", "status"],
        &["bus", "dead", "list"],
        &["policy", "explain", "kv_get"],
        &["policy", "show"],
        &["policy", "rules"],
        &["channels"],
        &["schedule", "list"],
        &["secret", "list"],
        &["questions", "list"],
        &["session", "show", "said"],
        &["session", "rename", "said", "words"],
        &["log", "list"],
        &["log", "show", "said"],
        &["log", "verify"],
        &["log", "export", "said"],
        &["log", "gc", "--keep-days", "9"],
        &["bus", "list"],
        &["bus", "show", "notes.made"],
        &["mcp", "list"],
        &["model", "list"],
        &["replay", "said"],
        &["doctor"],
        &["ext", "check", "letters"],
        &["ext", "enable", "letters"],
        &["ext", "reload", "letters"],
    ] {
        let ran = scene.run(listing);
        assert!(ran.code == Some(0) || ran.code == Some(1), "{listing:?}: {ran:#?}");
        // To know the tools of a class, it has to be initialised.
        for note in ["started", "in the background", "sent"] {
            assert!(!notes().contains(note), "{listing:?}: {}", notes());
        }
    }
    assert!(scene.run(&["ext", "list"]).ok().out.contains("letters"));
    let _owner = Owner::begin(&scene);
    // A class channel that takes `delivery` gets its id and whether it may be a repeat.
    until("it is started where the home is up", || notes().contains("sent bus."));
    assert!(
        notes().lines().any(|line| line.starts_with("sent bus.") && line.ends_with(" False")),
        "{}",
        notes()
    );
}

// Low finding of the reliability review: a class channel knows that it may have sent a message before.
#[test]
fn a_class_channel_that_died_while_it_sent_is_told_that_it_may_be_a_repeat() {
    let scene = scene();
    let code = "import os\n\n\nclass Letters:\n    async def initialize(self, context):\n        self.context = context\n\n    \
                async def start(self):\n        \
                if not (self.context.data_dir / 'notes').exists():\n            \
                await self.context.on_user_message(text='go on', user_id='1', channel=self)\n\n    \
                async def send_to_user(self, user_id, message, delivery):\n        \
                with open(self.context.data_dir / 'notes', 'a') as file:\n            \
                file.write(delivery['id'] + ' ' + str(delivery['repeat']) + '\\n')\n        \
                if not delivery['repeat']:\n            os._exit(1)\n";
    install(&scene, "letters", "Letters", code);
    let notes = || fs::read_to_string(scene.home().join("data/letters/notes")).unwrap_or_default();
    let _owner = Owner::begin(&scene);
    until("it is delivered again", || notes().lines().any(|line| line.ends_with(" True")));
    let first = notes().lines().next().unwrap().to_owned();
    let id = first.strip_suffix(" False").unwrap().to_owned();
    assert!(notes().contains(&format!("{id} True")), "{}", notes());
}

// Findings D9, A1: the last good version serves after a restart and after the death of its own process.
#[test]
fn the_last_good_version_of_a_class_survives_restarts() {
    let scene = scene();
    let good = "class Words:\n    def __init__(self):\n        pass\n\n    async def initialize(self, context):\n        \
                with open(context.data_dir / 'ups', 'a') as file:\n            file.write('up\\n')\n\n    \
                async def health_check(self):\n        return True\n\n    async def run_background(self):\n        \
                import asyncio\n        await asyncio.sleep(600)\n";
    install(&scene, "words", "Words", good);
    let broken = || {
        let status = scene.run(&["status", "--json"]).ok().json();
        let line =
            status["degraded"].as_array().unwrap().iter().find(|line| line["extension"] == "words").cloned();
        line.map(|line| line["message"].as_str().unwrap().to_owned()).unwrap_or_default()
    };
    let owner = Owner::begin(&scene);
    fs::write(
        scene.home().join("extensions/words/main.py"),
        "class Words:\n    def broken(:\n        pass\n",
    )
    .unwrap();
    until("the edit is seen", || broken().contains("main.py"));
    drop(owner);
    let ups = || fs::read_to_string(scene.home().join("data/words/ups")).unwrap_or_default().lines().count();
    let state = || {
        let listed = scene.run(&["ext", "list", "--json"]).ok().lines();
        listed.iter().find(|line| line["id"] == "words").unwrap()["state"].clone()
    };
    for _ in 0..2 {
        let owner = start(&scene);
        until("it is up", || scene.run(&["status"]).code == Some(0));
        until("the broken edit is reported", || broken().contains("main.py"));
        until("the last good version serves", || state() == "ACTIVE");
        let before = ups();
        for process in crate::outages::below(owner.0.id()) {
            let name = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
            if name.starts_with("python") {
                drop(std::process::Command::new("kill").args(["-9", &process.to_string()]).status());
            }
        }
        until("it is started again", || ups() > before && state() == "ACTIVE");
        until("the broken edit is reported again", || broken().contains("main.py"));
    }
    scene.verifies();
}

fn signal(owner: &Running, signal: &str) {
    let sent = std::process::Command::new("kill").args([signal, &owner.0.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

// Low findings of the reliability review: an owner that is stopped, and a control socket that is deleted.
#[test]
fn an_owner_that_does_not_answer_is_named_and_a_deleted_socket_is_made_again() {
    let scene = scene();
    let owner = start(&scene);
    until("it is up", || scene.is_up());
    signal(&owner, "-STOP");
    for command in [&["status"] as &[&str], &["run", "hello"], &["down"]] {
        let begun = Instant::now();
        scene.run(command).fails(2, "HF-1507");
        assert!(begun.elapsed() < Duration::from_secs(60), "{command:?}");
    }
    // Without a socket, the lock says whose it is.
    fs::remove_file(scene.home().join("control.sock")).unwrap();
    let problem = scene.run(&["down"]).fails(2, "HF-1507");
    assert!(problem.err.contains(&format!("process {} holds the lock", owner.0.id())), "{problem:#?}");
    signal(&owner, "-CONT");
    until("it listens again", || scene.run(&["status"]).code == Some(0));
    let second = scene.run(&["up", "--unsupervised"]).fails(2, "HF-1502");
    assert!(second.err.contains(&format!("process {} owns this home", owner.0.id())), "{second:#?}");
    assert!(scene.run(&["down"]).ok().out.contains("has stopped"));
}

// Low finding: `up` right after its predecessor was killed.
#[test]
fn a_home_can_be_started_right_after_its_owner_was_killed() {
    let scene = scene();
    for _ in 0..4 {
        let mut owner = start(&scene);
        until("it is up", || scene.run(&["status"]).code == Some(0));
        owner.0.kill().unwrap();
        let next = start(&scene);
        owner.0.wait().unwrap();
        until("the next one is up", || {
            let status = serde_json::from_str(&scene.run(&["status", "--json"]).out).unwrap_or(json!({}));
            status["process"] == next.0.id()
        });
    }
}

// Findings A1 and A3: in a home that is up.
#[test]
fn problems_of_a_manifest_have_their_place_in_a_home_that_is_up() {
    let scene = scene();
    let _owner = Owner::begin(&scene);
    install(&scene, "odd", "Odd", "class Odd:\n    pass\n");
    let manifest = scene.home().join("extensions/odd/manifest.yaml");
    fs::write(&manifest, "id: odd\nname: Odd\nentrypoint: main:Odd\ncolour: blue\n").unwrap();
    let doctor = || scene.run(&["ext", "doctor", "odd"]).out;
    until("the unknown field is reported", || {
        doctor().contains("manifest.yaml:4:1") && doctor().contains("colour")
    });
    let listed = scene.run(&["ext", "list"]).ok().out;
    assert!(listed.contains("manifest.yaml:4:1"), "{listed}");
    fs::write(&manifest, "id: odd\nname: Odd\nentrypoint: main:Odd\npriority: high\n").unwrap();
    until("the wrong value is reported", || doctor().contains("manifest.yaml:4:11"));
    let listed = scene.run(&["ext", "list", "--json"]).ok().lines();
    let fault = listed.iter().find(|line| line["id"] == "odd").unwrap()["fault"].clone();
    assert!(fault.as_str().unwrap_or_default().contains("manifest.yaml:4:11"), "{fault}");
}

// Low finding of the reliability review: a home that can only be read, beside its owner.
#[cfg(target_os = "linux")]
#[test]
fn commands_beside_an_owner_work_where_the_home_can_only_be_read() {
    let scene = Scene::new();
    let owner = Owner::begin(&scene);
    let read_only = |arguments: &[&str]| {
        let whole = scene.command(arguments);
        let script = "mount --bind \"$0\" \"$0\" && mount -o remount,bind,ro \"$0\" && exec \"$@\"";
        let mut command = Command::new("unshare");
        command.args(["-rm", "sh", "-c", script]).arg(scene.home()).arg(whole.get_program());
        command.args(whole.get_args()).current_dir(scene.work());
        for (name, value) in whole.get_envs() {
            command.env(name, value.unwrap_or_default());
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        finish(command.spawn().unwrap())
    };
    // Some machines allow no namespaces.
    let namespaces =
        Command::new("unshare").args(["-rm", "true"]).status().is_ok_and(|status| status.success());
    for arguments in
        [&["ext", "doctor"][..], &["bus", "status"], &["status"], &["session", "list"], &["log", "list"]]
    {
        if namespaces {
            read_only(arguments).ok();
        }
    }
    drop(owner);
}

// Low finding of the reliability review: `… | head` printed HF-9001.
#[test]
fn a_reader_that_has_enough_is_no_error() {
    let scene = Scene::new();
    let mut command = scene.command(&["schema", "process"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let ran = child.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.code() == Some(141) && told.is_empty(), "{:?}: {told}", ran.status);
}
