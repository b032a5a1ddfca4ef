//! The answer to `system.status`: how a home is.

use holdfast_contract::message::LimitKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a home is.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Status {
    /// The process that owns the home.
    pub process: u32,
    /// How many extensions serve.
    pub active: u64,
    /// How many sessions are open.
    pub sessions: u64,
    /// Those that do not serve, and why.
    pub failed: Vec<ExtensionProblem>,
    /// Those that serve although something is wrong: what was found last cannot be used, and what served before goes on.
    #[serde(default)]
    pub unwell: Vec<ExtensionProblem>,
    /// Names of tools that an extension does not get, or that several have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<ExtensionProblem>,
    /// How long the process has had the home, in milliseconds.
    #[serde(default)]
    pub uptime_ms: u64,
    /// What the bus has in its queues, over all subscribers.
    #[serde(default)]
    pub queues: Queues,
    /// What models have used since the process has had the home, over all sessions.
    #[serde(default)]
    pub spent: UsageInfo,
    /// What the policy bounds in a day, and what was used of it today.
    #[serde(default)]
    pub today: Vec<LimitUsage>,
}

/// Something that is bounded in a day.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct LimitUsage {
    /// The extension whose agents and tools it is about; none for everything together.
    pub extension: Option<String>,
    /// What is bounded.
    pub limit: LimitKind,
    /// How much was used.
    pub used: u64,
    /// How much may be.
    pub allowed: u64,
}

/// What the bus has in its queues.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Queues {
    /// Events that some subscriber has not finished, once for each.
    pub open: u64,
    /// Of these, how many are with their subscriber.
    pub under_way: u64,
    /// How many wait because one before them failed.
    pub delayed: u64,
    /// Dead letters.
    pub dead: u64,
    /// Why nothing moves, if nothing does.
    pub trouble: Option<String>,
}

/// What models have used.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct UsageInfo {
    /// Calls of a model.
    pub model_calls: u64,
    /// Tokens.
    pub tokens: u64,
    /// Money in millionths of a dollar.
    pub cost_micros: u64,
}

/// An extension with which something is wrong.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ExtensionProblem {
    /// The extension.
    pub extension: String,
    /// The stable code.
    pub code: String,
    /// Why.
    pub message: String,
    /// What to do.
    pub fix: String,
}
