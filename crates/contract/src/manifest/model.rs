//! What a manifest says, field by field. The comments here are what `holdfast schema manifest` prints.

use std::collections::{BTreeMap, BTreeSet};

use schemars::{JsonSchema, Schema, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::command::{ProgramCommand, Transport};
use super::grants::{Grants, PolicyHints};
use crate::digest::Digest;
use crate::hook::HookPoint;
use crate::ids::{AgentId, DescriptorId, ExtensionId, Millis, ModelName, RegistryKind, ToolName, Topic};
use crate::matcher::Matcher;
use crate::message::Limits;
use crate::registry::AgentMode;
use crate::system_frames::{MissedPolicy, ScheduleSpec, SubscriptionSpec};
use crate::tool::EffectClass;

/// The parameters that models take from agents.
pub(super) const PARAMETERS: [&str; 5] = ["temperature", "top_p", "max_tokens", "seed", "stop"];

/// An extension's passport: who it is, how it is started, what it needs. There is no `type`: what an
/// extension does is found by what it exports.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The extension's id, which is the name of its folder: small letters, digits, `_` and `-`, beginning
    /// with a letter.
    #[schemars(regex(pattern = "^[a-z][a-z0-9_-]{0,63}$"))]
    pub id: ExtensionId,
    /// A name for people.
    pub name: String,
    /// The semantic version.
    #[serde(default = "first_version")]
    pub version: String,
    /// What it does, for people and for the model that chooses among extensions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// How to set it up; shown to the user and the agent until that is done.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub setup_instructions: String,
    /// What to start: `module:Class` or a `.py` file, a `.wasm` file, a `.js`, `.mjs` or `.ts` file, a
    /// dynamic library, or `native:name` for what is built in. Left out where `agent`, `command`, `package`
    /// or `mcp` says it, or the folder's files leave no doubt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entrypoint: Option<String>,
    /// A program that speaks the worker protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<ProgramCommand>,
    /// What the program speaks over.
    #[serde(default, skip_serializing_if = "Transport::is_usual")]
    pub transport: Transport,
    /// A pack for Node: the name of an npm package, or a folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// An MCP server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp: Option<McpServer>,
    /// An agent. With nothing to start besides, the manifest is the whole extension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentSection>,
    /// The key under which the agent's model is looked up; the extension's id if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// The agent's model configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_config: Option<Map<String, Value>>,
    /// Extensions that are loaded before this one and that it may call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<ExtensionId>,
    /// Secrets that it needs, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<SecretNeed>,
    /// The extension's own configuration; the user's settings come before it.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub config: Map<String, Value>,
    /// `false` leaves the extension out.
    #[serde(default = "enabled")]
    pub enabled: bool,
    /// Topics of the bus.
    #[serde(default, skip_serializing_if = "Events::is_empty")]
    pub events: Events,
    /// When its scheduler role is called.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub schedules: Vec<Schedule>,
    /// What it asks the user's policy for.
    #[serde(default, skip_serializing_if = "Grants::is_empty")]
    pub grants: Grants,
    /// What it advises the user's policy.
    #[serde(default, skip_serializing_if = "PolicyHints::is_empty")]
    pub policy: PolicyHints,
    /// The priority of its descriptors that name none; of several with the same kind and id, the highest is
    /// active.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// How long an instance lives. Left out it is `turn`, and `shared` for services, channels and schedulers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,
    /// What its code does not say about its tools, by their names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<ToolName, ToolHint>,
    /// What its code does not say about its hooks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<HookHint>,
    /// What its code does not say about its descriptors.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub descriptors: Vec<DescriptorHint>,
}

/// The version of an extension that names none.
pub(super) fn first_version() -> String {
    "1.0.0".to_owned()
}

fn enabled() -> bool {
    true
}

impl Manifest {
    /// The key under which the agent's model is looked up.
    pub fn agent_id(&self) -> AgentId {
        self.agent_id.clone().unwrap_or_else(|| self.id.as_str().into())
    }

