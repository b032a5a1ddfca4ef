//! What an extension may ask of the host in the middle of a call: one typed list, the same in every lane.
//!
//! [`HostCallKind`] is the table: the name of each call on the wire and in frames, the [`Capability`] it belongs to, whether it has side
//! effects, which of its values are secret, and which functions of `wit/host.wit` it serves. [`HostCall`] is one call with its arguments,
//! read. [`topic::TopicRule`] is the table of topics. Lanes build a call with [`HostCall::of`] or, for a name that comes from outside, [`HostCall::named`]. The host refuses a call whose
//! [`Capability`] the extension does not hold; nothing here decides that.
//!
//! A new host call is a line in `host_calls!`, a type in [`arguments`], and an arm in the dispatch of the runtime (`host.rs` there, or
//! the session's actor for what only a session has). Components reach it through `wit/host.wit` and the WASM lane's `link.rs`, Python
//! classes through the worker's `context.py`. `CONTRIBUTING.md` has the whole list.

pub mod arguments;
pub mod topic;

use std::fmt;

use serde::Deserialize;

use self::arguments::{
    AnyArguments, ApiCallArguments, ConnectArguments, DescribeAgentArguments, DoctorArguments,
    EnrichArguments, FileArguments, FileWriteArguments, FindToolsArguments, HttpArguments,
    InvokeModelArguments, InvokeToolArguments, ListenArguments, NameArgument, NotifyArguments,
    ProjectUpdateArguments, PublishArguments, ReadResultArguments, ScheduleNextArguments,
    ScheduleWaitArguments, SecretKeepArguments, ServiceCallArguments, ServiceGetArguments,
    SetupApplyArguments, ShutdownArguments, TaskArguments, ThreadListArguments, ThreadUpdateArguments,
    TopicArguments,
};
use self::topic::TopicRule;
use crate::content::Content;
use crate::hook::HookPoint;
use crate::session_frames::UiQuestion;

/// The name under which a hook that would start a program is refused and recorded. It is not a host call: elsewhere a program is
/// started without asking the host, and confinement says what it can do.
pub const PROGRAM_START: &str = "program.start";

/// Arguments as the host reads them, beside the form in which they were sent. Frames record what was sent.
#[derive(Clone)]
pub struct Arguments<T> {
    /// As they were sent.
    pub sent: Content,
    /// As they are read.
    pub read: T,
}

impl<T: for<'a> Deserialize<'a>> Arguments<T> {
    fn read(sent: Content) -> Result<Self, (Content, serde_json::Error)> {
        match T::deserialize(sent.value()) {
            Ok(read) => Ok(Self { sent, read }),
            Err(error) => Err((sent, error)),
        }
    }
}

/// A host call that cannot be served: its name is unknown, or its arguments do not fit.
#[derive(Clone)]
pub struct InvalidCall {
    /// The call, if its name is known.
    pub kind: Option<HostCallKind>,
    /// The name as it was sent.
    pub name: String,
    /// The arguments as they were sent.
    pub sent: Content,
    /// What is wrong with them.
    pub reason: String,
}

