//! The interface package is valid, and the lane's signatures are those of `wit/`: components built from it, as toolchains do, are
//! inspected, linked and refused correctly.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod support;

use std::path::Path;
use std::sync::Arc;

use holdfast_contract::host_call::Capability;
use holdfast_contract::manifest::Grants;
use holdfast_contract::problem::Code;
use holdfast_contract::role::Role;
use holdfast_contract::sandbox::SandboxOptions;
use holdfast_contract::wire::Lane;
use holdfast_lane_wasm::{Inspection, WasmLane, inspect};
use support::{Extension, MemoryVault, gate};
use wit_component::{ComponentEncoder, StringEncoding, dummy_module, embed_component_metadata};
use wit_parser::{ManglingAndAbi, Resolve};

fn package() -> (Resolve, wit_parser::PackageId) {
    let mut resolve = Resolve::default();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit");
    let (package, _) = resolve.push_dir(&folder).unwrap();
    (resolve, package)
}

/// The interfaces that a file of `wit/` declares.
fn interfaces(file: &str) -> Vec<String> {
    let text = std::fs::read_to_string(support::here().join("../../wit").join(file)).unwrap();
    let named = |line: &str| Some(line.strip_prefix("interface ")?.strip_suffix(" {")?.to_owned());
    text.lines().filter_map(named).filter(|name| name != "verdicts").collect()
}

/// A component with these imports and exports whose every function traps.
fn toolchain(imports: &[String], exports: &[String]) -> Vec<u8> {
    let (mut resolve, _) = package();
    let line = |word: &str, name: &String| format!("  {word} holdfast:extension/{name}@0.1.0-draft;\n");
    let imports: String = imports.iter().map(|name| line("import", name)).collect();
    let exports: String = exports.iter().map(|name| line("export", name)).collect();
    let world = format!("package test:guest;\nworld guest {{\n{imports}{exports}}}\n");
    let package = resolve.push_str("guest.wit", &world).unwrap();
    let world = resolve.select_world(&[package], None).unwrap();
    let mut module = dummy_module(&resolve, world, ManglingAndAbi::Standard32);
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
    ComponentEncoder::default().module(&module).unwrap().validate(true).encode().unwrap()
}

fn inspected(bytes: &[u8], grants: &Grants) -> Result<Inspection, (Code, String)> {
    inspect(&"guest".into(), bytes, grants).map_err(|problem| (problem.code, problem.what))
}

