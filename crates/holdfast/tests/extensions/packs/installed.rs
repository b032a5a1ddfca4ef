//! Packs that are packages of a registry: installed once, by settings alone, with none of their code run by the installer.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::{ECHO, call, scene_with};
use crate::shared::{Scene, read_request};

/// Answers by path.
type Answers = Arc<Mutex<BTreeMap<String, Vec<u8>>>>;

/// A registry with packages of our own.
struct Registry {
    address: String,
    answers: Answers,
    folder: tempfile::TempDir,
}

impl Registry {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let answers = Answers::default();
        let served = answers.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (Ok(mut stream), served) = (stream, served.clone()) else { return };
                std::thread::spawn(move || {
                    let request = read_request(&stream);
                    let path = request.split_whitespace().nth(1).unwrap_or_default().to_lowercase();
                    let answer = served.lock().unwrap().get(&path).cloned();
                    let status = if answer.is_some() { "200 OK" } else { "404 Not Found" };
                    let body = answer.unwrap_or_else(|| b"{}".to_vec());
                    let head = format!(
                        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                        body.len()
                    );
                    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body));
                });
            }
        });
        Self { address, answers, folder: tempfile::tempdir().unwrap() }
    }

    /// Publishes versions of a package, each with its own `index.mjs`.
    fn publish(&self, name: &str, versions: &[(&str, &str)], more: &Value) {
        let mut all = serde_json::Map::new();
        for (version, code) in versions {
            let mut package =
                json!({ "name": name, "version": version, "type": "module", "main": "index.mjs" });
            for (key, value) in more.as_object().unwrap() {
                package[key] = value.clone();
            }
            let folder = self.folder.path().join("package");
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("package.json"), package.to_string()).unwrap();
            fs::write(folder.join("index.mjs"), code).unwrap();
            let file = format!("{}-{version}.tgz", name.replace(['@', '/'], ""));
            let packed = self.folder.path().join(&file);
            let mut tar = Command::new("tar");
            tar.arg("-czf").arg(&packed).arg("-C").arg(self.folder.path()).arg("package");
            assert!(tar.status().unwrap().success());
            let path = format!("/tgz/{file}");
            package["dist"] = json!({ "tarball": format!("{}{path}", self.address) });
            self.answers.lock().unwrap().insert(path, fs::read(&packed).unwrap());
            all.insert((*version).to_owned(), package);
        }
        let latest = versions.last().unwrap().0;
        let about = json!({ "name": name, "dist-tags": { "latest": latest }, "versions": all }).to_string();
        let path = format!("/{}", name.replace('/', "%2f"));
        self.answers.lock().unwrap().insert(path, about.into_bytes());
    }
}

fn home_of(packs: &Value, registry: &Registry) -> Scene {
    let mut scene = scene_with(packs);
    scene.variable("npm_config_registry", &registry.address);
    scene.variable("npm_config_fetch_retries", "0");
    scene
}

fn versioned(version: &str) -> String {
    ECHO.replace("${context.options?.before ?? \"\"}", &format!("{version} "))
}

fn environments(scene: &Scene) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(scene.home().join("environments")).unwrap();
    entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect()
}

