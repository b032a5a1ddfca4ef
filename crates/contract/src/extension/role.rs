//! Roles: what an extension can be, found by what it exports, never declared. One table names the functions of every role and the
//! interface of `wit/` that each belongs to. All lanes use it, and `docs/reference/roles.md` is generated from it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::hook::HookPoint;

macro_rules! roles {
    ($($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// What an extension can be. One extension may have several roles.
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
        )]
        #[serde(rename_all = "snake_case")]
        pub enum Role { $($(#[doc = $doc])+ $name,)+ }

        impl Role {
            /// Every role.
            pub const ALL: &'static [Role] = &[$(Role::$name,)+];

            /// What the role is, in one sentence.
            pub fn describe(self) -> &'static str {
                match self { $(Role::$name => concat!($($doc),+).trim_start(),)+ }
            }
        }
    };
}

roles! {
    /// Lifecycle steps, called in this order.
    Lifecycle,
    /// Tools that a model may call.
    Tools,
    /// A channel to the user.
    Channel,
    /// A channel that shows an answer while it is generated.
    StreamingChannel,
    /// An agent in code.
    Agent,
    /// Tasks of the manifest's schedules.
    Scheduler,
    /// Receives the events of the topics that it subscribes to.
    Subscriber,
    /// A background loop.
    Service,
    /// Text for the system role before each model call.
    Context,
    /// Parameters to set before the extension can work.
    Setup,
    /// Methods that other extensions may call.
    Api,
    /// Session hooks.
    SessionHooks,
    /// Turn hooks.
    TurnHooks,
    /// Rewrites the user's text.
    InputHook,
    /// Rewrites a tool call.
    ToolModifier,
    /// Judges a tool call.
    ToolGate,
    /// Rewrites a tool's result.
    ToolAfter,
    /// Chooses a model.
    ModelRouter,
    /// Plans a compaction.
    CompactionHook,
    /// Writes the summary of a compaction.
    CompactionProvider,
    /// Sanitizes or judges inputs, results, answers and streamed text.
    Guardrail,
    /// Rewrites the answer.
    ResponseProcessor,
    /// Renders a tool's calls and results.
    Renderer,
    /// Slash commands.
    Commands,
    /// A workflow and its steps.
    Workflow,
    /// Remembers and recalls.
    MemoryProvider,
    /// Answers as a language model.
    ModelProvider,
}

impl Role {
    /// The functions of the role, in the order of the table. A role without functions is reserved: no lane offers it yet.
    pub fn functions(self) -> impl Iterator<Item = RoleFunction> {
        RoleFunction::ALL.iter().copied().filter(move |function| function.role() == self)
    }
}

/// A set of roles, as small as a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoleSet(u32);

const _: () = assert!(Role::ALL.len() <= 32, "a role set has 32 bits");

impl RoleSet {
    /// Whether a role is in the set.
    pub fn contains(self, role: Role) -> bool {
        self.0 & (1 << role as u32) != 0
    }
}

impl FromIterator<Role> for RoleSet {
    fn from_iter<I: IntoIterator<Item = Role>>(roles: I) -> Self {
        Self(roles.into_iter().fold(0, |bits, role| bits | 1 << role as u32))
    }
}

/// Whether an extension with a role must have a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// The role does not work without it.
    Required,
    /// The role works without it.
    Optional,
}

macro_rules! functions {
    ($($name:ident: $role:ident, $interface:literal . $function:literal, $requirement:ident $(, at $point:ident)?;)+) => {
        /// A function that an extension may have.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum RoleFunction { $(#[doc = concat!("`", $interface, ".", $function, "`")] $name,)+ }

        impl RoleFunction {
            /// Every function, in the order of `wit/`.
            pub const ALL: &'static [RoleFunction] = &[$(RoleFunction::$name,)+];

            /// The role that it belongs to.
            pub fn role(self) -> Role {
                match self { $(RoleFunction::$name => Role::$role,)+ }
            }

            /// The interface that it belongs to.
            pub fn interface(self) -> &'static str {
                match self { $(RoleFunction::$name => $interface,)+ }
            }

            /// Its name within the interface.
            pub fn name(self) -> &'static str {
                match self { $(RoleFunction::$name => $function,)+ }
            }

            /// Whether its role needs it.
            pub fn requirement(self) -> Requirement {
                match self { $(RoleFunction::$name => Requirement::$requirement,)+ }
            }

            /// The hook point that it serves.
            pub fn point(self) -> Option<HookPoint> {
                match self {
                    $($(RoleFunction::$name => Some(HookPoint::$point),)?)+
                    _ => None,
                }
            }

            /// The function that serves a hook point.
            pub fn at(point: HookPoint) -> RoleFunction {
                match point { $($(HookPoint::$point => RoleFunction::$name,)?)+ }
            }
        }
    };
}

