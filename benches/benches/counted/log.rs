//! Appending to the log: canonical form, hash, chain, row and commit, on the log's own thread.

use holdfast_benches::counted::{Counter, Outcome};
use holdfast_benches::workload::drafts;
use holdfast_contract::ids::Seq;
use holdfast_store::{Store, StoreOptions};

const FRAMES: u64 = 64;

/// 64 frames, appended at once and waited for.
pub(crate) fn append_64(counter: Counter) -> Outcome {
    let folder = tempfile::tempdir()?;
    let store = Store::open(&folder.path().join("holdfast.db"), StoreOptions::default())?;
    let log = store.stream(&"bench".into())?;
    let mut batches: Vec<_> =
        (0..counter.rounds()).map(|round| drafts(round * FRAMES, FRAMES)).rev().collect();
    let mut written = 0;
    counter.measure(|| {
        log.append(batches.pop().ok_or("too few batches")?)?;
        written += FRAMES;
        Ok(log.wait_durable(Seq(written - 1))?)
    })
}
