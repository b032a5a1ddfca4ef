//! What a session began with: its first frame, which retention may collect.

use holdfast_contract::body::{Body, FrameKind};
use holdfast_contract::ids::{Seq, StreamId};
use holdfast_contract::problem::{Code, Problem};
use holdfast_contract::session_frames::SessionStarted;
use holdfast_kernel::Session;
use holdfast_store::Store;
use serde_json::Value;

use super::rebuild::from_snapshot;
use crate::runtime::Inner;

/// The body of a session's first frame as it is stored, or, once that frame was collected, as the session's snapshot has it, with the
/// models that the session uses now. `null` if it was erased; none if there is no such session.
pub fn recorded_start(store: &Store, session: &StreamId) -> Result<Option<Value>, Problem> {
    if let Some(first) = store.frames(session, Seq(0)..=Seq(0))?.pop() {
        return Ok(Some(first.body.unwrap_or_default()));
    }
    let Some((machine, _)) = from_snapshot::<Session>(store, session)? else { return Ok(None) };
    let start = serde_json::to_value(machine.beginning());
    start.map(Some).map_err(|error| Problem::new(Code::Internal, error.to_string()))
}

/// What a session began with; none if there is no such session.
pub(crate) fn session_start(store: &Store, session: &StreamId) -> Result<Option<SessionStarted>, Problem> {
    let Some(mut json) = recorded_start(store, session)? else { return Ok(None) };
    if json.is_null() {
        return Err(Problem::new(Code::StoreErased, format!("frame 0 of {session} was erased")));
    }
    let damaged = |why: String| {
        Problem::new(Code::StoreCorrupt, format!("`{session}` does not begin as a session does: {why}"))
    };
    store.load(&mut json, &|| format!("frame 0 of {session}"))?;
    match Body::read(FrameKind::SessionStarted, json) {
        Ok(Body::SessionStarted(started)) => Ok(Some(started)),
        Ok(other) => Err(damaged(format!("it has {}", other.kind()))),
        Err(error) => Err(damaged(error.to_string())),
    }
}

impl Inner {
    /// What a session began with.
    pub(crate) fn session_start(&self, session: &StreamId) -> Result<SessionStarted, Problem> {
        if let Some(started) = session_start(&self.store, session)? {
            return Ok(started);
        }
        // It was opened just now.
        self.store.flush()?;
        let missing = || Problem::new(Code::StoreMissing, format!("there is no session `{session}`"));
        session_start(&self.store, session)?.ok_or_else(missing)
    }
}
