//! Content-addressed objects that frames name by digest: registries, policies, generations, prompts, settings.
//!
//! References to objects are not counted; [`crate::maintenance::sweep`] searches for them.

use std::sync::Arc;

use holdfast_contract::digest::Digest;
use holdfast_contract::problem::Problem;
use rusqlite::{Connection, params};
use serde::Serialize;

use crate::failure;
use crate::store::Store;
use crate::tables::blobs::{self, Packer};
use crate::write::queue::{Object, QueueEntry};

/// What a content-addressed object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ObjectKind {
    /// The active set at one moment.
    Registry,
    /// A policy in force.
    Policy,
    /// An activated generation of an extension: code, settings and grants.
    Generation,
    /// A prompt.
    Prompt,
    /// Settings in force.
    Settings,
}

impl ObjectKind {
    /// The kind as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Registry => "registry",
            Self::Policy => "policy",
            Self::Generation => "generation",
            Self::Prompt => "prompt",
            Self::Settings => "settings",
        }
    }
}

impl Store {
    /// Queues an object and returns its digest. It is on disk no later than any frame that is appended after it, and can be read
    /// immediately.
    pub fn put(&self, kind: ObjectKind, bytes: Vec<u8>) -> Result<Digest, Problem> {
        let digest = Digest::of(&bytes);
        let bytes: Arc<[u8]> = bytes.into();
        self.inner.shared.pending().insert(digest, Arc::clone(&bytes));
        let handed_over = self.inner.shared.queue.push(QueueEntry::Object(Object { digest, kind, bytes }));
        if handed_over.is_err() {
            self.inner.shared.pending().remove(&digest);
        }
        handed_over.map(|()| digest)
    }

    /// Whether an object is there, on disk or on its way.
    pub fn has_object(&self, digest: Digest) -> Result<bool, Problem> {
        if self.inner.shared.pending().contains_key(&digest) {
            return Ok(true);
        }
        self.inner.readers.with(|connection| {
            let select = connection.prepare_cached("SELECT 1 FROM objects WHERE digest = ?");
            let found = select.and_then(|mut select| select.exists([digest.as_bytes()]));
            found.map_err(|error| failure::reading(&error))
        })
    }

    /// An object's bytes, whether they are on disk yet or not.
    pub fn object(&self, digest: Digest) -> Result<Option<Vec<u8>>, Problem> {
        if let Some(bytes) = self.inner.shared.pending().get(&digest) {
            return Ok(Some(bytes.to_vec()));
        }
        self.inner.readers.with(|connection| {
            let select = "SELECT size, data FROM objects WHERE digest = ?";
            let found =
                blobs::read_packed(connection, select, digest).map_err(|error| failure::reading(&error))?;
            found.transpose().map_err(|why| failure::damaged(format_args!("object {digest}: {why}")))
        })
    }
}

/// Writes an object unless it is there already; says whether it did.
pub(crate) fn write(connection: &Connection, packer: &mut Packer, object: &Object) -> Result<bool, Problem> {
    let write = |error| failure::writing(&error);
    let Object { digest, kind, bytes } = object;
    let mut select = connection.prepare_cached("SELECT 1 FROM objects WHERE digest = ?").map_err(write)?;
    if select.exists([digest.as_bytes()]).map_err(write)? {
        return Ok(false);
    }
    let data = packer.pack(bytes)?;
    let mut insert = connection
        .prepare_cached("INSERT INTO objects (digest, kind, size, data) VALUES (?, ?, ?, ?)")
        .map_err(write)?;
    insert.execute(params![digest.as_bytes(), kind.as_str(), bytes.len() as i64, data]).map_err(write)?;
    Ok(true)
}
