//! A file tree that an extension is granted never has the home in it, in any lane that starts programs.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::shared::Scene;

/// A value that only the home has.
const PLANTED: &str = "planted-value-of-the-home";

/// A file of another extension.
const PRIVATE: &str = "data/other/private.txt";

/// A tool that reads any file that it can, and tries the home when it is loaded.
const PEEK: &str = "try:\n    print(open('HOME/data/other/private.txt').read())\nexcept OSError:\n    pass\nclass It:\n    def get_tools(self):\n        def peek(path: str) -> str:\n            'Reads a file.'\n            return open(path).read()\n        return [peek]\n";

/// A home in which nobody is asked, with a tool that reads any file and an MCP server that does, for this tree.
fn scene_with(tree: impl Fn(&Scene) -> Value) -> Scene {
    let scene = Scene::new();
    scene.policy("profile: full-auto\n");
    let peek = scene.home().join("extensions/peek");
    fs::create_dir_all(&peek).unwrap();
    let files = json!([tree(&scene)]);
    let manifest =
        format!("id: peek\nname: Peek\nversion: 1.0.0\nentrypoint: main:It\ngrants: {{ files: {files} }}\n");
    fs::write(peek.join("manifest.yaml"), manifest).unwrap();
    let home = scene.home().display().to_string();
    fs::write(peek.join("main.py"), PEEK.replace("HOME", &home)).unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/extensions/mcp");
    let words = [folder.join("server.py").display().to_string(), "reads".to_owned()];
    let server = json!({ "command": "python3", "args": words, "files": [folder, tree(&scene)] });
    let settings = json!({ "models": { "default": "offline" }, "mcp": { "servers": { "reads": server } } });
    scene.settings(&settings.to_string());
    // Not in `.env`, whose values are redacted in everything that is shown.
    fs::create_dir_all(scene.home().join("data/other")).unwrap();
    fs::write(scene.home().join(PRIVATE), PLANTED).unwrap();
    scene
}

#[test]
fn a_grant_of_the_folder_with_the_home_shows_no_program_the_home() {
    for tree in ["/", ".."] {
        let scene = scene_with(|scene| match tree {
            "/" => json!("/"),
            _ => json!({ "path": scene.root(), "access": "write" }),
        });
        scene.run(&["ext", "grant", "peek"]).ok();
        let wanted = scene.home().join(PRIVATE).display().to_string();
        for (tool, arguments) in
            [("peek", json!({ "path": wanted })), ("reads__echo", json!({ "text": wanted }))]
        {
            let ran = scene.run(&["call", tool, &arguments.to_string()]);
            let told = format!("{}{}", ran.out, ran.err);
            assert!(!told.contains(PLANTED), "{tool} with {tree}: {told}");
        }
        // Checked or tried out, it is held like the one that is installed.
        for command in [&["--verbose", "ext", "check", "peek"][..], &["mcp", "test", "reads"]] {
            let ran = scene.run(command);
            let told = format!("{}{}", ran.out, ran.err);
            assert!(told.contains("HF-3109") && !told.contains(PLANTED), "{command:?} with {tree}: {told}");
        }
        let told = scene.run(&["ext", "doctor"]).out;
        assert_eq!(told.matches("HF-3109").count(), 2, "{tree}: {told}");
    }
}

#[test]
fn a_grant_beside_the_home_is_read() {
    let scene = scene_with(|scene| json!(scene.outside()));
    let note = scene.outside().join("note.txt");
    fs::write(&note, "a note").unwrap();
    scene.run(&["ext", "grant", "peek"]).ok();
    let wanted = note.display().to_string();
    assert!(scene.run(&["call", "peek", &json!({ "path": wanted }).to_string()]).ok().out.contains("a note"));
    let asked = json!({ "text": wanted }).to_string();
    assert!(scene.run(&["call", "reads__echo", &asked]).ok().out.contains("a note"));
}
