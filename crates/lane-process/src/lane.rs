//! The lane, and the folders of its processes.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use holdfast_contract::ids::ExtensionId;
use holdfast_contract::log::{LogSink, ProgressSink, Sinks};
use holdfast_contract::manifest::LaneKind;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::registry::ExtensionRef;
use holdfast_contract::wire::{Bundle, Instance, Lane, Later, Vault};
#[cfg(target_os = "linux")]
use holdfast_program::keep_home_closed;
use holdfast_sandbox::SandboxReport;
use holdfast_untrusted_files::{TempFolder, remove_tree};
use parking_lot::Mutex;
use tokio::sync::OnceCell;

#[cfg(target_os = "linux")]
use crate::node::environment::NodeTools;
use crate::node::interpreter::Interpreter as NodeInterpreter;
use crate::node::names::TakenNames;
#[cfg(target_os = "linux")]
use crate::node::runner::PackRunner;
use crate::node::worker::NodeWorker;
#[cfg(target_os = "linux")]
use crate::python::environment::PythonEnvironment;
use crate::python::interpreter::Interpreter;
#[cfg(target_os = "linux")]
use crate::python::requirements::Requirements;
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

/// What the Node lane finds and writes once.
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

/// The folders of running extensions.
type LaidOut = Arc<Mutex<HashMap<ExtensionId, Weak<TempFolder>>>>;

/// Runs extensions that are programs.
#[derive(Clone)]
pub struct ProcessLane {
    vault: Arc<dyn Vault>,
    places: Places,
    sinks: Sinks,
    starts: Starts,
    interpreter: Arc<OnceCell<Interpreter>>,
    worker: Arc<OnceCell<Arc<Worker>>>,
    node: Arc<OnceCell<NodeSetup>>,
    taken: Arc<TakenNames>,
    laid_out: LaidOut,
    report: Option<SandboxReport>,
    demand: Option<Demand>,
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
            interpreter: Arc::default(),
            worker: Arc::default(),
            node: Arc::default(),
            taken: Arc::default(),
            laid_out: LaidOut::default(),
            report: None,
            demand: None,
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

    /// A pack with its packages.
    #[cfg(target_os = "linux")]
    async fn pack_for(
        &self,
        id: &ExtensionId,
        bundle: &Bundle,
        report: &SandboxReport,
    ) -> Result<PackRunner, Fault> {
        let set_up = async || {
            let node = NodeInterpreter::find().await?;
            Ok::<_, Fault>(NodeSetup { node, worker: NodeWorker::lay_out(&self.places.code)? })
        };
        let NodeSetup { node, worker } = self.node.get_or_try_init(set_up).await?;
        let (tools, limits) = (NodeTools { node, worker }, (self.taken.clone(), report.clone()));
        PackRunner::prepare(bundle, &*self.vault, tools, &self.places, limits, (id, &self.sinks)).await
    }

    /// The machine's Python, or an environment with the packages that the extension requires.
    #[cfg(target_os = "linux")]
    async fn python_for(
        &self,
        id: &ExtensionId,
        bundle: &Bundle,
        report: &SandboxReport,
    ) -> Result<PythonInterpreter, Fault> {
        let interpreter = self.interpreter.get_or_try_init(Interpreter::find).await?;
        let lay_out = async || Worker::lay_out(&self.places.code, &interpreter.executable);
        let worker = self.worker.get_or_try_init(lay_out).await?.clone();
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
        let environment = PythonEnvironment::with(&needed, interpreter, place, report.clone(), told).await?;
        identity.push_str(&format!(" {}", environment.folder.display()));
        readable.push(environment.folder.clone());
        let executable = environment.python();
        Ok(PythonInterpreter { executable, readable, identity, has_packages: true, worker })
    }
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
        let _ = (&self.vault, &self.places, &self.sinks, &self.interpreter);
        let _ = (&self.laid_out, &self.report, &self.demand, &self.worker, &self.node, &self.taken);
        let message = format!("`{}` is a program, and programs can be confined only on Linux", extension.id);
        Box::pin(std::future::ready(Err(Fault::new(Code::Unconfined, message))))
    }
}
