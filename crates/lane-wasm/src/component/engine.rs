//! The engine: one for all extensions, configured for determinism, and a thread that advances its epoch.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use holdfast_contract::budgets::Budgets;
use holdfast_contract::digest::Digest;
use holdfast_contract::problem::{Code, Problem};
use parking_lot::Mutex;
use wasmtime::component::Component;
use wasmtime::{Config, Enabled, Engine, EngineWeak, PoolingAllocationConfig};

use crate::faults::one_line;
use holdfast_contract::sandbox::{Pools, SandboxOptions};

/// Stack for host functions, in addition to the component's own, when they run on the same stack.
const HOST_STACK_BYTES: usize = 512 << 10;

/// The guard region after each memory.
const GUARD_BYTES: u64 = 32 << 20;

/// The largest metadata of one component instance; a Python guest consists of many modules.
const MAX_METADATA_BYTES: usize = 8 << 20;

/// Bytes of a memory or table that stay resident in its slot when its instance is dropped. They are zeroed and not unmapped, which
/// saves page faults in the next instance and TLB shootdowns in other threads.
const RESIDENT_BYTES: usize = 16 << 10;

/// Memories and tables of each module of a component.
const MEMORIES_PER_MODULE: u32 = 2;
const TABLES_PER_MODULE: u32 = 8;

/// An engine that is started at its first use. Reserving the default pools takes some tens of milliseconds, which a program
/// that runs no component need not spend.
pub(crate) struct LazyEngine {
    options: SandboxOptions,
    started: OnceLock<Result<StartedEngine, Problem>>,
}

/// A started engine, and the compatibility digest of code that it can run.
pub(crate) struct StartedEngine {
    pub engine: Engine,
    pub compatibility: Digest,
    /// The components in use, by the digests of their files.
    in_use: Mutex<HashMap<Digest, Weak<Component>>>,
}

impl StartedEngine {
    /// A component that is in use.
    pub(crate) fn find(&self, file: Digest) -> Option<Arc<Component>> {
        self.in_use.lock().get(&file)?.upgrade()
    }

    /// Shares a component. If it is in use already, that one is returned.
    pub(crate) fn share(&self, file: Digest, component: Component) -> Arc<Component> {
        let mut in_use = self.in_use.lock();
        if let Some(first) = in_use.get(&file).and_then(Weak::upgrade) {
            return first;
        }
        in_use.retain(|_, component| component.strong_count() > 0);
        let shared = Arc::new(component);
        in_use.insert(file, Arc::downgrade(&shared));
        shared
    }
}

impl LazyEngine {
    pub(crate) fn new(options: SandboxOptions) -> Self {
        Self { options, started: OnceLock::new() }
    }

    /// Starts the engine on another thread, so that the first call waits less.
    pub(crate) fn start_in_background(self: &Arc<Self>) {
        if self.started.get().is_none() {
            let engine = self.clone();
            // If no thread can be started, the first call starts the engine.
            drop(std::thread::Builder::new().name("wasm-start".to_owned()).spawn(move || drop(engine.get())));
        }
    }

    /// The engine, started at the first call. If the configured pools cannot be reserved, with small ones: an exhausted pool is then an
    /// error that names its setting.
    pub(crate) fn get(&self) -> Result<&StartedEngine, Problem> {
        let start = || {
            let engine = shared(&self.options).or_else(|_| shared(&self.options.few()))?;
            let compatibility = compatibility(&engine);
            Ok(StartedEngine { engine, compatibility, in_use: Mutex::default() })
        };
        self.started.get_or_init(start).as_ref().map_err(Problem::clone)
    }
}

/// Whether the pools of these options can be reserved.
pub fn reserve(options: &SandboxOptions) -> Result<(), Problem> {
    shared(options).map(drop)
}

/// The engines in use in this process, by their options.
static IN_USE: Mutex<Vec<(SandboxOptions, EngineWeak)>> = Mutex::new(Vec::new());

