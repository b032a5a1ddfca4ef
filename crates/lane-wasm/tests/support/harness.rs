//! A lane with its own vault, and calls with a timeout.
#![allow(clippy::expect_used, reason = "helpers of tests")]

use std::sync::Arc;
use std::time::Duration;

use holdfast_contract::budgets::Budgets;
use holdfast_contract::problem::Fault;
use holdfast_contract::sandbox::SandboxOptions;
use holdfast_contract::wire::{Call, Host, Instance, Lane, Reply};
use holdfast_lane_wasm::WasmLane;

use super::corpus::{Attack, Case};
use super::{Extension, MemoryVault, NotingHost, gate, tool};

/// Longer than any call that does not hang.
const HANG: Duration = Duration::from_secs(120);

/// A lane with its vault.
pub struct LaneHarness {
    vault: Arc<MemoryVault>,
    lane: WasmLane,
}

impl LaneHarness {
    pub fn new(options: SandboxOptions) -> Self {
        let vault = Arc::new(MemoryVault::default());
        let lane = WasmLane::new(options, vault.clone()).unwrap();
        Self { vault, lane }
    }

    /// Puts an extension into the vault and loads it.
    pub async fn load(&self, extension: &Extension) -> Result<Arc<dyn Instance>, Fault> {
        tokio::time::timeout(HANG, self.lane.load(&self.vault.put(extension))).await.expect("loading hangs")
    }

    /// The outcome of a case, as its header states it, and the reason.
    pub async fn outcome(&self, case: &Case, budgets: Budgets) -> (String, String) {
        let extension = Extension {
            id: case.name.clone(),
            manifest: case.manifest.clone(),
            grants: case.grants.clone(),
            budgets,
            ..Extension::of(case.component.clone())
        };
        let answer = match (self.load(&extension).await, case.attack.clone()) {
            (Ok(loaded), Some(attack)) => {
                let request = match attack {
                    Attack::Tool { name, arguments } => tool(&name, arguments),
                    Attack::Gate { arguments } => gate(arguments),
                };
                call(&loaded.fresh().unwrap(), request).await
            }
            (Ok(_), None) => Ok(Reply::Done),
            (Err(fault), _) => Err(fault),
        };
        match answer {
            Ok(_) => ("ok".to_owned(), String::new()),
            Err(fault) => (fault.code.to_string(), fault.message),
        }
    }
}

/// Makes a call with a host that answers.
pub async fn call(instance: &Arc<dyn Instance>, call: Call) -> Result<Reply, Fault> {
    let host: Arc<dyn Host> = Arc::new(NotingHost::default());
    tokio::time::timeout(HANG, instance.call(call, host)).await.expect("a call hangs")
}
