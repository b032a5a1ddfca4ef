//! `config/settings.yaml`: what the user sets. The types are here, reading them is in `read.rs`, and `Settings::load` is the way in.
//!
//! Which folder file tools may touch is worked out in `workspace.rs`. Secrets are not settings.

mod mcp;
mod packs;
mod read;
mod write;

use std::collections::BTreeMap;
use std::path::Path;

use holdfast_contract::context::ContextBudget;
use holdfast_contract::ids::{AgentId, DescriptorId, ExtensionId, Millis, ModelName, RegistryKind, ToolName};
use holdfast_contract::log;
use holdfast_contract::manifest::yaml::{YamlRead, YamlRejected, YamlSource};
use holdfast_contract::message::{LimitKind, Limits};
use holdfast_contract::problem::{Code, Problem};
use holdfast_contract::registry::Override;
use holdfast_contract::sandbox::SandboxOptions;
use holdfast_policy::Dollars;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use self::mcp::{McpServerSettings, McpSettings, McpToolSettings};
pub use self::packs::PackSettings;
use crate::files::{self, Bounds};
use crate::home::Home;

/// The model that is built in and needs no network.
pub const OFFLINE: &str = "offline";

const MAX_BYTES: usize = 1024 * 1024;

const BOUNDS: Bounds = Bounds {
    unreadable: Code::SettingsUnreadable,
    too_large: Code::SettingsTooLarge,
    max_bytes: MAX_BYTES as u64,
};

/// What `config/settings.yaml` says. Everything can be left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(title = "Holdfast settings")]
pub struct Settings {
    /// The models, and which one is used.
    #[serde(skip_serializing_if = "Models::is_empty")]
    pub models: Models,
    /// What is different for an agent, by its id; `main` is the one you talk to.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub agents: BTreeMap<AgentId, AgentSettings>,
    /// The configuration of an extension, by its id; it goes before what the manifest lists under `config`. `enabled` is not the
    /// extension's: `false` disables it, whatever its manifest says, and `true` enables it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub extensions: BTreeMap<ExtensionId, Map<String, Value>>,
    /// MCP servers.
    #[serde(skip_serializing_if = "McpSettings::is_empty")]
    pub mcp: McpSettings,
    /// Packs for Node: packages of the npm registry, and folders.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub packs: Vec<PackSettings>,
    /// Channels.
    #[serde(skip_serializing_if = "Channels::is_empty")]
    pub channels: Channels,
    /// What is switched off, moved or given to an extension, by kind and id: `overrides.tool.web_search.enabled: false`. A hook is named by
    /// what it is and its extension: `overrides.guardrail.secret-redaction`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub overrides: BTreeMap<RegistryKind, BTreeMap<DescriptorId, Override>>,
    /// The folder that file tools and the shell may touch; for each session the folder of its chat or command if left out. It never contains
    /// the home, nor is it in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// How many tools models are shown.
    #[serde(skip_serializing_if = "ToolSettings::is_default")]
    pub tools: ToolSettings,
    /// What a turn and a session may use up.
    #[serde(skip_serializing_if = "LimitSettings::is_empty")]
    pub limits: LimitSettings,
    /// Concurrency limits and circuit breakers for tool calls.
    #[serde(skip_serializing_if = "CallSettings::is_default")]
    pub calls: CallSettings,
    /// How much context providers may add to the system role.
    #[serde(skip_serializing_if = "ContextBudget::is_default")]
    pub context: ContextBudget,
    /// How long a session's frames are kept; for ever if left out.
    #[serde(skip_serializing_if = "RetentionSettings::is_empty")]
    pub retention: RetentionSettings,
    /// The health checks of extensions while the home is up.
    #[serde(skip_serializing_if = "Health::is_default")]
    pub health: Health,
    /// What is reported on standard error while a process runs.
    #[serde(skip_serializing_if = "LogSettings::is_default")]
    pub log: LogSettings,
    /// Where secrets are kept.
    #[serde(skip_serializing_if = "SecretSettings::is_default")]
    pub secrets: SecretSettings,
    /// How sandboxed components are run, and what a call of one may use up.
    #[serde(skip_serializing_if = "is_usual")]
    pub wasm: SandboxOptions,
    /// Other Holdfasts whose tools are used here, by a name of your choice; a tool `x` of `office` is `office_x` here.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub remotes: BTreeMap<String, RemoteSettings>,
    /// The tools that this home serves to other Holdfasts; none if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serve: Option<ServeSettings>,
}

