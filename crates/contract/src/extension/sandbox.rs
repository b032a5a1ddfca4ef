//! What a user can set about sandboxed components: the `wasm:` section of the settings.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::budgets::Budgets;
use crate::ids::Millis;

/// How sandboxed components are run. Every field has a default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SandboxOptions {
    /// What one call may use up. Part of each activation, so that a replay has the same.
    pub budgets: Budgets,
    /// How many instances there is room for.
    pub pools: Pools,
    /// Bytes of stack that a component's own code may use.
    #[schemars(range(min = 65536, max = 16777216))]
    pub stack: u32,
    /// Milliseconds after which a call that computes lets others have the thread.
    #[schemars(range(min = 1, max = 1000))]
    pub tick_ms: u32,
    /// How many times its own timeout a call may compute before it is stopped. Fuel decides long before that; this is for a
    /// machine on which even the fuel takes too long.
    #[schemars(range(min = 1, max = 1000))]
    pub patience: u32,
    /// Bytes that a component may have.
    pub component_bytes: u64,
}

impl Default for SandboxOptions {
    fn default() -> Self {
        Self {
            budgets: Budgets::default(),
            pools: Pools::default(),
            stack: 512 << 10,
            tick_ms: 10,
            patience: 4,
            component_bytes: 128 << 20,
        }
    }
}

impl SandboxOptions {
    /// For machines, sandboxes and tools that cannot reserve much address space: room for 64 small instances.
    pub fn small() -> Self {
        Self { pools: Pools::small(), ..Self::default() }
    }

    /// The same with room for a few instances only: for trying an extension out, and for replaying what was recorded. Code that was
    /// compiled for the one fits the other.
    pub fn few(self) -> Self {
        let Pools { memory_reservation, table_elements, .. } = self.pools;
        let small = Pools::small();
        let few = |number: u32| number * 8;
        let pools = Pools {
            instances: few(small.instances),
            core_instances: few(small.core_instances),
            memories: few(small.memories),
            tables: few(small.tables),
            stacks: few(small.stacks),
            memory_reservation,
            table_elements,
        };
        Self { pools, ..self }
    }

    /// How many ticks this time has.
    pub fn ticks(&self, time: Millis) -> u64 {
        time.0.div_ceil(self.tick_ms.max(1).into()).saturating_add(1)
    }

    /// How many ticks a call with this timeout may compute whose caller gives it up in time.
    pub fn patient_ticks(&self, timeout: Millis) -> u64 {
        self.patient(self.ticks(timeout))
    }

    /// What these ticks are for a call whose caller gives it up in time.
    pub fn patient(&self, ticks: u64) -> u64 {
        ticks.saturating_mul(self.patience.max(1).into())
    }
}

/// How many instances there is room for. Room costs address space, not memory.
///
/// The defaults hold 200 live Python guests and 10,000 live Rust gates at once, of which 300 can ask the host for something that it
/// has to wait for. A Python guest takes 1 component instance, about 38 core instances, 1 or 2 memories, up to 8 tables and a
/// stack; a Rust gate takes 1 component instance, up to 4 core instances, 1 memory, 2 tables, and a stack if it can wait. So: 200 +
/// 10,000 component instances; 200 × 38 + 10,000 × 4 = 47,600 core instances; 200 × 2 + 10,000 = 10,400 memories; 200 × 8 + 10,000
/// × 2 = 21,600 tables; 500 stacks. Each is rounded up. In address space that is 11,000 × (4 GiB + 32 MiB) = 43 TiB for memories,
/// 22,000 × 20,000 × 8 bytes = 3.3 GiB for tables, and 512 × (512 KiB + 512 KiB) = half a GiB for stacks. A full pool takes two
/// mappings for each stack and up to three for each memory, about 32,000 in all, where Linux by default allows 65,530. Those of the
/// stacks are made when the engine starts, and each start of a process takes some 20 µs longer for every one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Pools {
    /// Live components.
    pub instances: u32,
    /// Live core instances; a component consists of several.
    pub core_instances: u32,
    /// Live memories.
    pub memories: u32,
    /// Live tables.
    pub tables: u32,
    /// Stacks for calls that can wait for the host. An instance keeps its stack while it lives.
    pub stacks: u32,
    /// Bytes of address space for each memory, which bound what it can grow to. With 4 GiB or more no access has to be checked;
    /// with less, every one is.
    pub memory_reservation: u64,
    /// Elements for which each table has room.
    pub table_elements: u32,
}

impl Default for Pools {
    fn default() -> Self {
        Self {
            instances: 10_500,
            core_instances: 50_000,
            memories: 11_000,
            tables: 22_000,
            stacks: 512,
            memory_reservation: 4 << 30,
            table_elements: 20_000,
        }
    }
}

impl Pools {
    fn small() -> Self {
        Self {
            instances: 64,
            core_instances: 256,
            memories: 64,
            tables: 128,
            stacks: 64,
            memory_reservation: 64 << 20,
            table_elements: 20_000,
        }
    }
}
