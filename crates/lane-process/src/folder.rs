//! An activation on disk: its files, copied from the vault, and everything that its process is started with.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdfast_contract::ids::ExtensionId;
use holdfast_contract::manifest::{ListenPort, Manifest, ProgramCommand, Transport};
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::registry::ExtensionRef;
use holdfast_contract::wire::{Bundle, Vault};
use holdfast_program::{GrantedPaths, lay_out};
use holdfast_sandbox::SandboxReport;
use holdfast_untrusted_files::TempFolder;
use serde_json::Value;

use crate::lane::{Places, Runner};
use crate::node::names::TakenNames;
use crate::node::runner::PackRunner;
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
    /// What it is spoken to over.
    pub transport: Transport,
    /// The folder that it starts in.
    pub starts_in: PathBuf,
    /// Variables of its worker.
    pub environment: Vec<(String, OsString)>,
    /// What a pack is told, if it is one.
    pub pack: Option<PackPlan>,
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

/// What a pack is told of itself. It is activated when its process starts, and registers only then what it has.
#[derive(Clone, Debug)]
pub(crate) struct PackPlan {
    /// What the settings say of it.
    pub settings: Value,
    /// The names of secrets, by the ids that packs know them by.
    pub catalogue: BTreeMap<String, String>,
    /// The names that it does not get for its tools.
    pub taken: Arc<TakenNames>,
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
    runner: Option<Runner>,
    report: SandboxReport,
) -> Result<FolderPlan, Fault> {
    let manifest = bundle.parsed()?;
    let granted = GrantedPaths::new(&bundle.grants.files, &places.home)?;
    let data = places.data.join(extension.id.as_str());
    fs::create_dir_all(&data).map_err(|error| failed(&data, error))?;
    let code = Arc::new(lay_out(bundle, vault, &places.code)?);
    let missing = || Fault::new(Code::ManifestMissingField, "the manifest has no `command`");
    let mut starts = StartPlan {
        transport: manifest.transport,
        starts_in: code.path().to_owned(),
        ..StartPlan::default()
    };
    let command = match runner {
        None => manifest.command.clone(),
        Some(Runner::Python(python)) => {
            let command = python.worker.command(&python.executable, &bundle.entrypoint);
            starts.readable.push(python.worker.folder.clone());
            starts.readable.extend(python.readable);
            starts.identity = format!("{} {}", crate::python::worker::digest(), python.identity);
            starts.has_packages = python.has_packages;
            starts.worker = Some(python.worker);
            command
        }
        Some(Runner::Node(pack)) => {
            let command = pack.command(code.path());
            starts.pack_in(pack, &code, &data)?;
            command
        }
    };
    let command = command.ok_or_else(missing)?;
    let StartPlan { identity, transport, starts_in, environment, readable, has_packages, worker, pack } =
        starts;
    Ok(FolderPlan {
        identity: format!("{} {identity}", extension.digest),
        id: extension.id.clone(),
        version: extension.version.to_string(),
        command,
        worker,
        manifest,
        transport,
        starts_in,
        environment,
        pack,
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

/// What the interpreter adds to how a process is started.
#[derive(Default)]
struct StartPlan {
    identity: String,
    transport: Transport,
    starts_in: PathBuf,
    environment: Vec<(String, OsString)>,
    readable: Vec<PathBuf>,
    has_packages: bool,
    worker: Option<Arc<Worker>>,
    pack: Option<PackPlan>,
}

impl StartPlan {
    /// A pack starts in its data folder, where it may write, and finds its packages beside its code.
    fn pack_in(&mut self, pack: PackRunner, code: &TempFolder, data: &Path) -> Result<(), Fault> {
        pack.link_packages(code.path())?;
        self.identity = pack.identity;
        self.transport = Transport::Socket;
        self.starts_in = data.to_owned();
        self.environment = PackRunner::variables();
        self.readable = pack.readable;
        self.readable.push(code.path().to_owned());
        self.has_packages = pack.environment.is_some();
        self.pack = Some(pack.plan);
        Ok(())
    }
}
