//! The lane, and the folders of its processes.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use holdfast_contract::ids::ExtensionId;
#[cfg(target_os = "linux")]
use holdfast_contract::log::LogLevel;
use holdfast_contract::log::{LogSink, ProgressSink, Sinks};
use holdfast_contract::manifest::LaneKind;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::registry::ExtensionRef;
use holdfast_contract::wire::{Bundle, Instance, Lane, Later, Vault};
#[cfg(target_os = "linux")]
use holdfast_program::keep_home_closed;
use holdfast_sandbox::SandboxReport;
#[cfg(target_os = "linux")]
use holdfast_untrusted_files::ProgramSearch;
use holdfast_untrusted_files::{TempFolder, remove_tree};
use parking_lot::Mutex;

#[cfg(target_os = "linux")]
use crate::node::environment::NodeTools;
#[cfg(target_os = "linux")]
use crate::node::interpreter::Interpreter as NodeInterpreter;
use crate::node::names::TakenNames;
#[cfg(target_os = "linux")]
use crate::node::runner::PackRunner;
#[cfg(target_os = "linux")]
use crate::node::worker::NodeWorker;
#[cfg(target_os = "linux")]
use crate::python::environment::PythonEnvironment;
#[cfg(target_os = "linux")]
use crate::python::interpreter::{FoundInterpreter, Interpreter, skipped_text};
#[cfg(target_os = "linux")]
use crate::python::requirements::Requirements;
#[cfg(target_os = "linux")]
use crate::python::worker::Worker;

/// How a lane starts its programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Starts {
    /// The manifest's `command`.
    Command,
    /// The Python worker, with a file of the extension.
    Python,
    /// The Node worker, with a pack.
    Node,
}

/// The folders of a lane.
#[derive(Clone, Debug)]
pub struct Places {
    /// Has a folder with the files of each running extension. Not used by anything else.
    pub code: PathBuf,
    /// Has a writable folder for each extension.
    pub data: PathBuf,
    /// Has an environment for each set of packages.
    pub environments: PathBuf,
    /// The home, which no program may read as a whole.
    pub home: PathBuf,
}

impl Places {
    /// All of them below one folder.
    pub fn within(folder: &Path) -> Self {
        let [code, data, environments] = ["code", "data", "environments"].map(|name| folder.join(name));
        Self { code, data, environments, home: folder.to_owned() }
    }
}

/// The Python that runs an extension.
#[cfg(target_os = "linux")]
#[derive(Clone, Debug)]
pub(crate) struct PythonInterpreter {
    /// The program.
    pub executable: PathBuf,
    /// Paths that it must be able to read.
    pub readable: Vec<PathBuf>,
    /// Distinguishes it from other interpreters.
    pub identity: String,
    /// Whether it is an environment with packages.
    pub has_packages: bool,
    /// The worker that it runs.
    pub worker: Arc<Worker>,
}

/// What runs an extension that does not bring its own program.
pub(crate) enum Runner {
    Python(PythonInterpreter),
    #[cfg(target_os = "linux")]
    Node(PackRunner),
}

/// The machine's Node, with the worker.
#[cfg(target_os = "linux")]
#[derive(Clone)]
struct NodeSetup {
    node: NodeInterpreter,
    worker: NodeWorker,
}

impl Starts {
    fn name(self) -> &'static str {
        match self {
            Self::Command => LaneKind::Process.as_str(),
            Self::Python => LaneKind::Python.as_str(),
            Self::Node => LaneKind::Node.as_str(),
        }
    }
}

/// Returns whether programs must be confined by every layer, or else not run.
pub type Demand = Arc<dyn Fn() -> bool + Send + Sync>;

/// Returns the folders that agents may write. No program is taken from them.
pub type AgentFolders = Arc<dyn Fn() -> Vec<PathBuf> + Send + Sync>;

/// The machine's Python, with its worker.
#[cfg(target_os = "linux")]
type Python = Arc<tokio::sync::Mutex<Option<(Interpreter, Arc<Worker>)>>>;

