//! An activation on the disk: its files as the vault has them, and what its process is started with.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdfast_contract::ids::ExtensionId;
use holdfast_contract::manifest::{Access, Command, Manifest};
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::registry::ExtensionRef;
use holdfast_contract::wire::{Bundle, Vault};

use crate::lane::{Places, Starts};

/// What a process is started with.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub id: ExtensionId,
    pub version: String,
    pub command: Command,
    pub manifest: Manifest,
    /// The activation's files, for as long as anybody needs them.
    pub code: Arc<tempfile::TempDir>,
    /// Its own folder to write to.
    pub data: PathBuf,
    /// What it was granted to read.
    pub readable: Vec<PathBuf>,
    /// What it was granted to write.
    pub writable: Vec<PathBuf>,
}

/// The Python worker, and the name that it has beside the extension's own files.
const WORKER: &str = include_str!("python/worker.py");
const WORKER_FILE: &str = ".holdfast_worker.py";

/// How the worker is started on a file in `tools/` or `channels/`.
fn worker(file: &str) -> Option<Command> {
    let kind = if file.starts_with("channels/") { "channel" } else { "tool" };
    let words = ["python3", "-u", "-B", WORKER_FILE, kind, file];
    Command::new(words.map(str::to_owned).to_vec())
}

fn failed(path: &Path, error: impl std::fmt::Display) -> Fault {
    Fault::new(Code::ExtensionGone, format!("{}: {error}", path.display()))
}

/// Lays out an activation, and says how to start it.
pub(crate) fn plan(
    extension: &ExtensionRef,
    bundle: &Bundle,
    vault: &dyn Vault,
    places: &Places,
    starts: Starts,
) -> Result<Plan, Fault> {
    let manifest = bundle.parsed()?;
    let missing = || Fault::new(Code::ManifestMissingField, "the manifest has no `command`");
    let command = match starts {
        Starts::Command => manifest.command.clone(),
        Starts::Python => worker(&bundle.entrypoint),
    };
    let command = command.ok_or_else(missing)?;
    let data = places.data.join(extension.id.as_str());
    fs::create_dir_all(&data).map_err(|error| failed(&data, error))?;
    let code = Arc::new(lay_out(bundle, vault, &places.code)?);
    if starts == Starts::Python {
        let path = code.path().join(WORKER_FILE);
        fs::write(&path, WORKER).map_err(|error| failed(&path, error))?;
    }
    let granted = |access: Access| {
        let grants = bundle.grants.files.iter().filter(move |grant| grant.access == access);
        grants.map(|grant| PathBuf::from(&grant.path)).filter(|path| path.is_absolute()).collect()
    };
    Ok(Plan {
        id: extension.id.clone(),
        version: extension.version.to_string(),
        command,
        manifest,
        code,
        data,
        readable: granted(Access::Read),
        writable: granted(Access::Write),
    })
}

/// Lays the files out anew for every load: what lies on the disk from earlier may have been changed.
fn lay_out(bundle: &Bundle, vault: &dyn Vault, place: &Path) -> Result<tempfile::TempDir, Fault> {
    fs::create_dir_all(place).map_err(|error| failed(place, error))?;
    let folder = tempfile::tempdir_in(place).map_err(|error| failed(place, error))?;
    for (name, digest) in &bundle.files {
        let path = folder.path().join(name);
        let bytes = vault.file(*digest)?;
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(|error| failed(parent, error))?;
        }
        fs::write(&path, &bytes).map_err(|error| failed(&path, error))?;
        let runs = bytes.starts_with(b"#!") || bytes.starts_with(b"\x7fELF");
        let mode = if runs { 0o755 } else { 0o644 };
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).map_err(|error| failed(&path, error))?;
    }
    Ok(folder)
}