/// Another Holdfast whose tools are used here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RemoteSettings {
    /// Where it serves: host and port, `127.0.0.1:7441`.
    pub address: String,
    /// The secret that has the token.
    pub token: String,
    /// Whether it may be another machine. What is sent is not encrypted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub insecure: bool,
    /// The digest of the definitions that you accept, after they have changed; those of the first contact if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definitions: Option<String>,
}

/// The tools that this home serves to other Holdfasts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServeSettings {
    /// Where callers are listened for: an IP address and a port, `127.0.0.1:7441`.
    pub address: String,
    /// The tools that are offered.
    pub tools: Vec<ToolName>,
    /// The callers, by a name of your choice, each with the secret that has its token. The origin of a caller's calls is `remote/NAME`.
    pub callers: BTreeMap<String, String>,
    /// Whether other machines may call. What is sent is not encrypted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub insecure: bool,
}

fn is_usual(options: &SandboxOptions) -> bool {
    *options == SandboxOptions::default()
}

/// The models, each under a name of the user's choice.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Models {
    /// The name of the model that is used where nothing else is said; `offline` if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<ModelName>,
    /// The models by name.
    #[serde(flatten)]
    pub named: BTreeMap<ModelName, ModelSettings>,
}

/// A model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelSettings {
    /// Whose it is: a provider that `holdfast model list` shows, `offline`, or `script` for answers that are played from a file.
    pub provider: String,
    /// What the provider calls it. `offline` and `script` need none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Where the provider is reached; its usual address if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// The variable, of the process or in `.env`, that holds the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key_env: Option<String>,
    /// How hard it shall think: `minimal`, `low`, `medium`, `high`, or a number of tokens in quotes. The provider's choice if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// Dollars per million tokens read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_in: Option<Dollars>,
    /// Dollars per million tokens written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_out: Option<Dollars>,
    /// The tape that every request and answer is added to; `cassette:<file>` plays it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<String>,
    /// The file that `script` plays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

/// What is different for an agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AgentSettings {
    /// The name of its model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelName>,
    /// The models that are asked, in this order, where its model cannot answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fallback: Vec<ModelName>,
    /// Instructions that follow its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// What it may use up.
    #[serde(skip_serializing_if = "LimitSettings::is_empty")]
    pub limits: LimitSettings,
}

/// Channels.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Channels {
    /// The channel that reaches the user where nothing else is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<ExtensionId>,
    /// Which sessions a channel's users have, by the channel's id; each user one of their own if left out.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub sessions: BTreeMap<ExtensionId, SessionRule>,
}

/// Which sessions the users of a channel have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionRule {
    /// Each user has one on each channel: `<channel>.<user>`.
    #[default]
    PerUser,
    /// All users of the channel share one: `<channel>`.
    PerChannel,
    /// There is one for everybody, and for the other channels that are set so: `main`.
    Single,
}

impl SessionRule {
    pub(crate) const ALL: &'static [SessionRule] = &[Self::PerUser, Self::PerChannel, Self::Single];
}

/// What a turn and a session may use up. What is left out stays as it was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LimitSettings {
    /// Model calls in a turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_turns: Option<u32>,
    /// Tokens in a turn, read and written.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_tokens: Option<u64>,
    /// Milliseconds in a turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_budget_ms: Option<Millis>,
    /// Dollars in a turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost_usd: Option<Dollars>,
    /// Tool calls in a turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tool_calls: Option<u32>,
    /// Tokens in a session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_tokens: Option<u64>,
    /// Dollars in a session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_cost_usd: Option<Dollars>,
    /// Tool calls in a session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_tool_calls: Option<u32>,
    /// Milliseconds that a session's turns may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_time_ms: Option<Millis>,
}

/// How tool calls are run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CallSettings {
    /// How many run concurrently in the whole home. A tool that only computes is counted where it has a limit of its own.
    #[schemars(range(min = 1))]
    pub at_once: u32,
    /// How many of an extension's tools run concurrently, by the extension's id.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub per_extension: BTreeMap<ExtensionId, u32>,
    /// How many calls of a tool run concurrently, by its name. Where the tool names fewer itself, that counts.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub per_tool: BTreeMap<ToolName, u32>,
    /// How long a call of a tool may take, by its name, in milliseconds, in place of what the tool says. A sandboxed component stops at its
    /// own limit, too.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub timeout_ms: BTreeMap<ToolName, Millis>,
    /// The circuit breaker of tools that fail repeatedly.
    #[serde(skip_serializing_if = "BreakerSettings::is_default")]
    pub breaker: BreakerSettings,
    /// How many host calls each extension may make, the events that it publishes among them.
    #[serde(skip_serializing_if = "HostCallRate::is_default")]
    pub host_rate: HostCallRate,
}

