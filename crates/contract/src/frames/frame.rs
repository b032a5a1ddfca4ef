//! The frame: one recorded fact or decision, and its place in a stream's hash chain.
//!
//! The chain runs over the envelope with `body_digest`, not over the body, so a body can be erased and the chain stays whole.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::body::{Body, FrameKind};
use crate::digest::{Digest, NotCanonical};
use crate::ids::{Millis, ModelName, Seq, StreamId};
use crate::registry::ExtensionRef;

/// Who caused a frame.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum FrameSource {
    /// The kernel decided it.
    Kernel,
    /// The runtime around it: timers, schema checks, recovery, upkeep.
    Host,
    /// The policy whose digest this is.
    Policy(Digest),
    /// A surface: `cli`, `web`, `rpc`.
    Surface(Arc<str>),
    /// A model.
    Model(ModelName),
    /// An extension.
    Extension(Arc<ExtensionRef>),
}

/// A frame before it is written: what the kernel hands to the log.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    /// Its place.
    pub seq: Seq,
    /// When, as recorded.
    pub at: Millis,
    /// Who caused it.
    pub source: FrameSource,
    /// The frame it answers.
    pub cause: Option<Seq>,
    /// What it says.
    pub body: Body,
}

/// Everything of a frame that the chain covers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Envelope {
    /// The stream.
    pub stream: StreamId,
    /// Its place: 0, 1, 2 … without gaps.
    pub seq: Seq,
    /// Wall clock in milliseconds, itself recorded.
    pub at: Millis,
    /// What kind of frame.
    pub kind: FrameKind,
    /// Who caused it.
    pub source: FrameSource,
    /// The frame it answers.
    pub cause: Option<Seq>,
    /// blake3 of the body's canonical JSON.
    pub body_digest: Digest,
    /// The hash of the frame before; zeros for the first.
    pub prev: Digest,
}

impl Envelope {
    /// The frame's hash: blake3 of the envelope's canonical JSON.
    pub fn hash(&self) -> Result<Digest, NotCanonical> {
        Digest::of_json(self)
    }
}

/// What became of a body that is no longer there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tombstone {
    /// When it was erased.
    pub at: Millis,
    /// Why.
    pub reason: String,
}

/// A frame as it is stored, printed and exported.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Frame {
    /// What the chain covers.
    #[serde(flatten)]
    pub envelope: Envelope,
    /// The body's canonical JSON, unless it was erased.
    pub body: Option<serde_json::Value>,
    /// The tombstone in its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub erased: Option<Tombstone>,
    /// The hash of the envelope.
    pub hash: Digest,
}
