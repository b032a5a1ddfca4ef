//! Events: before publishing, as published, and as delivered.

use std::fmt;
use std::sync::Arc;

use holdfast_contract::content::Content;
use holdfast_contract::digest::Digest;
use holdfast_contract::frame::FrameSource;
use holdfast_contract::ids::{Millis, Seq, StreamId, Topic};
use holdfast_contract::serde;
use holdfast_contract::system_frames::EventPublished;

/// The number of streams for events. Events of one topic and key are always in the same one, so the number is part of the format.
pub(crate) const PARTITIONS: u8 = 8;

/// The streams of the events: `bus.00` to `bus.07`.
pub fn streams() -> impl Iterator<Item = StreamId> {
    (0..PARTITIONS).map(StreamId::bus)
}

/// An event to publish.
#[derive(Clone, Debug, PartialEq)]
pub struct NewEvent {
    /// The topic.
    pub topic: Topic,
    /// Its content.
    pub payload: Content,
    /// Events of the same topic and key are delivered in the order of their publication; those without a key share one order.
    pub key: Option<String>,
    /// The correlation id.
    pub correlation: Option<String>,
    /// The idempotency key: a second event with the same topic and key is not published.
    pub idempotency: Option<String>,
    /// Who publishes it.
    pub source: FrameSource,
}

impl NewEvent {
    /// An event of the program's own, without a key.
    pub fn new(topic: impl Into<Topic>, payload: impl Into<Content>) -> Self {
        Self {
            topic: topic.into(),
            payload: payload.into(),
            key: None,
            correlation: None,
            idempotency: None,
            source: FrameSource::Host,
        }
    }

    /// The same with a key.
    pub fn key(self, key: impl Into<String>) -> Self {
        Self { key: Some(key.into()), ..self }
    }

    /// The same with a correlation id.
    pub fn correlation(self, correlation: impl Into<String>) -> Self {
        Self { correlation: Some(correlation.into()), ..self }
    }

    /// The same with an idempotency key.
    pub fn idempotency(self, idempotency: impl Into<String>) -> Self {
        Self { idempotency: Some(idempotency.into()), ..self }
    }

    /// The same with another source.
    pub fn source(self, source: FrameSource) -> Self {
        Self { source, ..self }
    }
}

/// The id of an event: its partition and its sequence number there. Written `bus.03/17`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId {
    partition: u8,
    seq: Seq,
}

impl EventId {
    pub(crate) fn new(partition: u8, seq: Seq) -> Self {
        Self { partition, seq }
    }

    /// The event that this frame published, if the stream is one of the bus's.
    pub fn of(stream: &StreamId, seq: Seq) -> Option<Self> {
        let partition = stream.bus_partition().filter(|partition| *partition < PARTITIONS)?;
        Some(Self { partition, seq })
    }

    /// The event written this way.
    pub fn parse(text: &str) -> Option<Self> {
        let (stream, seq) = text.split_once('/')?;
        Self::of(&StreamId::from(stream), Seq(seq.parse().ok()?))
    }

    pub(crate) fn partition(self) -> u8 {
        self.partition
    }

    /// Its stream.
    pub fn stream(self) -> StreamId {
        StreamId::bus(self.partition)
    }

    /// Its sequence number in the stream.
    pub fn seq(self) -> Seq {
        self.seq
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bus.{:02}/{}", self.partition, self.seq)
    }
}

impl fmt::Debug for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl serde::Serialize for EventId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The result of publishing an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published {
    /// The event.
    pub id: EventId,
    /// Whether it is an earlier one with the same idempotency key, and nothing was published now.
    pub duplicate: bool,
}

/// A published event.
#[derive(Clone, Debug, PartialEq)]
pub struct BusEvent {
    /// Where it is.
    pub id: EventId,
    /// When it was published.
    pub at: Millis,
    /// Who published it.
    pub source: FrameSource,
    /// The topic.
    pub topic: Topic,
    /// Its content.
    pub payload: Content,
    /// The key within which events keep their order.
    pub key: Option<String>,
    /// The correlation id.
    pub correlation: Option<String>,
}

impl BusEvent {
    pub(crate) fn new(id: EventId, at: Millis, source: FrameSource, body: EventPublished) -> Self {
        let EventPublished { topic, payload, key, correlation, idempotency: _ } = body;
        Self { id, at, source, topic, payload, key, correlation }
    }
}

/// An event for one subscriber.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// The event.
    pub event: Arc<BusEvent>,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    /// Whether the subscriber may have had it before: an earlier attempt failed, was late, or ended with the process. What it did
    /// then may have taken effect.
    pub repeat: bool,
}

/// The partition of a topic and key, and the line in which each subscriber gets their events one after another.
pub(crate) fn route(topic: &Topic, key: Option<&str>) -> (u8, i64) {
    let mut text = Vec::with_capacity(128);
    text.extend_from_slice(topic.as_str().as_bytes());
    // No topic contains a zero byte, so an empty key differs from none.
    if let Some(key) = key {
        text.push(0);
        text.extend_from_slice(key.as_bytes());
    }
    let digest = Digest::of(&text);
    let [partition, line @ ..] = digest.as_bytes();
    let line = line.first_chunk().map_or(0, |line| i64::from_le_bytes(*line));
    (partition % PARTITIONS, line)
}

/// The digest that stands for a topic and idempotency key in the database.
pub(crate) fn name(topic: &Topic, idempotency: &str) -> Digest {
    Digest::of([topic.as_str(), idempotency].join("\0").as_bytes())
}
