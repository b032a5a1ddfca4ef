//! Verification that the log is what was written: every row, hash, body, blob, tombstone, anchor and snapshot.
//!
//! Damage does not stop the check; each problem becomes a finding. Whether the decisions in the log are complete
//! is for the layers above, which know what they mean.

pub(crate) mod finding;
mod survey;

use std::collections::{HashMap, HashSet};

use holdfast_contract::digest::{Digest, canonical};
use holdfast_contract::frame::Tombstone;
use holdfast_contract::ids::{Seq, StreamId};
use holdfast_contract::problem::{Code, Problem};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, params};

use self::finding::{FindingKind, LogFinding};
use crate::failure;
use crate::maintenance::evidence::{Evidence, PROVING, Proof};
use crate::reader::{FoundStream, find_stream, hash_at, read_snapshot};
use crate::stats::Counters;
use crate::store::Store;
use crate::tables::blobs;
use crate::tables::rows::{self, Bytes32, COLUMNS, Stored, StoredBody, Unsigned};
use crate::write::head_file::LostFrames;
use crate::write::stream::Head;

/// How many problems found by SQLite itself are reported.
const MAX_SQLITE_ERRORS: i64 = 100;

impl Store {
    /// Checks one stream, or all of them and everything beside them. An empty answer means that the log is as it was written, as
    /// far as the file itself can prove it. Fails only if the stream does not exist or the file cannot be read at all.
    pub fn verify(&self, stream: Option<&StreamId>) -> Result<Vec<LogFinding>, Problem> {
        self.inner.readers.with(|connection| {
            // One read transaction, so that the whole check sees one state.
            let moment = connection.unchecked_transaction().map_err(|error| failure::reading(&error))?;
            let mut walk = Walk::new(&moment, &self.inner.shared.counters);
            match stream {
                Some(stream) => walk.one(stream)?,
                None => {
                    walk.all();
                    walk.cut(self.lost_frames());
                }
            }
            Ok(walk.findings)
        })
    }
}

struct Walk<'a> {
    connection: &'a Connection,
    counters: &'a Counters,
    evidence: Evidence,
    /// Checked blobs, and what is wrong with them.
    blobs: HashMap<Digest, BlobState>,
    findings: Vec<LogFinding>,
}

#[derive(Clone)]
enum BlobState {
    Whole,
    Missing,
    Damaged(String),
}

/// The state of the check of one stream.
struct Steps<'a> {
    stream: &'a StreamId,
    key: i64,
    proof: &'a Proof,
    expected: Seq,
    /// The hash that the next frame must refer to; none after a gap.
    prev: Option<Digest>,
    references: u64,
}

impl<'a> Walk<'a> {
    fn new(connection: &'a Connection, counters: &'a Counters) -> Self {
        let evidence = Evidence::default();
        Self { connection, counters, evidence, blobs: HashMap::new(), findings: Vec::new() }
    }

    fn one(&mut self, stream: &StreamId) -> Result<(), Problem> {
        self.read_evidence();
        let known = self.evidence.streams.contains_key(stream);
        if !known && find_stream(self.connection, stream)?.is_none() {
            return Err(Problem::new(Code::StoreMissing, format!("there is no stream {stream}")));
        }
        self.stream(stream);
        Ok(())
    }

    fn all(&mut self) {
        self.database();
        self.read_evidence();
        let mut streams = self.names();
        streams.extend(self.evidence.streams.keys().cloned());
        let mut streams: Vec<_> = streams.into_iter().collect();
        streams.sort();
        streams.iter().for_each(|stream| self.stream(stream));
        self.objects();
        self.events();
    }

    fn cut(&mut self, lost: Option<LostFrames>) {
        if let Some(LostFrames { acknowledged, found }) = lost {
            let detail = format!("{acknowledged} frames were acknowledged, {found} were found");
            self.find(&StreamId::system(), None, FindingKind::LogCut, detail);
        }
    }

