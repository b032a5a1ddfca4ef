//! Loads the bus from the log: the ends of its streams, delivery rows, and events.

use std::collections::HashMap;
use std::sync::Arc;

use holdfast_contract::body::Body;
use holdfast_contract::problem::{Code, Problem};
use holdfast_store::{DeliveryRow, DeliveryState, Store, SubscriberKey};

use crate::dispatch::queue::{Item, Queue};
use crate::event::{BusEvent, EventId, streams};
use crate::state::{Partition, Queues, Subscriber};

/// The state of the bus in the log.
pub(crate) struct LoadedState {
    partitions: Vec<Partition>,
    subscribers: Vec<(SubscriberKey, String)>,
    rows: Vec<(EventId, DeliveryRow)>,
    dead: HashMap<SubscriberKey, u64>,
}

/// Reads everything but the events themselves.
pub(crate) fn read(store: &Store) -> Result<LoadedState, Problem> {
    let mut loaded = LoadedState {
        partitions: Vec::new(),
        subscribers: store.subscribers()?,
        rows: Vec::new(),
        dead: HashMap::new(),
    };
    for stream in streams() {
        let log = store.stream(&stream)?;
        let next = log.head().map(|head| head.seq.next()).unwrap_or_default();
        loaded.partitions.push(Partition { log, next });
        let open = store.deliveries(&stream, |row| match row.state {
            DeliveryState::Dead => {
                *loaded.dead.entry(row.subscriber).or_default() += 1;
                false
            }
            DeliveryState::Waiting | DeliveryState::UnderWay => true,
        })?;
        let place = |row: DeliveryRow| EventId::of(&stream, row.seq).map(|id| (id, row));
        loaded.rows.extend(open.into_iter().filter_map(place));
    }
    // In a line, an event that was in delivery comes first, also before a dead letter that was put back.
    loaded.rows.sort_by_key(|(id, row)| (row.state != DeliveryState::UnderWay, *id));
    Ok(loaded)
}

/// One event.
pub(crate) fn event(store: &Store, id: EventId) -> Result<BusEvent, Problem> {
    let missing = || Problem::new(Code::StoreMissing, format!("there is no event {id}"));
    let frame = store.frames(&id.stream(), id.seq()..=id.seq())?.pop().ok_or_else(missing)?;
    match store.body(&frame)? {
        Body::EventPublished(body) => Ok(BusEvent::new(id, frame.envelope.at, frame.envelope.source, body)),
        _ => Err(missing()),
    }
}

impl Queues {
    /// Replaces the state with that of the log. Running handlers continue, and outcomes that were not recorded are recorded again.
    pub(crate) fn adopt(&mut self, loaded: LoadedState) {
        let LoadedState { partitions, subscribers, rows, dead } = loaded;
        self.partitions = partitions;
        for (key, name) in subscribers {
            self.register(key, &name);
        }
        let mut indexes = HashMap::new();
        for (index, subscriber) in self.subscribers.iter_mut().enumerate() {
            subscriber.queue = Queue::default();
            subscriber.dead = dead.get(&subscriber.key).copied().unwrap_or(0);
            indexes.insert(subscriber.key, index);
        }
        for (id, row) in rows {
            let index = indexes.get(&row.subscriber).copied();
            if let Some(subscriber) = index.and_then(|index| self.subscribers.get_mut(index)) {
                subscriber.queue.add(row.line, item(id, &row), false);
            }
        }
        let unrecorded = self.outcomes.iter().map(|outcome| &outcome.under_way);
        for known in self.under_way.values().chain(unrecorded) {
            if let Some(subscriber) = self.subscribers.get_mut(known.subscriber) {
                subscriber.queue.resume(known.line, known.id);
            }
        }
        self.write_failure = None;
    }

    /// The index of a subscriber, which is added if it is new.
    pub(crate) fn register(&mut self, key: SubscriberKey, name: &str) -> usize {
        let known = self.subscribers.iter().position(|subscriber| subscriber.key == key);
        known.unwrap_or_else(|| {
            self.subscribers.push(Subscriber::new(key, name));
            self.subscribers.len() - 1
        })
    }
}

/// A row as a queued event. The event itself is read when it is delivered.
pub(crate) fn item(id: EventId, row: &DeliveryRow) -> Item {
    let DeliveryRow { state, tries, forgiven, interrupted, published, moment, .. } = *row;
    let due = (state == DeliveryState::Waiting && tries > forgiven).then_some(moment);
    let stale = state == DeliveryState::UnderWay;
    let event: Option<Arc<BusEvent>> = None;
    Item { id, event, published, tries, forgiven, interrupted, due, stale }
}
