//! The router: users' messages go to their sessions, answers and notices to the channels.
//!
//! Every outgoing message is an event on `channel.out.<id>` first, so that it is delivered at least once, in order for each user, and a
//! channel that may have had it before is told. The event's id is the delivery's. Where the answer was streamed, the end of the stream is the
//! delivery if the channel takes it, and otherwise the text is sent whole.
//!
//! Each channel has queues of its own, so that one that is stuck or flooded delays no other. What belongs to no channel that was ever loaded
//! is in the queues that channels share.

use std::collections::BTreeSet;
use std::sync::Arc;

use holdfast_bus::{Delivery, EventFilter, NewEvent, Subscription, topics as known};
use holdfast_contract::attachment::Attachment;
use holdfast_contract::content::Content;
use holdfast_contract::frame::FrameSource;
use holdfast_contract::hook::Artifact;
use holdfast_contract::ids::{ExtensionId, Millis};
use holdfast_contract::message::Origin;
use holdfast_contract::problem::{Code, Fault, Problem};
use holdfast_contract::registry::{ChannelFeatures, OtherEntry};
use holdfast_contract::role::Role;
use holdfast_contract::system_frames::EventPublished;
use serde_json::json;

use super::places::{ActivePlace, REACH_WAIT, TERMINAL};
use super::streams::AnswerStream;
use super::subscriptions::gone;
use super::topics::{self, AgentTask, OUT, OutgoingMessage, TerminalNotice, UserMessage, UserNotice};
use super::turns::{EventMessage, TurnRequest, answer_of, patient};
use crate::runtime::Inner;

/// Sessions of one channel that may be answered at once.
const MAX_CONCURRENT_SESSIONS: usize = 256;

/// How often a message is tried on a channel. With the pauses between, the last time is about an hour after the first.
const DELIVERY_ATTEMPTS: u32 = 20;

/// Places for which something may wait at once. Each has an order of its own.
const MAX_WAITING_PLACES: usize = 1_000;

/// The queues of messages from users and of outgoing ones. Those of a channel have its id behind the name.
const MESSAGES: &str = "router.messages";
const DELIVERIES: &str = "router.deliveries";

/// What the router does with an event.
#[derive(Clone, Copy)]
enum Routing {
    Message,
    Notice,
    Task,
    Background,
    Delivery,
    Terminal,
}

impl Inner {
    /// The router's own subscriptions: those that all share, and two for each of these channels.
    pub(super) fn routing(
        self: &Arc<Self>,
        channels: &Arc<BTreeSet<ExtensionId>>,
    ) -> Result<Vec<Subscription>, Problem> {
        let routed = |name: &str, pattern: &str, routing: Routing| {
            let inner = Arc::downgrade(self);
            let paused = match routing {
                Routing::Message | Routing::Task | Routing::Background => &self.messaging.turns_paused,
                Routing::Notice | Routing::Delivery | Routing::Terminal => &self.messaging.router_paused,
            };
            let paused = paused.clone();
            let routed = Subscription::new(name.to_owned(), &[pattern], move |delivery: Delivery| {
                let inner = inner.upgrade();
                async move {
                    let inner = inner.ok_or_else(gone)?;
                    inner.route(routing, &delivery).await.map_err(|fault| inner.told_of(fault))
                }
            });
            routed.map(|routed| Subscription { paused, ..routed })
        };
        let many =
            |subscription| Subscription { concurrency: MAX_CONCURRENT_SESSIONS, ..patient(subscription) };
        let delivered = |out| Subscription {
            concurrency: MAX_CONCURRENT_SESSIONS,
            max_attempts: DELIVERY_ATTEMPTS,
            deadline: Millis(120_000),
            ..out
        };
        let only = |subscription, filter| Subscription { filter: Some(filter), ..subscription };
        let others = channels.clone();
        let is_shared: EventFilter =
            Arc::new(move |event| channel_of(event).is_none_or(|channel| !others.contains(&channel)));
        let out = routed(DELIVERIES, &format!("{OUT}>"), Routing::Delivery)?;
        let mut all = vec![
            many(only(routed(MESSAGES, known::USER_MESSAGE, Routing::Message)?, is_shared.clone())),
            delivered(only(out, is_shared)),
            many(routed("router.tasks", known::AGENT_TASK, Routing::Task)?),
            many(routed("router.background", known::AGENT_BACKGROUND, Routing::Background)?),
            // One that waits for a channel to come up is delivered again in the next process.
            Subscription {
                concurrency: MAX_CONCURRENT_SESSIONS,
                interruptible: true,
                ..routed("router.notices", known::USER_NOTIFY, Routing::Notice)?
            },
            Subscription {
                concurrency: MAX_WAITING_PLACES,
                // The user is waited for without limit, through crashes too; only the queue is bounded.
                max_attempts: u32::MAX,
                // It ends each wait itself, and says why nobody was reached.
                deadline: Millis(REACH_WAIT.0 * 365),
                interruptible: true,
                ..routed("router.terminal", known::USER_TERMINAL, Routing::Terminal)?
            },
        ];
        for channel in &**channels {
            let own = channel.clone();
            let is_own: EventFilter = Arc::new(move |event| channel_of(event).as_ref() == Some(&own));
            let messages = routed(&queue_of(MESSAGES, channel), known::USER_MESSAGE, Routing::Message)?;
            let out = routed(&queue_of(DELIVERIES, channel), &format!("{OUT}{channel}"), Routing::Delivery)?;
            all.extend([many(only(messages, is_own)), delivered(out)]);
        }
        Ok(all)
    }

