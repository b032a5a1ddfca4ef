//! The names of the interface: what a component may export and what that makes it, what it may import and what that takes.

use holdfast_contract::hook::HookPoint;
use holdfast_contract::role::Role;

/// The package that components are built against.
pub(crate) const PACKAGE: &str = "holdfast:extension";

/// Its version.
pub(crate) const VERSION: &str = "0.1.0-draft";

macro_rules! functions {
    ($($name:ident: $interface:literal . $function:literal, $shape:ident, $role:ident $(, at $point:ident)?;)+) => {
        /// A function that a component may export.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Function { $($name,)+ }

        impl Function {
            /// Every function, in the order of `wit/`.
            pub(crate) const ALL: &'static [Function] = &[$(Function::$name,)+];

            /// The interface that it belongs to.
            pub(crate) fn interface(self) -> &'static str {
                match self { $(Function::$name => $interface,)+ }
            }

            /// Its name within the interface.
            pub(crate) fn name(self) -> &'static str {
                match self { $(Function::$name => $function,)+ }
            }

            /// Its signature.
            pub(crate) fn shape(self) -> Shape {
                match self { $(Function::$name => Shape::$shape,)+ }
            }

            /// What exporting it makes a component.
            pub(crate) fn role(self) -> Role {
                match self { $(Function::$name => Role::$role,)+ }
            }

            /// The hook point that it serves.
            pub(crate) fn point(self) -> Option<HookPoint> {
                match self {
                    $($(Function::$name => Some(HookPoint::$point),)?)+
                    _ => None,
                }
            }

            /// The function that serves a hook point.
            pub(crate) fn at(point: HookPoint) -> Function {
                match point { $($(HookPoint::$point => Function::$name,)?)+ }
            }
        }
    };
}

use crate::functions::Shape;

functions! {
    Initialize: "lifecycle-initialize"."initialize", Step, Lifecycle;
    Start: "lifecycle-start"."start", Step, Lifecycle;
    Stop: "lifecycle-stop"."stop", Step, Lifecycle;
    Destroy: "lifecycle-destroy"."destroy", Step, Lifecycle;
    Health: "lifecycle-health"."health-check", Health, Lifecycle;
    ToolsList: "tools"."list", Tools, Tools;
    ToolsCall: "tools"."call", Run, Tools;
    ApiMethods: "api"."methods", Named, Api;
    ApiCall: "api"."call", Run, Api;
    AgentDescriptor: "agent"."descriptor", Agent, Agent;
    AgentInvoke: "agent"."invoke", Invoke, Agent;
    CommandsList: "commands"."list", Named, Commands;
    CommandsRun: "commands"."run", Run, Commands;
    SchedulerTask: "scheduler"."execute-task", Task, Scheduler;
    SetupSchema: "setup"."schema", Json, Setup;
    SetupApply: "setup"."apply", Apply, Setup;
    SetupComplete: "setup"."complete", Word, Setup;
    RenderCall: "render-call"."render-call", RenderCall, Renderer;
    RenderResult: "render-result"."render-result", RenderResult, Renderer;
    SendToUser: "channel"."send-to-user", Send, Channel;
    SendMessage: "channel-message"."send-message", Message, Channel;
    SendFile: "channel-file"."send-file", File, Channel;
    StreamStart: "streaming-channel"."stream-start", StreamStart, StreamingChannel;
    StreamChunk: "streaming-channel"."stream-chunk", StreamPiece, StreamingChannel;
    StreamStatus: "streaming-status"."stream-status", StreamPiece, StreamingChannel;
    StreamEnd: "streaming-channel"."stream-end", StreamEnd, StreamingChannel;
    OnEvent: "subscriber"."on-event", Event, Subscriber;
    RunBackground: "service"."run-background", Step, Service;
    SessionStart: "session-start"."session-start", Step, SessionHooks, at SessionStart;
    SessionEnd: "session-end"."session-end", Step, SessionHooks, at SessionEnd;
    SessionCancel: "session-cancel"."session-cancel", Step, SessionHooks, at SessionCancel;
    TurnStart: "turn-start"."turn-start", Step, TurnHooks, at TurnStart;
    TurnEnd: "turn-end"."turn-end", Ending, TurnHooks, at TurnEnd;
    InputNormalise: "input-normalise"."input-normalise", Rewrite, InputHook, at InputNormalise;
    SanitizeInput: "sanitize-input"."sanitize-input", Sanitize, Guardrail, at SanitizeInput;
    GuardInput: "guard-input"."guard-input", Guard, Guardrail, at GuardInput;
    Context: "context"."get-context", Write, Context, at Context;
    ModelRoute: "model-route"."model-route", Route, ModelRouter, at ModelRoute;
    ToolModify: "tool-modify"."tool-modify", Modify, ToolModifier, at ToolModify;
    ToolGate: "tool-gate"."tool-gate", Gate, ToolGate, at ToolGate;
    ToolAfter: "tool-after"."tool-after", After, ToolAfter, at ToolAfter;
    SanitizeResult: "sanitize-result"."sanitize-result", SanitizeResult, Guardrail, at SanitizeResult;
    GuardResult: "guard-result"."guard-result", GuardResult, Guardrail, at GuardResult;
    SanitizeOutput: "sanitize-output"."sanitize-output", Sanitize, Guardrail, at SanitizeOutput;
    GuardOutput: "guard-output"."guard-output", Guard, Guardrail, at GuardOutput;
    GuardChunk: "guard-chunk"."guard-chunk", Guard, Guardrail, at GuardChunk;
    ResponseProcess: "response-process"."response-process", Rewrite, ResponseProcessor, at ResponseProcess;
    CompactionBefore: "compaction-before"."compaction-before", Plan, CompactionHook, at CompactionBefore;
    CompactionProvide: "compaction-provide"."compaction-provide", Write, CompactionProvider, at CompactionProvide;
}

