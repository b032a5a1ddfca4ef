//! Requests about the bus, and their answers.

use std::collections::BTreeMap;

use holdfast_contract::frame::FrameSource;
use holdfast_contract::ids::Millis;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ClientRequest, Method, NoParams, Request};

methods! {
    /// What can be asked of the event bus.
    Bus: BusMethod {
        /// The state of the bus: subscribers, their queues, faults.
        "bus.status" => Status(NoParams),
        /// The topics that have events, with their open and dead deliveries and their subscribers.
        "bus.list" => List(NoParams),
        /// The last events of a topic, with the state of each delivery.
        "bus.show" => Show(BusShow),
        /// Publish an event. The answer comes when it is on disk.
        "bus.publish" => Publish(BusPublish),
        /// The dead letters, of one subscriber or of all.
        "bus.dead.list" => DeadList(BusDeadList),
        /// One dead letter, with its payload.
        "bus.dead.show" => DeadShow(BusDead),
        /// Give a dead letter all its attempts again.
        "bus.dead.retry" => DeadRetry(BusDead),
        /// Discard a dead letter.
        "bus.dead.discard" => DeadDiscard(BusDeadDiscard),
    }
}

/// An event to be published.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BusPublish {
    /// The topic.
    pub topic: String,
    /// What it says.
    #[serde(default)]
    pub payload: Value,
    /// The key within which events keep their order.
    #[serde(default)]
    pub key: Option<String>,
    /// What it answers or belongs to.
    #[serde(default)]
    pub correlation: Option<String>,
    /// Published again under the same one, it is not published twice.
    #[serde(default)]
    pub idempotency: Option<String>,
}

/// Whose events are shown.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BusShow {
    /// The topic.
    pub topic: String,
    /// At most so many; 20 if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

/// The events of a topic.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TopicInfo {
    /// The topic.
    pub topic: String,
    /// How many events the log has.
    pub events: u64,
    /// When the last one was published.
    pub last: Millis,
    /// Deliveries that are not finished, once for each subscriber.
    pub open: u64,
    /// Dead letters.
    pub dead: u64,
    /// Who subscribes to it now.
    pub subscribers: Vec<String>,
}

/// An event, and what became of it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EventInfo {
    /// Its id: `bus.03/17`.
    pub event: String,
    /// When it was published.
    pub published: Millis,
    /// Who published it.
    pub source: FrameSource,
    /// The topic.
    pub topic: String,
    /// The key within which events keep their order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// What it answers or belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation: Option<String>,
    /// By subscriber: `waiting`, `under_way`, `delivered`, `dead` or `discarded`.
    pub deliveries: BTreeMap<String, String>,
    /// What it says.
    pub payload: Value,
}

/// A published event. It is durable.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct BusPublished {
    /// Its id: `bus.03/17`.
    pub event: String,
    /// Whether it is an earlier one with the same idempotency key.
    pub duplicate: bool,
}

/// How the bus is doing.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct BusStatus {
    /// Who subscribes, or has something left.
    pub subscribers: Vec<SubscriberInfo>,
    /// Why nothing moves, if nothing does.
    pub trouble: Option<String>,
}

/// A subscriber of the bus.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SubscriberInfo {
    /// Its name: `<extension>/<topic>`, or one of the router's.
    pub name: String,
    /// Whether it subscribes now.
    pub active: bool,
    /// Whether its events wait because its extension is not up.
    #[serde(default)]
    pub paused: bool,
    /// Events that it has not finished.
    pub open: usize,
    /// Of these, how many are with it.
    pub under_way: usize,
    /// How many wait because one before them failed.
    pub delayed: usize,
    /// When the oldest of them was published.
    pub oldest: Option<Millis>,
    /// Its dead letters.
    pub dead: u64,
    /// What went wrong last, since the start.
    pub fault: Option<String>,
}

/// Whose dead letters.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BusDeadList {
    /// One subscriber; all if none is named.
    pub subscriber: Option<String>,
}

/// A dead letter.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BusDead {
    /// The event: `bus.03/17`.
    pub event: String,
    /// Whose; needed where several have failed on it.
    #[serde(default)]
    pub subscriber: Option<String>,
}

/// A dead letter that is thrown away.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BusDeadDiscard {
    /// The event: `bus.03/17`.
    pub event: String,
    /// Whose; needed where several have failed on it.
    #[serde(default)]
    pub subscriber: Option<String>,
    /// Why; it is recorded.
    pub reason: String,
}

/// A dead letter as it is shown.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DeadLetterInfo {
    /// The event.
    pub event: String,
    /// Whose dead letter it is.
    pub subscriber: String,
    /// The topic, unless its content was erased.
    pub topic: Option<String>,
    /// How often it was tried.
    pub attempts: u32,
    /// When it was published.
    pub published: Millis,
    /// When it was given up.
    pub died: Millis,
    /// What happened last.
    pub fault: Option<String>,
    /// What it says, where one is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Value>,
}
