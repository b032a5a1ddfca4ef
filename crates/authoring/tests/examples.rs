//! Builds every example, and every template in every language. A missing toolchain is a failure, with the command that installs it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on should stop loudly")]

use std::path::{Path, PathBuf};

use holdfast_authoring::{BuildStep, Built, Language, TemplateRole, build, new};
use holdfast_contract::problem::{Code, Problem};

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name)
}

fn built(folder: &Path) -> Built {
    let mut steps = Vec::new();
    let built = build(folder, &mut |step| steps.push(step)).unwrap_or_else(|problem| {
        panic!("{problem}\n  the toolchains of the tests are installed by ./scripts/setup guests")
    });
    assert!(matches!(steps.first(), Some(BuildStep::Compile(_))), "{steps:?}");
    assert_eq!(steps.last(), Some(&BuildStep::Check));
    assert_eq!(std::fs::metadata(&built.component).unwrap().len(), built.bytes);
    println!(
        "{:<14} {:<10} {:>9} bytes {:>6} ms",
        built.id.as_str(),
        built.language,
        built.bytes,
        built.took.as_millis()
    );
    built
}

/// The exports of a component, as other tools see them. It imports only the host's package.
fn exports(built: &Built) -> Vec<String> {
    let bytes = std::fs::read(&built.component).unwrap();
    let decoded = wit_component::decode(&bytes).unwrap();
    let wit_component::DecodedWasm::Component(resolve, world) = decoded else {
        panic!("{} is not a component", built.component.display())
    };
    let world = &resolve.worlds[world];
    for key in world.imports.keys() {
        let name = resolve.name_world_key(key);
        assert!(name.starts_with("holdfast:extension/"), "{} imports {name}", built.id);
    }
    world.exports.keys().map(|key| resolve.name_world_key(key)).collect()
}

fn of_package(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| format!("holdfast:extension/{name}@0.1.0-draft")).collect()
}

#[track_caller]
fn check_example(name: &str, language: Language, names: &[&str], largest: u64) {
    let built = built(&example(name));
    assert_eq!((built.id.as_str(), built.language), (name, language));
    assert_eq!(built.exports, names);
    assert_eq!(built.imports, [""; 0]);
    let mut exported = exports(&built);
    exported.sort();
    assert_eq!(exported, of_package(names));
    assert!(built.bytes <= largest, "{name} has {} bytes; {largest} is the limit", built.bytes);
}

#[test]
fn secret_guard() {
    check_example(
        "secret-guard",
        Language::Rust,
        &["guard-input", "guard-output", "sanitize-result"],
        100 * 1024,
    );
}

#[test]
fn text_tools() {
    check_example("text-tools", Language::Python, &["tools"], 20 * 1024 * 1024);
}

#[test]
fn json_tools() {
    check_example("json-tools", Language::JavaScript, &["tools"], 1536 * 1024);
}

#[test]
fn checksum() {
    check_example("checksum", Language::C, &["tools"], 16 * 1024);
}

/// A folder for extensions. Those in Rust share a target folder, so that common crates are built once.
fn workshop() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("guests");
    std::fs::create_dir(folder.path().join(".cargo")).unwrap();
    let config = format!("[build]\ntarget-dir = {:?}\n", target.to_str().unwrap());
    std::fs::write(folder.path().join(".cargo/config.toml"), config).unwrap();
    folder
}

#[track_caller]
fn check_templates(language: Language) {
    let folder = workshop();
    let roles = [
        (TemplateRole::Tool, "a-tool", "tools"),
        (TemplateRole::Gate, "a-gate", "tool-gate"),
        (TemplateRole::Guardrail, "a-guard", "guard-output"),
    ];
    for (role, id, export) in roles {
        let made = new(language, id, role, &folder.path().join(id)).unwrap();
        assert_eq!(made.id.as_str(), id);
        assert!(made.files.iter().all(|name| made.folder.join(name).is_file()), "{:?}", made.files);
        let built = built(&made.folder);
        assert_eq!(built.exports, [export]);
        assert_eq!(exports(&built), of_package(&[export]));
    }
}

#[test]
fn rust_templates() {
    check_templates(Language::Rust);
}

#[test]
fn python_templates() {
    check_templates(Language::Python);
}

