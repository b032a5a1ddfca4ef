//! What is said of extensions that lack something: the reason, and a command that works.

use std::fs;

use serde_json::json;

use super::{call, class, scene, state};
use crate::shared::{Owner, until};

#[test]
fn a_dependent_of_what_cannot_be_read_says_why() {
    let scene = scene();
    class(&scene, "base", "surprise: [\n", "class It: ...\n");
    class(&scene, "above", "depends_on: [base]\n", "class It:\n    def get_tools(self): return []\n");
    let fault = state(&scene, "above")["fault"].as_str().unwrap().to_owned();
    assert!(fault.contains("depends on `base`, which failed: "), "{fault}");
    assert!(!fault.contains("not installed"), "{fault}");
    class(&scene, "above", "depends_on: [nobody]\n", "class It:\n    def get_tools(self): return []\n");
    let fault = state(&scene, "above")["fault"].as_str().unwrap().to_owned();
    assert!(fault.contains("depends on `nobody`, which is not installed"), "{fault}");
}

/// A class that subscribes to a topic of the program while it is called.
const CURIOUS: &str = "
class It:
    async def initialize(self, context):
        self.context = context
    def get_tools(self):
        async def look() -> str:
            await self.context.ask('event.subscribe', {'topic': 'system.turn.ended'})
            return 'heard'
        return [look]
";

/// The commands that a text proposes.
fn proposed(text: &str) -> Vec<&str> {
    let begun = text.split("`holdfast ext grant curious ").skip(1);
    begun.filter_map(|rest| Some(rest.split_once('`')?.0)).collect()
}

#[test]
fn every_command_that_a_refusal_proposes_is_accepted() {
    let asks = "grants: { interfaces: [system-events] }\n";
    for (manifest, helps) in [("", false), (asks, true), ("grants: { network: [a.example:1] }\n", false)] {
        let scene = scene();
        let manifest = format!("{manifest}events: {{ subscribes: [{{ topic: system.turn.ended }}] }}\n");
        class(&scene, "curious", &manifest, CURIOUS);
        let checked = scene.run(&["ext", "check", "curious"]);
        for said in [call(&scene, "look", &json!({})), format!("{}{}", checked.out, checked.err)] {
            assert!(said.contains("HF-4103") && said.contains("system-events"), "{said}");
            let commands = proposed(&said);
            assert_eq!(!commands.is_empty(), helps, "{manifest}: {said}");
            for options in commands {
                let words: Vec<&str> =
                    ["ext", "grant", "curious"].into_iter().chain(options.split(' ')).collect();
                scene.run(&words).ok();
            }
        }
        assert_eq!(call(&scene, "look", &json!({})).contains("heard"), helps);
    }
}

#[test]
fn what_valid_manifests_of_classes_say_is_no_warning() {
    let scene = scene();
    let manifest = "agent_config: { scribe: { model: small } }
schedules: [{ name: nightly, cron: '0 3 * * *', description: Tidies up. }]
events: { subscribes: [{ topic: a.b, description: What happened. }] }
";
    let code = "class It:\n    async def execute_task(self, name): ...\n    def get_tools(self): return []\n";
    class(&scene, "valid", manifest, code);
    let checked = scene.run(&["ext", "check", "valid"]).ok();
    assert!(!format!("{}{}", checked.out, checked.err).contains("warning"), "{checked:#?}");
    let folder = scene.home().join("extensions/plain");
    fs::create_dir_all(&folder).unwrap();
    fs::write(
        folder.join("manifest.yaml"),
        "id: plain\nname: Plain\nagent_config: { scribe: {} }\nagent: { instructions: Hi. }\n",
    )
    .unwrap();
    let checked = scene.run(&["ext", "check", "plain"]);
    assert!(checked.err.contains("HF-1009"), "without code nobody reads it: {checked:#?}");
}

#[test]
fn a_list_says_why_an_extension_is_unhealthy() {
    let scene = scene();
    let code = "
class It:
    async def run_background(self):
        raise RuntimeError('the pipe has burst')
";
    class(&scene, "bursts", "", code);
    let _owner = Owner::begin(&scene);
    until("the list has the reason", || {
        let fault = state(&scene, "bursts")["fault"].as_str().unwrap_or_default().to_owned();
        fault.contains("HF-4004") && fault.contains("the pipe has burst")
    });
}

#[test]
fn a_call_waits_for_an_extension_that_starts_slowly() {
    let scene = scene();
    let code = "
class It:
    async def initialize(self, context):
        import asyncio
        await asyncio.sleep(13)
    def get_tools(self):
        def late() -> str:
            return 'at last'
        return [late]
";
    class(&scene, "slow", "", code);
    assert!(call(&scene, "late", &json!({})).contains("at last"));
}
