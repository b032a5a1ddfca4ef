//! Every request, its answer, and every notification. The bus's are in `bus`, the home's status in `status`.
//!
//! A client has no store, so every value in an answer is complete, see `line.rs`. The exception are frames, which come as they
//! are stored: a `{"blob": …}` there is fetched with `session.content`.

mod bus;
mod status;

use holdfast_contract::agents::AgentMode;
use holdfast_contract::attachment::Attachment;
use holdfast_contract::content::Content;
use holdfast_contract::digest::Digest;
use holdfast_contract::frame::Frame;
use holdfast_contract::ids::{CallId, ExtensionId, ModelName, Seq, StreamId, ToolName};
use holdfast_contract::message::Spent;
use holdfast_contract::problem::Problem;
use holdfast_contract::session_frames::{GateReason, TurnOutcome, UiQuestion};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::bus::*;
pub use self::status::{ExtensionProblem, LimitUsage, Queues, Status, UsageInfo};

/// The protocol's version. A client and an owner of different versions do not talk.
pub const VERSION: u32 = 1;

/// The name of a client that is a command: it ends by itself.
pub const COMMAND: &str = "cli";

/// A request. `method` and `params` stand beside JSON-RPC's `id`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "method", content = "params")]
pub enum Request {
    /// The first thing that is said: versions are compared, and the owner tells who it is.
    #[serde(rename = "hello")]
    Hello(ClientHello),
    /// Open a new session or take up one that is there, and watch it.
    #[serde(rename = "session.open")]
    SessionOpen(SessionOpen),
    /// Say something in a session. The answer comes when the turn has ended.
    #[serde(rename = "session.send")]
    SessionSend(SessionSend),
    /// Wait for the turn that is running. The answer comes when it has ended.
    #[serde(rename = "session.wait")]
    SessionWait(SessionParams),
    /// Cancel the running turn.
    #[serde(rename = "session.cancel")]
    SessionCancel(SessionParams),
    /// Replace the older part of the conversation by a summary.
    #[serde(rename = "session.compact")]
    SessionCompact(SessionParams),
    /// Give the session a name.
    #[serde(rename = "session.rename")]
    SessionRename(SessionRename),
    /// End the session for good.
    #[serde(rename = "session.end")]
    SessionEnd(SessionParams),
    /// A value that a frame of the session refers to as `{"blob": …}`.
    #[serde(rename = "session.content")]
    SessionContent(SessionContent),
    /// Answer an approval.
    #[serde(rename = "approval.answer")]
    ApprovalAnswer(ApprovalAnswer),
    /// Answer an extension's question.
    #[serde(rename = "ui.answer")]
    UiAnswer(UiAnswer),
    /// The tools that new turns have.
    #[serde(rename = "tools.list")]
    ToolsList(NoParams),
    /// The agents that new turns have.
    #[serde(rename = "agents.list")]
    AgentsList(NoParams),
    /// The extensions, their state and their lanes.
    #[serde(rename = "extensions.list")]
    ExtensionsList(NoParams),
    /// Send an extension up again that is down.
    #[serde(rename = "extension.restart")]
    ExtensionRestart(ExtensionParams),
    /// What went wrong with extensions of late.
    #[serde(rename = "extension.doctor")]
    ExtensionDoctor(ExtensionDoctor),
    /// How the home is.
    #[serde(rename = "system.status")]
    SystemStatus(NoParams),
    /// Stop everything in order; the owner ends.
    #[serde(rename = "system.stop")]
    SystemStop(NoParams),
    /// Stop everything in order, and start again.
    #[serde(rename = "system.restart")]
    SystemRestart(NoParams),
    /// What an extension needs before it can work, and what of it is missing.
    #[serde(rename = "setup.show")]
    SetupShow(SetupShow),
    /// Set something that an extension needs.
    #[serde(rename = "setup.apply")]
    SetupApply(SetupApply),
    /// Which rule decides about a call, and why.
    #[serde(rename = "policy.explain")]
    PolicyExplain(PolicyExplain),
    /// Erase a session's content.
    #[serde(rename = "log.erase")]
    LogErase(LogErase),
    /// Collect old frames.
    #[serde(rename = "log.gc")]
    LogGc(LogGc),
    /// How the bus is doing: who subscribes, how much waits for them, what went wrong.
    #[serde(rename = "bus.status")]
    BusStatus(NoParams),
    /// Publish an event. The answer comes when it is on disk.
    #[serde(rename = "bus.publish")]
    BusPublish(BusPublish),
    /// The dead letters, of one subscriber or of all.
    #[serde(rename = "bus.dead.list")]
    BusDeadList(BusDeadList),
    /// One dead letter, with what it says.
    #[serde(rename = "bus.dead.show")]
    BusDeadShow(BusDead),
    /// Give a dead letter all its attempts again.
    #[serde(rename = "bus.dead.retry")]
    BusDeadRetry(BusDead),
    /// Throw a dead letter away.
    #[serde(rename = "bus.dead.discard")]
    BusDeadDiscard(BusDeadDiscard),
    /// A copy of a session under a new id, up to a frame.
    #[serde(rename = "session.fork")]
    SessionFork(SessionFork),
    /// The slash commands that can be run in a session.
    #[serde(rename = "commands.list")]
    CommandsList(NoParams),
    /// Run a slash command in a session.
    #[serde(rename = "command.run")]
    CommandRun(CommandRun),
    /// How the extension of a tool would have a call and its result shown.
    #[serde(rename = "tool.render")]
    ToolRender(ToolRender),
}