#[cfg(target_os = "linux")]
type Node = Arc<tokio::sync::Mutex<Option<NodeSetup>>>;

/// The folders of running extensions.
type LaidOut = Arc<Mutex<HashMap<ExtensionId, Weak<TempFolder>>>>;

/// Runs extensions that are programs.
#[derive(Clone)]
pub struct ProcessLane {
    vault: Arc<dyn Vault>,
    places: Places,
    sinks: Sinks,
    starts: Starts,
    #[cfg(target_os = "linux")]
    python: Python,
    #[cfg(target_os = "linux")]
    node: Node,
    taken: Arc<TakenNames>,
    laid_out: LaidOut,
    report: Option<SandboxReport>,
    demand: Option<Demand>,
    agent_folders: Option<AgentFolders>,
}

impl ProcessLane {
    /// A lane for programs with a `command`, over the activations of a vault.
    pub fn new(vault: Arc<dyn Vault>, places: Places) -> Self {
        Self::starting(Starts::Command, vault, places)
    }

    /// A lane for plain Python files.
    pub fn python(vault: Arc<dyn Vault>, places: Places) -> Self {
        Self::starting(Starts::Python, vault, places)
    }

    /// A lane for packs.
    pub fn node(vault: Arc<dyn Vault>, places: Places) -> Self {
        Self::starting(Starts::Node, vault, places)
    }

    /// Gives packs other names for their tools than these.
    pub fn with_taken_names(mut self, taken: TakenNames) -> Self {
        self.taken = Arc::new(taken);
        self
    }

    fn starting(starts: Starts, vault: Arc<dyn Vault>, mut places: Places) -> Self {
        places.code.push(starts.name());
        // Files of an earlier run are stale; usually there are none.
        let _ = remove_tree(&places.code);
        Self {
            vault,
            places,
            sinks: Sinks::default(),
            starts,
            #[cfg(target_os = "linux")]
            python: Python::default(),
            #[cfg(target_os = "linux")]
            node: Node::default(),
            taken: Arc::default(),
            laid_out: LaidOut::default(),
            report: None,
            demand: None,
            agent_folders: None,
        }
    }

    /// Shares the folders of running extensions with another lane, so that programs can read the files of their dependencies there.
    pub fn beside(mut self, other: &Self) -> Self {
        self.laid_out = other.laid_out.clone();
        self
    }

    /// Refuses programs where a layer of confinement is missing, if this returns true. It is called at every load.
    pub fn demanding(mut self, demand: Demand) -> Self {
        self.demand = Some(demand);
        self
    }

    /// Takes no program from the folders that this returns. It is called at every load.
    pub fn avoiding(mut self, folders: AgentFolders) -> Self {
        self.agent_folders = Some(folders);
        self
    }

    /// Uses this report of the machine's confinement.
    pub fn on(mut self, report: SandboxReport) -> Self {
        self.report = Some(report);
        self
    }

    /// The confinement that the machine offers; an error if that is not enough.
    #[cfg(target_os = "linux")]
    fn confinement(&self) -> Result<SandboxReport, Fault> {
        let report = self.report.clone().unwrap_or_else(holdfast_sandbox::report);
        let demands = self.demand.as_ref().is_some_and(|demand| demand());
        if demands && report.confined && !report.is_whole() {
            return Err(Fault::new(Code::ConfinementPartial, report.notes.join("; ")));
        }
        Ok(report)
    }

    /// Receives what programs log, and what they write to standard error.
    pub fn with_log(mut self, sink: LogSink) -> Self {
        self.sinks.log = Some(sink);
        self
    }

    /// Receives the progress of package installation.
    pub fn with_progress(mut self, sink: ProgressSink) -> Self {
        self.sinks.progress = Some(sink);
        self
    }

