//! All state in memory, under one lock: where each partition ends, the subscribers, the deliveries in progress, and writes that are
//! not on disk yet.
//!
//! Every change is queued in the store under the same lock, so that the order of decisions is the order of writes. Nothing here
//! blocks, except on a full queue of the store.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use holdfast_contract::digest::Digest;
use holdfast_contract::frame::FrameSource;
use holdfast_contract::ids::{Millis, Seq, Topic};
use holdfast_contract::problem::{Code, Fault, Problem};
use holdfast_contract::system_frames::{EventDead, EventPublished};
use holdfast_store::{
    Change, CommitPriority, DeliveryRow, DeliveryState, Prepared, PreparedBody, Receipt, Store, StreamLog,
    StreamPart, SubscriberKey,
};
use rustc_hash::FxHashMap;
use tokio::sync::watch;

use crate::dispatch::queue::{Item, Queue};
use crate::event::{BusEvent, EventId};
use crate::subscription::{EventHandler, Overflow, Subscription};

/// Topics whose subscribers are cached.
const TOPICS: usize = 4096;

/// Identifies one delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Ticket(u64);

#[derive(Default)]
pub(crate) struct Queues {
    pub(crate) partitions: Vec<Partition>,
    /// All subscribers so far; an index stays valid.
    pub(crate) subscribers: Vec<Subscriber>,
    targets: HashMap<Topic, Arc<[usize]>>,
    /// Reserved idempotency keys. Dropping the sender wakes callers that wait for one.
    pub(crate) names: HashMap<Digest, watch::Sender<()>>,
    /// Writes that are queued in the store, in order.
    pub(crate) pipeline: VecDeque<PendingWrite>,
    pub(crate) under_way: FxHashMap<Ticket, InFlight>,
    tickets: u64,
    /// The suspicious event in delivery; there is at most one.
    pub(crate) alone: Option<Ticket>,
    /// Outcomes that are not queued in the store yet.
    pub(crate) outcomes: Vec<DeliveryOutcome>,
    /// Whether other events wait behind one of these.
    pub(crate) pressing: bool,
    /// Why nothing can be written, until the state has been reloaded.
    pub(crate) write_failure: Option<Problem>,
    /// How often in a row that happened, and when to reload.
    pub(crate) write_failures: u32,
    pub(crate) retry_at: Millis,
    pub(crate) standing: BusState,
    /// Events that are kept in memory for one subscriber.
    resident: usize,
}

pub(crate) struct Partition {
    pub(crate) log: StreamLog,
    pub(crate) next: Seq,
}

/// Whether the bus accepts and delivers events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum BusState {
    #[default]
    Open,
    /// Graceful shutdown: deliveries may finish until then.
    Closing { by: Millis },
    /// All handles were dropped: everything stops immediately.
    Abandoned,
}

pub(crate) struct Subscriber {
    pub(crate) key: SubscriberKey,
    pub(crate) name: Arc<str>,
    /// Its subscription; none if its name does not subscribe now.
    pub(crate) terms: Option<Arc<Subscription>>,
    pub(crate) queue: Queue,
    /// Its deliveries in progress.
    pub(crate) running: usize,
    /// The deadlines of its deliveries in the order of their start. Finished ones are skipped.
    pub(crate) deadlines: VecDeque<(Millis, Ticket)>,
    pub(crate) dead: u64,
    pub(crate) last_fault: Option<Fault>,
    /// Whether its last event became a dead letter because too many waited.
    overflowing: bool,
}

impl Subscriber {
    pub(crate) fn new(key: SubscriberKey, name: &str) -> Self {
        Self {
            key,
            name: name.into(),
            terms: None,
            queue: Queue::default(),
            running: 0,
            deadlines: VecDeque::new(),
            dead: 0,
            last_fault: None,
            overflowing: false,
        }
    }

    pub(crate) fn has_room(&self) -> bool {
        self.terms.as_ref().is_some_and(|terms| self.running < terms.concurrency && !terms.is_paused())
    }

    /// Whether the next event becomes a dead letter, because too many wait.
    fn overflows(&self) -> Option<Fault> {
        let terms = self.terms.as_ref().filter(|terms| terms.overflow == Overflow::DeadLetter)?;
        let (waiting, limit) = (self.queue.open(), terms.backlog);
        let message =
            || format!("{waiting} events wait for `{}`, which takes no more than {limit}", self.name);
        (waiting >= limit).then(|| Fault::new(Code::SubscriberBehind, message()))
    }
}