macro_rules! host_calls {
    ($($variant:ident($arguments:ty) = $name:literal, $capability:ident, $effect:ident, [$($wit:literal),*], $summary:literal;)*) => {
        /// A call of an extension to the host.
        #[derive(Clone)]
        pub enum HostCall {
            /// Reads the clock.
            Clock,
            /// Draws random bytes.
            Random {
                /// How many.
                bytes: u32,
            },
            /// Reads a value of the extension's state in this session.
            StateGet {
                /// The key.
                key: String,
            },
            /// Writes a value of the extension's state in this session; none removes it.
            StateSet {
                /// The key.
                key: String,
                /// The value.
                value: Option<Content>,
            },
            /// Adds a message to the conversation.
            Inject {
                /// The message.
                text: Content,
            },
            /// Asks the user.
            Ui(UiQuestion),
            $(#[doc = $summary] $variant(Box<Arguments<$arguments>>),)*
            /// A call that cannot be served. It reaches the host because it is recorded like any other.
            Invalid(InvalidCall),
        }

        /// The host calls by name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum HostCallKind {
            /// `clock`
            Clock,
            /// `random`
            Random,
            /// `state.get`
            StateGet,
            /// `state.set`
            StateSet,
            /// `inject`
            Inject,
            /// `ui`
            Ui,
            $(#[doc = concat!("`", $name, "`")] $variant,)*
        }

        impl HostCallKind {
            /// Every host call.
            pub const ALL: &'static [HostCallKind] = &[
                Self::Clock, Self::Random, Self::StateGet, Self::StateSet, Self::Inject, Self::Ui, $(Self::$variant,)*
            ];

            /// Its name on the wire and in frames.
            pub const fn name(self) -> &'static str {
                match self {
                    Self::Clock => "clock",
                    Self::Random => "random",
                    Self::StateGet => "state.get",
                    Self::StateSet => "state.set",
                    Self::Inject => "inject",
                    Self::Ui => "ui",
                    $(Self::$variant => $name,)*
                }
            }

            /// What an extension must hold to make it.
            pub const fn capability(self) -> Capability {
                match self {
                    Self::Clock => Capability::Clock,
                    Self::Random => Capability::Random,
                    Self::StateGet | Self::StateSet => Capability::State,
                    Self::Inject => Capability::Messages,
                    Self::Ui => Capability::Ui,
                    $(Self::$variant => Capability::$capability,)*
                }
            }

            /// Whether it changes anything but its own record.
            pub const fn has_side_effects(self) -> bool {
                let effect = match self {
                    Self::Clock | Self::Random | Self::StateGet => Effect::Reads,
                    Self::StateSet | Self::Inject | Self::Ui => Effect::Acts,
                    $(Self::$variant => Effect::$effect,)*
                };
                matches!(effect, Effect::Acts)
            }

            /// The functions of `wit/host.wit` that make it: `interface.function`.
            pub const fn wit_functions(self) -> &'static [&'static str] {
                match self {
                    Self::Clock => &["clock.now"],
                    Self::Random => &["random.bytes"],
                    Self::StateGet => &["state.get"],
                    Self::StateSet => &["state.set"],
                    Self::Inject => &["messages.inject"],
                    Self::Ui => &["ui.select", "ui.confirm", "ui.input", "ui.custom"],
                    $(Self::$variant => &[$($wit),*],)*
                }
            }

            /// What it does, in a sentence.
            pub const fn summary(self) -> &'static str {
                match self {
                    Self::Clock => "Reads the clock.",
                    Self::Random => "Draws random bytes.",
                    Self::StateGet => "Reads a value of the extension's state in this session.",
                    Self::StateSet => "Writes or removes a value of the extension's state in this session.",
                    Self::Inject => "Adds a message to the conversation.",
                    Self::Ui => "Asks the user.",
                    $(Self::$variant => $summary,)*
                }
            }
        }

        impl HostCall {
            /// Which call it is; none for a name that is unknown.
            pub const fn kind(&self) -> Option<HostCallKind> {
                Some(match self {
                    Self::Clock => HostCallKind::Clock,
                    Self::Random { .. } => HostCallKind::Random,
                    Self::StateGet { .. } => HostCallKind::StateGet,
                    Self::StateSet { .. } => HostCallKind::StateSet,
                    Self::Inject { .. } => HostCallKind::Inject,
                    Self::Ui(_) => HostCallKind::Ui,
                    $(Self::$variant(_) => HostCallKind::$variant,)*
                    Self::Invalid(invalid) => return invalid.kind,
                })
            }

            /// The arguments as they were sent, of a call that is recorded with its name and arguments.
            fn sent(&self) -> Option<&Content> {
                match self {
                    $(Self::$variant(arguments) => Some(&arguments.sent),)*
                    Self::Invalid(invalid) => Some(&invalid.sent),
                    _ => None,
                }
            }

            fn read(kind: HostCallKind, sent: Content) -> Result<Self, (Content, serde_json::Error)> {
                match kind {
                    $(HostCallKind::$variant => Arguments::read(sent).map(|it| Self::$variant(Box::new(it))),)*
                    _ => Self::of_session(kind, &sent).map_err(|error| (sent, error)),
                }
            }
        }
    };
}

/// Whether a call changes anything but its own record.
enum Effect {
    Reads,
    Acts,
}

