//! The arguments of the host calls. A field that is not listed is refused, so that a misspelt one is noticed.

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::ids::{AgentId, CallId, ExtensionId, Millis, ToolName, Topic};

/// Arguments that the host does not read.
#[derive(Clone, Copy, Debug, Default)]
pub struct AnyArguments;

impl<'de> Deserialize<'de> for AnyArguments {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        serde::de::IgnoredAny::deserialize(deserializer).map(|_| Self)
    }
}

/// A name alone, as a text: `secret.reference`, `secret.get` and `setup.show`.
#[derive(Clone, Debug)]
pub struct NameArgument(pub String);

impl<'de> Deserialize<'de> for NameArgument {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(match Value::deserialize(deserializer)? {
            Value::String(name) => name,
            other => other.to_string(),
        }))
    }
}

/// `random`
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RandomArguments {
    pub bytes: u32,
}

/// `state.get` and `state.set`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StateArguments {
    pub key: String,
    #[serde(default, deserialize_with = "present")]
    pub value: Option<Value>,
}

/// Reads a field that is present: `null` is a value like any other; only a missing field is `None`.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// `inject`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct InjectArguments {
    pub text: String,
}

/// `api.call`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApiCallArguments {
    /// Whose method.
    pub extension: ExtensionId,
    /// The method.
    pub method: String,
    /// What it is called with.
    #[serde(default)]
    pub arguments: Value,
}

/// The key of a shared service: `<extension>/<name>`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct ServiceKey {
    /// The extension that holds the service.
    pub owner: ExtensionId,
    /// The name that the owner gives it.
    pub name: String,
}

impl TryFrom<String> for ServiceKey {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match text.split_once('/') {
            Some((owner, name)) if !owner.is_empty() && !name.is_empty() => {
                Ok(Self { owner: owner.into(), name: name.to_owned() })
            }
            _ => Err(format!("invalid key `{text}`: write `<extension>/<name>`")),
        }
    }
}

/// `service.get`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceGetArguments {
    /// The service.
    pub key: ServiceKey,
    /// What it is created with, if it does not exist.
    #[serde(default)]
    pub arguments: Value,
}

/// `service.call`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceCallArguments {
    /// The service.
    pub key: ServiceKey,
    /// The method.
    pub method: String,
    /// What it is called with.
    #[serde(default)]
    pub arguments: Value,
}

/// `event.publish`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishArguments {
    /// The topic.
    pub topic: Topic,
    /// The payload.
    #[serde(default)]
    pub payload: Value,
    /// Events with the same key are delivered in order.
    #[serde(default)]
    pub key: Option<String>,
    /// What the event answers.
    #[serde(default)]
    pub correlation: Option<String>,
    /// An event with the same one is published once.
    #[serde(default)]
    pub idempotency: Option<String>,
}

/// `event.subscribe` and `event.unsubscribe`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TopicArguments {
    /// The topic, or a pattern of topics.
    pub topic: Topic,
}

/// `user.notify`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NotifyArguments {
    /// The message.
    pub text: String,
    /// The channel; the default one if none is named.
    #[serde(default, alias = "channel_id")]
    pub channel: Option<ExtensionId>,
    /// The user on that channel.
    #[serde(default, alias = "user_id")]
    pub user: Option<String>,
}

/// `agent.task`, `agent.background` and `agent.invoke`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskArguments {
    /// What the agent is to do.
    #[serde(alias = "prompt")]
    pub task: String,
    /// The agent; the main one if none is named.
    #[serde(default)]
    pub agent: Option<AgentId>,
    /// The channel that the answer goes to.
    #[serde(default, alias = "channel_id")]
    pub channel: Option<ExtensionId>,
    /// The user on that channel.
    #[serde(default, alias = "user_id")]
    pub user: Option<String>,
    /// What the task answers.
    #[serde(default, alias = "correlation_id")]
    pub correlation: Option<String>,
}

/// `tool.invoke`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InvokeToolArguments {
    /// The tool.
    pub tool: ToolName,
    /// What it is called with.
    #[serde(default)]
    pub arguments: Value,
}

/// `model.invoke`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InvokeModelArguments {
    /// What the model is asked.
    pub prompt: String,
    /// Its instructions.
    #[serde(default)]
    pub instructions: String,
    /// The agent whose model it is; the extension's own if none is named.
    #[serde(default)]
    pub agent: Option<AgentId>,
}

/// `agent.describe`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DescribeAgentArguments {
    /// The agent; the extension's own if none is named.
    #[serde(default)]
    pub agent: Option<AgentId>,
}