    #[cfg(target_os = "linux")]
    async fn bring_up(self, extension: ExtensionRef) -> Result<Arc<dyn Instance>, Fault> {
        let report = self.confinement()?;
        let bundle = self.vault.bundle(extension.digest)?;
        if bundle.lane != self.starts.name() {
            let message =
                format!("`{}` is not an extension of the {} lane", extension.id, self.starts.name());
            return Err(Fault::new(Code::ExtensionUnknown, message));
        }
        let runner = match self.starts {
            Starts::Command => None,
            Starts::Python => Some(Runner::Python(self.python_for(&extension.id, &bundle, &report).await?)),
            Starts::Node => Some(Runner::Node(self.pack_for(&extension.id, &bundle, &report).await?)),
        };
        let granted = match &runner {
            None => &[],
            Some(Runner::Python(python)) => python.readable.as_slice(),
            Some(Runner::Node(pack)) => pack.readable.as_slice(),
        };
        keep_home_closed(&self.places.home, granted)?;
        let mut plan = crate::folder::plan(&extension, &bundle, &*self.vault, &self.places, runner, report)?;
        plan.neighbours = neighbours(&self.laid_out, &extension.id, &plan.manifest.depends_on, &plan.code);
        let loaded = crate::instance::ProcessInstance::load(plan, bundle, self.vault, self.sinks.log).await?;
        Ok(Arc::new(loaded) as Arc<dyn Instance>)
    }

    /// The folders that agents may write. Some are read from the log.
    #[cfg(target_os = "linux")]
    async fn agent_folders(&self) -> Result<Vec<PathBuf>, Fault> {
        let Some(folders) = self.agent_folders.clone() else { return Ok(Vec::new()) };
        let listed = tokio::task::spawn_blocking(move || folders()).await;
        listed.map_err(|error| Fault::new(Code::Internal, format!("the workspaces were not listed: {error}")))
    }

    /// The machine's Python. It is looked for again once agents can write where it lies.
    #[cfg(target_os = "linux")]
    async fn interpreter(
        &self,
        id: &ExtensionId,
        agent_folders: &[PathBuf],
        report: &SandboxReport,
    ) -> Result<(Interpreter, Arc<Worker>), Fault> {
        let mut kept = self.python.lock().await;
        if let Some((interpreter, worker)) = &*kept
            && interpreter.is_outside(&ProgramSearch::new(None, agent_folders))
        {
            return Ok((interpreter.clone(), worker.clone()));
        }
        let found = find_interpreter(agent_folders, &self.places.home, report).await?;
        if let Some(warning) = found.warning() {
            self.sinks.log(id, LogLevel::Warning, &warning);
        }
        let worker = Worker::lay_out(&self.places.code, &found.interpreter, report, &self.agent_folders)?;
        *kept = Some((found.interpreter.clone(), worker.clone()));
        Ok((found.interpreter, worker))
    }

    /// A pack with its packages.
    #[cfg(target_os = "linux")]
    async fn pack_for(
        &self,
        id: &ExtensionId,
        bundle: &Bundle,
        report: &SandboxReport,
    ) -> Result<PackRunner, Fault> {
        let NodeSetup { node, worker } = self.node_setup(id).await?;
        let (tools, limits) =
            (NodeTools { node: &node, worker: &worker }, (self.taken.clone(), report.clone()));
        PackRunner::prepare(bundle, &*self.vault, tools, &self.places, limits, (id, &self.sinks)).await
    }

    /// The machine's Node. It is looked for again once agents can write where it lies.
    #[cfg(target_os = "linux")]
    async fn node_setup(&self, id: &ExtensionId) -> Result<NodeSetup, Fault> {
        let agent_folders = self.agent_folders().await?;
        let mut kept = self.node.lock().await;
        if let Some(setup) = &*kept
            && !ProgramSearch::new(None, &agent_folders).avoids(&setup.node.executable)
        {
            return Ok(setup.clone());
        }
        let (node, skipped) = NodeInterpreter::find(&agent_folders).await?;
        if !skipped.is_empty() {
            let used = node.executable.display();
            let warning = format!("{}; {used} is used", skipped_text(&skipped));
            self.sinks.log(id, LogLevel::Warning, &warning);
        }
        let setup = NodeSetup { node, worker: NodeWorker::lay_out(&self.places.code)? };
        *kept = Some(setup.clone());
        Ok(setup)
    }

