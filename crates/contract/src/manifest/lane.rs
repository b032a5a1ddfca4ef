//! Which lane runs an extension. What the manifest says outright comes first; the folder's files are looked
//! at only where it says nothing. An `entrypoint` always decides; without one, more than one candidate is an
//! error.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::model::Manifest;
use crate::ids::ExtensionId;
use crate::problem::{Code, Problem};

/// What runs an extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LaneKind {
    /// Nothing: the manifest's `agent` is all there is.
    Declarative,
    /// A program that speaks the worker protocol.
    Process,
    /// A WASM component.
    Wasm,
    /// The Python worker.
    Python,
    /// The Node worker.
    Node,
    /// An MCP server.
    Mcp,
    /// The binary itself.
    Native,
    /// A dynamic library in the program's own process.
    Plugin,
}

impl LaneKind {
    /// The lane's name, as frames have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Declarative => "declarative",
            Self::Process => "process",
            Self::Wasm => "wasm",
            Self::Python => "python",
            Self::Node => "node",
            Self::Mcp => "mcp",
            Self::Native => "native",
            Self::Plugin => "plugin",
        }
    }
}

impl fmt::Display for LaneKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The lane of an extension, given its manifest and the names in its folder. The caller adds the place to a
/// problem.
pub fn lane(manifest: &Manifest, files: &[&str]) -> Result<LaneKind, Problem> {
    if let Some(entrypoint) = &manifest.entrypoint {
        return of_entrypoint(&manifest.id, entrypoint, files);
    }
    let mut candidates = declared(manifest);
    if candidates.is_empty() {
        candidates = found(files);
        if manifest.agent.is_some() {
            candidates.push((LaneKind::Declarative, "agent".to_owned()));
        }
    }
    match candidates.as_slice() {
        [(lane, _)] => Ok(*lane),
        [] => Err(nothing_to_start(manifest)),
        several => Err(too_many(manifest, several)),
    }
}

/// What the manifest names outright.
fn declared(manifest: &Manifest) -> Vec<(LaneKind, String)> {
    let fields = [
        (LaneKind::Process, "command", manifest.command.is_some()),
        (LaneKind::Node, "package", manifest.package.is_some()),
        (LaneKind::Mcp, "mcp", manifest.mcp.is_some()),
    ];
    fields.into_iter().filter(|(_, _, there)| *there).map(|(lane, name, _)| (lane, name.to_owned())).collect()
}

/// What the folder holds.
fn found(files: &[&str]) -> Vec<(LaneKind, String)> {
    let mut found: Vec<_> = files
        .iter()
        .filter_map(|file| {
            let lane = match *file {
                "main.py" => LaneKind::Python,
                "index.js" | "index.mjs" | "index.cjs" | "index.ts" => LaneKind::Node,
                file if extension(file) == Some("wasm") => LaneKind::Wasm,
                file if matches!(extension(file), Some("so" | "dylib")) => LaneKind::Plugin,
                _ => return None,
            };
            Some((lane, (*file).to_owned()))
        })
        .collect();
    // `package.json` also lies beside the sources of components and programs.
    if found.is_empty() && files.contains(&"package.json") {
        found.push((LaneKind::Node, "package.json".to_owned()));
    }
    found.sort();
    found
}

fn of_entrypoint(id: &ExtensionId, entrypoint: &str, files: &[&str]) -> Result<LaneKind, Problem> {
    let (lane, needed) = match (extension(entrypoint), entrypoint.split_once(':')) {
        (_, Some(("", _) | (_, ""))) => return Err(no_entrypoint(entrypoint)),
        (_, Some(("native", _))) => return Ok(LaneKind::Native),
        (Some("wasm"), None) => (LaneKind::Wasm, entrypoint.to_owned()),
        (Some("py"), None) => (LaneKind::Python, entrypoint.to_owned()),
        (Some("js" | "mjs" | "cjs" | "ts"), None) => (LaneKind::Node, entrypoint.to_owned()),
        (Some("so" | "dylib"), None) => (LaneKind::Plugin, entrypoint.to_owned()),
        (_, Some((module, _))) => (LaneKind::Python, format!("{}.py", module.replace('.', "/"))),
        _ => return Err(no_entrypoint(entrypoint)),
    };
    if is_there(&needed, files) {
        return Ok(lane);
    }
    let what = format!("`entrypoint` is `{entrypoint}`, but there is no `{needed}` in the folder");
    let near = holdfast_yaml::nearest(&needed, files.iter().copied());
    let help = match near {
        _ if lane == LaneKind::Wasm && files.iter().any(|file| is_source(file)) => {
            format!("Build it from the sources in the folder: `holdfast ext build {id}`.")
        }
        Some(near) => format!("Did you mean `{near}`?"),
        None => format!("Add `{needed}`, or name a file that is there."),
    };
    Err(Problem::new(Code::ManifestValue, what).help(help))
}

/// Whether a component is built from such a file.
fn is_source(file: &str) -> bool {
    file == "Cargo.toml" || [".c", ".js", ".py"].iter().any(|ending| file.ends_with(ending))
}

fn no_entrypoint(entrypoint: &str) -> Problem {
    let help = "Write `module:Class`, or a file that ends in `.py`, `.wasm`, `.js`, `.mjs`, `.ts` or `.so`.";
    Problem::new(Code::ManifestValue, format!("nothing can start `{entrypoint}`")).help(help)
}

/// Whether a file is in the folder, or could be in one of its subfolders. A Python module may also be a
/// folder.
fn is_there(needed: &str, files: &[&str]) -> bool {
    let needed = needed.trim_start_matches("./");
    let top = needed.split('/').next().unwrap_or(needed);
    files.iter().any(|file| *file == needed || *file == top || Some(*file) == needed.strip_suffix(".py"))
}

fn extension(file: &str) -> Option<&str> {
    file.rsplit_once('.').map(|(_, extension)| extension)
}

fn nothing_to_start(manifest: &Manifest) -> Problem {
    let what = format!("nothing says how `{}` is run", manifest.id);
    let help = "Add `entrypoint`, `command`, `package`, `mcp` or `agent`, \
                or put a `main.py`, `index.js`, `.wasm` or `.so` file into the folder.";
    Problem::new(Code::ManifestMissingField, what).help(help)
}

fn too_many(manifest: &Manifest, several: &[(LaneKind, String)]) -> Problem {
    let list: Vec<_> = several.iter().map(|(lane, from)| format!("`{from}` ({lane})")).collect();
    let what = format!("`{}` could be run in more than one way: {}", manifest.id, list.join(", "));
    let help = "Keep one of them, or say with `entrypoint` what to start.";
    Problem::new(Code::ManifestValue, what).help(help)
}
