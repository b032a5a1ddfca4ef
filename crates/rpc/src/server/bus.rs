//! Answers about the bus.

use holdfast_bus::{
    BusEvent, DeadLetter, DeliveryProgress, EventHistory, EventId, NewEvent, SubscriberStatus, TopicStatus,
};
use holdfast_contract::content::Content;
use holdfast_contract::frame::FrameSource;
use holdfast_contract::problem::{Code, Problem};
use holdfast_runtime::Runtime;
use serde_json::Value;

use super::{Connection, value};
use crate::protocol::{
    BusDead, BusDeadDiscard, BusMethod, BusPublish, BusPublished, BusShow, BusStatus, DeadLetterInfo,
    EventInfo, NoParams, Queues, SubscriberInfo, TopicInfo,
};

impl Connection {
    pub(super) async fn answer_bus(&self, method: BusMethod) -> Result<Value, Problem> {
        let runtime = &self.owner.runtime;
        match method {
            BusMethod::Status(NoParams {}) => value(&status(runtime)),
            BusMethod::List(NoParams {}) => {
                let topics: Vec<TopicInfo> = runtime.bus().topics().await?.into_iter().map(topic).collect();
                value(&topics)
            }
            BusMethod::Show(BusShow { topic, limit }) => {
                let limit = usize::try_from(limit.unwrap_or(DEFAULT_LIMIT)).unwrap_or(usize::MAX);
                let events = runtime.bus().recent(&topic.as_str().into(), limit).await?;
                let events: Vec<EventInfo> = events.into_iter().map(event).collect();
                value(&events)
            }
            BusMethod::Publish(asked) => value(&publish(runtime, asked).await?),
            BusMethod::DeadList(asked) => value(&dead_letters(runtime, asked.subscriber.as_deref()).await?),
            BusMethod::DeadShow(asked) => value(&dead_letter(runtime, &asked).await?),
            BusMethod::DeadRetry(asked) => value(&retry(runtime, &asked).await?),
            BusMethod::DeadDiscard(asked) => value(&discard(runtime, &asked).await?),
        }
    }
}

/// How many events of a topic are shown if the client does not say.
const DEFAULT_LIMIT: u64 = 20;

fn topic(status: TopicStatus) -> TopicInfo {
    let TopicStatus { topic, events, last, open, dead, subscribers } = status;
    TopicInfo { topic: topic.to_string(), events, last, open, dead, subscribers }
}

fn event(EventHistory { event, deliveries }: EventHistory) -> EventInfo {
    let BusEvent { id, at: published, source, topic, payload, key, correlation } = event;
    let state = |progress: DeliveryProgress| match progress {
        DeliveryProgress::Waiting => "waiting",
        DeliveryProgress::UnderWay => "under_way",
        DeliveryProgress::Delivered => "delivered",
        DeliveryProgress::Dead => "dead",
        DeliveryProgress::Discarded => "discarded",
    };
    EventInfo {
        event: id.to_string(),
        published,
        source,
        topic: topic.to_string(),
        key,
        correlation,
        deliveries: deliveries.into_iter().map(|(name, it)| (name, state(it).to_owned())).collect(),
        payload: payload.value().clone(),
    }
}

async fn publish(runtime: &Runtime, asked: BusPublish) -> Result<BusPublished, Problem> {
    let BusPublish { topic, payload, key, correlation, idempotency } = asked;
    let event = NewEvent {
        key,
        correlation,
        idempotency,
        source: FrameSource::Surface("rpc".into()),
        ..NewEvent::new(topic, Content::new(payload))
    };
    let published = runtime.publish(event).await?;
    Ok(BusPublished { event: published.id.to_string(), duplicate: published.duplicate })
}