    /// The machine's Python, or an environment with the packages that the extension requires.
    #[cfg(target_os = "linux")]
    async fn python_for(
        &self,
        id: &ExtensionId,
        bundle: &Bundle,
        report: &SandboxReport,
    ) -> Result<PythonInterpreter, Fault> {
        let agent_folders = self.agent_folders().await?;
        let (interpreter, worker) = self.interpreter(id, &agent_folders, report).await?;
        let (mut identity, mut readable) = (interpreter.identity(), interpreter.readable());
        // Before anything is installed: it would not be started.
        keep_home_closed(&self.places.home, &readable)?;
        let needed = Requirements::of(bundle, &*self.vault)?;
        if needed.is_empty() {
            return Ok(PythonInterpreter {
                executable: interpreter.executable.clone(),
                readable,
                identity,
                has_packages: false,
                worker,
            });
        }
        let place = &self.places.environments;
        let told = (id, &self.sinks);
        let environment =
            PythonEnvironment::with(&needed, &interpreter, place, report.clone(), &agent_folders, told);
        let environment = environment.await?;
        identity.push_str(&format!(" {}", environment.folder.display()));
        readable.push(environment.folder.clone());
        let executable = environment.python();
        Ok(PythonInterpreter { executable, readable, identity, has_packages: true, worker })
    }
}

/// Looks for an interpreter on a thread of its own, because it waits for processes.
#[cfg(target_os = "linux")]
async fn find_interpreter(
    agent_folders: &[PathBuf],
    home: &Path,
    report: &SandboxReport,
) -> Result<FoundInterpreter, Fault> {
    let (folders, home, report) = (agent_folders.to_vec(), home.to_owned(), report.clone());
    let path = std::env::var_os("PATH");
    let find = move || Interpreter::find(path.as_deref(), &folders, &home, &report);
    let found = tokio::task::spawn_blocking(find).await;
    found.map_err(|error| Fault::new(Code::Internal, format!("Python was not looked for: {error}")))?
}

/// The folders of the dependencies that run in these lanes. Registers the extension's own folder for others.
#[cfg(target_os = "linux")]
fn neighbours(
    laid_out: &LaidOut,
    id: &ExtensionId,
    depends_on: &[ExtensionId],
    code: &Arc<TempFolder>,
) -> Vec<(ExtensionId, Arc<TempFolder>)> {
    let mut laid_out = laid_out.lock();
    laid_out.retain(|_, folder| folder.strong_count() > 0);
    laid_out.insert(id.clone(), Arc::downgrade(code));
    let found = depends_on.iter().filter_map(|other| Some((other.clone(), laid_out.get(other)?.upgrade()?)));
    found.collect()
}

impl Lane for ProcessLane {
    fn name(&self) -> &str {
        self.starts.name()
    }

    fn runs_in_process(&self) -> bool {
        false
    }

    #[cfg(target_os = "linux")]
    fn load(&self, extension: &ExtensionRef) -> Later<Result<Arc<dyn Instance>, Fault>> {
        Box::pin(self.clone().bring_up(extension.clone()))
    }

    #[cfg(not(target_os = "linux"))]
    fn load(&self, extension: &ExtensionRef) -> Later<Result<Arc<dyn Instance>, Fault>> {
        let _ = (&self.vault, &self.places, &self.sinks, &self.laid_out);
        let _ = (&self.report, &self.demand, &self.agent_folders, &self.taken);
        let message = format!("`{}` is a program, and programs can be confined only on Linux", extension.id);
        Box::pin(std::future::ready(Err(Fault::new(Code::Unconfined, message))))
    }
}
