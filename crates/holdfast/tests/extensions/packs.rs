//! Packs for Node: folders, modules and packages of a registry, their tools, guardrails, secrets and names, and what happens when one
//! fails.

mod hostile;
mod installed;
mod published;

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::shared::{Owner, Scene, bodies, until};

/// A home in which nobody is asked.
fn scene() -> Scene {
    let scene = Scene::new();
    scene.policy("profile: full-auto\n");
    scene.settings("models: { default: offline }\n");
    scene
}

/// A home with these packs in its settings.
fn scene_with(packs: &Value) -> Scene {
    let scene = scene();
    scene.settings(&json!({ "models": { "default": "offline" }, "packs": packs }).to_string());
    scene
}

fn write(folder: &Path, files: &[(&str, &str)]) {
    fs::create_dir_all(folder).unwrap();
    for (name, text) in files {
        fs::write(folder.join(name), text).unwrap();
    }
}

/// A pack with one tool, as a folder of the home.
fn extension(scene: &Scene, id: &str, text: &str) {
    write(&scene.home().join("extensions").join(id), &[("index.mjs", text)]);
}

fn call(scene: &Scene, tool: &str, arguments: &Value) -> Value {
    scene.run(&["call", tool, &arguments.to_string(), "--json"]).json()
}

/// A pack with a tool that says what it is given.
const ECHO: &str = r#"
export function createExtensionPack(context) {
  return {
    name: "echo", version: "1.0.0",
    descriptors: [{ id: "echo", kind: "tool", payload: {
      id: "echo", name: "echo", displayName: "Echo", description: "Says it again.", hasSideEffects: false,
      inputSchema: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
      async execute(args) { return { success: true, output: `${context.options?.before ?? ""}${args.text}` }; },
    } }],
  };
}
"#;

fn echo_named(name: &str) -> String {
    ECHO.replace("\"echo\"", &format!("{name:?}"))
}

#[test]
fn a_folder_with_a_module_is_a_pack_whose_tool_is_called_and_replayed_without_node() {
    let mut scene = scene();
    extension(&scene, "say", ECHO);
    let listed = scene.run(&["tools", "--json"]).ok().out;
    assert!(listed.contains("Says it again.") && listed.contains("\"text\""), "{listed}");
    let said = call(&scene, "echo", &json!({ "text": "hello" }));
    assert_eq!(said["result"], "hello", "{said}");
    let steps =
        json!([{ "calls": [{ "tool": "echo", "arguments": { "text": "in a turn" } }] }, { "says": "done" }]);
    scene.turn("talk", &steps).ok();
    let frames = scene.frames("talk");
    assert!(bodies(&frames, "tool.returned")[0].to_string().contains("in a turn"), "{frames:#?}");
    fs::remove_dir_all(scene.home().join("extensions/say")).unwrap();
    scene.variable("PATH", "/nonexistent");
    scene.run(&["replay", "talk"]).ok();
    scene.verifies();
}

#[test]
fn a_package_json_and_a_manifest_make_a_folder_a_pack_too() {
    let scene = scene();
    let folder = scene.home().join("extensions");
    let package =
        json!({ "name": "@some/kit", "version": "2.3.4", "type": "module", "main": "lib.js" }).to_string();
    write(&folder.join("kit"), &[("package.json", &package), ("lib.js", &echo_named("kit_echo"))]);
    let manifest = "id: own\nname: Own\nentrypoint: start.cjs\nconfig: { before: 'said: ' }\n";
    let common =
        echo_named("own_echo").replace("export function createExtensionPack", "module.exports = function");
    write(&folder.join("own"), &[("manifest.yaml", manifest), ("start.cjs", &common)]);
    assert_eq!(call(&scene, "kit_echo", &json!({ "text": "a" }))["result"], "a");
    assert!(scene.run(&["ext", "check", "kit"]).ok().out.contains("kit_echo"));
    assert_eq!(call(&scene, "own_echo", &json!({ "text": "b" }))["result"], "said: b");
    let listed = scene.run(&["ext", "list"]).ok().out;
    assert!(listed.contains("2.3.4"), "{listed}");
}

