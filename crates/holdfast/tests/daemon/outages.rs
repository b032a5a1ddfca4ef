//! A gate that is installed and not up denies, whatever brought it down: its process was killed, the owner was, it is still starting,
//! it is kept down, its code was broken, or its folder cannot be read.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::shared::{Owner, Ran, Scene, bodies, finish, until};
use holdfast_testkit::wasm::{Gates, gate};
use serde_json::{Value, json};

const WRITE: [&str; 3] = ["call", "file_write", r#"{ "path": "effect.txt", "text": "done" }"#];

/// A home whose policy allows everything.
fn scene() -> Scene {
    let scene = Scene::new();
    scene.run(&["init"]).ok();
    scene.policy("profile: full-auto\n");
    scene
}

/// Installs a component that denies every call.
fn install_gate(scene: &Scene) -> PathBuf {
    let folder = scene.home().join("extensions/guard");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("guard.wasm"), gate(&Gates::AllowsTimes(0), false)).unwrap();
    fs::write(folder.join("manifest.yaml"), "id: guard\nname: Guard\nentrypoint: guard.wasm\n").unwrap();
    folder
}

/// Installs a class that denies every call, with this in its `initialize` and this besides.
fn install_class(scene: &Scene, initialize: &str, more: &str) {
    let folder = scene.home().join("extensions/guard");
    fs::create_dir_all(&folder).unwrap();
    let code = format!(
        "import asyncio\n\n\nclass Guard:\n    async def initialize(self, context):\n        self.context = context\n        \
         {initialize}\n\n    async def tool_gate(self, request):\n        \
         return {{\"decision\": \"deny\", \"reason\": \"never\"}}\n\n    def note(self, text):\n        \
         with open(self.context.data_dir / \"notes\", \"a\") as file:\n            file.write(text + \"\\n\")\n{more}"
    );
    fs::write(folder.join("main.py"), code).unwrap();
    fs::write(folder.join("manifest.yaml"), "id: guard\nname: Guard\nentrypoint: main:Guard\n").unwrap();
}

fn notes(scene: &Scene) -> usize {
    fs::read_to_string(scene.home().join("data/guard/notes")).unwrap_or_default().lines().count()
}

/// The call was denied, and had no effect.
#[track_caller]
fn denied(scene: &Scene, ran: &Ran, why: &[&str]) {
    assert_ne!(ran.code, Some(0), "{ran:#?}");
    let said = format!("{}{}", ran.out, ran.err);
    assert!(why.iter().all(|why| said.contains(why)), "{why:?}: {ran:#?}");
    assert!(!scene.work().join("effect.txt").exists(), "it ran: {ran:#?}");
}

/// What is wrong with the gate's extension, as `ext list` has it.
fn fault(scene: &Scene) -> String {
    let listed = scene.run(&["ext", "list", "--json"]);
    let guard = listed.out.lines().find(|line| line.contains("\"id\":\"guard\"")).unwrap_or_default();
    guard.to_owned()
}

