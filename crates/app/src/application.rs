//! A running home: [`Application::open`] reads it and starts its runtime.

use std::sync::{Arc, Mutex};

use holdfast_contract::ids::{ModelName, StreamId};
use holdfast_contract::message::Origin;
use holdfast_contract::problem::{Code, Problem, Severity};
use holdfast_home::{Home, HomeEnvironment, Prompts, Settings};
use holdfast_loader::{Changes, FolderWatcher, HomeVault, Loader};
use holdfast_model::detect::DetectedProvider;
use holdfast_policy::{Policy, Rule};
use holdfast_runtime::{
    HomeParts, NewSession, OsEntropy, Parts, Routes, Runtime, SessionRequest, Surface, SystemClock,
    ToolsShown,
};
use holdfast_store::{Store, StoreOptions};

use crate::config::{ApplicationConfig, BuiltInContext};
use crate::home_configuration::{HomeConfiguration, watch};
use crate::lanes::{lanes, quiet};
use crate::models::ModelCatalog;
use crate::secrets::secrets;
use crate::session_factory::MainSessionFactory;
use crate::zone::host_zone;

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
    session_factory: Arc<MainSessionFactory>,
    _watch: Option<FolderWatcher>,
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
        let context = BuiltInContext { home, workspace: workspace.as_deref(), settings: &settings };
        let mut built_ins = built_ins(&context);
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
        let Changes { found, rejected, warnings: loader_warnings, .. } = loader.scan(&policy);
        warnings.extend(loader_warnings);
        let faults = rejected.iter().map(|(id, problem)| (id.clone(), problem.to_fault())).collect();
        let unusable = rejected.into_iter().map(|(_, problem)| problem.with(Severity::Warning));
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
        let lanes = lanes(plan, &settings, &vault, secrets.as_ref(), quiet);
        let loader = Mutex::new(loader);
        let configuration =
            Arc::new(HomeConfiguration { home: home.clone(), profile: profile.clone(), loader });
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
            routes: Routes { channels: settings.channels.clone(), opener: Some(session_factory.clone()) },
            home: HomeParts {
                zone,
                secrets,
                configuration: Some(configuration.clone()),
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
        let watch = watch(configuration, runtime.clone());
        let watch = watch.map_err(|problem| warnings.push(problem)).ok();
        let (home, profile) = (home.clone(), profile.clone());
        let found = offered.found;
        Ok(Self { runtime, settings, model, found, warnings, home, profile, session_factory, _watch: watch })
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

    /// Writes a rule into the home's policy, and gives the policy that is in force then.
    pub fn remember(&self, rule: &Rule) -> Result<Policy, Problem> {
        self.home.remember_rule(rule)?;
        self.home.policy(self.profile.as_deref())
    }
}
