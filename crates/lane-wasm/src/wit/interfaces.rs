//! The names of the interface: what a component may export, with its role, and what it may import, with the grant that it needs.

use holdfast_contract::host_call::{Capability, GrantRule};
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
            Function::SendQuestion => Self::Question,
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
const PLANNED: &[&str] = &["workflow", "memory-provider", "memory-forget", "model-provider"];

/// Whether `wit/` defines an interface that is not offered yet.
pub(crate) fn is_planned(interface: &str) -> bool {
    PLANNED.contains(&interface)
}

/// An interface that a component may import.
pub(crate) struct Import {
    /// Its name.
    pub name: &'static str,
    /// Whether its functions can wait for the host.
    pub waits: bool,
}

impl Import {
    /// How a component comes to hold it. The other interfaces are types, or the lane itself serves them.
    pub(crate) fn grant(&self) -> GrantRule {
        self.capability().map_or(GrantRule::Everyone, Capability::grant)
    }

    /// The interface's name in grants.
    pub(crate) fn grant_name(&self) -> &'static str {
        self.capability().map_or(self.name, Capability::name)
    }

    fn capability(&self) -> Option<Capability> {
        Capability::ALL.iter().copied().find(|capability| capability.wit_interface() == self.name)
    }
}

const fn import(name: &'static str, waits: bool) -> Import {
    Import { name, waits }
}

/// Every interface that a component may import.
pub(crate) const IMPORTS: &[Import] = &[
    import("types", false),
    import("verdicts", false),
    import("log", false),
    import("config", false),
    import("session", false),
    import("state", true),
    import("messages", true),
    import("clock", true),
    import("random", true),
    import("events", true),
    import("subscriptions", true),
    import("ui", true),
    import("secrets", true),
    import("timers", true),
    import("extensions", true),
    import("services", true),
    import("agents", true),
    import("channels", true),
    import("prompts", true),
    import("conversations", true),
    import("results", true),
    import("discovery", true),
    import("maintenance", true),
    import("system", true),
    import("http", true),
    import("files", true),
    import("environment", true),
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
