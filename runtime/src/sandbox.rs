//! The WASM lane of a home, made when the first component is loaded: a home without components pays nothing for it.

use std::sync::{Arc, OnceLock};

use holdfast_contract::ids::ExtensionId;
use holdfast_contract::problem::{Fault, Problem};
use holdfast_contract::registry::ExtensionRef;
use holdfast_contract::sandbox::SandboxOptions;
use holdfast_contract::wire::{Instance, Lane, Later, Vault};
use holdfast_lane_wasm::{Progress, WasmLane};

/// A lane that is not there until it is needed.
pub(crate) struct LazyLane {
    options: SandboxOptions,
    vault: Arc<dyn Vault>,
    progress: fn(&ExtensionId, Progress),
    lane: OnceLock<Result<WasmLane, Problem>>,
}

impl LazyLane {
    pub(crate) fn new(
        options: SandboxOptions,
        vault: Arc<dyn Vault>,
        progress: fn(&ExtensionId, Progress),
    ) -> Self {
        Self { options, vault, progress, lane: OnceLock::new() }
    }

    /// With as much room as the settings ask for; where the system does not give that, with less. Who needs more then is told which
    /// setting it is.
    fn lane(&self) -> Result<&WasmLane, Fault> {
        let lane = self.lane.get_or_init(|| {
            let made = WasmLane::new(self.options, self.vault.clone())
                .or_else(|_| WasmLane::new(self.options.few(), self.vault.clone()))?;
            Ok(made.with_progress(Arc::new(self.progress)))
        });
        lane.as_ref().map_err(Problem::to_fault)
    }
}

impl Lane for LazyLane {
    fn name(&self) -> &str {
        "wasm"
    }

    fn load(&self, extension: &ExtensionRef) -> Later<Result<Arc<dyn Instance>, Fault>> {
        // Only what is in the vault is this lane's; asking does not need the engine.
        let known = self.vault.bundle(extension.digest);
        match known.and_then(|_| self.lane()) {
            Ok(lane) => lane.load(extension),
            Err(fault) => Box::pin(std::future::ready(Err(fault))),
        }
    }
}
