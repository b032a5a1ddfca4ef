//! Requests about extensions, what they register, and their answers.

use holdfast_contract::agents::AgentMode;
use holdfast_contract::content::Content;
use holdfast_contract::ids::{ExtensionId, ModelName, ToolName};
use holdfast_policy::Grant;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ClientRequest, Method, NoParams, Request};

methods! {
    /// What can be asked about extensions, their tools and agents.
    Extensions: ExtensionMethod {
        /// The tools that new turns have.
        "tools.list" => Tools(NoParams),
        /// How the extension of a tool would have a call and its result shown.
        "tool.render" => ToolRender(ToolRender),
        /// The agents that new turns have.
        "agents.list" => Agents(NoParams),
        /// The active channels.
        "channels.list" => Channels(NoParams),
        /// The extensions, their state and their lanes.
        "extensions.list" => List(NoParams),
        /// Start an extension again that is down.
        "extension.restart" => Restart(ExtensionParams),
        /// Enable an extension, in the settings.
        "extension.enable" => Enable(ExtensionParams),
        /// Disable an extension, in the settings.
        "extension.disable" => Disable(ExtensionParams),
        /// Read an extension again and start a new generation of it, also if nothing has changed.
        "extension.reload" => Reload(ExtensionParams),
        /// Remove the folder or file of an extension, and its grants.
        "extension.remove" => Remove(ExtensionRemove),
        /// Recent faults of extensions.
        "extension.doctor" => Doctor(ExtensionDoctor),
        /// Start an MCP server, list what it offers, and compare that with what was approved.
        "mcp.test" => McpTest(McpTest),
        /// What an extension needs before it can work, and what of it is missing.
        "setup.show" => SetupShow(SetupShow),
        /// Set something that an extension needs.
        "setup.apply" => SetupApply(SetupApply),
        /// Which rule decides about a call, and why.
        "policy.explain" => PolicyExplain(PolicyExplain),
    }
}

/// The state of an extension that is disabled.
pub const DISABLED: &str = "DISABLED";

/// An extension.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExtensionParams {
    /// Its id.
    pub id: String,
}

/// An extension that is removed.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExtensionRemove {
    /// Its id.
    pub id: String,
    /// Whether its data is removed too.
    #[serde(default)]
    pub data: bool,
}

/// An extension that was removed.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ExtensionRemovedInfo {
    /// Its id.
    pub id: String,
    /// The folder or file that was removed.
    pub path: String,
    /// Where its data is, if it had any.
    pub data: Option<String>,
    /// Whether its data was removed.
    pub data_removed: bool,
    /// Whether it had grants, which were revoked.
    pub grants_revoked: bool,
}

/// An MCP server.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct McpTest {
    /// The id of its extension.
    pub id: String,
}

/// What an MCP server offers.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct McpTested {
    /// What it calls itself.
    pub server: String,
    /// The protocol revision that was negotiated.
    pub protocol: String,
    /// Its tools, by its own names.
    pub tools: Vec<String>,
    /// How many prompts it has.
    pub prompts: u64,
    /// Whether it has resources.
    pub resources: bool,
}

/// Which extension to examine.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ExtensionDoctor {
    /// Its id; all, if none.
    pub id: Option<String>,
}

/// Something that went wrong with an extension.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FaultRecord {
    /// The extension.
    pub extension: String,
    /// When, in milliseconds since 1970.
    pub at: u64,
    /// What it was doing.
    pub phase: String,
    /// The stable code.
    pub code: String,
    /// What happened.
    pub message: String,
    /// What to do.
    pub fix: String,
}

/// A tool that new turns have.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ToolInfo {
    /// Its name.
    pub name: ToolName,
    /// What it does.
    pub description: String,
    /// What it does to the world.
    pub effects: String,
    /// Whose it is.
    pub extension: String,
    /// Which version.
    pub version: String,
    /// The lane that runs it.
    pub lane: String,
    /// The generation.
    pub generation: u64,
    /// What the policy says before anything is known of the arguments: `allow`, `ask` or `deny`.
    pub policy: String,
    /// The JSON Schema of its arguments.
    pub input_schema: Value,
    /// How a surface may show calls and results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub render: Option<Value>,
    /// Whether its extension shows calls or results itself, when it is asked with `tool.render`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub renders: bool,
}

/// A call of a tool that is to be shown.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolRender {
    /// The tool.
    pub tool: ToolName,
    /// What it was called with.
    pub arguments: Content,
    /// What the model was told.
    pub result: Content,
}

/// How a call is to be shown, in Markdown. What is missing is left to the surface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolRendered {
    /// The call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// Its result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
}

/// An agent that new turns have.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AgentInfo {
    /// Its id.
    pub id: String,
    /// What it is good for.
    pub description: String,
    /// How others reach it.
    pub mode: AgentMode,
    /// Its models.
    pub models: Vec<ModelName>,
}

/// An active channel.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ChannelInfo {
    /// Its id.
    pub id: String,
    /// Whose it is.
    pub extension: String,
    /// Which version.
    pub version: String,
    /// The lane that runs it.
    pub lane: String,
    /// The generation.
    pub generation: u64,
    /// Whether it shows answers as they are written.
    pub streams: bool,
    /// Whether it sends files.
    pub files: bool,
    /// Whether it shows questions with choices.
    #[serde(default)]
    pub questions: bool,
    /// Whether it reaches the user where nothing else is said.
    pub default: bool,
    /// How many sessions of its users the log has.
    pub sessions: u64,
    /// How many users have a session of their own; none where users share one.
    pub users: Option<u64>,
}

/// An extension.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ExtensionInfo {
    /// Its id.
    pub id: String,
    /// Its version, where one serves.
    pub version: Option<String>,
    /// `ACTIVE`, `INACTIVE`, `ERROR` or `DISABLED`.
    pub state: String,
    /// The lane.
    pub lane: String,
    /// The generation that serves.
    pub generation: Option<u64>,
    /// The content's digest.
    pub digest: Option<String>,
    /// Its tools.
    pub tools: Vec<ToolName>,
    /// Its hooks.
    pub hooks: Vec<String>,
    /// What is wrong with it.
    pub fault: Option<String>,
    /// Names of tools that it does not get, or that others register too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<String>,
    /// What the user granted it. A grant that is tied to other content than it has now gives nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<Grant>,
    /// The interfaces of the host that it holds: by its lane and the profile, or by a grant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<String>,
    /// Those of them that its lane holds under the profile, without a grant and without a question.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_default: Vec<String>,
    /// The interfaces that its manifest asks for and that it does not hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lacking: Vec<String>,
    /// What is odd about its files, such as unknown fields of its manifest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// A call to be explained.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyExplain {
    /// The tool.
    pub tool: ToolName,
    /// The extension, if not the active one.
    #[serde(default)]
    pub extension: Option<String>,
    /// Its arguments.
    #[serde(default)]
    pub arguments: Value,
    /// Where the call would come from.
    #[serde(default)]
    pub channel: Option<String>,
}

/// Which extension's setup.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetupShow {
    /// The extension.
    pub extension: ExtensionId,
}

/// Something that an extension needs.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetupApply {
    /// The extension.
    pub extension: ExtensionId,
    /// What is set.
    pub name: String,
    /// The value. That of a secret goes to where secrets are kept, and nowhere else.
    pub value: Value,
}
