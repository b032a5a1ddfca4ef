//! Outcomes of deliveries as frames and rows: delivered, retried, or dead.

use std::sync::Arc;

use holdfast_contract::body::Body;
use holdfast_contract::content::Content;
use holdfast_contract::ids::{Millis, Seq, Topic};
use holdfast_contract::problem::Fault;
use holdfast_contract::serde::{self, Serialize};
use holdfast_contract::system_frames::{EventDead, EventDelivered, EventRetried};
use holdfast_store::{Change, DeliveryState, PreparedBody};

use crate::event::{BusEvent, EventId, NewEvent};
use crate::outside::Entropy;
use crate::publish::prepare;
use crate::state::{DeliveryOutcome, DeliveryVerdict, InFlight, Queues, WriteBatch, row};
use crate::topics;

/// Events in one `event.delivered` frame: as many as fit into an inline body.
const EVENTS_PER_FRAME: usize = 256;

/// The event that is published for a dead letter.
#[derive(Serialize)]
#[serde(crate = "self::serde")]
struct DeadLetterNotice<'a> {
    event: EventId,
    topic: Option<&'a Topic>,
    subscriber: &'a str,
    attempts: u32,
    fault: &'a Fault,
}

impl Queues {
    /// Applies outcomes to the queues and adds their frames and rows to the batch.
    pub(crate) fn record(
        &mut self,
        outcomes: Vec<DeliveryOutcome>,
        now: Millis,
        entropy: &dyn Entropy,
        hand: &mut WriteBatch,
    ) {
        let mut delivered: Vec<(u8, usize, Seq)> = Vec::with_capacity(outcomes.len());
        for outcome in &outcomes {
            let InFlight { subscriber: index, line, id, .. } = outcome.under_way;
            let Some(subscriber) = self.subscribers.get_mut(index) else { continue };
            if subscriber.queue.head(line).is_none_or(|head| head.id != id) {
                continue;
            }
            match &outcome.verdict {
                DeliveryVerdict::Done => {
                    subscriber.queue.finish(line);
                    delivered.push((id.partition(), index, id.seq()));
                    hand.change(id.partition(), Change::Remove { seq: id.seq(), subscriber: subscriber.key });
                }
                DeliveryVerdict::Failed(fault)
                | DeliveryVerdict::Interrupted(fault)
                | DeliveryVerdict::Stopped(fault)
                | DeliveryVerdict::Postponed(fault)
                | DeliveryVerdict::Permanent(fault) => self.fail(outcome, fault, now, entropy, hand),
            }
        }
        self.record_delivered(delivered, now, hand);
        hand.outcomes.extend(outcomes);
    }

    fn record_delivered(&mut self, mut delivered: Vec<(u8, usize, Seq)>, now: Millis, hand: &mut WriteBatch) {
        delivered.sort_unstable();
        let same = |a: &(u8, usize, Seq), b: &(u8, usize, Seq)| (a.0, a.1) == (b.0, b.1);
        for group in delivered.chunk_by(same).flat_map(|group| group.chunks(EVENTS_PER_FRAME)) {
            let Some((partition, index, _)) = group.first() else { continue };
            let Some(subscriber) = self.subscribers.get(*index) else { continue };
            let events = group.iter().map(|(_, _, seq)| *seq).collect();
            let body = EventDelivered { events, subscriber: subscriber.name.to_string() };
            self.write(*partition, None, body, now, hand);
        }
    }

    /// The event is retried or becomes a dead letter.
    fn fail(
        &mut self,
        outcome: &DeliveryOutcome,
        fault: &Fault,
        now: Millis,
        entropy: &dyn Entropy,
        hand: &mut WriteBatch,
    ) {
        let InFlight { subscriber: index, line, id, terms } = &outcome.under_way;
        let Some(subscriber) = self.subscribers.get_mut(*index) else { return };
        let (key, name) = (subscriber.key, Arc::clone(&subscriber.name));
        subscriber.last_fault = Some(fault.clone());
        let Some(item) = subscriber.queue.head_mut(*line) else { return };
        let attempt = item.attempt();
        item.interrupted = match outcome.verdict {
            DeliveryVerdict::Interrupted(_) => item.interrupted + 1,
            _ => 0,
        };
        // An attempt that a shutdown stopped does not count, nor one that found its subscriber down.
        let postponed = matches!(outcome.verdict, DeliveryVerdict::Postponed(_));
        item.forgiven += u32::from(postponed || matches!(outcome.verdict, DeliveryVerdict::Stopped(_)));
        let permanent = matches!(outcome.verdict, DeliveryVerdict::Permanent(_));
        if permanent || item.attempt() >= terms.max_attempts {
            let dead = row(item, key, *line, DeliveryState::Dead, now, Some(fault.clone()));
            let event = outcome.event.clone().or_else(|| item.event.clone());
            subscriber.queue.finish(*line);
            subscriber.dead += 1;
            hand.change(id.partition(), Change::Put(dead));
            let body = EventDead {
                event: id.seq(),
                subscriber: name.to_string(),
                attempts: attempt,
                fault: fault.clone(),
            };
            self.write(id.partition(), Some(id.seq()), body, now, hand);
            self.publish_dead_letter_notice(*id, event.as_deref(), &name, attempt, fault, now, hand);
            return;
        }
        let pause = match outcome.verdict {
            DeliveryVerdict::Stopped(_) => Millis(0),
            DeliveryVerdict::Postponed(_) => terms.backoff.first,
            // The first time, the event is most likely not what crashed the process.
            DeliveryVerdict::Interrupted(_) if item.interrupted == 1 => Millis(0),
            _ => terms.backoff.pause(attempt, random_number(entropy)),
        };
        let next = now.plus(pause);
        let waiting = row(item, key, *line, DeliveryState::Waiting, next, Some(fault.clone()));
        subscriber.queue.delay(*line, next);
        hand.change(id.partition(), Change::Put(waiting));
        if postponed {
            return;
        }
        let (event, subscriber, fault) = (id.seq(), name.to_string(), fault.clone());
        let body = EventRetried { event, subscriber, attempt, next, fault };
        self.write(id.partition(), Some(id.seq()), body, now, hand);
    }

    /// Publishes a notice of a dead letter, unless the event is such a notice itself.
    #[expect(clippy::too_many_arguments, reason = "all of them are fields of the notice")]
    pub(crate) fn publish_dead_letter_notice(
        &mut self,
        id: EventId,
        event: Option<&BusEvent>,
        subscriber: &str,
        attempts: u32,
        fault: &Fault,
        now: Millis,
        hand: &mut WriteBatch,
    ) {
        let topic = event.map(|event| &event.topic);
        if topic.is_some_and(|topic| topic.as_str() == topics::DEAD_LETTER) {
            return;
        }
        let notice = Content::of(&DeadLetterNotice { event: id, topic, subscriber, attempts, fault });
        let mut new = NewEvent::new(topics::DEAD_LETTER, notice).key(subscriber);
        new.correlation = event.and_then(|event| event.correlation.clone());
        if let Ok(ready) = prepare(new) {
            self.add_event(ready, now, hand);
        }
    }

    pub(crate) fn write(
        &mut self,
        partition: u8,
        cause: Option<Seq>,
        body: impl Into<Body>,
        now: Millis,
        hand: &mut WriteBatch,
    ) {
        // These bodies contain texts and exact integers only, which always have a canonical form.
        if let Ok(body) = PreparedBody::of(&mut body.into()) {
            self.add_frame(partition, cause, body, now, hand);
        }
    }
}

fn random_number(entropy: &dyn Entropy) -> u64 {
    let drawn = entropy.draw(8);
    drawn.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}