fn status(runtime: &Runtime) -> BusStatus {
    let status = runtime.bus().status();
    // A former subscriber without events or dead letters is left out.
    let there = |it: &&SubscriberStatus| it.active || it.open > 0 || it.dead > 0;
    let line = |it: &SubscriberStatus| SubscriberInfo {
        name: it.name.to_string(),
        active: it.active,
        paused: it.paused,
        open: it.open,
        under_way: it.under_way,
        delayed: it.delayed,
        oldest: it.oldest,
        dead: it.dead,
        fault: it.fault.as_ref().map(ToString::to_string),
    };
    let mut subscribers: Vec<_> = status.subscribers.iter().filter(there).map(line).collect();
    subscribers.sort_by(|a, b| a.name.cmp(&b.name));
    BusStatus { subscribers, trouble: status.write_failure.map(|trouble| trouble.to_string()) }
}

/// All subscribers' queues together.
pub(super) fn queues(runtime: &Runtime) -> Queues {
    let status = runtime.bus().status();
    let trouble = status.write_failure.map(|trouble| trouble.to_string());
    let none = Queues { trouble, ..Queues::default() };
    status.subscribers.iter().fold(none, |sum, it| Queues {
        open: sum.open + it.open as u64,
        under_way: sum.under_way + it.under_way as u64,
        delayed: sum.delayed + it.delayed as u64,
        dead: sum.dead + it.dead,
        ..sum
    })
}

async fn dead_letters(runtime: &Runtime, subscriber: Option<&str>) -> Result<Vec<DeadLetterInfo>, Problem> {
    let letters = runtime.bus().dead_letters(subscriber).await?;
    Ok(letters.iter().map(|letter| shown(letter, false)).collect())
}

async fn dead_letter(runtime: &Runtime, asked: &BusDead) -> Result<DeadLetterInfo, Problem> {
    Ok(shown(&find(runtime, &asked.event, asked.subscriber.as_deref()).await?, true))
}

async fn retry(runtime: &Runtime, asked: &BusDead) -> Result<DeadLetterInfo, Problem> {
    let letter = find(runtime, &asked.event, asked.subscriber.as_deref()).await?;
    runtime.bus().retry_dead_letter(letter.id, &letter.subscriber).await?;
    Ok(shown(&letter, false))
}

async fn discard(runtime: &Runtime, asked: &BusDeadDiscard) -> Result<DeadLetterInfo, Problem> {
    let letter = find(runtime, &asked.event, asked.subscriber.as_deref()).await?;
    runtime.bus().discard_dead_letter(letter.id, &letter.subscriber, &asked.reason).await?;
    Ok(shown(&letter, false))
}

/// The dead letter that is meant: of an event that several failed on, the subscriber must be named.
async fn find(runtime: &Runtime, event: &str, subscriber: Option<&str>) -> Result<DeadLetter, Problem> {
    let id = EventId::parse(event).ok_or_else(|| {
        let problem = Problem::new(Code::UsageInvalid, format!("`{event}` is not an event's id"));
        problem.help("It is written like `bus.03/17`; `holdfast bus dead list` lists them.")
    })?;
    if let Some(subscriber) = subscriber {
        return runtime.bus().dead_letter(id, subscriber).await;
    }
    let mut letters = runtime.bus().dead_letters(None).await?;
    letters.retain(|letter| letter.id == id);
    match (letters.len(), letters.pop()) {
        (1, Some(letter)) => Ok(letter),
        (_, None) => Err(Problem::new(
            Code::DeadLetterMissing,
            format!("event {id} is not a dead letter of any subscriber"),
        )),
        (count, Some(last)) => {
            let others = letters.iter().map(|letter| letter.subscriber.as_str());
            let names: Vec<&str> = others.chain([last.subscriber.as_str()]).collect();
            let problem = Problem::new(Code::UsageInvalid, format!("{count} subscribers failed on {id}"));
            Err(problem.help(format!("Name one of them with `--subscriber`: {}.", names.join(", "))))
        }
    }
}

fn shown(letter: &DeadLetter, whole: bool) -> DeadLetterInfo {
    let event = letter.event.as_ref();
    DeadLetterInfo {
        event: letter.id.to_string(),
        subscriber: letter.subscriber.clone(),
        topic: event.map(|event| event.topic.to_string()),
        attempts: letter.attempts,
        published: letter.published,
        died: letter.died,
        fault: letter.fault.as_ref().map(ToString::to_string),
        payload: event.filter(|_| whole).map(|event| event.payload.value().clone()),
    }
}
