//! The parts of a runtime, and what it reports to surfaces.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

pub use holdfast_bus::Entropy;
use holdfast_contract::context::ContextBudget;
use holdfast_contract::ids::{AgentId, ExtensionId, ModelName, Seq, StreamId};
use holdfast_contract::names::Overrides;
use holdfast_contract::problem::{Code, Fault, Problem};
use holdfast_contract::session_frames::UiQuestion;
use holdfast_contract::system_frames::FoundExtension;
use holdfast_contract::wire::Lane;
use holdfast_home::{AgentSettings, CallSettings, LimitSettings};
use holdfast_kernel::Pending;
use holdfast_model::Model;
use holdfast_policy::{Grant, Policy};
pub use holdfast_schedules::Zone;
use holdfast_store::Store;
use serde_json::{Map, Value};

use crate::clock::Clock;
use crate::extensions::Preparations;
use crate::host::outside::http::HttpClient;
use crate::host::secrets::Secrets;
use crate::messaging::Routes;
use crate::runtime::DefaultModel;
use crate::tools::ToolsShown;

/// The parts of a runtime.
pub struct Parts {
    /// The log.
    pub store: Store,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Random bytes for extensions that ask for them.
    pub entropy: Arc<dyn Entropy>,
    /// The configured models.
    pub models: BTreeMap<ModelName, Arc<dyn Model>>,
    /// The lanes, each under its name.
    pub lanes: Vec<Arc<dyn Lane>>,
    /// The extensions that discovery found.
    pub extensions: Vec<FoundExtension>,
    /// The policy in force.
    pub policy: Policy,
    /// Who is shown what happens.
    pub surface: Arc<dyn Surface>,
    /// How users, agents and channels are brought together.
    pub routes: Routes,
    /// What the user has set.
    pub home: HomeParts,
}

/// What the user of a home has set, and where it is kept. The default is that of no home at all.
pub struct HomeParts {
    /// The time zone of schedules that name none.
    pub zone: Zone,
    /// The secrets; none where there are none to be had.
    pub secrets: Option<Arc<Secrets>>,
    /// Where the settings of extensions are written; none where they are not.
    pub configuration: Option<Arc<dyn Configuration>>,
    /// The extensions that are there and cannot be used, and why.
    pub rejected: Vec<(ExtensionId, Fault)>,
    /// What is different for agents, by their ids.
    pub agents: BTreeMap<AgentId, AgentSettings>,
    /// What stands in for models that agents name and that are not configured; none where such agents fail.
    pub default_model: Option<DefaultModel>,
    /// What a turn and a session of the main agent may use up.
    pub limits: LimitSettings,
    /// How tool calls are run.
    pub calls: CallSettings,
    /// How much context providers may add to a prompt that is enriched; a session has its own.
    pub context: ContextBudget,
    /// Which tools models are shown where there are many.
    pub tools: ToolsShown,
    /// The user's overrides of what extensions register; none where there is no home.
    pub overrides: Option<Overrides>,
    /// The file that lists whose code is executing while extensions start; none where there is no home.
    pub executing: Option<PathBuf>,
    /// What the lanes report about the preparation of extensions; none where they report nothing.
    pub preparations: Option<Arc<Preparations>>,
    /// Whether extensions are loaded only to be listed. They are then not initialised or started, no service or schedule runs, and no
    /// event is delivered.
    pub inspects: bool,
    /// Where the files are that extensions may have; none where there is no home.
    pub places: Option<Arc<FilePlaces>>,
    /// What sends the HTTP requests of extensions; none where nothing does.
    pub http: Option<Arc<dyn HttpClient>>,
    /// The variables of the process.
    pub variables: Variables,
}

/// Reads an environment variable.
pub type Variables = fn(&str) -> Option<OsString>;

/// Where the files are that extensions may have.
#[derive(Clone, Debug)]
pub struct FilePlaces {
    /// Has a folder for the data of each extension.
    pub data: PathBuf,
    /// The home, which no granted folder includes.
    pub home: PathBuf,
    /// The user's own folder, `~` in paths.
    pub user: PathBuf,
}

impl Default for HomeParts {
    fn default() -> Self {
        Self {
            zone: Zone::utc(),
            secrets: None,
            configuration: None,
            rejected: Vec::new(),
            agents: BTreeMap::new(),
            default_model: None,
            limits: LimitSettings::default(),
            calls: CallSettings::default(),
            context: ContextBudget::default(),
            tools: ToolsShown::default(),
            overrides: None,
            executing: None,
            preparations: None,
            inspects: false,
            places: None,
            http: None,
            variables: |_| None,
        }
    }
}

/// What differs on the disk from what the runtime was told.
#[derive(Default)]
pub struct ExtensionChanges {
    /// New or changed.
    pub found: Vec<FoundExtension>,
    /// No longer there, or disabled.
    pub removed: Vec<ExtensionId>,
    /// There, but not to be used.
    pub rejected: Vec<(ExtensionId, Fault)>,
}

/// Tells the runtime of changes. It is called before another scan of the disk can begin, so that the runtime is told in their order.
pub type ReportChanges<'a> = dyn Fn(ExtensionChanges) + 'a;

/// An extension that is installed, enabled or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstalledExtension {
    /// The extension.
    pub id: ExtensionId,
    /// Whether it is part of the program.
    pub built_in: bool,
    /// Whether the user or its manifest has disabled it.
    pub disabled: bool,
}

