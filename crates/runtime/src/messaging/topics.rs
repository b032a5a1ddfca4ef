//! The program's own topics: what their events say, and what is made of an event before it is published on one of them.

use holdfast_bus::{NewEvent, topics};
use holdfast_contract::attachment::{self, Attachment};
use holdfast_contract::content::Content;
use holdfast_contract::frame::FrameSource;
use holdfast_contract::hook::Artifact;
use holdfast_contract::ids::{AgentId, ExtensionId, Generation, Seq, StreamId};
use holdfast_contract::problem::{Code, Fault, Problem};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::questions::is_answer;
use super::routes::Routes;

/// Topics of outgoing messages begin with this; the channel's id follows.
pub(crate) const OUT: &str = "channel.out.";

/// `user.message`: a user said something on a channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserMessage {
    /// What.
    pub text: String,
    /// Who, in the channel's own words.
    #[serde(deserialize_with = "words")]
    pub user_id: String,
    /// Where: the extension that is the channel. The publisher's own id if left out.
    pub channel_id: ExtensionId,
    /// The channel's own id of the message. The same one is taken only once.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "some_words")]
    pub message_id: Option<String>,
    /// The conversation that it belongs to; the user's own on this channel if left out.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "some_words")]
    pub thread_id: Option<String>,
    /// Files that came with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// The session whose turn it is, of a message that was typed in a chat: the surface runs that turn. The program's own word: what
    /// others say is not taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<StreamId>,
}

/// `system.user.notify`: something is to be shown to the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserNotice {
    /// What.
    pub text: String,
    /// On which channel; the default one if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel_id: Option<ExtensionId>,
    /// To whom; the channel knows if left out.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "some_words")]
    pub user_id: Option<String>,
    /// The session in which it was asked for. Without a channel it is shown in a chat that has it open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<StreamId>,
    /// Whose words they are, where the program publishes them for an extension. What an extension says of it is not taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extension: Option<ExtensionId>,
}

impl UserNotice {
    /// A text for the user, wherever they can be reached.
    pub(crate) fn text(text: String) -> Self {
        Self { text, channel_id: None, user_id: None, session: None, extension: None }
    }
}

/// `system.user.terminal`: something waits until the user can be reached, in a chat of the terminal or on a channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TerminalNotice {
    /// What.
    pub text: String,
    /// Whose words they are.
    pub extension: ExtensionId,
    /// On which channel, if one was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel_id: Option<ExtensionId>,
    /// For whom, if a user was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    /// Whether it is for the terminal alone, whatever channels there are.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub chats_only: bool,
}

impl TerminalNotice {
    /// A text for the user, wherever they can be reached.
    pub(super) fn text(text: String, extension: ExtensionId) -> Self {
        Self { text, extension, channel_id: None, user_id: None, chats_only: false }
    }

    /// The order in which it waits: that of the place it is for.
    pub(super) fn order(&self) -> Option<String> {
        if self.chats_only {
            Some("chats".to_owned())
        } else {
            order_of(self.channel_id.as_ref(), self.user_id.as_deref())
        }
    }

    /// The same for a channel.
    pub(super) fn on(self, channel: ExtensionId) -> Self {
        Self { channel_id: Some(channel), ..self }
    }
}

/// `system.agent.task` and `system.agent.background`: an agent is to do something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentTask {
    /// What.
    #[serde(alias = "task", alias = "text")]
    pub prompt: String,
    /// Which agent; the main one if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// The channel that the answer goes to; the default one if left out. The session's origin does not depend on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel_id: Option<ExtensionId>,
    /// Whom the answer is for; the channel knows if left out. The session has no user.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "some_words")]
    pub user_id: Option<String>,
    /// How deep its session is under the one that asked for it. The program's own word: what an extension says is not taken.
    #[serde(default, skip_serializing_if = "is_on_top")]
    pub depth: u8,
}

fn is_on_top(depth: &u8) -> bool {
    *depth == 0
}

/// `channel.out.<id>`: a message on its way out. The event's id is the delivery's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutgoingMessage {
    /// What.
    pub text: String,
    /// To whom; the channel knows if none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    /// A file, in place of a text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<Attachment>,
    /// Whether it is the end of a stream on the channel.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub streamed: bool,
    /// The question that the text asks. The code to answer with is not here: only the channel is given it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<QuestionRef>,
}

/// A question on its way to a user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionRef {
    /// The session that asks.
    pub session: StreamId,
    /// Its `approval.requested` or `ui.requested` frame.
    pub request: Seq,
}

impl OutgoingMessage {
    /// A text, which does not end a stream.
    pub(super) fn text(text: String, user_id: Option<String>) -> Self {
        Self { text, user_id, file: None, streamed: false, question: None }
    }
}

