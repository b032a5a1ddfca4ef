//! All extensions that were written for other programs in one home: each is up and does its job, beside some that block, flood, have a
//! configuration that does not fit, or cannot be read.

use std::fs;

use super::conversations::{ASKER, DESK, TITLER};
use super::{
    CHANNEL, EXITS, FETCHER, LISTENER, MAPPED, NEEDS_TOKEN, PLAIN, STARTS, STRICT, SUBSCRIBES, call, class,
    scene, server, single, state,
};
use crate::shared::{Owner, Scene, until};
use serde_json::json;

/// A class with tools that block its process: one for ever, one with what it logs.
const BLOCKS: &str = "
import time

class It:
    async def initialize(self, context):
        self.context = context
    def get_tools(self):
        async def block() -> str:
            time.sleep(3600)
        def flood() -> str:
            for number in range(20000):
                self.context.logger.warning('line %s', number)
            return 'flooded'
        return [flood, block]
";

/// A class that says which configuration it takes, as with `pydantic`.
const PICKY: &str = "
class Refused(ValueError):
    def errors(self):
        return [{'loc': ('port',), 'msg': 'Input should be a valid integer'}]

class Model:
    @classmethod
    def model_validate(cls, config):
        if not isinstance(config.get('port'), int):
            raise Refused
        return cls()

class It:
    ConfigModel = Model
    async def initialize(self, context):
        self.context = context
    def get_tools(self):
        def port() -> str:
            return f\"port {self.context.get_config('port')}\"
        return [port]
";

const CLASSES: &[(&str, &str, &str)] = &[
    ("asker", "", ASKER),
    ("blocks", "", BLOCKS),
    ("channel_like", "", NEEDS_TOKEN),
    ("desk", "", DESK),
    ("exits", "", EXITS),
    ("fetcher", "", FETCHER),
    ("first", "events: { subscribes: [{ topic: door.opened, handler: notify_user }] }\n", CHANNEL),
    ("listener", SUBSCRIBES, LISTENER),
    ("strict", "", STRICT),
    ("titler", "", TITLER),
];

/// A home with all of them, and with a file, a folder and two extensions that are useless.
fn home() -> Scene {
    let scene = scene();
    let model = scene.script("answers", &json!(vec![json!({ "says": "an answer" }); 40]));
    scene.settings(&format!(
        "models: {{ default: '{model}' }}\nchannels: {{ default: first }}\nextensions: {{ picky: {{ port: none }} }}\n"
    ));
    for (id, manifest, code) in CLASSES {
        class(&scene, id, manifest, code);
    }
    class(&scene, "picky", "config: { port: 8080 }\n", PICKY);
    class(&scene, "broken", "", "class It: (\n");
    class(&scene, "asleep", "enabled: false\n", LISTENER);
    single(&scene, "poet/manifest.yaml", "id: poet\nname: Poet\nagent: { instructions: Rhyme. }\n");
    for (path, code) in [
        ("tools/starts.py", STARTS),
        ("tools/plain.py", PLAIN),
        ("channels/mapped.py", MAPPED),
        ("notes.txt", "no extension"),
        ("__pycache__/main.py", ""),
    ] {
        single(&scene, path, code);
    }
    scene.run_with(&["secret", "set", "MAPPED_TOKEN"], b"canary-6620\n").ok();
    scene.run(&["ext", "grant", "mapped", "--secret", "MAPPED_TOKEN"]).ok();
    scene
}

