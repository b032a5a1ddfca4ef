//! What one call into sandboxed code may use up. Part of an activation, so that a replay has the same.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What one call may use up. Every bound but that of the disk is exact and the same on every machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Budgets {
    /// Operations of a tool, method, command or step of life, its instance's start included.
    pub fuel: u64,
    /// Operations of a hook, context provider or guardrail, its instance's start included.
    pub hook_fuel: u64,
    /// Bytes of memory that an instance may hold.
    pub memory_bytes: u64,
    /// Elements that its tables may hold.
    pub table_elements: u32,
    /// Bytes that it may answer with.
    pub answer_bytes: u32,
    /// How often it may ask the host.
    pub host_calls: u32,
    /// Bytes that it may log.
    pub log_bytes: u32,
    /// Handles that it may hold at once.
    pub handles: u32,
    /// Bytes that a program may keep in its data folder and its folder for temporary files. Looked at every few seconds.
    pub disk_bytes: u64,
}

impl Default for Budgets {
    fn default() -> Self {
        Self {
            fuel: 10_000_000_000,
            hook_fuel: 200_000_000,
            memory_bytes: 64 << 20,
            table_elements: 20_000,
            answer_bytes: 4 << 20,
            host_calls: 10_000,
            log_bytes: 64 << 10,
            handles: 256,
            disk_bytes: 1 << 30,
        }
    }
}
