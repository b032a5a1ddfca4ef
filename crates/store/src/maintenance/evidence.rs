//! Records in the system stream about other streams: their heads, deletions and erasures.
//!
//! Collecting and erasing are only done once they are recorded here, and `verify` accepts no missing frame or body without it.

use std::collections::HashMap;

use holdfast_contract::body::{Body, FrameKind};
use holdfast_contract::frame::Tombstone;
use holdfast_contract::ids::{Millis, Seq, StreamId};
use holdfast_contract::problem::Problem;
use holdfast_contract::system_frames::{HeadAnchored, LogCheckpointed, LogErased};
use rusqlite::{Connection, params};

use crate::failure;
use crate::maintenance::upkeep::Retention;
use crate::reader::{FoundStream, find_stream, hash_at, read_body};
use crate::store::Store;
use crate::tables::rows::{COLUMNS, Stored, place};
use crate::write::stream::Head;

/// Frames that prove something about a stream. Written exactly as the index has it, so that SQLite uses the index; and not as
/// `IN`, which would cost every insert more than the rest of the row.
pub(crate) const PROVES: &str =
    "(kind = 'head.anchored' OR kind = 'log.checkpointed' OR kind = 'log.erased')";

/// The kinds of those frames.
pub(crate) const PROVING: &[FrameKind] =
    &[FrameKind::HeadAnchored, FrameKind::LogCheckpointed, FrameKind::LogErased];

/// What the system stream proves, by stream.
#[derive(Default)]
pub(crate) struct Evidence {
    pub(crate) streams: HashMap<StreamId, Proof>,
}

/// What it proves about one stream.
#[derive(Default)]
pub(crate) struct Proof {
    /// Where the head was.
    pub(crate) anchors: Vec<Head>,
    /// Up to where frames were collected.
    pub(crate) checkpoints: Vec<Head>,
    pub(crate) erasures: Vec<Erasure>,
}

/// Frames that lost their bodies, as `log.erased` records it.
pub(crate) struct Erasure {
    /// The frame of the system stream that records it.
    pub(crate) recorded: Seq,
    from: Seq,
    to: Seq,
    tombstone: Tombstone,
}

impl Proof {
    /// Whether it is recorded that this frame was erased, when and why.
    pub(crate) fn covers(&self, seq: Seq, tombstone: &Tombstone) -> bool {
        let covers = |erasure: &Erasure| erasure.from <= seq && seq <= erasure.to;
        self.erasures.iter().any(|erasure| covers(erasure) && erasure.tombstone == *tombstone)
    }

    /// The tombstone that the latest record gives to all of these frames for this reason.
    pub(crate) fn tombstone(&self, from: Seq, to: Seq, reason: &str) -> Option<&Tombstone> {
        let covers = |erasure: &&Erasure| erasure.from <= from && to <= erasure.to;
        let mut recorded = self.erasures.iter().filter(covers).map(|erasure| &erasure.tombstone);
        recorded.rfind(|tombstone| tombstone.reason == reason)
    }
}

impl Evidence {
    /// Reads the evidence of these kinds in the system stream from `from` on. Frames that cannot be read prove nothing; `verify`
    /// reports them.
    pub(crate) fn read(connection: &Connection, kinds: &[FrameKind], from: Seq) -> Result<Self, Problem> {
        let read = |error| failure::reading(&error);
        let system = StreamId::system();
        let mut evidence = Self::default();
        let Some(found) = find_stream(connection, &system)? else { return Ok(evidence) };
        let from = place(from.max(found.first()));
        let mut select = connection.prepare_cached(&query()).map_err(read)?;
        for kind in kinds {
            let mut rows = select.query(params![found.key, kind.as_str(), from]).map_err(read)?;
            while let Some(row) = rows.next().map_err(read)? {
                let Ok(stored) = Stored::read(&system, row) else { continue };
                let Ok(Some(body)) = read_body(connection, &stored) else { continue };
                let Ok(body) = Body::read(stored.envelope.kind, body) else { continue };
                evidence.add(stored.envelope.seq, stored.envelope.at, body);
            }
        }
        Ok(evidence)
    }

    fn add(&mut self, recorded: Seq, at: Millis, body: Body) {
        match body {
            Body::HeadAnchored(HeadAnchored { stream, seq, hash }) => {
                self.of(stream).anchors.push(Head { seq, hash });
            }
            Body::LogCheckpointed(LogCheckpointed { stream, seq, hash }) => {
                self.of(stream).checkpoints.push(Head { seq, hash });
            }
            Body::LogErased(LogErased { stream, from, to, reason }) => {
                let tombstone = Tombstone { at, reason };
                self.of(stream).erasures.push(Erasure { recorded, from, to, tombstone });
            }
            _ => {}
        }
    }