/// An owner that is started and not waited for.
fn start(scene: &Scene) -> Child {
    let mut command = scene.command(&["up", "--unsupervised"]);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// The processes below one.
pub(crate) fn below(process: u32) -> Vec<u32> {
    let children = fs::read_to_string(format!("/proc/{process}/task/{process}/children"));
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let of_threads = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let all: String = children.into_iter().chain(of_threads).collect::<Vec<_>>().join(" ");
    let mut found: Vec<u32> = all.split_whitespace().filter_map(|child| child.parse().ok()).collect();
    found.sort_unstable();
    found.dedup();
    found.iter().flat_map(|child| std::iter::once(*child).chain(below(*child))).collect()
}

#[test]
fn a_gate_whose_process_is_killed_again_and_again_lets_no_call_through() {
    let scene = scene();
    install_class(&scene, "self.note('up')", "");
    let owner = start(&scene);
    until("it is up", || scene.run(&["status"]).code == Some(0));
    denied(&scene, &scene.run(&WRITE), &["never"]);
    for _ in 0..8 {
        for process in below(owner.id()) {
            let name = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
            if name.starts_with("python") {
                drop(Command::new("kill").args(["-9", &process.to_string()]).stderr(Stdio::null()).status());
            }
        }
        denied(&scene, &scene.run(&WRITE), &["denied by guard/0"]);
    }
    assert!(notes(&scene) > 1, "it was restarted meanwhile");
    kill(owner);
    scene.verifies();
}

#[test]
fn a_message_that_waits_while_a_gate_starts_slowly_is_judged_by_it() {
    let scene = scene();
    let call =
        json!({ "calls": [{ "tool": "file_write", "arguments": { "path": "effect.txt", "text": "done" } }] });
    let steps = json!([call.clone(), { "says": "said" }, call, { "says": "said again" }]);
    let model = scene.script("wipe", &steps);
    scene.settings(&format!("models: {{ default: \"{model}\" }}\n"));
    install_class(&scene, "await asyncio.sleep(3)", "");
    let folder = scene.home().join("extensions/letters");
    fs::create_dir_all(&folder).unwrap();
    let code = "class Letters:\n    async def initialize(self, context):\n        self.context = context\n\n    \
                async def start(self):\n        await self.context.on_user_message(text='go on', user_id='1', channel=self)\n\n    \
                async def send_to_user(self, user_id, message):\n        \
                with open(self.context.data_dir / 'sent', 'a') as file:\n            file.write(message + '\\n')\n";
    fs::write(folder.join("main.py"), code).unwrap();
    fs::write(folder.join("manifest.yaml"), "id: letters\nname: Letters\nentrypoint: main:Letters\n")
        .unwrap();
    let sent = || {
        let text = fs::read_to_string(scene.home().join("data/letters/sent")).unwrap_or_default();
        text.lines().count()
    };
    // The first life makes the gate known; in the second one the message is there before the gate is.
    for life in 1..=2 {
        let owner = start(&scene);
        until("it is answered", || sent() >= life);
        until("it is up", || scene.run(&["status"]).code == Some(0));
        if life == 1 {
            drop(fs::remove_file(scene.work().join("effect.txt")));
        }
        kill(owner);
    }
    assert!(!scene.work().join("effect.txt").exists(), "the call of the second life ran");
    scene.verifies();
}

// Finding D8.
#[test]
fn a_gate_in_a_process_of_its_own_is_not_blamed_for_deaths_of_the_owner() {
    let scene = scene();
    install_class(&scene, "self.note('initialising'); await asyncio.sleep(2)", "");
    denied(&scene, &scene.run(&WRITE), &["never"]);
    for _ in 0..3 {
        let (owner, before) = (start(&scene), notes(&scene));
        until("it initialises", || notes(&scene) > before);
        kill(owner);
    }
    let _owner = Owner::begin(&scene);
    denied(&scene, &scene.run(&WRITE), &["never"]);
    assert!(!scene.run(&["status"]).ok().out.contains("HF-4006"));
    scene.verifies();
}

// Finding D8: kills at points all over the start of a fresh home.
#[test]
fn random_kills_while_a_home_starts_quarantine_nothing() {
    let scene = scene();
    for delay in [20, 60, 120, 180, 260, 300, 350, 400, 260, 300, 350, 400, 550, 700, 900, 1_200] {
        let owner = start(&scene);
        std::thread::sleep(std::time::Duration::from_millis(delay));
        kill(owner);
    }
    let _owner = Owner::begin(&scene);
    let status = scene.run(&["status", "--json"]).ok().json();
    assert_eq!(status["failed"], json!([]), "{status:#}");
    let guards = scene.run(&["ext", "list", "--json"]).ok().lines();
    let guard = guards.iter().find(|line| line["id"] == "injection-guard").unwrap();
    assert_eq!(guard["state"], "ACTIVE", "{guard:#}");
    scene.verifies();
}

// Findings D8 and D9: the code of this one is executing whenever the process dies.
#[test]
fn a_gate_that_is_kept_down_after_two_crashes_judges_as_it_was() {
    let scene = scene();
    scene.settings("models: { default: offline }\nwasm: { budgets: { fuel: 9000000000000 } }\n");
    let folder = install_gate(&scene);
    denied(&scene, &scene.run(&WRITE), &["denied by guard/0: it was asked too often"]);
    fs::write(folder.join("guard.wasm"), holdfast_testkit::wasm::never_starts()).unwrap();
    for _ in 0..2 {
        let owner = start(&scene);
        scene.stop_while_code_executes(owner.id().into());
        kill(owner);
    }
    let _owner = Owner::begin(&scene);
    for _ in 0..2 {
        denied(&scene, &scene.run(&WRITE), &["denied by guard/0: it was asked too often"]);
    }
    let status = scene.run(&["status"]).ok().out;
    assert!(status.contains("HF-4006") && status.contains("as it was"), "{status}");
    scene.verifies();
}

#[test]
fn a_gate_that_was_broken_by_an_edit_judges_as_it_was_after_a_restart() {
    let scene = scene();
    let folder = install_gate(&scene);
    let owner = Owner::begin(&scene);
    denied(&scene, &scene.run(&WRITE), &["denied by guard/0: it was asked too often"]);
    fs::write(folder.join("guard.wasm"), "this is not a component").unwrap();
    until("the edit is seen", || fault(&scene).contains("HF-41"));
    denied(&scene, &scene.run(&WRITE), &["denied by guard/0: it was asked too often"]);
    drop(owner);
    // The last good version judges, also in the next process.
    for _ in 0..2 {
        denied(&scene, &scene.run(&WRITE), &["denied by guard/0: it was asked too often"]);
    }
    let owner = Owner::begin(&scene);
    let status = scene.run(&["status"]).ok().out;
    assert!(status.contains("guard.wasm") && status.contains("as it was"), "{status}");
    drop(owner);
    // One that is disabled is not expected any more.
    fs::write(
        folder.join("manifest.yaml"),
        "id: guard\nname: Guard\nentrypoint: guard.wasm\nenabled: false\n",
    )
    .unwrap();
    scene.run(&WRITE).ok();
    assert!(scene.work().join("effect.txt").exists());
    scene.verifies();
}

/// Puts something unreadable in the place of a path, and gives what undoes it.
fn hide(scene: &Scene, path: &Path, way: &str) -> impl FnOnce() + use<> {
    let (path, aside) = (path.to_owned(), scene.root().join("aside"));
    fs::rename(&path, &aside).unwrap();
    match way {
        "a loop of links" => symlink(&path, &path).unwrap(),
        "a file" => fs::write(&path, "not a folder").unwrap(),
        "a dangling link" => symlink(scene.root().join("nowhere"), &path).unwrap(),
        other => panic!("{other}"),
    }
    move || {
        fs::remove_file(&path).unwrap();
        fs::rename(&aside, &path).unwrap();
    }
}

#[test]
fn a_folder_that_cannot_be_read_takes_no_gate_away() {
    for (what, way) in [
        ("", "a loop of links"),
        ("", "a file"),
        ("guard", "a loop of links"),
        ("guard", "a file"),
        ("guard", "a dangling link"),
        ("guard/manifest.yaml", "a loop of links"),
        ("guard/guard.wasm", "a loop of links"),
    ] {
        let scene = scene();
        install_gate(&scene);
        let owner = Owner::begin(&scene);
        denied(&scene, &scene.run(&WRITE), &["denied by guard/0: it was asked too often"]);
        let place = Path::new("extensions").join(what).components().collect::<PathBuf>();
        let undo = hide(&scene, &scene.home().join(place), way);
        // The policy's folder is watched as well: this has everything looked at.
        scene.policy("profile: full-auto\n# changed\n");
        until(&format!("{what} {way} is reported"), || fault(&scene).contains("HF-"));
        assert!(scene.run(&["ext", "doctor", "guard"]).out.contains("HF-"), "{what} {way}");
        denied(&scene, &scene.run(&WRITE), &["denied by guard/0: it was asked too often"]);
        drop(owner);
        denied(&scene, &scene.run(&WRITE), &["denied by guard/0: it was asked too often"]);
        let owner = Owner::begin(&scene);
        assert!(fault(&scene).contains("HF-"), "{what} {way}");
        denied(&scene, &scene.run(&WRITE), &["denied by guard/0: it was asked too often"]);
        undo();
        scene.policy("profile: full-auto\n# changed again\n");
        until(&format!("{what} {way} is read again"), || scene.run(&WRITE).err.contains("asked too often"));
        denied(&scene, &scene.run(&WRITE), &["denied by guard/0: it was asked too often"]);
        drop(owner);
        let frames = scene.frames("system");
        let removed = bodies(&frames, "extension.removed");
        assert_eq!(removed, Vec::<&Value>::new(), "{what} {way}");
        scene.verifies();
    }
}

/// A user who is not root sees what `chmod` does.
#[test]
fn a_command_that_takes_the_right_to_read_extensions_away_takes_no_gate_away() {
    let scene = scene();
    let folder = install_gate(&scene);
    let root = Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
    let program = scene.root().join("holdfast");
    fs::copy(env!("CARGO_BIN_EXE_holdfast"), &program).unwrap();
    if root {
        for path in crate::shared::tree(scene.root()).into_keys().chain([scene.root().to_owned()]) {
            chown(path, Some(65534), Some(65534)).unwrap();
        }
    }
    let command = |arguments: &[&str]| {
        let mut command = Command::new(if root { "setpriv" } else { "env" });
        if root {
            command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
        }
        command.arg(&program).arg("--home").arg(scene.home()).args(arguments).current_dir(scene.work());
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", scene.root());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    let run = |arguments: &[&str]| finish(command(arguments).spawn().unwrap());
    let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    let owner = || {
        let owner =
            command(&["up", "--unsupervised"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        until("it is up", || run(&["status"]).code == Some(0));
        owner
    };
    let all = scene.home().join("extensions");
    for (path, closed) in [(&all, 0o000), (&all, 0o400), (&all, 0o100), (&folder, 0o000), (&folder, 0o100)] {
        let first = owner();
        denied(&scene, &run(&WRITE), &["denied by guard/0: it was asked too often"]);
        mode(path, closed);
        // Whatever is looked at then, the gate stays.
        mode(&scene.home().join("config"), 0o755);
        for _ in 0..3 {
            denied(&scene, &run(&WRITE), &["denied by guard/0: it was asked too often"]);
        }
        kill(first);
        denied(&scene, &run(&WRITE), &["denied by guard/0: it was asked too often"]);
        mode(path, 0o700);
        denied(&scene, &run(&WRITE), &["denied by guard/0: it was asked too often"]);
    }
}
