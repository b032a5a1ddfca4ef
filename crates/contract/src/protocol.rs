//! What an extension that is a process and its host say to each other: JSON-RPC 2.0, a message to a line, on the process's standard
//! input and output. Either side asks, either side answers, in any order. Values stand as they are, without the log's wrapping.
//!
//! The host's first request is `hello`, and the answer, a [`ProcessWelcome`], says what the process is. [`ToExtension`] has every request of the
//! host, [`ToHost`] every one of the process.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::agents::AgentMode;
use crate::content::Content;
use crate::exports::{AgentExport, DescriptorSheet, Exports, Named, RendererFeatures, ToolNeeds};
use crate::hook::{Artifact, Decision, HookInput, HookPoint};
use crate::host_call::{HostCall, HostCallKind};
use crate::ids::{AgentId, CallId, ExtensionId, HookId, Millis, ModelName, ToolName};
use crate::log::LogLevel;
use crate::manifest::SecretNeed;
use crate::message::TurnView;
use crate::problem::Fault;
use crate::registry::ChannelFeatures;
use crate::role::Role;
use crate::tool::{EffectClass, ToolSpec, default_timeout};
use crate::wire::CallUpdate;

/// The version of the protocol that is spoken here. Those with the same first two numbers understand each other.
pub const PROTOCOL: &str = "0.1";

/// What the host asks of a process. Each is a request, but for `cancel` and `update`, which have no answer.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "method", content = "params", rename_all = "snake_case")]
pub enum ToExtension {
    /// Who are you? The first request, answered by a [`ProcessWelcome`].
    Hello(ProcessHello),
    /// Run a tool; answered by its result.
    Tool(ToolRequest),
    /// Ask a hook; answered by a [`HookVerdict`].
    Hook(HookRequest),
    /// Here is your context. Answered, as the next three are, by anything.
    Initialize,
    /// Begin.
    Start,
    /// End.
    Stop,
    /// Free what you hold.
    Destroy,
    /// A health check, answered by `true` or `false`.
    Health,
    /// Is there something that answers? Answered at once, by anything. Only the workers of this program are asked.
    Ping,
    /// Run a scheduled task; answered by `{"text": …}` to tell the user something, or by `null`.
    Task {
        /// The task.
        task: String,
    },
    /// A method for other extensions; answered by its result.
    Api {
        /// The method.
        method: String,
        /// Its arguments.
        arguments: Value,
    },
    /// A function of another role; answered by its result.
    Function {
        /// The role.
        role: Role,
        /// The function, by its name in the table of roles.
        function: String,
        /// Its arguments.
        arguments: Value,
    },
    /// The answer to this request is no longer wanted. A notification.
    Cancel {
        /// The request.
        id: u64,
    },
    /// Something that happened while a question is being answered that asked for updates. A notification.
    Update(QuestionUpdate),
}

/// An update of a question. It is provisional: what counts is the answer, with which it is recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QuestionUpdate {
    /// The question, by the id of its request.
    pub question: Value,
    /// More of an agent's answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// A tool that the agent calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<ToolName>,
    /// The arguments of that call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
}

impl QuestionUpdate {
    /// The update of a question.
    pub fn new(question: Value, update: CallUpdate) -> Self {
        match update {
            CallUpdate::Text(text) => {
                Self { question, text: Some(text.to_text()), tool: None, arguments: None }
            }
            CallUpdate::ToolCall { tool, arguments } => {
                Self { question, text: None, tool: Some(tool), arguments: Some(plain(&arguments)) }
            }
        }
    }
}