#[test]
fn a_package_is_installed_once_without_its_scripts_and_used_without_the_registry() {
    let registry = Registry::start();
    let mark = registry.folder.path().join("mark");
    let script = format!("touch {}", mark.display());
    let scripts = json!({ "scripts": { "preinstall": script, "postinstall": script, "install": script } });
    registry.publish("@some/agentos-ext-kit", &[("1.0.0", &versioned("v1"))], &scripts);
    let mut scene = home_of(&json!([{ "package": "@some/agentos-ext-kit", "version": "^1" }]), &registry);
    let first = scene.run(&["call", "echo", r#"{"text": "a"}"#]).ok();
    assert!(first.out.contains("v1 a"), "{first:#?}");
    assert!(first.err.contains("installing for pack-kit, once: @some/agentos-ext-kit@^1"), "{first:#?}");
    assert!(!mark.exists(), "an install script was run");
    // It stays as it is although the registry has another version, and is gone.
    registry.publish("@some/agentos-ext-kit", &[("1.0.0", ""), ("1.1.0", &versioned("v2"))], &json!({}));
    scene.variable("npm_config_registry", "http://127.0.0.1:1");
    let second = scene.run(&["call", "echo", r#"{"text": "b"}"#]).ok();
    assert!(second.out.contains("v1 b") && !second.err.contains("installing"), "{second:#?}");
    scene.verifies();
}

#[test]
fn an_installation_that_is_lost_is_made_again_in_the_same_versions() {
    let registry = Registry::start();
    registry.publish("kit", &[("1.0.0", &versioned("v1"))], &json!({}));
    let scene = home_of(&json!([{ "package": "kit" }]), &registry);
    assert_eq!(call(&scene, "echo", &json!({ "text": "a" }))["result"], "v1 a");
    let versions = [("1.0.0", versioned("v1")), ("2.0.0", versioned("v2"))];
    let versions: Vec<_> = versions.iter().map(|(version, code)| (*version, code.as_str())).collect();
    registry.publish("kit", &versions, &json!({}));
    for folder in environments(&scene) {
        fs::remove_dir_all(folder).unwrap();
    }
    assert_eq!(call(&scene, "echo", &json!({ "text": "a" }))["result"], "v1 a");
}

#[test]
fn a_pack_refers_to_its_host_by_a_package_that_is_not_installed() {
    let registry = Registry::start();
    let peer = host_package();
    let code = format!("import {{ EXTENSION_KIND_TOOL }} from {peer:?};\n{ECHO}")
        .replace("kind: \"tool\"", "kind: EXTENSION_KIND_TOOL");
    registry.publish(
        "kit",
        &[("1.0.0", &code)],
        &json!({ "peerDependencies": { (peer.as_str()): "^0.1.0" } }),
    );
    let scene = home_of(&json!([{ "package": "kit" }]), &registry);
    assert_eq!(call(&scene, "echo", &json!({ "text": "a" }))["result"], "a");
    // The same in a folder, which then needs no installation at all.
    let folder = scene.home().join("extensions/own");
    let own = code.replace("\"echo\"", "\"own\"");
    let package = json!({ "name": "own", "version": "1.0.0", "type": "module", "peerDependencies": { (peer.as_str()): "*" } });
    super::write(&folder, &[("package.json", &package.to_string()), ("index.mjs", &own)]);
    assert_eq!(call(&scene, "own", &json!({ "text": "b" }))["result"], "b");
    assert_eq!(environments(&scene).len(), 1);
}

/// The name of the package that the worker has a stand-in for.
fn host_package() -> String {
    let path = "../lane-process/src/node/holdfast_worker/standin/package.json";
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
    let package: Value = serde_json::from_str(&text).unwrap();
    package["name"].as_str().unwrap().to_owned()
}

#[test]
fn a_folder_has_the_packages_that_it_names() {
    let registry = Registry::start();
    registry.publish("shout", &[("1.0.0", "export const shout = (text) => text.toUpperCase();")], &json!({}));
    let scene = home_of(&json!([]), &registry);
    let code = format!(
        "import {{ shout }} from \"shout\";\n{}",
        ECHO.replace("${args.text}", "${shout(args.text)}")
    );
    let package =
        json!({ "name": "loud", "version": "1.0.0", "type": "module", "dependencies": { "shout": "^1" } });
    let folder = scene.home().join("extensions/loud");
    super::write(&folder, &[("package.json", &package.to_string()), ("index.mjs", &code)]);
    assert_eq!(call(&scene, "echo", &json!({ "text": "quiet" }))["result"], "QUIET");
}

#[test]
fn what_cannot_be_installed_is_listed_with_its_reason() {
    let registry = Registry::start();
    registry.publish("lost", &[("1.0.0", ECHO)], &json!({ "dependencies": { "gone": "^9" } }));
    let packs = json!([{ "package": "absent" }, { "package": "lost" }, { "package": "kit@file:/etc" }]);
    let scene = home_of(&packs, &registry);
    let told = scene.run(&["ext", "doctor"]).out;
    for reason in ["HF-4203", "404", "HF-4204", "is not a range of versions"] {
        assert!(told.contains(reason), "{reason}: {told}");
    }
}