    /// The channels whose queues have events that an earlier process did not finish.
    pub(super) fn channels_with_events(&self) -> Vec<ExtensionId> {
        let status = self.messaging.bus.status();
        let open = status.subscribers.iter().filter(|subscriber| subscriber.open > 0);
        open.filter_map(|subscriber| {
            let (queue, channel) = subscriber.name.split_once('/')?;
            [MESSAGES, DELIVERIES].contains(&queue).then(|| channel.into())
        })
        .collect()
    }

    async fn route(self: &Arc<Self>, routing: Routing, delivery: &Delivery) -> Result<(), Fault> {
        let (topic, payload) = (delivery.event.topic.as_str(), &delivery.event.payload);
        match routing {
            Routing::Message => self.take_message(topics::payload(topic, payload)?, delivery).await,
            Routing::Notice => self.notify(topics::payload(topic, payload)?, Vec::new(), delivery).await,
            Routing::Task => self.do_task(topics::payload(topic, payload)?, delivery, true).await,
            Routing::Background => self.do_task(topics::payload(topic, payload)?, delivery, false).await,
            Routing::Terminal => self.reach_later(topics::payload(topic, payload)?, delivery).await,
            Routing::Delivery => {
                let channel = ExtensionId::from(topic.strip_prefix(OUT).unwrap_or_default());
                let delivered = self.deliver(&channel, topics::payload(topic, payload)?, delivery).await;
                delivered.map_err(|fault| self.postponed_if_down(&channel, fault))
            }
        }
    }

    /// A user's message: a turn of its session, and the answer on its channel.
    async fn take_message(self: &Arc<Self>, message: UserMessage, delivery: &Delivery) -> Result<(), Fault> {
        let UserMessage { text, user_id, channel_id, attachments, thread_id, session, .. } = message;
        if session.is_some() {
            // The surface on which it was typed runs its turn.
            return Ok(());
        }
        self.messaging.last_users().insert(channel_id.clone(), user_id.clone());
        self.active_at(ActivePlace::Channel { channel: channel_id.clone(), user: user_id.clone() });
        let answered = self.answered_on_channel(&channel_id, &user_id, &text).await;
        if let Some(reply) = answered.map_err(|problem| problem.to_fault())? {
            return self.send(&channel_id, OutgoingMessage::text(reply, Some(user_id)), delivery).await;
        }
        let session = match &thread_id {
            Some(thread) => self.session_of_thread(thread, &channel_id).await?,
            None => self.messaging.routes.session(&channel_id, &user_id),
        };
        let origin = Origin::channel(&channel_id, &user_id);
        if let Some(said) = self.typed_on_channel(&session, &origin, &text).await {
            let text = said.map_err(|problem| problem.to_fault())?;
            let out = OutgoingMessage::text(text, Some(user_id));
            return self.send(&channel_id, out, delivery).await;
        }
        let attachments = attachments.into_iter().map(Artifact::from).collect();
        let stream = self.stream_for(&channel_id, &user_id, delivery);
        let output = stream.as_ref().map(AnswerStream::output);
        let message = Some(EventMessage::from(delivery).shown(&channel_id, output));
        let turn =
            self.turn(TurnRequest { session, origin, agent: None, text, attachments, message, depth: 0 });
        let (report, ending) = match stream {
            None => (turn.await?, None),
            Some(stream) => self.stream(stream, turn).await?,
        };
        let text = OutgoingMessage::text(answer_of(&report), Some(user_id.clone()));
        let out = OutgoingMessage { streamed: ending.is_some(), ..text };
        match ending {
            None => self.send(&channel_id, out, delivery).await?,
            // There is nothing that would have to arrive, and so nothing to send either.
            Some(ending) if out.text.is_empty() => {
                drop(self.end_stream(&ending, "", json!({ "id": ending.id(), "repeat": false })).await);
            }
            Some(ending) => {
                let key = self.messaging.streams.keep(ending);
                let sent = self.send(&channel_id, out, delivery).await;
                if sent.is_err() {
                    self.messaging.streams.take(&key);
                }
                sent?;
            }
        }
        self.send_files(&channel_id, Some(user_id), report.files, delivery).await
    }