host_calls! {
    ApiCall(ApiCallArguments) = "api.call", Extensions, Acts, ["extensions.call"],
        "Calls a method of the `api` role of an extension that this one depends on.";
    ServiceGet(ServiceGetArguments) = "service.get", Services, Acts, ["services.get"],
        "Returns what its owner reports about a shared service, which is created if it does not exist.";
    ServiceCall(ServiceCallArguments) = "service.call", Services, Acts, ["services.call"],
        "Calls a method of a shared service, which is created if it does not exist.";
    EventPublish(PublishArguments) = "event.publish", Events, Acts, ["events.publish", "events.publish-event"],
        "Publishes an event on the bus.";
    EventSubscribe(TopicArguments) = "event.subscribe", Subscriptions, Acts, ["subscriptions.subscribe"],
        "Subscribes to a topic while this generation is active.";
    EventUnsubscribe(TopicArguments) = "event.unsubscribe", Subscriptions, Acts, ["subscriptions.unsubscribe"],
        "Removes such a subscription.";
    UserNotify(NotifyArguments) = "user.notify", Channels, Acts, ["channels.notify"],
        "Sends the user a message on a channel.";
    ChannelList(AnyArguments) = "channel.list", Channels, Reads, ["channels.list"],
        "Lists the channels that reach the user.";
    AgentTask(TaskArguments) = "agent.task", Agents, Acts, ["agents.task"],
        "Starts a turn of an agent; the user gets its answer.";
    AgentBackground(TaskArguments) = "agent.background", Agents, Acts, ["agents.background"],
        "Starts a turn of an agent in the background.";
    AgentInvoke(TaskArguments) = "agent.invoke", Agents, Acts, ["agents.invoke", "agents.invoke-streamed"],
        "Runs an agent in a child session and returns its answer.";
    ToolInvoke(InvokeToolArguments) = "tool.invoke", Agents, Acts, ["agents.invoke-tool"],
        "Runs a tool that the extension's agent has, as a model's call of it would run, and returns its result.";
    ModelInvoke(InvokeModelArguments) = "model.invoke", Agents, Acts, ["agents.invoke-model"],
        "Asks the model that an agent uses, within the budget of the turn, and returns its text.";
    AgentList(AnyArguments) = "agent.list", Agents, Reads, ["agents.list"],
        "Lists the agents that can be asked.";
    AgentDescribe(DescribeAgentArguments) = "agent.describe", Context, Reads, ["prompts.describe-agent"],
        "Returns the models of an agent and, of the extension's own, its instructions, tools, limits and parameters.";
    ContextEnrich(EnrichArguments) = "context.enrich", Context, Reads, ["prompts.enrich"],
        "Returns the texts of all context providers followed by a prompt.";
    ThreadList(ThreadListArguments) = "thread.list", Conversations, Reads, ["conversations.list-threads"],
        "Lists conversations with their titles and projects.";
    ThreadUpdate(ThreadUpdateArguments) = "thread.update", Conversations, Acts, ["conversations.update-thread"],
        "Creates a conversation, or changes its title, its project or whether it is archived.";
    ThreadHistory(NameArgument) = "thread.history", Conversations, Reads, ["conversations.history"],
        "Returns what the user and the agent have said in a conversation.";
    ProjectList(AnyArguments) = "project.list", Conversations, Reads, ["conversations.list-projects"],
        "Lists the projects that conversations are in.";
    ProjectUpdate(ProjectUpdateArguments) = "project.update", Conversations, Acts, ["conversations.update-project"],
        "Creates or changes a project.";
    ProjectRemove(NameArgument) = "project.remove", Conversations, Acts, ["conversations.remove-project"],
        "Removes a project, but none of its conversations.";
    ScheduleNext(ScheduleNextArguments) = "schedule.next", Timers, Reads, ["timers.next-due"],
        "Computes when a schedule is next due.";
    ScheduleWait(ScheduleWaitArguments) = "schedule.wait", Timers, Reads, ["timers.wait-until"],
        "Waits until a point in time.";
    SecretReference(NameArgument) = "secret.reference", Secrets, Reads, ["secrets.reference"],
        "Returns a reference that the host replaces with the secret where it sends it.";
    SecretGet(NameArgument) = "secret.get", Secrets, Reads, ["secrets.get"],
        "Returns the value of a secret.";
    SecretKeep(SecretKeepArguments) = "secret.keep", Secrets, Acts, ["secrets.keep"],
        "Stores a secret of the extension, or removes it if the value is empty; with the `setup` interface, a secret of any extension.";
    NetworkConnect(ConnectArguments) = "network.connect", Network, Acts, [],
        "Asks whether a host may be connected to, and under which addresses. The gateway of the process lanes makes it.";
    NetworkConnected(AnyArguments) = "network.connected", Network, Reads, [],
        "Records the outcome of a connection. The gateway of the process lanes makes it.";
    NetworkListen(ListenArguments) = "network.listen", Network, Acts, [],
        "Asks whether a port of the loopback may be listened on. The worker of Python classes makes it before it binds one.";
    HttpRequest(HttpArguments) = "http.request", Http, Acts, ["http.send"],
        "Sends an HTTP request to a host that may be connected to. References to secrets are replaced on the way out.";
    FileRead(FileArguments) = "file.read", Files, Reads, ["files.read"],
        "Reads a file of the extension's data folder or of a granted folder.";
    FileList(FileArguments) = "file.list", Files, Reads, ["files.list"],
        "Lists such a folder.";
    FileStat(FileArguments) = "file.stat", Files, Reads, ["files.stat"],
        "Returns what is at such a path: its kind and its size.";
    FileWrite(FileWriteArguments) = "file.write", Files, Acts, ["files.write"],
        "Writes a file there, atomically and with missing folders.";
    FileRemove(FileArguments) = "file.remove", Files, Acts, ["files.remove"],
        "Removes a file or an empty folder there.";
    FileMakeFolder(FileArguments) = "file.make_folder", Files, Acts, ["files.make-folder"],
        "Makes a folder there, with those above it.";
    EnvironmentGet(NameArgument) = "environment.get", Environment, Reads, ["environment.get"],
        "Reads a granted environment variable of the host.";
    SystemRestart(Option<ShutdownArguments>) = "system.restart", System, Acts, ["system.restart"],
        "Asks the owner of the process to restart it.";
    SystemShutdown(Option<ShutdownArguments>) = "system.shutdown", Shutdown, Acts, [],
        "Stops the process. No extension may; the user does, with `holdfast down`.";
    ResultRead(ReadResultArguments) = "result.read", Results, Reads, ["results.read"],
        "Reads on in a tool result of this session that the calling extension has truncated.";
    ToolsFind(FindToolsArguments) = "tools.find", Discovery, Reads, ["discovery.find-tools"],
        "Searches the tools of this session by what they do.";
    CapabilitiesList(AnyArguments) = "capabilities.list", Discovery, Reads, ["discovery.list-capabilities"],
        "Lists the extensions and tools of this session.";
    SetupOpen(AnyArguments) = "setup.open", Setup, Reads, ["maintenance.open"],
        "Lists the extensions that are not set up.";
    SetupShow(NameArgument) = "setup.show", Setup, Reads, ["maintenance.show"],
        "Returns which parameters an extension needs.";
    SetupApply(SetupApplyArguments) = "setup.apply", Setup, Acts, ["maintenance.apply"],
        "Sets a parameter of an extension.";
    ExtensionDoctor(DoctorArguments) = "extension.doctor", Setup, Reads, ["maintenance.doctor"],
        "Returns what is wrong with an extension, or with all.";
}

