//! The figures of a tool of an MCP server: calls through the whole pipeline, and beside each of them a bare call to the same server.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use holdfast_contract::content::Content;
use holdfast_contract::digest::{Digest, canonical};
use holdfast_contract::problem::{Code, Problem};
use holdfast_contract::system_frames::FoundExtension;
use holdfast_contract::wire::Bundle;
use holdfast_lane_mcp::{McpLane, McpPlaces};
use holdfast_loader::HomeVault;
use serde_json::{Value, json};

use crate::python::{Bare, EchoSubject, PythonTimes, compare};
use crate::sandbox::arguments;

/// The least that is an MCP server, with one tool.
const SERVER: &str = include_str!("guests/mcp/server.py");

/// Takes the figures of so many calls at once, in this empty folder.
pub async fn mcp(folder: &Path, at_once: usize) -> Result<PythonTimes, Problem> {
    compare(folder, at_once, subject).await
}

fn failed(what: impl std::fmt::Display) -> Problem {
    Problem::new(Code::Internal, format!("a figure could not be taken: {what}"))
}

/// What the server lists, as it is approved.
fn listing() -> Value {
    let tool = json!({ "name": "echo", "description": "Gives back what it got.", "inputSchema": { "type": "object" } });
    json!({ "server": "echo 1", "protocol": "2025-11-25", "tools": [tool], "prompts": [], "resources": false })
}

fn subject(folder: &Path, vault: Arc<HomeVault>) -> Result<EchoSubject, Problem> {
    let (file, code) = ("server.py", Digest::of(SERVER.as_bytes()));
    let approved = canonical(&listing()).map_err(failed)?;
    let pinned = Digest::of(&approved);
    let bundle = Bundle {
        lane: "mcp".to_owned(),
        manifest: json!({ "id": "echo", "name": "echo", "mcp": { "command": ["python3", file] },
            "tools": { "echo__echo": { "effects": "pure" } } })
        .to_string(),
        entrypoint: String::new(),
        files: BTreeMap::from([(file.to_owned(), code)]),
        config: Content::new(json!({})),
        grants: Default::default(),
        budgets: Default::default(),
        pinned: Some(pinned),
    };
    let files = BTreeMap::from([(code, SERVER.as_bytes().to_vec()), (pinned, approved)]);
    let digest = vault.keep(&bundle, files)?;
    let found = FoundExtension {
        id: "echo".into(),
        version: "1.0.0".into(),
        digest,
        lane: bundle.lane,
        ..FoundExtension::default()
    };
    let [code, data, pins] = ["code", "data", "pins"].map(|name| folder.join(name));
    let lane = Arc::new(McpLane::new(vault, McpPlaces { code, data, pins, home: folder.to_owned() }));
    let about = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "bench", "version": "1" } });
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": about });
    let call = json!({ "name": "echo", "arguments": arguments(0).value(), "_meta": { "progressToken": 1 } });
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call });
    let bare = Bare::start(SERVER, &[hello], &request).map_err(failed)?;
    Ok(EchoSubject { found, lane, tool: "echo__echo", bare })
}
