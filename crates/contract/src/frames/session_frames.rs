//! The bodies of a session's frames: its start and end, input and turns, limits, children and what was delivered. Those about models,
//! tool calls and host calls are in files of their own. What each kind is for stands in [`crate::body`].

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::contents::bodies;
use crate::content::{Content, DigestOf};
use crate::context::ContextBudget;
use crate::digest::Digest;
use crate::hook::Artifact;
use crate::ids::{AgentId, CallId, ExtensionId, HookId, ModelName, Seq, StreamId};
use crate::manifest::Profile;
use crate::message::{LimitKind, Limits, Origin, Spent};
use crate::problem::Fault;
use crate::registry::{RegistryPin, RegistryRef};
use crate::tool::ToolOutcome;

pub use super::host_frames::{
    ClockRead, HostCalled, RandomDrawn, SecretUsed, StateWritten, UiAnswered, UiRequested,
};
pub use super::model_frames::{
    ChunkVerdict, CompactionApplied, CompactionProvided, CompactionRequested, CompactionStarted, ModelFailed,
    ModelRequested, ModelReturned, ModelRouted, PreviewAsked, PreviewedBy, StreamGuarded, StreamInterrupted,
};
pub use super::session_choices::{
    Answer, ApprovalScope, CheckOutcome, ChunkSaid, StreamedUpdates, ToolVerdict, TurnOutcome, UiQuestion,
};
pub use super::tool_frames::{
    ApprovalAnswered, ApprovalRequested, GateReason, GuardVerdict, HookAgreed, HookCalled, HookDecided,
    HookFaulted, ToolCalled, ToolChecked, ToolDecided, ToolDispatched, ToolReturned, ToolSettled,
};

/// The frame in another stream that a session hangs from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Parent {
    /// The stream.
    pub stream: StreamId,
    /// The frame.
    pub seq: Seq,
}

/// What a session is set to when it starts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionSettings {
    /// The models to try, best first.
    pub models: Vec<ModelName>,
    /// How often a model is asked again before the next one is tried.
    #[serde(default = "default_attempts")]
    pub attempts: u32,
    /// Upper bounds.
    #[serde(default)]
    pub limits: Limits,
    /// How deeply agents may call agents.
    #[serde(default = "default_depth_cap")]
    pub depth_cap: u8,
    /// Whether a router's authoritative word counts.
    #[serde(default)]
    pub authoritative_routing: bool,
    /// Whose tools the session's agent has: ids of extensions, and `core_tools`. All that there are if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<ExtensionId>>,
    /// The profile that it was started under.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
    /// The profile that its client asked for. It takes the place of the policy's in every turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned_profile: Option<Profile>,
    /// The folder that its tools may touch, with links resolved. Without one, it is the folder that the settings name, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<Arc<str>>,
    /// How much context providers may add.
    #[serde(default, skip_serializing_if = "ContextBudget::is_default")]
    pub context: ContextBudget,
}

fn default_attempts() -> u32 {
    3
}

fn default_depth_cap() -> u8 {
    3
}

impl Default for SessionSettings {
    fn default() -> Self {
        Self {
            models: Vec::new(),
            attempts: default_attempts(),
            limits: Limits::default(),
            depth_cap: default_depth_cap(),
            authoritative_routing: false,
            tools: None,
            profile: None,
            pinned_profile: None,
            workspace: None,
            context: ContextBudget::default(),
        }
    }
}