/// What must not be recorded of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redaction {
    /// Nothing: all of it is recorded.
    Nothing,
    /// Its argument `value`, which is left out.
    ValueArgument,
    /// Its answer, of which a keyed digest is recorded.
    Answer,
}

impl HostCallKind {
    /// The call of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.name() == name)
    }

    /// What must not be recorded of it.
    pub const fn redaction(self) -> Redaction {
        match self {
            Self::SecretGet => Redaction::Answer,
            Self::SecretKeep | Self::SetupApply => Redaction::ValueArgument,
            _ => Redaction::Nothing,
        }
    }

    /// Whether the host may ask the user before it serves it.
    pub const fn may_ask_the_user(self) -> bool {
        matches!(self, Self::NetworkConnect | Self::HttpRequest | Self::SecretReference | Self::SecretGet)
    }

    /// Whether it is recorded as a frame of its own kind, or as `host.called`.
    pub const fn has_its_own_frame(self) -> bool {
        use HostCallKind as K;
        matches!(self, K::Clock | K::Random | K::StateGet | K::StateSet | K::Inject | K::Ui)
    }

    /// Whether a hook at this point may make it. A hook changes nothing outside of its session, and what it decides does not depend on
    /// a secret, the network or how long it waits.
    pub const fn is_for_hooks(self, point: HookPoint) -> bool {
        match self {
            Self::Clock | Self::Random | Self::StateGet | Self::ChannelList | Self::AgentList => true,
            Self::AgentDescribe | Self::ScheduleNext | Self::ResultRead | Self::ToolsFind => true,
            Self::CapabilitiesList | Self::SetupOpen | Self::SetupShow | Self::ExtensionDoctor => true,
            // A reference is worth nothing to who holds it.
            Self::SecretReference => true,
            // What they change is in the session's log.
            Self::StateSet | Self::Inject | Self::Ui => true,
            // A context provider gets its facts from other extensions, on record.
            Self::ApiCall | Self::ServiceGet | Self::ServiceCall => matches!(point, HookPoint::Context),
            // It would call the context providers from one of them.
            Self::ContextEnrich => false,
            Self::ScheduleWait | Self::SecretGet | Self::NetworkConnected => false,
            // They read outside of the log.
            Self::FileRead | Self::FileList | Self::FileStat | Self::EnvironmentGet => false,
            Self::ThreadList | Self::ThreadHistory | Self::ProjectList => false,
            // They change something outside of the session.
            Self::EventPublish | Self::EventSubscribe | Self::EventUnsubscribe | Self::UserNotify => false,
            Self::AgentTask | Self::AgentBackground | Self::AgentInvoke => false,
            Self::ToolInvoke | Self::ModelInvoke => false,
            Self::ThreadUpdate | Self::ProjectUpdate | Self::ProjectRemove => false,
            Self::SecretKeep | Self::SetupApply => false,
            Self::NetworkConnect | Self::NetworkListen | Self::HttpRequest => false,
            Self::FileWrite | Self::FileRemove | Self::FileMakeFolder => false,
            Self::SystemRestart | Self::SystemShutdown => false,
        }
    }
}

