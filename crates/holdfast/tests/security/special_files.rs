//! Special files at the paths that the program opens: pipes, sockets, devices, folders, links and huge files. Each gets a problem with a
//! code, nothing waits for ever, and the rest of the home works.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::shared::{Ran, Scene, finish};

/// What is planted, by name.
const KINDS: &[&str] =
    &["pipe", "socket", "zero", "terminal", "kmsg", "folder", "dangling", "looping", "sparse", "closed"];

/// Plants a special file.
fn plant(kind: &str, path: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    match kind {
        "pipe" => assert!(Command::new("mkfifo").arg(path).status().unwrap().success()),
        // A path that is too long for a socket is reached by a shorter one.
        "socket" => {
            let short = tempfile::tempdir().unwrap();
            symlink(path.parent().unwrap(), short.path().join("s")).unwrap();
            drop(UnixListener::bind(short.path().join("s").join(path.file_name().unwrap())).unwrap());
        }
        "zero" => symlink("/dev/zero", path).unwrap(),
        "terminal" => symlink("/dev/tty", path).unwrap(),
        "kmsg" => symlink("/proc/kmsg", path).unwrap(),
        "folder" => fs::create_dir(path).unwrap(),
        "dangling" => symlink("nowhere", path).unwrap(),
        "looping" => symlink(path, path).unwrap(),
        "sparse" => File::create(path).unwrap().set_len(8 << 30).unwrap(),
        "closed" => {
            fs::write(path, "\u{1}: [unclosed").unwrap();
            fs::set_permissions(path, Permissions::from_mode(0o000)).unwrap();
        }
        other => panic!("{other}"),
    }
}

/// Whether modes mean nothing, as for root.
fn reads_anything() -> bool {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::set_permissions(file.path(), Permissions::from_mode(0o000)).unwrap();
    File::open(file.path()).is_ok()
}

/// A file of each kind at each place of an extension, all in one home.
const PLACES: &[(&str, &str, &str)] = &[
    ("manifest", "{}/manifest.yaml", ""),
    ("python", "{}/main.py", "entrypoint: main.py\n"),
    ("component", "{}/code.wasm", "entrypoint: code.wasm\n"),
    ("prompt", "{}/prompt.jinja2", "agent: { instructions: help }\n"),
    ("tool", "tools/{}.py", ""),
];

// Finding M7.
#[test]
fn special_files_of_extensions_are_reported_and_the_rest_works() {
    let scene = Scene::new();
    let extensions = scene.home().join("extensions");
    let mut planted = Vec::new();
    for (place, path, manifest) in PLACES {
        for kind in KINDS {
            let id = format!("{place}-{kind}");
            if !manifest.is_empty() {
                fs::create_dir_all(extensions.join(&id)).unwrap();
                let text = format!("id: {id}\nname: x\n{manifest}");
                fs::write(extensions.join(&id).join("manifest.yaml"), text).unwrap();
            }
            plant(kind, &extensions.join(path.replace("{}", &id)));
            planted.push(id);
        }
    }
    // Forty sparse files in one extension: none is too large, all of them together are.
    fs::create_dir_all(extensions.join("many")).unwrap();
    fs::write(extensions.join("many/manifest.yaml"), "id: many\nname: x\ncommand: [./run]\n").unwrap();
    for number in 0..40 {
        File::create(extensions.join(format!("many/{number}"))).unwrap().set_len(100 << 20).unwrap();
    }
    fs::create_dir_all(extensions.join("good")).unwrap();
    let good = "id: good\nname: x\nagent: { instructions: help }\n";
    fs::write(extensions.join("good/manifest.yaml"), good).unwrap();

    let listed = scene.run(&["ext", "list"]);
    let all = format!("{}{}", listed.out, listed.err);
    assert!(all.contains("good"), "{listed:#?}");
    // What root may read does not count as a special file.
    let is_plain = |id: &str| id.ends_with("closed") && reads_anything();
    let is_told = |id: &String| all.lines().any(|line| line.contains(id.as_str()) && line.contains("HF-"));
    let silent: Vec<_> = planted.iter().filter(|id| !is_plain(id) && !is_told(id)).collect();
    assert!(silent.is_empty(), "nothing was said about {silent:?}");
    assert!(all.contains("more than 268435456 bytes"), "{all}");
    scene.run(&["call", "file_list", "{}"]).ok();
}

/// What a home is read from at every start: each of these is planted alone, because most of them end the command.
const OPENED: &[&str] = &[
    "config",
    "config/settings.yaml",
    "config/policy.yaml",
    ".env",
    "secrets.age",
    "secrets.key",
    "secrets.digest",
    "prompts",
    "prompts/orchestrator.jinja2",
    "lock",
    "holdfast.db",
    "holdfast.db-wal",
    "holdfast.db-shm",
    "holdfast.db-journal",
    "extensions",
    "extensions/tools",
    "extensions/channels",
];

