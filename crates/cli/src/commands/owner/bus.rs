//! `holdfast bus …`: who subscribes, what could not be delivered, and publishing by hand.

use holdfast_contract::problem::{Code, Problem};
use holdfast_rpc::{
    BusDead, BusDeadDiscard, BusDeadList, BusMethod, BusPublish, BusPublished, BusShow, BusStatus,
    DeadLetterInfo, EventInfo, NoParams, TopicInfo,
};
use serde_json::Value;

use crate::arguments::{Bus, Dead, DeadLetter, Publish};
use crate::chat::safe_json;
use crate::client::link::Link;
use crate::exit::Exit;
use crate::output::{Output, source, table};
use crate::time::moment;

pub(crate) async fn bus(output: &Output, link: &Link, command: Bus) -> Result<Exit, Problem> {
    match command {
        Bus::Status => status(output, link).await,
        Bus::List => topics(output, link).await,
        Bus::Show { topic, limit } => events(output, link, topic, limit).await,
        Bus::Publish(command) => publish(output, link, command).await,
        Bus::Dead(Dead::List { subscriber }) => list(output, link, subscriber).await,
        Bus::Dead(Dead::Show(letter)) => show(output, link, letter).await,
        Bus::Dead(Dead::Retry { events, all: false, subscriber }) => {
            for event in events {
                let retry = BusMethod::DeadRetry(BusDead { event, subscriber: subscriber.clone() });
                let letter: DeadLetterInfo = link.client.ask(&retry).await?;
                changed(output, &letter, "is tried again by")?;
            }
            Ok(Exit::Done)
        }
        Bus::Dead(Dead::Retry { all: true, subscriber, .. }) => retry_all(output, link, subscriber).await,
        Bus::Dead(Dead::Discard { letter, reason }) => {
            let BusDead { event, subscriber } = named(letter);
            let discard = BusMethod::DeadDiscard(BusDeadDiscard { event, subscriber, reason });
            let letter: DeadLetterInfo = link.client.ask(&discard).await?;
            changed(output, &letter, "was thrown away for")
        }
    }
}

async fn status(output: &Output, link: &Link) -> Result<Exit, Problem> {
    let status: BusStatus = link.client.ask(&BusMethod::Status(NoParams {})).await?;
    if output.json {
        output.document(&status)?;
        return Ok(Exit::Done);
    }
    let rows = status.subscribers.iter().map(|it| {
        let state = match (it.active, it.paused) {
            (true, false) => "active",
            (true, true) => "waits",
            (false, _) => "gone",
        };
        let fault = it.fault.clone().unwrap_or_default();
        let numbers = [it.open, it.under_way, it.delayed].map(|number| number.to_string());
        let [open, under_way, delayed] = numbers;
        [it.name.clone(), state.to_owned(), open, under_way, delayed, it.dead.to_string(), fault]
    });
    let head = ["subscriber", "state", "open", "under way", "delayed", "dead", "last fault"];
    output.lines(table(head, rows, "no subscribers"))?;
    if let Some(trouble) = &status.trouble {
        output.line(format!("nothing moves at the moment: {}", trouble))?;
    }
    Ok(Exit::Done)
}

async fn topics(output: &Output, link: &Link) -> Result<Exit, Problem> {
    let topics: Vec<TopicInfo> = link.client.ask(&BusMethod::List(NoParams {})).await?;
    if output.json {
        return output.documents(&topics);
    }
    let rows = topics.into_iter().map(|it| {
        let [events, open, dead] = [it.events, it.open, it.dead].map(|number| number.to_string());
        [it.topic, events, open, dead, moment(it.last), it.subscribers.join(", ")]
    });
    let head = ["topic", "events", "open", "dead", "last", "subscribers"];
    let empty = "no events; `holdfast bus publish TOPIC JSON` publishes one";
    output.lines(table(head, rows, empty))?;
    Ok(Exit::Done)
}

async fn events(output: &Output, link: &Link, topic: String, limit: u64) -> Result<Exit, Problem> {
    let show = BusMethod::Show(BusShow { topic, limit: Some(limit) });
    let events: Vec<EventInfo> = link.client.ask(&show).await?;
    if output.json {
        return output.documents(&events);
    }
    let rows = events.into_iter().map(|event| {
        let states =
            event.deliveries.iter().map(|(name, state)| format!("{name}: {}", state.replace('_', " ")));
        let states = states.collect::<Vec<_>>().join(", ");
        let payload = safe_json(&event.payload.to_string());
        let (at, from) = (moment(event.published), source(&event.source));
        [event.event, at, from, event.key.unwrap_or_default(), states, payload]
    });
    let head = ["id", "published", "source", "key", "subscribers", "payload"];
    output.lines(table(head, rows, "no events are shown; raise `--limit`"))?;
    Ok(Exit::Done)
}