/// No parameters.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoParams {}

/// An extension.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExtensionParams {
    /// Its id.
    pub id: String,
}

/// Which extension to examine.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ExtensionDoctor {
    /// Its id; all, if none.
    pub id: Option<String>,
}

/// Something that went wrong with an extension.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FaultRecord {
    /// The extension.
    pub extension: String,
    /// When, in milliseconds since 1970.
    pub at: u64,
    /// What it was doing.
    pub phase: String,
    /// The stable code.
    pub code: String,
    /// What happened.
    pub message: String,
    /// What to do.
    pub fix: String,
}

/// Who asks.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClientHello {
    /// The protocol's version.
    pub version: u32,
    /// The client's name: `editor`. As a `cli`, which is a command that ends by itself, the owner waits for it before it ends.
    pub client: String,
}

/// Who answers.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ServerHello {
    /// The protocol's version.
    pub version: u32,
    /// The program's version.
    pub program: String,
    /// The owner's process.
    pub process: u32,
    /// The home.
    pub home: String,
    /// The policy profile in force.
    pub profile: String,
    /// The model that new sessions use.
    pub model: ModelName,
}

/// Which session to open.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SessionOpen {
    /// The session to take up; none opens a new one.
    pub session: Option<StreamId>,
    /// Whether a session that is not there is made under this id.
    pub create: bool,
    /// The model to use in place of the configured one, for a new session.
    pub model: Option<ModelName>,
    /// Where it comes from: `chat`, `run`, `call`.
    pub channel: String,
    /// Whether this client answers approvals and questions.
    pub answers: bool,
    /// Whether this client is sent every frame, from this one on.
    pub frames_from: Option<Seq>,
}

/// A session that is open.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SessionOpened {
    /// The session.
    pub session: StreamId,
    /// Whether it was there before.
    pub resumed: bool,
    /// The next frame's number when it was opened.
    pub next: Seq,
    /// What waits for a person.
    pub waiting: Vec<Notification>,
}

/// A session.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionParams {
    /// The session.
    pub session: StreamId,
}

/// Which value of a session to fetch.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionContent {
    /// The session.
    pub session: StreamId,
    /// The digest in the reference.
    pub digest: Digest,
}

/// Something said.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionSend {
    /// The session.
    pub session: StreamId,
    /// What.
    pub text: String,
    /// Files that go with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
}

