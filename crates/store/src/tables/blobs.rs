//! Content-addressed data: packed with zstd, stored once, counted by the frames and snapshots that refer to it.
//!
//! Unpacked data is checked against its length and digest, so damaged data is never returned.

use std::cell::RefCell;

use holdfast_contract::body::{Body, FrameKind};
use holdfast_contract::content::load_references;
use holdfast_contract::digest::Digest;
use holdfast_contract::problem::Problem;
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::Value;
use zstd::bulk::{Compressor, Decompressor};

use crate::failure;
use crate::stats::Counters;

/// The compression level of zstd.
const COMPRESSION_LEVEL: i32 = 3;
/// The longest row that SQLite stores.
const MAX_BLOB_BYTES: u64 = 1_000_000_000;

/// The writer's compressor, with its buffers kept between uses.
pub(crate) struct Packer(Compressor<'static>);

impl Packer {
    pub(crate) fn new() -> Result<Self, Problem> {
        Compressor::new(COMPRESSION_LEVEL).map(Self).map_err(|error| failure::unpackable(&error))
    }

    pub(crate) fn pack(&mut self, bytes: &[u8]) -> Result<Vec<u8>, Problem> {
        self.0.compress(bytes).map_err(|error| failure::unpackable(&error))
    }
}

thread_local! {
    /// A reader's decompressor, with its buffers kept between uses.
    static UNPACKER: RefCell<Option<Decompressor<'static>>> = RefCell::new(Decompressor::new().ok());
}

/// Decompresses data and checks it. The error tells why it cannot be used.
pub(crate) fn unpack(digest: Digest, size: i64, data: &[u8]) -> Result<Vec<u8>, String> {
    let size = u64::try_from(size).ok().filter(|size| *size <= MAX_BLOB_BYTES).ok_or("invalid length")?;
    let room = usize::try_from(size).map_err(|error| error.to_string())?;
    let unpacked = UNPACKER.with_borrow_mut(|unpacker| Some(unpacker.as_mut()?.decompress(data, room)));
    let bytes = unpacked.ok_or("no decompressor could be allocated")?.map_err(|error| error.to_string())?;
    if bytes.len() as u64 != size {
        return Err(format!("expected {size} bytes, found {}", bytes.len()));
    }
    let found = Digest::of(&bytes);
    if found != digest {
        return Err(format!("digest mismatch: the bytes have the digest {found}"));
    }
    Ok(bytes)
}

/// Stores a blob unless it exists.
pub(crate) fn put(
    connection: &Connection,
    packer: &mut Packer,
    counters: &Counters,
    digest: Digest,
    bytes: &[u8],
) -> Result<(), Problem> {
    let write = |error| failure::writing(&error);
    if exists(connection, digest).map_err(write)? {
        return Ok(());
    }
    let data = packer.pack(bytes)?;
    let mut insert = connection
        .prepare_cached("INSERT INTO blobs (digest, size, data) VALUES (?, ?, ?)")
        .map_err(write)?;
    insert.execute(params![digest.as_bytes(), bytes.len() as i64, data]).map_err(write)?;
    counters.blobs.add(1);
    counters.blob_bytes.add(bytes.len() as u64);
    counters.blob_bytes_stored.add(data.len() as u64);
    Ok(())
}

pub(crate) fn exists(connection: &Connection, digest: Digest) -> rusqlite::Result<bool> {
    connection.prepare_cached("SELECT 1 FROM blobs WHERE digest = ?")?.exists([digest.as_bytes()])
}

/// A blob's bytes. The inner error says why the stored data cannot be used.
pub(crate) fn read(
    connection: &Connection,
    digest: Digest,
) -> rusqlite::Result<Option<Result<Vec<u8>, String>>> {
    read_packed(connection, "SELECT size, data FROM blobs WHERE digest = ?", digest)
}

/// The same for any table of packed data.
pub(crate) fn read_packed(
    connection: &Connection,
    select: &str,
    digest: Digest,
) -> rusqlite::Result<Option<Result<Vec<u8>, String>>> {
    let mut select = connection.prepare_cached(select)?;
    let found = select.query_row([digest.as_bytes()], |row| {
        Ok(match (row.get(0), row.get_ref(1)?.as_blob()) {
            (Ok(size), Ok(data)) => unpack(digest, size, data),
            _ => Err("a column has the wrong type".to_owned()),
        })
    });
    found.optional()
}

/// The blobs that the pieces of a stored body are kept in. An error says why the body cannot be read as of this kind.
pub(crate) fn references(kind: FrameKind, mut body: Value) -> Result<Vec<Digest>, serde_json::Error> {
    let mut found = Vec::new();
    load_references(&mut body, &mut |blob| {
        found.push(blob.digest);
        Ok::<_, serde_json::Error>(Value::Null)
    })?;
    Body::read(kind, body)?;
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// The blobs that a text in canonical JSON mentions, such as a snapshot's state. Quotes inside a JSON string are escaped, so the
/// pattern matches only an object of this form.
pub(crate) fn mentions(json: &[u8]) -> Vec<Digest> {
    const OPENING: &[u8] = br#"{"blob":{"bytes":"#;
    const DIGEST: &[u8] = br#","digest":""#;
    let mut found = Vec::new();
    let mut rest = json;
    while let Some(place) = rest.windows(OPENING.len()).position(|window| window == OPENING) {
        rest = &rest[place + OPENING.len()..];
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let hex = rest[digits..].strip_prefix(DIGEST).and_then(|tail| tail.get(..64));
        found.extend(hex.and_then(|hex| Digest::parse(std::str::from_utf8(hex).ok()?)));
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Deletes those of the candidates that nothing refers to any more.
pub(crate) fn prune(connection: &Connection, candidates: &[Digest]) -> rusqlite::Result<u64> {
    let mut delete = connection.prepare_cached(
        "DELETE FROM blobs WHERE digest = ?1
         AND NOT EXISTS (SELECT 1 FROM blob_refs WHERE digest = ?1)
         AND NOT EXISTS (SELECT 1 FROM snapshot_refs WHERE digest = ?1)",
    )?;
    let mut deleted = 0;
    for digest in candidates {
        deleted += delete.execute([digest.as_bytes()])? as u64;
    }
    Ok(deleted)
}
