//! Packages that extensions in Python name: installed once, before anybody calls, with nothing of them run by whoever installs.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on should stop loudly"
)]

mod shared;

use std::fs;
use std::process::Command;

use shared::Scene;

/// Makes a package as an index has it: a wheel, and one that is source only and leaves a mark when it is built.
const INDEX: &str = r#"
import io, os, sys, tarfile, zipfile
index, mark = sys.argv[1:]
with zipfile.ZipFile(os.path.join(index, "greeting-1.0-py3-none-any.whl"), "w") as wheel:
    wheel.writestr("greeting.py", "def greet(name):\n    return f'good day, {name}'\n")
    about = "greeting-1.0.dist-info/"
    wheel.writestr(about + "METADATA", "Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n")
    wheel.writestr(about + "WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    wheel.writestr(about + "RECORD", "greeting.py,,\n")
with tarfile.open(os.path.join(index, "trap-1.0.tar.gz"), "w:gz") as source:
    def add(name, text):
        entry = tarfile.TarInfo("trap-1.0/" + name)
        entry.size = len(text)
        source.addfile(entry, io.BytesIO(text.encode()))
    add("setup.py", f"open({mark!r}, 'w').close()\nfrom setuptools import setup\nsetup(name='trap', version='1.0')\n")
    add("PKG-INFO", "Metadata-Version: 2.1\nName: trap\nVersion: 1.0\n")
"#;

/// A home whose packages come from a folder.
fn scene() -> Scene {
    let mut scene = Scene::new();
    scene.run(&["init"]).ok();
    scene.policy("profile: full-auto\n");
    let index = scene.outside().join("index");
    fs::create_dir(&index).unwrap();
    let made =
        Command::new("python3").args(["-c", INDEX]).arg(&index).arg(scene.outside().join("built")).status();
    assert!(made.unwrap().success());
    scene.variable("PIP_NO_INDEX", "1");
    scene.variable("PIP_FIND_LINKS", &index.display().to_string());
    scene
}

fn tool(scene: &Scene, file: &str, text: &str) {
    fs::write(scene.home().join("extensions/tools").join(file), text).unwrap();
}

const GREETER: &str = r#"# /// script
# dependencies = ["greeting>=1"]
# ///
import greeting

def run(name: str) -> str:
    """Greets."""
    return greeting.greet(name)
"#;

#[test]
fn a_file_names_its_packages_and_has_them_when_it_is_called() {
    let scene = scene();
    tool(&scene, "greet.py", GREETER);
    let first = scene.run(&["call", "greet", r#"{"name": "Ada"}"#]).ok();
    assert!(first.out.contains("good day, Ada"), "{first:#?}");
    assert!(first.err.contains("installing for greet, once: greeting>=1"), "{first:#?}");
    let second = scene.run(&["call", "greet", r#"{"name": "Bo"}"#]).ok();
    assert!(second.out.contains("good day, Bo") && !second.err.contains("installing"), "{second:#?}");
    // Another with the same needs shares them, and an edit does not install anew.
    tool(&scene, "hail.py", &GREETER.replace("return ", "return 'hail: ' + "));
    let shared = scene.run(&["call", "hail", r#"{"name": "Cy"}"#]).ok();
    assert!(shared.out.contains("hail: good day, Cy") && !shared.err.contains("installing"), "{shared:#?}");
    scene.verifies();
}

#[test]
fn a_list_beside_single_files_serves_all_that_have_none_of_their_own() {
    let scene = scene();
    fs::write(scene.home().join("extensions/requirements.txt"), "greeting==1.0\n").unwrap();
    let text = GREETER.lines().skip(3).map(|line| format!("{line}\n")).collect::<String>();
    tool(&scene, "greet.py", &text);
    let answer = scene.run(&["call", "greet", r#"{"name": "Ada"}"#]).ok();
    assert!(answer.out.contains("good day, Ada"), "{answer:#?}");
}

#[test]
fn nothing_of_a_package_runs_while_it_is_installed() {
    let scene = scene();
    tool(&scene, "trapped.py", &GREETER.replace("greeting>=1", "trap"));
    tool(&scene, "greet.py", GREETER);
    let refused = scene.run(&["call", "trapped", r#"{"name": "Ada"}"#]);
    assert_ne!(refused.code, Some(0), "{refused:#?}");
    assert!(!scene.outside().join("built").exists(), "what it brings was run by whoever installs");
    let why = scene.run(&["ext", "doctor", "trapped"]);
    assert!(format!("{}{}", why.out, why.err).contains("HF-4203"), "{why:#?}");
    assert!(scene.run(&["call", "greet", r#"{"name": "Ada"}"#]).ok().out.contains("good day"));
}

#[test]
fn a_requirement_that_reaches_further_than_a_name_is_refused() {
    let scene = scene();
    let planted = scene.outside().join("secret.txt");
    fs::write(&planted, "hunter2\n").unwrap();
    fs::write(
        scene.home().join("extensions/requirements.txt"),
        format!("greeting\n-r {}\n", planted.display()),
    )
    .unwrap();
    tool(&scene, "greet.py", "def run() -> str:\n    return 'x'\n");
    let refused = scene.run(&["call", "greet", "{}"]);
    assert_ne!(refused.code, Some(0), "{refused:#?}");
    let why = scene.run(&["ext", "doctor", "greet"]);
    let said = format!("{}{}{}{}", why.out, why.err, refused.out, refused.err);
    assert!(said.contains("HF-4204") && !said.contains("hunter2"), "{said}");
}

/// A class as people have them: tools made by the real package, with results that are models.
const REAL: &str = r#"
import agents
from agents import RunContextWrapper, function_tool
from pydantic import BaseModel


class Place(BaseModel):
    name: str
    height: float = 0.0


class Mountains:
    async def initialize(self, context):
        self.context = context

    def get_tools(self):
        @function_tool(name_override="highest")
        async def find(context: RunContextWrapper, country: str) -> Place:
            """Finds the highest mountain.

            Args:
                country: Where to look.
            """
            assert "site-packages" in agents.__file__, agents.__file__
            return Place(name=f"{self.context.get_config('prefix')} {country}", height=3798.0)

        return [find]
"#;

#[test]
fn the_real_package_makes_the_tools_of_a_class() {
    let mut scene = scene();
    let wheels = std::env::var("HOLDFAST_WHEELS").unwrap_or_default();
    assert!(fs::read_dir(&wheels).is_ok(), "the wheels of the tests come with ./scripts/setup agents");
    scene.variable("PIP_FIND_LINKS", &wheels);
    let folder = scene.home().join("extensions/mountains");
    fs::create_dir(&folder).unwrap();
    let manifest =
        "id: mountains\nname: Mountains\nentrypoint: main:Mountains\nconfig: { prefix: The top of }\n";
    fs::write(folder.join("manifest.yaml"), manifest).unwrap();
    fs::write(folder.join("requirements.txt"), "openai-agents\n").unwrap();
    fs::write(folder.join("main.py"), REAL).unwrap();
    let answer = scene.run(&["call", "highest", r#"{"country": "Austria"}"#]).ok();
    assert!(answer.out.contains("The top of Austria") && answer.out.contains("3798"), "{answer:#?}");
    let tools = scene.run(&["tools", "--json"]).ok().out;
    assert!(tools.contains("Finds the highest mountain.") && tools.contains("Where to look."), "{tools}");
    scene.verifies();
}
