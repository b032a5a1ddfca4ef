//! The names of the interface: what a component may export, with its role, and what it may import, with the grant that it needs.

pub(crate) use holdfast_contract::role::RoleFunction as Function;

use crate::wit::functions::Shape;

/// The package that components are built against.
pub(crate) const PACKAGE: &str = "holdfast:extension";

/// Its version.
pub(crate) const VERSION: &str = "0.1.0-draft";

impl Shape {
    /// The signature of a function of a role.
    pub(crate) fn of(function: Function) -> Self {
        match function {
            Function::Initialize
            | Function::Start
            | Function::Stop
            | Function::Destroy
            | Function::RunBackground
            | Function::SessionStart
            | Function::SessionEnd
            | Function::SessionCancel
            | Function::TurnStart => Self::Step,
            Function::Health => Self::Health,
            Function::ToolsList => Self::Tools,
            Function::ToolsCall | Function::ApiCall | Function::CommandsRun => Self::Run,
            Function::ApiMethods | Function::CommandsList => Self::Named,
            Function::AgentDescriptor => Self::Agent,
            Function::AgentInvoke => Self::Invoke,
            Function::SchedulerTask => Self::Task,
            Function::SetupSchema => Self::Json,
            Function::SetupApply => Self::Apply,
            Function::SetupComplete => Self::Word,
            Function::RenderCall => Self::RenderCall,
            Function::RenderResult => Self::RenderResult,
            Function::SendToUser => Self::Send,
            Function::SendMessage => Self::Message,
            Function::SendFile => Self::File,
            Function::StreamStart => Self::StreamStart,
            Function::StreamChunk | Function::StreamStatus => Self::StreamPiece,
            Function::StreamEnd => Self::StreamEnd,
            Function::OnEvent => Self::Event,
            Function::TurnEnd => Self::Ending,
            Function::InputNormalise | Function::ResponseProcess => Self::Rewrite,
            Function::SanitizeInput | Function::SanitizeOutput => Self::Sanitize,
            Function::GuardInput | Function::GuardOutput | Function::GuardChunk => Self::Guard,
            Function::Context | Function::CompactionProvide => Self::Write,
            Function::ModelRoute => Self::Route,
            Function::ToolModify => Self::Modify,
            Function::ToolGate => Self::Gate,
            Function::ToolAfter => Self::After,
            Function::SanitizeResult => Self::SanitizeResult,
            Function::GuardResult => Self::GuardResult,
            Function::CompactionBefore => Self::Plan,
        }
    }
}

/// Interfaces that `wit/` defines but that are not offered yet, as import or export.
const PLANNED: &[&str] = &["workflow", "memory-provider", "memory-forget", "model-provider", "http", "files"];

/// Whether `wit/` defines an interface that is not offered yet.
pub(crate) fn is_planned(interface: &str) -> bool {
    PLANNED.contains(&interface)
}

/// The grant that an import needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// None: it has only types, or is public.
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
    /// The grant that it needs.
    pub needs: Needs,
    /// Whether it has external effects, which hooks, context providers and guardrails may not have.
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

/// The parsed name of an import or export.
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
