//! Extensions that the settings name: MCP servers, with what was approved of each, which is part of its generation, and packs, whose files
//! may lie anywhere.

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

use crate::candidate::{Candidate, all_files, configured, content_addressed};
use crate::disk::names;
use crate::reader::ExtensionReader;

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

/// Where the files of a pack lie that the settings name, if it has files of its own.
pub(crate) fn pack_files(manifest: &str) -> Option<PathBuf> {
    let manifest: Value = serde_json::from_str(manifest).ok()?;
    let package = manifest.get("package")?.as_str()?;
    Some(PathBuf::from(package)).filter(|path| path.is_absolute())
}

/// The folder that decides about the files of a pack: its own, or the one that its file lies in.
pub(crate) fn pack_folder(path: &Path) -> &Path {
    if path.is_file() { path.parent().unwrap_or(path) } else { path }
}

/// An extension that the settings name. What they give it, it has: the user wrote them.
pub(crate) fn named(
    text: &str,
    pins: &Path,
    set: Option<&Map<String, Value>>,
    budgets: Budgets,
) -> Result<Candidate, Problem> {
    let Parsed { manifest, warnings, .. } =
        manifest::parse(Path::new("settings.yaml"), text).map_err(|rejected| {
            let unknown = || Problem::new(Code::SettingsInvalid, "an extension in the settings is invalid");
            Problem::all(rejected.errors).unwrap_or_else(unknown)
        })?;
    let mut files = BTreeMap::new();
    let pinned = approved(&manifest, pins, &mut files)?;
    let lane = if manifest.mcp.is_some() { LaneKind::Mcp } else { LaneKind::Node };
    let (mut entrypoint, mut paths) = (String::new(), BTreeMap::new());
    if let Some(path) = pack_files(text) {
        let pack = read_pack(&path)?;
        entrypoint = pack.entry;
        (paths, files) = content_addressed(pack.files);
    }
    let bundle = Bundle {
        lane: lane.as_str().to_owned(),
        manifest: text.to_owned(),
        entrypoint,
        files: paths,
        config: configured(&manifest, set),
        grants: manifest.requests(),
        budgets,
        pinned,
    };
    Ok(Candidate { manifest, warnings, bundle, files })
}

/// A pack as it lies on the disk.
struct PackFiles {
    entry: String,
    files: Vec<(String, Vec<u8>)>,
}

/// The entry of a pack and its files: those of its folder, or of a file alone the modules beside it.
fn read_pack(path: &Path) -> Result<PackFiles, Problem> {
    let missing = || {
        let what = format!("there is no pack at {}", path.display());
        Problem::in_file(Code::ExtensionUnknown, path, what)
            .help("Correct `folder` or `module` in the settings.")
    };
    let folder = pack_folder(path);
    let names = if path.is_dir() {
        all_files(folder)?
    } else if !path.is_file() {
        return Err(missing());
    } else if folder.join("package.json").is_file() {
        all_files(folder)?
    } else {
        let is_module = |name: &String| {
            ["js", "mjs", "cjs", "ts", "json"].iter().any(|it| name.ends_with(&format!(".{it}")))
        };
        names(folder)?.into_iter().filter(is_module).filter(|name| folder.join(name).is_file()).collect()
    };
    let mut reader = ExtensionReader::default();
    let mut all = Vec::new();
    for name in names {
        let content = reader.read(folder, &name)?;
        all.push((name, content));
    }
    let entry = path.strip_prefix(folder).ok().and_then(Path::to_str).unwrap_or_default();
    Ok(PackFiles { entry: entry.to_owned(), files: all })
}
