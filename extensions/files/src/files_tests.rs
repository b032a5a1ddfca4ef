//! The tools on ordinary files.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::Arc;

use holdfast_contract::manifest::{LaneKind, lane, parse};
use holdfast_contract::message::TurnContext;
use holdfast_contract::problem::Fault;
use holdfast_lane_native::Workspace;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::tool::{FileTool, Trees};
use crate::tree::Tree;
use crate::{FilesOptions, edit, list, read, search, write};

/// A workspace with a home beside it.
pub(crate) struct Fixture {
    pub(crate) scratch: tempfile::TempDir,
    pub(crate) trees: Arc<Trees>,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        Self::with(FilesOptions::default())
    }

    pub(crate) fn with(options: FilesOptions) -> Self {
        let scratch = tempfile::tempdir().unwrap();
        for folder in ["work", "home/config"] {
            fs::create_dir_all(scratch.path().join(folder)).unwrap();
        }
        fs::write(scratch.path().join("home/config/policy.yaml"), "HOME-SECRET").unwrap();
        let workspace = Workspace::new(scratch.path().join("work"), scratch.path().join("home")).unwrap();
        Self { trees: Arc::new(Trees { workspaces: workspace.into(), options }), scratch }
    }

    pub(crate) fn at(&self, path: &str) -> std::path::PathBuf {
        self.scratch.path().join("work").join(path)
    }

    pub(crate) fn put(&self, path: &str, text: impl AsRef<[u8]>) {
        fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
        fs::write(self.at(path), text).unwrap();
    }

    pub(crate) fn call(&self, tool: &str, arguments: Value) -> Result<Value, Fault> {
        fn run<A: DeserializeOwned>(tool: FileTool<A>, arguments: Value) -> Result<Value, Fault> {
            let workspace = tool.trees.workspaces.of(&TurnContext::default())?;
            let tree = Tree::new(workspace, tool.trees.options);
            (tool.work)(&tree, serde_json::from_value(arguments).unwrap())
        }
        let trees = self.trees.clone();
        match tool {
            "file_read" => run(read::tool(trees), arguments),
            "file_write" => run(write::tool(trees), arguments),
            "file_edit" => run(edit::tool(trees), arguments),
            "file_list" => run(list::tool(trees), arguments),
            "file_search" => run(search::tool(trees), arguments),
            other => panic!("no tool {other}"),
        }
    }

    pub(crate) fn fails(&self, tool: &str, arguments: Value) -> String {
        self.call(tool, arguments).unwrap_err().message
    }
}

#[test]
fn the_manifest_is_valid_and_matches_the_code() {
    let file = Path::new("manifest.yaml");
    let parsed = parse(file, include_str!("../manifest.yaml")).unwrap();
    assert!(parsed.warnings.is_empty(), "{:?}", parsed.warnings);
    assert_eq!(lane(&parsed.manifest, &[]).unwrap(), LaneKind::Native);
    let fixture = Fixture::new();
    let specs = [
        read::tool(fixture.trees.clone()).spec,
        write::tool(fixture.trees.clone()).spec,
        edit::tool(fixture.trees.clone()).spec,
        list::tool(fixture.trees.clone()).spec,
        search::tool(fixture.trees.clone()).spec,
    ];
    assert_eq!(parsed.manifest.tools.len(), specs.len());
    for spec in specs {
        assert_eq!(parsed.manifest.tools[&spec.name].effects, Some(spec.effects), "{}", spec.name);
    }
}

