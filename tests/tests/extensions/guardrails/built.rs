//! The embedded components are built from the sources beside them. `HOLDFAST_UPDATE=1` rebuilds them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use holdfast_contract::digest::Digest;

use super::{BUILT_IN, folder};

/// The digest of everything that a component is built from: its sources and settings, and the SDK.
fn sources(id: &str) -> String {
    let mut files = BTreeMap::new();
    let root = folder("..").canonicalize().unwrap();
    collect(&root.join("extensions").join(id).join("src"), &root, &mut files);
    collect(&root.join("sdk/rust/src"), &root, &mut files);
    collect(&root.join("sdk/rust/macros/src"), &root, &mut files);
    for file in ["Cargo.toml", "Cargo.lock"] {
        let path = folder(id).join(file);
        files.insert(format!("{id}/{file}"), Digest::of(&fs::read(path).unwrap()).to_string());
    }
    Digest::of_json(&files).unwrap().to_string()
}

fn collect(from: &Path, root: &Path, files: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, root, files)
        } else {
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            files.insert(name, Digest::of(&fs::read(&path).unwrap()).to_string());
        }
    }
}

#[test]
fn each_component_was_built_from_the_sources_beside_it() {
    for id in BUILT_IN {
        let (noted, component) = (folder(id).join("SOURCES"), folder(id).join(format!("{id}.wasm")));
        if std::env::var_os("HOLDFAST_UPDATE").is_some() {
            let built = holdfast_authoring::build(&folder(id), &mut |_| {}).unwrap();
            assert_eq!(built.component.canonicalize().unwrap(), component.canonicalize().unwrap());
            let digest = Digest::of(&fs::read(&component).unwrap());
            fs::write(&noted, format!("sources {}\ncomponent {digest}\n", sources(id))).unwrap();
        }
        let digest = Digest::of(&fs::read(&component).unwrap());
        let expected = format!("sources {}\ncomponent {digest}\n", sources(id));
        let noted = fs::read_to_string(noted).unwrap_or_default();
        assert_eq!(noted, expected, "{id}: run this test with HOLDFAST_UPDATE=1 to rebuild the component");
    }
}

#[test]
fn none_of_them_reaches_anything_but_its_settings_and_none_is_large() {
    for id in BUILT_IN {
        let bytes = fs::read(folder(id).join(format!("{id}.wasm"))).unwrap();
        assert!(bytes.len() < 200 * 1024, "{id} has {} bytes", bytes.len());
        let text = String::from_utf8_lossy(&bytes);
        for import in ["clock", "random", "events", "state", "secrets", "agents", "wasi"] {
            assert!(!text.contains(&format!("holdfast:extension/{import}@")), "{id} imports {import}");
        }
        let manifest = fs::read_to_string(folder(id).join("manifest.yaml")).unwrap();
        assert!(!manifest.contains("grants"), "{id} asks for a grant");
    }
}
