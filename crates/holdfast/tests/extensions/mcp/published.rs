//! Servers as their authors publish them, installed by `scripts/setup` and confined: started, listed and called, alone and in a turn.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use super::home_with;
use crate::shared::{Scene, bodies, read_request};

/// Where `scripts/setup` has installed the servers.
pub(super) fn installed(kind: &str) -> PathBuf {
    let tools = std::env::var_os("HOLDFAST_TOOLS").expect("HOLDFAST_TOOLS, which `scripts/tools.sh` sets");
    let folder = PathBuf::from(tools).join("mcp").join(kind);
    assert!(folder.is_dir(), "{} is not there: `./scripts/setup mcp-servers` installs it", folder.display());
    folder
}

fn node(package: &str, arguments: &[&str]) -> Value {
    let folder = installed("node");
    let script = folder.join("node_modules/@modelcontextprotocol").join(package).join("dist/index.js");
    let mut args = vec![script.display().to_string()];
    args.extend(arguments.iter().map(|it| (*it).to_owned()));
    json!({ "command": "node", "args": args, "files": [folder] })
}

/// The interpreter that the packages were installed for, and what it needs to read.
fn python(module: &str, arguments: &[&str]) -> Value {
    let print = "import sys; print(sys.executable); print(sys.base_prefix)";
    let about = Command::new("python3").args(["-c", print]).output().unwrap().stdout;
    let about = String::from_utf8(about).unwrap();
    let (executable, prefix) = about.trim().split_once('\n').unwrap();
    let folder = installed("python");
    let args: Vec<&str> = ["-m", module].into_iter().chain(arguments.iter().copied()).collect();
    let environment = json!({ "PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1" });
    json!({ "command": executable, "args": args, "env": environment, "files": [folder, prefix], "start_timeout_ms": 120_000 })
}

#[track_caller]
fn calls(scene: &Scene, tool: &str, arguments: &Value, expected: &str) {
    let told = scene.run(&["call", tool, &arguments.to_string(), "--json"]).ok().json();
    assert!(told["result"].to_string().contains(expected), "{tool}: {told}");
    // The same in a turn of a scripted model, and again from the log alone.
    let steps = json!([{ "calls": [{ "tool": tool, "arguments": arguments }] }, { "says": "done" }]);
    let session = format!("turn-{tool}");
    scene.turn(&session, &steps).ok();
    let frames = scene.frames(&session);
    let returned = bodies(&frames, "tool.returned");
    assert!(returned[0].to_string().contains(expected), "{tool}: {frames:#?}");
    scene.run(&["replay", &session]).ok();
}

#[test]
fn server_everything_is_listed_and_called() {
    let scene = home_with(&json!({ "everything": node("server-everything", &[]) }));
    calls(&scene, "everything__echo", &json!({ "message": "hello" }), "hello");
    calls(&scene, "everything__get-sum", &json!({ "a": 2, "b": 40 }), "42");
    calls(&scene, "everything__list_resources", &json!({}), "resources");
}

#[test]
fn server_filesystem_works_on_what_it_was_given() {
    let scene = home_with(&json!({}));
    let folder = scene.work();
    fs::write(folder.join("note.txt"), "a note").unwrap();
    let mut server = node("server-filesystem", &[&folder.display().to_string()]);
    server["files"].as_array_mut().unwrap().push(json!({ "path": folder, "access": "write" }));
    scene.settings(
        &json!({ "models": { "default": "offline" }, "mcp": { "servers": { "filesystem": server } } })
            .to_string(),
    );
    calls(&scene, "filesystem__read_text_file", &json!({ "path": folder.join("note.txt") }), "a note");
    let outside =
        scene.run(&["call", "filesystem__read_text_file", r#"{"path": "/etc/passwd"}"#, "--json"]).json();
    assert!(outside["error"].is_object(), "{outside}");
}

#[test]
fn server_memory_keeps_what_it_is_told() {
    let scene = home_with(&json!({ "memory": node("server-memory", &[]) }));
    scene.settings(
        &json!({ "models": { "default": "offline" }, "mcp": { "servers": { "memory": {
        "env": { "MEMORY_FILE_PATH": scene.home().join("data/mcp-memory/memory.json") },
        "command": node("server-memory", &[])["command"], "args": node("server-memory", &[])["args"],
        "files": node("server-memory", &[])["files"],
    } } } })
        .to_string(),
    );
    let entity =
        json!({ "entities": [{ "name": "Ada", "entityType": "person", "observations": ["likes numbers"] }] });
    calls(&scene, "memory__create_entities", &entity, "");
    calls(&scene, "memory__search_nodes", &json!({ "query": "Ada" }), "likes numbers");
}

#[test]
fn mcp_server_time_tells_the_time() {
    let scene = home_with(&json!({ "time": python("mcp_server_time", &["--local-timezone", "UTC"]) }));
    calls(&scene, "time__get_current_time", &json!({ "timezone": "UTC" }), "UTC");
}

#[test]
fn mcp_server_git_reads_a_repository() {
    let scene = home_with(&json!({}));
    let folder = scene.work();
    for arguments in [
        vec!["init", "-q", "-b", "main"],
        vec![
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@example.com",
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            "the first one",
        ],
    ] {
        assert!(Command::new("git").args(arguments).current_dir(&folder).status().unwrap().success());
    }
    let path = folder.display().to_string();
    let mut server = python("mcp_server_git", &["--repository", &path]);
    server["files"].as_array_mut().unwrap().push(json!({ "path": folder, "access": "write" }));
    server["env"]["GIT_CONFIG_COUNT"] = json!("1");
    server["env"]["GIT_CONFIG_KEY_0"] = json!("safe.directory");
    server["env"]["GIT_CONFIG_VALUE_0"] = json!("*");
    scene.settings(
        &json!({ "models": { "default": "offline" }, "mcp": { "servers": { "git": server } } }).to_string(),
    );
    calls(&scene, "git__git_log", &json!({ "repo_path": path }), "the first one");
}

#[test]
fn mcp_server_fetch_reaches_the_host_that_it_was_granted() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            read_request(&stream);
            let page = "<html><body><p>Sunny today.</p></body></html>";
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                page.len()
            );
            drop(std::io::Write::write_all(&mut stream, (head + page).as_bytes()));
        }
    });
    // Raw, because it would install a package with npm to make pages readable, which it was not granted.
    let mut server = python("mcp_server_fetch", &["--ignore-robots-txt", "--allow-private-ips"]);
    server["network"] = json!([format!("127.0.0.1:{port}")]);
    let scene = home_with(&json!({ "fetch": server }));
    calls(
        &scene,
        "fetch__fetch",
        &json!({ "url": format!("http://127.0.0.1:{port}/"), "raw": true }),
        "Sunny today",
    );
    let refused = scene.run(&["call", "fetch__fetch", r#"{"url": "http://example.com/"}"#, "--json"]).json();
    assert!(refused["error"].is_object() || refused["result"].to_string().contains("Failed"), "{refused}");
}
