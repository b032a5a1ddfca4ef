//! The findings of `verify`, with stable names.

use holdfast_contract::ids::{Seq, StreamId};
use serde::{Serialize, Serializer};

/// One thing that is wrong with the log.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LogFinding {
    /// The stream; `system` for what belongs to none.
    pub stream: StreamId,
    /// The frame, where one can be named.
    pub seq: Option<Seq>,
    /// What is wrong.
    pub kind: FindingKind,
    /// The message, with what was expected and what was found.
    pub detail: String,
}

impl std::fmt::Display for LogFinding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.stream)?;
        if let Some(seq) = self.seq {
            write!(f, "/{seq}")?;
        }
        write!(f, ": {}: {}", self.kind.as_str(), self.detail)
    }
}

macro_rules! findings {
    ($($(#[doc = $doc:literal])+ $wire:literal $name:ident;)+) => {
        /// What can be wrong with the log.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum FindingKind { $($(#[doc = $doc])+ $name,)+ }

        impl FindingKind {
            /// Every kind.
            pub const ALL: &'static [FindingKind] = &[$(FindingKind::$name,)+];

            /// The kind as it is written.
            pub fn as_str(self) -> &'static str {
                match self { $(FindingKind::$name => $wire,)+ }
            }

            /// What the kind means.
            pub fn describe(self) -> &'static str {
                match self { $(FindingKind::$name => concat!($($doc),+).trim_ascii(),)+ }
            }
        }
    };
}

findings! {
    /// SQLite itself finds the file damaged.
    "database_damaged" DatabaseDamaged;
    /// Frames that were acknowledged are not in the log: the database or its write-ahead log was cut, or replaced by an older one.
    "log_cut" LogCut;
    /// A row has a column that cannot be read as what it should be.
    "row_unreadable" RowUnreadable;
    /// A stream that the system stream knows is gone.
    "stream_missing" StreamMissing;
    /// Frames are missing from the middle or the beginning of a stream.
    "frame_missing" FrameMissing;
    /// A stream ends before a head that the system stream has anchored.
    "tail_cut" TailCut;
    /// A stream's earlier frames were deleted without a checkpoint.
    "collection_unrecorded" CollectionUnrecorded;
    /// A frame does not continue from the one before it.
    "chain_broken" ChainBroken;
    /// A frame's hash is not that of its envelope.
    "hash_mismatch" HashMismatch;
    /// A frame is not the one that the system stream has anchored.
    "anchor_mismatch" AnchorMismatch;
    /// A body is not the one that the frame was written with.
    "body_mismatch" BodyMismatch;
    /// A body is missing and has no tombstone.
    "body_missing" BodyMissing;
    /// A body does not fit its frame's kind.
    "body_unreadable" BodyUnreadable;
    /// A tombstone without a recorded erasure.
    "erasure_unrecorded" ErasureUnrecorded;
    /// A blob that a frame refers to is gone.
    "blob_missing" BlobMissing;
    /// A blob's data is not what was written.
    "blob_damaged" BlobDamaged;
    /// The list of who refers to which blob is not what the frames say.
    "reference_mismatch" ReferenceMismatch;
    /// A row of the bus belongs to no event or subscriber, or cannot be read.
    "delivery_mismatch" DeliveryMismatch;
    /// A snapshot belongs to no frame of its stream.
    "snapshot_mismatch" SnapshotMismatch;
    /// A snapshot is not what was written.
    "snapshot_damaged" SnapshotDamaged;
    /// An object's data is not what was written.
    "object_damaged" ObjectDamaged;
}

impl Serialize for FindingKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