/// What a process is told of itself.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProcessHello {
    /// The protocol's version.
    pub protocol: String,
    /// The extension's id.
    pub id: ExtensionId,
    /// Its version, as its manifest has it.
    pub version: String,
    /// Its configuration: the user's settings over the manifest's.
    pub config: Map<String, Value>,
    /// The folder that it may write to. It lasts.
    pub data_dir: String,
    /// The longest line that either side may send, in bytes.
    pub line_bytes: u64,
    /// What the host understands besides the requests of this protocol's first version. More are added without a new version.
    pub features: Vec<String>,
    /// Its manifest, read.
    pub manifest: Value,
    /// The names of the secrets that it is granted. Their values are read with the host call `secret.get`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
    /// What the settings say of a pack: its options, its priority, and the names of the secrets that it knows by other ids.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pack: Option<Value>,
    /// The names of secrets, by the ids that packs know them by.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub catalogue: BTreeMap<String, String>,
}

/// What this host understands.
pub const FEATURES: &[&str] = &["ask", "cancel", "connecting", "log", "progress", "update"];

/// What a process is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProcessWelcome {
    /// The version of the protocol that it speaks.
    pub protocol: String,
    /// What it is, in words.
    #[serde(default)]
    pub description: String,
    /// Whether more is known once it is initialised: it is told `initialize` and then `hello` again, before anything of it is
    /// registered. Its functions and methods are known from the first.
    #[serde(default)]
    pub later: bool,
    /// Its tools.
    #[serde(default)]
    pub tools: Vec<ToolSheet>,
    /// The points at which it has a hook. Matchers, priorities and time limits stand in the manifest.
    #[serde(default)]
    pub hooks: Vec<HookPoint>,
    /// The priorities of its hooks, where the manifest names none.
    #[serde(default)]
    pub priorities: BTreeMap<HookPoint, i32>,
    /// Its agent, which others ask by a tool of this name. The function `invoke` of the role `agent` gets the `task`.
    #[serde(default)]
    pub agent: Option<AgentSheet>,
    /// Its agent, if conversations are handed over to it: each thing that the user says is then a `task`.
    #[serde(default)]
    pub handoff: Option<AgentSheet>,
    /// Its commands.
    #[serde(default)]
    pub commands: Vec<Named>,
    /// Its methods for other extensions.
    #[serde(default)]
    pub methods: Option<Vec<Named>>,
    /// The functions that it has, by role: `{"channel": ["send-to-user"], "lifecycle": ["start", "stop"]}`.
    #[serde(default)]
    pub functions: BTreeMap<Role, Vec<String>>,
    /// What it needs of the host's `features`. Without them it is not loaded.
    #[serde(default)]
    pub requires: Vec<String>,
    /// What it registers of other kinds, and the hooks that belong to one thing.
    #[serde(default)]
    pub descriptors: Vec<DescriptorSheet>,
    /// What went wrong with parts of it, each with its reason. It is logged, and nothing else is affected.
    #[serde(default)]
    pub problems: Vec<String>,
}

impl ProcessWelcome {
    /// Whether it has a function.
    pub fn has(&self, role: Role, function: &str) -> bool {
        let is_agent = self.agent.is_some() || self.handoff.is_some();
        if is_agent && role == Role::Agent && function == "invoke" {
            return true;
        }
        self.functions.get(&role).is_some_and(|functions| functions.iter().any(|it| it == function))
    }

    /// What it registers, and under which names.
    pub fn exports(&self) -> Exports {
        let needs =
            self.tools.iter().filter(|tool| tool.priority.is_some() || !tool.required_secrets.is_empty());
        let needs = needs.map(|tool| {
            let required_secrets = tool.required_secrets.clone();
            (tool.name.clone(), ToolNeeds { priority: tool.priority, required_secrets })
        });
        let needs = needs.collect();
        let tools = self.tools.iter().cloned().map(ToolSpec::from);
        let asked = self.agent.iter().map(|agent| (agent, AgentMode::Tool));
        let handed = self.handoff.iter().map(|agent| (agent, AgentMode::Handoff));
        let agent = asked.chain(handed).next().map(|(agent, mode)| AgentExport {
            name: agent.name.clone(),
            description: agent.description.clone(),
            mode,
            effects: agent.effects,
        });
        let channel = self.has(Role::Channel, "send-to-user");
        let streams = Role::StreamingChannel;
        Exports {
            tools: tools.collect(),
            needs,
            descriptors: self.descriptors.clone(),
            agent,
            points: self.hooks.clone(),
            priorities: self.priorities.clone(),
            description: self.description.clone(),
            commands: self.commands.clone(),
            methods: self.methods.clone(),
            renders: RendererFeatures {
                calls: self.has(Role::Renderer, "render-call"),
                results: self.has(Role::Renderer, "render-result"),
            },
            channel: channel.then(|| ChannelFeatures {
                messages: self.has(Role::Channel, "send-message"),
                streams: streams.functions().all(|function| self.has(streams, function.name())),
                files: self.has(Role::Channel, "send-file"),
                questions: self.has(Role::Channel, "send-question"),
            }),
        }
    }
}

