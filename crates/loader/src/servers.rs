//! MCP servers: those that the settings name, as extensions, and what was approved of each, which is part of its generation.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use holdfast_contract::budgets::Budgets;
use holdfast_contract::digest::{Digest, canonical};
use holdfast_contract::ids::ExtensionId;
use holdfast_contract::manifest::{self, LaneKind, Manifest, Parsed};
use holdfast_contract::problem::{Code, Problem};
use holdfast_contract::wire::Bundle;
use holdfast_untrusted_files::read;
use serde_json::{Map, Value};

use crate::candidate::{Candidate, configured};

/// The largest file of pins that is read.
const MAX_PIN_BYTES: u64 = 16 << 20;

/// The folder with what was approved of each MCP server, beside the folder of all extensions.
pub(crate) fn pins_folder(extensions: &Path) -> PathBuf {
    extensions.with_file_name("mcp")
}

/// What was approved of one.
pub(crate) fn pins_file(extensions: &Path, id: &ExtensionId) -> PathBuf {
    pins_folder(extensions).join(format!("{id}.json"))
}

/// What was approved of an MCP server, as content of its generation; nothing if it was never listed, or was another server then.
pub(crate) fn approved(
    manifest: &Manifest,
    pins: &Path,
    contents: &mut BTreeMap<Digest, Vec<u8>>,
) -> Result<Option<Digest>, Problem> {
    let Some(server) = manifest.mcp.as_ref().filter(|_| pins.exists()) else { return Ok(None) };
    let unreadable = |why: String| {
        let what = format!("what was approved of `{}` cannot be read: {why}", manifest.id);
        Problem::in_file(Code::McpChanged, pins, what)
            .help("Remove the file; the server's tools are approved again when it is listed.")
    };
    let bytes = read(pins, MAX_PIN_BYTES).map_err(|error| unreadable(error.to_string()))?;
    let pinned: Value = serde_json::from_slice(&bytes).map_err(|error| unreadable(error.to_string()))?;
    if pinned.get("source").and_then(Value::as_str) != Some(server.source().to_string().as_str()) {
        return Ok(None);
    }
    let Some(listing) = pinned.get("approved").filter(|listing| listing.is_object()) else { return Ok(None) };
    let bytes = canonical(listing).map_err(|error| unreadable(error.to_string()))?;
    let digest = Digest::of(&bytes);
    contents.insert(digest, bytes);
    Ok(Some(digest))
}

/// An MCP server that the settings name. What they give it, it has: the user wrote them.
pub(crate) fn server(
    text: &str,
    pins: &Path,
    set: Option<&Map<String, Value>>,
    budgets: Budgets,
) -> Result<Candidate, Problem> {
    let Parsed { manifest, warnings, .. } =
        manifest::parse(Path::new("settings.yaml"), text).map_err(|rejected| {
            let unknown = || Problem::new(Code::SettingsInvalid, "an MCP server in the settings is invalid");
            Problem::all(rejected.errors).unwrap_or_else(unknown)
        })?;
    let mut files = BTreeMap::new();
    let pinned = approved(&manifest, pins, &mut files)?;
    let bundle = Bundle {
        lane: LaneKind::Mcp.as_str().to_owned(),
        manifest: text.to_owned(),
        entrypoint: String::new(),
        files: BTreeMap::new(),
        config: configured(&manifest, set),
        grants: manifest.requests(),
        budgets,
        pinned,
    };
    Ok(Candidate { manifest, warnings, bundle, files })
}