/// A slash command to run.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CommandRun {
    /// The session.
    pub session: StreamId,
    /// The command, without its slash.
    pub command: String,
    /// What follows it.
    #[serde(default)]
    pub arguments: String,
}

/// A slash command.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SlashCommandInfo {
    /// Its name, without the slash.
    pub name: String,
    /// What it takes, if that is known.
    pub takes: String,
    /// What it does.
    pub description: String,
    /// Whose it is; none for one that is built in.
    pub extension: Option<String>,
}

/// What a slash command came to. It is in the log.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CommandEnd {
    /// What it says.
    pub output: Content,
    /// The session in which the conversation goes on, if that is another one.
    pub session: Option<StreamId>,
}

/// A session's name.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionRename {
    /// The session.
    pub session: StreamId,
    /// Its name from now on.
    pub name: String,
}

/// How a turn ended. It is durable.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TurnEnd {
    /// The session.
    pub session: StreamId,
    /// The `turn.ended` frame.
    pub ended: Seq,
    /// How.
    pub outcome: TurnOutcome,
    /// What the user is told.
    pub answer: Option<Content>,
    /// Files that its tools made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// What the session has used so far.
    pub spent: Spent,
    /// Where the limit is set that ended it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_set_in: Option<String>,
}

/// A person's answer to an approval.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApprovalAnswer {
    /// The session.
    pub session: StreamId,
    /// The `approval.requested` frame.
    pub approval: Seq,
    /// The answer.
    pub answer: ApprovalChoice,
}

/// What a person may answer.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalChoice {
    /// This once.
    Once,
    /// For the rest of the session.
    Session,
    /// From now on: a rule is written into the policy.
    Always,
    /// With other arguments.
    Edit {
        /// The arguments.
        arguments: Value,
    },
    /// No.
    Deny {
        /// Why; the model is told.
        reason: String,
    },
}

/// The user's answer to an extension's question.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UiAnswer {
    /// The session.
    pub session: StreamId,
    /// The `ui.requested` frame.
    pub request: Seq,
    /// The answer; none dismisses it.
    pub answer: Option<Value>,
}

/// A tool that new turns have.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ToolInfo {
    /// Its name.
    pub name: ToolName,
    /// What it does.
    pub description: String,
    /// What it does to the world.
    pub effects: String,
    /// Whose it is.
    pub extension: String,
    /// Which version.
    pub version: String,
    /// The lane that runs it.
    pub lane: String,
    /// The generation.
    pub generation: u64,
    /// What the policy says before anything is known of the arguments: `allow`, `ask` or `deny`.
    pub policy: String,
    /// The JSON Schema of its arguments.
    pub input_schema: Value,
    /// How a surface may show calls and results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub render: Option<Value>,
    /// Whether its extension shows calls or results itself, when it is asked with `tool.render`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub renders: bool,
}

/// A call of a tool that is to be shown.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolRender {
    /// The tool.
    pub tool: ToolName,
    /// What it was called with.
    pub arguments: Content,
    /// What the model was told.
    pub result: Content,
}

/// How a call is to be shown, in Markdown. What is missing is left to the surface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolRendered {
    /// The call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// Its result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
}

/// An agent that new turns have.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AgentInfo {
    /// Its id.
    pub id: String,
    /// What it is good for.
    pub description: String,
    /// How others reach it.
    pub mode: AgentMode,
    /// Its models.
    pub models: Vec<ModelName>,
}

/// An extension.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ExtensionInfo {
    /// Its id.
    pub id: String,
    /// Its version, where one serves.
    pub version: Option<String>,
    /// `active`, `inactive` or `error`.
    pub state: String,
    /// The lane.
    pub lane: String,
    /// The generation that serves.
    pub generation: Option<u64>,
    /// The content's digest.
    pub digest: Option<String>,
    /// Its tools.
    pub tools: Vec<ToolName>,
    /// Its hooks.
    pub hooks: Vec<String>,
    /// What is wrong with it.
    pub fault: Option<String>,
    /// Names of tools that it does not get, or that others register too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<String>,
}

