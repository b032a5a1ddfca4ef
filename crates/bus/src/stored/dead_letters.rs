//! Dead letters: events that a subscriber has failed to handle in all its attempts. They can be listed, retried or discarded.

use std::sync::Arc;

use holdfast_contract::ids::Millis;
use holdfast_contract::problem::{Code, Fault, Problem};
use holdfast_contract::serde::{self, Serialize};
use holdfast_contract::system_frames::{EventDiscarded, EventRetried};
use holdfast_store::{Change, CommitPriority, DeliveryRow, DeliveryState, Store, SubscriberKey};

use crate::bus::{Bus, BusInner};
use crate::event::{BusEvent, EventId, streams};
use crate::state::{WriteBatch, closed, row};
use crate::stored::load;

/// An event that a subscriber failed to handle.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(crate = "self::serde")]
pub struct DeadLetter {
    /// The event.
    pub id: EventId,
    /// Whose dead letter it is.
    pub subscriber: String,
    /// How many attempts were made.
    pub attempts: u32,
    /// When it was published.
    pub published: Millis,
    /// When it was given up.
    pub died: Millis,
    /// The last failure.
    pub fault: Option<Fault>,
    /// The event itself, unless its content was erased.
    #[serde(skip)]
    pub event: Option<Arc<BusEvent>>,
}

impl Bus {
    /// The dead letters of one subscriber, or of all, in the order of their partitions and places.
    pub async fn dead_letters(&self, subscriber: Option<&str>) -> Result<Vec<DeadLetter>, Problem> {
        let wanted = subscriber.map(str::to_owned);
        self.inner()
            .blocking(move |store| {
                // Recent decisions may not be on disk yet.
                store.flush()?;
                let names = store.subscribers()?;
                let mut letters = Vec::new();
                for stream in streams() {
                    for row in store.deliveries(&stream, |row| row.state == DeliveryState::Dead)? {
                        let Some((_, name)) = names.iter().find(|(key, _)| *key == row.subscriber) else {
                            continue;
                        };
                        let Some(id) = EventId::of(&stream, row.seq) else { continue };
                        if wanted.as_ref().is_none_or(|wanted| wanted == name) {
                            letters.push(letter(store, id, name, row));
                        }
                    }
                }
                Ok(letters)
            })
            .await
    }

    /// One dead letter.
    pub async fn dead_letter(&self, id: EventId, subscriber: &str) -> Result<DeadLetter, Problem> {
        let name = subscriber.to_owned();
        let find = move |store: &Store| find(store, id, &name).map(|(_, row)| letter(store, id, &name, row));
        self.inner().blocking(find).await
    }

    /// Retries a dead letter with all its attempts. It returns to its position, behind events in delivery for its topic and key.
    pub async fn retry_dead_letter(&self, id: EventId, subscriber: &str) -> Result<(), Problem> {
        let inner = self.inner();
        let _changing = inner.changing.lock().await;
        let found = inner.find_dead(id, subscriber).await?;
        let receipt = {
            let mut state = inner.state();
            state.check()?;
            let now = inner.clock.now();
            let mut item = load::item(id, &found.row);
            let (attempt, line) = (item.attempt(), found.row.line);
            (item.forgiven, item.interrupted, item.due) = (item.tries, 0, None);
            let index = state.register(found.key, subscriber);
            let Some(known) = state.subscribers.get_mut(index) else { return Err(closed()) };
            let waiting = row(&item, found.key, line, DeliveryState::Waiting, now, found.row.fault.clone());
            known.dead = known.dead.saturating_sub(1);
            known.queue.bring_back(line, item);
            let mut hand = WriteBatch::default();
            hand.change(id.partition(), Change::Put(waiting));
            let fault =
                found.row.fault.unwrap_or_else(|| Fault::new(Code::HandlerInterrupted, "it was given up"));
            let (event, subscriber) = (id.seq(), subscriber.to_owned());
            let body = EventRetried { event, subscriber, attempt, next: now, fault };
            state.write(id.partition(), Some(id.seq()), body, now, &mut hand);
            state.hand_over(&inner.store, hand, CommitPriority::Awaited, false)?
        };
        inner.wake.notify_one();
        receipt.await
    }

    /// Discards a dead letter; the reason is recorded.
    pub async fn discard_dead_letter(
        &self,
        id: EventId,
        subscriber: &str,
        reason: &str,
    ) -> Result<(), Problem> {
        let inner = self.inner();
        let _changing = inner.changing.lock().await;
        let found = inner.find_dead(id, subscriber).await?;
        inner.discard(&[(id, found.key, subscriber.into())], reason, true).await
    }
}

struct FoundDead {
    key: SubscriberKey,
    row: DeliveryRow,
}

impl BusInner {
    async fn find_dead(&self, id: EventId, subscriber: &str) -> Result<FoundDead, Problem> {
        let name = subscriber.to_owned();
        self.blocking(move |store| find(store, id, &name).map(|(key, row)| FoundDead { key, row })).await
    }

    /// Removes rows that will not be delivered, and records it. `dead` tells that they are dead letters.
    pub(crate) async fn discard(
        &self,
        rows: &[(EventId, SubscriberKey, Arc<str>)],
        reason: &str,
        dead: bool,
    ) -> Result<(), Problem> {
        let receipt = {
            let mut state = self.state();
            state.check()?;
            let now = self.clock.now();
            let mut hand = WriteBatch::default();
            for (id, key, name) in rows {
                let index = state.register(*key, name);
                if let Some(known) = state.subscribers.get_mut(index).filter(|_| dead) {
                    known.dead = known.dead.saturating_sub(1);
                }
                hand.change(id.partition(), Change::Remove { seq: id.seq(), subscriber: *key });
                let (event, subscriber, reason) = (id.seq(), name.to_string(), reason.to_owned());
                let body = EventDiscarded { event, subscriber, reason };
                state.write(id.partition(), Some(id.seq()), body, now, &mut hand);
            }
            state.hand_over(&self.store, hand, CommitPriority::Awaited, false)?
        };
        self.wake.notify_one();
        receipt.await
    }
}

fn find(store: &Store, id: EventId, subscriber: &str) -> Result<(SubscriberKey, DeliveryRow), Problem> {
    store.flush()?;
    let key = store.subscribers()?.into_iter().find(|(_, name)| name == subscriber).map(|(key, _)| key);
    let row = match key {
        Some(key) => store.delivery(&id.stream(), id.seq(), key)?.map(|row| (key, row)),
        None => None,
    };
    row.filter(|(_, row)| row.state == DeliveryState::Dead).ok_or_else(|| {
        Problem::new(Code::DeadLetterMissing, format!("event {id} is not a dead letter of `{subscriber}`"))
    })
}

fn letter(store: &Store, id: EventId, subscriber: &str, row: DeliveryRow) -> DeadLetter {
    let DeliveryRow { tries, forgiven, published, moment, fault, .. } = row;
    DeadLetter {
        id,
        subscriber: subscriber.to_owned(),
        attempts: tries - forgiven,
        published,
        died: moment,
        fault,
        event: load::event(store, id).ok().map(Arc::new),
    }
}
