//! The types of `wit/` as they cross the boundary. Parameters of the host are borrowed; results of a guest are owned.
//!
//! Results of the describing functions (such as `tools.list`) can also be serialised, because they are cached for each activation.
//! No value is validated here.

use serde::{Deserialize, Serialize};
use wasmtime::component::{ComponentType, Lift, Lower};

/// `types.content` as a parameter.
#[derive(Clone, Copy, ComponentType, Lower)]
#[component(variant)]
pub(crate) enum ContentIn<'a> {
    #[component(name = "text")]
    Text(&'a str),
    #[component(name = "json")]
    Json(&'a str),
}

/// `types.content` as a result.
#[derive(Debug, ComponentType, Lift, Lower)]
#[component(variant)]
pub(crate) enum ContentOut {
    #[component(name = "text")]
    Text(String),
    #[component(name = "json")]
    Json(String),
}

/// `types.failure`.
#[derive(Debug, ComponentType, Lift, Lower)]
#[component(variant)]
pub(crate) enum Failure {
    #[component(name = "invalid-arguments")]
    InvalidArguments(String),
    #[component(name = "denied")]
    Denied(String),
    #[component(name = "not-found")]
    NotFound(String),
    #[component(name = "failed")]
    Failed(String),
}

/// `types.tool-call`.
#[derive(Clone, Copy, ComponentType, Lower)]
#[component(record)]
pub(crate) struct ToolCall<'a> {
    pub id: u64,
    pub tool: &'a str,
    pub arguments: &'a str,
}

/// `delivery` of the channel interfaces, which all have the same fields.
#[derive(Clone, Copy, ComponentType, Lower)]
#[component(record)]
pub(crate) struct Delivery<'a> {
    pub id: &'a str,
    pub repeat: bool,
}

/// `channel-file.file`.
#[derive(Clone, Copy, Default, ComponentType, Lower)]
#[component(record)]
pub(crate) struct File<'a> {
    pub name: &'a str,
    #[component(name = "media-type")]
    pub media_type: &'a str,
    pub content: &'a [u8],
}

/// `channel-question.choice`.
#[derive(Clone, Copy, ComponentType, Lower)]
#[component(record)]
pub(crate) struct Choice<'a> {
    pub label: &'a str,
    pub answer: &'a str,
}

/// `subscriber.event`.
#[derive(Clone, Copy, Default, ComponentType, Lower)]
#[component(record)]
pub(crate) struct Event<'a> {
    pub id: &'a str,
    pub topic: &'a str,
    pub payload: &'a str,
    pub key: Option<&'a str>,
    pub correlation: Option<&'a str>,
    pub attempt: u32,
    pub repeat: bool,
}

/// `types.effects`.
#[derive(Clone, Copy, Debug, ComponentType, Lift, Lower, Serialize, Deserialize)]
#[component(enum)]
#[repr(u8)]
pub(crate) enum Effects {
    #[component(name = "unknown")]
    Unknown,
    #[component(name = "pure")]
    Pure,
    #[component(name = "read")]
    Read,
    #[component(name = "write")]
    Write,
    #[component(name = "exec")]
    Exec,
    #[component(name = "network")]
    Network,
}

/// `types.artifact`.
#[derive(Debug, ComponentType, Lift)]
#[component(record)]
pub(crate) struct Artifact {
    pub name: String,
    #[component(name = "media-type")]
    pub media_type: String,
    pub content: ContentOut,
}

/// `verdicts.sanitized`.
#[derive(Debug, ComponentType, Lift)]
#[component(variant)]
pub(crate) enum Sanitized {
    #[component(name = "unchanged")]
    Unchanged,
    #[component(name = "replaced")]
    Replaced(ContentOut),
    #[component(name = "flagged")]
    Flagged(String),
    #[component(name = "blocked")]
    Blocked(String),
}

/// `verdicts.verdict`.
#[derive(Debug, ComponentType, Lift)]
#[component(variant)]
pub(crate) enum Verdict {
    #[component(name = "allow")]
    Allow,
    #[component(name = "flag")]
    Flag(String),
    #[component(name = "block")]
    Block(String),
}

/// `tool-gate.decision`.
#[derive(Debug, ComponentType, Lift)]
#[component(variant)]
pub(crate) enum Gate {
    #[component(name = "allow")]
    Allow,
    #[component(name = "deny")]
    Deny(String),
    #[component(name = "ask")]
    Ask(String),
}

/// `model-route.route`.
#[derive(Debug, ComponentType, Lift)]
#[component(record)]
pub(crate) struct Route {
    pub model: String,
    pub authoritative: bool,
    pub reason: String,
}

/// `tool-modify.modification`.
#[derive(Debug, ComponentType, Lift)]
#[component(record)]
pub(crate) struct Modification {
    pub arguments: Option<String>,
    pub implementation: Option<String>,
}

