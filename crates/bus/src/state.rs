//! What the bus knows in memory, under one lock: where each partition ends, who subscribes, what is under way, and what was handed to
//! the store and is not on disk yet.
//!
//! Whatever changes here is handed to the store under the same lock, so that the order in which things are decided is the order in
//! which they are written. Nothing here waits, but for a store whose queue is full.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use holdfast_contract::digest::Digest;
use holdfast_contract::frame::FrameSource;
use holdfast_contract::ids::{Millis, Seq, Topic};
use holdfast_contract::problem::{Code, Fault, Problem};
use holdfast_contract::system_frames::EventPublished;
use holdfast_store::{
    Change, CommitPriority, DeliveryRow, DeliveryState, Prepared, PreparedBody, Receipt, Store, StreamLog,
    StreamPart, SubscriberKey,
};
use tokio::sync::watch;

use crate::dispatch::queue::{Item, Queue};
use crate::event::{BusEvent, EventId};
use crate::mixed::MixedMap;
use crate::subscription::{EventHandler, Subscription};

/// Topics whose subscribers are remembered.
const TOPICS: usize = 4096;

/// One handing-over of one event to one subscriber.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Ticket(u64);

#[derive(Default)]
pub(crate) struct Queues {
    pub(crate) partitions: Vec<Partition>,
    /// Everyone who ever subscribed; a place in the list is kept for good.
    pub(crate) subscribers: Vec<Subscriber>,
    targets: HashMap<Topic, Arc<[usize]>>,
    /// Names that are being published. Whoever waits for one is told when it goes.
    pub(crate) names: HashMap<Digest, watch::Sender<()>>,
    /// What was handed to the store, in order.
    pub(crate) pipeline: VecDeque<PendingWrite>,
    pub(crate) under_way: MixedMap<Ticket, InFlight>,
    tickets: u64,
    /// The suspicious event under way, which must be the only one.
    pub(crate) alone: Option<Ticket>,
    /// What came of events and is not handed to the store yet.
    pub(crate) outcomes: Vec<DeliveryOutcome>,
    /// Whether other events wait behind one of these.
    pub(crate) pressing: bool,
    /// Why the store takes nothing, until everything has been read from it anew.
    pub(crate) trouble: Option<Problem>,
    /// How often in a row that happened, and when it is tried again.
    pub(crate) troubles: u32,
    pub(crate) retry_at: Millis,
    pub(crate) standing: BusState,
    /// Events that are kept in memory for one subscriber.
    resident: usize,
}

pub(crate) struct Partition {
    pub(crate) log: StreamLog,
    pub(crate) next: Seq,
}

/// Whether the bus takes and hands over events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum BusState {
    #[default]
    Open,
    /// What is under way may end until then.
    Closing { by: Millis },
    /// Nobody holds it any more: everything is dropped where it stands.
    Abandoned,
}

pub(crate) struct Subscriber {
    pub(crate) key: SubscriberKey,
    pub(crate) name: Arc<str>,
    /// What it asked for; nothing if nobody of its name subscribes now.
    pub(crate) terms: Option<Arc<Subscription>>,
    pub(crate) queue: Queue,
    /// How many handlers run or are about to.
    pub(crate) running: usize,
    /// When handlers must be done, in the order in which they began. Those that are done are passed over.
    pub(crate) deadlines: VecDeque<(Millis, Ticket)>,
    pub(crate) dead: u64,
    pub(crate) last_fault: Option<Fault>,
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
        }
    }

    pub(crate) fn has_room(&self) -> bool {
        self.terms.as_ref().is_some_and(|terms| self.running < terms.concurrency)
    }
}

/// What is known of an event that is with a handler, or about to be.
pub(crate) struct InFlight {
    pub(crate) subscriber: usize,
    pub(crate) line: i64,
    pub(crate) id: EventId,
    pub(crate) terms: Arc<Subscription>,
}

/// What came of an event.
pub(crate) struct DeliveryOutcome {
    pub(crate) under_way: InFlight,
    pub(crate) verdict: DeliveryVerdict,
    /// The event, where the handler's task had it at hand.
    pub(crate) event: Option<Arc<BusEvent>>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum DeliveryVerdict {
    Done,
    /// It failed, and may do better next time.
    Failed(Fault),
    /// Nobody knows: the process ended first.
    Interrupted(Fault),
    /// Nobody knows: the bus was closed first.
    Stopped(Fault),
    /// It failed, and always will.
    Hopeless(Fault),
}

/// An event that goes to its handler as soon as that is on disk.
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

/// An event that a process before this one had under way, of which account must be given.
pub(crate) struct InterruptedDelivery {
    pub(crate) ticket: Ticket,
    pub(crate) id: EventId,
    /// Whether it has had all its attempts.
    pub(crate) spent: bool,
}

/// Something that was handed to the store.
pub(crate) struct PendingWrite {
    pub(crate) receipt: Receipt,
    pub(crate) starts: Vec<Start>,
    /// What would have to be recorded again if this fails.
    pub(crate) outcomes: Vec<DeliveryOutcome>,
    pub(crate) names: Vec<Digest>,
    /// Whether it is the conductor's own, and whether it waits for it.
    pub(crate) record: Option<CommitPriority>,
}

/// What is about to be handed to the store together.
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

/// An event with everything done that can be done before it has its place.
pub(crate) struct ReadyEvent {
    pub(crate) published: EventPublished,
    pub(crate) body: PreparedBody,
    pub(crate) source: FrameSource,
    pub(crate) partition: u8,
    pub(crate) line: i64,
    pub(crate) name: Option<Digest>,
}

impl Queues {
    /// Nothing yet; so many events are to be kept in memory for one subscriber.
    pub(crate) fn new(resident: usize) -> Self {
        Self { resident, ..Self::default() }
    }

    /// Refuses if nothing can be published.
    pub(crate) fn check(&self) -> Result<(), Problem> {
        if self.standing != BusState::Open {
            return Err(closed());
        }
        self.trouble.clone().map_or(Ok(()), Err)
    }

    /// Those who want events of a topic.
    pub(crate) fn targets(&mut self, topic: &Topic) -> Arc<[usize]> {
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

    /// To be called when anyone's terms change.
    pub(crate) fn forget_targets(&mut self) {
        self.targets.clear();
    }

    /// Gives an event its place, and everyone it is for a row. Where nothing is before it, it is on its way to the handler too.
    pub(crate) fn add_event(&mut self, new: ReadyEvent, now: Millis, hand: &mut WriteBatch) -> EventId {
        let ReadyEvent { published, body, source, partition, line, name } = new;
        let targets = self.targets(&published.topic);
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
        for index in targets.iter().copied() {
            let Some(subscriber) = self.subscribers.get_mut(index) else { continue };
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

    /// Notes durably that the first event of a line, which the queue has under way, goes to its handler.
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

    /// The same for everyone who subscribes now.
    pub(crate) fn adopt_all_stale(&mut self) -> Vec<InterruptedDelivery> {
        (0..self.subscribers.len()).flat_map(|index| self.adopt_stale(index)).collect()
    }

    /// Counts what a process before this one left under way as under way once more, without a handler.
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

    /// An event is no longer with its handler.
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

    /// Adds a frame of the bus's own to a partition.
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

    /// Hands it to the store. Whoever calls this has the lock, so what is handed over later is written later.
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
                // The log is closed: nothing that was decided here will ever be written.
                self.trouble = Some(problem.clone());
                self.take_back(starts, outcomes, &names);
                Err(problem)
            }
        }
    }

    /// What was decided could not be written. Places and queues are set right by what is read from the log anew.
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

/// An event as its row has it.
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