/// Interfaces that have a name but are not offered yet, in either direction.
const PLANNED: &[&str] = &["workflow", "memory-provider", "memory-forget", "model-provider", "http", "files"];

/// Whether an interface is named in `wit/` but not offered yet.
pub(crate) fn is_planned(interface: &str) -> bool {
    PLANNED.contains(&interface)
}

/// What an interface takes that a component may import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// Nothing: it is only types, or everybody's.
    Nothing,
    /// Its name among the granted interfaces.
    Interface,
    /// A granted secret.
    Secret,
}

/// An interface that a component may import.
pub(crate) struct Import {
    /// Its name.
    pub name: &'static str,
    /// What it takes.
    pub needs: Needs,
    /// Whether it reaches outside, which hooks, context providers and guardrails may not.
    pub outside: bool,
    /// Whether its functions can wait for the host.
    pub waits: bool,
}

const fn import(name: &'static str, needs: Needs, outside: bool, waits: bool) -> Import {
    Import { name, needs, outside, waits }
}

/// Every interface that a component may import.
pub(crate) const IMPORTS: &[Import] = &[
    import("types", Needs::Nothing, false, false),
    import("verdicts", Needs::Nothing, false, false),
    import("log", Needs::Nothing, false, false),
    import("config", Needs::Nothing, false, false),
    import("session", Needs::Nothing, false, false),
    import("state", Needs::Nothing, false, true),
    import("messages", Needs::Nothing, false, true),
    import("clock", Needs::Nothing, false, true),
    import("random", Needs::Nothing, false, true),
    import("events", Needs::Interface, true, true),
    import("subscriptions", Needs::Interface, true, true),
    import("ui", Needs::Interface, false, true),
    import("secrets", Needs::Secret, true, true),
    import("timers", Needs::Nothing, true, true),
    import("extensions", Needs::Interface, true, true),
    import("services", Needs::Interface, true, true),
    import("agents", Needs::Interface, true, true),
];

/// An import's or export's name, taken apart.
pub(crate) struct Name<'a> {
    /// `holdfast:extension`; empty for a plain name.
    pub package: &'a str,
    /// `tools`.
    pub interface: &'a str,
    /// `0.1.0-draft`; empty where there is none.
    pub version: &'a str,
}

impl<'a> Name<'a> {
    /// `package/interface@version`.
    pub(crate) fn parse(name: &'a str) -> Self {
        let (path, version) = name.split_once('@').unwrap_or((name, ""));
        let (package, interface) = path.split_once('/').unwrap_or(("", path));
        Self { package, interface, version }
    }
}