    /// The secrets that it and its descriptors need, or can use.
    pub fn needed_secrets(&self) -> impl Iterator<Item = &SecretNeed> {
        self.secrets.iter().chain(self.descriptors.iter().flat_map(|hint| &hint.required_secrets))
    }

    /// Everything that is asked for: the grants, with the secrets it needs and the extensions it depends on.
    pub fn requests(&self) -> Grants {
        let mut grants = self.grants.clone();
        let secrets: BTreeSet<_> =
            grants.secrets.drain(..).chain(self.needed_secrets().map(|need| need.id.clone())).collect();
        let extensions: BTreeSet<_> =
            grants.extensions.drain(..).chain(self.depends_on.iter().cloned()).collect();
        Grants {
            secrets: secrets.into_iter().collect(),
            extensions: extensions.into_iter().collect(),
            ..grants
        }
    }
}

/// An MCP server: a program that is started, or an address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged, deny_unknown_fields)]
pub enum McpServer {
    /// A program that speaks MCP on its standard input and output.
    Local {
        /// The program. With `args` it is taken as it stands; without, a line is split at spaces.
        command: ProgramCommand,
        /// Its arguments.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        args: Vec<String>,
        /// Environment variables to set.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        env: BTreeMap<String, String>,
    },
    /// A server that is reached by streamable HTTP.
    Remote {
        /// Its address.
        url: String,
        /// Headers to send along.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        headers: BTreeMap<String, String>,
    },
}

impl McpServer {
    /// What distinguishes a server from others: what was approved of one holds for no other.
    pub fn source(&self) -> Digest {
        Digest::of_json(self).unwrap_or_default()
    }
}

/// An agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentSection {
    /// How the orchestrator uses it: as a tool, or by handing the conversation over.
    #[serde(default)]
    pub integration_mode: AgentMode,
    /// The model; left out or `default`, the one that the settings name as such.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelName>,
    /// Its instructions. They follow those in `prompt.jinja2`, if the folder has one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub instructions: String,
    /// Further parameters for the model.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub parameters: Map<String, Value>,
    /// Whose tools it has: ids of extensions, and `core_tools` for the built-in ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uses_tools: Vec<ExtensionId>,
    /// What one invocation may use up.
    #[serde(default)]
    pub limits: AgentLimits,
}

/// What one invocation of an agent may use up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AgentLimits {
    /// Model calls.
    #[schemars(range(min = 1))]
    pub max_turns: u32,
    /// Tokens, read and written.
    #[schemars(range(min = 1))]
    pub max_tokens_per_invocation: u64,
    /// Milliseconds.
    pub time_budget_ms: Millis,
    /// Money, in millionths of a dollar.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost_micros: Option<u64>,
    /// Tool calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tool_calls: Option<u32>,
}

impl Default for AgentLimits {
    fn default() -> Self {
        Self {
            max_turns: 10,
            max_tokens_per_invocation: 50_000,
            time_budget_ms: Millis(120_000),
            max_cost_micros: None,
            max_tool_calls: None,
        }
    }
}

impl From<AgentLimits> for Limits {
    fn from(limits: AgentLimits) -> Self {
        Self {
            max_turns: limits.max_turns,
            max_tokens: limits.max_tokens_per_invocation,
            time_budget: limits.time_budget_ms,
            max_cost_micros: limits.max_cost_micros,
            max_tool_calls: limits.max_tool_calls,
            ..Self::default()
        }
    }
}

/// A secret that is needed. A name alone is one that must be there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = or_text)]
pub struct SecretNeed {
    /// Its name.
    pub id: String,
    /// Whether what needs it also works without.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
}

/// Topics of the bus.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Events {
    /// What it publishes; for readers only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub publishes: Vec<Publication>,
    /// What it is told of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subscribes: Vec<ManifestSubscription>,
}

impl Events {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A topic that an extension publishes. The topic alone will do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = or_text)]
pub struct Publication {
    /// The topic.
    pub topic: Topic,
    /// What its events say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
}

/// A topic that an extension is told of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ManifestSubscription {
    /// The topic.
    pub topic: Topic,
    /// What happens with its events.
    #[serde(default)]
    pub handler: HandlerSpec,
    /// What its events are for. It is for those who read the manifest.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
}