/// A delivery in progress.
pub(crate) struct InFlight {
    pub(crate) subscriber: usize,
    pub(crate) line: i64,
    pub(crate) id: EventId,
    pub(crate) terms: Arc<Subscription>,
}

/// The outcome of a delivery.
pub(crate) struct DeliveryOutcome {
    pub(crate) under_way: InFlight,
    pub(crate) verdict: DeliveryVerdict,
    /// The event, if the delivery had loaded it.
    pub(crate) event: Option<Arc<BusEvent>>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum DeliveryVerdict {
    Done,
    /// It failed and can be retried.
    Failed(Fault),
    /// Unknown: the process ended first.
    Interrupted(Fault),
    /// Unknown: the bus was closed first.
    Stopped(Fault),
    /// The subscriber is not up: it was not handed the event, and the attempt does not count.
    Postponed(Fault),
    /// It failed permanently.
    Permanent(Fault),
}

/// A delivery that starts as soon as its attempt is on disk.
pub(crate) struct Start {
    pub(crate) ticket: Ticket,
    pub(crate) subscriber: usize,
    pub(crate) id: EventId,
    pub(crate) event: Option<Arc<BusEvent>>,
    pub(crate) attempt: u32,
    pub(crate) repeat: bool,
    pub(crate) handler: Arc<dyn EventHandler>,
    pub(crate) deadline: Millis,
}

/// A delivery that an earlier process did not finish and that must be recorded.
pub(crate) struct InterruptedDelivery {
    pub(crate) ticket: Ticket,
    pub(crate) id: EventId,
    /// Whether it was the last attempt.
    pub(crate) spent: bool,
}

/// A write that is queued in the store.
pub(crate) struct PendingWrite {
    pub(crate) receipt: Receipt,
    pub(crate) starts: Vec<Start>,
    /// Outcomes that must be recorded again if this write fails.
    pub(crate) outcomes: Vec<DeliveryOutcome>,
    pub(crate) names: Vec<Digest>,
    /// The priority, if it is a write of the dispatcher.
    pub(crate) record: Option<CommitPriority>,
}

/// The content of one transaction.
#[derive(Default)]
pub(crate) struct WriteBatch {
    parts: Vec<(u8, Vec<Prepared>, Vec<Change>)>,
    pub(crate) starts: Vec<Start>,
    pub(crate) outcomes: Vec<DeliveryOutcome>,
    pub(crate) names: Vec<Digest>,
}

impl WriteBatch {
    pub(crate) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    fn part(&mut self, partition: u8) -> &mut (u8, Vec<Prepared>, Vec<Change>) {
        let found = self.parts.iter().position(|(known, _, _)| *known == partition);
        let place = found.unwrap_or_else(|| {
            self.parts.push((partition, Vec::new(), Vec::new()));
            self.parts.len() - 1
        });
        &mut self.parts[place]
    }

    pub(crate) fn change(&mut self, partition: u8, change: Change) {
        self.part(partition).2.push(change);
    }
}

/// A checked and serialised event without a sequence number.
pub(crate) struct ReadyEvent {
    pub(crate) published: EventPublished,
    pub(crate) body: PreparedBody,
    pub(crate) source: FrameSource,
    pub(crate) partition: u8,
    pub(crate) line: i64,
    pub(crate) name: Option<Digest>,
}

impl Queues {
    /// Empty; `resident` is the number of events that are kept in memory for one subscriber.
    pub(crate) fn new(resident: usize) -> Self {
        Self { resident, ..Self::default() }
    }

    /// Fails if nothing can be published.
    pub(crate) fn check(&self) -> Result<(), Problem> {
        if self.standing != BusState::Open {
            return Err(closed());
        }
        self.write_failure.clone().map_or(Ok(()), Err)
    }

    /// The indexes of the subscribers that want an event.
    pub(crate) fn recipients(&mut self, event: &EventPublished) -> Vec<usize> {
        let targets = self.targets(&event.topic);
        let takes = |index: &usize| {
            let terms = self.subscribers.get(*index).and_then(|subscriber| subscriber.terms.as_ref());
            terms.is_some_and(|terms| terms.takes(event))
        };
        targets.iter().copied().filter(takes).collect()
    }

    /// The indexes of the subscribers of a topic.
    fn targets(&mut self, topic: &Topic) -> Arc<[usize]> {
        if let Some(targets) = self.targets.get(topic) {
            return Arc::clone(targets);
        }
        let wants =
            |subscriber: &Subscriber| subscriber.terms.as_ref().is_some_and(|terms| terms.wants(topic));
        let all = self.subscribers.iter().enumerate();
        let targets: Arc<[usize]> =
            all.filter(|(_, subscriber)| wants(subscriber)).map(|(index, _)| index).collect();
        if self.targets.len() >= TOPICS {
            self.targets.clear();
        }
        self.targets.insert(topic.clone(), Arc::clone(&targets));
        targets
    }