/// A running engine with these options. An engine reserves a large part of the address space of a process, so lanes with the same
/// options share one.
pub(crate) fn shared(options: &SandboxOptions) -> Result<Engine, Problem> {
    let mut in_use = IN_USE.lock();
    in_use.retain(|(_, engine)| engine.upgrade().is_some());
    // Budgets belong to an activation, not to the engine.
    let options = &SandboxOptions { budgets: Budgets::default(), ..*options };
    let same = in_use.iter().find(|(wanted, _)| wanted == options);
    if let Some(engine) = same.and_then(|(_, engine)| engine.upgrade()) {
        return Ok(engine);
    }
    let engine = start(options)?;
    in_use.push((*options, engine.weak()));
    Ok(engine)
}

fn start(options: &SandboxOptions) -> Result<Engine, Problem> {
    let mut config = deterministic(options);
    config.allocation_strategy(pooled(&options.pools));
    let pools = &options.pools;
    let engine = Engine::new(&config).map_err(|error| {
        let what = format!(
            "could not reserve address space for sandboxed instances: {}; {} memories of {} bytes each were requested",
            one_line(&error.root_cause().to_string()),
            pools.memories,
            pools.memory_reservation
        );
        Problem::new(Code::SlotsExhausted, what).help(
            "Lower `pools.memories` or `pools.memory_reservation` under `wasm:` in the settings, or raise the limit of address space (`ulimit -v`).",
        )
    })?;
    start_epoch_thread(engine.weak(), Duration::from_millis(options.tick_ms.max(1).into()))?;
    Ok(engine)
}

/// An engine that compiles and inspects, without pools for instances.
pub(crate) fn for_inspection(options: &SandboxOptions) -> Result<Engine, Problem> {
    Engine::new(&deterministic(options)).map_err(|error| Problem::new(Code::Internal, error.to_string()))
}

fn deterministic(options: &SandboxOptions) -> Config {
    let mut config = Config::new();
    let stack = options.stack as usize;
    config
        .wasm_component_model(true)
        .consume_fuel(true)
        .epoch_interruption(true)
        .cranelift_nan_canonicalization(true)
        .relaxed_simd_deterministic(true)
        .max_wasm_stack(stack)
        .async_stack_size(stack + HOST_STACK_BYTES)
        .memory_reservation(options.pools.memory_reservation)
        .memory_guard_size(GUARD_BYTES.min(options.pools.memory_reservation));
    config
}

fn pooled(pools: &Pools) -> PoolingAllocationConfig {
    let mut config = PoolingAllocationConfig::new();
    config
        .total_component_instances(pools.instances)
        .total_core_instances(pools.core_instances)
        .total_memories(pools.memories)
        .total_tables(pools.tables)
        .total_stacks(pools.stacks)
        .max_memory_size(usize::try_from(pools.memory_reservation).unwrap_or(usize::MAX).min(4 << 30))
        .table_elements(pools.table_elements as usize)
        .max_component_instance_size(MAX_METADATA_BYTES)
        .max_memories_per_module(MEMORIES_PER_MODULE)
        .max_tables_per_module(TABLES_PER_MODULE)
        .linear_memory_keep_resident(RESIDENT_BYTES)
        .table_keep_resident(RESIDENT_BYTES)
        .pagemap_scan(Enabled::Auto);
    config
}

/// Advances the epoch until the engine is dropped.
fn start_epoch_thread(engine: EngineWeak, tick: Duration) -> Result<(), Problem> {
    let advance = move || {
        loop {
            std::thread::sleep(tick);
            match engine.upgrade() {
                Some(engine) => engine.increment_epoch(),
                None => return,
            }
        }
    };
    let started = std::thread::Builder::new().name("wasm-epoch".to_owned()).spawn(advance);
    let problem = |error| Problem::new(Code::Internal, format!("could not start a thread: {error}"));
    started.map(drop).map_err(problem)
}

/// The digest of everything that compiled code depends on: the engine's version and settings, and the processor.
fn compatibility(engine: &Engine) -> Digest {
    struct Bytes(Vec<u8>);
    impl Hasher for Bytes {
        fn write(&mut self, bytes: &[u8]) {
            self.0.extend_from_slice(bytes);
        }
        fn finish(&self) -> u64 {
            0
        }
    }
    let mut bytes = Bytes(Vec::new());
    engine.precompile_compatibility_hash().hash(&mut bytes);
    Digest::of(&bytes.0)
}