/// A group of host calls that is granted as a whole: an interface of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Capability {
    /// `clock`
    Clock,
    /// `random`
    Random,
    /// `state`
    State,
    /// `messages`
    Messages,
    /// `timers`
    Timers,
    /// `ui`
    Ui,
    /// `events`
    Events,
    /// `subscriptions`
    Subscriptions,
    /// `channels`
    Channels,
    /// `extensions`
    Extensions,
    /// `services`
    Services,
    /// `agents`
    Agents,
    /// `context`
    Context,
    /// `system`
    System,
    /// `shutdown`
    Shutdown,
    /// `conversations`: what was said in all of them, their titles and projects.
    Conversations,
    /// `user-messages`: a subscription to what users say on channels.
    UserMessages,
    /// `answers`: a subscription to what is sent to users on channels.
    Answers,
    /// `system-events`: a subscription to a topic under `system.`.
    SystemEvents,
    /// `secrets`
    Secrets,
    /// `network`
    Network,
    /// `http`
    Http,
    /// `files`
    Files,
    /// `environment`
    Environment,
    /// `results`
    Results,
    /// `discovery`
    Discovery,
    /// `setup`
    Setup,
}

/// How an extension comes to hold a capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrantRule {
    /// Every extension holds it.
    Everyone,
    /// A component must be granted the interface. Programs, Python files and native code hold it by default.
    Components,
    /// Components and programs must be granted the interface. Native code holds it by default, and so does Python unless the profile is
    /// `safe`.
    ComponentsAndPrograms,
    /// It must be granted in every lane: listed under `interfaces` in the manifest's `grants`, and given by the user's policy.
    Explicit,
    /// It is granted secret by secret.
    EachSecret,
    /// It is granted host by host.
    EachHost,
    /// Every extension has its own data folder; other folders are granted one by one.
    EachFolder,
    /// It is granted variable by variable.
    EachVariable,
    /// No extension holds it, and it cannot be granted.
    Nobody,
}