    /// Rows of the bus that belong to no event, no subscriber, or to none that can be read.
    fn events(&mut self) {
        let checks = [
            (
                "deliveries",
                "SELECT count(*) FROM deliveries WHERE subscriber NOT IN (SELECT id FROM subscribers)
                     OR state NOT IN (0, 1, 2) OR tries < forgiven OR seq < 0 OR published < 0 OR moment < 0",
            ),
            (
                "event_names",
                "SELECT count(*) FROM event_names WHERE length(name) != 32 OR seq < 0 OR at < 0
                     OR NOT EXISTS (SELECT 1 FROM streams WHERE streams.id = event_names.stream AND (
                         coalesce(streams.base_seq, -1) >= event_names.seq OR EXISTS (
                             SELECT 1 FROM frames WHERE frames.stream = streams.id
                                 AND frames.seq = event_names.seq AND kind = 'event.published')))",
            ),
            ("subscribers", "SELECT count(*) FROM subscribers WHERE name = ''"),
        ];
        for (table, select) in checks {
            match self.connection.query_row(select, [], |row| row.get::<_, i64>(0)) {
                Ok(0) => {}
                Ok(count) => {
                    let detail =
                        format!("{count} rows of `{table}` are invalid or belong to nothing that is kept");
                    self.find(&StreamId::system(), None, FindingKind::DeliveryMismatch, detail);
                }
                Err(error) => self.damaged(&StreamId::system(), error),
            }
        }
    }

    fn find(&mut self, stream: &StreamId, seq: Option<Seq>, kind: FindingKind, detail: impl Into<String>) {
        self.findings.push(LogFinding { stream: stream.clone(), seq, kind, detail: detail.into() });
    }

    fn damaged(&mut self, stream: &StreamId, detail: impl std::fmt::Display) {
        self.find(stream, None, FindingKind::DatabaseDamaged, detail.to_string());
    }

    fn read_evidence(&mut self) {
        match Evidence::read(self.connection, PROVING, Seq(0)) {
            Ok(evidence) => self.evidence = evidence,
            Err(problem) => self.damaged(&StreamId::system(), problem.what),
        }
    }

    fn names(&mut self) -> HashSet<StreamId> {
        let read = || -> rusqlite::Result<HashSet<StreamId>> {
            let mut select = self.connection.prepare("SELECT name FROM streams")?;
            let names = select.query_map([], |row| row.get::<_, String>(0))?;
            names.map(|name| name.map(StreamId::from)).collect()
        };
        read().unwrap_or_else(|error| {
            self.damaged(&StreamId::system(), error);
            HashSet::new()
        })
    }

    /// What SQLite itself can tell: pages, indexes, and rows whose stream is gone.
    fn database(&mut self) {
        let system = StreamId::system();
        let complaints = |sql: &str, column: usize| -> rusqlite::Result<Vec<String>> {
            let mut check = self.connection.prepare(sql)?;
            check.query_map([], |row| row.get(column))?.collect()
        };
        let damage = complaints(&format!("PRAGMA integrity_check({MAX_SQLITE_ERRORS})"), 0);
        let orphans = complaints("SELECT DISTINCT \"table\" FROM pragma_foreign_key_check", 0);
        match damage {
            Ok(lines) => {
                lines.iter().filter(|line| *line != "ok").for_each(|line| self.damaged(&system, line))
            }
            Err(error) => self.damaged(&system, error),
        }
        match orphans {
            Ok(tables) => tables.iter().for_each(|table| {
                self.damaged(&system, format_args!("rows of `{table}` belong to no stream"))
            }),
            Err(error) => self.damaged(&system, error),
        }
    }

    fn stream(&mut self, stream: &StreamId) {
        let proof = self.evidence.streams.remove(stream).unwrap_or_default();
        match find_stream(self.connection, stream) {
            Err(problem) => self.damaged(stream, problem.what),
            Ok(None) => {
                let detail = "the system stream knows it, but it is gone";
                self.find(stream, None, FindingKind::StreamMissing, detail);
            }
            Ok(Some(found)) => {
                self.base(stream, &found, &proof);
                if let Err(error) = self.frames(stream, &found, &proof, None) {
                    self.damaged(stream, error);
                }
                if let Err(error) = self.anchors(stream, &found, &proof) {
                    self.damaged(stream, error);
                }
                if let Err(error) = self.deliveries(stream, &found) {
                    self.damaged(stream, error);
                }
                self.snapshot(stream, &found);
            }
        }
        self.evidence.streams.insert(stream.clone(), proof);
    }

