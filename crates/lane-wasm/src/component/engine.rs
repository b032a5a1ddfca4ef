//! The engine: compiled once for all extensions, with everything switched off that could make two runs differ, and a thread that
//! keeps its epoch going.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use holdfast_contract::budgets::Budgets;
use holdfast_contract::digest::Digest;
use holdfast_contract::problem::{Code, Problem};
use wasmtime::component::Component;
use wasmtime::{Config, Enabled, Engine, EngineWeak, PoolingAllocationConfig};

use crate::faults::one_line;
use holdfast_contract::sandbox::{Pools, SandboxOptions};

/// Stack that host functions have on top of the component's own, when they run on the same stack.
const HOST_STACK: usize = 512 << 10;

/// Address space after each memory that traps when it is touched.
const GUARD: u64 = 32 << 20;

/// Bytes that the engine may keep about one component; a Python guest consists of many modules.
const METADATA: usize = 8 << 20;

/// Bytes of a memory or table that stay with its place when its instance goes. They are wiped and not given back, which saves the
/// next instance the page faults, and every other thread an interruption.
const KEPT: usize = 16 << 10;

/// Modules of one component may each have this many memories and tables.
const MEMORIES_PER_MODULE: u32 = 2;
const TABLES_PER_MODULE: u32 = 8;

/// An engine that is started when somebody needs it. Reserving the default room takes some tens of milliseconds, which a program
/// that runs no component need not spend.
pub(crate) struct Room {
    options: SandboxOptions,
    started: OnceLock<Result<Started, Problem>>,
}

/// An engine, and what code must have been compiled for to run on it.
pub(crate) struct Started {
    pub engine: Engine,
    pub compatibility: Digest,
    /// The components that are in use, by their files.
    in_use: Mutex<HashMap<Digest, Weak<Component>>>,
}

impl Started {
    /// A component that somebody has already.
    pub(crate) fn find(&self, file: Digest) -> Option<Arc<Component>> {
        self.in_use.lock().unwrap_or_else(PoisonError::into_inner).get(&file)?.upgrade()
    }

    /// Lets others find a component. The one that was there first, if there is one, stays.
    pub(crate) fn share(&self, file: Digest, component: Component) -> Arc<Component> {
        let mut in_use = self.in_use.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(first) = in_use.get(&file).and_then(Weak::upgrade) {
            return first;
        }
        in_use.retain(|_, component| component.strong_count() > 0);
        let shared = Arc::new(component);
        in_use.insert(file, Arc::downgrade(&shared));
        shared
    }
}

impl Room {
    pub(crate) fn new(options: SandboxOptions) -> Self {
        Self { options, started: OnceLock::new() }
    }

    /// Starts the engine on a thread of its own, so that whoever needs it first waits less.
    pub(crate) fn begin(self: &Arc<Self>) {
        if self.started.get().is_none() {
            let room = self.clone();
            // Without the thread, the first call starts it.
            drop(std::thread::Builder::new().name("room".to_owned()).spawn(move || drop(room.started())));
        }
    }

    /// The engine, started now if nobody needed it before. Where the system does not give as much room as was asked for, with less: who
    /// needs more then is told which setting it is.
    pub(crate) fn started(&self) -> Result<&Started, Problem> {
        let start = || {
            let engine = shared(&self.options).or_else(|_| shared(&self.options.few()))?;
            let compatibility = compatibility(&engine);
            Ok(Started { engine, compatibility, in_use: Mutex::default() })
        };
        self.started.get_or_init(start).as_ref().map_err(Problem::clone)
    }
}

/// Whether as much room as is asked for can be reserved.
pub fn reserve(options: &SandboxOptions) -> Result<(), Problem> {
    shared(options).map(drop)
}

/// The engines of this process that are in use, by their options.
static IN_USE: Mutex<Vec<(SandboxOptions, EngineWeak)>> = Mutex::new(Vec::new());

/// An engine with these options, its epoch under way. The room that an engine reserves is a large part of what a process has, so
/// lanes with the same options share one.
pub(crate) fn shared(options: &SandboxOptions) -> Result<Engine, Problem> {
    let mut in_use = IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
    in_use.retain(|(_, engine)| engine.upgrade().is_some());
    // What a call may use up is an activation's own.
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
            "room for sandboxed instances cannot be reserved: {}; {} memories of {} bytes of address space each are asked for",
            one_line(&error.root_cause().to_string()),
            pools.memories,
            pools.memory_reservation
        );
        Problem::new(Code::SlotsExhausted, what).help(
            "Lower `pools.memories` or `pools.memory_reservation` under `wasm:` in the settings, or raise the limit of address space (`ulimit -v`).",
        )
    })?;
    keep_time(engine.weak(), Duration::from_millis(options.tick_ms.max(1).into()))?;
    Ok(engine)
}

/// An engine that compiles and looks, but has room for nothing.
pub(crate) fn for_looking(options: &SandboxOptions) -> Result<Engine, Problem> {
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
        .async_stack_size(stack + HOST_STACK)
        .memory_reservation(options.pools.memory_reservation)
        .memory_guard_size(GUARD.min(options.pools.memory_reservation));
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
        .max_component_instance_size(METADATA)
        .max_memories_per_module(MEMORIES_PER_MODULE)
        .max_tables_per_module(TABLES_PER_MODULE)
        .linear_memory_keep_resident(KEPT)
        .table_keep_resident(KEPT)
        .pagemap_scan(Enabled::Auto);
    config
}

/// Advances the epoch until the engine is gone.
fn keep_time(engine: EngineWeak, tick: Duration) -> Result<(), Problem> {
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
    let problem = |error| Problem::new(Code::Internal, format!("no thread could be started: {error}"));
    started.map(drop).map_err(problem)
}

/// What decides whether code that was compiled earlier can be run by this engine: its version, its settings, the processor.
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
