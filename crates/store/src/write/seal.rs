//! Sealing a frame: its source's canonical form, its envelope's hash and the link to the previous frame.
//!
//! The envelope's canonical JSON is assembled from parts that are already canonical: measured against the general writer, 0.15 µs
//! instead of 3 µs for each frame. The result must equal [`Envelope::hash`], which `verify` uses; a test compares the two.

use std::sync::Arc;

use holdfast_contract::digest::{Digest, MAX_EXACT_INTEGER, NotCanonical, canonical};
use holdfast_contract::frame::{Envelope, FrameSource};
use holdfast_contract::ids::StreamId;
use serde::Serialize;

use crate::write::atomic_append::{Prepared, PreparedBody};

/// Sources whose canonical form is cached. A session's frames have only a few different ones.
const MAX_CACHED_SOURCES: usize = 16;

/// A frame that is ready to be written.
pub(crate) struct Sealed {
    pub(crate) envelope: Envelope,
    pub(crate) hash: Digest,
    /// The source's canonical JSON.
    pub(crate) source: Arc<str>,
    /// The body's canonical JSON.
    pub(crate) body: Vec<u8>,
}

/// The writer's sealer, with its caches.
#[derive(Default)]
pub(crate) struct Sealer {
    sources: Vec<(FrameSource, Arc<str>)>,
    envelope: Vec<u8>,
}

impl Sealer {
    /// Appends a frame to the chain.
    pub(crate) fn seal(
        &mut self,
        stream: &StreamId,
        prev: Digest,
        frame: Prepared,
    ) -> Result<Sealed, NotCanonical> {
        let Prepared { seq, at, source, cause, body } = frame;
        let PreparedBody { kind, json: body, digest: body_digest, large: _ } = body;
        let source_json = self.source(&source)?;
        let envelope = Envelope { stream: stream.clone(), seq, at, kind, source, cause, body_digest, prev };
        let hash = match self.write_envelope(&envelope, &source_json) {
            Some(bytes) => Digest::of(bytes),
            None => envelope.hash()?,
        };
        Ok(Sealed { envelope, hash, source: source_json, body })
    }

    fn source(&mut self, source: &FrameSource) -> Result<Arc<str>, NotCanonical> {
        if let Some((_, json)) = self.sources.iter().find(|(known, _)| known == source) {
            return Ok(Arc::clone(json));
        }
        let json: Arc<str> = String::from_utf8_lossy(&canonical(source)?).into();
        if self.sources.len() == MAX_CACHED_SOURCES {
            self.sources.remove(0);
        }
        self.sources.push((source.clone(), Arc::clone(&json)));
        Ok(json)
    }

    /// The envelope's canonical JSON, its fields in the order of their names; nothing where a number needs the general way.
    fn write_envelope(&mut self, envelope: &Envelope, source_json: &str) -> Option<&[u8]> {
        let Envelope { stream, seq, at, kind, source: _, cause, body_digest, prev } = envelope;
        if seq.0.max(at.0).max(cause.map_or(0, |cause| cause.0)) > MAX_EXACT_INTEGER {
            return None;
        }
        let out = &mut self.envelope;
        out.clear();
        field(out, r#"{"at":"#, at)?;
        out.extend_from_slice(br#","body_digest":""#);
        out.extend_from_slice(&body_digest.hex());
        field(out, r#"","cause":"#, cause)?;
        out.extend_from_slice(br#","kind":""#);
        out.extend_from_slice(kind.as_str().as_bytes());
        out.extend_from_slice(br#"","prev":""#);
        out.extend_from_slice(&prev.hex());
        field(out, r#"","seq":"#, seq)?;
        out.extend_from_slice(br#","source":"#);
        out.extend_from_slice(source_json.as_bytes());
        field(out, r#","stream":"#, stream)?;
        out.push(b'}');
        Some(out)
    }
}

/// A field after its name. Whole numbers and strings are written alike by serde_json and in RFC 8785.
fn field(out: &mut Vec<u8>, name: &str, value: &impl Serialize) -> Option<()> {
    out.extend_from_slice(name.as_bytes());
    serde_json::to_writer(out, value).ok()
}

#[cfg(test)]
#[path = "seal_tests.rs"]
mod tests;