    /// Clears the cache; call it when subscriptions change.
    pub(crate) fn forget_targets(&mut self) {
        self.targets.clear();
    }

    /// Gives an event its sequence number and each of its subscribers a row. Where no event is before it, its delivery starts too.
    pub(crate) fn add_event(&mut self, new: ReadyEvent, now: Millis, hand: &mut WriteBatch) -> EventId {
        let ReadyEvent { published, body, source, partition, line, name } = new;
        let targets = self.recipients(&published);
        let id = EventId::new(partition, self.take_place(partition));
        let frame = Prepared { seq: id.seq(), at: now, source: source.clone(), cause: None, body };
        let (_, frames, changes) = hand.part(partition);
        frames.push(frame);
        if let Some(name) = name {
            changes.push(Change::Name { name, seq: id.seq(), at: now });
            hand.names.push(name);
        }
        let event = Arc::new(BusEvent::new(id, now, source, published));
        let open = self.standing == BusState::Open;
        for index in targets {
            let Some(subscriber) = self.subscribers.get_mut(index) else { continue };
            let overflow = subscriber.overflows();
            let announces = overflow.is_some() && !subscriber.overflowing;
            subscriber.overflowing = overflow.is_some();
            if let Some(fault) = overflow {
                self.add_dead_letter(index, line, &event, (fault, announces), hand);
                continue;
            }
            let mut item = Item::fresh(Arc::clone(&event));
            if subscriber.queue.open() >= self.resident {
                item.event = None;
            }
            let room = open && subscriber.has_room();
            if subscriber.queue.add(line, item, room) {
                self.claim(index, line, now, hand);
            } else {
                let row = fresh_row(id, subscriber.key, line, now);
                hand.change(partition, Change::Put(row));
            }
        }
        id
    }

    /// An event becomes a dead letter without an attempt. It is announced if the one before it was not.
    fn add_dead_letter(
        &mut self,
        index: usize,
        line: i64,
        event: &Arc<BusEvent>,
        (fault, announces): (Fault, bool),
        hand: &mut WriteBatch,
    ) {
        let Some(subscriber) = self.subscribers.get_mut(index) else { return };
        let (id, now, name) = (event.id, event.at, Arc::clone(&subscriber.name));
        let item = Item::fresh(Arc::clone(event));
        let dead = row(&item, subscriber.key, line, DeliveryState::Dead, now, Some(fault.clone()));
        subscriber.dead += 1;
        subscriber.last_fault = Some(fault.clone());
        hand.change(id.partition(), Change::Put(dead));
        let body =
            EventDead { event: id.seq(), subscriber: name.to_string(), attempts: 0, fault: fault.clone() };
        self.write(id.partition(), Some(id.seq()), body, now, hand);
        if announces {
            self.publish_dead_letter_notice(id, Some(event), &name, 0, &fault, now, hand);
        }
    }

    /// Records the attempt to deliver the first event of a line, which the queue has marked as in delivery.
    pub(crate) fn claim(
        &mut self,
        index: usize,
        line: i64,
        now: Millis,
        hand: &mut WriteBatch,
    ) -> Option<Ticket> {
        let subscriber = self.subscribers.get_mut(index)?;
        let terms = Arc::clone(subscriber.terms.as_ref()?);
        let item = subscriber.queue.head(line)?;
        let ticket = Ticket(self.tickets);
        self.tickets += 1;
        hand.starts.push(Start {
            ticket,
            subscriber: index,
            id: item.id,
            event: item.event.clone(),
            attempt: item.attempt(),
            repeat: item.tries > 1,
            handler: Arc::clone(&terms.handler),
            deadline: terms.deadline,
        });
        let row = row(item, subscriber.key, line, DeliveryState::UnderWay, now, None);
        let id = item.id;
        subscriber.running += 1;
        hand.change(id.partition(), Change::Put(row));
        self.under_way.insert(ticket, InFlight { subscriber: index, line, id, terms });
        Some(ticket)
    }

    /// The same for all current subscribers.
    pub(crate) fn adopt_all_stale(&mut self) -> Vec<InterruptedDelivery> {
        (0..self.subscribers.len()).flat_map(|index| self.adopt_stale(index)).collect()
    }