/// What is taken as missing where it is not a file: planted all at once, so that none hides another.
const IGNORED: &[&str] = &[
    "control.path",
    "control.sock",
    "holdfast.db-head",
    "secrets.lock",
    "history",
    ".restart_requested",
    "generations/executing",
    "generations/crashed",
    "data/kv/kv.db",
    "data/kv/kv.db-wal",
    "data/kv/kv.db-shm",
    "data/kv/kv.db-journal",
    "data/scheduler/schedules.json",
];

/// Folders of a home, the inner ones apart from those above them.
const FOLDERS: &[&[&str]] =
    &[&["data", "generations", "environments", "mcp"], &["data/kv", "data/scheduler", "generations/running"]];

/// What is as it should be.
fn is_regular(place: &str, kind: &str) -> bool {
    let a_folder = ["config", "prompts", "extensions", "extensions/tools", "extensions/channels"];
    // Files that are only locked or looked for, and files beside a database of which SQLite reads the head.
    let not_read = ["lock", "secrets.lock", ".restart_requested", "history"].contains(&place)
        || ["-wal", "-shm", "-journal"].iter().any(|end| place.ends_with(end));
    match kind {
        "folder" => a_folder.contains(&place) || FOLDERS.iter().any(|folders| folders.contains(&place)),
        "socket" => place == "control.sock",
        // A database is opened where it is used, which `special_files_of_built_in_extensions_are_reported` shows.
        "sparse" => not_read || place.starts_with("data/"),
        "closed" => reads_anything() && place != "control.sock",
        _ => false,
    }
}

fn replant(scene: &Scene, kind: &str, place: &str) {
    let path = scene.home().join(place);
    let _absent = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
    plant(kind, &path);
}

/// Whether a line with a code names the path.
fn names(ran: &Ran, scene: &Scene, place: &str) -> bool {
    let path = scene.home().join(place).display().to_string();
    let ends = |rest: &str| !rest.starts_with('-');
    let named = |line: &str| line.match_indices(&path).any(|(at, _)| ends(&line[at + path.len()..]));
    ran.err.contains("[HF-") && ran.err.lines().any(named)
}

// Finding M7.
#[test]
fn special_files_of_a_home_are_reported_and_never_waited_for() {
    let mut silent = Vec::new();
    for (place, kind) in OPENED.iter().flat_map(|place| KINDS.iter().map(move |kind| (*place, *kind))) {
        let scene = Scene::new();
        replant(&scene, kind, place);
        let ran = scene.run(&["call", "file_list", "{}"]);
        assert!(!ran.err.contains("panicked"), "{place} as {kind}: {ran:#?}");
        assert!(ran.code == Some(0) || ran.err.contains("error[HF-"), "{place} as {kind}: {ran:#?}");
        if !is_regular(place, kind) && !names(&ran, &scene, place) {
            silent.push(format!("{place} as {kind}: {ran:#?}"));
        }
    }
    assert!(silent.is_empty(), "nothing was said about {}:\n{}", silent.len(), silent.join("\n"));
}

// Finding M7: what is not used is reported by every command, and the command does its work.
#[test]
fn special_files_that_are_not_used_are_reported_and_never_waited_for() {
    let mut silent = Vec::new();
    for places in FOLDERS.iter().copied().chain([IGNORED]) {
        for kind in KINDS {
            let scene = Scene::new();
            places.iter().for_each(|place| replant(&scene, kind, place));
            // Its socket cannot be made where a folder is.
            let left_out = |place: &&&str| !(**place == "control.sock" && *kind == "folder");
            if !places.iter().all(|place| left_out(&place)) {
                fs::remove_dir(scene.home().join("control.sock")).unwrap();
            }
            let ran = scene.run(&["call", "file_list", "{}"]);
            assert!(!ran.err.contains("panicked"), "{kind}: {ran:#?}");
            assert!(ran.code == Some(0) || ran.err.contains("error[HF-"), "{kind}: {ran:#?}");
            for place in places.iter().filter(left_out) {
                let told = names(&ran, &scene, place) && ran.err.contains("HF-1508");
                if !told && !is_regular(place, kind) {
                    silent.push(format!("{place} as {kind}: {}", ran.err));
                }
            }
        }
    }
    assert!(silent.is_empty(), "nothing was said about {}:\n{}", silent.len(), silent.join("\n"));
}

// Finding M7: the packages that single files share.
#[test]
fn a_special_list_of_packages_is_reported() {
    let mut silent = Vec::new();
    for kind in KINDS.iter().filter(|kind| **kind != "closed" || !reads_anything()) {
        let scene = Scene::new();
        let tools = scene.home().join("extensions/tools");
        fs::create_dir_all(&tools).unwrap();
        fs::write(tools.join("shout.py"), "def run(text: str) -> str:\n    'x'\n    return text.upper()\n")
            .unwrap();
        plant(kind, &scene.home().join("extensions/requirements.txt"));
        let listed = scene.run(&["ext", "list"]);
        let told = format!("{}{}", listed.out, listed.err);
        assert!(!told.contains("panicked"), "{kind}: {told}");
        if !(told.contains("HF-") && told.contains("requirements.txt")) {
            silent.push(format!("{kind}: {listed:#?}"));
        }
    }
    assert!(silent.is_empty(), "{}", silent.join("\n"));
}

