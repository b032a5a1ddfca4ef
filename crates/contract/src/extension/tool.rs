//! A tool as its extension declares it, and what a call of it comes to.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::content::Content;
use crate::ids::{Millis, ToolName};
use crate::problem::{Code, Fault};

/// What a tool does to the world. Undeclared counts as [`EffectClass::Unknown`], which is treated as having side effects.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum EffectClass {
    /// Computes from its arguments alone. Needs no barrier, and runs again after a crash.
    Pure,
    /// Reads from outside and changes nothing. Runs again after a crash.
    Read,
    /// Changes files or records.
    Write,
    /// Runs programs.
    Exec,
    /// Sends something over a network.
    Network,
    /// Not declared.
    #[default]
    Unknown,
}

impl EffectClass {
    /// Whether the frame that decides the call must be durable before the call runs.
    pub fn leaves_the_machine(self) -> bool {
        self != Self::Pure
    }

    /// Whether the call may run again when a crash hid its outcome.
    pub fn may_run_again(self) -> bool {
        matches!(self, Self::Pure | Self::Read)
    }
}

/// A tool as its extension declares it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolSpec {
    /// The name a model calls it by; also its descriptor id.
    pub name: ToolName,
    /// What it does, for the model.
    pub description: String,
    /// JSON Schema of the arguments.
    pub input_schema: Content,
    /// JSON Schema of the result, if it promises one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Content>,
    /// What it does to the world.
    #[serde(default)]
    pub effects: EffectClass,
    /// How long a call may take.
    #[serde(default = "default_timeout")]
    pub timeout: Millis,
    /// How many calls of it may run at once; as many as there are if it names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    /// How a surface may show calls and results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub render: Option<Content>,
    /// Which agents have it besides those that name its extension. Only native extensions can set it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<ToolGroup>,
    /// Whether its author wants a person to be asked where no rule of the user's decides: `policy.ask` in the manifest.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asks: bool,
}

/// A group of tools that agents have without naming each extension under `uses_tools`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolGroup {
    /// Agents that name `core_tools` have them.
    Core,
    /// Agents that name anything have them, because other tools' results refer to them.
    Companion,
}

/// The time a tool has if it names none.
pub fn default_timeout() -> Millis {
    Millis(60_000)
}

impl ToolSpec {
    /// A tool with every default: any object as arguments, unknown effects, 60 seconds.
    pub fn named(name: &str, description: &str) -> Self {
        Self {
            name: name.into(),
            description: description.to_owned(),
            input_schema: Content::new(serde_json::json!({ "type": "object" })),
            output_schema: None,
            effects: EffectClass::default(),
            timeout: default_timeout(),
            concurrency: None,
            render: None,
            group: None,
            asks: false,
        }
    }
}

/// The arguments of every agent that is called as a tool: it is asked in words.
pub fn agent_arguments_schema() -> Content {
    Content::new(serde_json::json!({
        "type": "object",
        "properties": { "task": { "type": "string", "description": "What the agent shall do, in full." } },
        "required": ["task"],
        "additionalProperties": false,
    }))
}

/// What a tool answered, or why there is no answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ToolOutcome {
    /// The result.
    Result(Content),
    /// The tool, or its lane, failed.
    Failure(Fault),
}

impl From<Result<Content, Fault>> for ToolOutcome {
    fn from(answer: Result<Content, Fault>) -> Self {
        answer.map_or_else(Self::Failure, Self::Result)
    }
}

impl ToolOutcome {
    /// What the model is told.
    pub fn told(&self) -> Content {
        match self {
            Self::Result(content) => content.clone(),
            Self::Failure(fault) => fault.into(),
        }
    }

    /// Why there is no answer.
    pub fn fault(&self) -> Option<&Fault> {
        match self {
            Self::Result(_) => None,
            Self::Failure(fault) => Some(fault),
        }
    }
}

/// How a call ended, as the model is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallStatus {
    /// It ran and gave a result.
    Done,
    /// It ran, or was to run, and failed.
    Failed,
    /// A gate, the policy or a person refused it.
    Denied,
    /// It was cancelled with its turn.
    Cancelled,
    /// A crash hid its outcome, and it may have had side effects.
    Interrupted,
}

/// How a call ends that comes to this fault instead of a result.
impl From<Code> for CallStatus {
    fn from(code: Code) -> Self {
        match code {
            Code::ToolDenied => Self::Denied,
            Code::ToolCancelled => Self::Cancelled,
            Code::ToolInterrupted => Self::Interrupted,
            _ => Self::Failed,
        }
    }
}
