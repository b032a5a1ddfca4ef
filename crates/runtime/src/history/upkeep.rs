//! Upkeep: erasing content and collecting old frames, here of a log without a writer, and through [`crate::Runtime`] of one
//! that is in use. Both are facts of the system stream first,
//! durably, and done afterwards, so that a missing body or a missing beginning always has its record.

use holdfast_contract::body::Body;
use holdfast_contract::digest::canonical;
use holdfast_contract::effect::Input;
use holdfast_contract::frame::{FrameSource, Tombstone};
use holdfast_contract::ids::{Seq, StreamId};
use holdfast_contract::problem::{Code, Problem};
use holdfast_contract::system_frames::{LogCheckpointed, LogErased};
use holdfast_kernel::{Session, System};
use holdfast_store::{Collected, Retention, Store};

use super::rebuild::rebuild;
use crate::clock::Clock;

/// Erases the content of a session's frames. The frames stay, with tombstones, and the chain stays whole. Gives the number of
/// bodies that went.
pub fn erase(store: &Store, clock: &dyn Clock, stream: &StreamId, reason: &str) -> Result<u64, Problem> {
    let erased = to_erase(store, stream, reason)?;
    record(store, clock, erased.clone().into())?;
    erase_now(store, clock, &erased)
}

/// What is to be recorded before a session's content is erased.
pub(crate) fn to_erase(store: &Store, stream: &StreamId, reason: &str) -> Result<LogErased, Problem> {
    if stream.is_system() {
        let problem = Problem::new(Code::UsageInvalid, "the system stream cannot be erased");
        return Err(problem.help("It anchors every session; name a session instead."));
    }
    if !stream.is_session() {
        let problem = Problem::new(Code::UsageInvalid, "the events of the bus cannot be erased");
        return Err(problem.help("They are removed by `log gc` once they are delivered."));
    }
    let head = store.head(stream)?.ok_or_else(|| missing(stream))?;
    Ok(LogErased { stream: stream.clone(), from: Seq(0), to: head.seq, reason: reason.to_owned() })
}

/// Erases what was recorded.
pub(crate) fn erase_now(store: &Store, clock: &dyn Clock, erased: &LogErased) -> Result<u64, Problem> {
    let LogErased { stream, from, to, reason } = erased;
    store.erase(stream, *from, *to, Tombstone { at: clock.now(), reason: reason.clone() })
}

/// Collects the frames of a session that are past its retention. Gives nothing if none are.
pub fn collect(
    store: &Store,
    clock: &dyn Clock,
    stream: &StreamId,
    retention: Retention,
) -> Result<Option<Collected>, Problem> {
    let Some(checkpoint) = to_collect(store, clock, stream, retention)? else { return Ok(None) };
    record(store, clock, checkpoint.clone().into())?;
    store.collect(stream, checkpoint.seq).map(Some)
}

/// What is to be recorded before frames are collected; nothing if none are past their retention.
pub(crate) fn to_collect(
    store: &Store,
    clock: &dyn Clock,
    stream: &StreamId,
    retention: Retention,
) -> Result<Option<LogCheckpointed>, Problem> {
    if stream.is_system() {
        let problem = Problem::new(Code::UsageInvalid, "the system stream is collected by its owner only");
        return Err(problem.help("Run `holdfast log gc system`."));
    }
    let Some(last) = store.collectable(stream, retention, clock.now())? else { return Ok(None) };
    // The bus has no state machine: it resumes from its rows.
    if stream.is_session() {
        keep_resumable(store, stream, last.seq)?;
    }
    Ok(Some(LogCheckpointed { stream: stream.clone(), seq: last.seq, hash: last.hash }))
}

/// Ensures that a session can be resumed without the removed frames: it needs a snapshot at the last of them or later.
fn keep_resumable(store: &Store, stream: &StreamId, last: Seq) -> Result<(), Problem> {
    if store.latest_snapshot(stream)?.is_some_and(|(reference, _)| reference.seq >= last) {
        return Ok(());
    }
    let log = store.stream(stream)?;
    let rebuilt = rebuild::<Session>(store, stream)?;
    log.append(rebuilt.missing)?;
    let session = rebuilt.machine;
    let head = Seq(session.next_seq().0.saturating_sub(1));
    let write = move || canonical(&session).map_err(|error| Problem::new(Code::Internal, error.to_string()));
    log.snapshot(head, Session::STATE_VERSION, Box::new(write));
    store.flush()
}

/// Records a fact in the system stream and waits until it is on disk.
fn record(store: &Store, clock: &dyn Clock, body: Body) -> Result<(), Problem> {
    let stream = StreamId::system();
    let log = store.stream(&stream)?;
    let rebuilt = rebuild::<System>(store, &stream)?;
    log.append(rebuilt.missing)?;
    let mut system = rebuilt.machine;
    let effects = system.step(Input { at: clock.now(), source: FrameSource::Host, cause: None, body })?;
    log.append(effects.frames)?;
    log.wait_durable(Seq(system.next_seq().0.saturating_sub(1)))
}

fn missing(stream: &StreamId) -> Problem {
    Problem::new(Code::StoreMissing, format!("there is no session `{stream}`"))
}
