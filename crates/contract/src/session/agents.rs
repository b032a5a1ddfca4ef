//! Agents as others reach them: called like a tool, or handed the conversation; and which tools an agent has.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::content::Content;
use crate::ids::{AgentId, ExtensionId, ModelName, ToolName};
use crate::message::Limits;
use crate::tool::EffectClass;

/// What `uses_tools` calls the tools of [`crate::tool::ToolGroup::Core`].
pub const CORE_TOOLS: &str = "core_tools";

/// The tool that gives a conversation back to the agent that handed it over.
pub const HAND_BACK: &str = "hand_back";

/// Prefix of a model name that means an extension's own code, in place of a configured model.
const CODE: &str = "agent:";

/// The model name that means the code of an extension.
pub fn code_model(extension: &ExtensionId) -> ModelName {
    format!("{CODE}{extension}").into()
}

/// The extension whose code answers under this name.
pub fn code_behind(model: &ModelName) -> Option<ExtensionId> {
    model.as_str().strip_prefix(CODE).map(ExtensionId::from)
}

/// An agent that others can call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentSpec {
    /// The agent.
    pub id: AgentId,
    /// The name under which it is called, where that is not its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<ToolName>,
    /// What it is good for, for the model that calls it.
    pub description: String,
    /// How others reach it.
    pub mode: AgentMode,
    /// The extension whose code answers, in place of a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<ExtensionId>,
    /// What calling it does to the world besides what its tools do.
    #[serde(default = "reads", skip_serializing_if = "is_reading")]
    pub effects: EffectClass,
    /// Whether a person is asked about a call of it where no rule of the user's decides.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asks: bool,
    /// The models it may use, best first; empty takes the caller's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<ModelName>,
    /// Its instructions.
    pub instructions: Content,
    /// Whose tools it has: ids of extensions, and `core_tools`. All that there are if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<ExtensionId>>,
    /// Its own limits; the caller's remaining budget counts too.
    #[serde(default)]
    pub limits: Limits,
    /// Parameters for its model, such as `temperature`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub parameters: Map<String, Value>,
}

impl AgentSpec {
    /// An agent whose answers are an extension's own code, and that conversations are handed over to.
    pub fn code(extension: &ExtensionId, id: &str, description: &str) -> Self {
        Self {
            mode: AgentMode::Handoff,
            code: Some(extension.clone()),
            tools: Some(Vec::new()),
            ..Self::named(id, description)
        }
    }

    /// An agent of which nothing but this is known.
    pub fn named(id: &str, description: &str) -> Self {
        Self {
            id: id.into(),
            name: None,
            description: description.to_owned(),
            mode: AgentMode::Tool,
            code: None,
            effects: EffectClass::Read,
            asks: false,
            models: Vec::new(),
            instructions: Content::default(),
            tools: None,
            limits: Limits::default(),
            parameters: Map::new(),
        }
    }

    /// What answers in a session of it: its code, or its models; empty where the caller's do.
    pub fn answered_by(&self) -> Vec<ModelName> {
        match &self.code {
            Some(extension) => vec![code_model(extension)],
            None => self.models.clone(),
        }
    }

    /// The name of the tool by which it is asked, or by which a conversation is handed over to it.
    pub fn tool_name(&self) -> ToolName {
        let name = self.name.as_ref().map_or(self.id.as_str(), ToolName::as_str);
        match self.mode {
            AgentMode::Tool => name.into(),
            AgentMode::Handoff => format!("transfer_to_{name}").into(),
        }
    }
}

fn reads() -> EffectClass {
    EffectClass::Read
}

fn is_reading(effects: &EffectClass) -> bool {
    *effects == EffectClass::Read
}

/// The arguments of the tools that hand a conversation over or back.
pub fn handoff_arguments_schema() -> Content {
    let message = json!({ "type": "string", "description": "What the other one should know." });
    Content::new(
        json!({ "type": "object", "properties": { "message": message }, "additionalProperties": false }),
    )
}

/// How an agent is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentMode {
    /// As a tool: it answers its caller.
    #[default]
    Tool,
    /// By handing the conversation over.
    Handoff,
}

impl std::fmt::Display for AgentMode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Tool => "tool",
            Self::Handoff => "handoff",
        })
    }
}

/// What a tool call does with an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentUse {
    /// Asks it, in a child session.
    Ask(AgentId),
    /// Hands the conversation over to it.
    HandOver(AgentId),
    /// Gives the conversation back.
    HandBack,
}

impl AgentUse {
    /// The agent that is asked or handed over to.
    pub fn agent(&self) -> Option<&AgentId> {
        match self {
            Self::Ask(agent) | Self::HandOver(agent) => Some(agent),
            Self::HandBack => None,
        }
    }
}

/// Which tools the speaking agent of a session has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolScope {
    /// Whose: ids of extensions, and `core_tools`. All that there are if nothing is said.
    pub extensions: Option<Vec<ExtensionId>>,
    /// The agent that the conversation was handed over to.
    pub speaker: Option<AgentId>,
}
