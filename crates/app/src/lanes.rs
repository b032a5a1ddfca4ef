//! The lanes of a home: those that run its extensions, and those that run recorded calls again.

use std::sync::Arc;

use holdfast_contract::ids::ExtensionId;
use holdfast_contract::log::{LogLevel, ProgressSink};
use holdfast_contract::problem::{Code, Problem};
use holdfast_contract::sandbox::SandboxOptions;
use holdfast_contract::wire::Lane;
use holdfast_home::Settings;
use holdfast_lane_declarative::DeclarativeLane;
use holdfast_lane_mcp::{McpLane, McpPlaces};
use holdfast_lane_plugin::{PluginLane, PluginPlaces, ProfileCheck};
use holdfast_lane_process::{AgentFolders, Demand, Places, ProcessLane, TakenNames};
use holdfast_lane_remote::{RemoteLane, RemoteTarget};
use holdfast_lane_wasm::WasmLane;
use holdfast_loader::{EmbeddedComponent, HomeVault};
use holdfast_policy::Profile;
use holdfast_runtime::Preparations;
use holdfast_runtime::secrets::Secrets;
use holdfast_secrets::{SecretName, SecretString};
use holdfast_store::Store;

use crate::config::{ApplicationConfig, BuiltInContext, BuiltIns};

/// Who is told what takes long before extensions can start.
pub(crate) struct LaneProgress {
    /// About the compilation of components.
    pub components: ProgressSink,
    /// About the installation of packages.
    pub packages: ProgressSink,
}

/// The lanes that run a home's own extensions.
pub(crate) fn lanes(
    plan: &ApplicationConfig,
    settings: &Settings,
    vault: &Arc<HomeVault>,
    secrets: Option<&Arc<Secrets>>,
    (progress, agent_folders, taken): (LaneProgress, AgentFolders, TakenNames),
) -> [Arc<dyn Lane>; 7] {
    let wanted = plan.log_level.unwrap_or(settings.log.level);
    // Where it is not known what to redact, nothing is shown.
    let log = plan.log.zip(secrets).map(|(tell, secrets)| {
        let told = move |id: &ExtensionId, level: LogLevel, line: &str| {
            if wanted.includes(level) {
                tell(id, level, line);
            }
        };
        secrets.clone().redacted_log(Arc::new(told))
    });
    let places = Places {
        code: plan.home.generations().join("running"),
        data: plan.home.all_data(),
        environments: plan.home.environments(),
        home: plan.home.root().to_owned(),
    };
    let mut wasm = WasmLane::when_needed(settings.wasm, vault.clone()).with_progress(progress.components);
    let (home, profile) = (plan.home.clone(), plan.profile.clone());
    // A policy that cannot be read demands everything.
    let demand: Demand = Arc::new(move || {
        home.policy(profile.as_deref()).map_or(true, |policy| policy.profile_name() == Profile::Safe)
    });
    let (home, profile) = (plan.home.clone(), plan.profile.clone());
    // A policy that cannot be read allows nothing.
    let trusted: ProfileCheck =
        Arc::new(move || home.policy(profile.as_deref()).is_ok_and(|policy| policy.allows_native_plugins()));
    let plugin_places = PluginPlaces {
        code: places.code.join("plugin"),
        data: places.data.clone(),
        crashed: plan.home.generations().join("crashed"),
    };
    let mut plugins = PluginLane::new(vault.clone(), plugin_places, trusted);
    let mut programs = ProcessLane::new(vault.clone(), places.clone()).demanding(demand.clone());
    let servers = McpPlaces {
        code: places.code.join("mcp"),
        data: places.data.clone(),
        pins: plan.home.mcp(),
        home: places.home.clone(),
    };
    let mut servers = McpLane::new(vault.clone(), servers).demanding(demand.clone());
    let mut packs = ProcessLane::node(vault.clone(), places.clone())
        .beside(&programs)
        .demanding(demand.clone())
        .with_progress(progress.packages.clone())
        .with_taken_names(taken);
    let mut python = ProcessLane::python(vault.clone(), places)
        .beside(&programs)
        .demanding(demand)
        .avoiding(agent_folders)
        .with_progress(progress.packages);
    if let Some(log) = log {
        wasm = wasm.with_log(log.clone());
        programs = programs.with_log(log.clone());
        plugins = plugins.with_log(log.clone());
        servers = servers.with_log(log.clone());
        packs = packs.with_log(log.clone());
        python = python.with_log(log);
    }
    let words = DeclarativeLane::new(vault.clone());
    let (programs, python, packs) = (Arc::new(programs), Arc::new(python), Arc::new(packs));
    [Arc::new(wasm), Arc::new(words), programs, python, packs, Arc::new(plugins), Arc::new(servers)]
}

