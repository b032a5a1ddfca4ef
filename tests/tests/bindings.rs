//! The Rust SDK's bindings under `sdk/rust/src/bindings/`: generated from `wit/`, and compared with what is committed.
//!
//! They are committed so that building an extension does not require building the generator first.
//! To generate them again: `HOLDFAST_UPDATE=1 cargo test -p holdfast-tests --test bindings`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on should stop loudly")]

use std::fmt::Write;
use std::path::{Path, PathBuf};

use holdfast_authoring::wit::{self, ComponentKind, PACKAGE, VERSION};
use wit_bindgen_core::WorldGenerator;
use wit_bindgen_rust::{Opts, WithOption};

const OPENING: &str =
    "// @generated from `wit/` by `HOLDFAST_UPDATE=1 cargo test -p holdfast-tests --test bindings`.\n";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../sdk/rust/src/bindings")
}

/// One file for each interface, so that an extension exports exactly what it implements.
#[test]
fn bindings() {
    let mut index = format!("{OPENING}\n");
    let interfaces = wit::interfaces().unwrap();
    for interface in interfaces.iter().filter(|interface| interface.kind != ComponentKind::Planned) {
        let module = interface.name.replace('-', "_");
        writeln!(index, "#[rustfmt::skip]\npub mod {module};").unwrap();
        check(&format!("{module}.rs"), &generate(&interface.name, interface.kind));
    }
    check("mod.rs", &index);
}

fn generate(name: &str, kind: ComponentKind) -> String {
    let module = name.replace('-', "_");
    let import = matches!(kind, ComponentKind::Host | ComponentKind::Types);
    let world = format!(
        "package {PACKAGE}@{VERSION};\nworld sdk-{name} {{ {} {name}; }}\n",
        if import { "import" } else { "export" }
    );
    let (mut resolve, world) = wit::resolve_with(&world).unwrap();
    let used = |shared: &&str| {
        let imports = resolve.worlds[world].imports.keys();
        let mut names = imports.map(|key| resolve.name_world_key(key));
        *shared != name && names.any(|name| name == format!("{PACKAGE}/{shared}@{VERSION}"))
    };
    let with = ["types", "verdicts"].into_iter().filter(used).map(|shared| {
        let path = format!("crate::bindings::{shared}::holdfast::extension::{shared}");
        (format!("{PACKAGE}/{shared}@{VERSION}"), WithOption::Path(path))
    });
    let with = with.collect();
    let options = Opts {
        format: true,
        with,
        generate_all: true,
        generate_unused_types: true,
        runtime_path: Some("wit_bindgen::rt".to_owned()),
        default_bindings_module: Some(format!("holdfast_extension::bindings::{module}")),
        export_macro_name: Some(format!("export_{module}")),
        pub_export_macro: true,
        type_section_suffix: Some(format!("-{name}")),
        ..Opts::default()
    };
    let mut files = wit_bindgen_core::Files::default();
    options.build().generate(&mut resolve, world, &mut files).unwrap();
    let (_, text) = files.iter().next().unwrap();
    format!("{OPENING}{}", std::str::from_utf8(text).unwrap())
}

fn check(name: &str, text: &str) {
    let path = folder().join(name);
    if std::env::var_os("HOLDFAST_UPDATE").is_some() {
        std::fs::create_dir_all(folder()).unwrap();
        std::fs::write(&path, text).unwrap();
        return;
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == text,
        "{} is stale: run HOLDFAST_UPDATE=1 cargo test -p holdfast-tests --test bindings",
        path.display()
    );
}
