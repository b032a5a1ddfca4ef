//! An activation on disk: its files, copied from the vault, and everything that its process is started with.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdfast_contract::ids::ExtensionId;
use holdfast_contract::manifest::{ListenPort, Manifest, ProgramCommand};
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::registry::ExtensionRef;
use holdfast_contract::wire::{Bundle, Vault};
use holdfast_program::{GrantedPaths, lay_out};
use holdfast_sandbox::SandboxReport;
use holdfast_untrusted_files::TempFolder;

use crate::lane::{Places, PythonInterpreter};
use crate::python::worker::Worker;

/// How a process is started.
#[derive(Clone, Debug)]
pub(crate) struct FolderPlan {
    /// Distinguishes it from activations that may answer `hello` differently.
    pub identity: String,
    pub id: ExtensionId,
    pub version: String,
    pub command: ProgramCommand,
    /// The worker that the command starts, if it is one.
    pub worker: Option<Arc<Worker>>,
    pub manifest: Manifest,
    /// The activation's files, removed with the last reference.
    pub code: Arc<TempFolder>,
    /// Its own writable folder.
    pub data: PathBuf,
    /// Paths that it may read besides its own files: those of the interpreter.
    pub readable: Vec<PathBuf>,
    /// The file trees that it was granted.
    pub granted: GrantedPaths,
    /// The folders of the extensions that it depends on, which it may read.
    pub neighbours: Vec<(ExtensionId, Arc<TempFolder>)>,
    /// The granted environment variables of the host, by name.
    pub variables: Vec<String>,
    /// The granted hosts.
    pub hosts: Vec<String>,
    /// The granted ports to listen on.
    pub listen: Vec<ListenPort>,
    /// Whether packages were installed for it.
    pub has_packages: bool,
    /// Its disk quota in bytes.
    pub disk_bytes: u64,
    /// The confinement that this machine offers.
    pub report: SandboxReport,
}

fn failed(path: &Path, error: impl std::fmt::Display) -> Fault {
    Fault::new(Code::ExtensionGone, format!("{}: {error}", path.display()))
}

/// Writes the files of an activation and returns how to start it.
pub(crate) fn plan(
    extension: &ExtensionRef,
    bundle: &Bundle,
    vault: &dyn Vault,
    places: &Places,
    python: Option<PythonInterpreter>,
    report: SandboxReport,
) -> Result<FolderPlan, Fault> {
    let manifest = bundle.parsed()?;
    let missing = || Fault::new(Code::ManifestMissingField, "the manifest has no `command`");
    let (command, worker) = match &python {
        None => (manifest.command.clone(), None),
        Some(python) => {
            let worker = python.worker.clone();
            (worker.command(&python.executable, &bundle.entrypoint), Some(worker))
        }
    };
    let command = command.ok_or_else(missing)?;
    let granted = GrantedPaths::new(&bundle.grants.files, &places.home)?;
    let data = places.data.join(extension.id.as_str());
    fs::create_dir_all(&data).map_err(|error| failed(&data, error))?;
    let code = Arc::new(lay_out(bundle, vault, &places.code)?);
    let mut readable = Vec::new();
    let has_packages = python.as_ref().is_some_and(|python| python.has_packages);
    let identity = python.map(|python| {
        readable.push(python.worker.folder.clone());
        readable.extend(python.readable);
        format!("{} {}", crate::python::worker::digest(), python.identity)
    });
    Ok(FolderPlan {
        identity: format!("{} {}", extension.digest, identity.unwrap_or_default()),
        id: extension.id.clone(),
        version: extension.version.to_string(),
        command,
        worker,
        manifest,
        code,
        data,
        readable,
        granted,
        neighbours: Vec::new(),
        variables: bundle.grants.environment.clone(),
        hosts: bundle.grants.network.clone(),
        listen: bundle.grants.listen.clone(),
        has_packages,
        disk_bytes: bundle.budgets.disk_bytes,
        report,
    })
}
