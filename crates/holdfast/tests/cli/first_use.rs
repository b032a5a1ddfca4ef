//! What a new user meets: a reader that closes the pipe, a model without a key, questions, mistakes in extensions, erased sessions.

use std::fs;
use std::process::Stdio;

use holdfast_testkit::terminal::TestTerminal;
use serde_json::Value;

use crate::shared::{Ran, Scene, finish};

fn tool(scene: &Scene, name: &str, code: &str) {
    let tools = scene.home().join("extensions/tools");
    fs::create_dir_all(&tools).unwrap();
    fs::write(tools.join(format!("{name}.py")), code).unwrap();
}

fn class(scene: &Scene, id: &str, code: &str) {
    let folder = scene.home().join("extensions").join(id);
    fs::create_dir_all(&folder).unwrap();
    let manifest = format!("id: {id}\nname: {id}\nversion: 1.0.0\nentrypoint: main:It\n");
    fs::write(folder.join("manifest.yaml"), manifest).unwrap();
    fs::write(folder.join("main.py"), code).unwrap();
}

fn in_terminal(scene: &Scene, arguments: &[&str]) -> TestTerminal {
    let mut command = scene.command(arguments);
    command.env("TERM", "xterm-256color").env("NO_COLOR", "1");
    TestTerminal::start_cleared(command, 100)
}

