//! Answers about the bus.

use holdfast_bus::{DeadLetter, EventId, NewEvent, SubscriberStatus};
use holdfast_contract::content::Content;
use holdfast_contract::frame::FrameSource;
use holdfast_contract::problem::{Code, Problem};
use holdfast_runtime::Runtime;
use serde_json::Value;

use super::{Connection, value};
use crate::protocol::{
    BusDead, BusDeadDiscard, BusMethod, BusPublish, BusPublished, BusStatus, DeadLetterInfo, NoParams,
    Queues, SubscriberInfo,
};

impl Connection {
    pub(super) async fn answer_bus(&self, method: BusMethod) -> Result<Value, Problem> {
        let runtime = &self.owner.runtime;
        match method {
            BusMethod::Status(NoParams {}) => value(&status(runtime)),
            BusMethod::Publish(asked) => value(&publish(runtime, asked).await?),
            BusMethod::DeadList(asked) => value(&dead_letters(runtime, asked.subscriber.as_deref()).await?),
            BusMethod::DeadShow(asked) => value(&dead_letter(runtime, &asked).await?),
            BusMethod::DeadRetry(asked) => value(&retry(runtime, &asked).await?),
            BusMethod::DeadDiscard(asked) => value(&discard(runtime, &asked).await?),
        }
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
        open: it.open,
        under_way: it.under_way,
        delayed: it.delayed,
        oldest: it.oldest,
        dead: it.dead,
        fault: it.fault.as_ref().map(ToString::to_string),
    };
    let mut subscribers: Vec<_> = status.subscribers.iter().filter(there).map(line).collect();
    subscribers.sort_by(|a, b| a.name.cmp(&b.name));
    BusStatus { subscribers, trouble: status.trouble.map(|trouble| trouble.to_string()) }
}

/// All subscribers' queues together.
pub(super) fn queues(runtime: &Runtime) -> Queues {
    let status = runtime.bus().status();
    let trouble = status.trouble.map(|trouble| trouble.to_string());
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
        payload: event.filter(|_| whole).and_then(|event| event.payload.value().cloned()),
    }
}
