//! Removes objects that nothing refers to.
//!
//! An object is named by its digest in hexadecimal, anywhere: in a frame's body or source, in a snapshot, in another
//! object that is itself named. Looking for names takes as long as reading the log, so it is done on a reader's
//! connection; the writer only looks at what was added since.

use std::collections::{HashMap, HashSet};

use holdfast_contract::digest::Digest;
use holdfast_contract::problem::Problem;
use rusqlite::{Connection, params};

use crate::failure;
use crate::store::Store;
use crate::tables::blobs;
use crate::tables::rows::Bytes32;

impl Store {
    /// Removes the objects that no kept frame, snapshot or named object mentions. One that was put since the log was opened
    /// stays. To be called after a round of [`Store::collect`]; returns how many went.
    pub fn sweep(&self) -> Result<u64, Problem> {
        let marks = self.inner.readers.with(|connection| {
            let moment = connection.unchecked_transaction().map_err(|error| failure::reading(&error))?;
            let mut marks = Marks::new(&moment).map_err(|error| failure::reading(&error))?;
            marks.look(&moment).map_err(|error| failure::reading(&error))?;
            Ok(marks)
        })?;
        if marks.unnamed.is_empty() {
            return Ok(0);
        }
        self.on_writer(move |writer| {
            let mut marks = marks;
            marks.look(&writer.connection).map_err(|error| failure::reading(&error))?;
            marks.unnamed.retain(|digest| !writer.fresh_objects.contains(digest));
            writer.in_transaction(|writer| {
                let mut delete = writer
                    .connection
                    .prepare_cached("DELETE FROM objects WHERE digest = ?")
                    .map_err(write)?;
                let mut deleted = 0;
                for digest in &marks.unnamed {
                    deleted += delete.execute([digest.as_bytes()]).map_err(write)? as u64;
                }
                Ok(deleted)
            })
        })
    }
}

fn write(error: rusqlite::Error) -> Problem {
    failure::writing(&error)
}

/// What has been looked at, and what was not yet named there.
struct Marks {
    unnamed: HashSet<Digest>,
    /// Up to where each stream was read.
    seen: HashMap<i64, i64>,
}

impl Marks {
    fn new(connection: &Connection) -> rusqlite::Result<Self> {
        let mut select = connection.prepare("SELECT digest FROM objects")?;
        let unnamed = select.query_map([], |row| row.get::<_, Bytes32>(0).map(|digest| digest.0))?;
        Ok(Self { unnamed: unnamed.collect::<rusqlite::Result<_>>()?, seen: HashMap::new() })
    }

    /// Looks at everything that was written since the last look.
    fn look(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let mut named = Vec::new();
        let mut streams = connection.prepare("SELECT id FROM streams")?;
        let streams: Vec<i64> = streams.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
        for stream in streams {
            self.look_at_stream(connection, stream, &mut named)?;
        }
        let mut snapshots = connection.prepare("SELECT digest, size, data FROM snapshots")?;
        let mut rows = snapshots.query([])?;
        while let Some(row) = rows.next()? {
            let digest = row.get::<_, Bytes32>(0)?.0;
            if let Ok(state) = blobs::unpack(digest, row.get(1)?, row.get_ref(2)?.as_blob()?) {
                self.look_into(&state, &mut named);
            }
        }
        // What is named names others in its turn.
        while let Some(digest) = named.pop() {
            let select = "SELECT size, data FROM objects WHERE digest = ?";
            if let Some(Ok(bytes)) = blobs::read_packed(connection, select, digest)? {
                self.look_into(&bytes, &mut named);
            }
        }
        Ok(())
    }

    fn look_at_stream(
        &mut self,
        connection: &Connection,
        stream: i64,
        named: &mut Vec<Digest>,
    ) -> rusqlite::Result<()> {
        let mut select = connection.prepare_cached(
            "SELECT seq, source, body, body_digest, erased_at IS NULL FROM frames
             WHERE stream = ? AND seq > ? ORDER BY seq",
        )?;
        let mut last = self.seen.get(&stream).copied().unwrap_or(-1);
        let mut rows = select.query(params![stream, last])?;
        while let Some(row) = rows.next()? {
            last = row.get(0)?;
            self.look_into(row.get_ref(1)?.as_bytes()?, named);
            match row.get_ref(2)?.as_blob_or_null()? {
                Some(body) => self.look_into(body, named),
                None if row.get(4)? => {
                    if let Some(Ok(body)) = blobs::read(connection, row.get::<_, Bytes32>(3)?.0)? {
                        self.look_into(&body, named);
                    }
                }
                None => {}
            }
        }
        self.seen.insert(stream, last);
        Ok(())
    }

    /// Removes every digest that occurs in the bytes from the list of unreferenced ones.
    fn look_into(&mut self, bytes: &[u8], named: &mut Vec<Digest>) {
        let is_hex = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        for run in bytes.split(|byte| !is_hex(byte)).filter(|run| run.len() == 64) {
            let digest = std::str::from_utf8(run).ok().and_then(Digest::parse);
            named.extend(digest.filter(|digest| self.unnamed.remove(digest)));
        }
    }
}