/// An agent, in plain values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentSheet {
    /// The name by which others call it.
    pub name: String,
    /// What it is good for.
    #[serde(default)]
    pub description: String,
    /// What calling it does to the world. Left out, it follows from the grants that the manifest asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effects: Option<EffectClass>,
}

/// A tool, in plain values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolSheet {
    /// The name a model calls it by.
    pub name: ToolName,
    /// What it does, for the model.
    #[serde(default)]
    pub description: String,
    /// JSON Schema of the arguments.
    #[serde(default = "any_object")]
    pub input_schema: Value,
    /// JSON Schema of the result, if it promises one.
    #[serde(default)]
    pub output_schema: Option<Value>,
    /// What it does to the world.
    #[serde(default)]
    pub effects: EffectClass,
    /// How long a call may take, in milliseconds.
    #[serde(default = "default_timeout")]
    pub timeout_ms: Millis,
    /// How many calls of it may run at once.
    #[serde(default)]
    pub concurrency: Option<u32>,
    /// How a surface may show calls and results.
    #[serde(default)]
    pub render: Option<Value>,
    /// Its priority among tools of this name; the extension's if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// The secrets that it needs, by name. While one of them is missing that is not optional, it is not registered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub required_secrets: Vec<SecretNeed>,
}

fn any_object() -> Value {
    serde_json::json!({ "type": "object" })
}

impl From<ToolSheet> for ToolSpec {
    fn from(sheet: ToolSheet) -> Self {
        let ToolSheet {
            name,
            description,
            input_schema,
            output_schema,
            effects,
            timeout_ms,
            concurrency,
            render,
            priority: _,
            required_secrets: _,
        } = sheet;
        Self {
            name,
            description,
            input_schema: Content::new(input_schema),
            output_schema: output_schema.map(Content::new),
            effects,
            timeout: timeout_ms,
            concurrency,
            render: render.map(Content::new),
            group: None,
            asks: false,
        }
    }
}

/// Who is talking, on which channel, to which agent.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProcessTurn {
    /// The session.
    pub session: String,
    /// The turn, from 1.
    pub turn: u32,
    /// The agent.
    pub agent: AgentId,
    /// The channel.
    pub channel: String,
    /// The user, where there is one.
    pub user: Option<String>,
    /// For an agent's code: what the user said, of which the task may be a part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_message: Option<String>,
    /// For an agent's code: what all that follows from it has in common, which is the id of the event that brought it, or else the session and the number of its
    /// frame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// For an agent's code: the summary that the conversation was last compacted to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation_summary: Option<String>,
}

impl From<&TurnView> for ProcessTurn {
    fn from(view: &TurnView) -> Self {
        Self {
            session: view.session.to_string(),
            turn: view.turn,
            agent: view.agent.clone(),
            channel: view.origin.channel.clone(),
            user: view.origin.user.clone(),
            user_message: None,
            correlation_id: None,
            conversation_summary: None,
        }
    }
}

