//! Ways out by the file tools.

use serde_json::json;

use super::world::{Case, Expected};

/// Paths that lead out, or to something that is not a file of the workspace.
const PATHS: &[(&str, &str)] = &[
    ("up", "../outside/secret.txt"),
    ("up from a folder", "sub/../../outside/secret.txt"),
    ("up many times", "../../../../../../../../../../etc/passwd"),
    ("absolute", "{outside}/secret.txt"),
    ("absolute through the workspace", "{work}/../outside/secret.txt"),
    ("absolute with two slashes", "/{outside}/secret.txt"),
    ("a link to a file", "to-file"),
    ("a link to a folder", "to-folder/secret.txt"),
    ("a relative link", "relative/secret.txt"),
    ("a link in a folder", "sub/deeper/secret.txt"),
    ("a chain of links", "chain-1/secret.txt"),
    ("links in a circle", "loop-1/secret.txt"),
    ("a link to the root", "to-root/etc/passwd"),
    ("a link into proc", "to-proc/etc/passwd"),
    ("the environment", "/proc/self/environ"),
    ("the environment by a link", "to-environ"),
    ("the parent's root", "/proc/{pid}/root/etc/passwd"),
    ("an open file", "/proc/self/fd/7"),
    ("an open file by dev", "/dev/fd/7"),
    ("the home's secrets", "{home}/.env"),
    ("the home's secrets by a link", "to-home/.env"),
    ("the policy", "to-home/config/policy.yaml"),
    ("the log", "to-home/holdfast.db"),
    ("another extension's data", "to-home/data/kv/kv.db"),
    ("the control socket", "to-home/control.sock"),
    ("a tilde", "~/notes.txt"),
    ("a tilde with a name", "~root/notes.txt"),
    ("percent signs", "%2e%2e/outside/secret.txt"),
    ("percent slashes", "..%2foutside%2fsecret.txt"),
    ("backslashes", "..\\outside\\secret.txt"),
    ("dots of another script", "\u{2024}\u{2024}/outside/secret.txt"),
    ("wide dots", "\u{ff0e}\u{ff0e}/outside/secret.txt"),
    ("a slash of another script", "..\u{2215}outside\u{2215}secret.txt"),
    ("a name with NUL", "a.txt\0/../../outside/secret.txt"),
    ("an empty path", ""),
    ("a file as a folder", "a.txt/../../outside/secret.txt"),
    ("a slash at the end", "a.txt/"),
    ("a pipe", "pipe"),
    ("a device", "/dev/null"),
    ("a device by a link", "to-null"),
    ("a folder", "sub"),
    ("the workspace's secrets", ".env"),
    ("the workspace's secrets by a link", "innocent.txt"),
    ("a file that is gone", "proc/self/environ"),
];

/// Of these, paths that do not lead out when something new is written there: they are names in the workspace.
const NEW_NAMES: &[&str] = &[
    "a tilde with a name",
    "percent signs",
    "percent slashes",
    "backslashes",
    "dots of another script",
    "wide dots",
    "a slash of another script",
    "a file that is gone",
];

pub fn all() -> Vec<Case> {
    use Expected::{Closed, Works};

    let mut cases = Vec::new();
    let long_path = "sub/".repeat(3000);
    let long_name = "n".repeat(5000);
    let paths = PATHS.iter().map(|(name, path)| (*name, *path));
    for (name, path) in
        paths.chain([("a long path", long_path.as_str()), ("a long name", long_name.as_str())])
    {
        cases.push(Case::file(name, "file_read", json!({ "path": path }), Closed));
        let edit = json!({ "path": path, "old": "value", "new": "mine" });
        cases.push(Case::file(name, "file_edit", edit, Closed));
        if !NEW_NAMES.contains(&name) {
            let write = json!({ "path": path, "text": "mine", "overwrite": true });
            cases.push(Case::file(name, "file_write", write, Closed));
        }
    }
    for (name, path) in [
        ("up", ".."),
        ("absolute", "{outside}"),
        ("a link", "to-folder"),
        ("a chain", "chain-1"),
        ("the home", "to-home"),
        ("the root", "to-root"),
        ("proc", "/proc/self"),
        ("open files", "/dev/fd"),
    ] {
        cases.push(Case::file(name, "file_list", json!({ "path": path, "recursive": true }), Closed));
        cases.push(Case::file(name, "file_search", json!({ "path": path, "pattern": "." }), Closed));
    }
    for (name, path) in [("a hard link", "hard"), ("a hard link in a folder", "sub/hard.yaml")] {
        cases.push(Case::file(name, "file_read", json!({ "path": path }), Closed).with_hard_links());
        let write = json!({ "path": path, "text": "mine", "overwrite": true });
        cases.push(Case::file(name, "file_write", write, Closed).with_hard_links());
        let edit = json!({ "path": path, "old": "value", "new": "mine" });
        cases.push(Case::file(name, "file_edit", edit, Closed).with_hard_links());
    }
    let through_link = json!({ "path": "new-outside", "text": "mine" });
    cases.push(Case::file("a link to a new file outside", "file_write", through_link, Closed));
    let new_folder = json!({ "path": "to-folder/new/deep.txt", "text": "mine" });
    cases.push(Case::file("a new folder outside", "file_write", new_folder, Closed));

    let plain = |name: &str, tool, arguments, expected| Case::file(name, tool, arguments, Works(expected));
    cases.extend([
        plain("ordinary", "file_read", json!({ "path": "a.txt" }), "an ordinary file"),
        plain(
            "absolute in the workspace",
            "file_read",
            json!({ "path": "{work}/a.txt" }),
            "an ordinary file",
        ),
        plain("up and down inside", "file_read", json!({ "path": "sub/../a.txt" }), "an ordinary file"),
        plain("ordinary", "file_write", json!({ "path": "n/e/w.txt", "text": "x" }), "\"created\":true"),
        plain(
            "ordinary",
            "file_edit",
            json!({ "path": "a.txt", "old": "an", "new": "one" }),
            "\"replaced\":1",
        ),
        plain("ordinary", "file_list", json!({}), "a.txt"),
        plain("everything", "file_search", json!({ "pattern": "ordinary|KEEP" }), "\"line\":1"),
        plain("ordinary", "kv_set", json!({ "key": "a", "value": 1 }), "\"key\":\"a\""),
        plain("ordinary", "kv_get", json!({ "glob": "*" }), "\"entries\""),
    ]);
    cases
}
