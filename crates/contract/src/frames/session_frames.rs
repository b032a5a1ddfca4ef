//! The bodies of a session's frames. What each kind is for stands in [`crate::body`].

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::body::Contents;
use crate::content::{Content, DigestOf};
use crate::context::ContextBudget;
use crate::digest::Digest;
use crate::hook::{Artifact, Decision, HookPoint};
use crate::ids::{
    AgentId, CallId, ExtensionId, HookId, Millis, ModelName, RuleName, Seq, StreamId, ToolName,
};
use crate::manifest::Profile;
use crate::message::{AskedCall, LimitKind, Limits, Origin, Spent, Usage};
use crate::problem::Fault;
use crate::registry::{ExtensionRef, RegistryPin, RegistryRef};
use crate::tool::{CallStatus, EffectClass, ToolOutcome};

pub use super::session_choices::{
    Answer, ApprovalScope, CheckOutcome, ChunkSaid, StreamedUpdates, ToolVerdict, TurnOutcome, UiQuestion,
};

macro_rules! bodies {
    ($($(#[$meta:meta])* struct $name:ident { $($(#[$field_meta:meta])* $field:ident: $type:ty,)* } $(holds $($held:ident),+)?;)+) => {$(
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $name { $($(#[$field_meta])* pub $field: $type,)* }

        impl crate::body::Contents for $name {
            fn contents(&mut self, _visit: &mut dyn FnMut(&mut crate::content::Content)) {
                $($(self.$held.contents(_visit);)+)?
            }
        }
    )+};
}
pub(crate) use bodies;

impl Contents for Content {
    fn contents(&mut self, visit: &mut dyn FnMut(&mut Content)) {
        visit(self);
    }
}

impl<T: Contents> Contents for Option<T> {
    fn contents(&mut self, visit: &mut dyn FnMut(&mut Content)) {
        self.iter_mut().for_each(|held| held.contents(visit));
    }
}

impl<T: Contents> Contents for Vec<T> {
    fn contents(&mut self, visit: &mut dyn FnMut(&mut Content)) {
        self.iter_mut().for_each(|held| held.contents(visit));
    }
}

impl Contents for AskedCall {
    fn contents(&mut self, visit: &mut dyn FnMut(&mut Content)) {
        visit(&mut self.arguments);
    }
}

impl Contents for Artifact {
    fn contents(&mut self, visit: &mut dyn FnMut(&mut Content)) {
        visit(&mut self.content);
    }
}

impl Contents for ToolOutcome {
    fn contents(&mut self, visit: &mut dyn FnMut(&mut Content)) {
        if let ToolOutcome::Result(content) = self {
            visit(content);
        }
    }
}

impl Contents for Decision {
    fn contents(&mut self, visit: &mut dyn FnMut(&mut Content)) {
        match self {
            Decision::Modify { arguments, .. } => arguments.contents(visit),
            Decision::Replace { content } | Decision::Inject { content } => visit(content),
            Decision::Enrich { result, artifacts, render } => {
                result.contents(visit);
                artifacts.contents(visit);
                render.contents(visit);
            }
            Decision::Continue
            | Decision::Allow
            | Decision::Deny { .. }
            | Decision::Ask { .. }
            | Decision::Route { .. }
            | Decision::Flag { .. }
            | Decision::Block { .. }
            | Decision::Compact { .. } => {}
        }
    }
}

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

    /// `model.routed`
    struct ModelRouted {
        /// The model.
        model: ModelName,
        /// The hook that chose it; none for the session's own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<HookId>,
        /// The advice that was heard, followed or not.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        advice: Vec<ModelName>,
    };

    /// `model.requested`
    struct ModelRequested {
        /// The model.
        model: ModelName,
        /// Which of the turn's model calls, from 1.
        round: u32,
        /// Which attempt at it, from 1.
        attempt: u32,
        /// How long to wait before asking.
        #[serde(default)]
        delay: Millis,
        /// How many messages it is shown.
        messages: u32,
    };

    /// `model.returned`
    struct ModelReturned {
        /// What it said.
        text: Content,
        /// Reasoning that the provider wants to see again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reasoning: Option<Content>,
        /// The tools it called.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<AskedCall>,
        /// What it used.
        #[serde(default)]
        usage: Usage,
    } holds text, reasoning, calls;

    /// `model.failed`
    struct ModelFailed {
        /// What happened.
        fault: Fault,
        /// Whether asking again may help.
        retryable: bool,
        /// How long the provider asks to wait first.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after: Option<Millis>,
        /// What it used all the same.
        #[serde(default)]
        usage: Usage,
        /// The limit of the day, or of an extension, that stood in the way.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<LimitReached>,
    };

    /// `stream.guarded`
    struct StreamGuarded {
        /// The guardrails that were asked about each window, in order.
        hooks: Arc<[HookId]>,
        /// The text that they judged. It is cut into windows by a rule that depends on the text alone.
        text: Content,
        /// How many windows were judged.
        windows: u32,
        /// All answers other than "no objection", by window and in the order of the hooks.
        words: Vec<ChunkWord>,
    } holds text;

    /// What a guardrail said about one window of a streamed text.
    struct ChunkWord {
        /// Which window, from 0.
        window: u32,
        /// The guardrail.
        hook: HookId,
        /// What it said, or what went wrong with it.
        said: ChunkSaid,
    };

    /// `stream.interrupted`
    struct StreamInterrupted {
        /// The model request whose stream it was.
        requested: Seq,
    };

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

    /// `preview.asked`
    struct PreviewAsked {
        /// The sanitizers, in the order in which they are asked.
        hooks: Vec<PreviewedBy>,
        /// The digest of what they were asked and what they made of it, in order: each text, each followed by a zero byte. Where one
        /// blocks or fails there is no text.
        digest: Digest,
    };

    /// What a sanitizer was asked about texts that were shown before an answer.
    struct PreviewedBy {
        /// The sanitizer.
        hook: HookId,
        /// How often it was asked.
        asked: u64,
        /// How often it replaced the text.
        replaced: u64,
        /// How often it blocked the text.
        blocked: u64,
        /// How often it failed.
        failed: u64,
        /// How it failed first.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fault: Option<Fault>,
    };

    /// `hook.called`
    struct HookCalled {
        /// The point.
        point: HookPoint,
        /// The tool call, at the tool points.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<CallId>,
        /// The digest of what is judged or rewritten.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        subject: Option<DigestOf>,
        /// The hooks that are asked.
        hooks: Arc<[HookId]>,
    };

    /// `hook.agreed`
    struct HookAgreed {
        /// The point.
        point: HookPoint,
        /// The tool call, at the tool points.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<CallId>,
        /// The digest of what was judged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        subject: Option<DigestOf>,
        /// The hooks, in the order in which they were asked.
        hooks: Arc<[HookId]>,
    };

    /// `hook.decided`
    struct HookDecided {
        /// The hook.
        hook: HookId,
        /// The point.
        point: HookPoint,
        /// The tool call, at the tool points.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<CallId>,
        /// The digest of what was judged or rewritten.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        subject: Option<DigestOf>,
        /// The decision.
        decision: Decision,
        /// The policy's rule, where the policy decided; the setting that a context provider's text was cut by, where it was.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rule: Option<RuleName>,
    } holds decision;

    /// `hook.faulted`
    struct HookFaulted {
        /// The hook.
        hook: HookId,
        /// The point.
        point: HookPoint,
        /// The tool call, at the tool points.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<CallId>,
        /// The digest of what was to be judged or rewritten.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        subject: Option<DigestOf>,
        /// What happened.
        fault: Fault,
    };

    /// `guard.verdict`
    struct GuardVerdict {
        /// The point.
        point: HookPoint,
        /// The tool call, for a result.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<CallId>,
        /// Whether it was blocked.
        blocked: bool,
        /// Each guardrail that objected or remarked, with its reason.
        reasons: Vec<GateReason>,
    };

    /// `tool.called`
    struct ToolCalled {
        /// The call.
        call: CallId,
        /// The tool.
        tool: ToolName,
        /// The digest of its arguments as asked for.
        arguments: DigestOf,
    };

    /// `tool.checked`
    struct ToolChecked {
        /// The call.
        call: CallId,
        /// How the arguments fit.
        outcome: CheckOutcome,
    } holds outcome;

    /// `tool.decided`
    struct ToolDecided {
        /// The call.
        call: CallId,
        /// The digest of the arguments it was decided on.
        arguments: DigestOf,
        /// The verdict.
        verdict: ToolVerdict,
    };

    /// `tool.dispatched`
    struct ToolDispatched {
        /// The call.
        call: CallId,
        /// The tool.
        tool: ToolName,
        /// Whose implementation runs.
        implementation: Arc<ExtensionRef>,
        /// The digest of the final arguments.
        arguments: DigestOf,
        /// What the tool does to the world.
        effects: EffectClass,
        /// Which attempt: above 1 only after a crash, and only without side effects.
        attempt: u32,
    };

    /// `tool.returned`
    struct ToolReturned {
        /// The call.
        call: CallId,
        /// What it came to.
        outcome: ToolOutcome,
    } holds outcome;

    /// `tool.settled`
    struct ToolSettled {
        /// The call.
        call: CallId,
        /// How it ended.
        status: CallStatus,
        /// The digest of what the model is told.
        content: DigestOf,
        /// Why, when it did not end well.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fault: Option<Fault>,
        /// Artifacts that hooks attached.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        artifacts: Vec<Artifact>,
        /// How a surface may show it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        render: Option<Content>,
    } holds artifacts, render;

    /// `approval.requested`
    struct ApprovalRequested {
        /// The call.
        call: CallId,
        /// The digest of the arguments that are to be approved.
        arguments: DigestOf,
        /// Who asks, and why.
        reasons: Vec<GateReason>,
    };

    /// A gate's or guardrail's word.
    struct GateReason {
        /// The hook.
        hook: HookId,
        /// What it said.
        reason: String,
    };

    /// `approval.answered`
    struct ApprovalAnswered {
        /// The `approval.requested` frame.
        approval: Seq,
        /// The answer.
        answer: Answer,
    } holds answer;

    /// `ui.requested`
    struct UiRequested {
        /// The extension that asks.
        extension: ExtensionId,
        /// The hook that asked, if it was one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hook: Option<HookId>,
        /// The question.
        question: UiQuestion,
    } holds question;

    /// `ui.answered`
    struct UiAnswered {
        /// The `ui.requested` frame.
        request: Seq,
        /// The answer; none if it was dismissed.
        answer: Option<Content>,
    } holds answer;

    /// `state.written`
    struct StateWritten {
        /// The extension.
        extension: ExtensionId,
        /// The hook that asked, if it was one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hook: Option<HookId>,
        /// The key.
        key: String,
        /// The value; none removes it.
        value: Option<Content>,
    } holds value;

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

    /// `compaction.requested`
    struct CompactionRequested {
        /// Why.
        reason: String,
        /// The registry that it runs on.
        registry: RegistryPin,
    };

    /// `compaction.started`
    struct CompactionStarted {
        /// How many messages at the end are kept whole.
        keep: u32,
        /// What the summary must keep.
        instructions: Vec<String>,
    };

    /// `compaction.provided`
    struct CompactionProvided {
        /// The summary, or why there is no summary.
        outcome: ToolOutcome,
        /// What it used.
        #[serde(default)]
        usage: Usage,
    } holds outcome;

    /// `compaction.applied`
    struct CompactionApplied {
        /// Messages replaced by the summary.
        replaced: u32,
        /// Messages kept.
        kept: u32,
    };

    /// `clock.read`
    struct ClockRead {
        /// The extension.
        extension: ExtensionId,
        /// The hook that asked, if it was one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hook: Option<HookId>,
        /// What it read.
        value: Millis,
    };

    /// `random.drawn`
    struct RandomDrawn {
        /// The extension.
        extension: ExtensionId,
        /// The hook that asked, if it was one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hook: Option<HookId>,
        /// The bytes, as hexadecimal digits.
        bytes: String,
    };

    /// `secret.used`
    struct SecretUsed {
        /// The extension.
        extension: ExtensionId,
        /// The secret's name.
        name: String,
        /// A keyed digest of its value, never the value.
        keyed_digest: Digest,
    };

    /// `host.called`
    struct HostCalled {
        /// The extension.
        extension: ExtensionId,
        /// The hook that asked, if it was one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hook: Option<HookId>,
        /// What it asked for: `config.get`, `state.get`, `api.call`.
        ask: String,
        /// With which arguments.
        arguments: Content,
        /// The answer.
        outcome: ToolOutcome,
        /// What an agent used that was invoked, which the session pays.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        spent: Option<Spent>,
        /// What the extension was told while the call was served, if it asked for that.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        streamed: Option<StreamedUpdates>,
    } holds arguments, outcome, streamed;

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

impl ModelFailed {
    /// A model that gave no answer, and used nothing.
    pub fn new(fault: Fault, retryable: bool) -> Self {
        Self { fault, retryable, retry_after: None, usage: Usage::default(), limit: None }
    }
}
