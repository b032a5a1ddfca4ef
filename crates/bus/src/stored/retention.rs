//! Retention. The store deletes frames, but never one with a delivery row; here expired rows, which would keep frames for ever, and
//! idempotency keys are deleted.

use std::sync::Arc;

use holdfast_contract::ids::Millis;
use holdfast_contract::problem::Problem;
use holdfast_contract::serde::{self, Serialize};
use holdfast_store::{DeliveryState, SubscriberKey};

use crate::bus::{Bus, BusInner};
use crate::event::{EventId, streams};

/// Rows that are deleted in one transaction.
const ROWS_PER_TRANSACTION: usize = 512;

/// What [`Bus::tidy`] removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(crate = "self::serde")]
pub struct CollectedEvents {
    /// Idempotency keys.
    pub names: u64,
    /// Dead letters.
    pub dead_letters: u64,
    /// Events of subscribers that no longer exist.
    pub leftovers: u64,
}

type Owed = (EventId, SubscriberKey, Arc<str>);

impl Bus {
    /// Deletes what is older than the settings allow. Call it periodically, before the store's own collection.
    pub async fn tidy(&self) -> Result<CollectedEvents, Problem> {
        let inner = self.inner();
        let _changing = inner.changing.lock().await;
        let now = inner.clock.now();
        let before = move |age: Millis| Millis(now.0.saturating_sub(age.0));
        let settings = inner.settings;
        let names = inner.blocking(move |store| store.forget_names(before(settings.keep_names))).await?;
        let dead = inner.old_dead_letters(before(settings.keep_dead_letters)).await?;
        for slice in dead.chunks(ROWS_PER_TRANSACTION) {
            inner.discard(slice, "it was a dead letter for longer than these are kept", true).await?;
        }
        let leftovers = inner.take_leftovers(before(settings.keep_leftovers));
        for slice in leftovers.chunks(ROWS_PER_TRANSACTION) {
            inner.discard(slice, "no subscriber of this name is left", false).await?;
        }
        Ok(CollectedEvents { names, dead_letters: dead.len() as u64, leftovers: leftovers.len() as u64 })
    }
}

impl BusInner {
    async fn old_dead_letters(&self, before: Millis) -> Result<Vec<Owed>, Problem> {
        self.blocking(move |store| {
            let names = store.subscribers()?;
            let mut found = Vec::new();
            for stream in streams() {
                let old = |state, moment| state == DeliveryState::Dead && moment < before;
                for row in store.deliveries(&stream, |row| old(row.state, row.moment))? {
                    let name = names.iter().find(|(key, _)| *key == row.subscriber);
                    if let (Some((key, name)), Some(id)) = (name, EventId::of(&stream, row.seq)) {
                        found.push((id, *key, name.as_str().into()));
                    }
                }
            }
            Ok(found)
        })
        .await
    }

    fn take_leftovers(&self, before: Millis) -> Vec<Owed> {
        let mut state = self.state();
        let gone = state.subscribers.iter_mut().filter(|subscriber| subscriber.terms.is_none());
        gone.flat_map(|subscriber| {
            let old = subscriber.queue.remove_where(|item| item.published < before);
            old.into_iter()
                .map(|item| (item.id, subscriber.key, Arc::clone(&subscriber.name)))
                .collect::<Vec<_>>()
        })
        .collect()
    }
}