#[test]
fn the_settings_name_folders_and_modules_with_options_priorities_and_prefixes() {
    let scene = scene();
    let outside = scene.outside();
    write(&outside.join("one"), &[("index.mjs", ECHO)]);
    write(&outside.join("two"), &[("notes.mjs", ECHO)]);
    write(&scene.home().join("packs"), &[("three.mjs", ECHO)]);
    let packs = json!([
        { "folder": outside.join("one"), "priority": 5, "options": { "before": "one " } },
        { "module": outside.join("two/notes.mjs"), "options": { "before": "two " } },
        { "module": "packs/three.mjs", "prefix": "third", "options": { "before": "three " } },
        { "folder": outside.join("one"), "identifier": "off", "enabled": false },
    ]);
    scene.settings(&json!({ "models": { "default": "offline" }, "packs": packs }).to_string());
    assert_eq!(
        call(&scene, "echo", &json!({ "text": "a" }))["result"],
        "one a",
        "the higher priority serves"
    );
    assert_eq!(call(&scene, "third__echo", &json!({ "text": "a" }))["result"], "three a");
    let listed = scene.run(&["ext", "list"]).ok().out;
    let all = ["pack-one", "pack-notes", "pack-three"];
    assert!(all.iter().all(|id| listed.contains(id)) && !listed.contains("pack-off"), "{listed}");
    // The settings give the name to another one, or take it away.
    let overrides = |it: Value| {
        let overrides = json!({ "tool": { "echo": it } });
        let all = json!({ "models": { "default": "offline" }, "packs": packs, "overrides": overrides });
        scene.settings(&all.to_string());
    };
    overrides(json!({ "extension": "pack-notes" }));
    assert_eq!(call(&scene, "echo", &json!({ "text": "a" }))["result"], "two a");
    overrides(json!({ "enabled": false }));
    assert_eq!(call(&scene, "echo", &json!({ "text": "a" }))["error"]["code"], "HF-3101");
}

#[test]
fn a_pack_that_fails_is_listed_with_its_reason_and_affects_no_other() {
    let scene = scene();
    extension(&scene, "good", ECHO);
    extension(
        &scene,
        "throws",
        "export function createExtensionPack() { throw new Error('no token for the service'); }",
    );
    extension(&scene, "exits", "process.exit(3);");
    extension(&scene, "nothing", "export const answer = 42;");
    extension(&scene, "broken", "export function createExtensionPack( {");
    assert_eq!(call(&scene, "echo", &json!({ "text": "a" }))["result"], "a");
    let told = scene.run(&["ext", "doctor"]).out;
    for reason in ["no token for the service", "exit status: 3", "nothing", "broken"] {
        assert!(told.contains(reason), "{reason}: {told}");
    }
}

#[test]
fn a_reserved_name_gets_a_prefix_and_the_settings_give_it_away() {
    let scene = scene();
    extension(&scene, "shell-kit", &echo_named("shell"));
    assert_eq!(call(&scene, "shell-kit__shell", &json!({ "text": "a" }))["result"], "a");
    scene.settings(
        &json!({
            "models": { "default": "offline" },
            "overrides": { "tool": { "shell": { "extension": "shell-kit" } } },
        })
        .to_string(),
    );
    // The list that was kept still has the pack's own name.
    assert_eq!(call(&scene, "shell", &json!({ "text": "a" }))["result"], "a");
}

/// Asks for two secrets, of which it is granted one.
const SECRETS: &str = r#"
export function createExtensionPack(context) {
  const key = context.getSecret("maps.apiKey");
  return { name: "maps", version: "1.0.0", descriptors: [
    { id: "key_length", kind: "tool", payload: { id: "key_length", name: "key_length", description: "Its length.",
      inputSchema: { type: "object", properties: {} }, hasSideEffects: false,
      async execute() { return { success: true, output: { length: key?.length ?? 0, other: context.getSecret("other.key") ?? null, said: key } }; } } },
    { id: "blocked", kind: "tool", requiredSecrets: [{ id: "absent.key" }], payload: { id: "blocked", name: "blocked",
      description: "Needs a key.", inputSchema: { type: "object", properties: {} }, async execute() { return { success: true }; } } },
  ] };
}
"#;

#[test]
fn a_pack_has_the_secrets_that_it_is_granted_and_they_are_redacted_in_the_log() {
    let mut scene = scene();
    let outside = scene.outside();
    write(&outside.join("maps"), &[("index.mjs", SECRETS)]);
    let packs =
        json!([{ "folder": outside.join("maps"), "options": { "secrets": { "maps.apiKey": "MAPS_KEY" } } }]);
    scene.settings(&json!({ "models": { "default": "offline" }, "packs": packs }).to_string());
    scene.variable("MAPS_KEY", "k3y-of-the-maps-0123456789");
    scene.variable("OTHER_KEY", "an0ther-key-9876543210");
    let told = call(&scene, "key_length", &json!({}));
    assert_eq!(told["result"]["length"], 26, "{told}");
    assert_eq!(told["result"]["other"], Value::Null, "what is not granted is not there: {told}");
    let frames = json!(scene.frames(told["session"].as_str().unwrap())).to_string();
    let all = frames + &json!(scene.frames("system")).to_string();
    assert!(!all.contains("k3y-of-the-maps") && !all.contains("an0ther-key"), "{all}");
    let doctor = scene.run(&["ext", "doctor"]).out;
    assert!(
        doctor.contains("ABSENT_KEY") && !call(&scene, "blocked", &json!({}))["error"].is_null(),
        "{doctor}"
    );
}

