//! A home's runtime: its models, policy, prompts and built-in extensions, as the home is set.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use holdfast_contract::content::Content;
use holdfast_contract::ids::{AgentId, ExtensionId, ModelName, StreamId};
pub use holdfast_contract::log::Progress;
use holdfast_contract::log::{LogLevel, ProgressSink};
use holdfast_contract::message::{Limits, Origin};
use holdfast_contract::names::ReservedNames;
use holdfast_contract::problem::{Code, Problem, Severity};
use holdfast_contract::sandbox::SandboxOptions;
use holdfast_contract::session_frames::SessionSettings;
use holdfast_contract::system_frames::FoundExtension;
use holdfast_contract::wire::Lane;
use holdfast_home::{
    Home, HomeEnvironment, ModelSettings, OFFLINE, ORCHESTRATOR, PromptContext, PromptTool, Prompts,
    SecretPlace, Settings,
};
use holdfast_lane_declarative::DeclarativeLane;
use holdfast_lane_process::{Demand, Places, ProcessLane};
use holdfast_lane_wasm::WasmLane;
use holdfast_model::cassette::Recorder;
use holdfast_model::detect::{self, DetectedProvider};
use holdfast_model::provider::{Provider, ProviderSettings, usual_key};
use holdfast_model::{Model, built_in, open_file};
use holdfast_policy::{Grant, Policy, Profile, Rule};
use holdfast_secrets::{
    Chain, Digester, EncryptedFile, EnvironmentStore as VariableStore, Keyring, PASSPHRASE_VARIABLE,
    SecretName, SecretStore, SecretStoreState, SecretString, StoreKind,
};
use holdfast_store::{Store, StoreOptions};

use serde_json::{Map, Value};

use crate::clock::SystemClock;
use crate::discovery::{ToolsShown, shown};
use crate::embedded::EmbeddedComponent;
use crate::host::secrets::Secrets;
use crate::loader::{Changes, Loader};
use crate::messaging::{Routes, SessionFactory, SessionRequest};
use crate::parts::{Configuration, HomeParts, OsEntropy, Parts, Surface, Zone};
use crate::runtime::{NewSession, Runtime};
use crate::vault::HomeVault;
use crate::watch::FolderWatcher;

/// What built-in extensions may stand on.
pub struct BuiltInContext<'a> {
    /// The home.
    pub home: &'a Home,
    /// The folder that tools may touch; none if it overlaps the home.
    pub workspace: Option<&'a Path>,
    /// The settings.
    pub settings: &'a Settings,
}

/// The extensions that are built into the program.
#[derive(Default)]
pub struct BuiltIns {
    /// The lanes that run them.
    pub lanes: Vec<Arc<dyn Lane>>,
    /// What is there.
    pub extensions: Vec<FoundExtension>,
    /// Those that the home's own lanes run.
    pub components: Vec<EmbeddedComponent>,
    /// What is not there, and why.
    pub warnings: Vec<Problem>,
}

