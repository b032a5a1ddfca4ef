//! The hostile corpus at the lane: every guest gets its expected fault, and no other extension is affected.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests")]

mod support;

use holdfast_contract::hook::Decision;
use holdfast_contract::sandbox::SandboxOptions;
use holdfast_contract::wire::Reply;
use serde_json::json;
use support::harness::{LaneHarness, call};
use support::{Extension, corpus, gate, tool};

/// Anonymous memory of this process, in bytes.
fn anonymous() -> u64 {
    let rollup = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap();
    let line = rollup.lines().find(|line| line.starts_with("Anonymous:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_guest_gets_its_fault_and_others_are_not_affected() {
    let harness = LaneHarness::new(SandboxOptions::default());
    let good = harness.load(&Extension::guest("gate.wat")).await.unwrap();
    let bystander = good.fresh().unwrap();
    let cases = corpus::all();
    assert!(cases.len() >= 40);
    let mut wrong = Vec::new();
    let before = anonymous();
    for case in &cases {
        let first = harness.outcome(case, case.budgets).await;
        // A fresh instance, and so the next turn, gets the same fault: with the same text where the engine is deterministic.
        let second = harness.outcome(case, case.budgets).await;
        if first.0 != case.expect || first != second {
            wrong.push(format!("{}: expected {}, got {first:?}, then {second:?}", case.name, case.expect));
        }
        for instance in [&bystander, &good.fresh().unwrap()] {
            assert_eq!(
                call(instance, gate(json!({}))).await,
                Ok(Reply::Decision(Decision::Allow)),
                "{}",
                case.name
            );
        }
    }
    let grown = anonymous().saturating_sub(before);
    println!("{} guests, each run twice, left {} KiB behind", cases.len(), grown / 1024);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(grown < 64 << 20, "the corpus leaked {grown} bytes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_limit_is_what_stops_its_attack() {
    let harness = LaneHarness::new(SandboxOptions::default());
    let mut limits = Vec::new();
    for case in corpus::all() {
        let Some((limit, budgets, then)) = &case.without else { continue };
        let (code, why) = harness.outcome(&case, *budgets).await;
        assert_eq!(code, *then, "{} with {limit}: {why}", case.name);
        limits.push(limit.split('=').next().unwrap().to_owned());
    }
    limits.sort();
    limits.dedup();
    let all = [
        "answer_bytes",
        "fuel",
        "handles",
        "hook_fuel",
        "host_calls",
        "log_bytes",
        "memory_bytes",
        "table_elements",
    ];
    assert_eq!(limits, all, "every limit has a guest that only it stops");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_stack_limit_stops_a_recursion() {
    let deep = |options: SandboxOptions| async move {
        let harness = LaneHarness::new(options);
        let loaded = harness.load(&Extension::guest("recursion.wat")).await.unwrap();
        call(&loaded.fresh().unwrap(), tool("deep", json!({}))).await.map_err(|fault| fault.code.to_string())
    };
    assert_eq!(
        deep(SandboxOptions { stack: 128 << 10, ..SandboxOptions::small() }).await,
        Err("HF-4109".to_owned())
    );
    assert!(deep(SandboxOptions { stack: 8 << 20, ..SandboxOptions::small() }).await.is_ok());
}
