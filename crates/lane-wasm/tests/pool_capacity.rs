//! The default pools hold the documented number of instances: 10,000 gates, of which 300 can wait for the host, and 200 guests as
//! large as Python's, concurrently.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod support;

use std::sync::Arc;

use holdfast_contract::hook::Decision;
use holdfast_contract::sandbox::SandboxOptions;
use holdfast_contract::wire::{Instance, Lane, Reply};
use holdfast_lane_wasm::WasmLane;
use serde_json::json;
use support::{Extension, MemoryVault, NotingHost, gate};

/// A gate of 38 core instances and 8 tables, as a Python guest has them.
fn large() -> Extension {
    let text = std::fs::read_to_string(support::here().join("tests/guests/waiting.wat")).unwrap();
    let mut parts =
        "(component\n  (core module $plain)\n  (core module $tabled (table 4 funcref))\n".to_owned();
    parts.push_str(&"  (core instance (instantiate $plain))\n".repeat(28));
    parts.push_str(&"  (core instance (instantiate $tabled))\n".repeat(8));
    Extension::of(wat::parse_str(text.replacen("(component\n", &parts, 1)).unwrap())
}

#[tokio::test]
async fn ten_thousand_gates_and_two_hundred_large_guests_run_concurrently() {
    let vault = Arc::new(MemoryVault::default());
    let lane = WasmLane::new(SandboxOptions::default(), vault.clone()).unwrap();
    let host = Arc::new(NotingHost::default());
    let mut alive: Vec<Arc<dyn Instance>> = Vec::new();
    let gates =
        [("gate.wat", 9_700), ("waiting.wat", 300)].map(|(name, count)| (Extension::guest(name), count));
    for (extension, count) in gates.into_iter().chain([(large(), 200)]) {
        let loaded = lane.load(&vault.put(&extension)).await.unwrap();
        for number in 0..count {
            let instance = loaded.fresh().unwrap();
            let answer = instance.call(gate(json!({})), host.clone()).await;
            assert_eq!(answer, Ok(Reply::Decision(Decision::Allow)), "number {number}");
            alive.push(instance);
        }
    }
    if let Ok(maps) = std::fs::read_to_string("/proc/self/maps") {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let resident = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default().to_owned();
        println!("{} instances, {} mappings, {resident}", alive.len(), maps.lines().count());
    }
}