#[test]
fn reading_returns_lines_and_reports_truncation() {
    let fixture = Fixture::new();
    fixture.put("a/numbers.txt", (1..=10).map(|n| format!("line {n}\n")).collect::<String>());
    let all = fixture.call("file_read", json!({ "path": "a/numbers.txt" })).unwrap();
    assert_eq!((all["first_line"].clone(), all["last_line"].clone()), (json!(1), json!(10)));
    assert_eq!(all["truncated"], false);
    assert!(all.get("note").is_none());

    let absolute = fixture.at("a/numbers.txt");
    let arguments = json!({ "path": absolute.canonicalize().unwrap(), "offset": 3, "limit": 2 });
    let some = fixture.call("file_read", arguments).unwrap();
    assert_eq!(some["text"], "line 3\nline 4\n");
    assert_eq!(some["note"], "truncated: the file goes on; read from offset 5");

    let past = fixture.call("file_read", json!({ "path": "a/numbers.txt", "offset": 99 })).unwrap();
    assert_eq!(
        (past["text"].clone(), past["note"].clone()),
        (json!(""), json!("the file ends before line 99"))
    );

    fixture.put("empty", "");
    assert_eq!(fixture.call("file_read", json!({ "path": "empty" })).unwrap()["text"], "");
    fixture.put("wide", "x".repeat(400_000));
    let wide = fixture.call("file_read", json!({ "path": "wide" })).unwrap();
    assert_eq!(wide["text"].as_str().unwrap().len(), 256 * 1024);
    assert!(wide["note"].as_str().unwrap().contains("only begins here"));
    fixture.put("many", "0123456789\n".repeat(100_000));
    let many = fixture.call("file_read", json!({ "path": "many", "offset": 5 })).unwrap();
    assert_eq!(many["last_line"], 2004);
    fixture.put("binary", b"ELF\0\x01\x02");
    assert!(fixture.fails("file_read", json!({ "path": "binary" })).contains("binary file of 6 bytes"));
    assert!(fixture.fails("file_read", json!({ "path": "none" })).contains("no such file"));
}

#[test]
fn writing_is_atomic_and_overwrites_only_on_request() {
    let fixture = Fixture::new();
    let made = fixture.call("file_write", json!({ "path": "deep/er/a.txt", "text": "one" })).unwrap();
    assert_eq!(made, json!({ "path": "deep/er/a.txt", "bytes": 3, "created": true }));
    assert!(
        fixture.fails("file_write", json!({ "path": "deep/er/a.txt", "text": "two" })).contains("overwrite")
    );
    assert_eq!(fs::read_to_string(fixture.at("deep/er/a.txt")).unwrap(), "one");

    fs::set_permissions(fixture.at("deep/er/a.txt"), fs::Permissions::from_mode(0o750)).unwrap();
    let arguments = json!({ "path": "deep/er/a.txt", "text": "two", "overwrite": true });
    assert_eq!(fixture.call("file_write", arguments).unwrap()["created"], false);
    assert_eq!(fs::read_to_string(fixture.at("deep/er/a.txt")).unwrap(), "two");
    let mode = fs::metadata(fixture.at("deep/er/a.txt")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o750, "a file keeps its mode");
    let names: Vec<_> =
        fs::read_dir(fixture.at("deep/er")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["a.txt"], "nothing is left over");
}

#[test]
fn a_link_that_stays_inside_is_followed() {
    let fixture = Fixture::new();
    fixture.put("real/a.txt", "one");
    symlink("real", fixture.at("folder")).unwrap();
    symlink("real/a.txt", fixture.at("file")).unwrap();
    assert_eq!(fixture.call("file_read", json!({ "path": "folder/a.txt" })).unwrap()["text"], "one");
    let arguments = json!({ "path": "file", "text": "two", "overwrite": true });
    fixture.call("file_write", arguments).unwrap();
    assert_eq!(fs::read_to_string(fixture.at("real/a.txt")).unwrap(), "two");
    assert!(fs::symlink_metadata(fixture.at("file")).unwrap().is_symlink(), "the link is still one");
}

