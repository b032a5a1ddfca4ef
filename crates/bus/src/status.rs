//! The status of the bus.

use std::sync::Arc;

use holdfast_contract::ids::Millis;
use holdfast_contract::problem::{Fault, Problem};
use holdfast_contract::serde::{self, Serialize};

use crate::bus::Bus;
use crate::state::Subscriber;

/// The status of the bus.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(crate = "self::serde")]
pub struct BusSnapshot {
    /// By subscriber, in the order of their first subscription.
    pub subscribers: Vec<SubscriberStatus>,
    /// Why nothing can be published or recorded at present, if that is so.
    pub write_failure: Option<Problem>,
}

/// The status of a subscriber.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(crate = "self::serde")]
pub struct SubscriberStatus {
    /// Its name.
    pub name: Arc<str>,
    /// Whether it subscribes now. If not, what is open is kept for it until it is too old.
    pub active: bool,
    /// Whether its events wait because it is not up.
    pub paused: bool,
    /// Events that it has not finished.
    pub open: usize,
    /// Of these, how many are in delivery.
    pub under_way: usize,
    /// How many wait because the first of their topic and key failed.
    pub delayed: usize,
    /// When the oldest of them was published.
    pub oldest: Option<Millis>,
    /// Its dead letters.
    pub dead: u64,
    /// Its last failure since the bus was opened.
    pub fault: Option<Fault>,
}

impl Bus {
    /// The current status.
    pub fn status(&self) -> BusSnapshot {
        let state = self.inner().state();
        let subscribers = state.subscribers.iter().map(SubscriberStatus::of).collect();
        BusSnapshot { subscribers, write_failure: state.write_failure.clone() }
    }
}

impl SubscriberStatus {
    fn of(subscriber: &Subscriber) -> Self {
        let Subscriber { name, terms, queue, running, dead, last_fault, .. } = subscriber;
        Self {
            name: Arc::clone(name),
            active: terms.is_some(),
            paused: terms.as_ref().is_some_and(|terms| terms.is_paused()),
            open: queue.open(),
            under_way: *running,
            delayed: queue.delayed(),
            oldest: queue.oldest(),
            dead: *dead,
            fault: last_fault.clone(),
        }
    }
}
