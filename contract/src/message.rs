//! What a model is shown and answers, and what hooks and tools are told about the turn they serve.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::content::Content;
use crate::hook::Artifact;
use crate::ids::{AgentId, CallId, Millis, StreamId, ToolName};

/// What a user said, and the files that came with it.
pub type Said = (Content, Vec<Artifact>);

/// A file that goes with what is said, as it comes from outside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Attachment {
    /// A name a person reads.
    pub name: String,
    /// The media type: `image/png`.
    pub media_type: String,
    /// The text of a text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The bytes of anything else, in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base64: Option<String>,
}

impl From<Attachment> for Artifact {
    fn from(file: Attachment) -> Self {
        let Attachment { name, media_type, text, base64 } = file;
        let content = match (text, base64) {
            (_, Some(bytes)) => Content::new(serde_json::json!({ "base64": bytes })),
            (text, None) => Content::of(&text),
        };
        Self { name, media_type, content }
    }
}

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "role", rename_all = "snake_case", deny_unknown_fields)]
pub enum Message {
    /// From the user.
    User {
        /// What they said.
        text: Content,
        /// Files that came with it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Artifact>,
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

impl Limits {
    /// What is left of these limits after this much was spent in the turn and in the session and with this much time to go, for
    /// someone who has limits of their own.
    pub fn left_for(&self, own: Limits, turn: &Spent, session: &Spent, time: Millis) -> Limits {
        let least = |own: Option<u64>, bound: Option<u64>, used: u64| {
            own.into_iter().chain(bound.map(|bound| bound.saturating_sub(used))).min()
        };
        Limits {
            max_tokens: own.max_tokens.min(self.max_tokens.saturating_sub(turn.tokens)),
            time_budget: own.time_budget.min(time),
            max_cost_micros: least(own.max_cost_micros, self.max_cost_micros, turn.cost_micros),
            session_tokens: least(own.session_tokens, self.session_tokens, session.tokens),
            session_cost_micros: least(
                own.session_cost_micros,
                self.session_cost_micros,
                session.cost_micros,
            ),
            ..own
        }
    }
}

impl Limits {
    /// The limit that forbids another model call after so much was spent in the turn and in the session.
    pub fn reached(&self, turn: &Spent, session: &Spent, time: Millis) -> Option<Reached> {
        let bounds = [
            (LimitKind::Turns, Some(u64::from(self.max_turns)), u64::from(turn.turns)),
            (LimitKind::Tokens, Some(self.max_tokens), turn.tokens),
            (LimitKind::Cost, self.max_cost_micros, turn.cost_micros),
            (LimitKind::SessionTokens, self.session_tokens, session.tokens),
            (LimitKind::SessionCost, self.session_cost_micros, session.cost_micros),
            (LimitKind::Time, Some(self.time_budget.0), time.0),
        ];
        let mut bounds = bounds.into_iter().filter_map(|(kind, allowed, used)| Some((kind, allowed?, used)));
        bounds.find(|(_, allowed, used)| used >= allowed)
    }
}

impl Message {
    /// What a user said with these files, which are taken over.
    pub fn said(text: &Content, attachments: &mut Vec<Artifact>) -> Self {
        Self::User { text: text.clone(), attachments: std::mem::take(attachments) }
    }

    /// What a user said, without any files.
    pub fn user(text: impl Into<Content>) -> Self {
        Self::User { text: text.into(), attachments: Vec::new() }
    }

    /// Where the last so many messages of a conversation begin: never between a call and its result.
    pub fn cut(conversation: &[Message], keep: u32) -> usize {
        let last = conversation.len().saturating_sub(keep as usize);
        let is_result = |place: usize| matches!(conversation.get(place), Some(Message::Tool { .. }));
        (0..=last).rev().find(|place| !is_result(*place)).unwrap_or(0)
    }
}

/// Which limit, its bound, and what was used or asked for.
pub type Reached = (LimitKind, u64, u64);

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

impl Spent {
    /// Adds what more was used; the largest number stands for anything larger.
    pub fn add(&mut self, more: Spent) {
        self.turns = self.turns.saturating_add(more.turns);
        self.tokens = self.tokens.saturating_add(more.tokens);
        self.cost_micros = self.cost_micros.saturating_add(more.cost_micros);
        self.tool_calls = self.tool_calls.saturating_add(more.tool_calls);
    }
}

impl From<Usage> for Spent {
    fn from(usage: Usage) -> Self {
        let tokens = usage.input_tokens.saturating_add(usage.output_tokens);
        Self { tokens, cost_micros: usage.cost_micros, ..Self::default() }
    }
}

/// Where a session came from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// The surface or channel: `cli`, `telegram`, `schedule/…`.
    pub channel: String,
    /// The user, where the channel knows one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
}

/// What extensions are told about the turn they serve. Frozen when the turn starts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CallView {
    /// The call.
    pub id: CallId,
    /// The tool.
    pub tool: ToolName,
    /// Its arguments as they stand.
    pub arguments: Content,
}
