//! What extensions ask for of all this, by name: events, the user, the agent.

use std::sync::Arc;

use holdfast_bus::{NewEvent, topics as known};
use holdfast_contract::content::Content;
use holdfast_contract::frame::FrameSource;
use holdfast_contract::ids::{AgentId, ExtensionId, Millis, Topic};
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::wire::Later;
use serde::Deserialize;

use super::topics::{AgentTask, UserNotice};
use crate::runtime::Inner;
use crate::services::{Caller, failed, read};

/// What asks an agent and waits for its answer.
pub(crate) const INVOKE: &str = "agent.invoke";

/// The names of what is answered here.
pub(crate) const ASKS: &[&str] = &[
    "event.publish",
    "event.subscribe",
    "event.unsubscribe",
    "user.notify",
    "agent.task",
    "agent.background",
    INVOKE,
];

/// `event.publish`. Answered with the event's id, once the event is on disk.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Publish {
    topic: Topic,
    #[serde(default)]
    payload: serde_json::Value,
    #[serde(default)]
    key: Option<String>,
    #[serde(default)]
    correlation: Option<String>,
    #[serde(default)]
    idempotency: Option<String>,
}

/// `event.subscribe` and `event.unsubscribe`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Subscribe {
    topic: Topic,
}

/// `user.notify`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Notify {
    text: String,
    #[serde(default, alias = "channel_id")]
    channel: Option<ExtensionId>,
    #[serde(default, alias = "user_id")]
    user: Option<String>,
}

/// `agent.task`, `agent.background` and `agent.invoke`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Task {
    #[serde(alias = "prompt")]
    task: String,
    #[serde(default)]
    agent: Option<AgentId>,
    #[serde(default, alias = "channel_id")]
    channel: Option<ExtensionId>,
    #[serde(default, alias = "user_id")]
    user: Option<String>,
    #[serde(default, alias = "correlation_id")]
    correlation: Option<String>,
}

impl Inner {
    /// Answers one of [`ASKS`].
    pub(crate) fn serve_living(
        self: &Arc<Self>,
        asker: Caller,
        name: &str,
        arguments: &Content,
        timeout: Option<Millis>,
    ) -> Later<Result<Content, Fault>> {
        let answered = match name {
            "event.publish" => read(name, arguments).map(|ask| self.ask_publish(&asker, ask)),
            "event.subscribe" => read(name, arguments).map(|ask| self.ask_subscribe(asker, ask, true)),
            "event.unsubscribe" => read(name, arguments).map(|ask| self.ask_subscribe(asker, ask, false)),
            "user.notify" => read(name, arguments).map(|ask| self.ask_notify(&asker, ask)),
            "agent.task" => read(name, arguments).map(|ask| self.ask_task(&asker, known::AGENT_TASK, ask)),
            "agent.background" => {
                read(name, arguments).map(|ask| self.ask_task(&asker, known::AGENT_BACKGROUND, ask))
            }
            _ => read(name, arguments).map(|ask| self.ask_invoke(asker, ask, timeout)),
        };
        answered.unwrap_or_else(failed)
    }

    fn ask_publish(self: &Arc<Self>, asker: &Caller, ask: Publish) -> Later<Result<Content, Fault>> {
        let Publish { topic, payload, key, correlation, idempotency } = ask;
        let source = FrameSource::Extension(asker.extension.clone());
        let mut payload = payload;
        if let (known::AGENT_TASK | known::AGENT_BACKGROUND, Some(fields)) =
            (topic.as_str(), payload.as_object_mut())
        {
            match self.nested(asker) {
                Ok((_, depth)) => drop(fields.insert("depth".to_owned(), depth.into())),
                Err(fault) => return failed(fault),
            }
        }
        let payload = Content::new(payload);
        self.published(NewEvent { topic, payload, key, correlation, idempotency, source })
    }

    fn published(self: &Arc<Self>, event: NewEvent) -> Later<Result<Content, Fault>> {
        let inner = self.clone();
        Box::pin(async move {
            let published = inner.publish(event).await.map_err(|problem| problem.to_fault())?;
            Ok(Content::text(published.id.to_string()))
        })
    }

    fn ask_subscribe(
        self: &Arc<Self>,
        asker: Caller,
        ask: Subscribe,
        subscribes: bool,
    ) -> Later<Result<Content, Fault>> {
        let inner = self.clone();
        Box::pin(async move {
            let asked = inner.asked_for(&asker.extension, ask.topic, subscribes).await;
            asked.map(|()| Content::default()).map_err(|problem| problem.to_fault())
        })
    }

    fn ask_notify(self: &Arc<Self>, asker: &Caller, ask: Notify) -> Later<Result<Content, Fault>> {
        let Notify { text, channel: channel_id, user: user_id } = ask;
        let event = NewEvent::new(known::USER_NOTIFY, Content::of(&UserNotice { text, channel_id, user_id }));
        self.published(event.source(FrameSource::Extension(asker.extension.clone())))
    }

    fn ask_task(self: &Arc<Self>, asker: &Caller, topic: &str, ask: Task) -> Later<Result<Content, Fault>> {
        let Task { task: prompt, agent, channel: channel_id, user: user_id, correlation } = ask;
        let depth = match self.nested(asker) {
            Ok((_, depth)) => depth,
            Err(fault) => return failed(fault),
        };
        let payload = Content::of(&AgentTask { prompt, agent, channel_id, user_id, depth });
        let event = NewEvent { correlation, ..NewEvent::new(topic, payload) };
        self.published(event.source(FrameSource::Extension(asker.extension.clone())))
    }

    fn ask_invoke(
        self: &Arc<Self>,
        asker: Caller,
        ask: Task,
        timeout: Option<Millis>,
    ) -> Later<Result<Content, Fault>> {
        let inner = self.clone();
        let late = timeout.map(|timeout| (timeout, self.clock.sleep(timeout)));
        Box::pin(async move {
            let asked = inner.invoke(&asker, ask.agent, ask.task);
            match late {
                None => asked.await,
                Some((timeout, late)) => tokio::select! {
                    biased;
                    answer = asked => answer,
                    () = late => {
                        let message = format!("the agent did not answer within {} ms", timeout.0);
                        Err(Fault::new(Code::ExtensionFault, message))
                    }
                },
            }
        })
    }
}
