//! `secret set`, `secret list` and `secret remove`: a value is never printed.

use holdfast_testkit::terminal::TestTerminal;

use super::down_and_up;
use crate::shared::{Owner, Scene, contains, tree};

const VALUE: &str = "correct-horse-battery";

#[test]
fn secrets_are_stored_listed_and_removed() {
    down_and_up(&Scene::new(), |scene| {
        let empty = scene.run(&["secret", "list"]).ok();
        assert!(empty.out.contains("no secrets are stored; `holdfast secret set NAME`"), "{empty:#?}");
        assert_eq!(scene.run(&["secret", "list", "--json"]).ok().out, "");

        let set = scene.run_with(&["secret", "set", "SEARCH_KEY"], format!("{VALUE}\n").as_bytes()).ok();
        assert_eq!(set.out, "SEARCH_KEY is stored (file)\n");
        let own = scene.run_with(&["secret", "set", "scout.TOKEN", "--json"], VALUE.as_bytes()).ok();
        assert_eq!((&own.json()["name"], &own.json()["store"]), (&"scout.TOKEN".into(), &"file".into()));

        let listed = scene.run(&["secret", "list"]).ok();
        assert!(listed.out.contains("SEARCH_KEY") && listed.out.contains("secrets.age"), "{listed:#?}");
        let lines = scene.run(&["secret", "list", "--json"]).ok().lines();
        let names: Vec<&str> = lines.iter().map(|line| line["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["SEARCH_KEY", "scout.TOKEN"]);
        for (path, content) in tree(&scene.home()) {
            assert!(!contains(&content, VALUE), "{} contains the value", path.display());
        }
        for ran in [&set, &own, &listed] {
            assert!(!ran.out.contains(VALUE) && !ran.err.contains(VALUE), "{ran:#?}");
        }

        let unknown = scene.run(&["secret", "remove", "SERCH_KEY"]).fails(2, "HF-1609");
        assert!(unknown.err.contains("Did you mean `SEARCH_KEY`?"), "{unknown:#?}");
        let removed = scene.run(&["secret", "remove", "SEARCH_KEY"]).ok();
        assert_eq!(removed.out, "SEARCH_KEY is removed (file)\n");
        scene.run(&["secret", "remove", "scout.TOKEN", "--json"]).ok();
        assert_eq!(scene.run(&["secret", "list", "--json"]).ok().out, "");
    });
}

#[test]
fn invalid_secrets_are_refused() {
    let scene = Scene::new();
    scene.run_with(&["secret", "set", "two words"], b"value\n").fails(2, "HF-1601");
    scene.run_with(&["secret", "set", "EMPTY"], b"\n").fails(2, "HF-1602");
    scene.run_with(&["secret", "set", "LONG"], &vec![b'x'; 70 << 10]).fails(2, "HF-9001");
    scene.run(&["secret", "set", "NAME", "value"]).fails(2, "HF-9001");
    let unknown = scene.run(&["secret", "remove", "ANY"]).fails(2, "HF-1609");
    assert!(unknown.err.contains("`holdfast secret set NAME` stores one"), "{unknown:#?}");
}

#[test]
fn a_secret_with_several_lines_is_stored_whole() {
    let scene = Scene::new();
    scene.settings("models: { default: offline }\nsecrets: { store: environment }\n");
    scene.run_with(&["secret", "set", "KEY"], b"one\ntwo\n").ok();
    let text = std::fs::read_to_string(scene.home().join(".env")).unwrap();
    assert!(text.contains("one") && text.contains("two"), "{text:?}");
}

#[test]
fn a_variable_of_the_process_cannot_be_removed() {
    let mut scene = Scene::new();
    scene.run_with(&["secret", "set", "SEARCH_KEY"], b"stored-value\n").ok();
    scene.variable("SEARCH_KEY", "variable-value");
    let set = scene.run_with(&["secret", "set", "SEARCH_KEY"], b"another-value\n").ok();
    assert!(set.err.contains("which takes precedence"), "{set:#?}");
    let removed = scene.run(&["secret", "remove", "SEARCH_KEY"]).fails(1, "HF-1602");
    assert!(removed.err.contains("is still set in the environment"), "{removed:#?}");
}

#[test]
fn a_secret_is_redacted_by_a_running_home_from_the_moment_it_is_set() {
    let scene = Scene::new();
    let _owner = Owner::begin(&scene);
    let payload = format!("{{\"text\": \"it is {VALUE}\"}}");
    scene.run_with(&["secret", "set", "SEARCH_KEY"], VALUE.as_bytes()).ok();
    let event = scene.run(&["bus", "publish", "notes.made", &payload]).ok().out;
    let (stream, _) = event.split_once('/').unwrap();
    let frames = scene.run(&["log", "export", stream]).ok().out;
    assert!(frames.contains("[secret SEARCH_KEY]") && !frames.contains(VALUE), "{frames}");
}

#[test]
fn a_typed_secret_is_not_echoed() {
    let scene = Scene::new();
    let mut command = scene.command(&["secret", "set", "SEARCH_KEY"]);
    command.env("TERM", "xterm-256color").env("NO_COLOR", "1");
    let mut terminal = TestTerminal::start_cleared(command, 80);
    terminal.until("SEARCH_KEY (not shown): ");
    terminal.types(&format!("{VALUE}\r"));
    let shown = terminal.until("SEARCH_KEY is stored (file)");
    assert!(!shown.contains(VALUE), "{shown:?}");
    terminal.ends_with(0);
}
