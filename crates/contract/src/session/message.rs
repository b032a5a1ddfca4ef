//! What a model is shown and answers, and what hooks and tools are told about the turn they serve.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::content::Content;
use crate::hook::Artifact;
use crate::ids::{AgentId, CallId, ExtensionId, StreamId, ToolName};
pub use crate::limits::{LimitKind, Limits, Spent, Usage};
use crate::manifest::Profile;

/// What a user said, and the files that came with it.
pub type UserText = (Content, Vec<Artifact>);

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
        /// Files that it made.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Artifact>,
        /// The arguments that it ran with, if the user changed them before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        edited: Option<Content>,
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

impl Message {
    /// What a user said, without any files.
    pub fn user(text: impl Into<Content>) -> Self {
        Self::User { text: text.into(), attachments: Vec::new() }
    }

    /// What a model is told of a call's result: what it came to, after what the user changed about the call.
    pub fn told_result(content: &Content, edited: Option<&Content>) -> String {
        match edited {
            None => content.to_text(),
            Some(arguments) => format!(
                "[The user changed the arguments of this call before it ran. It ran with: {}]\n{}",
                arguments.to_text(),
                content.to_text()
            ),
        }
    }
}

/// Where a session came from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// The surface or channel: `chat`, `run`, `telegram`; `extension/ID` for what an extension asks for by itself; `task` for a task
    /// that the user published.
    pub channel: String,
    /// The user, where the channel knows one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
}

/// The origins of the program's own surfaces. No channel counts as one of them, whatever its id.
const SURFACES: &[&str] = &["call", "chat", "cli", "compaction", "demo", "rpc", "run", "task", "trial"];

impl Origin {
    /// What an extension asks for by itself. Whom the answer is for makes no difference.
    pub fn extension(id: &ExtensionId) -> Self {
        Self { channel: format!("extension/{id}"), user: None }
    }

    /// A message of a user on a channel.
    pub fn channel(id: &ExtensionId, user: &str) -> Self {
        let is_surface = SURFACES.contains(&id.as_str());
        let channel = if is_surface { Self::extension(id).channel } else { id.to_string() };
        Self { channel, user: Some(user.to_owned()) }
    }

    /// A task that the user published.
    pub fn task() -> Self {
        Self { channel: "task".to_owned(), user: None }
    }
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
    /// The session's workspace, if it has one of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<Arc<str>>,
    /// The profile that the session's client asked for, in place of the policy's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
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
