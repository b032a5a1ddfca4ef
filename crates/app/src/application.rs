//! A running home: [`Application::open`] reads it and starts its runtime. `application/agent_folders.rs` knows the workspaces of its
//! sessions.

mod agent_folders;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdfast_contract::ids::{Millis, ModelName, StreamId};
use holdfast_contract::manifest::Profile;
use holdfast_contract::message::Origin;
use holdfast_contract::names::UnusedOverride;
use holdfast_contract::problem::{Code, Problem, Severity};
use holdfast_home::{Home, HomeEnvironment, Prompts, RetentionSettings, Settings};
use holdfast_lane_mcp::PinStore;
use holdfast_lane_native::Workspace;
use holdfast_loader::{Changes, FolderWatcher, HomeVault, Loader};
use holdfast_model::detect::DetectedProvider;
use holdfast_policy::{Policy, Rule};
use holdfast_runtime::secrets::Secrets;
use holdfast_runtime::{
    FilePlaces, HomeParts, NewSession, OsEntropy, Parts, Preparations, Routes, Runtime, SessionRequest,
    Surface, SystemClock, ToolsShown,
};
use holdfast_secrets::SecretString;
use holdfast_store::{LostFrames, Retention, Store, StoreOptions};
use parking_lot::Mutex;

use crate::application::agent_folders::AgentFolders;
use crate::config::{ApplicationConfig, BuiltInContext};
use crate::home_configuration::{HomeConfiguration, HomeExtensions, NativeExtensions, watch};
use crate::http_client::PinnedClient;
use crate::lanes::{LaneProgress, lanes, quiet, remotes, reported, taken_names, token};
use crate::models::{ModelCatalog, default_model};
use crate::secrets::secrets;
use crate::session_factory::MainSessionFactory;
use crate::unused_settings::unused_settings;
use crate::zone::host_zone;

const DAY: Millis = Millis(86_400_000);
/// How often sessions that were not used in between are released from memory.
const UNUSED_SESSIONS: Millis = Millis(10 * 60_000);

/// A session that a client opens.
pub struct ClientSession {
    /// Its stream.
    pub id: StreamId,
    /// What kind of client it is: `chat`, `run`.
    pub channel: String,
    /// The model, in place of the configured one.
    pub model: Option<ModelName>,
    /// The folder that the client was started in.
    pub folder: Option<PathBuf>,
    /// The profile that the client asks for, in place of the policy's.
    pub profile: Option<Profile>,
}

/// A running home.
pub struct Application {
    /// The runtime.
    pub runtime: Runtime,
    /// The settings.
    pub settings: Settings,
    /// The model that new sessions use.
    pub model: ModelName,
    /// The providers that were detected on this machine, where the settings name no model.
    pub found: Vec<DetectedProvider>,
    /// Problems that do not prevent the start.
    pub warnings: Vec<Problem>,
    home: Home,
    profile: Option<String>,
    /// The folder that the settings name.
    workspace: Option<PathBuf>,
    agent_folders: Arc<AgentFolders>,
    session_factory: Arc<MainSessionFactory>,
    secrets: Option<Arc<Secrets>>,
    _watch: Option<FolderWatcher>,
}

/// What a home is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To run it.
    Run,
    /// To list what is in it: extensions are loaded and not started, no schedule runs and no event is delivered.
    Inspect,
}

impl Application {
    /// Reads the home, starts its runtime and waits until every extension has started or failed. The caller owns the home.
    pub async fn open(plan: &ApplicationConfig, surface: Arc<dyn Surface>) -> Result<Self, Problem> {
        let mut application = Self::begin(plan, surface, Purpose::Run).await?;
        application.runtime.settled().await?;
        application.warnings.extend(application.registration_warnings().await?);
        Ok(application)
    }