    fn base(&mut self, stream: &StreamId, found: &FoundStream, proof: &Proof) {
        match found.base {
            Some(base) if !proof.checkpoints.contains(&base) => {
                let detail = "no `log.checkpointed` frame has this place and hash";
                self.find(stream, Some(base.seq), FindingKind::CollectionUnrecorded, detail);
            }
            None if found.head.is_none() => {
                self.find(
                    stream,
                    None,
                    FindingKind::FrameMissing,
                    "it has no frames, and none were collected",
                );
            }
            Some(_) | None => {}
        }
    }

    /// Checks the frames up to one, or all.
    fn frames(
        &mut self,
        stream: &StreamId,
        found: &FoundStream,
        proof: &Proof,
        last: Option<Seq>,
    ) -> rusqlite::Result<()> {
        let mut steps = Steps {
            stream,
            key: found.key,
            proof,
            expected: found.first(),
            prev: Some(found.base.map_or(Digest::ZERO, |base| base.hash)),
            references: 0,
        };
        let select =
            format!("SELECT {COLUMNS} FROM frames WHERE stream = ? AND seq >= ? AND seq <= ? ORDER BY seq");
        let mut select = self.connection.prepare(&select)?;
        let first = rows::place(found.first());
        let mut rows = select.query(params![found.key, first, last.map_or(i64::MAX, rows::place)])?;
        while let Some(row) = rows.next()? {
            self.counters.rows_read.add(1);
            self.row(&mut steps, row);
        }
        if last.is_some() {
            return Ok(());
        }
        let mut count =
            self.connection.prepare("SELECT count(*) FROM blob_refs WHERE stream = ? AND seq >= ?")?;
        let counted = count.query_row(params![found.key, first], |row| row.get::<_, Unsigned>(0))?.0;
        if counted > steps.references {
            let detail = format!("{counted} references are recorded, the frames have {}", steps.references);
            self.find(stream, None, FindingKind::ReferenceMismatch, detail);
        }
        Ok(())
    }

    fn row(&mut self, steps: &mut Steps<'_>, row: &Row<'_>) {
        let Ok(Unsigned(seq)) = row.get(0) else {
            self.find(steps.stream, None, FindingKind::RowUnreadable, "a frame without a place");
            return;
        };
        let seq = Seq(seq);
        if seq != steps.expected {
            let detail = format!("frame {} should follow, {seq} does", steps.expected);
            self.find(steps.stream, Some(steps.expected), FindingKind::FrameMissing, detail);
            steps.prev = None;
        }
        steps.expected = seq.next();
        match Stored::read(steps.stream, row) {
            Ok(stored) => {
                if canonical(&stored.envelope.source).ok().as_deref() != row.get_ref(3).ok().and_then(text) {
                    let detail = "the source is not in its canonical form";
                    self.find(steps.stream, Some(seq), FindingKind::RowUnreadable, detail);
                }
                self.frame(steps, &stored);
            }
            Err(why) => {
                self.find(steps.stream, Some(seq), FindingKind::RowUnreadable, why);
                steps.prev = row.get::<_, Bytes32>(8).ok().map(|hash| hash.0);
            }
        }
    }

    fn frame(&mut self, steps: &mut Steps<'_>, stored: &Stored) {
        let Stored { envelope, hash, body } = stored;
        let seq = Some(envelope.seq);
        if steps.prev.is_some_and(|prev| prev != envelope.prev) {
            let detail = "`prev` is not the hash of the frame before";
            self.find(steps.stream, seq, FindingKind::ChainBroken, detail);
        }
        if envelope.hash().ok() != Some(*hash) {
            let detail = "the envelope does not hash to what was stored";
            self.find(steps.stream, seq, FindingKind::HashMismatch, detail);
        }
        steps.prev = Some(*hash);
        match body {
            StoredBody::Erased(tombstone) => {
                self.tombstone(steps.stream, steps.proof, envelope.seq, tombstone)
            }
            StoredBody::Inline(bytes) if Digest::of(bytes) == envelope.body_digest => {
                self.body(steps, stored, bytes)
            }
            StoredBody::Inline(_) => {
                let detail = "the body does not hash to its digest";
                self.find(steps.stream, seq, FindingKind::BodyMismatch, detail);
            }
            StoredBody::Blob => self.large_body(steps, stored),
        }
    }

