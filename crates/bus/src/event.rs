//! Events: as they are published, as they are kept, as they are handed over.

use std::fmt;
use std::sync::Arc;

use holdfast_contract::content::Content;
use holdfast_contract::digest::Digest;
use holdfast_contract::frame::FrameSource;
use holdfast_contract::ids::{Millis, Seq, StreamId, Topic};
use holdfast_contract::serde;
use holdfast_contract::system_frames::EventPublished;

/// Streams that share the events. Events of one topic and key are always in the same one, so the number is part of the format.
pub(crate) const PARTITIONS: u8 = 8;

/// The streams that events live in: `bus.00` to `bus.07`.
pub fn streams() -> impl Iterator<Item = StreamId> {
    (0..PARTITIONS).map(StreamId::bus)
}

/// Something to be published.
#[derive(Clone, Debug, PartialEq)]
pub struct NewEvent {
    /// The topic.
    pub topic: Topic,
    /// What it says.
    pub payload: Content,
    /// Events of the same topic and key are handed over in the order of their publication; those without a key share one order.
    pub key: Option<String>,
    /// What it answers or belongs to.
    pub correlation: Option<String>,
    /// Published again under the same one, it is not published twice.
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

    /// The same with what it belongs to.
    pub fn correlation(self, correlation: impl Into<String>) -> Self {
        Self { correlation: Some(correlation.into()), ..self }
    }

    /// The same under a name that is published only once.
    pub fn idempotency(self, idempotency: impl Into<String>) -> Self {
        Self { idempotency: Some(idempotency.into()), ..self }
    }

    /// The same from someone else.
    pub fn source(self, source: FrameSource) -> Self {
        Self { source, ..self }
    }
}

/// Where an event is: its partition and its place there. Written `bus.03/17`.
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

    /// Its place in the stream.
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

/// What publishing came to.
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
    /// What it says.
    pub payload: Content,
    /// The key within which events keep their order.
    pub key: Option<String>,
    /// What it answers or belongs to.
    pub correlation: Option<String>,
}

impl BusEvent {
    pub(crate) fn new(id: EventId, at: Millis, source: FrameSource, body: EventPublished) -> Self {
        let EventPublished { topic, payload, key, correlation, idempotency: _ } = body;
        Self { id, at, source, topic, payload, key, correlation }
    }
}

/// An event on its way to one subscriber.
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

/// Where events of a topic and key go: always to this partition, and to each subscriber one after another along this line.
pub(crate) fn route(topic: &Topic, key: Option<&str>) -> (u8, i64) {
    let mut text = Vec::with_capacity(128);
    text.extend_from_slice(topic.as_str().as_bytes());
    // No topic has a zero in it, and no key that is there is taken for one that is not.
    if let Some(key) = key {
        text.push(0);
        text.extend_from_slice(key.as_bytes());
    }
    let digest = Digest::of(&text);
    let [partition, line @ ..] = digest.as_bytes();
    let line = line.first_chunk().map_or(0, |line| i64::from_le_bytes(*line));
    (partition % PARTITIONS, line)
}

/// The name that a topic and idempotency key are found under.
pub(crate) fn name(topic: &Topic, idempotency: &str) -> Digest {
    Digest::of([topic.as_str(), idempotency].join("\0").as_bytes())
}
