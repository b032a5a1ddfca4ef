//! Packs that do harm, as far as the confinement and the host contain them; the worker's own tests have the others. What each does, and what
//! has to happen, is in the comment at its beginning.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::{ECHO, call, extension, scene, write};
use crate::shared::{Owner, Scene, until};

/// A pack of the folder `hostile`.
struct Fixture {
    name: String,
    text: String,
}

impl Fixture {
    /// The packs whose containment is the host's.
    fn of_the_host() -> Vec<Self> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/extensions/packs/hostile");
        let mut all = Vec::new();
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            let text = fs::read_to_string(&path).unwrap();
            let is_meant = text.lines().any(|line| line == "// host") && !name.starts_with("guardrail");
            if path.extension().is_some_and(|extension| extension == "mjs") && is_meant {
                all.push(Self { name, text });
            }
        }
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    fn install(&self, scene: &Scene) {
        let never = self.text.contains("// fails: no answer within");
        let timeout = if never { 4_000 } else { 60_000 };
        let tools = json!({ (self.name.as_str()): { "timeout_ms": timeout } });
        let manifest = json!({ "id": self.name, "name": self.name, "tools": tools }).to_string();
        let files = [("index.mjs", self.text.as_str()), ("manifest.yaml", manifest.as_str())];
        write(&scene.home().join("extensions").join(&self.name), &files);
    }

    /// Calls it as its directives say, and tells what is not as they say.
    fn check(&self, scene: &Scene) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut outcome = Value::Null;
        for line in self.text.lines().map_while(|line| line.strip_prefix("// ")) {
            let (word, rest) = line.split_once(": ").unwrap_or((line.trim_end_matches(':'), ""));
            match word {
                "call" => {
                    let (tool, arguments) = rest.split_once(' ').unwrap();
                    until(&format!("`{tool}` is there"), || {
                        outcome = call(scene, tool, &serde_json::from_str(arguments).unwrap());
                        outcome["error"]["code"] != "HF-3101"
                    });
                }
                "answers" if outcome["result"] != serde_json::from_str::<Value>(rest).unwrap() => {
                    wrong.push(format!("{}: {rest} is expected: {outcome}", self.name));
                }
                "fails" if outcome["error"].is_null() || !outcome.to_string().contains(rest) => {
                    wrong.push(format!("{}: a failure is expected with {rest:?}: {outcome}", self.name));
                }
                _ => {}
            }
        }
        wrong
    }
}

#[test]
fn packs_that_do_harm_are_contained_and_affect_no_other() {
    let scene = scene();
    extension(&scene, "good", ECHO);
    let fixtures = Fixture::of_the_host();
    assert!(fixtures.len() > 10);
    fixtures.iter().for_each(|fixture| fixture.install(&scene));
    let _owner = Owner::begin(&scene);
    let mut wrong = Vec::new();
    for fixture in &fixtures {
        wrong.extend(fixture.check(&scene));
        let good = call(&scene, "echo", &json!({ "text": "still here" }));
        if good["result"] != "still here" {
            wrong.push(format!("after {}: {good}", fixture.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    scene.verifies();
}

#[test]
fn a_guardrail_that_never_decides_closes() {
    let scene = scene();
    let text = include_str!("hostile/guardrail-hangs.mjs");
    extension(&scene, "guardrail-hangs", text);
    let ran = scene.turn("talk", &json!([{ "says": "never said" }]));
    let shown = json!(scene.frames("talk")).to_string();
    assert!(ran.code != Some(0) && shown.contains("HF-3201"), "{shown}");
}
