//! Events about turns that are kept in memory only: what was said, and what the agent answered. For those who only watch.
//!
//! They are raised for every turn on every surface and channel and of every task, but not for the sessions of agents that agents or
//! extensions ask. Each subscriber has a queue of its own and gets its events in order. What does not fit into the queue is dropped, and the
//! next event says how many were. After a restart nothing is made up for: what must not be lost is on the bus. The log has how many were
//! handed over, failed and dropped (`extension.checked`).

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use holdfast_contract::content::Content;
use holdfast_contract::ids::ExtensionId;
use holdfast_contract::role::Role;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::runtime::Inner;

/// Events that may wait for one subscriber.
const MAX_WAITING_EVENTS: usize = 256;

/// The events that wait, by subscriber. A subscriber that is listed is being served.
#[derive(Default)]
pub(super) struct TurnEvents(Mutex<HashMap<ExtensionId, EventQueue>>);

#[derive(Default)]
struct EventQueue {
    waiting: VecDeque<Value>,
    /// How many were dropped since the last event that was handed over.
    missed: u64,
}

impl TurnEvents {
    /// Keeps an event for a subscriber. Says whether somebody has to begin to serve it.
    fn push(&self, id: &ExtensionId, event: Value) -> bool {
        let mut queues = self.0.lock();
        let begins = !queues.contains_key(id);
        let queue = queues.entry(id.clone()).or_default();
        if queue.waiting.len() < MAX_WAITING_EVENTS {
            queue.waiting.push_back(event);
        } else {
            queue.missed += 1;
        }
        begins
    }

    /// The next event for a subscriber, with how many were dropped before it; none if nothing waits, and then it is no longer served.
    fn next(&self, id: &ExtensionId) -> Option<(Value, u64)> {
        let mut queues = self.0.lock();
        let queue = queues.get_mut(id)?;
        let Some(mut event) = queue.waiting.pop_front() else {
            queues.remove(id);
            return None;
        };
        let missed = std::mem::take(&mut queue.missed);
        if missed > 0 {
            event["payload"]["missed"] = missed.into();
        }
        Some((event, missed))
    }
}

impl Inner {
    /// Hands an event about a turn to those who subscribe to it, without waiting for them.
    pub(crate) fn raise_turn_event(self: &Arc<Self>, topic: &str, payload: impl FnOnce() -> Value) {
        let subscribers = self.messaging.subscriptions().in_memory(topic);
        if subscribers.is_empty() || self.inspects {
            return;
        }
        let event = json!({ "id": "", "topic": topic, "payload": payload(), "attempt": 1, "repeat": false });
        for id in subscribers {
            if self.messaging.turn_events.push(&id, event.clone()) {
                let inner = self.clone();
                tokio::spawn(async move { inner.serve_turn_events(id).await });
            }
        }
    }

    async fn serve_turn_events(self: Arc<Self>, id: ExtensionId) {
        while let Some((event, missed)) = self.messaging.turn_events.next(&id) {
            // A crash is recorded where it is noticed; what a handler says of its own failure is in its log.
            let handled = self.call_role(&id, Role::Subscriber, "on-event", Content::new(event)).await;
            if let Some(extension) = self.extensions.active(&id) {
                self.routine_checks.handed_event(&extension, missed, handled.is_err(), self.clock.now());
            }
        }
    }
}