    fn of(&mut self, stream: StreamId) -> &mut Proof {
        self.streams.entry(stream).or_default()
    }
}

impl Store {
    /// The last frame of the system stream that can go under this retention: none after its snapshot, from which it is taken up, and
    /// none that records an erasure whose tombstones are still kept.
    pub fn system_collectable(&self, retention: Retention, now: Millis) -> Result<Option<Head>, Problem> {
        let system = StreamId::system();
        let Some((snapshot, _)) = self.latest_snapshot(&system)? else { return Ok(None) };
        let Some(wanted) = self.collectable(&system, retention, now)? else { return Ok(None) };
        self.inner.readers.with(|connection| {
            let Some(found) = find_stream(connection, &system)? else { return Ok(None) };
            let mut last = wanted.seq.min(snapshot.seq);
            while let (_, Some(erasure)) = needed(connection, last)? {
                let Some(before) = erasure.0.checked_sub(1).map(Seq) else { return Ok(None) };
                last = before;
            }
            if last < found.first() {
                return Ok(None);
            }
            let hash = hash_at(connection, &found, last).map_err(|error| failure::reading(&error))?;
            Ok(hash.map(|hash| Head { seq: last, hash }))
        })
    }

    /// What the system stream up to `up_to` proves and nothing after it does: the caller appends these again before it collects
    /// that far. Records of erasures cannot be renewed; they hold [`Store::collect`] back until the erased frames have gone.
    pub fn evidence_to_renew(&self, up_to: Seq) -> Result<Vec<Body>, Problem> {
        self.inner.readers.with(|connection| Ok(needed(connection, up_to)?.0))
    }
}

fn query() -> String {
    format!(
        "SELECT {COLUMNS} FROM frames WHERE stream = ? AND kind = ? AND seq >= ? AND {PROVES} ORDER BY seq"
    )
}

/// Why the system stream cannot be collected up to here yet, if it cannot.
pub(crate) fn still_needed(connection: &Connection, up_to: Seq) -> Result<Option<String>, Problem> {
    let (renewable, erasure) = needed(connection, up_to)?;
    if let Some(seq) = erasure {
        return Ok(Some(format!("frame {seq} of system records an erasure whose tombstones are still kept")));
    }
    Ok(renewable.first().map(|body| {
        let count = renewable.len();
        format!("system up to {up_to} still proves {count} things, the first by `{}`", body.kind())
    }))
}

fn needed(connection: &Connection, up_to: Seq) -> Result<(Vec<Body>, Option<Seq>), Problem> {
    let all = Evidence::read(connection, PROVING, Seq(0))?;
    let later = Evidence::read(connection, PROVING, up_to.next())?;
    let none = Proof::default();
    let mut renewable = Vec::new();
    let mut erasures = Vec::new();
    for (stream, proof) in all.streams {
        let kept = later.streams.get(&stream).unwrap_or(&none);
        let Some(found) = find_stream(connection, &stream)? else { continue };
        for erasure in proof.erasures.iter().filter(|erasure| erasure.recorded <= up_to) {
            let from = if stream.is_system() { erasure.from.max(up_to.next()) } else { erasure.from };
            if has_tombstone(connection, &found, from, erasure.to)
                .map_err(|error| failure::reading(&error))?
            {
                erasures.push(erasure.recorded);
            }
        }
        if stream.is_system() {
            continue;
        }
        let base =
            found.base.filter(|base| proof.checkpoints.contains(base) && !kept.checkpoints.contains(base));
        renewable.extend(
            base.map(|Head { seq, hash }| Body::from(LogCheckpointed { stream: stream.clone(), seq, hash })),
        );
        let anchor = proof.anchors.iter().max_by_key(|anchor| anchor.seq).filter(|_| kept.anchors.is_empty());
        renewable.extend(anchor.map(|Head { seq, hash }| {
            Body::from(HeadAnchored { stream: stream.clone(), seq: *seq, hash: *hash })
        }));
    }
    Ok((renewable, erasures.into_iter().min()))
}

fn has_tombstone(connection: &Connection, found: &FoundStream, from: Seq, to: Seq) -> rusqlite::Result<bool> {
    let mut select = connection.prepare_cached(
        "SELECT 1 FROM frames WHERE stream = ? AND seq BETWEEN ? AND ? AND erased_at IS NOT NULL",
    )?;
    let from = place(from.max(found.first()));
    select.exists(params![found.key, from, place(to)])
}

#[cfg(test)]
#[path = "evidence_tests.rs"]
mod tests;
