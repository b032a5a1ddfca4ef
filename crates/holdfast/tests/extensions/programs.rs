//! Extensions that are programs: called, swapped, replayed without their language, and gone when their owner is.

use std::fs;
use std::path::Path;

use crate::shared::{Owner, Scene, read_request, until};

const MANIFEST: &str = "id: shouter\nname: Shouter\ncommand: [python3, main.py]\nconfig: { mark: '!' }\n";

/// The program of `docs/protocol.md`, as it stands there.
fn program() -> String {
    let page =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/protocol.md")).unwrap();
    let (_, rest) = page.split_once("```python\n").unwrap();
    rest.split_once("```").unwrap().0.to_owned()
}

fn install(scene: &Scene, program: &str) {
    let folder = scene.home().join("extensions/shouter");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("main.py"), program).unwrap();
    fs::write(folder.join("manifest.yaml"), MANIFEST).unwrap();
}

fn shout(scene: &Scene) -> String {
    scene.run(&["call", "shout", r#"{"text": "hello"}"#]).out
}

/// The programs that run in the scene's home.
fn running(scene: &Scene) -> usize {
    let home = scene.home().canonicalize().unwrap();
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let folders = entries.filter_map(|entry| fs::read_link(entry.path().join("cwd")).ok());
    folders.filter(|folder| folder.starts_with(home.join("generations"))).count()
}

#[test]
fn a_program_is_an_extension_like_any_other() {
    let scene = Scene::new();
    install(&scene, &program());
    assert!(scene.run(&["ext", "check", "shouter"]).ok().out.contains("shout"));
    assert!(shout(&scene).contains("HELLO!"), "{}", shout(&scene));
    assert!(scene.run(&["ext", "list"]).ok().out.contains("shouter"));
    // What it answered is in the log, so that nobody needs it to replay.
    fs::remove_dir_all(scene.home().join("extensions/shouter")).unwrap();
    let sessions = scene.run(&["session", "list", "--all", "--json"]).ok().out;
    let sessions: Vec<serde_json::Value> =
        sessions.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(!sessions.is_empty());
    for session in sessions {
        scene.run(&["replay", session["session"].as_str().unwrap()]).ok();
    }
    scene.verifies();
}

/// Settings are part of the generation that is kept, and reach the program however long they are.
#[test]
fn settings_over_4_kib_reach_a_program() {
    let scene = Scene::new();
    install(&scene, &program());
    let mark = "!".repeat(5000);
    let manifest = MANIFEST.replace("'!'", &format!("'{mark}'"));
    fs::write(scene.home().join("extensions/shouter/manifest.yaml"), manifest).unwrap();
    assert!(shout(&scene).contains(&format!("HELLO{mark}")), "{}", shout(&scene));
}

#[test]
fn an_edit_is_live_and_a_broken_one_takes_nothing_away() {
    let scene = Scene::new();
    install(&scene, &program());
    let _owner = Owner::begin(&scene);
    until("it shouts", || shout(&scene).contains("HELLO!"));
    install(&scene, &program().replace(".upper()", ".title()"));
    until("the edit is live", || shout(&scene).contains("Hello!"));
    install(&scene, "this is not a program");
    until("the edit is reported", || scene.run(&["ext", "doctor", "shouter"]).out.contains("HF-4003"));
    assert!(shout(&scene).contains("Hello!"), "the last good one serves: {}", shout(&scene));
    assert!(
        running(&scene) <= 2,
        "the one that serves and perhaps the one before, and none that was given up"
    );
}

#[test]
fn nothing_outlives_an_owner_that_is_killed() {
    let scene = Scene::new();
    install(&scene, &program());
    let owner = Owner::begin(&scene);
    until("it runs", || running(&scene) > 0);
    drop(owner);
    until("it is gone", || running(&scene) == 0);
    let _next = Owner::begin(&scene);
    assert!(shout(&scene).contains("HELLO!"));
}

/// A host that was not granted is refused with the command that grants it, and that command does.
#[test]
fn what_a_refusal_says_to_do_helps() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            read_request(&stream);
            let answer = b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nsunny";
            let _ = std::io::Write::write_all(&mut stream, answer);
        }
    });
    let scene = Scene::new();
    scene.policy("profile: full-auto\n");
    let tools = scene.home().join("extensions/tools");
    fs::create_dir_all(&tools).unwrap();
    let program = format!(
        "import urllib.request, urllib.error\ndef run() -> str:\n    'The weather.'\n    try: return urllib.request.urlopen('http://127.0.0.1:{port}/').read().decode()\n    except urllib.error.HTTPError as error: return error.read().decode()\n"
    );
    fs::write(tools.join("weather.py"), program).unwrap();
    let refused = scene.run(&["call", "weather", "{}"]).ok().out;
    let command = format!("holdfast ext grant weather --network 127.0.0.1:{port}");
    assert!(refused.contains(&command), "{refused}");
    let words: Vec<&str> = command.split(' ').skip(1).collect();
    scene.run(&words).ok();
    assert!(scene.run(&["call", "weather", "{}"]).ok().out.contains("sunny"));
    scene.run(&["ext", "revoke", "weather"]).ok();
    assert!(scene.run(&["call", "weather", "{}"]).ok().out.contains(&command));
}