/// `system.extension.error`: an extension failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExtensionError {
    /// The extension.
    pub extension: ExtensionId,
    /// Which activation; none where it never became one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<Generation>,
    /// What it was doing.
    pub phase: String,
    /// What happened.
    pub fault: Fault,
}

/// `system.extension.state`: an extension's state changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExtensionStateEvent {
    /// The extension.
    pub extension: ExtensionId,
    /// Which activation.
    pub generation: Generation,
    /// Its state from now on.
    pub state: holdfast_contract::system_frames::ExtensionState,
    /// Why, when it is in error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
}

/// What notices for one place have in common; none for the user wherever they are.
fn order_of(channel: Option<&ExtensionId>, user: Option<&str>) -> Option<String> {
    let named = channel.is_some() || user.is_some();
    named.then(|| serde_json::json!([channel, user]).to_string())
}

/// Channels have numbers for users and messages as often as words.
fn words<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    some_words(deserializer)?.ok_or_else(|| serde::de::Error::custom("a text or a number is needed"))
}

fn some_words<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text)),
        Value::Number(number) => Ok(Some(number.to_string())),
        _ => Err(serde::de::Error::custom("a text or a number is needed")),
    }
}

/// The payload of an event of one of these topics.
pub(crate) fn payload<T: for<'a> Deserialize<'a>>(topic: &str, payload: &Content) -> Result<T, Fault> {
    let value = payload.value().clone();
    serde_json::from_value(value).map_err(|error| {
        let message = format!("the payload of an event on `{topic}` is invalid: {error}");
        Fault::new(Code::EventPayload, message)
    })
}

/// What an event says in words: its `text`, `prompt` or `task`, or all of it.
pub(crate) fn message_text(payload: &Content) -> String {
    let field = |name: &str| payload.value().get(name)?.as_str().map(str::to_owned);
    ["text", "prompt", "task"].into_iter().find_map(field).unwrap_or_else(|| payload.to_text())
}

/// What extensions may not publish, because others take the program's word for it.
fn is_reserved(topic: &str) -> bool {
    topic.starts_with(OUT)
        || topic.starts_with("system.extension.")
        || matches!(topic, topics::DEAD_LETTER | topics::USER_TERMINAL)
}

/// An event as it is published on its topic.
pub(super) fn prepared(event: NewEvent, routes: &Routes) -> Result<NewEvent, Problem> {
    let topic = event.topic.as_str().to_owned();
    let publisher = match &event.source {
        FrameSource::Extension(extension) => Some(extension.id.clone()),
        _ => None,
    };
    if let Some(extension) = publisher.as_ref().filter(|_| is_reserved(&topic)) {
        let what = format!("`{extension}` publishes on `{topic}`, which only the program itself does");
        return Err(Problem::new(Code::EventRefused, what));
    }
    match topic.as_str() {
        topics::USER_MESSAGE => message(event, publisher, routes),
        topics::USER_NOTIFY => {
            let notice = payload::<UserNotice>(&topic, &event.payload)?;
            let order = order_of(notice.channel_id.as_ref(), notice.user_id.as_deref());
            Ok(NewEvent { key: event.key.or(order), ..event })
        }
        topics::AGENT_TASK | topics::AGENT_BACKGROUND => {
            payload::<AgentTask>(&topic, &event.payload).map(|_| event).map_err(Into::into)
        }
        _ => Ok(event),
    }
}

/// A user's message: whose channel it is, and where it belongs in its session's order.
fn message(event: NewEvent, publisher: Option<ExtensionId>, routes: &Routes) -> Result<NewEvent, Problem> {
    let mut value = event.payload.value().clone();
    if let (Some(fields), Some(publisher)) = (value.as_object_mut(), &publisher) {
        let channel = fields.entry("channel_id").or_insert(Value::Null);
        if channel.is_null() {
            *channel = Value::String(publisher.to_string());
        }
    }
    let read: UserMessage = payload(topics::USER_MESSAGE, &Content::new(value))?;
    let read = UserMessage { session: None, ..read };
    let files: Vec<Artifact> = read.attachments.iter().cloned().map(Artifact::from).collect();
    attachment::check(&files)?;
    if let Some(publisher) = publisher.filter(|publisher| *publisher != read.channel_id) {
        let what = format!("`{publisher}` brings a message of the channel `{}`", read.channel_id);
        return Err(Problem::new(Code::EventRefused, what).help("A channel speaks for itself alone."));
    }
    let once = read.message_id.as_ref().map(|id| format!("{}/{id}", read.channel_id));
    let session = routes.session(&read.channel_id, &read.user_id);
    // The turn that asks may be the one that the session is busy with: an answer does not wait for it.
    let key = if is_answer(&read.text) { format!("{session}/answers") } else { session.to_string() };
    Ok(NewEvent {
        payload: Content::of(&read),
        key: Some(key),
        idempotency: once.or(event.idempotency),
        ..event
    })
}
