//! Requests about the home as a whole, and their answers.

use holdfast_contract::ids::{ModelName, StreamId};
use holdfast_contract::manifest::Profile;
use holdfast_contract::message::LimitKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ClientRequest, Method, NoParams, Request};

methods! {
    /// What can be asked of the owner of a home.
    System: SystemMethod {
        /// The first request: versions are compared, and the owner identifies itself.
        "hello" => Hello(ClientHello),
        /// The state of the home.
        "system.status" => Status(NoParams),
        /// Stop everything in order; the owner ends.
        "system.stop" => Stop(NoParams),
        /// Stop everything in order, and start again.
        "system.restart" => Restart(NoParams),
        /// Erase a session's content.
        "log.erase" => LogErase(LogErase),
        /// Collect old frames.
        "log.gc" => LogGc(LogGc),
    }
}

/// Who asks.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClientHello {
    /// The protocol's version.
    pub version: u32,
    /// The client's name: `editor`. As a `cli`, which is a command that ends by itself, the owner waits for it before it ends.
    pub client: String,
    /// The folder that it was started in: the workspace of the sessions that it starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// The policy profile of the sessions that it starts, in place of the one in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
}

/// Who answers.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ServerHello {
    /// The protocol's version.
    pub version: u32,
    /// The program's version.
    pub program: String,
    /// The owner's process.
    pub process: u32,
    /// The home.
    pub home: String,
    /// The policy profile in force.
    pub profile: String,
    /// The model that new sessions use.
    pub model: ModelName,
}

/// A session whose content goes.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LogErase {
    /// The session.
    pub session: StreamId,
    /// Why; kept in the tombstones.
    pub reason: String,
}

/// What is collected.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LogGc {
    /// One session, or `system`; all if none is named.
    pub session: Option<StreamId>,
    /// Keep frames of the last so many days.
    pub keep_days: Option<u64>,
    /// Keep the last so many frames.
    pub keep_frames: Option<u64>,
}

/// What was collected.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct CollectedLog {
    /// By stream.
    pub streams: Vec<CollectedStream>,
    /// Registries, policies and generations that nothing refers to any more.
    pub objects: u64,
    /// By how many bytes the database has become smaller.
    pub freed_bytes: u64,
}

/// What was collected of one stream.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CollectedStream {
    /// The stream.
    pub stream: StreamId,
    /// Frames.
    pub frames: u64,
    /// Blobs that no frame refers to any more.
    pub blobs: u64,
    /// Nothing was collected because a turn runs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_use: bool,
}

/// How a home is.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Status {
    /// The process that owns the home.
    pub process: u32,
    /// How many extensions serve.
    pub active: u64,
    /// The extensions that are starting.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub starting: Vec<String>,
    /// How many sessions are open: in memory, because they were used lately.
    pub sessions: u64,
    /// How many sessions the log has.
    #[serde(default)]
    pub stored: u64,
    /// Those that do not serve, and why.
    pub failed: Vec<ExtensionProblem>,
    /// Those that are active although something is wrong: the newest version cannot be used, and the previous one stays active.
    #[serde(default, alias = "unwell")]
    pub degraded: Vec<ExtensionProblem>,
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