#[test]
fn all_of_them_are_up_together_and_do_their_jobs() {
    let scene = home();
    let port = server();
    for id in ["fetcher", "plain"] {
        scene.run(&["ext", "grant", id, "--network", &format!("127.0.0.1:{port}")]).ok();
    }
    let _owner = Owner::begin(&scene);
    let up = CLASSES.iter().map(|(id, ..)| *id).chain(["poet", "starts", "plain", "mapped"]);
    for id in up {
        until(&format!("{id} is up"), || state(&scene, id)["state"] == "ACTIVE");
    }
    let listed = scene.run(&["ext", "list"]).out;
    assert!(!listed.contains("notes") && !listed.contains("__pycache__"), "{listed}");
    assert_ne!(state(&scene, "asleep")["state"], "ACTIVE");

    // One that blocks, and one that is broken, keep no other from its job.
    let mut blocked = scene.command(&["call", "block", "{}"]).spawn().unwrap();
    let answers = |tool: &str, arguments, expected: &str| {
        until(&format!("{tool} answers"), || call(&scene, tool, &arguments).contains(expected));
    };
    answers("fetch", json!({ "url": format!("http://127.0.0.1:{port}/") }), "heard");
    answers("plain", json!({ "host": "127.0.0.1", "port": port }), "heard");
    answers("ping", json!({}), "xNonexNone");
    answers("alive", json!({}), "still here");
    answers("starts", json!({}), "1");
    answers("ask", json!({ "agent": "poet" }), "success");
    answers("flood", json!({}), "flooded");
    answers("poet", json!({ "task": "rain" }), "an answer");
    answers("secret", json!({ "value": "canary-8831" }), "kept");
    answers("say", json!({ "thread": "tea", "text": "Which tea is best?" }), "sent");
    answers("kept", json!({ "thread": "tea" }), "Which tea is");
    let said = |id: &str, file: &str| {
        fs::read_to_string(scene.home().join("data").join(id).join(file)).unwrap_or_default()
    };
    scene.run(&["bus", "publish", "alert.raised", r#"{"text": "fire"}"#]).ok();
    let door = r#"{"text": "the door", "channel_id": "first"}"#;
    scene.run(&["bus", "publish", "door.opened", door]).ok();
    until("the listener hears", || said("listener", "heard") == "fire");
    until("the user is told", || said("first", "told").contains("the door"));
    until("the conversation is answered", || said("desk", "sent").contains("an answer"));
    scene.run_with(&["setup", "channel_like", "--secret", "token"], b"abcd\n").ok();
    until("what is set up runs", || scene.home().join("data/channel_like/runs").exists());
    fs::write(scene.home().join("data/mapped/.in"), "ping").unwrap();
    fs::rename(scene.home().join("data/mapped/.in"), scene.home().join("data/mapped/in")).unwrap();
    until("the file's channel answers", || said("mapped", "sent").starts_with("777 an answer"));
    blocked.kill().unwrap();
    blocked.wait().unwrap();
    scene.verifies();
}

#[test]
fn a_configuration_that_does_not_fit_stops_one_extension() {
    let scene = home();
    let owner = Owner::begin(&scene);
    until("it is refused", || {
        scene.run(&["ext", "doctor", "picky"]).out.contains("`extensions.picky.port`: Input should be")
    });
    assert_eq!(state(&scene, "picky")["state"], "ERROR");
    until("the others are up", || state(&scene, "strict")["state"] == "ACTIVE");
    drop(owner);
    let settings = scene.home().join("config/settings.yaml");
    let text = fs::read_to_string(&settings).unwrap();
    fs::write(&settings, text.replace("port: none", "port: 9")).unwrap();
    until("another configuration fits", || call(&scene, "port", &json!({})).contains("port 9"));
}

/// Names of another program's own tools and fields, which are refused by name.
#[test]
fn what_is_not_supported_is_refused_with_a_code() {
    let scene = scene();
    for tool in
        ["delegate_task", "create_agent", "list_agents", "list_available_tools", "list_models", "file"]
    {
        let refused = call(&scene, tool, &json!({}));
        assert!(refused.contains("HF-3101") && refused.contains(tool), "{refused}");
    }
    let manifest = "id: poet\nname: Poet\nagent: { parallel_tool_calls: true, instructions_file: poet.md }\n";
    single(&scene, "poet/manifest.yaml", manifest);
    let checked = scene.run(&["ext", "check", "poet"]);
    let told = format!("{}{}", checked.out, checked.err);
    for field in ["parallel_tool_calls", "instructions_file"] {
        assert!(told.contains(&format!("warning[HF-1004]: unknown field `{field}` in `agent`")), "{told}");
    }
    assert!(told.contains("run together") && told.contains("prompt.jinja2"), "{told}");
}
