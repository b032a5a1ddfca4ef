//! What a sandboxed gate costs: the same guest called bare and through the lane, warm and fresh, alone and ten in a row.
//!
//! `cargo run --release -p holdfast-lane-wasm --example gate_cost`. Machines are noisy: compare within one run only.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a measurement that cannot be made has failed")]

#[path = "../tests/support/mod.rs"]
mod support;

use std::future::Future;
use std::hint::black_box;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use holdfast_contract::sandbox::SandboxOptions;
use holdfast_contract::wire::{Call, Host, Instance, Lane};
use holdfast_lane_wasm::WasmLane;
use serde_json::json;
use support::{Extension, MemoryVault, NotingHost, gate};
use wasmtime::component::{Component, ComponentType, Lift, Linker, Lower};
use wasmtime::{Config, Engine, PoolingAllocationConfig, Store, StoreLimits, StoreLimitsBuilder};

const CALLS: usize = 10_000;

#[derive(ComponentType, Lower)]
#[component(record)]
struct ToolCall<'a> {
    id: u64,
    tool: &'a str,
    arguments: &'a str,
}

/// What the gate answers; only its type matters here.
#[derive(ComponentType, Lift)]
#[component(variant)]
#[expect(dead_code, reason = "nothing looks into the answer")]
enum Decision {
    #[component(name = "allow")]
    Allow,
    #[component(name = "deny")]
    Deny(String),
    #[component(name = "ask")]
    Ask(String),
}

/// Why there is none.
#[derive(Debug, ComponentType, Lift)]
#[component(variant)]
#[expect(dead_code, reason = "nothing looks into the answer")]
enum Failure {
    #[component(name = "invalid-arguments")]
    InvalidArguments(String),
    #[component(name = "denied")]
    Denied(String),
    #[component(name = "not-found")]
    NotFound(String),
    #[component(name = "failed")]
    Failed(String),
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let arguments = json!({ "content": "x".repeat(1000), "path": "a/b" });
    let call = gate(arguments.clone());
    let text = serde_json::to_string(&arguments).unwrap();
    println!("arguments: {} bytes; p50 of {CALLS} calls in nanoseconds", text.len());

    let guest = Extension::guest("gate.wat");
    bare(&guest.bytes, &text);

    let vault = Arc::new(MemoryVault::default());
    let lane = WasmLane::new(SandboxOptions::default(), vault.clone()).unwrap();
    let host: Arc<dyn Host> = Arc::new(NotingHost::default());
    let loaded = runtime.block_on(lane.load(&vault.put(&guest))).unwrap();
    let warm = loaded.fresh().unwrap();
    report("lane, warm", || once(&*warm, &call, &host));
    report("lane, fresh instance", || once(&*loaded.fresh().unwrap(), &call, &host));
    let ten: Vec<_> = (0..10).map(|_| loaded.fresh().unwrap()).collect();
    report("lane, ten warm gates", || ten.iter().for_each(|gate| once(&**gate, &call, &host)));
    report("cloning the call alone", || drop(black_box(call.clone())));
}

fn once(instance: &dyn Instance, call: &Call, host: &Arc<dyn Host>) {
    let answer = poll(instance.call(call.clone(), host.clone()));
    black_box(answer.unwrap());
}

fn bare(bytes: &[u8], arguments: &str) {
    let mut config = Config::new();
    config.consume_fuel(true).epoch_interruption(true).cranelift_nan_canonicalization(true);
    let mut pool = PoolingAllocationConfig::new();
    pool.total_memories(100);
    config.allocation_strategy(pool);
    let engine = Engine::new(&config).unwrap();
    let component = Component::from_binary(&engine, bytes).unwrap();
    let linker = Linker::<StoreLimits>::new(&engine);
    let limits = StoreLimitsBuilder::new().memory_size(64 << 20).build();
    let mut store = Store::new(&engine, limits);
    store.limiter(|limits| limits);
    store.set_fuel(1_000_000).unwrap();
    store.set_epoch_deadline(1);
    let instance = poll(linker.instantiate_async(&mut store, &component)).unwrap();
    let interface = component.get_export_index(None, "holdfast:extension/tool-gate@0.1.0-draft").unwrap();
    let index = component.get_export_index(Some(&interface), "tool-gate").unwrap();
    let function = instance
        .get_typed_func::<(ToolCall<'static>,), (Result<Decision, Failure>,)>(&mut store, index)
        .unwrap();
    report("bare call_async", || {
        store.set_fuel(1_000_000).unwrap();
        store.set_epoch_deadline(1);
        let call = ToolCall { id: 1, tool: "file_write", arguments };
        let _decision = black_box(poll(function.call_async(&mut store, (call,))).unwrap().0.unwrap());
    });
    report("bare call", || {
        store.set_fuel(1_000_000).unwrap();
        store.set_epoch_deadline(1);
        let call = ToolCall { id: 1, tool: "file_write", arguments };
        let _decision = black_box(function.call(&mut store, (call,)).unwrap().0.unwrap());
    });
}

fn poll<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("a gate that can wait for nothing is answered at once"),
    }
}

fn report(what: &str, mut work: impl FnMut()) {
    for _ in 0..CALLS / 10 {
        work();
    }
    let mut times: Vec<u128> = (0..CALLS)
        .map(|_| {
            let began = Instant::now();
            work();
            began.elapsed().as_nanos()
        })
        .collect();
    times.sort_unstable();
    println!("{what:>24}: {:>7}   p99 {:>7}", times[CALLS / 2], times[CALLS * 99 / 100]);
}