/// A call to be explained.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyExplain {
    /// The tool.
    pub tool: ToolName,
    /// The extension, if not the active one.
    #[serde(default)]
    pub extension: Option<String>,
    /// Its arguments.
    #[serde(default)]
    pub arguments: Value,
    /// Where the call would come from.
    #[serde(default)]
    pub channel: Option<String>,
}

/// Which extension's setup.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetupShow {
    /// The extension.
    pub extension: ExtensionId,
}

/// Something that an extension needs.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetupApply {
    /// The extension.
    pub extension: ExtensionId,
    /// What is set.
    pub name: String,
    /// The value. That of a secret goes to where secrets are kept, and nowhere else.
    pub value: Value,
}

/// A session whose content goes.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LogErase {
    /// The session.
    pub session: StreamId,
    /// Why; kept in the tombstones.
    pub reason: String,
}

/// What is collected.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LogGc {
    /// One session; all if none is named.
    pub session: Option<StreamId>,
    /// Keep frames of the last so many days.
    pub keep_days: Option<u64>,
    /// Keep the last so many frames.
    pub keep_frames: Option<u64>,
}

/// A session to be copied.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionFork {
    /// The session.
    pub session: StreamId,
    /// The last frame that is taken over; all if none is named.
    #[serde(default)]
    pub at: Option<Seq>,
}

/// Something that happened in a session that is watched.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "method", content = "params", rename_all = "snake_case")]
pub enum Notification {
    /// A frame, as it is stored. It is durable.
    #[allow(clippy::large_enum_variant, reason = "most notices are frames")]
    Frame(Frame),
    /// The model wrote some text, provisionally.
    Text {
        /// The session.
        session: StreamId,
        /// What it wrote.
        text: String,
    },
    /// The model thinks aloud, provisionally.
    Reasoning {
        /// The session.
        session: StreamId,
        /// What it wrote.
        text: String,
    },
    /// How a call is getting on, provisionally.
    Progress {
        /// The session.
        session: StreamId,
        /// The extension that says so.
        extension: ExtensionId,
        /// What it says.
        text: String,
    },
    /// A person must decide on a call.
    Approval {
        /// The session.
        session: StreamId,
        /// The `approval.requested` frame.
        approval: Seq,
        /// The call.
        call: CallId,
        /// The tool.
        tool: ToolName,
        /// The extension whose tool it is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        extension: Option<ExtensionId>,
        /// The arguments as they stand.
        arguments: Value,
        /// Who asks, and why.
        reasons: Vec<GateReason>,
    },
    /// An extension asks the user.
    Question {
        /// The session.
        session: StreamId,
        /// The `ui.requested` frame.
        request: Seq,
        /// The extension that asks.
        extension: ExtensionId,
        /// The question.
        question: UiQuestion,
    },
    /// Somebody has answered it; nobody else need.
    Answered {
        /// The session.
        session: StreamId,
        /// The approval or question.
        request: Seq,
    },
    /// A turn has ended, durably.
    Ended {
        /// The session.
        session: StreamId,
        /// How.
        outcome: TurnOutcome,
        /// What the user is told.
        answer: Option<Content>,
        /// Where the limit is set that ended it, if one did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit_set_in: Option<String>,
    },
    /// An extension or the owner itself tells the user something, in no session.
    Told {
        /// The extension; none for the owner.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        extension: Option<ExtensionId>,
        /// What.
        text: String,
    },
    /// The session stopped because its log cannot be written.
    Broken {
        /// The session.
        session: StreamId,
        /// Why.
        problem: Problem,
    },
}

/// The JSON Schemas of requests and notices.
pub fn schema() -> Value {
    let request = schemars::schema_for!(Request).to_value();
    let notice = schemars::schema_for!(Notification).to_value();
    serde_json::json!({ "version": VERSION, "request": request, "notice": notice })
}