functions! {
    Initialize: Lifecycle, "lifecycle-initialize"."initialize", Optional;
    Start: Lifecycle, "lifecycle-start"."start", Optional;
    Stop: Lifecycle, "lifecycle-stop"."stop", Optional;
    Destroy: Lifecycle, "lifecycle-destroy"."destroy", Optional;
    Health: Lifecycle, "lifecycle-health"."health-check", Optional;
    ToolsList: Tools, "tools"."list", Required;
    ToolsCall: Tools, "tools"."call", Required;
    ApiMethods: Api, "api"."methods", Required;
    ApiCall: Api, "api"."call", Required;
    AgentDescriptor: Agent, "agent"."descriptor", Required;
    AgentInvoke: Agent, "agent"."invoke", Required;
    CommandsList: Commands, "commands"."list", Required;
    CommandsRun: Commands, "commands"."run", Required;
    SchedulerTask: Scheduler, "scheduler"."execute-task", Required;
    SetupSchema: Setup, "setup"."schema", Required;
    SetupApply: Setup, "setup"."apply", Required;
    SetupComplete: Setup, "setup"."complete", Required;
    RenderCall: Renderer, "render-call"."render-call", Optional;
    RenderResult: Renderer, "render-result"."render-result", Optional;
    SendToUser: Channel, "channel"."send-to-user", Required;
    SendMessage: Channel, "channel-message"."send-message", Optional;
    SendFile: Channel, "channel-file"."send-file", Optional;
    SendQuestion: Channel, "channel-question"."send-question", Optional;
    StreamStart: StreamingChannel, "streaming-channel"."stream-start", Required;
    StreamChunk: StreamingChannel, "streaming-channel"."stream-chunk", Required;
    StreamStatus: StreamingChannel, "streaming-status"."stream-status", Required;
    StreamEnd: StreamingChannel, "streaming-channel"."stream-end", Required;
    OnEvent: Subscriber, "subscriber"."on-event", Required;
    RunBackground: Service, "service"."run-background", Required;
    SessionStart: SessionHooks, "session-start"."session-start", Optional, at SessionStart;
    SessionEnd: SessionHooks, "session-end"."session-end", Optional, at SessionEnd;
    SessionCancel: SessionHooks, "session-cancel"."session-cancel", Optional, at SessionCancel;
    TurnStart: TurnHooks, "turn-start"."turn-start", Optional, at TurnStart;
    TurnEnd: TurnHooks, "turn-end"."turn-end", Optional, at TurnEnd;
    InputNormalise: InputHook, "input-normalise"."input-normalise", Required, at InputNormalise;
    SanitizeInput: Guardrail, "sanitize-input"."sanitize-input", Optional, at SanitizeInput;
    GuardInput: Guardrail, "guard-input"."guard-input", Optional, at GuardInput;
    Context: Context, "context"."get-context", Required, at Context;
    ModelRoute: ModelRouter, "model-route"."model-route", Required, at ModelRoute;
    ToolModify: ToolModifier, "tool-modify"."tool-modify", Required, at ToolModify;
    ToolGate: ToolGate, "tool-gate"."tool-gate", Required, at ToolGate;
    ToolAfter: ToolAfter, "tool-after"."tool-after", Required, at ToolAfter;
    SanitizeResult: Guardrail, "sanitize-result"."sanitize-result", Optional, at SanitizeResult;
    GuardResult: Guardrail, "guard-result"."guard-result", Optional, at GuardResult;
    SanitizeOutput: Guardrail, "sanitize-output"."sanitize-output", Optional, at SanitizeOutput;
    GuardOutput: Guardrail, "guard-output"."guard-output", Optional, at GuardOutput;
    GuardChunk: Guardrail, "guard-chunk"."guard-chunk", Optional, at GuardChunk;
    ResponseProcess: ResponseProcessor, "response-process"."response-process", Required, at ResponseProcess;
    CompactionBefore: CompactionHook, "compaction-before"."compaction-before", Required, at CompactionBefore;
    CompactionProvide: CompactionProvider, "compaction-provide"."compaction-provide", Required, at CompactionProvide;
}
