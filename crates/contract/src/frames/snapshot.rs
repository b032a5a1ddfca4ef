//! A machine's state at one frame. A cache that makes resuming short, never the truth: it can be thrown away and rebuilt.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::ids::{Seq, StreamId};

/// What identifies a snapshot: its place in the chain and the digest of the state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SnapshotRef {
    /// The stream.
    pub stream: StreamId,
    /// The last frame that the state includes.
    pub seq: Seq,
    /// That frame's hash.
    pub hash: Digest,
    /// The version of the machine's state.
    pub kernel: u32,
    /// The digest of the state's canonical JSON.
    pub digest: Digest,
}