#[test]
fn javascript_templates() {
    check_templates(Language::JavaScript);
}

#[test]
fn c_templates() {
    check_templates(Language::C);
}

/// Builds a tool of this id with another source. Tests run concurrently, and ids name files that they share.
fn rewritten(id: &str, language: Language, file: &str, text: &str) -> Result<Built, Problem> {
    let folder = workshop();
    let made = new(language, id, TemplateRole::Tool, &folder.path().join(id)).unwrap();
    std::fs::write(made.folder.join(file), text).unwrap();
    build(&made.folder, &mut |_| {})
}

#[test]
fn only_what_is_used_is_imported() {
    let python = "from holdfast import tool, clock, state\n\n@tool\ndef now() -> int:\n    \"\"\"The time.\"\"\"\n    state.set('last', clock.now())\n    return clock.now()\n";
    let id = "uses-host";
    assert_eq!(rewritten(id, Language::Python, "main.py", python).unwrap().imports, ["clock", "state"]);
    let javascript = "import { tool, log, ui } from \"holdfast\";\ntool({ name: \"a\", description: \"b\" }, () => { log.info(\"c\"); return ui.confirm(\"d\"); });\n";
    assert_eq!(rewritten(id, Language::JavaScript, "main.js", javascript).unwrap().imports, ["log", "ui"]);
    let c = "#include \"holdfast.h\"\nstatic holdfast_answer f(holdfast_text a) { holdfast_log(HOLDFAST_INFO, a); holdfast_now(); return holdfast_plain(a); }\nHOLDFAST_TOOLS({.name = \"a\", .description = \"b\", .input_schema = \"{}\", .call = f})\n";
    assert_eq!(rewritten(id, Language::C, "main.c", c).unwrap().imports, ["clock", "log"]);
    let rust = "use holdfast_extension::{Failure, clock, secrets, tool};\n/// A.\n#[tool]\nfn a() -> Result<String, Failure> { let _ = clock::now(); secrets::reference(\"k\") }\n";
    assert_eq!(rewritten(id, Language::Rust, "src/lib.rs", rust).unwrap().imports, ["clock", "secrets"]);
}

#[test]
fn a_compile_error_has_the_compilers_message() {
    let wrong = [
        (Language::Rust, "src/lib.rs", "fn f() -> u8 { \"text\" }", "mismatched types"),
        (Language::Python, "main.py", "from holdfast import tool\ndef f(:\n", "SyntaxError"),
        (Language::JavaScript, "main.js", "import { tool } from \"holdfast\";\ntool({ name: ;\n", "main.js"),
        (Language::C, "main.c", "#include \"holdfast.h\"\nint f( { }\n", "main.c:2"),
    ];
    for (language, file, text, words) in wrong {
        let problem = rewritten("mistaken", language, file, text).unwrap_err();
        assert_eq!(problem.code, Code::BuildFailed, "{problem}");
        assert!(problem.what.contains(words), "{language}: {problem}");
    }
}

#[test]
fn folders_that_cannot_be_built_are_reported() {
    let nothing = rewritten("unbuildable", Language::C, "main.c", "int unused;\n").unwrap_err();
    assert!(nothing.what.contains("no tool, no hook"), "{nothing}");
    let libc = "#include \"holdfast.h\"\nint puts(const char *);\nstatic holdfast_answer f(holdfast_text a) { puts(\"\"); return holdfast_plain(a); }\nHOLDFAST_TOOLS({.name = \"a\", .description = \"b\", .input_schema = \"{}\", .call = f})\n";
    let libc = rewritten("unbuildable", Language::C, "main.c", libc).unwrap_err();
    assert!(libc.what.contains("puts"), "{libc}");
    let star = rewritten("unbuildable", Language::Python, "main.py", "from holdfast import *\n").unwrap_err();
    assert!(star.what.contains("a wildcard import"), "{star}");
    let two = rewritten("unbuildable", Language::Python, "main.js", "").unwrap_err();
    assert!(two.what.contains("`main.py` (python), `main.js` (javascript)"), "{two}");
    let folder = tempfile::tempdir().unwrap();
    let bare = build(folder.path(), &mut |_| {}).unwrap_err();
    assert!(bare.what.contains("no manifest.yaml"), "{bare}");
}
