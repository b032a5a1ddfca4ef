//! `holdfast bus …`: who subscribes, what could not be delivered, and publishing by hand.

use holdfast_contract::problem::{Code, Problem};
use holdfast_rpc::{
    BusDead, BusDeadDiscard, BusDeadList, BusMethod, BusPublish, BusPublished, BusStatus, DeadLetterInfo,
    NoParams,
};
use serde_json::Value;

use crate::arguments::{Bus, Dead, DeadLetter, Publish};
use crate::chat::{safe_json, sanitize_for_terminal};
use crate::client::link::Link;
use crate::exit::Exit;
use crate::output::{Output, table};
use crate::time::moment;

pub(crate) async fn bus(output: &Output, link: &Link, command: Bus) -> Result<Exit, Problem> {
    match command {
        Bus::Status => status(output, link).await,
        Bus::Publish(command) => publish(output, link, command).await,
        Bus::Dead(Dead::List { subscriber }) => list(output, link, subscriber).await,
        Bus::Dead(Dead::Show(letter)) => show(output, link, letter).await,
        Bus::Dead(Dead::Retry(letter)) => {
            let letter: DeadLetterInfo = link.client.ask(&BusMethod::DeadRetry(named(letter))).await?;
            changed(output, &letter, "is tried again by")
        }
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
        let state = if it.active { "active" } else { "gone" };
        let fault = it.fault.as_deref().map(sanitize_for_terminal).unwrap_or_default();
        let numbers = [it.open, it.under_way, it.delayed].map(|number| number.to_string());
        let [open, under_way, delayed] = numbers;
        [
            sanitize_for_terminal(&it.name),
            state.to_owned(),
            open,
            under_way,
            delayed,
            it.dead.to_string(),
            fault,
        ]
    });
    let head = ["subscriber", "state", "open", "under way", "delayed", "dead", "last fault"];
    output.line(table(head, rows, "nobody subscribes"))?;
    if let Some(trouble) = &status.trouble {
        output.line(format!("nothing moves at the moment: {}", sanitize_for_terminal(trouble)))?;
    }
    Ok(Exit::Done)
}

async fn publish(output: &Output, link: &Link, command: Publish) -> Result<Exit, Problem> {
    let Publish { topic, payload, key, once: idempotency } = command;
    let payload: Value = serde_json::from_str(&payload).map_err(|error| {
        let problem = Problem::new(Code::UsageInvalid, format!("what the event says is no JSON: {error}"));
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
        let topic = letter.topic.as_deref().map_or_else(|| "(erased)".to_owned(), sanitize_for_terminal);
        let fault = letter.fault.as_deref().map(sanitize_for_terminal).unwrap_or_default();
        let (died, attempts) = (moment(letter.died), letter.attempts.to_string());
        [letter.event.clone(), topic, sanitize_for_terminal(&letter.subscriber), attempts, died, fault]
    });
    let head = ["id", "topic", "subscriber", "attempts", "given up", "last fault"];
    output.line(table(head, rows, "there are no dead letters"))?;
    Ok(Exit::Done)
}

async fn show(output: &Output, link: &Link, letter: DeadLetter) -> Result<Exit, Problem> {
    let letter: DeadLetterInfo = link.client.ask(&BusMethod::DeadShow(named(letter))).await?;
    if output.json {
        output.document(&letter)?;
        return Ok(Exit::Done);
    }
    let line = |name: &str, value: &str| output.line(format!("{name:<11} {}", sanitize_for_terminal(value)));
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
    match output.json {
        true => output.document(letter)?,
        false => {
            output.line(format!("{} {what} {}", letter.event, sanitize_for_terminal(&letter.subscriber)))?
        }
    }
    Ok(Exit::Done)
}

fn named(DeadLetter { event, subscriber }: DeadLetter) -> BusDead {
    BusDead { event, subscriber }
}