/// A tool call.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolRequest {
    /// The call.
    pub call: CallId,
    /// The tool.
    pub tool: ToolName,
    /// The final arguments.
    #[serde(with = "unwrapped")]
    #[schemars(with = "Value")]
    pub arguments: Content,
    /// The turn it belongs to.
    pub turn: ProcessTurn,
}

/// A tool call that a hook is asked about.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AskedAbout {
    /// The call.
    pub id: CallId,
    /// The tool.
    pub tool: ToolName,
    /// Its arguments as they stand.
    pub arguments: Value,
}

/// What a hook is asked.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HookRequest {
    /// The hook.
    pub hook: HookId,
    /// The point.
    pub point: HookPoint,
    /// The tool call, at the tool points.
    pub call: Option<AskedAbout>,
    /// What is judged or rewritten: the arguments, the result, the text.
    pub subject: Option<Value>,
    /// Who is talking.
    pub turn: ProcessTurn,
}

impl From<&HookInput> for HookRequest {
    fn from(input: &HookInput) -> Self {
        let call = input.call.as_ref().map(|call| AskedAbout {
            id: call.id,
            tool: call.tool.clone(),
            arguments: plain(&call.arguments),
        });
        Self {
            hook: input.hook.clone(),
            point: input.point,
            call,
            subject: input.subject.as_ref().map(plain),
            turn: (&input.turn).into(),
        }
    }
}

/// Content as it stands in a message: without the log's wrapping, and without a copy.
mod unwrapped {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use serde_json::Value;

    use crate::content::Content;

    pub(super) fn serialize<S: Serializer>(content: &Content, serializer: S) -> Result<S::Ok, S::Error> {
        content.value().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Content, D::Error> {
        Value::deserialize(deserializer).map(Content::new)
    }
}

/// A value as it is.
pub fn plain(content: &Content) -> Value {
    content.value().clone()
}

/// What a hook decides. `null` in its place is `continue`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "decision", rename_all = "snake_case", deny_unknown_fields)]
pub enum HookVerdict {
    /// Nothing to say.
    Continue,
    /// A gate or guardrail has no objection.
    Allow,
    /// A gate refuses the call.
    Deny {
        /// Why.
        reason: String,
    },
    /// A gate wants a person to decide.
    Ask {
        /// Why.
        reason: String,
    },
    /// A modifier's change to a tool call.
    Modify {
        /// New arguments, or none to leave them.
        #[serde(default)]
        arguments: Option<Value>,
        /// The extension whose implementation of this tool shall run.
        #[serde(default)]
        implementation: Option<ExtensionId>,
    },
    /// New content in place of the old.
    Replace {
        /// The new content.
        content: Value,
    },
    /// A change to a tool's result.
    Enrich {
        /// A new result, or none to leave it.
        #[serde(default)]
        result: Option<Value>,
        /// Artifacts to attach.
        #[serde(default)]
        artifacts: Vec<ArtifactSheet>,
        /// How a surface may show it.
        #[serde(default)]
        render: Option<Value>,
    },
    /// Text for the system role.
    Inject {
        /// The text.
        content: Value,
    },
    /// A model for this turn.
    Route {
        /// The model.
        model: ModelName,
        /// Whether it is an order.
        #[serde(default)]
        authoritative: bool,
        /// Why.
        #[serde(default)]
        reason: String,
    },
    /// A guardrail lets it pass with a remark.
    Flag {
        /// The remark.
        reason: String,
    },
    /// A guardrail stops it.
    Block {
        /// Why.
        reason: String,
    },
    /// How to compact.
    Compact {
        /// What the summary must keep.
        #[serde(default)]
        instructions: Option<String>,
        /// The number of messages to keep whole at the end.
        #[serde(default)]
        keep: Option<u32>,
    },
}

/// Something that a tool's result carries along.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArtifactSheet {
    /// A name a person reads.
    pub name: String,
    /// The media type.
    pub media_type: String,
    /// The artifact itself.
    pub content: Value,
}

