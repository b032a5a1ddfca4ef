//! Components through the lane, call by call.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests")]

mod support;

use std::sync::Arc;

use holdfast_contract::hook::Decision;
use holdfast_contract::sandbox::SandboxOptions;
use holdfast_contract::wire::{Lane, Reply};
use holdfast_lane_wasm::WasmLane;
use serde_json::json;

use support::{Extension, MemoryVault, NotingHost, gate};

#[tokio::test]
async fn a_gate_allows() {
    let vault = Arc::new(MemoryVault::default());
    let lane = WasmLane::new(SandboxOptions::small(), vault.clone()).unwrap();
    for name in ["gate.wat"] {
        let loaded = lane.load(&vault.put(&Extension::guest(name))).await.unwrap();
        let fresh = loaded.fresh().unwrap();
        let host = Arc::new(NotingHost::default());
        let reply = fresh.call(gate(json!({ "path": "a" })), host).await.unwrap();
        assert_eq!(reply, Reply::Decision(Decision::Allow));
    }
}