/// Replaces a word in questions and answers, and blocks another one.
const GUARDRAIL: &str = r#"
let seen = 0;
export default {
  name: "words", version: "1.0.0",
  onActivate() { seen += 1; },
  descriptors: [{ id: "words", kind: "guardrail", payload: {
    config: { canSanitize: true },
    async evaluateInput({ input }) {
      if (input.textInput.includes("forbidden")) return { action: "block", reason: "that word is forbidden" };
      if (input.textInput.includes("secret")) return { action: "sanitize", modifiedText: input.textInput.replace("secret", "[gone]") };
      return null;
    },
    async evaluateOutput({ chunk }) {
      const text = chunk.finalResponseText ?? "";
      return text.includes("secret") ? { action: "sanitize", modifiedText: text.replace("secret", "[gone]") } : { action: "allow" };
    },
  } }],
};
"#;

#[test]
fn a_guardrail_of_a_pack_sanitises_and_blocks_and_is_overridden_as_a_whole() {
    let scene = scene();
    extension(&scene, "words", GUARDRAIL);
    let said = scene.turn("talk", &json!([{ "says": "the secret is out" }])).ok().out;
    assert!(said.contains("the [gone] is out"), "{said}");
    let frames = scene.frames("talk");
    let decided = json!(bodies(&frames, "hook.decided")).to_string() + &json!(frames).to_string();
    assert!(decided.contains("words/guardrail/words/"), "{frames:#?}");
    scene.run(&["replay", "talk"]).ok();
    let off = json!({ "models": { "default": "offline" }, "overrides": { "guardrail": { "words": { "enabled": false } } } });
    scene.settings(&off.to_string());
    let said = scene.turn("open", &json!([{ "says": "the secret is out" }])).ok().out;
    assert!(said.contains("the secret is out"), "{said}");
    scene.verifies();
}

#[test]
fn an_edited_pack_is_reloaded_while_the_home_is_up() {
    let scene = scene();
    let outside = scene.outside().join("kit");
    write(&outside, &[("index.mjs", ECHO)]);
    scene.settings(
        &json!({ "models": { "default": "offline" }, "packs": [{ "folder": outside }] }).to_string(),
    );
    let _owner = Owner::begin(&scene);
    until("it is there", || scene.run(&["tools"]).out.contains("Says it again."));
    write(&outside, &[("index.mjs", &ECHO.replace("Says it again.", "Repeats it."))]);
    until("the change is noticed", || scene.run(&["tools"]).out.contains("Repeats it."));
    assert_eq!(call(&scene, "echo", &json!({ "text": "a" }))["result"], "a");
}

#[test]
fn what_nothing_consumes_is_a_warning() {
    let scene = scene();
    let flow = r#"export default { name: "flow", version: "1.0.0", descriptors: [
      { id: "nightly", kind: "workflow", payload: { steps: [] } }, { id: "odd", kind: "stt-provider", payload: {} } ] };"#;
    extension(&scene, "flow", flow);
    let doctor = scene.run(&["ext", "doctor"]).out;
    assert!(doctor.contains("nothing consumes kind `workflow`"), "{doctor}");
    assert!(doctor.contains("nothing consumes kind `stt-provider`"), "{doctor}");
}

/// Whatever awaited one of them would not end within the time of a test.
#[test]
fn packs_that_are_slow_or_dead_delay_no_turn() {
    let scene = scene();
    for number in 0..3 {
        extension(
            &scene,
            &format!("hangs{number}"),
            "await new Promise((done) => setTimeout(done, 600_000));",
        );
        extension(&scene, &format!("exits{number}"), "process.exit(1);");
        extension(&scene, &format!("throws{number}"), "throw new Error('not today');");
    }
    let _owner = Owner::starting(&scene);
    until("it answers", || scene.is_up());
    let said = scene.turn("talk", &json!([{ "says": "at once" }])).ok();
    assert!(said.out.contains("at once"));
    until("each has its reason", || {
        let told = scene.run(&["ext", "doctor"]).out;
        (0..3).all(|number| told.contains(&format!("throws{number}"))) && told.contains("not today")
    });
}

#[test]
fn code_that_does_not_return_is_stopped_and_started_again() {
    let scene = scene();
    let stuck =
        ECHO.replace("async execute(args) {", "async execute(args) { if (args.text === \"stuck\") for (;;);");
    write(
        &scene.home().join("extensions/loops"),
        &[
            ("index.mjs", &stuck),
            ("manifest.yaml", "id: loops\nname: Loops\ntools: { echo: { timeout_ms: 1000 } }\n"),
        ],
    );
    let _owner = Owner::begin(&scene);
    until("it is there", || scene.run(&["tools"]).out.contains("Says it again."));
    let late = call(&scene, "echo", &json!({ "text": "stuck" }));
    assert!(late["error"].is_object(), "{late}");
    until("it serves again", || call(&scene, "echo", &json!({ "text": "a" }))["result"] == "a");
}
