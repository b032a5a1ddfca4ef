//! The events in the log by topic, for a person: which topics have events, and what became of the last events of one.

use std::collections::{BTreeMap, HashMap};

use holdfast_contract::body::{Body, FrameKind};
use holdfast_contract::frame::Frame;
use holdfast_contract::ids::{Millis, Seq, StreamId, Topic};
use holdfast_contract::problem::{Code, Problem};
use holdfast_store::{DeliveryState, Store};

use crate::bus::Bus;
use crate::event::{BusEvent, EventId, streams};

/// Frames that are read at a time.
const FRAMES_AT_A_TIME: u64 = 4_096;

/// The events of a topic that are in the log.
#[derive(Clone, Debug, PartialEq)]
pub struct TopicStatus {
    /// The topic.
    pub topic: Topic,
    /// How many events.
    pub events: u64,
    /// When the last one was published.
    pub last: Millis,
    /// Deliveries that are not finished, once for each subscriber.
    pub open: u64,
    /// Dead letters.
    pub dead: u64,
    /// Who subscribes to it now.
    pub subscribers: Vec<String>,
}

/// An event, and what became of it.
#[derive(Clone, Debug, PartialEq)]
pub struct EventHistory {
    /// The event.
    pub event: BusEvent,
    /// By subscriber.
    pub deliveries: BTreeMap<String, DeliveryProgress>,
}

/// What became of an event for one subscriber.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryProgress {
    /// It waits for its delivery.
    Waiting,
    /// It is in delivery.
    UnderWay,
    /// The subscriber has finished it.
    Delivered,
    /// It is a dead letter.
    Dead,
    /// It was discarded.
    Discarded,
}

impl From<DeliveryState> for DeliveryProgress {
    fn from(state: DeliveryState) -> Self {
        match state {
            DeliveryState::Waiting => Self::Waiting,
            DeliveryState::UnderWay => Self::UnderWay,
            DeliveryState::Dead => Self::Dead,
        }
    }
}

impl Bus {
    /// The topics that have events in the log, by name. Events whose content was erased are left out.
    pub async fn topics(&self) -> Result<Vec<TopicStatus>, Problem> {
        let mut topics = self.inner().blocking(topics).await?;
        let state = self.inner().state();
        for topic in &mut topics {
            let wants = |patterns: &[crate::Pattern]| patterns.iter().any(|it| it.matches(&topic.topic));
            let now =
                state.subscribers.iter().filter(|it| it.terms.as_ref().is_some_and(|it| wants(&it.patterns)));
            topic.subscribers = now.map(|it| it.name.to_string()).collect();
            topic.subscribers.sort();
        }
        Ok(topics)
    }

    /// The last so many events of a topic, the latest first. A topic without events is a problem that names those that have some.
    pub async fn recent(&self, topic: &Topic, limit: usize) -> Result<Vec<EventHistory>, Problem> {
        let wanted = topic.clone();
        let found = self.inner().blocking(move |store| recent(store, &wanted, limit)).await?;
        if !found.is_empty() || limit == 0 {
            return Ok(found);
        }
        let known = self.inner().blocking(topics).await?;
        let known: Vec<&str> = known.iter().map(|it| it.topic.as_str()).collect();
        let empty = "There are no events yet; `holdfast bus publish TOPIC JSON` publishes one.";
        Err(Problem::unknown(Code::TopicUnknown, "event of the topic", topic.as_str(), &known, empty))
    }
}

fn topics(store: &Store) -> Result<Vec<TopicStatus>, Problem> {
    // Recent decisions may not be on disk yet.
    store.flush()?;
    let mut topics: BTreeMap<String, TopicStatus> = BTreeMap::new();
    for stream in streams() {
        let mut rows: HashMap<Seq, (u64, u64)> = HashMap::new();
        for row in store.deliveries(&stream, |_| true)? {
            let (open, dead) = rows.entry(row.seq).or_default();
            *if row.state == DeliveryState::Dead { dead } else { open } += 1;
        }
        backwards(store, &stream, |frame| {
            let Some(topic) = topic_of(frame) else { return Ok(true) };
            let (open, dead) = rows.remove(&frame.envelope.seq).unwrap_or_default();
            let known = topics.entry(topic.to_owned()).or_insert_with(|| TopicStatus {
                topic: topic.into(),
                events: 0,
                last: Millis(0),
                open: 0,
                dead: 0,
                subscribers: Vec::new(),
            });
            known.events += 1;
            known.last = known.last.max(frame.envelope.at);
            (known.open, known.dead) = (known.open + open, known.dead + dead);
            Ok(true)
        })?;
    }
    Ok(topics.into_values().collect())
}