/// `tool-after.enrichment`.
#[derive(Debug, ComponentType, Lift)]
#[component(record)]
pub(crate) struct Enrichment {
    pub result: Option<ContentOut>,
    pub artifacts: Vec<Artifact>,
    pub render: Option<String>,
}

/// `compaction-before.plan`.
#[derive(Debug, ComponentType, Lift)]
#[component(record)]
pub(crate) struct Plan {
    pub instructions: Option<String>,
    pub keep: Option<u32>,
}

/// `tools.tool-spec`.
#[derive(Debug, ComponentType, Lift, Serialize, Deserialize)]
#[component(record)]
pub(crate) struct ToolSpec {
    pub name: String,
    pub description: String,
    #[component(name = "input-schema")]
    pub input_schema: String,
    #[component(name = "output-schema")]
    pub output_schema: Option<String>,
    pub effects: Effects,
    #[component(name = "timeout-ms")]
    pub timeout_ms: Option<u32>,
    pub render: Option<String>,
}

/// `api.method` and `commands.command-spec`, which have the same fields.
#[derive(Debug, ComponentType, Lift, Serialize, Deserialize)]
#[component(record)]
pub(crate) struct Named {
    pub name: String,
    pub description: String,
}

impl From<Named> for holdfast_contract::exports::Named {
    fn from(Named { name, description }: Named) -> Self {
        Self { name, description }
    }
}

/// `agent.integration`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ComponentType, Lift, Lower, Serialize, Deserialize)]
#[component(enum)]
#[repr(u8)]
pub(crate) enum Integration {
    #[component(name = "tool")]
    Tool,
    #[component(name = "handoff")]
    Handoff,
}

/// `agent.agent-spec`.
#[derive(Debug, ComponentType, Lift, Serialize, Deserialize)]
#[component(record)]
pub(crate) struct AgentSpec {
    pub id: String,
    pub description: String,
    pub integration: Integration,
}

/// `log.level`.
#[expect(dead_code, reason = "only guests make one, and lifting does not name the cases")]
#[derive(Clone, Copy, Debug, ComponentType, Lift, Lower)]
#[component(enum)]
#[repr(u8)]
pub(crate) enum Level {
    #[component(name = "debug")]
    Debug,
    #[component(name = "info")]
    Info,
    #[component(name = "warning")]
    Warning,
    #[component(name = "error")]
    Error,
}

/// `session.turn-info`.
#[derive(ComponentType, Lower)]
#[component(record)]
pub(crate) struct TurnInfo {
    pub session: String,
    pub turn: u32,
    pub agent: String,
    pub channel: String,
    pub user: Option<String>,
}

/// `events.new-event`.
#[derive(ComponentType, Lift)]
#[component(record)]
pub(crate) struct NewEvent {
    pub topic: String,
    pub payload: String,
    pub key: Option<String>,
    pub correlation: Option<String>,
    pub idempotency: Option<String>,
}

/// `agents.recipient`.
#[derive(ComponentType, Lift)]
#[component(record)]
pub(crate) struct Recipient {
    pub channel: Option<String>,
    pub user: Option<String>,
    pub correlation: Option<String>,
}

/// `channels.known-channels`.
#[derive(ComponentType, Lower)]
#[component(record)]
pub(crate) struct KnownChannels {
    pub ids: Vec<String>,
    #[component(name = "default-id")]
    pub default_id: Option<String>,
}

/// `conversations.thread-filter`.
#[derive(ComponentType, Lift)]
#[component(record)]
pub(crate) struct ThreadFilter {
    pub thread: Option<String>,
    pub channel: Option<String>,
    pub project: Option<String>,
    pub archived: bool,
}

/// `agents.called-tool`.
#[derive(ComponentType, Lower)]
#[component(record)]
pub(crate) struct CalledTool {
    pub tool: String,
    pub arguments: String,
}

/// `agents.update`.
#[derive(ComponentType, Lower)]
#[component(variant)]
pub(crate) enum Update {
    #[component(name = "text")]
    Text(String),
    #[component(name = "tool-call")]
    ToolCall(CalledTool),
}

/// `http.request`.
#[derive(ComponentType, Lift)]
#[component(record)]
pub(crate) struct Request {
    pub method: String,
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    #[component(name = "timeout-ms")]
    pub timeout_ms: Option<u32>,
}

/// `http.response`.
#[derive(ComponentType, Lower)]
#[component(record)]
pub(crate) struct Response {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// `files.entry-kind`.
#[derive(Clone, Copy, ComponentType, Lower)]
#[component(enum)]
#[repr(u8)]
pub(crate) enum EntryKind {
    #[component(name = "file")]
    File,
    #[component(name = "folder")]
    Folder,
    #[component(name = "link")]
    Link,
    #[component(name = "other")]
    Other,
}

/// `files.entry`.
#[derive(ComponentType, Lower)]
#[component(record)]
pub(crate) struct Entry {
    pub name: String,
    pub kind: EntryKind,
    pub size: u64,
}