fn names(list: &[&str]) -> Vec<String> {
    list.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn the_package_resolves() {
    let (resolve, package) = package();
    assert_eq!(resolve.packages[package].name.to_string(), "holdfast:extension@0.1.0-draft");
}

#[test]
fn every_role_of_the_package_is_recognised() {
    let roles: Vec<_> = interfaces("roles.wit").into_iter().chain(interfaces("hooks.wit")).collect();
    assert_eq!(roles.len(), 42);
    for role in &roles {
        let found = inspected(&toolchain(&[], std::slice::from_ref(role)), &Grants::default());
        assert_eq!(found.unwrap_or_else(|why| panic!("{role}: {why:?}")).exports, [role.as_str()]);
    }
    let all = inspected(&toolchain(&[], &roles), &Grants::default()).unwrap();
    assert_eq!(all.exports.len(), roles.len());
    assert!(all.roles.contains(&Role::Guardrail) && all.roles.contains(&Role::Lifecycle));
    assert_eq!(all.hook_points, holdfast_contract::hook::HookPoint::ALL);
}

#[tokio::test]
async fn every_import_of_the_package_is_linked() {
    let interfaces_granted = Capability::ALL.iter().map(|capability| capability.name().to_owned()).collect();
    let grants = Grants {
        interfaces: interfaces_granted,
        secrets: names(&["TOKEN"]),
        environment: names(&["LANG"]),
        ..Grants::default()
    };
    let vault = Arc::new(MemoryVault::default());
    let lane = WasmLane::new(SandboxOptions::small(), vault.clone()).unwrap();
    let imports: Vec<_> = interfaces("host.wit");
    assert_eq!(imports.len(), 25);
    for import in &imports {
        let bytes = toolchain(std::slice::from_ref(import), &names(&["lifecycle-start"]));
        let found = inspected(&bytes, &grants).unwrap();
        assert!(found.imports.iter().any(|full| full.contains(&format!("/{import}@"))), "{found:?}");
        let waits = !["log", "config", "session"].contains(&import.as_str());
        assert_eq!(found.waits, waits, "{import}");
        let extension = Extension { grants: grants.clone(), ..Extension::of(bytes) };
        assert!(lane.load(&vault.put(&extension)).await.is_ok(), "{import}");
    }
}

#[test]
fn planned_interfaces_are_refused_as_import_and_export() {
    let granted = Grants { interfaces: interfaces("planned.wit"), ..Grants::default() };
    for planned in interfaces("planned.wit") {
        let exported = inspected(&toolchain(&[], std::slice::from_ref(&planned)), &granted).unwrap_err();
        assert_eq!(exported.0, Code::ComponentExport);
        assert!(exported.1.contains(&planned) && exported.1.contains("not offer yet"), "{exported:?}");
        let imported = toolchain(std::slice::from_ref(&planned), &names(&["tool-gate"]));
        let imported = inspected(&imported, &granted).unwrap_err();
        assert_eq!(imported.0, Code::ComponentImport);
        assert!(imported.1.contains(&planned) && imported.1.contains("not offered yet"), "{imported:?}");
    }
}

#[test]
fn a_missing_grant_is_named_with_its_command() {
    let ungranted = |import: &str| {
        inspected(&toolchain(&names(&[import]), &names(&["tools"])), &Grants::default()).unwrap_err()
    };
    assert_eq!(
        ungranted("ui"),
        (
            Code::ComponentImport,
            "it imports `ui`, and the interface `ui` is not granted: `holdfast ext grant guest --interface ui`"
                .to_owned()
        )
    );
    assert!(ungranted("events").1.ends_with("`holdfast ext grant guest --interface events`"));
    // Own secrets need no grant: the host decides about each name.
    inspected(&toolchain(&names(&["secrets"]), &names(&["tools"])), &Grants::default()).unwrap();
    // The interface has another name than the grant.
    let ungranted = ungranted("maintenance");
    assert!(ungranted.1.ends_with("`holdfast ext grant guest --interface setup`"), "{ungranted:?}");
}

/// The host refuses what a hook may not call, as in every lane: an extension with a tool and a gate imports what the tool needs.
#[test]
fn a_component_with_a_hook_may_import_what_it_is_granted() {
    let host = interfaces("host.wit");
    let grants = Grants {
        interfaces: Capability::ALL.iter().map(|capability| capability.name().to_owned()).collect(),
        environment: names(&["LANG"]),
        ..Grants::default()
    };
    for hook in ["tool-gate", "context", "guard-input"] {
        let found = inspected(&toolchain(&host, &names(&["tools", hook])), &grants).unwrap();
        assert_eq!(found.hook_points.len(), 1, "{hook}");
        for import in &host {
            assert!(
                found.imports.iter().any(|full| full.contains(&format!("/{import}@"))),
                "{hook} {import}"
            );
        }
    }
    // Without the grant it is refused as ever.
    let ungranted = inspected(&toolchain(&names(&["events"]), &names(&["tool-gate"])), &Grants::default());
    assert_eq!(ungranted.unwrap_err().0, Code::ComponentImport);
}

#[tokio::test]
async fn a_toolchains_gate_runs_until_it_traps() {
    let vault = Arc::new(MemoryVault::default());
    let lane = WasmLane::new(SandboxOptions::small(), vault.clone()).unwrap();
    let bytes = toolchain(&names(&["log", "state"]), &names(&["tool-gate"]));
    let loaded = lane.load(&vault.put(&Extension::of(bytes))).await.unwrap();
    let host = Arc::new(support::NotingHost::default());
    let fault = loaded.fresh().unwrap().call(gate(serde_json::json!({})), host).await.unwrap_err();
    assert_eq!(fault.code, Code::ComponentTrap);
    assert_eq!(fault.message, "wasm trap: wasm `unreachable` instruction executed");
}
