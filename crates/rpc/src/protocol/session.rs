//! Requests about one session, and their answers.

use holdfast_contract::attachment::Attachment;
use holdfast_contract::body::FrameKind;
use holdfast_contract::content::Content;
use holdfast_contract::digest::Digest;
use holdfast_contract::frame::Frame;
use holdfast_contract::ids::{CallId, ExtensionId, Millis, ModelName, Seq, StreamId, ToolName};
use holdfast_contract::manifest::Profile;
use holdfast_contract::message::Spent;
use holdfast_contract::problem::Problem;
use holdfast_contract::session_frames::{GateReason, TurnOutcome, UiQuestion};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ClientRequest, Method, NoParams, Request};

methods! {
    /// What can be asked of a session.
    Session: SessionMethod {
        /// Open a new session or resume one that exists, and subscribe to its feed.
        "session.open" => Open(SessionOpen),
        /// Send a message. The answer comes when the turn has ended, after the frame that ends it.
        "session.send" => Send(SessionSend),
        /// Wait for the running turn. The answer comes when it has ended, after the frame that ends it.
        "session.wait" => Wait(SessionParams),
        /// Cancel the running turn.
        "session.cancel" => Cancel(SessionParams),
        /// Replace the older part of the conversation by a summary.
        "session.compact" => Compact(SessionParams),
        /// Give the session a name.
        "session.rename" => Rename(SessionRename),
        /// End the session permanently.
        "session.end" => End(SessionParams),
        /// A copy of a session under a new id, up to a frame.
        "session.fork" => Fork(SessionFork),
        /// The sessions, the latest first.
        "session.list" => List(SessionList),
        /// Frames of a session, as they are stored.
        "session.frames" => Frames(SessionFrames),
        /// A value that a frame of the session refers to as `{"blob": …}`.
        "session.content" => Content(SessionContent),
        /// How an earlier turn ended.
        "session.turn" => Turn(SessionTurn),
        /// The call that an approval is about.
        "approval.show" => ApprovalShow(ApprovalShow),
        /// Answer an approval.
        "approval.answer" => ApprovalAnswer(ApprovalAnswer),
        /// Answer an extension's question.
        "ui.answer" => UiAnswer(UiAnswer),
        /// The approvals and questions that wait for a person, in any session, the oldest first.
        "questions.list" => Questions(NoParams),
        /// The slash commands that can be run in a session.
        "commands.list" => Commands(NoParams),
        /// Run a slash command in a session.
        "command.run" => CommandRun(CommandRun),
    }
}

/// Which session to open.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SessionOpen {
    /// The session to resume; none opens a new one.
    pub session: Option<StreamId>,
    /// Whether a session that is not there is made under this id.
    pub create: bool,
    /// The model to use in place of the configured one, for a new session.
    pub model: Option<ModelName>,
    /// Where it comes from: `chat`, `run`, `call`.
    pub channel: String,
    /// Whether this client answers approvals and questions.
    pub answers: bool,
    /// Whether this client shows the user messages that belong to no turn, such as reminders, which come as `told`.
    pub notices: bool,
    /// The folder that its tools may touch, for a new session; that of the `hello` if none is named.
    pub folder: Option<String>,
    /// The policy profile of a new session, in place of the one in force; that of the `hello` if none is named. A session that
    /// exists keeps its own, and asking for another one is refused.
    pub profile: Option<Profile>,
    /// The first frame of the feed. Without it, the feed begins with the running turn, or with the next frame if none is running.
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
    /// The folder that its tools may touch. A session keeps the one that it was started with.
    #[serde(default)]
    pub workspace: Option<String>,
    /// The policy profile that it is under.
    #[serde(default)]
    pub profile: Option<Profile>,
    /// What the user should know about it, such as why it has no workspace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Problem>,
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
    /// What the turn used.
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

/// Which sessions to list.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SessionList {
    /// Include sessions of agents that were called by others.
    pub all: bool,
    /// At most so many.
    pub limit: Option<u64>,
}

/// A session in a list.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SessionSummary {
    /// The session.
    pub session: StreamId,
    /// Where it comes from.
    pub channel: String,
    /// How many frames it has.
    pub frames: u64,
    /// When its first frame was recorded.
    pub first_at: Option<Millis>,
    /// When its last frame was recorded.
    pub last_at: Option<Millis>,
    /// Its name, or what was said first.
    pub about: String,
}

/// Which frames of a session to read.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionFrames {
    /// The session.
    pub session: StreamId,
    /// From this one on.
    #[serde(default)]
    pub from: Seq,
    /// Up to and including this one; all that follow if none is named.
    #[serde(default)]
    pub to: Option<Seq>,
    /// Only these kinds; all if none is named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<FrameKind>,
    /// At most so many; an answer never has more than 1000.
    #[serde(default)]
    pub limit: Option<u64>,
}

/// Frames of a session.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FramePage {
    /// The frames, as they are stored.
    pub frames: Vec<Frame>,
    /// Where to go on; none if there are no more.
    pub next: Option<Seq>,
}

/// A turn that has ended.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionTurn {
    /// The session.
    pub session: StreamId,
    /// Its `turn.ended` frame.
    pub ended: Seq,
}

/// How an earlier turn ended.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TurnDetails {
    /// How.
    pub outcome: TurnOutcome,
    /// What the user is told.
    pub answer: Option<Content>,
    /// Files that its tools made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// Where the limit is set that ended it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_set_in: Option<String>,
}

/// An approval that waits for a person.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApprovalShow {
    /// The session.
    pub session: StreamId,
    /// The `approval.requested` frame.
    pub approval: Seq,
}

/// The call that an approval is about.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalInfo {
    /// The `approval.requested` frame.
    pub approval: Seq,
    /// The call.
    pub call: CallId,
    /// The tool.
    pub tool: ToolName,
    /// The extension whose tool it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extension: Option<ExtensionId>,
    /// The arguments as they stand.
    pub arguments: Value,
    /// Who asks, and why.
    pub reasons: Vec<GateReason>,
}

/// An approval or a question that waits for a person. `approval.answer` answers it if it has a tool, and else `ui.answer`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct QuestionInfo {
    /// Its id: the session and the frame.
    pub id: String,
    /// The session that asks.
    pub session: StreamId,
    /// The `approval.requested` or `ui.requested` frame.
    pub request: Seq,
    /// Where the session comes from.
    pub channel: String,
    /// The user, if the session is a user's on a channel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Since when it waits.
    pub since: Millis,
    /// The extension that asks, or whose tool it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extension: Option<ExtensionId>,
    /// The tool that wants to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<ToolName>,
    /// Its arguments as they stand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// Who wants a person to be asked about it, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<GateReason>,
    /// The question of an extension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<UiQuestion>,
}