/// Makes the built-in extensions.
pub type MakeBuiltIns = fn(&BuiltInContext<'_>) -> BuiltIns;

/// What a house is made from.
pub struct ApplicationConfig {
    /// The home.
    pub home: Home,
    /// The policy profile that takes the place of the file's.
    pub profile: Option<String>,
    /// The built-in extensions.
    pub built_ins: MakeBuiltIns,
    /// A variable of the process.
    pub environment: fn(&str) -> Option<OsString>,
    /// The folder that the program was started in.
    pub current: PathBuf,
    /// Told what takes long while extensions come up.
    pub progress: fn(&ExtensionId, Progress),
    /// Told what extensions log; nobody where nobody looks.
    pub log: Option<fn(&ExtensionId, LogLevel, &str)>,
}

/// A home that is lived in.
pub struct Application {
    /// The runtime.
    pub runtime: Runtime,
    /// The settings.
    pub settings: Settings,
    /// The model that new sessions use.
    pub model: ModelName,
    /// What was found on this machine, where the settings name no model.
    pub found: Vec<DetectedProvider>,
    /// What is odd; none of it stops anything.
    pub warnings: Vec<Problem>,
    home: Home,
    profile: Option<String>,
    founder: Arc<MainSessionFactory>,
    _watch: Option<FolderWatcher>,
}

/// Makes sessions of the main agent.
struct MainSessionFactory {
    settings: Settings,
    model: ModelName,
    prompts: Prompts,
}

impl MainSessionFactory {
    fn session(
        &self,
        runtime: &Runtime,
        opening: SessionRequest,
        model: Option<ModelName>,
    ) -> Result<NewSession, Problem> {
        let SessionRequest { id, origin, agent: asked } = opening;
        let agent = AgentId::from("main");
        if let Some(asked) = asked.filter(|asked| *asked != agent) {
            let problem = Problem::new(Code::ExtensionUnknown, format!("there is no agent `{asked}`"));
            return Err(problem.help("`holdfast agents` shows those that are active."));
        }
        let set = self.settings.agents.get(&agent).cloned().unwrap_or_default();
        let model = model.or(set.model).unwrap_or_else(|| self.model.clone());
        let models = std::iter::once(&model).chain(&set.fallback).cloned().collect();
        runtime.model(&model)?;
        let registry = runtime.registry();
        let shown = shown(&registry, |_| true, &[], runtime.tools_shown());
        let tools = shown.into_iter().filter_map(|entry| {
            let description = entry.stack.first()?.spec.description.clone();
            Some(PromptTool { name: entry.name.to_string(), description })
        });
        let channels = registry.others.iter().filter(|entry| entry.kind.as_str() == "channel");
        let context = PromptContext {
            agent: agent.to_string(),
            date: Some(runtime.date()),
            tools: tools.collect(),
            capabilities: Vec::new(),
            channels: channels.map(|entry| entry.id.to_string()).collect(),
        };
        let instructions = self.prompts.render(ORCHESTRATOR, &context)?;
        let instructions = match set.instructions {
            Some(more) => format!("{instructions}\n\n{more}"),
            None => instructions,
        };
        let limits = self.settings.limits(&agent, Limits::default());
        Ok(NewSession {
            id,
            origin,
            agent,
            instructions: Content::text(instructions),
            settings: SessionSettings {
                models,
                limits,
                context: self.settings.context.clone(),
                ..SessionSettings::default()
            },
        })
    }
}

impl SessionFactory for MainSessionFactory {
    fn create_session(&self, runtime: &Runtime, opening: SessionRequest) -> Result<NewSession, Problem> {
        self.session(runtime, opening, None)
    }
}

/// The home's folder as extensions lie in it and are set there.
struct HomeConfiguration {
    home: Home,
    profile: Option<String>,
    loader: Mutex<Loader>,
}

impl HomeConfiguration {
    /// Looks at the extensions again, as they are set now.
    fn look(&self, policy: &Policy) -> (Changes, Vec<PathBuf>) {
        let mut loader = self.loader.lock().unwrap_or_else(PoisonError::into_inner);
        // Settings that cannot be read leave those in force where they are.
        if let Ok(loaded) = Settings::load(&self.home) {
            loader.set(loaded.settings.extensions);
        }
        (loader.scan(policy), loader.folders())
    }
}

impl Configuration for HomeConfiguration {
    fn of(&self, extension: &ExtensionId) -> Map<String, Value> {
        let loaded = Settings::load(&self.home).map(|loaded| loaded.settings).unwrap_or_default();
        loaded.extensions.get(extension).cloned().unwrap_or_default()
    }

    fn set(
        &self,
        extension: &ExtensionId,
        name: &str,
        value: &Value,
    ) -> Result<Vec<FoundExtension>, Problem> {
        self.home.set_extension(extension, name, value)?;
        Ok(self.look(&self.home.policy(self.profile.as_deref())?).0.found)
    }

    fn is_gone(&self, extension: &ExtensionId) -> Result<(), Problem> {
        self.loader.lock().unwrap_or_else(PoisonError::into_inner).is_gone(extension)
    }

    fn grant(&self, grant: &Grant) -> Result<(), Problem> {
        self.home.remember_grant(grant).map(drop)
    }
}

/// The secrets of a home: its variables, its encrypted file, and the keyring where the settings name it.
pub fn secrets(
    home: &Home,
    settings: &Settings,
    environment: fn(&str) -> Option<OsString>,
) -> Result<Secrets, Problem> {
    let passphrase = environment(PASSPHRASE_VARIABLE).and_then(|text| text.into_string().ok());
    let mut stores: Vec<Box<dyn SecretStore>> = vec![
        Box::new(VariableStore::new(home.root(), environment)),
        Box::new(EncryptedFile::new(home.root(), passphrase.map(SecretString::from))),
    ];
    let writes_to = match settings.secrets.store {
        SecretPlace::File => StoreKind::File,
        SecretPlace::Environment => StoreKind::Environment,
        SecretPlace::Keyring => {
            stores.push(Box::new(Keyring::new(home.root())));
            StoreKind::Keyring
        }
    };
    let keys = settings.models.named.values().filter_map(|model| {
        model.api_key_env.clone().or_else(|| usual_key(&model.provider).map(str::to_owned))
    });
    let also = keys.filter_map(|name| SecretName::global(&name).ok()).collect();
    Secrets::new(Chain::new(stores, writes_to)?, Digester::open(home.root())?, also)
}

/// What `doctor` says of the keyring: how many secrets are in it, where the settings name it as the place for secrets.
pub fn keyring(home: &Home, settings: &Settings) -> Result<String, Problem> {
    match settings.secrets.store {
        SecretPlace::Keyring => {
            let description = Keyring::new(home.root()).describe();
            match description.state {
                SecretStoreState::Ready { secrets } => {
                    Ok(format!("{secrets} secrets in {}", description.place))
                }
                SecretStoreState::Trouble(problem) => Err(problem),
            }
        }
        _ if Keyring::SUPPORTED => {
            Ok("not used: `secrets.store` in the settings names another place".to_owned())
        }
        _ => Ok("not used, and this build has no keyring support (`--features keyring`)".to_owned()),
    }
}

/// Keeps a running home in step with its folder: extensions that come, change and go, and the policy.
fn watch(premises: Arc<HomeConfiguration>, runtime: Runtime) -> Result<FolderWatcher, Problem> {
    let home = premises.home.clone();
    // Without the folder there is nothing to watch; where it cannot be made, nothing can be dropped into it either.
    let mut private = std::fs::DirBuilder::new();
    std::os::unix::fs::DirBuilderExt::mode(private.recursive(true), 0o700);
    drop(private.create(home.extensions()));
    FolderWatcher::begin(move || {
        // A policy that cannot be read leaves the one in force where it is; `policy show` says what is wrong with it.
        let in_force = runtime.policy().ok();
        let mut folders = Vec::new();
        if let Ok(policy) = home.policy(premises.profile.as_deref()) {
            if in_force.is_none_or(|in_force| in_force.digest() != policy.digest()) {
                drop(runtime.set_policy(policy.clone(), "the file changed"));
            }
            let (Changes { found, removed, rejected, .. }, watched) = premises.look(&policy);
            folders = watched;
            if !found.is_empty() {
                runtime.found(found);
            }
            removed.into_iter().for_each(|id| runtime.removed(id));
            rejected.into_iter().for_each(|(id, problem)| runtime.rejected(id, problem.to_fault()));
        }
        folders.into_iter().chain(home.policy_file().parent().map(Path::to_owned)).collect()
    })
}

impl Application {
    /// Reads the home and starts its runtime. The caller owns the home.
    pub async fn open(plan: &ApplicationConfig, surface: Arc<dyn Surface>) -> Result<Self, Problem> {
        let ApplicationConfig { home, profile, built_ins, environment, current, .. } = plan;
        let loaded = Settings::load(home)?;
        let mut warnings = loaded.warnings.clone();
        let workspace = match loaded.workspace(home, current) {
            Ok(workspace) => Some(workspace),
            Err(problem) if problem.severity == Severity::Warning => {
                warnings.push(problem);
                None
            }
            Err(problem) => return Err(problem),
        };
        let settings = loaded.settings;
        let environment = HomeEnvironment::load(home, *environment)?;
        warnings.extend(environment.warnings().iter().cloned());
        let prompts = Prompts::load(home)?;
        let policy = home.policy(profile.as_deref())?;
        let offered = ModelCatalog::new(&settings, &environment).await?;
        let ground = BuiltInContext { home, workspace: workspace.as_deref(), settings: &settings };
        let mut built_ins = built_ins(&ground);
        for found in &mut built_ins.extensions {
            found.built_in.get_or_insert_default();
        }
        let quiet = quiet(plan, &built_ins.components);
        warnings.extend(built_ins.warnings);
        let store = Store::open(&home.database(), StoreOptions::default())?;
        let vault = Arc::new(HomeVault::new(store.clone(), home.generations()));
        let mut loader = Loader::new(
            home.extensions(),
            vault.clone(),
            settings.extensions.clone(),
            settings.wasm.budgets,
            built_ins.extensions.iter().map(|found| found.id.clone()).collect(),
        )
        .carrying(built_ins.components);
        let Changes { found, rejected, warnings: odd, .. } = loader.scan(&policy);
        warnings.extend(odd);
        let faults = rejected.iter().map(|(id, problem)| (id.clone(), problem.to_fault())).collect();
        let unusable = rejected.into_iter().map(|(_, problem)| problem.with(Severity::Warning));
        let model = offered.default;
        warnings.extend(offered.warnings);
        let founder =
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
        let lanes = lanes(plan, &settings, &vault, secrets.as_ref(), quiet);
        let loader = Mutex::new(loader);
        let premises = Arc::new(HomeConfiguration { home: home.clone(), profile: profile.clone(), loader });
        let always = built_ins.extensions.iter().map(|found| found.id.clone()).collect();
        let tools = ToolsShown { always, at_most: settings.tools.show_at_most as usize };
        let runtime = Runtime::start(Parts {
            store,
            clock: Arc::new(SystemClock),
            entropy: Arc::new(OsEntropy),
            models: offered.models,
            lanes: built_ins.lanes.into_iter().chain(lanes).collect(),
            extensions: built_ins.extensions.into_iter().chain(found).collect(),
            policy,
            surface,
            routes: Routes { channels: settings.channels.clone(), opener: Some(founder.clone()) },
            home: HomeParts {
                zone,
                secrets,
                configuration: Some(premises.clone()),
                rejected: faults,
                agents: settings.agents.clone(),
                limits: settings.limits,
                calls: settings.calls.clone(),
                context: settings.context.clone(),
                tools,
            },
        })
        .await?;
        warnings.extend(unusable);
        runtime.set_overrides(settings.overrides.clone());
        for view in runtime.extensions().await? {
            let reserved = view.conflicts.into_iter().filter(|fault| fault.code == Code::ToolReserved);
            warnings.extend(reserved.map(|fault| Problem::from(fault).with(Severity::Warning)));
        }
        let watch = watch(premises, runtime.clone());
        let watch = watch.map_err(|problem| warnings.push(problem)).ok();
        let (home, profile) = (home.clone(), profile.clone());
        let found = offered.found;
        Ok(Self { runtime, settings, model, found, warnings, home, profile, founder, _watch: watch })
    }

    /// A new session of the main agent, as the home is set.
    pub fn session(
        &self,
        id: StreamId,
        channel: &str,
        model: Option<ModelName>,
    ) -> Result<NewSession, Problem> {
        let origin = Origin { channel: channel.to_owned(), user: None };
        self.founder.session(&self.runtime, SessionRequest { id, origin, agent: None }, model)
    }

    /// Writes a rule into the home's policy, and gives the policy that is in force then.
    pub fn remember(&self, rule: &Rule) -> Result<Policy, Problem> {
        self.home.remember_rule(rule)?;
        self.home.policy(self.profile.as_deref())
    }
}

/// The names of tools that no extension of this home gets, because they are those of built-in ones.
pub fn reserved_names(plan: &ApplicationConfig, settings: &Settings) -> ReservedNames {
    let ground = BuiltInContext { home: &plan.home, workspace: None, settings };
    let built_ins = (plan.built_ins)(&ground);
    let mut reserved = ReservedNames::default();
    for found in built_ins.extensions {
        reserved.reserve(&found.id, found.built_in.unwrap_or_default().tools);
    }
    for component in built_ins.components {
        reserved.reserve(&component.extension(), component.built_in().tools);
    }
    reserved
}

/// Whether this machine gives as much room for sandboxed components as is asked for. Without it they have less.
pub fn room(options: SandboxOptions) -> Result<(), Problem> {
    holdfast_lane_wasm::reserve(&options)
}

/// Tells what takes long, but for what the program carries itself: nobody has installed it.
fn quiet(plan: &ApplicationConfig, carried: &[EmbeddedComponent]) -> ProgressSink {
    let (tell, carried) = (plan.progress, carried.to_vec());
    Arc::new(move |id: &ExtensionId, progress| {
        if !carried.iter().any(|component| component.id == id.as_str()) {
            tell(id, progress);
        }
    })
}

/// The lanes that run a home's own extensions.
fn lanes(
    plan: &ApplicationConfig,
    settings: &Settings,
    vault: &Arc<HomeVault>,
    secrets: Option<&Arc<Secrets>>,
    progress: ProgressSink,
) -> [Arc<dyn Lane>; 4] {
    let wanted = settings.log.level;
    // Where it is not known what to hide, nothing is shown.
    let log = plan.log.zip(secrets).map(|(tell, secrets)| {
        let told = move |id: &ExtensionId, level: LogLevel, line: &str| {
            if wanted.includes(level) {
                tell(id, level, line);
            }
        };
        secrets.clone().hide_in_log(Arc::new(told))
    });
    let places = Places {
        code: plan.home.generations().join("running"),
        data: plan.home.all_data(),
        environments: plan.home.environments(),
    };
    let mut wasm = WasmLane::when_needed(settings.wasm, vault.clone()).with_progress(progress);
    let (home, profile) = (plan.home.clone(), plan.profile.clone());
    // A policy that cannot be read demands everything.
    let demand: Demand = Arc::new(move || {
        home.policy(profile.as_deref()).map_or(true, |policy| policy.profile_name() == Profile::Safe)
    });
    let mut programs = ProcessLane::new(vault.clone(), places.clone()).demanding(demand.clone());
    let mut python = ProcessLane::python(vault.clone(), places)
        .beside(&programs)
        .demanding(demand)
        .with_progress(Arc::new(plan.progress));
    if let Some(log) = log {
        wasm = wasm.with_log(log.clone());
        programs = programs.with_log(log.clone());
        python = python.with_log(log);
    }
    let words = DeclarativeLane::new(vault.clone());
    [Arc::new(wasm), Arc::new(words), Arc::new(programs), Arc::new(python)]
}

/// The lanes that run again what a home's log has recorded.
pub fn recorded_lanes(plan: &ApplicationConfig, store: &Store) -> Result<Vec<Arc<dyn Lane>>, Problem> {
    let settings = Settings::load(&plan.home)?.settings;
    let ground = BuiltInContext { home: &plan.home, workspace: None, settings: &settings };
    let vault = Arc::new(HomeVault::new(store.clone(), plan.home.generations()));
    let built_ins = (plan.built_ins)(&ground);
    let wasm = WasmLane::when_needed(settings.wasm.few(), vault.clone())
        .with_progress(quiet(plan, &built_ins.components));
    let lanes: [Arc<dyn Lane>; 2] = [Arc::new(wasm), Arc::new(DeclarativeLane::new(vault))];
    Ok(built_ins.lanes.into_iter().chain(lanes).collect())
}

/// The time zone of this machine: what `TZ` names, or what `/etc/localtime` leads to; without either, UTC.
fn host_zone(environment: fn(&str) -> Option<OsString>) -> Zone {
    let variable = environment("TZ").and_then(|zone| zone.into_string().ok());
    let link = || Some(std::fs::read_link("/etc/localtime").ok()?.to_str()?.to_owned());
    let name = variable.filter(|zone| !zone.is_empty()).or_else(link).unwrap_or_default();
    let name = name.rsplit_once("zoneinfo/").map_or(name.as_str(), |(_, name)| name);
    Zone::named(name.trim_start_matches(':')).unwrap_or_else(|_| Zone::utc())
}

/// The models that a home offers.
pub struct ModelCatalog {
    /// Those that are configured or were found, by name.
    pub models: BTreeMap<ModelName, Arc<dyn Model>>,
    /// The one that new sessions use.
    pub default: ModelName,
    /// What was found on this machine, where the settings name no model.
    pub found: Vec<DetectedProvider>,
    /// What is odd; none of it stops anything.
    pub warnings: Vec<Problem>,
}

impl ModelCatalog {
    /// What a home offers, whoever owns it.
    pub async fn read(plan: &ApplicationConfig, settings: &Settings) -> Result<Self, Problem> {
        Self::new(settings, &HomeEnvironment::load(&plan.home, plan.environment)?).await
    }

    /// A model by its name, which the owner of the home gives: it may be a file.
    pub async fn model(&self, name: &ModelName) -> Result<Arc<dyn Model>, Problem> {
        if let Some(model) = self.models.get(name).cloned().or_else(|| built_in(name.as_str())) {
            return Ok(model);
        }
        open_file(name.as_str()).await.unwrap_or_else(|| Err(unknown(name, &self.models)))
    }

    async fn new(settings: &Settings, environment: &HomeEnvironment) -> Result<Self, Problem> {
        let mut models: BTreeMap<ModelName, Arc<dyn Model>> = BTreeMap::new();
        let (mut found, mut warnings) = (Vec::new(), Vec::new());
        let default = settings.models.default.clone();
        for (name, set) in &settings.models.named {
            match configured(name, set, environment).await {
                Ok(model) => drop(models.insert(name.clone(), model)),
                // A model that nobody asks for stands in nobody's way.
                Err(problem) if default.as_ref() != Some(name) => {
                    warnings.push(problem.with(Severity::Warning))
                }
                Err(problem) => return Err(problem),
            }
        }
        let agents = settings.agents.values().flat_map(|agent| agent.model.iter().chain(&agent.fallback));
        for name in default.iter().chain(agents) {
            if models.contains_key(name) {
                continue;
            }
            match open_file(name.as_str()).await {
                Some(Ok(model)) => drop(models.insert(name.clone(), model)),
                Some(Err(problem)) if default.as_ref() == Some(name) => return Err(problem),
                Some(Err(problem)) => warnings.push(problem.with(Severity::Warning)),
                None => {}
            }
        }
        let default = match default {
            Some(name) => {
                let known = models.contains_key(&name) || built_in(name.as_str()).is_some();
                known.then_some(name.clone()).ok_or_else(|| unknown(&name, &models))?
            }
            None => {
                let variable = |name: &str| {
                    use secrecy::ExposeSecret;
                    environment.get(name).map(|value| value.expose_secret().to_owned())
                };
                found = detect::detect(variable).await;
                let first = found.iter().find(|found| !found.model.is_empty());
                match first.map(|found| (ModelName::from(found.provider), detected(found, environment))) {
                    Some((name, Ok(model))) => {
                        models.insert(name.clone(), model);
                        name
                    }
                    Some((_, Err(problem))) => {
                        warnings.push(problem.with(Severity::Warning));
                        OFFLINE.into()
                    }
                    None => OFFLINE.into(),
                }
            }
        };
        Ok(Self { models, default, found, warnings })
    }
}

/// A model as the settings have it, on tape if they say so.
async fn configured(
    name: &ModelName,
    set: &ModelSettings,
    environment: &HomeEnvironment,
) -> Result<Arc<dyn Model>, Problem> {
    let model = provided(name, set, environment).await?;
    match &set.record {
        Some(tape) => Ok(Arc::new(Recorder::new(model, Path::new(tape))?)),
        None => Ok(model),
    }
}

async fn provided(
    name: &ModelName,
    set: &ModelSettings,
    environment: &HomeEnvironment,
) -> Result<Arc<dyn Model>, Problem> {
    let named = match (set.provider.as_str(), &set.file) {
        ("script" | "cassette", Some(file)) => format!("{}:{file}", set.provider),
        _ => set.provider.clone(),
    };
    if let Some(model) = built_in(&named) {
        return Ok(model);
    }
    if let Some(opened) = open_file(&named).await {
        return opened;
    }
    let key_from = set.api_key_env.clone().or_else(|| usual_key(&set.provider).map(str::to_owned));
    let provider = Provider::new(ProviderSettings {
        name: name.to_string(),
        provider: set.provider.clone(),
        model: set.model.clone().unwrap_or_default(),
        base_url: set.base_url.clone(),
        key: key_from.as_deref().and_then(|variable| environment.get(variable)),
        key_from,
        reasoning: set.reasoning.clone(),
        price_in: set.price_in.map(|price| price.micros as f64 / 1e6),
        price_out: set.price_out.map(|price| price.micros as f64 / 1e6),
    })?;
    Ok(Arc::new(provider))
}

fn detected(found: &DetectedProvider, environment: &HomeEnvironment) -> Result<Arc<dyn Model>, Problem> {
    let provider = Provider::new(ProviderSettings {
        name: found.provider.to_owned(),
        provider: found.provider.to_owned(),
        model: found.model.clone(),
        base_url: found.base_url.clone(),
        key: found.key_env.and_then(|variable| environment.get(variable)),
        key_from: found.key_env.map(str::to_owned),
        ..ProviderSettings::default()
    })?;
    Ok(Arc::new(provider))
}

fn unknown(name: &ModelName, models: &BTreeMap<ModelName, Arc<dyn Model>>) -> Problem {
    let names: Vec<&str> = models.keys().map(|name| name.as_str()).chain([OFFLINE]).collect();
    Problem::new(Code::ModelUnknown, format!("there is no model `{name}`"))
        .help(format!("There are: {}. `config/settings.yaml` configures more.", names.join(", ")))
}
