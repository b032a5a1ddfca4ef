//! Classes written for another program that use its conversations, its agents and its modules.

use std::fs;

use crate::shared::{Owner, Scene, until};
use serde_json::{Value, json};

/// A home that lets every tool run, with a class in a folder.
fn scene(id: &str, manifest: &str, code: &str) -> Scene {
    let scene = Scene::new();
    scene.run(&["init"]).ok();
    scene.policy("profile: full-auto\n");
    scene.settings("models: { default: offline }\n");
    add(&scene, id, manifest, code);
    scene
}

fn add(scene: &Scene, id: &str, manifest: &str, code: &str) {
    let folder = scene.home().join("extensions").join(id);
    fs::create_dir_all(&folder).unwrap();
    let head = format!("id: {id}\nname: {id}\nversion: 1.0.0\nentrypoint: main:It\n{manifest}");
    fs::write(folder.join("manifest.yaml"), head).unwrap();
    fs::write(folder.join("main.py"), code).unwrap();
}

fn call(scene: &Scene, tool: &str, arguments: &Value) -> String {
    let ran = scene.run(&["call", tool, &arguments.to_string()]);
    format!("{}{}", ran.out, ran.err)
}

/// The template has a value that only the code knows, so the host must leave it alone.
#[test]
fn a_template_without_an_agent_belongs_to_the_code() {
    let code = r#"
from core.extensions.instructions import resolve_instructions

class It:
    async def initialize(self, context):
        self.context = context

    def get_tools(self):
        def raw() -> str:
            return self.context.resolved_instructions

        def folder() -> str:
            return str((self.context.extension_dir / "prompt.jinja2").is_file())

        return [raw, folder]
"#;
    let scene = scene("keeper", "agent_config: { scribe: { model: small } }\n", code);
    let prompt = "You may call {{ tools_of_the_code | join(', ') }}.\n";
    fs::write(scene.home().join("extensions/keeper/prompt.jinja2"), prompt).unwrap();
    let raw = call(&scene, "raw", &json!({}));
    assert!(raw.contains("{{ tools_of_the_code | join(', ') }}"), "{raw}");
    assert!(call(&scene, "folder", &json!({})).contains("True"));
}

/// Gives each conversation a title when it begins, and tells what is kept of it.
pub(super) const TITLER: &str = r#"
from core.events.topics import SystemTopics
from core.extensions.update_fields import UNSET

class It:
    async def initialize(self, context):
        self.context = context
        context.subscribe("user_message", self.named)

    async def start(self): ...

    async def named(self, said):
        thread = await self.context.get_thread(said.get("thread_id"))
        if thread is not None and not thread.title:
            await self.context.update_thread(thread.id, title=said["text"][:12], project_id=UNSET)

    def get_tools(self):
        async def kept(thread: str) -> dict:
            found = await self.context.get_thread(thread, include_archived=True)
            said = await self.context.get_thread_history(thread)
            return {"thread": None if found is None else found.to_dict(), "said": said}

        async def shelve(thread: str, project: str) -> str:
            made = await self.context.create_project(name=project, instructions="Be brief.")
            await self.context.update_thread(thread, project_id=made.id)
            there = await self.context.list_threads(project_id=made.id)
            await self.context.archive_thread(thread)
            left = await self.context.list_threads(project_id=made.id)
            return f"{[it.id for it in there]} {[it.id for it in left]} {(await self.context.get_project(made.id)).name}"

        return [kept, shelve]
"#;

/// A channel that brings messages of several conversations of one user.
pub(super) const DESK: &str = r#"
class It:
    async def initialize(self, context):
        self.context = context

    async def send_to_user(self, user_id, message):
        with open(self.context.data_dir / "sent", "a") as file:
            file.write(message + "\n")

    def get_tools(self):
        async def say(thread: str, text: str) -> str:
            await self.context.emit("user.message", {"text": text, "user_id": "ada", "thread_id": thread})
            return "sent"

        async def begin(thread: str) -> str:
            return (await self.context.create_thread(thread_id=thread, channel_id="desk")).channel_id

        return [say, begin]
"#;

#[test]
fn conversations_have_titles_projects_and_a_history() {
    let scene = scene("titler", "", TITLER);
    add(&scene, "desk", "", DESK);
    let owner = Owner::begin(&scene);
    assert!(call(&scene, "begin", &json!({ "thread": "tea" })).contains("desk"));
    assert!(call(&scene, "say", &json!({ "thread": "tea", "text": "Which tea is best?" })).contains("sent"));
    assert!(call(&scene, "say", &json!({ "thread": "trips", "text": "Where to?" })).contains("sent"));
    let kept = |thread: &str| call(&scene, "kept", &json!({ "thread": thread }));
    until("both conversations have titles", || {
        kept("tea").contains("Which tea is") && kept("trips").contains("Where to?")
    });
    until("the answer is in the history", || kept("tea").contains("assistant"));
    assert!(!kept("tea").contains("Where to?"), "two conversations, two sessions");
    let shelved = call(&scene, "shelve", &json!({ "thread": "tea", "project": "Kitchen" }));
    assert!(shelved.contains("['tea'] [] Kitchen"), "{shelved}");
    // The name of another user's session cannot be taken.
    call(&scene, "say", &json!({ "thread": "telegram.42", "text": "mine" }));
    assert!(kept("telegram.42").contains("null"));
    drop(owner);
    assert!(kept("tea").contains("Which tea is"), "titles outlast the process");
    scene.verifies();
}

/// Asks an agent by its id, and keeps a secret under a name with dots.
pub(super) const ASKER: &str = r#"
class It:
    async def initialize(self, context):
        self.context = context
        self.agents = context.agent_registry

    def get_tools(self):
        async def ask(agent: str) -> str:
            found = self.agents.get(agent)
            if found is None:
                return f"none, there are {[it.id for it in self.agents.list_agents()]}"
            record, provider = found
            answer = await provider.invoke("say something")
            return f"{record.name}: {answer.status} {answer.content}"

        async def main_agent() -> str:
            return await self.context.invoke_agent_background("say something")

        async def secret(value: str) -> str:
            await self.context.set_secret("asker.box.password", value)
            return "kept" if await self.context.get_secret("asker.box.password") == value else "gone"

        return [ask, main_agent, secret]
"#;

#[test]
fn agents_are_found_by_their_id_and_secrets_may_have_dots() {
    let scene = scene("asker", "", ASKER);
    let folder = scene.home().join("extensions/poet");
    fs::create_dir_all(&folder).unwrap();
    let manifest = "id: poet\nname: Poet\nagent: { integration_mode: tool, instructions: Rhyme. }\n";
    fs::write(folder.join("manifest.yaml"), manifest).unwrap();
    let _owner = Owner::begin(&scene);
    let answer = call(&scene, "ask", &json!({ "agent": "poet" }));
    assert!(answer.contains("success"), "{answer}");
    let missing = call(&scene, "ask", &json!({ "agent": "painter" }));
    assert!(missing.contains("none, there are") && missing.contains("poet"), "{missing}");
    assert!(!call(&scene, "main_agent", &json!({})).contains("HF-"));
    assert!(call(&scene, "secret", &json!({ "value": "canary-4410" })).contains("kept"));
    assert!(call(&scene, "secret", &json!({ "value": "" })).contains("gone"));
    scene.verifies();
}