    /// An agent's task, in a session of its own, and the answer for the user if it is told.
    async fn do_task(
        self: &Arc<Self>,
        task: AgentTask,
        delivery: &Delivery,
        told: bool,
    ) -> Result<(), Fault> {
        let AgentTask { prompt, agent, channel_id, user_id, depth } = task;
        // What the task itself says of a channel and a user is only where its answer goes: policies rely on the origin.
        let origin = match &delivery.event.source {
            FrameSource::Extension(publisher) => Origin::extension(&publisher.id),
            _ => Origin::task(),
        };
        let session = super::turns::session_for(delivery);
        let (text, attachments, message) = (prompt, Vec::new(), Some(delivery.into()));
        let request = TurnRequest { session, origin, agent, text, attachments, message, depth };
        let report = self.turn_alone(request).await?;
        if told {
            let notice = UserNotice { channel_id, user_id, ..UserNotice::text(answer_of(&report)) };
            self.notify(notice, report.files, delivery).await
        } else {
            Ok(())
        }
    }

    /// Puts files on their way out, each by itself, behind the text.
    pub(super) async fn send_files(
        &self,
        channel: &ExtensionId,
        user: Option<String>,
        files: Vec<Artifact>,
        of: &Delivery,
    ) -> Result<(), Fault> {
        for (place, file) in files.iter().enumerate() {
            let out = OutgoingMessage {
                file: Some(file.into()),
                ..OutgoingMessage::text(String::new(), user.clone())
            };
            let of = of.event.id.to_string();
            self.put_out(channel, out, &of, format!("{of}/file-{}", place + 1)).await?;
        }
        Ok(())
    }

    /// Puts a message on its way out, once for each event that caused it.
    pub(super) async fn send(
        &self,
        channel: &ExtensionId,
        out: OutgoingMessage,
        of: &Delivery,
    ) -> Result<(), Fault> {
        if out.text.is_empty() {
            Ok(())
        } else {
            let of = of.event.id.to_string();
            self.put_out(channel, out, &of, of.clone()).await
        }
    }

    /// Puts a message on its way out, once under this key. `of` is what it belongs to.
    pub(super) async fn put_out(
        &self,
        channel: &ExtensionId,
        out: OutgoingMessage,
        of: &str,
        once: String,
    ) -> Result<(), Fault> {
        let event = NewEvent::new(format!("{OUT}{channel}"), Content::of(&out))
            .key(out.user_id.unwrap_or_default())
            .correlation(of)
            .idempotency(once);
        self.put(event).await.map(drop).map_err(|problem| problem.to_fault())
    }

