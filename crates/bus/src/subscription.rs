//! Subscriptions: what a subscriber asks for.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use holdfast_contract::ids::{Millis, Topic};
use holdfast_contract::problem::{Code, Fault, Problem};
use holdfast_contract::system_frames::EventPublished;
use holdfast_contract::wire::Later;

use crate::event::Delivery;
use crate::pattern::Pattern;

/// Handles events. Delivery is at least once: an event can be delivered again, and the delivery tells that.
pub trait EventHandler: Send + Sync {
    /// Handles one event. `Ok` means that it is finished. If it does not end within its deadline it is dropped.
    fn handle(&self, delivery: Delivery) -> Later<Result<(), Fault>>;
}

/// A function is a handler.
impl<F, R> EventHandler for F
where
    F: Fn(Delivery) -> R + Send + Sync,
    R: Future<Output = Result<(), Fault>> + Send + 'static,
{
    fn handle(&self, delivery: Delivery) -> Later<Result<(), Fault>> {
        Box::pin(self(delivery))
    }
}

/// What happens to an event when the backlog of a subscriber is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overflow {
    /// It is not published, to no subscriber.
    Refuse,
    /// It becomes a dead letter of this subscriber. Other subscribers get it.
    DeadLetter,
}

/// Which events of its topics a subscriber wants.
pub type EventFilter = Arc<dyn Fn(&EventPublished) -> bool + Send + Sync>;

/// One subscriber under a permanent name: after a restart it gets its unfinished events.
#[derive(Clone)]
pub struct Subscription {
    /// The name, such as `reminders/on_due`.
    pub name: Arc<str>,
    /// The topics it wants.
    pub patterns: Vec<Pattern>,
    /// Which events of these topics it wants; without a filter, all. It is asked once, when an event is published.
    pub filter: Option<EventFilter>,
    /// The number of attempts before an event is a dead letter.
    pub max_attempts: u32,
    /// The backoff after a failure.
    pub backoff: RetryBackoff,
    /// How long one event may take.
    pub deadline: Millis,
    /// How many events it handles concurrently. Those of one topic and key are always handled one after another.
    pub concurrency: usize,
    /// How many events may wait for it.
    pub backlog: usize,
    /// What happens to an event that is published while its backlog is full.
    pub overflow: Overflow,
    /// As long as this is set, its events wait and no attempt is made. [`crate::Bus::wake`] follows when it is cleared.
    pub paused: Arc<AtomicBool>,
    /// It may wait for something outside for any time, such as a person: a shutdown does not wait for it, and does not count the
    /// attempt.
    pub interruptible: bool,
    /// The handler.
    pub handler: Arc<dyn EventHandler>,
}

impl Subscription {
    /// A subscription with the defaults: five attempts, a deadline of a minute, eight events concurrently, a backlog of ten thousand.
    pub fn new(
        name: impl Into<Arc<str>>,
        patterns: &[&str],
        handler: impl EventHandler + 'static,
    ) -> Result<Self, Problem> {
        let patterns = patterns.iter().map(|text| Pattern::parse(text)).collect::<Result<_, _>>()?;
        Ok(Self {
            name: name.into(),
            patterns,
            filter: None,
            max_attempts: 5,
            backoff: RetryBackoff::default(),
            deadline: Millis(60_000),
            concurrency: 8,
            backlog: 10_000,
            overflow: Overflow::Refuse,
            paused: Arc::default(),
            interruptible: false,
            handler: Arc::new(handler),
        })
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.paused.load(Ordering::Acquire)
    }

    pub(crate) fn wants(&self, topic: &Topic) -> bool {
        self.patterns.iter().any(|pattern| pattern.matches(topic))
    }

    /// Whether it wants this event, whose topic it wants.
    pub(crate) fn takes(&self, event: &EventPublished) -> bool {
        self.filter.as_ref().is_none_or(|filter| filter(event))
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription").field("name", &self.name).field("patterns", &self.patterns).finish()
    }
}

/// Exponential backoff with jitter: doubled after each failure up to a limit, of which a random part up to a half is subtracted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryBackoff {
    /// After the first failure.
    pub first: Millis,
    /// Never longer than this.
    pub most: Millis,
}

impl Default for RetryBackoff {
    fn default() -> Self {
        Self { first: Millis(1_000), most: Millis(300_000) }
    }
}

impl RetryBackoff {
    /// The pause after so many attempts: between half of the backoff and all of it, by a random number.
    pub fn pause(self, attempts: u32, random: u64) -> Millis {
        let whole = self.first.backoff(attempts.saturating_sub(1), self.most).0;
        let half = whole / 2;
        Millis(whole - half + random % (half + 1))
    }
}

/// Rejects invalid and duplicate subscriptions.
pub(crate) fn check(list: &[Subscription]) -> Result<(), Problem> {
    let mut names = BTreeSet::new();
    for Subscription { name, patterns, max_attempts, deadline, concurrency, backlog, .. } in list {
        let wrong = if name.is_empty() {
            "a subscription has no name".to_owned()
        } else if !names.insert(name) {
            format!("duplicate subscription `{name}`")
        } else if patterns.is_empty() {
            format!("the subscription `{name}` names no topics")
        } else if *max_attempts == 0 || deadline.0 == 0 || *concurrency == 0 || *backlog == 0 {
            format!("the subscription `{name}` has no attempts, no time, no concurrency or no backlog")
        } else {
            continue;
        };
        return Err(Problem::new(Code::SubscriptionInvalid, wrong));
    }
    Ok(())
}

#[cfg(test)]
#[path = "subscription_tests.rs"]
mod tests;