#[test]
fn an_ambiguous_edit_is_refused() {
    let fixture = Fixture::new();
    fixture.put("main.rs", "fn main() {\n    let count = 1;\n    let other = 1;\n}\n");
    let edit = |old: &str, new: &str, all: bool| {
        fixture.call("file_edit", json!({ "path": "main.rs", "old": old, "new": new, "replace_all": all }))
    };
    assert_eq!(
        edit("count = 1", "count = 2", false).unwrap(),
        json!({ "path": "main.rs", "replaced": 1, "line": 2 })
    );
    let twice = edit("let ", "let mut ", false).unwrap_err().message;
    assert!(twice.contains("2 times (lines 2, 3)"), "{twice}");
    assert_eq!(edit("let ", "let mut ", true).unwrap()["replaced"], 2);
    let missed = edit("  let mut cuont = 2;", "", false).unwrap_err().message;
    assert!(missed.contains("the nearest line is 2: \"    let mut count = 2;\""), "{missed}");
    assert!(edit("", "x", false).unwrap_err().message.contains("empty"));
    assert!(edit("x", "x", false).unwrap_err().message.contains("the same"));
    fixture.put("latin1", b"caf\xe9");
    assert!(
        fixture.fails("file_edit", json!({ "path": "latin1", "old": "caf", "new": "" })).contains("as text")
    );
}

#[test]
fn listing_and_searching_are_sorted_and_limited() {
    let fixture = Fixture::new();
    for (path, text) in [
        ("b.rs", "fn b() {}\n"),
        ("src/a.rs", "fn a() {}\nfn A() {}\n"),
        ("src/deep/c.txt", "fn c\n"),
        (".git/x", "fn g"),
    ] {
        fixture.put(path, text);
    }
    symlink("/etc", fixture.at("link")).unwrap();
    fixture.put("data.bin", b"fn \0");
    let paths = |value: &Value, field: &str| -> Vec<String> {
        value[field].as_array().unwrap().iter().map(|it| it["path"].as_str().unwrap().to_owned()).collect()
    };
    let flat = fixture.call("file_list", json!({})).unwrap();
    assert_eq!(paths(&flat, "entries"), [".git", "b.rs", "data.bin", "link", "src"]);
    assert_eq!(flat["entries"][1], json!({ "path": "b.rs", "kind": "file", "bytes": 10 }));
    assert_eq!(flat["entries"][3]["kind"], "link");
    let rust = fixture.call("file_list", json!({ "glob": "*.rs", "recursive": true })).unwrap();
    assert_eq!(paths(&rust, "entries"), ["b.rs", "src/a.rs"]);
    let below =
        fixture.call("file_list", json!({ "path": "src", "glob": "deep/*", "recursive": true })).unwrap();
    assert_eq!(paths(&below, "entries"), ["src/deep/c.txt"]);
    let cut = fixture.call("file_list", json!({ "recursive": true, "limit": 2 })).unwrap();
    assert_eq!((cut["entries"].as_array().unwrap().len(), cut["truncated"].clone()), (2, json!(true)));

    let found = fixture.call("file_search", json!({ "pattern": "^fn [a-c]" })).unwrap();
    assert_eq!(paths(&found, "matches"), ["b.rs", "src/a.rs", "src/deep/c.txt"]);
    assert_eq!(found["skipped"], 1, "the binary file");
    let either = fixture
        .call("file_search", json!({ "pattern": "fn a", "ignore_case": true, "path": "src" }))
        .unwrap();
    assert_eq!(either["matches"][1], json!({ "path": "src/a.rs", "line": 2, "text": "fn A() {}" }));
    let one = fixture.call("file_search", json!({ "pattern": "fn", "limit": 1 })).unwrap();
    assert_eq!((one["matches"].as_array().unwrap().len(), one["truncated"].clone()), (1, json!(true)));
    assert!(fixture.fails("file_search", json!({ "pattern": "(" })).contains("pattern cannot be used"));
    assert!(fixture.fails("file_search", json!({ "pattern": "((a{200}){200}){200}" })).contains("pattern"));
    assert!(fixture.fails("file_list", json!({ "glob": "[" })).contains("invalid glob"));
}
