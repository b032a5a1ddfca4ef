//! A frame as a row: how a sealed one is written, and how one is read back with every column checked.

use holdfast_contract::body::FrameKind;
use holdfast_contract::digest::Digest;
use holdfast_contract::frame::{Envelope, Frame, Tombstone};
use holdfast_contract::ids::{Millis, Seq, StreamId};
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ValueRef};
use rusqlite::{Connection, Row, params};
use serde_json::Value;

use crate::write::atomic_append::Prepared;
use crate::write::seal::Sealed;

/// The columns that [`Stored::read`] expects, in order.
pub(crate) const COLUMNS: &str =
    "seq, at, kind, source, cause, body, body_digest, prev, hash, erased_at, erased_reason";

/// Writes a frame's row. A body that is kept as a blob is not part of it.
pub(crate) fn insert(
    connection: &Connection,
    stream: i64,
    sealed: &Sealed,
    body_is_blob: bool,
) -> rusqlite::Result<()> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO frames (stream, seq, at, kind, source, cause, body, body_digest, prev, hash)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )?;
    let Envelope { seq, at, kind, cause, body_digest, prev, .. } = &sealed.envelope;
    insert.execute(params![
        stream,
        place(*seq),
        bounded(at.0),
        kind.as_str(),
        sealed.source,
        cause.map(place),
        (!body_is_blob).then_some(&sealed.body),
        body_digest.as_bytes(),
        prev.as_bytes(),
        sealed.hash.as_bytes(),
    ])?;
    Ok(())
}

/// A row as it was found. `source` and `kind` have been parsed, the body has not.
pub(crate) struct Stored {
    pub(crate) envelope: Envelope,
    pub(crate) hash: Digest,
    pub(crate) body: StoredBody,
}

/// Where a frame's body is.
pub(crate) enum StoredBody {
    Inline(Vec<u8>),
    /// In the blob of the body's digest.
    Blob,
    Erased(Tombstone),
}

impl Stored {
    /// Reads a row of [`COLUMNS`]. The error names the column that cannot be used.
    pub(crate) fn read(stream: &StreamId, row: &Row<'_>) -> Result<Self, String> {
        let kind: String = column(row, 2)?;
        let source: String = column(row, 3)?;
        let envelope = Envelope {
            stream: stream.clone(),
            seq: Seq(column::<Unsigned>(row, 0)?.0),
            at: Millis(column::<Unsigned>(row, 1)?.0),
            kind: FrameKind::parse(&kind).ok_or_else(|| format!("no frame is of kind `{kind}`"))?,
            source: serde_json::from_str(&source).map_err(|error| format!("source: {error}"))?,
            cause: column::<Option<Unsigned>>(row, 4)?.map(|cause| Seq(cause.0)),
            body_digest: column::<Bytes32>(row, 6)?.0,
            prev: column::<Bytes32>(row, 7)?.0,
        };
        let tombstone = match (column::<Option<Unsigned>>(row, 9)?, column::<Option<String>>(row, 10)?) {
            (None, None) => None,
            (Some(at), Some(reason)) => Some(Tombstone { at: Millis(at.0), reason }),
            _ => return Err("half a tombstone".to_owned()),
        };
        let body = match (column::<Option<Vec<u8>>>(row, 5)?, tombstone) {
            (Some(body), None) => StoredBody::Inline(body),
            (None, None) => StoredBody::Blob,
            (None, Some(tombstone)) => StoredBody::Erased(tombstone),
            (Some(_), Some(_)) => return Err("a tombstone beside a body".to_owned()),
        };
        Ok(Self { envelope, hash: column::<Bytes32>(row, 8)?.0, body })
    }

    /// The frame, with its body's bytes loaded unless it was erased.
    pub(crate) fn into_frame(self, body: Option<Value>) -> Frame {
        let erased = match self.body {
            StoredBody::Erased(tombstone) => Some(tombstone),
            StoredBody::Inline(_) | StoredBody::Blob => None,
        };
        Frame { envelope: self.envelope, body, erased, hash: self.hash }
    }
}

/// Stored bytes as JSON.
pub(crate) fn json(bytes: &[u8]) -> Result<Value, String> {
    serde_json::from_slice(bytes).map_err(|error| error.to_string())
}

/// Whether SQLite can keep the frame's numbers.
pub(crate) fn fits(frame: &Prepared) -> bool {
    let cause = frame.cause.unwrap_or_default();
    [frame.seq.0, frame.at.0, cause.0].iter().all(|number| i64::try_from(*number).is_ok())
}

/// A number as SQLite keeps it. No stored one is larger than the bound, so as a limit in a query the bound means the same.
pub(crate) fn bounded(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A sequence number as SQLite stores it.
pub(crate) fn place(seq: Seq) -> i64 {
    bounded(seq.0)
}

fn column<T: FromSql>(row: &Row<'_>, index: usize) -> Result<T, String> {
    row.get(index).map_err(|error| error.to_string())
}

/// A digest in a column.
pub(crate) struct Bytes32(pub(crate) Digest);

impl FromSql for Bytes32 {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        <[u8; 32]>::column_result(value).map(|bytes| Self(Digest::from_bytes(bytes)))
    }
}

/// A count in a column.
pub(crate) struct Unsigned(pub(crate) u64);

impl FromSql for Unsigned {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let value = i64::column_result(value)?;
        u64::try_from(value).map(Self).map_err(|_| FromSqlError::OutOfRange(value))
    }
}
