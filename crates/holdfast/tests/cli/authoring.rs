//! `holdfast ext new` and `holdfast ext build` as an author runs them. C is the language here, because it builds in no time; the other
//! languages are built in `authoring/tests/`.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use holdfast_testkit::terminal::TestTerminal;
use serde_json::Value;

fn holdfast(home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_holdfast"));
    command.arg("--home").arg(home).args(arguments).env_remove("HOLDFAST_HOME");
    command
}

fn ran(home: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    parts(holdfast(home, arguments).output().unwrap())
}

fn parts(output: Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn an_extension_is_begun_and_built_by_its_id() {
    let home = tempfile::tempdir().unwrap();
    let (code, out, err) = ran(home.path(), &["ext", "new", "words", "--lang", "c"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(
        out.ends_with(
            "  manifest.yaml\n  main.c\n  tests.yaml\n  .gitignore\nnext: holdfast ext build words\n"
        ),
        "{out}"
    );
    let folder = home.path().join("extensions/words");
    assert!(fs::read_to_string(folder.join("manifest.yaml")).unwrap().contains("id: words\n"));

    let (code, out, err) = ran(home.path(), &["ext", "build", "words"]);
    assert_eq!(code, Some(0), "run ./scripts/setup guests: {err}");
    assert_eq!(err, "compiling with zig cc\nmaking the component\nchecking the component\n");
    assert!(out.contains("words.wasm\n") && out.contains("exports tools; imports nothing"), "{out}");
    assert!(fs::read(folder.join("words.wasm")).unwrap().starts_with(b"\0asm\x0d\0\x01\0"));

    let (code, out, err) = ran(home.path(), &["ext", "build", "words", "--json"]);
    let built: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert_eq!((&built["id"], &built["language"]), (&"words".into(), &"c".into()));
    assert_eq!(built["exports"], serde_json::json!(["tools"]));
    assert_eq!(built["bytes"], fs::metadata(folder.join("words.wasm")).unwrap().len());
}

#[test]
fn a_folder_elsewhere_is_begun_and_built_from_inside() {
    let folder = tempfile::tempdir().unwrap();
    let there = folder.path().join("gate");
    let path = there.to_str().unwrap();
    let arguments = ["ext", "new", "gate", "--lang", "c", "--role", "gate", "--path", path, "--json"];
    let (code, out, err) = ran(folder.path(), &arguments);
    assert_eq!(code, Some(0), "{err}");
    let made: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(made["files"][1], "main.c");
    let (code, out, err) =
        parts(holdfast(folder.path(), &["ext", "build", "--quiet"]).current_dir(&there).output().unwrap());
    assert_eq!((code, err.as_str()), (Some(0), ""), "run ./scripts/setup guests");
    assert_eq!(Path::new(out.trim()).file_name().unwrap(), "gate.wasm");
}

/// `ext dev` of a single file: it is checked and tested now, and whenever it changes.
#[test]
fn an_extension_is_checked_and_tested_on_each_change() {
    let home = tempfile::tempdir().unwrap();
    assert_eq!(ran(home.path(), &["init"]).0, Some(0));
    let tools = home.path().join("extensions/tools");
    let write = |file: &str, text: &str| fs::write(tools.join(file), text).unwrap();
    fs::create_dir_all(&tools).unwrap();
    let code =
        |answer: &str| format!("__effects__ = 'pure'\n\ndef run(text: str) -> int:\n    return {answer}\n");
    write("letters.py", &code("len(text)"));
    write("letters.tests.yaml", "- tool: letters\n  arguments: { text: hello }\n  result: 5\n");
    const WAITS: &str = "waiting for a change; Ctrl-C ends";
    let mut dev = TestTerminal::start(holdfast(home.path(), &["ext", "dev", "letters"]), 100);
    let first = dev.until(WAITS);
    assert!(first.contains("letters (pure)") && first.contains("1 passed, 0 failed"), "{first}");
    write("letters.py", "def run(text: str -> int:\n");
    let broken = dev.until(WAITS);
    assert!(broken.contains("letters.py, line 1"), "{broken}");
    write("letters.py", &code("len(text) + 1"));
    let wrong = dev.until(WAITS);
    assert!(wrong.contains("0 passed, 1 failed"), "{wrong}");
    write("letters.py", &code("len(text) + 0"));
    let right = dev.until(WAITS);
    assert!(right.contains("1 passed, 0 failed"), "{right}");
    dev.types("\u{3}");
    dev.ends_with(130);
}

#[test]
fn what_is_wrong_is_said_with_what_to_do() {
    let home = tempfile::tempdir().unwrap();
    let fails = |arguments: &[&str], exit: i32, words: &[&str]| {
        let (code, _, err) = ran(home.path(), arguments);
        assert_eq!(code, Some(exit), "{arguments:?}: {err}");
        words.iter().for_each(|words| assert!(err.contains(words), "{words:?} is not in {err}"));
    };
    fails(&["ext", "new", "Words"], 2, &["id"]);
    fails(&["ext", "new", "words", "--lang", "cobol"], 2, &["HF-9001", "rust, python, javascript or c"]);
    fails(&["ext", "build", "nowhere"], 1, &["HF-4005", "holdfast ext new"]);
    assert_eq!(ran(home.path(), &["ext", "new", "words", "--lang", "python"]).0, Some(0));
    fails(&["ext", "new", "words"], 2, &["HF-9001", "exists and is not empty"]);
    let mut without = holdfast(home.path(), &["ext", "build", "words"]);
    let (code, _, err) =
        parts(without.env("PATH", "").env_remove("HOLDFAST_COMPONENTIZE_PY").output().unwrap());
    assert_eq!(code, Some(1), "{err}");
    assert!(err.contains("HF-4202") && err.contains("pip install componentize-py=="), "{err}");
    let file = home.path().join("extensions/words/words.wasm");
    assert!(!file.exists(), "nothing is written where nothing was built");
    // A name that the SDK does not have, found without a compiler.
    assert_eq!(ran(home.path(), &["ext", "new", "letters", "--lang", "javascript"]).0, Some(0));
    let main = home.path().join("extensions/letters/main.js");
    let code = fs::read_to_string(&main).unwrap();
    fs::write(&main, code.replacen("import { ", "import { toool, ", 1)).unwrap();
    fails(
        &["ext", "build", "letters"],
        1,
        &["HF-4201", "there is no name in the SDK `toool`", "Did you mean `tool`?", "main.js"],
    );
}