    fn tombstone(&mut self, stream: &StreamId, proof: &Proof, seq: Seq, tombstone: &Tombstone) {
        if !proof.covers(seq, tombstone) {
            let detail = format!("no `log.erased` frame records it: {}", tombstone.reason);
            self.find(stream, Some(seq), FindingKind::ErasureUnrecorded, detail);
        }
    }

    fn large_body(&mut self, steps: &mut Steps<'_>, stored: &Stored) {
        let digest = stored.envelope.body_digest;
        let seq = stored.envelope.seq;
        match self.blob_bytes(digest) {
            Ok(bytes) => {
                self.reference(steps, seq, digest);
                self.body(steps, stored, &bytes);
            }
            Err(BlobState::Damaged(why)) => {
                self.find(steps.stream, Some(seq), FindingKind::BlobDamaged, format!("the body: {why}"));
            }
            Err(BlobState::Missing | BlobState::Whole) => {
                let detail = "there is neither a body nor a tombstone";
                self.find(steps.stream, Some(seq), FindingKind::BodyMissing, detail);
            }
        }
    }

    fn body(&mut self, steps: &mut Steps<'_>, stored: &Stored, bytes: &[u8]) {
        let seq = stored.envelope.seq;
        let kind = stored.envelope.kind;
        let refers = rows::json(bytes)
            .and_then(|json| blobs::references(kind, json).map_err(|error| error.to_string()));
        let refers = match refers {
            Ok(refers) => refers,
            Err(why) => {
                self.find(
                    steps.stream,
                    Some(seq),
                    FindingKind::BodyUnreadable,
                    format!("as `{kind}`: {why}"),
                );
                return;
            }
        };
        for digest in refers {
            match self.blob(digest) {
                BlobState::Whole => {}
                BlobState::Missing => {
                    self.find(
                        steps.stream,
                        Some(seq),
                        FindingKind::BlobMissing,
                        format!("blob {digest} is gone"),
                    );
                }
                BlobState::Damaged(why) => {
                    self.find(
                        steps.stream,
                        Some(seq),
                        FindingKind::BlobDamaged,
                        format!("blob {digest}: {why}"),
                    );
                }
            }
            self.reference(steps, seq, digest);
        }
    }

    /// The reference must be on record, or a collection could take the blob away.
    fn reference(&mut self, steps: &mut Steps<'_>, seq: Seq, digest: Digest) {
        steps.references += 1;
        let select = "SELECT 1 FROM blob_refs WHERE stream = ? AND seq = ? AND digest = ?";
        let recorded = self
            .connection
            .prepare_cached(select)
            .and_then(|mut select| select.exists(params![steps.key, rows::place(seq), digest.as_bytes()]));
        match recorded {
            Ok(true) => {}
            Ok(false) => {
                let detail = format!("its reference to blob {digest} is not on record");
                self.find(steps.stream, Some(seq), FindingKind::ReferenceMismatch, detail);
            }
            Err(error) => self.damaged(steps.stream, error),
        }
    }

    fn blob(&mut self, digest: Digest) -> BlobState {
        match self.blobs.get(&digest) {
            Some(state) => state.clone(),
            None => self.blob_bytes(digest).err().unwrap_or(BlobState::Whole),
        }
    }

    fn blob_bytes(&mut self, digest: Digest) -> Result<Vec<u8>, BlobState> {
        let outcome = match blobs::read(self.connection, digest) {
            Ok(Some(Ok(bytes))) => Ok(bytes),
            Ok(Some(Err(why))) => Err(BlobState::Damaged(why)),
            Ok(None) => Err(BlobState::Missing),
            Err(error) => Err(BlobState::Damaged(error.to_string())),
        };
        self.blobs.insert(digest, outcome.as_ref().err().cloned().unwrap_or(BlobState::Whole));
        outcome
    }

    fn anchors(&mut self, stream: &StreamId, found: &FoundStream, proof: &Proof) -> rusqlite::Result<()> {
        for Head { seq, hash } in &proof.anchors {
            if found.base.is_some_and(|base| *seq < base.seq) {
                continue;
            }
            match hash_at(self.connection, found, *seq)? {
                Some(kept) if kept == *hash => {}
                Some(_) => {
                    let detail = "the frame is not the one that was anchored";
                    self.find(stream, Some(*seq), FindingKind::AnchorMismatch, detail);
                }
                None => {
                    let last = found.head.map_or_else(|| "nothing".to_owned(), |head| head.seq.to_string());
                    let detail = format!("this frame was anchored, but the stream ends at {last}");
                    self.find(stream, Some(*seq), FindingKind::TailCut, detail);
                }
            }
        }
        Ok(())
    }