impl Default for CallSettings {
    fn default() -> Self {
        let (per_extension, per_tool, timeout_ms) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let (breaker, host_rate) = (BreakerSettings::default(), HostCallRate::default());
        Self { at_once: 64, per_extension, per_tool, timeout_ms, breaker, host_rate }
    }
}

/// How many host calls each extension may make. All of them are recorded, so this bounds what an extension writes to the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HostCallRate {
    /// Calls in a second, on average.
    #[schemars(range(min = 1))]
    pub per_second: u32,
    /// Calls that may be made at once, after a time with fewer of them.
    #[schemars(range(min = 1))]
    pub burst: u32,
    /// Bytes of arguments in a second, on average.
    #[schemars(range(min = 1))]
    pub bytes_per_second: u64,
    /// Bytes of arguments that may be sent at once.
    #[schemars(range(min = 1))]
    pub burst_bytes: u64,
}

impl Default for HostCallRate {
    fn default() -> Self {
        Self { per_second: 50, burst: 30_000, bytes_per_second: 64 << 10, burst_bytes: 128 << 20 }
    }
}

/// The circuit breaker of tools that fail repeatedly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BreakerSettings {
    /// The number of consecutive failures after which it opens.
    #[schemars(range(min = 1))]
    pub faults: u32,
    /// How long it stays open, in seconds; then one trial call decides whether it closes.
    #[schemars(range(min = 1, max = 86_400))]
    pub pause_seconds: u32,
}

impl Default for BreakerSettings {
    fn default() -> Self {
        Self { faults: 5, pause_seconds: 30 }
    }
}

impl BreakerSettings {
    /// How long the breaker stays open.
    pub fn pause(&self) -> Millis {
        Millis(u64::from(self.pause_seconds) * 1_000)
    }
}

/// How long a session's frames are kept. A frame is deleted when it exceeds either limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RetentionSettings {
    /// Frames of the last so many days are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub keep_days: Option<u32>,
    /// Only so many frames of a session are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub keep_frames: Option<u64>,
}

/// The health checks of extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Health {
    /// Every so many seconds.
    #[schemars(range(min = 1, max = 86_400))]
    pub every_seconds: u32,
}

impl Default for Health {
    fn default() -> Self {
        Self { every_seconds: 30 }
    }
}

impl Health {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// How many tools models are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ToolSettings {
    /// Up to this many tools, all are shown; with more, a model sees the built-in ones, the agents and what it found or used, and searches
    /// for the others with `find_tools`.
    #[schemars(range(min = 1, max = 1_000))]
    pub show_at_most: u32,
}

impl Default for ToolSettings {
    fn default() -> Self {
        Self { show_at_most: 40 }
    }
}

impl ToolSettings {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// What is reported on standard error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LogSettings {
    /// The least that is reported; `-q` and `-v` override it.
    pub level: LogLevelSetting,
}

/// How much is reported, the least first.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum LogLevelSetting {
    /// What failed.
    Error,
    /// What is odd, besides.
    #[default]
    Warn,
    /// What happens, besides.
    Info,
    /// How it happens, besides.
    Debug,
    /// Everything.
    Trace,
}

impl LogLevelSetting {
    pub(crate) const ALL: &'static [LogLevelSetting] =
        &[Self::Error, Self::Warn, Self::Info, Self::Debug, Self::Trace];

    /// Whether so much includes a line of this importance.
    pub fn includes(self, line: log::LogLevel) -> bool {
        let least = match line {
            log::LogLevel::Error => Self::Error,
            log::LogLevel::Warning | log::LogLevel::Printed => Self::Warn,
            log::LogLevel::Info => Self::Info,
            log::LogLevel::Debug => Self::Debug,
        };
        least <= self
    }
}

/// Where secrets are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SecretSettings {
    /// Where secrets are written. They are read from the environment and from the file in any case.
    pub store: SecretPlace,
}

impl SecretSettings {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// A place for secrets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SecretPlace {
    /// `secrets.age` in the home, encrypted.
    #[default]
    File,
    /// `.env` in the home.
    Environment,
    /// The system's keyring.
    Keyring,
}