impl Capability {
    /// Every capability.
    pub const ALL: &'static [Capability] = &[
        Self::Clock,
        Self::Random,
        Self::State,
        Self::Messages,
        Self::Timers,
        Self::Ui,
        Self::Events,
        Self::Subscriptions,
        Self::Channels,
        Self::Extensions,
        Self::Services,
        Self::Agents,
        Self::Context,
        Self::System,
        Self::Shutdown,
        Self::Conversations,
        Self::UserMessages,
        Self::Answers,
        Self::SystemEvents,
        Self::Secrets,
        Self::Network,
        Self::Http,
        Self::Files,
        Self::Environment,
        Self::Results,
        Self::Discovery,
        Self::Setup,
    ];

    /// The names that grants may have under `interfaces`.
    pub fn grantable() -> impl Iterator<Item = &'static str> {
        Self::ALL.iter().filter(|it| !matches!(it.grant(), GrantRule::Nobody)).map(|it| it.name())
    }

    /// Whether a name in a grant is that of an interface, or the beginning of one before a `*`.
    pub fn is_grantable(name: &str) -> bool {
        let beginning = name.strip_suffix('*');
        Self::grantable().any(|it| beginning.map_or(it == name, |beginning| it.starts_with(beginning)))
    }

    /// Its name, under `interfaces` in grants.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Clock => "clock",
            Self::Random => "random",
            Self::State => "state",
            Self::Messages => "messages",
            Self::Timers => "timers",
            Self::Ui => "ui",
            Self::Events => "events",
            Self::Subscriptions => "subscriptions",
            Self::Channels => "channels",
            Self::Extensions => "extensions",
            Self::Services => "services",
            Self::Agents => "agents",
            Self::Context => "context",
            Self::System => "system",
            Self::Shutdown => "shutdown",
            Self::Conversations => "conversations",
            Self::UserMessages => "user-messages",
            Self::Answers => "answers",
            Self::SystemEvents => "system-events",
            Self::Secrets => "secrets",
            Self::Network => "network",
            Self::Http => "http",
            Self::Files => "files",
            Self::Environment => "environment",
            Self::Results => "results",
            Self::Discovery => "discovery",
            Self::Setup => "setup",
        }
    }

    /// How an extension comes to hold it.
    pub const fn grant(self) -> GrantRule {
        match self {
            Self::Clock | Self::Random | Self::State | Self::Messages | Self::Timers => GrantRule::Everyone,
            Self::Ui
            | Self::Events
            | Self::Subscriptions
            | Self::Channels
            | Self::Extensions
            | Self::Services
            | Self::Context => GrantRule::Components,
            Self::Agents | Self::System | Self::Conversations | Self::UserMessages | Self::Answers => {
                GrantRule::ComponentsAndPrograms
            }
            Self::Results | Self::Discovery | Self::Setup | Self::SystemEvents => GrantRule::Explicit,
            Self::Shutdown => GrantRule::Nobody,
            Self::Secrets => GrantRule::EachSecret,
            Self::Network | Self::Http => GrantRule::EachHost,
            Self::Files => GrantRule::EachFolder,
            Self::Environment => GrantRule::EachVariable,
        }
    }

    /// The interface of `wit/host.wit` that has its functions. It has the capability's name, unless a hook or a role has that name.
    pub const fn wit_interface(self) -> &'static str {
        match self {
            Self::Context => "prompts",
            Self::Setup => "maintenance",
            other => other.name(),
        }
    }
}

impl fmt::Display for HostCallKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A host call as frames record it: by its name, with the arguments as they were sent.
#[derive(Clone, Debug, PartialEq)]
pub struct CallRecord {
    /// Which call it is, if its name is known.
    pub kind: Option<HostCallKind>,
    /// Its name.
    pub name: String,
    /// Its arguments, without what must not be recorded.
    pub arguments: Content,
}

impl HostCall {
    /// What the topic of a call needs beside the call's own capability.
    pub fn topic_rule(&self) -> TopicRule {
        match self {
            Self::EventPublish(it) => TopicRule::to_publish(it.read.topic.as_str()),
            Self::EventSubscribe(it) => TopicRule::to_subscribe(it.read.topic.as_str()),
            _ => TopicRule::Open,
        }
    }

    /// A call with these arguments. Arguments that do not fit make it a [`HostCall::Invalid`], which the host refuses and records.
    pub fn of(kind: HostCallKind, arguments: impl Into<Content>) -> Self {
        Self::read(kind, arguments.into()).unwrap_or_else(|(sent, error)| {
            let (name, reason) = (kind.name().to_owned(), error.to_string());
            Self::Invalid(InvalidCall { kind: Some(kind), name, sent, reason })
        })
    }

