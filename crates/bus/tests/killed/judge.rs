//! Holds the log that the last process left against the ledger that all of them kept.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use holdfast_bus::EventId;
use holdfast_contract::body::Body;
use holdfast_store::{DeliveryState, Store, StoreOptions};

use super::ledger::Noted;
use super::life::Folder;
use super::plan::{self, Act};

/// What the log has in the end.
struct Log {
    /// Each event's place.
    places: BTreeMap<u64, EventId>,
    /// The dead letters, with how often they were tried.
    dead: BTreeMap<(u64, u64), u32>,
}

fn read(folder: &Folder) -> Result<Log, String> {
    let store =
        Store::open(&folder.database(), StoreOptions::default()).map_err(|problem| problem.to_string())?;
    let mut log = Log { places: BTreeMap::new(), dead: BTreeMap::new() };
    let mut events = HashMap::new();
    let names: HashMap<_, _> = store.subscribers().unwrap().into_iter().collect();
    for stream in holdfast_bus::streams() {
        for frame in store.frames(&stream, ..).unwrap() {
            let id = EventId::of(&stream, frame.envelope.seq).unwrap();
            if let Body::EventPublished(body) = store.body(&frame).unwrap()
                && let Ok(event) = body.payload.to_text().parse::<u64>()
            {
                if log.places.insert(event, id).is_some() {
                    return Err(format!("event {event} was published twice"));
                }
                events.insert(id, event);
            }
        }
        for row in store.deliveries(&stream, |_| true).unwrap() {
            let id = EventId::of(&stream, row.seq).unwrap();
            let subscriber =
                (0..plan::SUBSCRIBERS).find(|one| plan::name(*one) == names[&row.subscriber]).unwrap();
            if row.state != DeliveryState::Dead {
                return Err(format!("{id} is still open for {subscriber}"));
            }
            log.dead.insert((subscriber, events[&id]), row.tries - row.forgiven);
        }
    }
    if let Some(finding) = store.verify(None).unwrap().first() {
        return Err(format!("the log does not verify: {finding}"));
    }
    store.close();
    Ok(log)
}

/// Every acknowledged event reached everyone; dead letters are those that failed as often as they may; repeats are marked; order holds.
pub fn judge(folder: &Folder) -> Result<(), String> {
    let (log, happened) = (read(folder)?, folder.happened());
    let mut took = BTreeSet::new();
    let mut calls: HashMap<(u64, u64), u32> = HashMap::new();
    for noted in &happened {
        match *noted {
            Noted::Acknowledged { event } if !log.places.contains_key(&event) => {
                return Err(format!("event {event} was acknowledged and is lost"));
            }
            Noted::Called { subscriber, event, attempt, repeat } => {
                let last = calls.insert((subscriber, event), attempt);
                if last.is_some() && !repeat {
                    return Err(format!("{subscriber} was called with {event} again, and was not told so"));
                }
                if attempt > plan::MAX_ATTEMPTS || last.is_some_and(|last| attempt <= last) {
                    return Err(format!(
                        "{subscriber} was called with {event} for the {attempt}th time after {last:?}"
                    ));
                }
            }
            Noted::Took { subscriber, event } => drop(took.insert((subscriber, event))),
            Noted::Acknowledged { .. } => {}
        }
    }
    if log.places.len() as u64 != folder.events() {
        return Err(format!("{} events of {}", log.places.len(), folder.events()));
    }
    for event in log.places.keys() {
        for subscriber in (0..plan::SUBSCRIBERS).filter(|subscriber| plan::wants(*subscriber, *event)) {
            let hopeless = matches!(plan::act(subscriber, *event), Act::FailAlways | Act::Panic);
            let attempts = log.dead.get(&(subscriber, *event));
            match attempts {
                Some(attempts) if !hopeless || *attempts != plan::MAX_ATTEMPTS => {
                    return Err(format!(
                        "{event} is a dead letter of {subscriber} after {attempts} attempts"
                    ));
                }
                None if hopeless || !took.contains(&(subscriber, *event)) => {
                    return Err(format!("{event} never reached {subscriber}"));
                }
                Some(_) | None => {}
            }
        }
    }
    in_order(&log, &happened)
}

/// Of one subscriber, topic and key: once an event was handed over, none before it ever is again.
fn in_order(log: &Log, happened: &[Noted]) -> Result<(), String> {
    let mut last: HashMap<(u64, String, String), EventId> = HashMap::new();
    for noted in happened {
        if let Noted::Called { subscriber, event, .. } = *noted {
            let place = log.places[&event];
            let line = (subscriber, plan::topic(event), plan::key(event));
            let before = last.insert(line.clone(), place);
            if before.is_some_and(|before| place < before) {
                return Err(format!("{line:?}: {place} came after {}", before.unwrap()));
            }
        }
    }
    Ok(())
}