    /// Hands a message to its channel.
    async fn deliver(
        self: &Arc<Self>,
        channel: &ExtensionId,
        out: OutgoingMessage,
        delivery: &Delivery,
    ) -> Result<(), Fault> {
        let marked = json!({ "id": delivery.event.id.to_string(), "repeat": delivery.repeat });
        if let Some(asks) = out.question.clone() {
            return self.deliver_question(channel, out, asks, marked).await;
        }
        let OutgoingMessage { mut text, user_id, file, .. } = out;
        // Held until the whole text has gone where its stream cannot be ended, so that the next stream does not come before.
        let of = delivery.event.correlation.as_ref().filter(|_| file.is_none());
        let ending = of.and_then(|of| self.messaging.streams.take(of));
        if let Some(ending) = ending.as_ref().filter(|_| !delivery.repeat)
            && self.end_stream(ending, &text, marked.clone()).await.is_ok()
        {
            return Ok(());
        }
        let entry = self.soon(|inner| inner.channel(channel)).await?;
        let features = ChannelFeatures::of(&entry.payload);
        let user = match user_id {
            None if !features.messages => {
                let last = self.last_user(channel).map_err(|problem| problem.to_fault())?;
                let Some(last) = last else {
                    // Nobody is known there yet.
                    let text = file.as_ref().map_or(text, unsendable);
                    let notice = TerminalNotice::text(text, "agent".into()).on(channel.clone());
                    let id = delivery.event.id.to_string();
                    return self.wait_for_user(notice, &id, format!("{id}/terminal")).await;
                };
                Some(last)
            }
            user => user,
        };
        if let Some(file) = file {
            if features.files {
                let arguments = json!({ "user": user, "file": file, "delivery": marked });
                return self.call_role(channel, Role::Channel, "send-file", arguments.into()).await.map(drop);
            }
            text = unsendable(&file);
        }
        let (function, arguments) = match user {
            Some(user) => ("send-to-user", json!({ "user": user, "text": text, "delivery": marked })),
            None => ("send-message", json!({ "text": text, "delivery": marked })),
        };
        self.call_role(channel, Role::Channel, function, arguments.into()).await.map(drop)
    }

    /// The active channel of this id.
    pub(crate) fn channel(&self, id: &ExtensionId) -> Result<OtherEntry, Fault> {
        let registry = self.registry.view();
        let mut channels = registry.others.iter().filter(|entry| entry.kind.as_str() == "channel");
        let found = channels.find(|entry| entry.id.as_str() == id.as_str());
        found.cloned().ok_or_else(|| Fault::new(Code::ChannelUnknown, format!("there is no channel `{id}`")))
    }

    /// The channels there are, with the terminal if a chat was ever opened, and the one that reaches the user where nothing else is
    /// said.
    pub(crate) fn channels(&self) -> Content {
        let registry = self.registry.view();
        let channels = registry.others.iter().filter(|entry| entry.kind.as_str() == "channel");
        let mut ids: Vec<&str> = channels.map(|entry| entry.id.as_str()).collect();
        if !ids.contains(&TERMINAL) && self.knows_chats() {
            ids.push(TERMINAL);
        }
        let default = self.default_channel().ok();
        Content::new(serde_json::json!({ "channels": ids, "default": default }))
    }

    /// The channel that reaches the user where nothing else is said: the one in the settings, or the only one.
    pub(crate) fn default_channel(&self) -> Result<ExtensionId, Fault> {
        if let Some(channel) = &self.messaging.routes.channels.default {
            return Ok(channel.clone());
        }
        let registry = self.registry.view();
        let channels = registry.others.iter().filter(|entry| entry.kind.as_str() == "channel");
        let channels: Vec<&str> = channels.map(|entry| entry.id.as_str()).collect();
        match channels.as_slice() {
            [only] => Ok((*only).into()),
            [] => Err(Fault::new(Code::ChannelUnknown, "there is no channel")),
            several => {
                let several = several.join(", ");
                let message = format!("there are several channels and no default one: {several}");
                Err(Fault::new(Code::ChannelUnknown, message))
            }
        }
    }
}

/// The name of a channel's own queue.
fn queue_of(queue: &str, channel: &ExtensionId) -> String {
    format!("{queue}/{channel}")
}

/// The channel whose queue an event belongs in: it was written there, or is on its way there. What was typed in a chat is on none.
fn channel_of(event: &EventPublished) -> Option<ExtensionId> {
    let payload = event.payload.value();
    match event.topic.as_str() {
        known::USER_MESSAGE if payload.get("session").is_none() => {
            payload.get("channel_id")?.as_str().map(Into::into)
        }
        topic => topic.strip_prefix(OUT).map(Into::into),
    }
}

/// What a user is told of a file on a channel that sends none.
pub(super) fn unsendable(file: &Attachment) -> String {
    format!("[{} was made. This channel does not send files.]", Artifact::from(file.clone()))
}
