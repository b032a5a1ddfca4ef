//! Invalid, truncated and mutated component files: refused, or contained like any other guest.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod support;

use holdfast_contract::budgets::Budgets;
use holdfast_contract::hook::Decision;
use holdfast_contract::sandbox::SandboxOptions;
use holdfast_contract::wire::Reply;
use serde_json::json;
use support::harness::{LaneHarness, call};
use support::{Extension, gate, tool};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_that_are_not_components_are_refused() {
    let harness = LaneHarness::new(SandboxOptions::small());
    let module = wat::parse_str("(module (func (export \"run\")))").unwrap();
    let good = Extension::guest("gate.wat").bytes;
    let text = b"(component)".to_vec();
    let shifted: Vec<u8> = [b" ", good.as_slice()].concat();
    for bytes in [Vec::new(), vec![0], b"\0asm".to_vec(), module, text, shifted, vec![0xff; 5000]] {
        let fault = harness.load(&Extension::of(bytes)).await.err().unwrap();
        assert_eq!(fault.code.to_string(), "HF-4101", "{fault}");
    }
    let limited = LaneHarness::new(SandboxOptions { component_bytes: 100, ..SandboxOptions::small() });
    let fault = limited.load(&Extension::of(good)).await.err().unwrap();
    assert!(fault.message.contains("component_bytes"), "{fault}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn truncated_files_are_refused() {
    let harness = LaneHarness::new(SandboxOptions::small());
    let good = Extension::guest("echo.wat").bytes;
    for length in 0..good.len() {
        match harness.load(&Extension::of(good[..length].to_vec())).await {
            // A cut between two sections may leave a whole component that exports nothing, or only lose names.
            Err(fault) => {
                assert!(["HF-4101", "HF-4104"].contains(&fault.code.as_str()), "cut at {length}: {fault}");
            }
            Ok(loaded) => {
                let answer = call(&loaded.fresh().unwrap(), tool("echo", json!({}))).await;
                assert_eq!(answer, Ok(Reply::Content(json!({}).into())), "cut at {length}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mutated_files_are_refused_or_contained() {
    let harness = LaneHarness::new(SandboxOptions::small());
    let bystander = harness.load(&Extension::guest("gate.wat")).await.unwrap().fresh().unwrap();
    let good = Extension::guest("gate.wat").bytes;
    let budgets = Budgets { fuel: 100_000, hook_fuel: 100_000, ..Budgets::default() };
    let (mut refused, mut ran) = (0, 0);
    for place in 0..good.len() {
        for change in [0x01, 0x80, 0xff] {
            let mut bytes = good.clone();
            bytes[place] ^= change;
            let extension = Extension { budgets, ..Extension::of(bytes) };
            match harness.load(&extension).await {
                Ok(loaded) => {
                    // Any answer will do: a fault or a decision, but no panic.
                    let _answer = call(&loaded.fresh().unwrap(), gate(json!([1]))).await;
                    ran += 1;
                }
                Err(_) => refused += 1,
            }
        }
    }
    assert!(refused > 0 && ran > 0, "{refused} refused, {ran} ran");
    assert_eq!(call(&bystander, gate(json!({}))).await, Ok(Reply::Decision(Decision::Allow)));
}
