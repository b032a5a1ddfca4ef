//! The Node worker: plain modules without dependencies, written once for all processes of a lane, into a folder that has no files of a
//! pack. `standin` is the package that it puts in the place of the one by which packs refer to their host.

use std::fs;
use std::path::{Path, PathBuf};

use holdfast_contract::digest::Digest;
use holdfast_contract::problem::{Code, Fault};
use serde_json::Value;

use crate::packages::write_new;

macro_rules! files {
    ($($path:literal),+ $(,)?) => { &[$(($path, include_str!(concat!("holdfast_worker/", $path)))),+] };
}

/// The worker's files.
pub(super) const FILES: &[(&str, &str)] = files![
    "context.mjs",
    "kinds/approver.mjs",
    "kinds/channel.mjs",
    "kinds/guardrail.mjs",
    "kinds/index.mjs",
    "kinds/memory.mjs",
    "kinds/persona.mjs",
    "kinds/provenance.mjs",
    "kinds/texts.mjs",
    "kinds/tool.mjs",
    "main.mjs",
    "own.mjs",
    "pack.mjs",
    "peers.mjs",
    "plain.mjs",
    "report.mjs",
    "roles.mjs",
    "secrets.mjs",
    "serve.mjs",
    "source.mjs",
    "standin/index.cjs",
    "standin/index.js",
    "standin/package.json",
    "wire.mjs",
];

/// The folder of the stand-in among the files.
const STANDIN: &str = "standin/";

/// A worker that lies on the disk.
#[derive(Clone, Debug)]
pub(crate) struct NodeWorker {
    pub(crate) folder: PathBuf,
}

impl NodeWorker {
    /// Writes its files.
    pub(crate) fn lay_out(place: &Path) -> Result<Self, Fault> {
        let folder = place.join(".worker");
        for (name, text) in FILES {
            let path = folder.join(name);
            let failed = |error: std::io::Error| {
                Fault::new(Code::ExtensionGone, format!("{}: {error}", path.display()))
            };
            fs::create_dir_all(path.parent().unwrap_or(&path)).map_err(failed)?;
            write_new(&path, text).map_err(failed)?;
        }
        Ok(Self { folder })
    }

    /// The program that it is started by.
    pub(crate) fn main(&self) -> PathBuf {
        self.folder.join("main.mjs")
    }

    /// The program that tells which names packages need that the stand-in does not have.
    pub(crate) fn peers(&self) -> PathBuf {
        self.folder.join("peers.mjs")
    }

    /// The folder of the stand-in.
    pub(crate) fn standin(&self) -> PathBuf {
        self.folder.join("standin")
    }
}

/// The files of the stand-in, by their names in its folder.
pub(crate) fn standin_files() -> impl Iterator<Item = (&'static str, &'static str)> {
    FILES.iter().filter_map(|(name, text)| Some((name.strip_prefix(STANDIN)?, *text)))
}

/// The digest of the stand-in.
#[cfg(target_os = "linux")]
pub(crate) fn standin_digest() -> Digest {
    Digest::of(standin_files().map(|(name, text)| format!("{name}\n{text}")).collect::<String>().as_bytes())
}

/// The name of the package that the stand-in replaces.
pub(crate) fn standin_name() -> String {
    let manifest = standin_files().find(|(name, _)| *name == "package.json").map(|(_, text)| text);
    let manifest: Option<Value> = manifest.and_then(|text| serde_json::from_str(text).ok());
    let name = manifest.as_ref().and_then(|manifest| manifest.get("name")?.as_str());
    name.unwrap_or_default().to_owned()
}

/// The digest of this version of the worker.
pub(crate) fn digest() -> Digest {
    Digest::of(FILES.iter().map(|(name, text)| format!("{name}\n{text}")).collect::<String>().as_bytes())
}
