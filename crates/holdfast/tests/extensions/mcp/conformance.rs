//! The client scenarios of `@modelcontextprotocol/conformance`: its servers judge what the program sends.
//!
//! Left out: the scenarios below `auth/`, because OAuth is not available in this version.

use std::process::Command;

use super::published::installed;
use crate::shared::Scene;

/// A program that adds the server at its last argument to the settings of a home, and calls a tool of it.
const DRIVER: &str = r#"#!/bin/sh
url=$(eval echo "\${$#}")
cat >"$2/config/settings.yaml" <<END
models: { default: offline }
mcp: { servers: { it: { url: "$url" } } }
END
"$1" --home "$2" mcp test it || exit 1
[ -z "$3" ] || "$1" --home "$2" call "it__$3" "$4"
"#;

/// Runs a scenario, and gives what the suite says about it.
fn scenario(name: &str, tool: &str, arguments: &str) -> String {
    let scene = Scene::new();
    scene.policy("profile: full-auto\n");
    let driver = scene.root().join("driver.sh");
    std::fs::write(&driver, DRIVER).unwrap();
    let program = env!("CARGO_BIN_EXE_holdfast");
    let (driver, home) = (driver.display(), scene.home().display().to_string());
    let command = format!("sh {driver} {program} {home} '{tool}' '{arguments}'");
    let suite = installed("conformance").join("node_modules/@modelcontextprotocol/conformance/dist/index.js");
    let ran = Command::new("node")
        .arg(suite)
        .args(["client", "--command", &command, "--scenario", name, "--timeout", "120000"])
        .current_dir(scene.root())
        .output()
        .unwrap();
    let said = [ran.stdout, ran.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(ran.status.success(), "{name}: {said}");
    said
}

#[test]
fn the_handshake_conforms() {
    scenario("initialize", "", "");
}

#[test]
fn calling_a_tool_conforms() {
    scenario("tools_call", "add_numbers", r#"{"a": 5, "b": 3}"#);
}

#[test]
fn reconnecting_a_stream_conforms() {
    scenario("sse-retry", "test_reconnection", "{}");
}
