//! Publishing: an event is checked and serialised without the lock, gets its sequence number under it, and is awaited after it.

use std::sync::Arc;

use holdfast_contract::body::Body;
use holdfast_contract::digest::Digest;
use holdfast_contract::ids::Topic;
use holdfast_contract::problem::{Code, Problem};
use holdfast_contract::system_frames::EventPublished;
use holdfast_store::{CommitPriority, PreparedBody, Receipt};
use tokio::sync::watch;

use crate::bus::BusInner;
use crate::event::{EventId, NewEvent, Published, name, route};
use crate::pattern::check_topic;
use crate::state::{Queues, ReadyEvent, WriteBatch};
use crate::subscription::{Overflow, Subscription};

/// Checks an event and does all that needs no sequence number.
pub(crate) fn prepare(new: NewEvent) -> Result<ReadyEvent, Problem> {
    check_topic(&new.topic)?;
    let NewEvent { topic, payload, key, correlation, idempotency, source } = new;
    let (partition, line) = route(&topic, key.as_deref());
    let name = idempotency.as_ref().map(|idempotency| name(&topic, idempotency));
    let mut body = Body::from(EventPublished { topic, payload, key, correlation, idempotency });
    let prepared = PreparedBody::of(&mut body);
    match (prepared, body) {
        (Ok(body), Body::EventPublished(published)) => {
            Ok(ReadyEvent { published, body, source, partition, line, name })
        }
        (Err(error), _) => Err(Problem::new(Code::Internal, format!("an event: {error}"))),
        (Ok(_), _) => Err(Problem::new(Code::Internal, "an event changed its kind")),
    }
}

impl BusInner {
    pub(crate) async fn publish(self: &Arc<Self>, events: Vec<NewEvent>) -> Result<Vec<Published>, Problem> {
        let events: Vec<_> = events.into_iter().map(prepare).collect::<Result<_, _>>()?;
        let names: Vec<_> = events.iter().filter_map(|event| event.name).collect();
        let reserved = self.reserve(names).await?;
        fail::fail_point!("bus::before_append");
        let (receipt, published) = self.publish_now(events, reserved)?;
        if let Some(receipt) = receipt {
            receipt.await?;
        }
        fail::fail_point!("bus::before_acknowledgement");
        Ok(published)
    }

    /// Gives the events their sequence numbers and queues them in the store; no receipt if all of them are duplicates.
    fn publish_now(
        &self,
        events: Vec<ReadyEvent>,
        mut reserved: Reserved<'_>,
    ) -> Result<(Option<Receipt>, Vec<Published>), Problem> {
        let mut state = self.state();
        state.check()?;
        check_backlog(&mut state, &events, &reserved)?;
        let now = self.clock.now();
        let mut hand = WriteBatch::default();
        let mut published = Vec::with_capacity(events.len());
        for event in events {
            let name = event.name;
            let known = name.and_then(|name| reserved.known(name));
            published.push(match known {
                Some(id) => Published { id, duplicate: true },
                None => {
                    let id = state.add_event(event, now, &mut hand);
                    // A later event of this call with the same key is a duplicate of this one.
                    reserved.known.extend(name.map(|name| (name, id)));
                    Published { id, duplicate: false }
                }
            });
        }
        if hand.is_empty() {
            drop(state);
            return Ok((None, published));
        }
        // From here on the names are released when their events are on disk or have failed.
        reserved.hand_on(&hand.names);
        let first = state.pipeline.is_empty();
        let receipt = state.hand_over(&self.store, hand, CommitPriority::Awaited, false)?;
        if first {
            // The dispatcher waits for the first write of the pipeline; before this there was none.
            receipt.on_outcome(&self.waker);
        }
        Ok((Some(receipt), published))
    }

    /// Reserves idempotency keys, waits for other callers that publish under one of them, and looks up which are in use.
    async fn reserve(&self, names: Vec<Digest>) -> Result<Reserved<'_>, Problem> {
        let mut reserved = Reserved { inner: self, held: Vec::new(), known: Vec::new() };
        if names.is_empty() {
            return Ok(reserved);
        }
        while let Err(mut busy) = self.hold(&names, &mut reserved) {
            // An error means that the name was released, and nothing is ever sent.
            let _released = busy.changed().await;
        }
        let wanted = reserved.held.clone();
        reserved.known = self
            .blocking(move |store| {
                let mut known = Vec::new();
                for name in wanted {
                    let found = store.named(name)?.and_then(|(stream, seq)| EventId::of(&stream, seq));
                    known.extend(found.map(|id| (name, id)));
                }
                Ok(known)
            })
            .await?;
        Ok(reserved)
    }

    /// Reserves all of the names, or returns the one to wait for.
    fn hold(&self, names: &[Digest], reserved: &mut Reserved<'_>) -> Result<(), watch::Receiver<()>> {
        let mut state = self.state();
        if let Some(busy) = names.iter().find_map(|name| state.names.get(name)) {
            return Err(busy.subscribe());
        }
        for name in names {
            if state.names.insert(*name, watch::channel(()).0).is_none() {
                reserved.held.push(*name);
            }
        }
        Ok(())
    }
}

/// Reserved idempotency keys: no other caller can publish under them until this is dropped.
struct Reserved<'a> {
    inner: &'a BusInner,
    held: Vec<Digest>,
    /// Those in use, with their events.
    known: Vec<(Digest, EventId)>,
}

impl Reserved<'_> {
    fn known(&self, name: Digest) -> Option<EventId> {
        self.known.iter().find(|(known, _)| *known == name).map(|(_, id)| *id)
    }

    fn hand_on(&mut self, names: &[Digest]) {
        self.held.retain(|name| !names.contains(name));
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        if !self.held.is_empty() {
            let mut state = self.inner.state();
            self.held.iter().for_each(|name| drop(state.names.remove(name)));
        }
    }
}

/// Back-pressure: refuses all of the events if the backlog of one of their subscribers is full that refuses then.
fn check_backlog(state: &mut Queues, events: &[ReadyEvent], reserved: &Reserved<'_>) -> Result<(), Problem> {
    let mut coming: Vec<(usize, usize)> = Vec::new();
    for event in events {
        if event.name.is_some_and(|name| reserved.known(name).is_some()) {
            continue;
        }
        for index in state.recipients(&event.published) {
            let place = coming.iter().position(|(known, _)| *known == index).unwrap_or_else(|| {
                coming.push((index, 0));
                coming.len() - 1
            });
            coming[place].1 += 1;
            let Some(subscriber) = state.subscribers.get(index) else { continue };
            let refuses = |terms: &&Arc<Subscription>| terms.overflow == Overflow::Refuse;
            let limit = subscriber.terms.as_ref().filter(refuses).map_or(usize::MAX, |terms| terms.backlog);
            let waiting = subscriber.queue.open();
            if waiting + coming[place].1 > limit {
                return Err(behind(&subscriber.name, waiting, limit, &event.published.topic));
            }
        }
    }
    Ok(())
}

fn behind(name: &str, waiting: usize, limit: usize, topic: &Topic) -> Problem {
    let what = format!(
        "`{name}` has {waiting} events waiting and takes no more than {limit}; nothing was published on `{topic}`"
    );
    Problem::new(Code::SubscriberBehind, what)
}