fn recent(store: &Store, topic: &Topic, limit: usize) -> Result<Vec<EventHistory>, Problem> {
    store.flush()?;
    let names: HashMap<_, _> = store.subscribers()?.into_iter().collect();
    let mut found = Vec::new();
    for stream in streams() {
        let mut rows: HashMap<Seq, Vec<(String, DeliveryProgress)>> = HashMap::new();
        for row in store.deliveries(&stream, |_| true)? {
            let name = names.get(&row.subscriber).cloned().unwrap_or_default();
            rows.entry(row.seq).or_default().push((name, row.state.into()));
        }
        // Outcomes come before their events, the latest first.
        let mut outcomes: HashMap<Seq, BTreeMap<String, DeliveryProgress>> = HashMap::new();
        let mut left = limit;
        backwards(store, &stream, |frame| {
            let seq = frame.envelope.seq;
            if let Some(known) = topic_of(frame) {
                let mut deliveries = outcomes.remove(&seq).unwrap_or_default();
                if known == topic.as_str() {
                    deliveries.extend(rows.remove(&seq).unwrap_or_default());
                    found.extend(history(store, &stream, frame, deliveries)?);
                    left -= 1;
                }
                return Ok(left > 0);
            }
            for (event, subscriber, outcome) in outcomes_of(store, frame)? {
                outcomes.entry(event).or_default().entry(subscriber).or_insert(outcome);
            }
            Ok(true)
        })?;
    }
    found.sort_by_key(|it| std::cmp::Reverse((it.event.at, it.event.id)));
    found.truncate(limit);
    Ok(found)
}

/// Calls a function for every frame of a stream, the last one first, as long as it returns true.
fn backwards(
    store: &Store,
    stream: &StreamId,
    mut each: impl FnMut(&Frame) -> Result<bool, Problem>,
) -> Result<(), Problem> {
    let mut end = store.head(stream)?.map_or(0, |head| head.seq.0 + 1);
    while end > 0 {
        let from = end.saturating_sub(FRAMES_AT_A_TIME);
        for frame in store.frames(stream, Seq(from)..=Seq(end - 1))?.iter().rev() {
            if !each(frame)? {
                return Ok(());
            }
        }
        end = from;
    }
    Ok(())
}

/// The topic of the event that a frame published.
fn topic_of(frame: &Frame) -> Option<&str> {
    let published = frame.envelope.kind == FrameKind::EventPublished;
    frame.body.as_ref().filter(|_| published)?["topic"].as_str()
}

fn history(
    store: &Store,
    stream: &StreamId,
    frame: &Frame,
    deliveries: BTreeMap<String, DeliveryProgress>,
) -> Result<Option<EventHistory>, Problem> {
    let Some(id) = EventId::of(stream, frame.envelope.seq) else { return Ok(None) };
    let Body::EventPublished(body) = store.body(frame)? else { return Ok(None) };
    let event = BusEvent::new(id, frame.envelope.at, frame.envelope.source.clone(), body);
    Ok(Some(EventHistory { event, deliveries }))
}

/// The outcomes that a frame records: of which events, and for whom.
fn outcomes_of(store: &Store, frame: &Frame) -> Result<Vec<(Seq, String, DeliveryProgress)>, Problem> {
    let kind = frame.envelope.kind;
    if frame.body.is_none() || !matches!(kind, FrameKind::EventDelivered | FrameKind::EventDiscarded) {
        return Ok(Vec::new());
    }
    Ok(match store.body(frame)? {
        Body::EventDelivered(it) => {
            let one = |seq| (seq, it.subscriber.clone(), DeliveryProgress::Delivered);
            it.events.into_iter().map(one).collect()
        }
        Body::EventDiscarded(it) => vec![(it.event, it.subscriber, DeliveryProgress::Discarded)],
        _ => Vec::new(),
    })
}