impl From<HookVerdict> for Decision {
    fn from(verdict: HookVerdict) -> Self {
        let artifact = |sheet: ArtifactSheet| {
            let ArtifactSheet { name, media_type, content } = sheet;
            Artifact { name, media_type, content: Content::new(content) }
        };
        match verdict {
            HookVerdict::Continue => Self::Continue,
            HookVerdict::Allow => Self::Allow,
            HookVerdict::Deny { reason } => Self::Deny { reason },
            HookVerdict::Ask { reason } => Self::Ask { reason },
            HookVerdict::Modify { arguments, implementation } => {
                Self::Modify { arguments: arguments.map(Content::new), implementation }
            }
            HookVerdict::Replace { content } => Self::Replace { content: Content::new(content) },
            HookVerdict::Enrich { result, artifacts, render } => Self::Enrich {
                result: result.map(Content::new),
                artifacts: artifacts.into_iter().map(artifact).collect(),
                render: render.map(Content::new),
            },
            HookVerdict::Inject { content } => Self::Inject { content: Content::new(content) },
            HookVerdict::Route { model, authoritative, reason } => {
                Self::Route { model, authoritative, reason }
            }
            HookVerdict::Flag { reason } => Self::Flag { reason },
            HookVerdict::Block { reason } => Self::Block { reason },
            HookVerdict::Compact { instructions, keep } => Self::Compact { instructions, keep },
        }
    }
}

/// What a process asks of its host. `ask` and `connecting` are requests, the others are notifications.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "method", content = "params", rename_all = "snake_case")]
pub enum ToHost {
    /// In the middle of a call; answered by what was asked for.
    Ask(HostQuestion),
    /// The next connection belongs to this call, which is not a hook. Answered by `null`. Without it, a connection that is made while a
    /// hook is open counts as the hook's and is refused.
    Connecting(ConnectingCall),
    /// A line for the log.
    Log(LogLine),
    /// The progress of a call, shown to clients. It is provisional: only the call's result is recorded.
    Progress(CallStep),
}

/// A call that is about to connect to a host.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConnectingCall {
    /// The host's request that is being worked on.
    pub call: u64,
}

/// A step of a call that is under way.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CallStep {
    /// The host's request that is being worked on.
    pub call: u64,
    /// What to show.
    pub text: String,
}

/// A question in the middle of a call.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostQuestion {
    /// The host's request that is being worked on.
    pub call: u64,
    /// The host call, by its name.
    pub name: String,
    /// With which arguments.
    #[serde(default)]
    pub arguments: Value,
    /// How long it may take, in milliseconds.
    #[serde(default)]
    pub timeout_ms: Option<Millis>,
    /// Whether what happens meanwhile is sent as `update`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub updates: bool,
}

impl TryFrom<HostQuestion> for HostCall {
    type Error = String;

    /// A call that is recorded with its name and arguments is never an error here: the host refuses it, and records that.
    fn try_from(question: HostQuestion) -> Result<Self, String> {
        match HostCall::named(&question.name, question.arguments) {
            HostCall::Invalid(invalid) if invalid.kind.is_some_and(HostCallKind::has_its_own_frame) => {
                Err(invalid.reason)
            }
            call => Ok(call),
        }
    }
}

/// A line for the log.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LogLine {
    /// How important it is: `debug`, `info`, `warning` or `error`.
    #[serde(default)]
    pub level: LogLevel,
    /// The line.
    pub text: String,
}

/// Why a request has no result, as JSON-RPC wants it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RpcError {
    /// A number: the protocol's own are negative; a failure of the extension's is 1.
    pub code: i64,
    /// What happened, in one sentence.
    pub message: String,
    /// Anything more. The host puts its own stable code there: `{"code": "HF-3110"}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl From<&Fault> for RpcError {
    fn from(fault: &Fault) -> Self {
        let data = serde_json::json!({ "code": fault.code.as_str() });
        Self { code: 1, message: fault.message.clone(), data: Some(data) }
    }
}
