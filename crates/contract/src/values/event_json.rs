//! The canonical JSON of published events, put together from pieces that are already canonical.
//!
//! Events come by the ten thousand a second. A payload has its canonical form already, so that nothing of it is written again: measured
//! against [`crate::digest::canonical`], 0.4 µs instead of 2.0 µs for a small payload and 0.6 µs instead of 7.4 µs for one of 3.5 KB.
//! What is made here must equal it; the tests beside this file compare the two.

use std::io::Write;

use serde::Serialize;

use crate::body::Body;
use crate::content::Content;
use crate::system_frames::EventPublished;

/// The canonical JSON of an event's body; nothing for any other, which goes the general way.
pub(crate) fn canonical(body: &Body) -> Option<Vec<u8>> {
    let Body::EventPublished(EventPublished { topic, payload, key, correlation, idempotency }) = body else {
        return None;
    };
    let mut out = Vec::with_capacity(192 + payload.json().len());
    let mut lead = "{";
    let texts = [("correlation", correlation), ("idempotency", idempotency), ("key", key)]
        .map(|(name, text)| (name, text.as_ref()));
    for (name, text) in texts.into_iter().filter_map(|(name, text)| Some((name, text?))) {
        write!(out, "{lead}\"{name}\":").ok()?;
        string(&mut out, text)?;
        lead = ",";
    }
    write!(out, "{lead}\"payload\":").ok()?;
    content(&mut out, payload)?;
    out.extend_from_slice(b",\"topic\":");
    string(&mut out, topic)?;
    out.push(b'}');
    Some(out)
}

/// A string is escaped alike in serde_json and in RFC 8785.
fn string(out: &mut Vec<u8>, text: &impl Serialize) -> Option<()> {
    serde_json::to_writer(out, text).ok()
}

fn content(out: &mut Vec<u8>, content: &Content) -> Option<()> {
    match content.as_blob() {
        Some((blob, _)) => {
            write!(out, "{{\"blob\":{{\"bytes\":{},\"digest\":\"{}\"}}}}", blob.bytes, blob.digest)
        }
        None => write!(out, "{{\"json\":{}}}", content.json()),
    }
    .ok()
}

#[cfg(test)]
#[path = "event_json_tests.rs"]
mod tests;