    /// Reads the home and begins to start its runtime. The extensions may still be starting when this returns.
    pub async fn begin(
        plan: &ApplicationConfig,
        surface: Arc<dyn Surface>,
        purpose: Purpose,
    ) -> Result<Self, Problem> {
        let ApplicationConfig { home, profile, built_ins, environment, current, .. } = plan;
        let loaded = Settings::load(home)?;
        let mut warnings = loaded.warnings.clone();
        let workspace = loaded.settings.workspace.is_some().then(|| loaded.workspace(home, current));
        let workspace = workspace.transpose()?;
        let settings = loaded.settings;
        let environment = HomeEnvironment::load(home, *environment)?;
        warnings.extend(environment.warnings().iter().cloned());
        let prompts = Prompts::load(home)?;
        let policy = home.policy(profile.as_deref())?;
        let offered = ModelCatalog::new(&settings, &environment).await?;
        let context = BuiltInContext { home, workspace: workspace.as_deref(), settings: &settings };
        let mut built_ins = built_ins(&context);
        for found in &mut built_ins.extensions {
            found.built_in.get_or_insert_default();
        }
        let quiet = quiet(plan, &built_ins.components);
        let taken = taken_names(&built_ins, &settings);
        warnings.extend(built_ins.warnings);
        let store = Store::open(&home.database(), StoreOptions::default())?;
        if let Some(LostFrames { acknowledged, found }) = store.lost_frames() {
            let what = format!("the log had {acknowledged} frames and was found with {found}");
            warnings.push(Problem::warning(Code::StoreCut, what));
        }
        let vault = Arc::new(HomeVault::new(store.clone(), home.generations()));
        let remote_ids = settings.remotes.keys().map(|name| format!("remote-{name}").into());
        let mut loader = Loader::new(
            home.extensions(),
            vault.clone(),
            settings.extensions.clone(),
            settings.wasm.budgets,
            built_ins.extensions.iter().map(|found| found.id.clone()).chain(remote_ids).collect(),
        )
        .at((plan.environment)("HOME").as_deref().map(Path::new), workspace.as_deref())
        .carrying(built_ins.components)
        .naming(settings.named_extensions(home.root()));
        // Watched for approvals. Where it cannot be made, nothing can be approved either.
        drop(PinStore::new(home.mcp()).prepare());
        let Changes { found, rejected, warnings: loader_warnings, .. } = loader.scan(&policy);
        warnings.extend(loader_warnings);
        let faults = rejected.iter().map(|(id, problem)| (id.clone(), problem.to_located_fault())).collect();
        let unusable = rejected.into_iter().map(|(_, problem)| problem.with(Severity::Warning));
        let stand_in = default_model(&offered, &settings, environment);
        let model = offered.default;
        warnings.extend(offered.warnings);
        let session_factory =
            Arc::new(MainSessionFactory { settings: settings.clone(), model: model.clone(), prompts });
        let zone = host_zone(plan.environment);
        let (place, set, variables) = (home.clone(), settings.clone(), plan.environment);
        let opened = tokio::task::spawn_blocking(move || secrets(&place, &set, variables)).await;
        let broken =
            |error| Problem::new(Code::Internal, format!("the secrets could not be opened: {error}"));
        let secrets = match opened.map_err(broken)? {
            Ok(secrets) => Some(Arc::new(secrets)),
            Err(problem) => {
                warnings.push(problem.with(Severity::Warning));
                None
            }
        };
        let clock = Arc::new(SystemClock);
        let preparations = Arc::new(Preparations::new(clock.clone()));
        let progress = LaneProgress {
            components: reported(preparations.clone(), quiet),
            packages: reported(preparations.clone(), Arc::new(plan.progress)),
        };
        let agent_folders = Arc::new(AgentFolders::new(plan, store.clone(), workspace.clone()));
        let avoided = agent_folders.clone();
        let avoided = Arc::new(move || avoided.all());
        let lanes = lanes(plan, &settings, &vault, secrets.as_ref(), (progress, avoided, taken));
        let remotes = remotes(plan, &settings, secrets.as_ref());
        let always = built_ins.extensions.iter().map(|found| found.id.clone()).collect();
        built_ins.extensions.extend(remotes.found());
        let native = NativeExtensions::new(built_ins.extensions, &settings, home.extensions());
        let enabled = native.enabled();
        let extensions = Mutex::new(HomeExtensions { loader, native });
        let configuration =
            Arc::new(HomeConfiguration { home: home.clone(), profile: profile.clone(), extensions });
        let tools = ToolsShown { always, at_most: settings.tools.show_at_most as usize };
        let runtime = Runtime::begin(Parts {
            store,
            clock,
            entropy: Arc::new(OsEntropy),
            models: offered.models,
            lanes: built_ins.lanes.into_iter().chain(lanes).chain([Arc::new(remotes) as _]).collect(),
            extensions: enabled.into_iter().chain(found).collect(),
            policy,
            surface,
            routes: Routes { channels: settings.channels.clone(), opener: Some(session_factory.clone()) },
            home: HomeParts {
                zone,
                secrets: secrets.clone(),
                configuration: Some(configuration.clone()),
                rejected: faults,
                agents: settings.agents.clone(),
                default_model: Some(stand_in),
                limits: settings.limits,
                calls: settings.calls.clone(),
                context: settings.context.clone(),
                tools,
                overrides: Some(settings.overrides.clone()),
                executing: Some(home.generations().join("executing")),
                preparations: Some(preparations),
                inspects: purpose == Purpose::Inspect,
                places: Some(Arc::new(FilePlaces {
                    data: home.all_data(),
                    home: home.root().to_owned(),
                    user: (plan.environment)("HOME").map(PathBuf::from).unwrap_or_default(),
                })),
                http: Some(Arc::new(PinnedClient)),
                variables: plan.environment,
            },
        })
        .await?;
        warnings.extend(unusable);
        let watch = watch(configuration, runtime.clone());
        let watch = watch.map_err(|problem| warnings.push(problem)).ok();
        let (home, profile) = (home.clone(), profile.clone());
        let found = offered.found;
        Ok(Self {
            runtime,
            settings,
            model,
            found,
            warnings,
            home,
            profile,
            workspace,
            agent_folders,
            session_factory,
            secrets,
            _watch: watch,
        })
    }

