//! Finds one frame in a log without reading all of it: from the end, a few hundred frames at a time. What is looked for is nearly
//! always among the last.

use holdfast_contract::frame::Frame;
use holdfast_contract::ids::{Seq, StreamId};
use holdfast_contract::problem::Problem;
use holdfast_store::Store;

/// Frames that are read at a time.
const CHUNK: u64 = 256;

/// The last frame before this one that matches.
pub(crate) fn find_last_before(
    store: &Store,
    stream: &StreamId,
    before: Seq,
    matches: impl Fn(&Frame) -> bool,
) -> Result<Option<Frame>, Problem> {
    let Some(head) = store.head(stream)? else { return Ok(None) };
    let mut end = before.min(head.seq.next());
    while end > Seq(0) {
        let from = Seq(end.0.saturating_sub(CHUNK));
        let frames = store.frames(stream, from..end)?;
        // Older frames were collected.
        if frames.is_empty() {
            break;
        }
        if let Some(found) = frames.into_iter().rev().find(&matches) {
            return Ok(Some(found));
        }
        end = from;
    }
    Ok(None)
}