    /// A call by a name that comes from outside.
    pub fn named(name: &str, arguments: impl Into<Content>) -> Self {
        match HostCallKind::from_name(name) {
            Some(kind) => Self::of(kind, arguments),
            None => {
                let (name, reason) = (name.to_owned(), "there is no such host call".to_owned());
                Self::Invalid(InvalidCall { kind: None, name, sent: arguments.into(), reason })
            }
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        match (self, self.kind()) {
            (Self::Invalid(invalid), _) => &invalid.name,
            (_, Some(kind)) => kind.name(),
            (_, None) => "",
        }
    }

    /// What a frame records of it if there were too many: its arguments would make the log long.
    pub fn record_of_refusal(&self) -> CallRecord {
        CallRecord { kind: self.kind(), name: self.name().to_owned(), arguments: Content::default() }
    }

    /// About how many bytes a frame has that records it.
    pub fn recorded_bytes(&self) -> u64 {
        match self {
            Self::StateSet { key, value } => {
                key.len() as u64 + value.as_ref().map_or(0, Content::approximate_bytes)
            }
            Self::Inject { text } => text.approximate_bytes(),
            other => other.sent().map_or(0, Content::approximate_bytes),
        }
    }

    /// What a frame records of it.
    pub fn record(&self) -> CallRecord {
        let kind = self.kind();
        let arguments = self.sent().cloned().unwrap_or_default();
        let fields = arguments.value().as_object();
        let arguments = match (kind.map(HostCallKind::redaction), fields) {
            (Some(Redaction::ValueArgument), Some(fields)) => {
                let shown = fields.iter().filter(|(name, _)| *name != "value");
                Content::new(shown.map(|(name, value)| (name.clone(), value.clone())).collect())
            }
            _ => arguments,
        };
        CallRecord { kind, name: self.name().to_owned(), arguments }
    }

    /// Reads the arguments of a call that has a frame of its own.
    fn of_session(kind: HostCallKind, sent: &Content) -> Result<Self, serde_json::Error> {
        let value = sent.value().clone();
        Ok(match kind {
            HostCallKind::Random => {
                let arguments::RandomArguments { bytes } = serde_json::from_value(value)?;
                Self::Random { bytes }
            }
            HostCallKind::StateGet => {
                let arguments::StateArguments { key, .. } = serde_json::from_value(value)?;
                Self::StateGet { key }
            }
            HostCallKind::StateSet => {
                let arguments::StateArguments { key, value } = serde_json::from_value(value)?;
                Self::StateSet { key, value: value.map(Content::new) }
            }
            HostCallKind::Inject => {
                let arguments::InjectArguments { text } = serde_json::from_value(value)?;
                Self::Inject { text: Content::text(text) }
            }
            HostCallKind::Ui => {
                let mut value = value;
                if let Some(view) = value.pointer_mut("/custom/view") {
                    // As typed data has it, however large.
                    *view = serde_json::json!({ "json": view.take() });
                }
                Self::Ui(serde_json::from_value::<UiQuestion>(value)?)
            }
            _ => Self::Clock,
        })
    }
}

/// Two calls are equal if a frame records the same of them.
impl PartialEq for HostCall {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Clock, Self::Clock) => true,
            (Self::Random { bytes: one }, Self::Random { bytes: two }) => one == two,
            (Self::StateGet { key: one }, Self::StateGet { key: two }) => one == two,
            (Self::StateSet { key: one, value }, Self::StateSet { key: two, value: other }) => {
                one == two && value == other
            }
            (Self::Inject { text: one }, Self::Inject { text: two }) => one == two,
            (Self::Ui(one), Self::Ui(two)) => one == two,
            (one, two) => one.sent().is_some() && one.record() == two.record(),
        }
    }
}

/// As it is recorded, without what must not be.
impl fmt::Debug for HostCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Clock => f.write_str("clock"),
            Self::Random { bytes } => write!(f, "random({bytes})"),
            Self::StateGet { key } => write!(f, "state.get({key:?})"),
            Self::StateSet { key, value } => write!(f, "state.set({key:?}, {value:?})"),
            Self::Inject { text } => write!(f, "inject({text:?})"),
            Self::Ui(question) => write!(f, "ui({question:?})"),
            named => write!(f, "{}({})", named.name(), named.record().arguments.json()),
        }
    }
}

#[cfg(test)]
#[path = "host_call_tests.rs"]
mod tests;
