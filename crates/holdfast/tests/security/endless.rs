//! Commands that do not end by themselves, in a home in which everything that has a name or a text is hostile: `up` and `ext dev` send
//! nothing of that to the terminal.

use std::fs;
use std::process::{Command, Stdio};

use holdfast_testkit::terminal::TestTerminal;

use crate::hostile_home::{attacks, hostile, install};
use crate::printing::{is_clean_on_a_terminal, is_harmless};
use crate::shared::{Scene, until};

/// Has the process restarted for a reason that is the attacks, and logs them.
const AGAIN: &str = r#"
import asyncio, json, pathlib
TEXT = json.loads((pathlib.Path(__file__).parent / "attacks.json").read_text())

class Again:
    async def initialize(self, context):
        self.context = context
    async def run_background(self):
        while True:
            self.context.logger.error(TEXT)
            await self.context.ask("system.restart", {"reason": TEXT})
            await asyncio.sleep(0.2)
"#;

/// What a command shows until it says something, as a stream; then it is told to end.
fn told(scene: &Scene, arguments: &[&str], last: &str) -> String {
    let file = scene.root().join("told.txt");
    let out = fs::File::create(&file).unwrap();
    let mut command = scene.command(arguments);
    command.stdin(Stdio::null()).stdout(out.try_clone().unwrap()).stderr(out);
    let mut child = command.spawn().unwrap();
    let shown = || String::from_utf8_lossy(&fs::read(&file).unwrap()).into_owned();
    until(last, || shown().contains(last));
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    child.wait().unwrap();
    shown()
}

/// The same on a terminal, ended by the key for it.
fn on_terminal_until(scene: &Scene, arguments: &[&str], last: &str, code: i32) -> String {
    let mut command = scene.command(arguments);
    command.env("TERM", "xterm-256color").env("NO_COLOR", "1");
    let mut terminal = TestTerminal::start_cleared(command, 80);
    let shown = terminal.until(last);
    terminal.types("\u{3}");
    terminal.ends_with(code);
    shown
}

/// Something of the attacks was shown in a form that can be read, or this would show nothing.
#[track_caller]
fn has_attacks(what: &str, shown: &str) {
    assert!(shown.contains(['\u{fffd}', '␛', '␇']), "{what} shows no attack: {shown:?}");
}

#[test]
fn no_attack_passes_an_owner_that_is_up() {
    let scene = hostile();
    install(&scene, "again", "entrypoint: main:Again\nname: Again\n", AGAIN);
    assert!(attacks().len() > 500);
    let shown = told(&scene, &["up"], "starting again");
    has_attacks("up", &shown);
    is_harmless("up", &shown);
    let shown = on_terminal_until(&scene, &["up"], "starting again", 0);
    has_attacks("up on a terminal", &shown);
    is_clean_on_a_terminal("up", &shown);
    let shown = told(&scene, &["--verbose", "up"], "starting again");
    is_harmless("up --verbose", &shown);
}

#[test]
fn no_attack_passes_the_development_of_an_extension() {
    let scene = hostile();
    for id in ["spite", "down"] {
        let cases = format!(
            "tests:\n  - {{ name: {}, call: spite, arguments: {{}} }}\n",
            crate::printing::yaml("a\u{202e}b")
        );
        fs::write(scene.home().join("extensions").join(id).join("tests.yaml"), cases).unwrap();
        let shown = told(&scene, &["ext", "dev", id], "waiting for a change");
        has_attacks(id, &shown);
        is_harmless(&format!("ext dev {id}"), &shown);
        let shown = on_terminal_until(&scene, &["ext", "dev", id], "waiting for a change", 130);
        has_attacks(id, &shown);
        is_clean_on_a_terminal(&format!("ext dev {id}"), &shown);
    }
}
