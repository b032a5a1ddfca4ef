//! Roles: what an extension can be, found by what it exports, never declared. The table is the same for every lane.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! roles {
    ($($(#[doc = $doc:literal])+ $name:ident { $($function:literal),* $(,)? })+) => {
        /// What an extension can be. One extension may have several roles.
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
        )]
        #[serde(rename_all = "snake_case")]
        pub enum Role { $($(#[doc = $doc])+ $name,)+ }

        impl Role {
            /// Every role.
            pub const ALL: &'static [Role] = &[$(Role::$name,)+];

            /// The functions that make up the role. Those ending in `?` are optional.
            pub fn functions(self) -> &'static [&'static str] {
                match self { $(Role::$name => &[$($function),*],)+ }
            }
        }
    };
}

roles! {
    /// Life: called in this order, all optional.
    Lifecycle { "initialize?", "start?", "stop?", "destroy?", "health-check?" }
    /// Tools that a model may call.
    Tools { "list", "call" }
    /// A way to reach the user.
    Channel { "send-to-user", "send-message?", "send-file?" }
    /// A channel that shows an answer as it is written.
    StreamingChannel { "stream-start", "stream-chunk", "stream-status", "stream-end" }
    /// An agent of its own.
    Agent { "descriptor", "invoke" }
    /// Tasks run by the manifest's schedules.
    Scheduler { "execute-task" }
    /// Takes the events of the topics that it subscribes to.
    Subscriber { "on-event" }
    /// A loop in the background.
    Service { "run-background" }
    /// Text for the system role before each model call.
    Context { "priority?", "get-context" }
    /// Questions to answer before the extension can work.
    Setup { "schema", "apply", "complete" }
    /// Methods that other extensions reach by `get_extension(id).method()`.
    Api { "methods", "call" }
    /// Session hooks.
    SessionHooks { "session-start?", "session-end?", "session-cancel?" }
    /// Turn hooks.
    TurnHooks { "turn-start?", "turn-end?" }
    /// Rewrites the user's text.
    InputHook { "input-normalise" }
    /// Rewrites a tool call.
    ToolModifier { "tool-modify" }
    /// Judges a tool call.
    ToolGate { "tool-gate" }
    /// Rewrites a tool's result.
    ToolAfter { "tool-after" }
    /// Names a model.
    ModelRouter { "model-route" }
    /// Before compaction.
    CompactionHook { "compaction-before" }
    /// Writes the summary.
    CompactionProvider { "compact" }
    /// Allow, flag, sanitize or block.
    Guardrail { "evaluate-input?", "evaluate-output?", "evaluate-result?", "evaluate-chunk?" }
    /// Rewrites the answer.
    ResponseProcessor { "process-response" }
    /// Shows a tool's calls and results.
    Renderer { "render-call?", "render-result?" }
    /// Slash commands.
    Commands { "list", "run" }
    /// A workflow and its steps.
    Workflow { "definition", "execute-step" }
    /// Remembers and recalls.
    MemoryProvider { "remember", "recall", "forget?" }
    /// Answers as a language model.
    ModelProvider { "models", "complete" }
}