    /// Marks deliveries that an earlier process did not finish as in delivery, without a handler.
    pub(crate) fn adopt_stale(&mut self, index: usize) -> Vec<InterruptedDelivery> {
        let Some(subscriber) = self.subscribers.get_mut(index) else { return Vec::new() };
        let Some(terms) = subscriber.terms.clone() else { return Vec::new() };
        let mut adopted = Vec::new();
        for line in subscriber.queue.take_stale() {
            let Some(item) = subscriber.queue.head(line) else { continue };
            let (id, spent) = (item.id, item.attempt() >= terms.max_attempts);
            let ticket = Ticket(self.tickets);
            self.tickets += 1;
            subscriber.running += 1;
            let terms = Arc::clone(&terms);
            self.under_way.insert(ticket, InFlight { subscriber: index, line, id, terms });
            adopted.push(InterruptedDelivery { ticket, id, spent });
        }
        adopted
    }

    /// Ends a delivery.
    pub(crate) fn end(&mut self, ticket: Ticket) -> Option<InFlight> {
        let ended = self.under_way.remove(&ticket)?;
        if let Some(subscriber) = self.subscribers.get_mut(ended.subscriber) {
            subscriber.running -= 1;
        }
        if self.alone == Some(ticket) {
            self.alone = None;
        }
        Some(ended)
    }

    /// Adds a frame of the bus itself to a partition.
    pub(crate) fn add_frame(
        &mut self,
        partition: u8,
        cause: Option<Seq>,
        body: PreparedBody,
        now: Millis,
        hand: &mut WriteBatch,
    ) {
        let seq = self.take_place(partition);
        hand.part(partition).1.push(Prepared { seq, at: now, source: FrameSource::Host, cause, body });
    }

    fn take_place(&mut self, partition: u8) -> Seq {
        match self.partitions.get_mut(usize::from(partition)) {
            Some(found) => {
                let seq = found.next;
                found.next = seq.next();
                seq
            }
            None => Seq(0),
        }
    }

    /// Queues it in the store. The caller has the lock, so the order of calls is the order of writes.
    pub(crate) fn hand_over(
        &mut self,
        store: &Store,
        hand: WriteBatch,
        haste: CommitPriority,
        record: bool,
    ) -> Result<Receipt, Problem> {
        let WriteBatch { parts, starts, outcomes, names } = hand;
        let parts = parts.into_iter().filter_map(|(partition, frames, changes)| {
            let log = self.partitions.get(usize::from(partition))?.log.clone();
            Some(StreamPart { log, frames, changes })
        });
        match store.append_together(parts.collect(), haste) {
            Ok(receipt) => {
                let record = record.then_some(haste);
                self.pipeline.push_back(PendingWrite {
                    receipt: receipt.clone(),
                    starts,
                    outcomes,
                    names,
                    record,
                });
                Ok(receipt)
            }
            Err(problem) => {
                // The log is closed: these decisions will never be written.
                self.write_failure = Some(problem.clone());
                self.take_back(starts, outcomes, &names);
                Err(problem)
            }
        }
    }

    /// Undoes decisions that could not be written. Sequence numbers and queues are corrected by the reload that follows.
    pub(crate) fn take_back(&mut self, starts: Vec<Start>, outcomes: Vec<DeliveryOutcome>, names: &[Digest]) {
        starts.iter().for_each(|start| drop(self.end(start.ticket)));
        self.outcomes.extend(outcomes);
        names.iter().for_each(|name| drop(self.names.remove(name)));
    }
}

pub(crate) fn closed() -> Problem {
    Problem::new(Code::BusClosed, "the bus has been closed")
}

fn fresh_row(id: EventId, subscriber: SubscriberKey, line: i64, now: Millis) -> DeliveryRow {
    DeliveryRow {
        seq: id.seq(),
        subscriber,
        line,
        state: DeliveryState::Waiting,
        tries: 0,
        forgiven: 0,
        interrupted: 0,
        published: now,
        moment: now,
        fault: None,
    }
}

/// The row of an event.
pub(crate) fn row(
    item: &Item,
    subscriber: SubscriberKey,
    line: i64,
    state: DeliveryState,
    moment: Millis,
    fault: Option<Fault>,
) -> DeliveryRow {
    let Item { id, published, tries, forgiven, interrupted, .. } = *item;
    DeliveryRow {
        seq: id.seq(),
        subscriber,
        line,
        state,
        tries,
        forgiven,
        interrupted,
        published,
        moment,
        fault,
    }
}