    /// Warnings about what extensions register: tools that they do not get because their names are reserved, and overrides and settings
    /// that name nothing.
    pub async fn registration_warnings(&self) -> Result<Vec<Problem>, Problem> {
        let extensions = self.runtime.extensions().await?;
        let agents = self.runtime.registry().agents.iter().map(|agent| agent.id.to_string()).collect();
        let unused_settings = unused_settings(&self.home, &self.settings, &extensions, &agents);
        let conflicts = extensions.into_iter().flat_map(|view| view.conflicts);
        let reserved =
            conflicts.filter(|fault| matches!(fault.code, Code::ToolReserved | Code::KindUnconsumed));
        let reserved = reserved.map(|fault| Problem::from(fault).with(Severity::Warning));
        let unused =
            self.runtime.unused_overrides().await?.into_iter().map(|UnusedOverride { kind, id, similar }| {
                let message = format!("`overrides.{kind}.{id}` names nothing that is registered");
                let problem = Problem::warning(Code::OverrideUnknown, message);
                match similar {
                    Some(similar) => problem.help(format!("Did you mean `overrides.{kind}.{similar}`?")),
                    None => problem,
                }
            });
        let models = self.runtime.unconfigured_models().into_iter().map(|name| {
            let message = format!("an agent names the model `{name}`, which is not configured");
            let help = format!(
                "The default provider is asked for it, and otherwise `{}` is used. `models: {{ {name}: … }}` in the settings configures it.",
                self.model
            );
            Problem::warning(Code::ModelUnknown, message).help(help)
        });
        Ok(reserved.chain(unused).chain(unused_settings).chain(models).collect())
    }

    /// Applies the retention of the settings now and every day, and releases sessions that nobody uses, as long as the home is open.
    pub fn keep_tidy(&self) {
        let RetentionSettings { keep_days, keep_frames } = self.settings.retention;
        let max_age = keep_days.map(|days| Millis(u64::from(days).saturating_mul(DAY.0)));
        self.runtime.watch_retention(Retention { max_age, max_frames: keep_frames });
        self.runtime.watch_unused_sessions(UNUSED_SESSIONS);
    }

    /// The value of a secret that the settings name as a token.
    pub fn token(&self, name: &str) -> Result<SecretString, Problem> {
        token(self.secrets.as_deref(), name)
    }

    /// A new session of the main agent, as the home is set.
    pub fn session(
        &self,
        id: StreamId,
        channel: &str,
        model: Option<ModelName>,
    ) -> Result<NewSession, Problem> {
        let origin = Origin { channel: channel.to_owned(), user: None };
        self.session_factory.session(&self.runtime, SessionRequest { id, origin, agent: None }, model)
    }

    /// The same for a client, with the folder and the profile that it names. Where it gets no workspace although its client named a
    /// folder, the second value says why.
    pub fn client_session(&self, asked: ClientSession) -> Result<(NewSession, Option<Problem>), Problem> {
        let ClientSession { id, channel, model, folder, profile } = asked;
        let mut new = self.session(id, &channel, model)?;
        if let (Some(asked), Some(set)) = (profile, &self.profile) {
            let in_force = self.runtime.policy()?.profile_name();
            if asked > in_force {
                let what =
                    format!("the home is up with `--profile {set}`, and a session may only be stricter");
                return Err(Problem::new(Code::ProfilePinned, what)
                    .help("Leave `--profile` out, or start the home again without it."));
            }
        }
        new.settings.pinned_profile = profile;
        let workspace = match (&self.workspace, folder) {
            (Some(named), _) => Ok(Some(named.clone())),
            (None, Some(folder)) => self.checked(&folder).map(Some),
            (None, None) => Ok(None),
        };
        let (workspace, refused) = workspace.map_or_else(|why| (None, Some(why)), |found| (found, None));
        workspace.iter().for_each(|folder| self.agent_folders.add(folder.clone()));
        new.settings.workspace = workspace.and_then(|path| path.to_str().map(Arc::from));
        Ok((new, refused))
    }

    /// A client's folder as a workspace: it must not overlap the home, by any path.
    fn checked(&self, folder: &Path) -> Result<PathBuf, Problem> {
        let warn = |problem: Problem| problem.with(Severity::Warning);
        let folder = self.settings.workspace(&self.home, folder).map_err(warn)?;
        let home = self.home.canonical();
        let found = Workspace::apart_from(&folder, home, self.home.usual()).map_err(warn)?;
        if found.path().to_str().is_none() {
            let what = format!("{} cannot be a workspace: its name is not UTF-8", found.path().display());
            return Err(warn(Problem::new(Code::WorkspaceRefused, what)));
        }
        Ok(found.path().to_owned())
    }

    /// Writes a rule into the home's policy, and gives the policy that is in force then.
    pub fn remember(&self, rule: &Rule) -> Result<Policy, Problem> {
        self.home.remember_rule(rule)?;
        self.home.policy(self.profile.as_deref())
    }
}