// Finding B10.
#[test]
fn a_reader_that_closes_the_pipe_ends_the_output_without_a_word() {
    let scene = Scene::new();
    for arguments in [&["--help"][..], &["session", "fork", "--help"], &["tools"], &["completions", "bash"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let ran = finish(scene.command(arguments).stdout(Stdio::from(writer)).spawn().unwrap());
        assert_eq!((ran.code, ran.err.as_str()), (Some(141), ""), "{arguments:?}");
    }
}

// Finding B14.
#[test]
fn models_are_listed_when_the_default_one_has_no_key() {
    let scene = Scene::new();
    scene.settings(
        "models: { default: main, main: { provider: openai, model: m, api_key_env: NO_SUCH_KEY } }\n",
    );
    let ran = scene.run(&["model", "list", "--json"]).ok();
    let names: Vec<Value> = ran.lines().into_iter().map(|line| line["name"].clone()).collect();
    assert_eq!(names, ["main", "offline"], "{ran:#?}");
    assert_eq!(ran.lines()[0]["default"], true);
    assert!(ran.err.contains("warning[HF-5003]") && ran.err.contains("NO_SUCH_KEY"), "{ran:#?}");
    scene.run(&["model", "test"]).fails(1, "HF-5003");
}

// Finding B15.
#[test]
fn init_asks_again_until_the_default_is_one_of_the_list() {
    let mut scene = Scene::new();
    scene.variable("OPENAI_API_KEY", "sk-none");
    scene.variable("ANTHROPIC_API_KEY", "sk-none");
    fs::remove_dir_all(scene.home()).unwrap();
    let mut terminal = in_terminal(&scene, &["init"]);
    terminal.until("Which one is the default? (Enter for 1) ");
    terminal.types("7\r");
    terminal.until("a number from 1 to 2");
    terminal.until("(Enter for 1) ");
    terminal.types("\r");
    terminal.until("is ready");
    terminal.ends_with(0);
    let settings = fs::read_to_string(scene.home().join("config/settings.yaml")).unwrap();
    assert!(settings.contains("default: anthropic"), "{settings}");
}

// Finding B16: where no model is configured, an agent can name the built-in one and those that were detected.
#[test]
fn check_finds_a_model_that_is_not_there() {
    let scene = Scene::new();
    let folder = scene.home().join("extensions/dreamer");
    fs::create_dir_all(&folder).unwrap();
    for (model, found) in [("bigg", true), ("offline", false), ("default", false)] {
        let manifest =
            format!("id: dreamer\nname: Dreamer\nagent: {{ instructions: Dream., model: {model} }}\n");
        fs::write(folder.join("manifest.yaml"), manifest).unwrap();
        let checked = scene.run(&["ext", "check", "dreamer"]);
        assert_eq!(checked.err.contains("HF-5002"), found, "{checked:#?}");
        assert_eq!(checked.code, Some(i32::from(found)), "{checked:#?}");
    }
}

// Finding B18: a question with a few words for answers is answered like an approval, and by nothing else.
#[test]
fn a_network_question_is_answered_by_a_key() {
    let scene = Scene::new();
    let code = "import urllib.request\n__effects__ = \"read\"\ndef run(url: str) -> str:\n    \"\"\"Fetch.\"\"\"\n    \
                return urllib.request.urlopen(url).read().decode()\n";
    tool(&scene, "fetcher", code);
    let mut terminal = in_terminal(&scene, &["call", "fetcher", r#"{"url": "http://127.0.0.1:9/x"}"#]);
    terminal.until("wants to reach 127.0.0.1:9");
    terminal.until("  o once, a always, n no: ");
    terminal.types("y\r");
    terminal.types("n");
    terminal.until("no\r\n");
    terminal.ends_with(1);
}

// Finding B20.
#[test]
fn an_erased_session_says_so_and_is_listed_no_more() {
    let scene = Scene::new();
    let said = scene.run(&["run", "hello", "--session", "talk"]).ok();
    assert!(said.err.contains("session talk"), "{said:#?}");
    let listed = |arguments: &[&str]| scene.run(arguments).ok().lines().len();
    assert_eq!(listed(&["session", "list", "--json"]), 1);
    let mut terminal = in_terminal(&scene, &["session", "delete", "talk"]);
    terminal.until("Erase the content of talk permanently? [y/N] ");
    terminal.types("\r");
    terminal.until("nothing was erased");
    terminal.ends_with(1);
    assert_eq!(listed(&["session", "list", "--json"]), 1);
    // Nobody can be asked here, and what is piped in does not count as an answer.
    let refused = scene.run_with(&["session", "delete", "talk"], b"y\n").fails(2, "HF-9001");
    assert!(refused.err.contains("Say so with `--yes`"), "{refused:#?}");
    assert_eq!(listed(&["session", "list", "--json"]), 1);
    scene.run(&["session", "delete", "talk", "--yes"]).ok();
    assert_eq!(
        (listed(&["session", "list", "--json"]), listed(&["session", "list", "--json", "--all"])),
        (0, 1)
    );
    let shown = scene.run(&["session", "show", "talk"]).ok();
    assert_eq!(shown.err, "the content of talk was erased: deleted by the user\n");
}

#[test]
fn a_question_offers_all_only_where_something_is_hidden() {
    let scene = Scene::new();
    for (command, offered) in [("echo one".to_owned(), "n deny: "), ("x".repeat(200), "n deny, v all: ")] {
        let arguments = serde_json::json!({ "command": command }).to_string();
        let mut terminal = in_terminal(&scene, &["call", "shell", &arguments]);
        terminal.until(offered);
        terminal.types("\u{4}");
        terminal.ends_with(3);
    }
}

/// The faults of an extension that `ext doctor` lists.
fn faults(scene: &Scene, id: &str) -> Vec<String> {
    let listed = scene.run(&["ext", "doctor", "--json"]).ok().lines();
    let own = listed.iter().filter(|fault| fault["extension"] == id);
    own.map(|fault| fault["message"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn doctor_lists_a_fault_once_until_it_is_corrected() {
    let scene = Scene::new();
    tool(&scene, "broken", "def run(:\n");
    class(&scene, "gone", "raise ValueError('never')\n");
    for _ in 0..2 {
        assert_eq!(faults(&scene, "broken"), ["SyntaxError: invalid syntax (broken.py, line 1)"]);
        assert_eq!(faults(&scene, "gone"), ["ValueError: never (main.py, line 1)"]);
    }
    tool(&scene, "broken", "__effects__ = 'harmless'\ndef run() -> int:\n    return 1\n");
    let effects = "`__effects__` (broken.py, line 1) is 'harmless'; it is one of pure, read, write, exec, network, unknown";
    assert_eq!(faults(&scene, "broken"), [effects]);
    tool(&scene, "broken", "__effects__ = 'pure'\ndef run() -> int:\n    return 1\n");
    fs::remove_dir_all(scene.home().join("extensions/gone")).unwrap();
    assert_eq!((faults(&scene, "broken"), faults(&scene, "gone")), (Vec::new(), Vec::new()));
}

#[test]
fn a_call_of_a_tool_that_is_not_loaded_says_why() {
    let scene = Scene::new();
    tool(&scene, "broken", "def run(:\n");
    let ran = scene.run(&["call", "broken", "{}"]).fails(1, "HF-3101");
    assert!(ran.err.contains("SyntaxError: invalid syntax (broken.py, line 1)"), "{ran:#?}");
    let other = scene.run(&["call", "nosuch", "{}"]).fails(1, "HF-3101");
    assert!(other.err.contains("Not loaded: `broken`: "), "{other:#?}");
}

#[test]
fn a_traceback_is_shown_to_who_asks_for_details() {
    let scene = Scene::new();
    class(&scene, "greeter", "class It:\n    def get_tools(self):\n        raise RuntimeError('bang')\n");
    let quiet = scene.run(&["ext", "check", "greeter"]).fails(1, "HF-4003");
    assert!(quiet.err.contains("RuntimeError: bang (main.py, line 3)"), "{quiet:#?}");
    assert!(!quiet.err.contains("Traceback"), "{quiet:#?}");
    let verbose = scene.run(&["-v", "ext", "check", "greeter"]).fails(1, "HF-4003");
    assert!(verbose.err.contains("greeter debug: Traceback"), "{verbose:#?}");
    assert!(!scene.run(&["tools"]).ok().err.contains("Traceback"));
    assert!(scene.run(&["tools", "-v"]).ok().err.contains("greeter debug: Traceback"));
}

#[test]
fn what_an_extension_prints_has_no_level() {
    let scene = Scene::new();
    tool(&scene, "loud", "__effects__ = 'pure'\ndef run() -> int:\n    print('noise')\n    return 1\n");
    let Ran { err, .. } = scene.run(&["call", "loud", "{}"]).ok();
    assert!(err.lines().any(|line| line == "loud: noise"), "{err}");
    assert_eq!(scene.run(&["-q", "call", "loud", "{}"]).ok().err, "");
}

#[test]
fn an_extensions_grants_are_shown() {
    let scene = Scene::new();
    tool(&scene, "quiet", "__effects__ = 'pure'\ndef run() -> int:\n    return 1\n");
    assert!(!scene.run(&["ext", "show", "quiet"]).ok().out.contains("grant"));
    scene.run(&["ext", "grant", "quiet", "--network", "example.org:443"]).ok();
    let shown = scene.run(&["ext", "show", "quiet"]).ok().out;
    assert!(shown.contains(r#"grant       {"network":["example.org:443"]} for the content "#), "{shown}");
}

#[test]
fn the_documentation_is_in_the_program() {
    let scene = Scene::new();
    assert!(scene.run(&["docs"]).ok().out.contains("models"));
    assert!(scene.run(&["docs", "models"]).ok().out.starts_with("# Models\n"));
    assert_eq!(scene.run(&["docs", "docs/models.md"]).ok().out, scene.run(&["docs", "models"]).ok().out);
    scene.run(&["docs", "nosuch"]).fails(2, "HF-9001");
}

// Finding E5: a router's answer is binding where the policy says so, and advice elsewhere.
#[test]
fn authoritative_routing_counts_where_the_policy_allows_it() {
    let scene = Scene::new();
    let file = |name: &str| {
        let model = scene.script(name, &serde_json::json!([{ "says": format!("I am {name}.") }]));
        model.strip_prefix("script:").unwrap().to_owned()
    };
    let (usual, other) = (file("usual"), file("other"));
    scene.settings(&format!(
        "models:\n  default: usual\n  usual: {{ provider: script, file: {usual} }}\n  other: {{ provider: script, file: {other} }}\n"
    ));
    let route = "class It:\n    def model_route(self, request):\n        \
                 return {'decision': 'route', 'model': 'other', 'authoritative': True, 'reason': 'cheaper'}\n";
    class(&scene, "router", route);
    let answer = || scene.run(&["run", "who are you?"]).ok().out;
    assert!(answer().contains("I am usual."));
    scene.policy("routing: authoritative\n");
    assert!(answer().contains("I am other."));
    scene.policy("profile: full-auto\nrouting: advisory\n");
    assert!(answer().contains("I am usual."));
}

#[test]
fn a_log_line_of_a_home_that_is_up_has_the_time() {
    let scene = Scene::new();
    tool(&scene, "loud", "__effects__ = 'pure'\ndef run() -> int:\n    print('noise')\n    return 1\n");
    let up = scene.command(&["up", "--unsupervised"]).spawn().unwrap();
    while !scene.is_up() {}
    scene.run(&["call", "loud", "{}"]).ok();
    scene.run(&["down"]).ok();
    let Ran { err, .. } = finish(up);
    let line = err.lines().find(|line| line.ends_with(" loud: noise")).unwrap_or_else(|| panic!("{err}"));
    assert!(line.starts_with("20") && line.as_bytes()[13] == b':', "{line}");
}