/// The interfaces of the host, as an extension has them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtensionInterfaces {
    /// Those that it holds.
    pub held: Vec<String>,
    /// Those of them that its lane holds under the profile, without a grant.
    pub by_default: Vec<String>,
    /// Those that its manifest asks for and that it does not hold.
    pub lacking: Vec<String>,
}

/// An extension whose files were removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemovedExtension {
    /// The folder or the file that it was.
    pub path: PathBuf,
    /// Its data, if it has any.
    pub data: Option<PathBuf>,
    /// Whether it had grants, which were revoked.
    pub revoked: bool,
}

/// Where the settings of extensions are kept, and the extensions themselves.
pub trait Configuration: Send + Sync {
    /// What is set for an extension.
    fn of(&self, extension: &ExtensionId) -> Map<String, Value>;

    /// Saves one value, and reports the extensions that it changes.
    fn set(
        &self,
        extension: &ExtensionId,
        name: &str,
        value: &Value,
        report: &ReportChanges<'_>,
    ) -> Result<(), Problem>;

    /// The extensions that are installed, by id.
    fn installed(&self) -> Vec<InstalledExtension> {
        Vec::new()
    }

    /// Reads an extension again, also if its files seem unchanged, and reports what differs.
    fn read_again(&self, _extension: &ExtensionId, _report: &ReportChanges<'_>) -> Result<(), Problem> {
        Ok(())
    }

    /// Removes the folder or file of an extension, and revokes its grants. Its data stays.
    fn remove(
        &self,
        extension: &ExtensionId,
        _report: &ReportChanges<'_>,
    ) -> Result<RemovedExtension, Problem> {
        Err(Problem::new(Code::ExtensionUnknown, format!("`{extension}` is not in a home")))
    }

    /// Removes the data of an extension.
    fn remove_data(&self, _extension: &ExtensionId) -> Result<(), Problem> {
        Ok(())
    }

    /// What is odd about an extension as it was found, such as unknown fields of its manifest.
    fn warnings(&self, _extension: &ExtensionId) -> Vec<Problem> {
        Vec::new()
    }

    /// Whether content that was active before may run in place of what is installed: it has no grants that were revoked since.
    fn may_stand_in(&self, _found: &FoundExtension) -> Result<(), Problem> {
        Ok(())
    }

    /// Whether an extension that was installed before, and was not found now, is gone: removed or disabled. A problem if that cannot
    /// be told, because something cannot be read.
    fn is_gone(&self, _extension: &ExtensionId) -> Result<(), Problem> {
        Ok(())
    }

    /// Saves a grant to an extension. Its effects follow automatically.
    fn grant(&self, grant: &Grant) -> Result<(), Problem>;
}

/// The operating system's random bytes.
pub struct OsEntropy;

impl Entropy for OsEntropy {
    fn draw(&self, count: u32) -> Vec<u8> {
        let mut bytes = vec![0; count as usize];
        match getrandom::fill(&mut bytes) {
            Ok(()) => bytes,
            Err(_) => Vec::new(),
        }
    }
}

/// Something that happened in a session, for surfaces.
#[derive(Clone, Debug)]
pub enum SessionEvent {
    /// Provisional output of the running turn.
    Output(OutputDelta),
    /// A person must decide on a call. Its frame is durable.
    Approval(Pending),
    /// An extension asks the user. Its frame is durable.
    Question {
        /// The `ui.requested` frame.
        request: Seq,
        /// The extension that asks.
        extension: ExtensionId,
        /// The question.
        question: UiQuestion,
    },
    /// Something that an extension tells the user, in no session.
    Notice {
        /// The extension.
        extension: ExtensionId,
        /// What it says.
        text: String,
    },
    /// The session stopped because its log cannot be written.
    Broken(Problem),
}

/// Provisional output: shown while a turn runs, and not recorded.
#[derive(Clone, Debug)]
pub struct OutputDelta {
    /// The frame that it follows. A delta is shown before any later frame is recorded that depends on it.
    pub after: Seq,
    /// What kind of output it is.
    pub kind: OutputKind,
    /// The piece itself.
    pub text: String,
}

/// What provisional output belongs to.
#[derive(Clone, Debug)]
pub enum OutputKind {
    /// A piece of a model's answer.
    Text {
        /// Bytes of this answer that were shown before it.
        offset: u64,
    },
    /// What a model considers; not part of its answer.
    Reasoning,
    /// How a call is getting on.
    Progress {
        /// The extension that runs it.
        extension: ExtensionId,
    },
}

/// A surface: shows what happens. It decides nothing.
pub trait Surface: Send + Sync {
    /// Shows an event of a session.
    fn show(&self, session: &StreamId, event: SessionEvent);

    /// Whether a person is there to answer for this session. Where none is, the policy says what becomes of a question.
    fn attended(&self, session: &StreamId) -> bool;

    /// Shows the user something that belongs to no turn, where chats are open that show such messages: those of one session, or all.
    /// Says whether there was one.
    fn tell_user(&self, _session: Option<&StreamId>, _extension: &ExtensionId, _text: &str) -> bool {
        false
    }
}

/// A surface that shows nothing.
pub struct SilentSurface;

impl Surface for SilentSurface {
    fn show(&self, _: &StreamId, _: SessionEvent) {}

    fn attended(&self, _: &StreamId) -> bool {
        false
    }
}