// Finding M7: the files of built-in extensions, by the tools that read them.
#[test]
fn special_files_of_built_in_extensions_are_reported() {
    let tools = [
        ("data/kv/kv.db", "kv_get", r#"{"key": "x"}"#),
        ("data/scheduler/schedules.json", "list_schedules", "{}"),
    ];
    for (place, tool, arguments) in tools {
        for kind in KINDS.iter().filter(|kind| **kind != "closed" || !reads_anything()) {
            let scene = Scene::new();
            scene.policy("profile: full-auto\n");
            replant(&scene, kind, place);
            let ran = scene.run(&["call", tool, arguments]);
            assert!(ran.err.contains("[HF-") && !ran.err.contains("panicked"), "{place} as {kind}: {ran:#?}");
        }
    }
}

// Finding M7.
#[test]
fn special_files_that_a_user_names_are_refused() {
    let scene = Scene::new();
    for kind in KINDS.iter().filter(|kind| **kind != "closed" || !reads_anything()) {
        let path = scene.root().join(format!("named-{kind}"));
        plant(kind, &path);
        let named = path.to_str().unwrap();
        for arguments in [
            &["run", "hello", "--attach", named][..],
            &["run", "hello", "--model", &format!("script:{named}")],
            &["run", "hello", "--model", &format!("cassette:{named}")],
        ] {
            let ran = scene.run(arguments);
            assert!(ran.code != Some(0) && ran.err.contains("[HF-"), "{arguments:?}: {ran:#?}");
        }
    }
}

// Finding M7: what only one command reads.
#[test]
fn special_files_that_one_command_reads_are_reported() {
    for kind in KINDS.iter().filter(|kind| **kind != "closed" || !reads_anything()) {
        let scene = Scene::new();
        // Titles and projects of conversations, by an extension that asks for them.
        let folder = scene.home().join("extensions/titles");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("manifest.yaml"), "id: titles\nname: x\nentrypoint: main:Titles\n").unwrap();
        let class = "class Titles:\n    async def initialize(self, context):\n        self.context = context\n\n    def get_tools(self):\n        \
                     async def titles() -> str:\n            'x'\n            return str(await self.context.list_threads())\n        return [titles]\n";
        fs::write(folder.join("main.py"), class).unwrap();
        scene.policy("profile: full-auto\n");
        replant(&scene, kind, "conversations.json");
        let ran = scene.run(&["call", "titles", "{}"]);
        assert!(ran.code == Some(1) && ran.err.contains("conversations.json"), "{kind}: {ran:#?}");
        // The manifests that the list of MCP servers looks into.
        plant(kind, &scene.home().join("extensions/other/manifest.yaml"));
        let ran = scene.run(&["mcp", "list"]);
        assert!(ran.code.is_some() && !ran.err.contains("panicked"), "{kind}: {ran:#?}");
        // The database that an import takes schedules from, and what SQLite opens beside it.
        for file in ["scheduler.db", "scheduler.db-wal", "scheduler.db-journal"] {
            let project = scene.root().join(format!("project-{file}"));
            let data = project.join("sandbox/data/scheduler");
            fs::create_dir_all(project.join("sandbox/extensions")).unwrap();
            fs::create_dir_all(&data).unwrap();
            if file != "scheduler.db" {
                fs::write(data.join("scheduler.db"), "").unwrap();
            }
            plant(kind, &data.join(file));
            let ran = scene.run(&["import", "yodoca", project.to_str().unwrap(), "--dry-run"]);
            let told = format!("{}{}", ran.out, ran.err);
            assert!(ran.code.is_some() && !told.contains("panicked"), "{file} as {kind}: {told}");
        }
    }
}

// Finding M7: standard input may have no end.
#[test]
fn endless_standard_input_is_refused() {
    let scene = Scene::new();
    for (arguments, text) in [
        (&["run", "-"][..], "standard input has more than 8388608 bytes"),
        (&["secret", "set", "x"], "standard input has more than 65536 bytes"),
        (&["chat"], ""),
    ] {
        let zeros = fs::File::open("/dev/zero").unwrap();
        let mut command = scene.command(arguments);
        command.stdin(zeros).stdout(Stdio::piped()).stderr(Stdio::piped());
        let ran = finish(command.spawn().unwrap());
        assert!(ran.err.contains(text), "{arguments:?}: {ran:#?}");
        assert_eq!(ran.code, Some(if text.is_empty() { 0 } else { 2 }), "{arguments:?}: {ran:#?}");
    }
}
