//! The test harness for authors: loads an extension from its folder, runs its test cases, and offers it to what-if trials. It needs
//! no home and writes nothing outside a temporary directory.

mod cases;
mod host;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdfast_contract::digest::Digest;
use holdfast_contract::ids::{Generation, Millis};
use holdfast_contract::log::LogSink;
use holdfast_contract::manifest::{Grants, LaneKind, Manifest};
use holdfast_contract::problem::{Code, Problem};
use holdfast_contract::registry::{Descriptor, ExtensionRef};
use holdfast_contract::role::Role;
use holdfast_contract::sandbox::SandboxOptions;
use holdfast_contract::system_frames::LifecycleCommand;
use holdfast_contract::wire::{Call, Instance, Lane, Reply};
use holdfast_lane_declarative::DeclarativeLane;
use holdfast_lane_plugin::{PluginLane, PluginPlaces, ProfileCheck};
use holdfast_lane_process::{AgentFolders, Places, ProcessLane};
use holdfast_lane_wasm::WasmLane;
use holdfast_loader::{Candidate, InMemoryVault, extension_at};
use holdfast_policy::{HeldInterfaces, Policy, Profile};
use holdfast_replay::WhatIfCandidate;
use holdfast_runtime::SystemClock;
use holdfast_runtime::calls::{start_call, wait_timeout};
use holdfast_untrusted_files::{TempFolder, current_project};
use serde_json::{Map, Value};

pub use cases::{Case, CaseOutcome, Cases};

/// The timeout of calls that have none of their own.
const CALL_TIMEOUT: Millis = Millis(60_000);

/// An extension that is loaded in the harness and ready to be called.
pub struct LoadedExtension {
    /// What its manifest says.
    pub manifest: Manifest,
    /// What is odd about the manifest.
    pub warnings: Vec<Problem>,
    /// The digest that grants are tied to.
    pub content: Digest,
    /// What it asks for.
    pub requested: Grants,
    /// What it has.
    pub granted: Grants,
    /// The interfaces of the host that it holds.
    pub held: HeldInterfaces,
    /// What it registers.
    pub descriptors: Vec<Descriptor>,
    instance: Arc<dyn Instance>,
    /// The working directory of a program.
    _temp_dir: TempFolder,
}

impl LoadedExtension {
    /// Reads an extension, checks the component against what it may have, compiles it, and asks it what it registers. A program may not
    /// have the home.
    pub async fn open(
        place: &Path,
        policy: &Policy,
        set: Option<&Map<String, Value>>,
        options: &SandboxOptions,
        (log, environments, home): (Option<LogSink>, PathBuf, &Path),
    ) -> Result<Self, Problem> {
        let Candidate { manifest, warnings, bundle, files } =
            extension_at(place, policy, set, options.budgets)?;
        let (content, granted, kind) = (bundle.content(), bundle.grants.clone(), bundle.lane.clone());
        let vault = InMemoryVault::new(bundle, files);
        let version = manifest.version.as_str().into();
        let (id, digest, generation) = (manifest.id.clone(), vault.digest(), Generation(1));
        let reference = ExtensionRef { id, version, digest, generation };
        let temp_dir = TempFolder::new().map_err(|error| {
            Problem::new(Code::Internal, format!("could not create a temporary directory: {error}"))
        })?;
        // It is held like an extension of the home, with its files in another place.
        let home = home.to_owned();
        let places = Places { environments, home, ..Places::within(temp_dir.path()) };
        let demands = policy.profile_name() == Profile::Safe;
        let instance =
            lane(&kind, options, Arc::new(vault), log, (places, demands))?.load(&reference).await?;
        let loading =
            start_call(&instance, Call::Lifecycle(LifecycleCommand::Load), Arc::<host::LoadHost>::default());
        let reply = wait_timeout(loading, CALL_TIMEOUT, Code::ExtensionFault, Arc::new(SystemClock)).await?;
        let Reply::Descriptors(descriptors) = reply else {
            return Err(Problem::new(
                Code::ExtensionFault,
                format!("{reply:?} is not a valid answer to being loaded"),
            ));
        };
        let requested = manifest.requests();
        let held = HeldInterfaces::new(&kind, policy.profile_name(), granted.interfaces.clone());
        Ok(Self {
            held,
            manifest,
            warnings,
            content,
            requested,
            granted,
            descriptors,
            instance,
            _temp_dir: temp_dir,
        })
    }

    /// Whether it has a role whose functions are called by name.
    pub fn has(&self, role: Role) -> bool {
        self.instance.capabilities().roles.contains(role)
    }

    /// This build as the candidate of a what-if trial.
    pub fn candidate(&self) -> WhatIfCandidate {
        WhatIfCandidate::Extension {
            id: self.manifest.id.clone(),
            instance: self.instance.clone(),
            descriptors: self.descriptors.clone(),
        }
    }
}

/// The lane that an extension needs.
fn lane(
    kind: &str,
    options: &SandboxOptions,
    vault: Arc<InMemoryVault>,
    log: Option<LogSink>,
    (places, demands): (Places, bool),
) -> Result<Arc<dyn Lane>, Problem> {
    let words = DeclarativeLane::new(vault.clone());
    if kind == words.name() {
        return Ok(Arc::new(words));
    }
    for programs in [ProcessLane::new, ProcessLane::python, ProcessLane::node] {
        let programs = programs(vault.clone(), places.clone());
        if kind == programs.name() {
            let avoided: AgentFolders = Arc::new(|| current_project().into_iter().collect());
            let programs = programs.demanding(Arc::new(move || demands)).avoiding(avoided);
            return Ok(Arc::new(match log {
                Some(log) => programs.with_log(log),
                None => programs,
            }));
        }
    }
    if kind == LaneKind::Plugin.as_str() {
        // Reading the extension has asked the policy.
        let allowed: ProfileCheck = Arc::new(|| true);
        let plugins = PluginLane::new(vault, PluginPlaces::within(&places.code), allowed);
        return Ok(Arc::new(match log {
            Some(log) => plugins.with_log(log),
            None => plugins,
        }));
    }
    let lane = WasmLane::new(options.few(), vault)?;
    Ok(Arc::new(match log {
        Some(log) => lane.with_log(log),
        None => lane,
    }))
}