async fn publish(output: &Output, link: &Link, command: Publish) -> Result<Exit, Problem> {
    let Publish { topic, payload, key, once: idempotency } = command;
    let payload: Value = serde_json::from_str(&payload).map_err(|error| {
        let problem =
            Problem::new(Code::UsageInvalid, format!("the payload of the event is not valid JSON: {error}"));
        problem.help(r#"Such as: holdfast bus publish reminder.due '{"text": "tea"}'"#)
    })?;
    let event = BusPublish { topic, payload, key, correlation: None, idempotency };
    let published: BusPublished = link.client.ask(&BusMethod::Publish(event)).await?;
    match (output.json, published.duplicate) {
        (true, _) => output.document(&published)?,
        (false, true) => output.line(format!("{} was published before", published.event))?,
        (false, false) => output.line(&published.event)?,
    }
    Ok(Exit::Done)
}

async fn list(output: &Output, link: &Link, subscriber: Option<String>) -> Result<Exit, Problem> {
    let letters: Vec<DeadLetterInfo> =
        link.client.ask(&BusMethod::DeadList(BusDeadList { subscriber })).await?;
    if output.json {
        return output.documents(&letters);
    }
    let rows = letters.iter().map(|letter| {
        let topic = letter.topic.clone().unwrap_or_else(|| "(erased)".to_owned());
        let fault = letter.fault.clone().unwrap_or_default();
        let (died, attempts) = (moment(letter.died), letter.attempts.to_string());
        [letter.event.clone(), topic, letter.subscriber.clone(), attempts, died, fault]
    });
    let head = ["id", "topic", "subscriber", "attempts", "given up", "last fault"];
    output.lines(table(head, rows, "there are no dead letters"))?;
    Ok(Exit::Done)
}

async fn retry_all(output: &Output, link: &Link, subscriber: Option<String>) -> Result<Exit, Problem> {
    let letters: Vec<DeadLetterInfo> =
        link.client.ask(&BusMethod::DeadList(BusDeadList { subscriber })).await?;
    for DeadLetterInfo { event, subscriber, .. } in letters {
        let retry = BusMethod::DeadRetry(BusDead { event, subscriber: Some(subscriber) });
        match link.client.ask::<DeadLetterInfo>(&retry).await {
            Ok(letter) => drop(changed(output, &letter, "is tried again by")?),
            // Somebody else has retried or discarded it meanwhile.
            Err(problem) if problem.code == Code::DeadLetterMissing => {}
            Err(problem) => return Err(problem),
        }
    }
    Ok(Exit::Done)
}

async fn show(output: &Output, link: &Link, letter: DeadLetter) -> Result<Exit, Problem> {
    let letter: DeadLetterInfo = link.client.ask(&BusMethod::DeadShow(named(letter))).await?;
    if output.json {
        output.document(&letter)?;
        return Ok(Exit::Done);
    }
    let line = |name: &str, value: &str| output.field(name, value);
    line("event", &letter.event)?;
    line("topic", letter.topic.as_deref().unwrap_or("(erased)"))?;
    line("subscriber", &letter.subscriber)?;
    line("attempts", &letter.attempts.to_string())?;
    line("published", &moment(letter.published))?;
    line("given up", &moment(letter.died))?;
    line("fault", letter.fault.as_deref().unwrap_or_default())?;
    if let Some(payload) = &letter.payload {
        output.line(format!("{:<11} {}", "payload", safe_json(&payload.to_string())))?;
    }
    Ok(Exit::Done)
}

fn changed(output: &Output, letter: &DeadLetterInfo, what: &str) -> Result<Exit, Problem> {
    if output.json {
        output.document(letter)?
    } else {
        output.line(format!("{} {what} {}", letter.event, letter.subscriber))?
    }
    Ok(Exit::Done)
}

fn named(DeadLetter { event, subscriber }: DeadLetter) -> BusDead {
    BusDead { event, subscriber }
}