impl From<&ManifestSubscription> for SubscriptionSpec {
    fn from(subscription: &ManifestSubscription) -> Self {
        Self { topic: subscription.topic.clone(), handler: subscription.handler }
    }
}

/// What happens with an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HandlerSpec {
    /// The user is sent the event's `text`.
    NotifyUser,
    /// The extension's agent is invoked, and the user is sent its answer.
    InvokeAgent,
    /// The extension itself takes it: its `subscriber` role is called.
    #[default]
    Custom,
}

impl HandlerSpec {
    pub(super) const ALL: &'static [HandlerSpec] = &[Self::NotifyUser, Self::InvokeAgent, Self::Custom];
}

/// When a task is run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// The schedule's name, unique within the extension.
    pub name: String,
    /// When: a cron expression, in quotes, because YAML gives `*` a meaning of its own; or `every 15m`; or one moment.
    pub cron: String,
    /// The task; the schedule's name if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The time zone, such as `Europe/Vienna`; the host's if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    /// What happens to runs that were missed.
    #[serde(default)]
    pub missed: MissedPolicy,
    /// What it is for. It is for those who read the manifest.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
}

impl Schedule {
    /// The task that is run: `task`, or `name` where that is left out.
    pub fn task_name(&self) -> &str {
        self.task.as_deref().unwrap_or(&self.name)
    }
}

impl From<&Schedule> for ScheduleSpec {
    fn from(schedule: &Schedule) -> Self {
        Self {
            name: schedule.name.clone(),
            cron: schedule.cron.clone(),
            task: schedule.task_name().to_owned(),
            timezone: schedule.timezone.clone(),
            missed: schedule.missed,
        }
    }
}

/// How long an instance of an extension lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// For a turn; what must last longer goes through the `state` interface.
    #[default]
    Turn,
    /// For one call.
    Call,
    /// For good, and for everybody. A session's replay takes its answers from the log.
    Shared,
}

impl Scope {
    pub(super) const ALL: &'static [Scope] = &[Self::Turn, Self::Call, Self::Shared];
}

/// What a tool's code does not say about it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolHint {
    /// How long a call may take, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<Millis>,
    /// What it does to the world. Undeclared counts as having side effects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effects: Option<EffectClass>,
    /// How many calls may run at once.
    #[schemars(range(min = 1))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
}

/// What a hook's code does not say about it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HookHint {
    /// Which hooks: those at this point.
    pub point: HookPoint,
    /// When they apply. Where they do not, they cost nothing.
    #[serde(default, skip_serializing_if = "Matcher::is_any")]
    pub matcher: Matcher,
    /// How long they may take, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<Millis>,
    /// Lower is asked earlier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// How many tokens a context provider may add to the system role, as estimated from its characters.
    #[schemars(range(min = 1))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u32>,
    /// For `sanitize_output` only: what they make of the beginning of an answer holds for the whole, except
    /// within the last 64 characters and the run of characters that they cut. The answer is then shown while
    /// it is written; with a sanitizer that does not say so, nothing is shown before it is complete.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub streams: bool,
}

/// What a descriptor's code does not say about it, or with a `payload` a descriptor without code.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DescriptorHint {
    /// The descriptor's id; a tool's is its name.
    pub id: DescriptorId,
    /// Its kind: `tool`, `guardrail`, `workflow`, …
    pub kind: RegistryKind,
    /// Its priority; the extension's if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// Secrets without which it is skipped, unless they are optional. `requiredSecrets` is understood too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub required_secrets: Vec<SecretNeed>,
    /// What is registered where the code registers nothing of this kind and id, in the words of the kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Map<String, Value>>,
}

/// For types that may be written as plain text: their schema, or a string.
pub(super) fn or_text(schema: &mut Schema) {
    let whole = std::mem::take(schema);
    let description = whole.get("description").cloned().unwrap_or_default();
    *schema = json_schema!({ "description": description, "anyOf": [{ "type": "string" }, whole] });
}
