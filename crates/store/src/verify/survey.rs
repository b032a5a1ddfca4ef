//! A survey of the log: what a list of streams is made from, checked without reading every frame.

use holdfast_contract::ids::{Seq, StreamId};
use holdfast_contract::problem::Problem;
use rusqlite::params;

use super::Walk;
use super::finding::{FindingKind, LogFinding};
use crate::failure;
use crate::maintenance::evidence::Proof;
use crate::reader::{FoundStream, find_stream};
use crate::store::Store;
use crate::tables::rows::{self, COLUMNS, Stored, StoredBody, Unsigned};

impl Store {
    /// Checks that every stream is there that was anchored, that it has its anchored frames and as many frames as its places say, and
    /// its frames up to this one and the
    /// erased ones. It reads a bounded part of each stream; [`Store::verify`] reads it all.
    pub fn survey(&self, last: Seq) -> Result<Vec<LogFinding>, Problem> {
        self.inner.readers.with(|connection| {
            let moment = connection.unchecked_transaction().map_err(|error| failure::reading(&error))?;
            let mut walk = Walk::new(&moment, &self.inner.shared.counters);
            walk.read_evidence();
            let mut streams = walk.names();
            streams.extend(walk.evidence.streams.keys().cloned());
            let mut streams: Vec<_> = streams.into_iter().collect();
            streams.sort();
            streams.iter().for_each(|stream| walk.survey(stream, last));
            walk.cut(self.lost_frames());
            Ok(walk.findings)
        })
    }
}

impl Walk<'_> {
    fn survey(&mut self, stream: &StreamId, last: Seq) {
        let proof = self.evidence.streams.remove(stream).unwrap_or_default();
        match find_stream(self.connection, stream) {
            Err(problem) => self.damaged(stream, problem.what),
            Ok(None) => {
                let detail = "the system stream knows it, but it is gone";
                self.find(stream, None, FindingKind::StreamMissing, detail);
            }
            Ok(Some(found)) => {
                self.base(stream, &found, &proof);
                let kept = "SELECT count(*) FROM frames WHERE stream = ? AND seq >= ?";
                let kept =
                    self.connection.query_row(kept, params![found.key, rows::place(found.first())], |row| {
                        row.get::<_, Unsigned>(0).map(|count| count.0)
                    });
                let places = found.head.map_or(0, |head| (head.seq.0 + 1).saturating_sub(found.first().0));
                match kept {
                    Ok(kept) if kept != places => {
                        let detail = format!("{places} frames belong there, {kept} are there");
                        self.find(stream, None, FindingKind::FrameMissing, detail);
                    }
                    Ok(_) => {}
                    Err(error) => self.damaged(stream, error),
                }
                let checked = self.frames(stream, &found, &proof, Some(last));
                let checked = checked.and_then(|()| self.tombstones(stream, &found, &proof, last));
                if let Err(error) = checked.and_then(|()| self.anchors(stream, &found, &proof)) {
                    self.damaged(stream, error);
                }
            }
        }
    }

    /// Checks the erased frames after one.
    fn tombstones(
        &mut self,
        stream: &StreamId,
        found: &FoundStream,
        proof: &Proof,
        after: Seq,
    ) -> rusqlite::Result<()> {
        let select = format!(
            "SELECT {COLUMNS} FROM frames WHERE stream = ? AND seq > ? AND erased_at IS NOT NULL ORDER BY seq"
        );
        let mut select = self.connection.prepare_cached(&select)?;
        let mut rows = select.query(params![found.key, rows::place(after)])?;
        while let Some(row) = rows.next()? {
            let seq = row.get::<_, Unsigned>(0).ok().map(|seq| Seq(seq.0));
            match Stored::read(stream, row) {
                Ok(Stored { envelope, body: StoredBody::Erased(tombstone), .. }) => {
                    self.tombstone(stream, proof, envelope.seq, &tombstone)
                }
                Ok(_) => {}
                Err(why) => self.find(stream, seq, FindingKind::RowUnreadable, why),
            }
        }
        Ok(())
    }
}