    fn deliveries(&mut self, stream: &StreamId, found: &FoundStream) -> rusqlite::Result<()> {
        let mut select = self.connection.prepare_cached(
            "SELECT DISTINCT seq FROM deliveries WHERE stream = ?1 AND (seq < ?2 OR NOT EXISTS (
                 SELECT 1 FROM frames WHERE frames.stream = ?1 AND frames.seq = deliveries.seq))",
        )?;
        let mut rows = select.query(params![found.key, rows::place(found.first())])?;
        while let Some(row) = rows.next()? {
            let seq = row.get::<_, Unsigned>(0).ok().map(|seq| Seq(seq.0));
            let detail = "it is owed to a subscriber, but it is not there";
            self.find(stream, seq, FindingKind::DeliveryMismatch, detail);
        }
        Ok(())
    }

    fn snapshot(&mut self, stream: &StreamId, found: &FoundStream) {
        let snapshot = match read_snapshot(self.connection, found.key, stream) {
            Ok(Some(snapshot)) => snapshot,
            Ok(None) => return,
            Err(error) => {
                self.find(stream, None, FindingKind::SnapshotDamaged, error.to_string());
                return;
            }
        };
        let seq = snapshot.reference.seq;
        match hash_at(self.connection, found, seq) {
            Ok(Some(hash)) if hash == snapshot.reference.hash => {}
            Ok(_) => {
                let detail = "no frame of the stream has this place and hash";
                self.find(stream, Some(seq), FindingKind::SnapshotMismatch, detail);
            }
            Err(error) => self.damaged(stream, error),
        }
        match snapshot.state {
            Err(why) => self.find(stream, Some(seq), FindingKind::SnapshotDamaged, why),
            Ok(state) => self.snapshot_references(stream, found.key, seq, &blobs::mentions(&state)),
        }
    }

    fn snapshot_references(&mut self, stream: &StreamId, key: i64, seq: Seq, mentions: &[Digest]) {
        for digest in mentions {
            if !matches!(self.blob(*digest), BlobState::Whole) {
                let detail = format!("the snapshot mentions blob {digest}, which is gone or damaged");
                self.find(stream, Some(seq), FindingKind::SnapshotDamaged, detail);
            }
        }
        let recorded = || -> rusqlite::Result<Vec<Digest>> {
            let select = "SELECT digest FROM snapshot_refs WHERE stream = ? ORDER BY digest";
            let mut select = self.connection.prepare_cached(select)?;
            select.query_map([key], |row| row.get::<_, Bytes32>(0).map(|digest| digest.0))?.collect()
        };
        match recorded() {
            Ok(recorded) if recorded == mentions => {}
            Ok(_) => {
                let detail = "the snapshot's references are not what is on record";
                self.find(stream, Some(seq), FindingKind::ReferenceMismatch, detail);
            }
            Err(error) => self.damaged(stream, error),
        }
    }

    fn objects(&mut self) {
        let system = StreamId::system();
        let connection = self.connection;
        let mut check = || -> rusqlite::Result<()> {
            let mut select = connection.prepare("SELECT digest, size, data FROM objects")?;
            let mut rows = select.query([])?;
            while let Some(row) = rows.next()? {
                let Ok(Bytes32(digest)) = row.get(0) else {
                    self.find(&system, None, FindingKind::ObjectDamaged, "an object without a digest");
                    continue;
                };
                let unpacked = match (row.get(1), row.get_ref(2)?.as_blob()) {
                    (Ok(size), Ok(data)) => blobs::unpack(digest, size, data).map(drop),
                    _ => Err("a column has the wrong type".to_owned()),
                };
                if let Err(why) = unpacked {
                    self.find(&system, None, FindingKind::ObjectDamaged, format!("object {digest}: {why}"));
                }
            }
            Ok(())
        };
        if let Err(error) = check() {
            self.damaged(&system, error);
        }
    }
}

fn text(value: ValueRef<'_>) -> Option<&[u8]> {
    value.as_bytes().ok()
}