bodies! {
    /// `session.started`
    #[derive(Default)]
    struct SessionStarted {
        /// The kernel's behaviour version.
        kernel: u32,
        /// Where it came from.
        origin: Origin,
        /// The agent that answers.
        agent: AgentId,
        /// The agent's instructions, for the system role.
        instructions: Content,
        /// The frame it was opened from, if it is a child.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<Parent>,
        /// How deep it is nested.
        #[serde(default)]
        depth: u8,
        /// What it is set to.
        settings: Arc<SessionSettings>,
    } holds instructions;

    /// `session.resumed`
    struct SessionResumed {
        /// Why it had stopped: `restart`, `crash`.
        reason: String,
    };

    /// `session.cancelled`
    struct SessionCancelled {
        /// Why.
        reason: String,
    };

    /// `session.ended`
    struct SessionEnded {
        /// Why.
        reason: String,
    };

    /// `session.set`
    struct SessionSet {
        /// The models to try from the next turn on, best first.
        models: Vec<ModelName>,
    };

    /// `agent.changed`
    struct AgentChanged {
        /// The tool call that did it; none if the agent is no longer there.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<CallId>,
        /// Who answers from here on.
        agent: AgentId,
    };

    /// `input.received`
    struct InputReceived {
        /// What the user said.
        text: Content,
        /// Files that came with it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Artifact>,
        /// The channel's own id of the message, against doubles.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message_id: Option<String>,
        /// The registry that the turn is pinned to.
        registry: RegistryPin,
    } holds text, attachments;

    /// `input.normalised`
    struct InputNormalised {
        /// The text that the turn goes on with.
        text: Content,
    } holds text;

    /// `turn.started`
    struct TurnStarted {
        /// The turn, from 1.
        turn: u32,
        /// The registry it runs on.
        registry: RegistryRef,
    };

    /// `turn.ended`
    struct TurnEnded {
        /// The turn.
        turn: u32,
        /// How it ended.
        outcome: TurnOutcome,
        /// What the user is told.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answer: Option<Content>,
        /// What it cost.
        spent: Spent,
    } holds answer;

    /// `context.injected`
    struct ContextInjected {
        /// The texts' digests and their origin, in order.
        blocks: Vec<ContextBlock>,
    };

    /// One context provider's contribution.
    struct ContextBlock {
        /// The provider.
        hook: HookId,
        /// The digest of its text.
        content: DigestOf,
    };

    /// `message.injected`
    struct MessageInjected {
        /// The extension.
        extension: ExtensionId,
        /// The hook that asked, if it was one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hook: Option<HookId>,
        /// The message.
        text: Content,
    } holds text;

    /// `stream.shown`
    struct StreamShown {
        /// The channel.
        channel: ExtensionId,
        /// The stream: the id of the message that is answered.
        id: String,
        /// The number of chunks of text.
        chunks: u64,
        /// The length of each chunk in bytes, of the first ones.
        lengths: Vec<u32>,
        /// The number of status lines.
        statuses: u64,
        /// The digest of the text: of all chunks, joined.
        text: Digest,
        /// The digest of everything that the channel was given, in order: each function and its text, each followed by a zero byte.
        shown: Digest,
        /// Why the channel was given no more before the end.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fault: Option<Fault>,
    };

    /// `stream.lost`
    struct StreamLost {
        /// The channel.
        channel: ExtensionId,
        /// The stream: the id of the message that is answered.
        id: String,
    };

    /// `child.opened`
    struct ChildOpened {
        /// The tool call that opened it.
        call: CallId,
        /// The child's stream.
        child: StreamId,
        /// The agent.
        agent: AgentId,
        /// What is left for it.
        limits: Limits,
    };

    /// `child.ended`
    struct ChildEnded {
        /// The tool call that opened it.
        call: CallId,
        /// The child's stream.
        child: StreamId,
        /// What it came to.
        outcome: ToolOutcome,
        /// What it cost, which its parent pays.
        spent: Spent,
    } holds outcome;

    /// `limit.reached`
    struct LimitReached {
        /// Which limit.
        limit: LimitKind,
        /// The bound.
        allowed: u64,
        /// What was used or asked for.
        used: u64,
    };

    /// `timer.fired`
    struct TimerFired {
        /// The frame that set it.
        timer: Seq,
    };

    /// `delivery.reported`
    struct DeliveryReported {
        /// The `turn.ended` frame whose answer was streamed.
        delivery: Seq,
        /// What happened, if it did not arrive.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fault: Option<Fault>,
    };

    /// `command.run`
    struct CommandRun {
        /// The command, without its slash.
        command: String,
        /// Its arguments.
        arguments: String,
        /// What it printed.
        output: Content,
    } holds output;
}