impl SecretPlace {
    pub(crate) const ALL: &'static [SecretPlace] = &[Self::File, Self::Environment, Self::Keyring];
}

/// Settings that could be read.
#[derive(Clone, Debug, Default)]
pub struct LoadedSettings {
    /// What they say.
    pub settings: Settings,
    /// What is odd about them; none of it stops anything.
    pub warnings: Vec<Problem>,
    /// The positions of the fields, for problems that are found later; none without a file.
    pub source: Option<YamlSource>,
}

impl Settings {
    /// The extensions that the settings name, by their manifests: MCP servers and packs. Paths begin at this folder.
    pub fn named_extensions(&self, folder: &Path) -> BTreeMap<ExtensionId, String> {
        let mut all = self.mcp.manifests();
        all.extend(packs::manifests(&self.packs, folder));
        all
    }

    /// Reads the settings of a home. Without a file the defaults are in force.
    pub fn load(home: &Home) -> Result<LoadedSettings, Problem> {
        let file = home.settings_file();
        let Some(bytes) = files::read(&file, &BOUNDS)? else { return Ok(LoadedSettings::default()) };
        let YamlRead { value, warnings, source } = Self::parse(&file, &bytes)?;
        Ok(LoadedSettings { settings: value, warnings, source: Some(source) })
    }

    /// Parses settings. The file's name is for messages only.
    pub fn parse(file: &Path, bytes: &[u8]) -> Result<YamlRead<Settings>, YamlRejected> {
        read::settings(file, bytes)
    }

    /// The name of the model that is used where nothing else is said.
    pub fn default_model(&self) -> ModelName {
        self.models.default.clone().unwrap_or_else(|| OFFLINE.into())
    }

    /// The limits of an agent: its own over those for all, and those over the defaults.
    pub fn limits(&self, agent: &AgentId, defaults: Limits) -> Limits {
        let limits = self.limits.over(defaults);
        self.agents.get(agent).map_or(limits, |agent| agent.limits.over(limits))
    }
}

impl LimitSettings {
    /// What is set of this kind.
    pub fn bound(&self, kind: LimitKind) -> Option<u64> {
        match kind {
            LimitKind::Turns => self.max_turns.map(u64::from),
            LimitKind::Tokens => self.max_tokens,
            LimitKind::Time => self.time_budget_ms.map(|time| time.0),
            LimitKind::Cost => self.max_cost_usd.map(|dollars| dollars.micros),
            LimitKind::ToolCalls => self.max_tool_calls.map(u64::from),
            LimitKind::SessionTokens => self.session_tokens,
            LimitKind::SessionCost => self.session_cost_usd.map(|dollars| dollars.micros),
            LimitKind::SessionToolCalls => self.session_tool_calls.map(u64::from),
            LimitKind::SessionTime => self.session_time_ms.map(|time| time.0),
            _ => None,
        }
    }

    /// Other limits, with what is set here in their place.
    pub fn over(&self, limits: Limits) -> Limits {
        let micros = |dollars: Option<Dollars>| dollars.map(|dollars| dollars.micros);
        Limits {
            max_turns: self.max_turns.unwrap_or(limits.max_turns),
            max_tokens: self.max_tokens.unwrap_or(limits.max_tokens),
            time_budget: self.time_budget_ms.unwrap_or(limits.time_budget),
            max_cost_micros: micros(self.max_cost_usd).or(limits.max_cost_micros),
            max_tool_calls: self.max_tool_calls.or(limits.max_tool_calls),
            session_tokens: self.session_tokens.or(limits.session_tokens),
            session_cost_micros: micros(self.session_cost_usd).or(limits.session_cost_micros),
            session_tool_calls: self.session_tool_calls.or(limits.session_tool_calls),
            session_time: self.session_time_ms.or(limits.session_time),
        }
    }
}

macro_rules! emptiness {
    ($($name:ident . $function:ident)+) => {$(
        impl $name {
            fn $function(&self) -> bool {
                *self == Self::default()
            }
        }
    )+};
}

emptiness! {
    Models.is_empty Channels.is_empty LimitSettings.is_empty RetentionSettings.is_empty LogSettings.is_default CallSettings.is_default
    BreakerSettings.is_default
    HostCallRate.is_default
}

/// The JSON Schema of `settings.yaml`.
pub fn schema() -> Value {
    SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<Settings>().to_value()
}
