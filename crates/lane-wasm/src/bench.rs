//! The baseline of the lane's benchmark: the same gate called through the engine alone, with the same metering.

use std::hint::black_box;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use holdfast_contract::problem::{Code, Problem};
use wasmtime::component::{Component, Linker};
use wasmtime::{Config, Engine, PoolingAllocationConfig, Store, StoreLimits, StoreLimitsBuilder};

use crate::wit::abi::{Failure, Gate, ToolCall};

/// How long calls of a gate take with `call_async`, with fuel, epoch and a limiter on, on one warm instance.
pub fn bare_gate(component: &[u8], arguments: &str, calls: usize) -> Result<Vec<Duration>, Problem> {
    measure(component, arguments, calls)
        .map_err(|error| Problem::new(Code::Internal, format!("the baseline call failed: {error}")))
}

fn measure(component: &[u8], arguments: &str, calls: usize) -> wasmtime::Result<Vec<Duration>> {
    let mut config = Config::new();
    config.consume_fuel(true).epoch_interruption(true).cranelift_nan_canonicalization(true);
    let mut pool = PoolingAllocationConfig::new();
    pool.total_memories(8);
    config.allocation_strategy(pool);
    let engine = Engine::new(&config)?;
    let component = Component::from_binary(&engine, component)?;
    let limits = StoreLimitsBuilder::new().memory_size(64 << 20).build();
    let mut store = Store::new(&engine, limits);
    store.limiter(|limits: &mut StoreLimits| limits);
    store.set_fuel(1_000_000)?;
    store.set_epoch_deadline(1);
    let linker = Linker::<StoreLimits>::new(&engine);
    let instance = completed(linker.instantiate_async(&mut store, &component))?;
    let missing = || wasmtime::Error::msg("the component exports no tool gate");
    let interface =
        component.get_export_index(None, "holdfast:extension/tool-gate@0.1.0-draft").ok_or_else(missing)?;
    let function = component.get_export_index(Some(&interface), "tool-gate").ok_or_else(missing)?;
    let gate =
        instance.get_typed_func::<(ToolCall<'static>,), (Result<Gate, Failure>,)>(&mut store, function)?;
    let mut times = Vec::with_capacity(calls);
    for _ in 0..calls {
        let begun = Instant::now();
        store.set_fuel(1_000_000)?;
        store.set_epoch_deadline(1);
        let call = ToolCall { id: 1, tool: "file_write", arguments };
        let (answer,) = completed(gate.call_async(&mut store, (call,)))?;
        black_box(answer.is_ok());
        times.push(begun.elapsed());
    }
    Ok(times)
}

/// The result of a future that completes at its first poll.
fn completed<T>(future: impl Future<Output = wasmtime::Result<T>>) -> wasmtime::Result<T> {
    future
        .now_or_never()
        .unwrap_or_else(|| Err(wasmtime::Error::msg("the call did not complete synchronously")))
}
