//! What a model is shown and answers, and what hooks and tools are told about the turn they serve.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::content::Content;
use crate::ids::{AgentId, CallId, Millis, StreamId, ToolName};

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "role", rename_all = "snake_case", deny_unknown_fields)]
pub enum Message {
    /// From the user.
    User {
        /// What they said.
        text: Content,
    },
    /// From the model.
    Assistant {
        /// What it said.
        text: Content,
        /// Reasoning that the provider wants to see again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reasoning: Option<Content>,
        /// The tools it called.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<AskedCall>,
    },
    /// A tool's answer.
    Tool {
        /// The call it answers.
        call: CallId,
        /// The model's own id of that call.
        model_id: Arc<str>,
        /// What it came to.
        content: Content,
        /// Whether it is an error.
        failed: bool,
    },
    /// Injected by the kernel or an extension: a summary, a note.
    Note {
        /// What it says.
        text: Content,
    },
}

/// A tool call as the model asked for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AskedCall {
    /// The model's own id of the call.
    pub model_id: Arc<str>,
    /// The tool.
    pub tool: ToolName,
    /// The arguments.
    pub arguments: Content,
}

/// What a model call used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Usage {
    /// Tokens read.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// Cost in millionths of a dollar.
    pub cost_micros: u64,
}

/// Upper bounds of a turn. Zero turns, tokens or calls is a bound like any other; absent means unbounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Model calls in a turn.
    pub max_turns: u32,
    /// Tokens in a turn.
    pub max_tokens: u64,
    /// Time in a turn.
    pub time_budget: Millis,
    /// Money in a turn, in millionths of a dollar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cost_micros: Option<u64>,
    /// Tool calls in a turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tool_calls: Option<u32>,
    /// Tokens in the whole session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_tokens: Option<u64>,
    /// Money in the whole session, in millionths of a dollar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_cost_micros: Option<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_turns: 10,
            max_tokens: 50_000,
            time_budget: Millis(120_000),
            max_cost_micros: None,
            max_tool_calls: None,
            session_tokens: None,
            session_cost_micros: None,
        }
    }
}

/// Which limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LimitKind {
    /// Model calls in a turn.
    Turns,
    /// Tokens in a turn.
    Tokens,
    /// Time in a turn.
    Time,
    /// Money in a turn.
    Cost,
    /// Tool calls in a turn.
    ToolCalls,
    /// Tokens in the session.
    SessionTokens,
    /// Money in the session.
    SessionCost,
}

/// What has been used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Spent {
    /// Model calls.
    pub turns: u32,
    /// Tokens.
    pub tokens: u64,
    /// Money in millionths of a dollar.
    pub cost_micros: u64,
    /// Tool calls.
    pub tool_calls: u32,
}

/// Where a session came from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// The surface or channel: `cli`, `telegram`, `schedule/…`.
    pub channel: String,
    /// The user, where the channel knows one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
}

/// What extensions are told about the turn they serve. Frozen when the turn starts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TurnContext {
    /// The session.
    pub session: StreamId,
    /// The turn, from 1.
    pub turn: u32,
    /// The agent.
    pub agent: AgentId,
    /// Channel and user.
    pub origin: Origin,
}

/// A shared [`TurnContext`].
pub type TurnView = Arc<TurnContext>;

/// A tool call as a hook sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CallView {
    /// The call.
    pub id: CallId,
    /// The tool.
    pub tool: ToolName,
    /// Its arguments as they stand.
    pub arguments: Content,
}
