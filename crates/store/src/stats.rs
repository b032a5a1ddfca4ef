//! Counters that tests, benches and `holdfast log stats` read.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

macro_rules! counters {
    ($($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// What the store has done since it was opened.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
        #[non_exhaustive]
        pub struct Stats { $($(#[doc = $doc])+ pub $name: u64,)+ }

        #[derive(Default)]
        pub(crate) struct Counters { $(pub(crate) $name: Counter,)+ }

        impl Counters {
            pub(crate) fn read(&self) -> Stats {
                Stats { $($name: self.$name.0.load(Ordering::Relaxed),)+ }
            }
        }
    };
}

counters! {
    /// Transactions committed. All are synced but those that only keep a snapshot.
    commits,
    /// Transactions that failed and were rolled back.
    failed_commits,
    /// Frames written.
    frames,
    /// Frame rows read.
    rows_read,
    /// Blobs written; one that is already there is not written again.
    blobs,
    /// Bytes of those blobs.
    blob_bytes,
    /// Bytes they take up compressed.
    blob_bytes_stored,
    /// Objects written.
    objects,
    /// Snapshots written.
    snapshots,
    /// Snapshots that could not be written or used. They are a cache, so this has no other effect.
    snapshots_skipped,
    /// Times the write-ahead log was copied into the database file.
    checkpoints,
    /// Times that failed; it is tried again.
    failed_checkpoints,
}

#[derive(Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }
}