/// The names of tools that packs do not get: those of built-in extensions, unless the settings give them away.
pub(crate) fn taken_names(built_ins: &BuiltIns, settings: &Settings) -> TakenNames {
    let native = built_ins.extensions.iter().filter_map(|found| found.built_in.clone());
    let components = built_ins.components.iter().map(EmbeddedComponent::built_in);
    let names = native.chain(components).flat_map(|built_in| built_in.tools);
    let reserved = names.map(|name| name.on_wire()).collect();
    TakenNames { reserved, overrides: settings.overrides.clone() }
}

/// The lane of the other Holdfasts that the settings name.
pub(crate) fn remotes(
    plan: &ApplicationConfig,
    settings: &Settings,
    secrets: Option<&Arc<Secrets>>,
) -> RemoteLane {
    let targets = settings.remotes.iter().map(|(name, remote)| RemoteTarget {
        name: name.clone(),
        address: remote.address.clone(),
        token: remote.token.clone(),
        insecure: remote.insecure,
        definitions: remote.definitions.clone(),
    });
    let secrets = secrets.cloned();
    let token = move |name: &str| token(secrets.as_deref(), name).map_err(|problem| problem.to_fault());
    RemoteLane::new(targets.collect(), Arc::new(token), plan.home.all_data())
}

/// A secret that the settings name as a token.
pub(crate) fn token(secrets: Option<&Secrets>, name: &str) -> Result<SecretString, Problem> {
    let closed = || Problem::new(Code::SecretsUnreadable, "the secrets could not be opened");
    let missing = || {
        let what = format!("there is no secret `{name}`, which a token is expected in");
        Problem::new(Code::SecretMissing, what).help(format!("`holdfast secret set {name}` asks for it."))
    };
    let found = secrets.ok_or_else(closed)?.find(&SecretName::global(name)?)?;
    Ok(found.ok_or_else(missing)?.value)
}

/// The lanes that run again what a home's log has recorded.
pub fn recorded_lanes(plan: &ApplicationConfig, store: &Store) -> Result<Vec<Arc<dyn Lane>>, Problem> {
    let settings = Settings::load(&plan.home)?.settings;
    let context = BuiltInContext { home: &plan.home, workspace: None, settings: &settings };
    let vault = Arc::new(HomeVault::new(store.clone(), plan.home.generations()));
    let built_ins = (plan.built_ins)(&context);
    let wasm = WasmLane::when_needed(settings.wasm.few(), vault.clone())
        .with_progress(quiet(plan, &built_ins.components));
    let lanes: [Arc<dyn Lane>; 2] = [Arc::new(wasm), Arc::new(DeclarativeLane::new(vault))];
    Ok(built_ins.lanes.into_iter().chain(lanes).collect())
}

/// Whether this machine gives as much room for sandboxed components as is asked for. Without it they have less.
pub fn room(options: SandboxOptions) -> Result<(), Problem> {
    holdfast_lane_wasm::reserve(&options)
}

/// Progress that is reported to the runtime, which waits for it, and then to this sink.
pub(crate) fn reported(preparations: Arc<Preparations>, sink: ProgressSink) -> ProgressSink {
    Arc::new(move |id: &ExtensionId, progress| {
        preparations.report(id, &progress);
        sink(id, progress);
    })
}

/// Progress of all extensions except the embedded ones, which the user has not installed.
pub(crate) fn quiet(plan: &ApplicationConfig, embedded: &[EmbeddedComponent]) -> ProgressSink {
    let (tell, embedded) = (plan.progress, embedded.to_vec());
    Arc::new(move |id: &ExtensionId, progress| {
        if !embedded.iter().any(|component| component.id == id.as_str()) {
            tell(id, progress);
        }
    })
}
