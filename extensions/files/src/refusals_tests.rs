//! What the tools refuse, and the reasons that they give.

use std::fs;
use std::os::unix::fs::symlink;

use holdfast_contract::problem::Code;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};

use crate::FilesOptions;
use crate::files_tests::Fixture;

/// Every tool that takes a path to a file, with its other arguments.
fn on_file(path: &str) -> [(&'static str, Value); 3] {
    [
        ("file_read", json!({ "path": path })),
        ("file_write", json!({ "path": path, "text": "mine", "overwrite": true })),
        ("file_edit", json!({ "path": path, "old": "HOME", "new": "mine" })),
    ]
}

#[test]
fn paths_outside_the_workspace_are_refused() {
    let fixture = Fixture::new();
    let home = fixture.scratch.path().join("home");
    symlink(home.join("config/policy.yaml"), fixture.at("file")).unwrap();
    symlink(&home, fixture.at("folder")).unwrap();
    symlink("folder", fixture.at("chain")).unwrap();
    symlink("../home", fixture.at("relative")).unwrap();
    symlink("/proc/self/root", fixture.at("root")).unwrap();
    let outside = home.join("config/policy.yaml");
    let paths = [
        "../home/config/policy.yaml",
        "x/../../home/config/policy.yaml",
        outside.to_str().unwrap(),
        "file",
        "folder/config/policy.yaml",
        "chain/config/policy.yaml",
        "relative/config/policy.yaml",
        "root/etc/passwd",
        "/etc/passwd",
        "/proc/self/environ",
        "~/.bashrc",
        "~",
        "",
        ".",
        "a\0b",
    ];
    let long = "a/".repeat(3000);
    let name = "n".repeat(300);
    for path in paths.into_iter().chain([long.as_str(), name.as_str()]) {
        for (tool, arguments) in on_file(path) {
            let fault = fixture.call(tool, arguments).unwrap_err();
            assert!(!fault.message.contains("HOME-SECRET"), "{fault}");
            let missing = path.starts_with("x/") && fault.message.contains("no such file");
            assert!(fault.code == Code::PathRefused || missing, "{tool} {path:?}: {fault}");
        }
        for tool in ["file_list", "file_search"] {
            let arguments = match tool {
                "file_list" => json!({ "path": path }),
                _ => json!({ "path": path, "pattern": "HOME" }),
            };
            let answer = fixture.call(tool, arguments);
            assert!(path == "." || answer.is_err(), "{tool} {path:?}: {answer:?}");
        }
    }
    let searched = fixture.call("file_search", json!({ "pattern": "SECRET" })).unwrap();
    assert_eq!(searched["matches"], json!([]), "links are not followed");
    assert_eq!(fs::read_to_string(outside).unwrap(), "HOME-SECRET");
}

#[test]
fn names_that_only_look_like_traversal_are_accepted() {
    let fixture = Fixture::new();
    for path in
        ["%2e%2e/home/config/policy.yaml", "․․/home", "..%c0%af", "\u{ff0e}\u{ff0e}/x", "...", "a/.../b"]
    {
        assert!(fixture.fails("file_read", json!({ "path": path })).contains("no such file"), "{path}");
        fixture.call("file_write", json!({ "path": path, "text": "x" })).unwrap();
        assert!(fixture.at(path).is_file(), "{path} is in the workspace");
    }
}

#[test]
fn devices_pipes_sockets_and_hard_links_are_refused() {
    let fixture = Fixture::new();
    mknodat(CWD, fixture.at("pipe"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(fixture.at("socket")).unwrap();
    fs::create_dir(fixture.at("folder")).unwrap();
    fixture.put("one", "HOME");
    fs::hard_link(fixture.at("one"), fixture.at("two")).unwrap();
    fs::hard_link(fixture.scratch.path().join("home/config/policy.yaml"), fixture.at("linked")).unwrap();
    fixture.put(".env", "HOME-KEY=1");
    fixture.put("sub/.env.production", "HOME-KEY=1");
    symlink(".env", fixture.at("notes.txt")).unwrap();
    symlink("nowhere", fixture.at("dangling")).unwrap();
    for (path, reason) in [
        ("pipe", "a pipe"),
        ("socket", "a socket"),
        ("folder", "a folder"),
        ("two", "a second name"),
        ("linked", "a second name"),
        (".env", "secrets"),
        ("sub/.env.production", "secrets"),
        ("notes.txt", "secrets"),
    ] {
        for (tool, arguments) in on_file(path) {
            let message = fixture.fails(tool, arguments);
            assert!(message.contains(reason), "{tool} {path}: {message}");
        }
    }
    let dangling = json!({ "path": "dangling", "text": "", "overwrite": true });
    assert!(fixture.fails("file_write", dangling).contains("not there"));
    assert!(fixture.fails("file_read", json!({ "path": "one/" })).contains("not a folder"));
    assert!(fixture.fails("file_write", json!({ "path": "new/", "text": "" })).contains("names a folder"));
    assert!(fixture.fails("file_write", json!({ "path": "a/../b", "text": "" })).contains("no `..`"));
    let searched = fixture.call("file_search", json!({ "pattern": "HOME" })).unwrap();
    assert_eq!(searched["matches"], json!([]));
    fixture.put(".env.example", "KEY=");
    fixture.call("file_read", json!({ "path": ".env.example" })).unwrap();
}

#[test]
fn the_owner_may_allow_more_but_never_the_home() {
    let fixture = Fixture::with(FilesOptions { hard_links: true, env_files: true });
    fixture.put("one", "text");
    fixture.put(".env", "KEY=1");
    fs::hard_link(fixture.at("one"), fixture.at("two")).unwrap();
    fs::hard_link(fixture.scratch.path().join("home/config/policy.yaml"), fixture.at("linked")).unwrap();
    fixture.call("file_read", json!({ "path": "two" })).unwrap();
    fixture.call("file_read", json!({ "path": ".env" })).unwrap();
    for (tool, arguments) in on_file("linked") {
        assert!(fixture.fails(tool, arguments).contains("a file of the home folder"));
    }
}

// Finding M10.
#[test]
fn a_link_does_not_lead_around_the_question_about_protected_files() {
    let fixture = Fixture::new();
    fs::create_dir_all(fixture.at(".git/hooks")).unwrap();
    fs::write(fixture.at(".git/config"), "HOME").unwrap();
    symlink(".git", fixture.at("git")).unwrap();
    symlink(".git/config", fixture.at("settings")).unwrap();
    for path in ["git/config", "git/hooks/post-commit", "git/new/file", "settings", ".GIT/new/config"] {
        for (tool, arguments) in on_file(path).into_iter().skip(1) {
            let answer = fixture.call(tool, arguments);
            assert!(answer.is_err(), "{tool} {path:?}");
        }
    }
    assert_eq!(fs::read_to_string(fixture.at(".git/config")).unwrap(), "HOME");
    assert_eq!(fs::read_dir(fixture.at(".git/hooks")).unwrap().count(), 0);
    assert!(!fixture.at(".git/new").exists() && !fixture.at(".GIT").exists(), "a refusal makes no folder");
    // By its own path it was asked about.
    let own = json!({ "path": ".git/config", "text": "mine", "overwrite": true });
    fixture.call("file_write", own).unwrap();
}

// Finding M10: git reads the configuration of a folder that has three entries, whatever it is called.
#[test]
fn no_file_makes_a_bare_repository_or_changes_one() {
    let orders = [
        ["d/HEAD", "d/objects/x", "d/refs/x"],
        ["d/objects/x", "d/refs/x", "d/HEAD"],
        ["d/refs/x", "d/HEAD", "d/objects/x"],
        ["HEAD", "refs/x", "objects/x"],
    ];
    for order in orders {
        let fixture = Fixture::new();
        let write = |path: &str| fixture.call("file_write", json!({ "path": path, "text": "x" }));
        write("d/config").unwrap();
        let done = order.map(|path| write(path).is_ok());
        assert_eq!(done, [true, true, false], "{order:?}");
        assert!(!fixture.at(order[2]).exists(), "{order:?}");
        write("other/HEAD").unwrap();
    }
    let fixture = Fixture::new();
    for folder in ["d/objects", "d/refs"] {
        fs::create_dir_all(fixture.at(folder)).unwrap();
    }
    fs::write(fixture.at("d/HEAD"), "ref: refs/heads/main\n").unwrap();
    fs::write(fixture.at("d/config"), "HOME").unwrap();
    for path in ["d/config", "d/HEAD", "d/commondir", "d/hooks/post-commit"] {
        for (tool, arguments) in on_file(path).into_iter().skip(1) {
            assert!(fixture.call(tool, arguments).is_err(), "{tool} {path}");
        }
    }
    assert_eq!(fs::read_to_string(fixture.at("d/config")).unwrap(), "HOME");
}