/// `context.enrich`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnrichArguments {
    /// The prompt.
    pub prompt: String,
    /// The agent that it is for.
    #[serde(default)]
    pub agent: Option<AgentId>,
}

/// `thread.list`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThreadListArguments {
    /// This one alone.
    #[serde(default)]
    pub thread: Option<String>,
    /// Those of a channel.
    #[serde(default)]
    pub channel: Option<String>,
    /// Those of a project.
    #[serde(default)]
    pub project: Option<String>,
    /// Whether archived ones are listed too.
    #[serde(default)]
    pub archived: bool,
}

/// `thread.update`: what is left out stays as it is.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThreadUpdateArguments {
    /// The conversation.
    pub thread: String,
    /// The channel of a conversation that is created. Without it, one that does not exist is not created.
    #[serde(default)]
    pub channel: Option<String>,
    /// Its title; `null` removes it.
    #[serde(default, deserialize_with = "present_or_null")]
    pub title: Option<Option<String>>,
    /// Its project; `null` takes it out.
    #[serde(default, deserialize_with = "present_or_null")]
    pub project: Option<Option<String>>,
    /// Whether it is archived.
    #[serde(default)]
    pub archived: Option<bool>,
}

/// `project.update`: what is left out stays as it is.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProjectUpdateArguments {
    /// The project; a new one if none is named.
    #[serde(default)]
    pub project: Option<String>,
    /// Its fields: `name`, `description`, `icon`, `instructions`, `agent_config`, `files` and `links`.
    pub fields: serde_json::Map<String, Value>,
}

/// Reads a field that may be `null`: only a missing field is `None`.
fn present_or_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// `schedule.next`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScheduleNextArguments {
    /// A schedule.
    #[serde(default)]
    pub when: Option<String>,
    /// A time span from now.
    #[serde(default, rename = "in")]
    pub span: Option<String>,
    /// The schedule's time zone; the home's if none is named.
    #[serde(default)]
    pub timezone: Option<String>,
}

/// `schedule.wait`
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScheduleWaitArguments {
    /// The point in time.
    pub until: Millis,
}

/// `secret.keep`
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecretKeepArguments {
    /// The secret's name.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// `network.connect`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConnectArguments {
    /// The host: a name or an address.
    pub host: String,
    /// The port.
    pub port: u16,
}

/// `network.listen`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListenArguments {
    /// The port.
    pub port: u16,
}

/// Bytes: a text, or anything in base64.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum SentBytes {
    /// Bytes that are UTF-8.
    Text(String),
    /// Any bytes.
    Encoded {
        /// In base64, with padding.
        base64: String,
    },
}

impl Default for SentBytes {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

/// `http.request`
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpArguments {
    /// The method, in capitals.
    #[serde(default = "get")]
    pub method: String,
    /// An `http` or `https` address.
    pub url: String,
    /// Names and values.
    #[serde(default)]
    pub headers: Vec<(String, String)>,
    /// What is sent.
    #[serde(default)]
    pub body: SentBytes,
    /// How long it may take.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
}

fn get() -> String {
    "GET".to_owned()
}

/// `file.read`, `file.list`, `file.stat`, `file.remove` and `file.make_folder`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileArguments {
    /// The path: from the extension's data folder, or absolute, or from `~`.
    pub path: String,
}

/// `file.write`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileWriteArguments {
    /// The path: from the extension's data folder, or absolute, or from `~`.
    pub path: String,
    /// The whole content.
    #[serde(default)]
    pub content: SentBytes,
}

/// `system.restart` and `system.shutdown`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShutdownArguments {
    /// Why.
    #[serde(default)]
    pub reason: Option<String>,
}

/// `result.read`
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadResultArguments {
    /// Whose result.
    pub call: CallId,
    /// Where to begin, in bytes of the text.
    #[serde(default)]
    pub offset: u64,
    /// How many bytes at most.
    pub limit: u64,
}

/// `tools.find`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FindToolsArguments {
    /// What the tools should do.
    pub query: String,
    /// How many at most.
    #[serde(default)]
    pub limit: Option<usize>,
}

/// `setup.apply`
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetupApplyArguments {
    /// The extension.
    pub extension: ExtensionId,
    /// The parameter.
    pub name: String,
    /// Its value.
    pub value: Value,
}

/// `extension.doctor`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DoctorArguments {
    /// The extension; all if none is named.
    #[serde(default)]
    pub extension: Option<ExtensionId>,
}
