//! Forking: a session's facts, told to a new session's machine, up to where no turn was running.

use std::ops::ControlFlow;

use holdfast_contract::frame::Draft;
use holdfast_contract::ids::{Seq, StreamId};
use holdfast_contract::problem::{Code, Problem};
use holdfast_kernel::Session;
use holdfast_store::Store;

use super::rebuild::input_of;

/// Copies a session under a new id, up to `last` or the last frame before it at which no turn was running. Gives the number of frames.
pub(crate) fn fork(store: &Store, from: &StreamId, last: Option<Seq>, to: &StreamId) -> Result<Seq, Problem> {
    let refused = |what: String| Problem::new(Code::SessionFork, what);
    if !from.is_session() {
        return Err(refused(format!("`{from}` is not a session, and only sessions can be forked")));
    }
    let log = store.stream(to)?;
    if log.head().is_some() {
        return Err(refused(format!("there is a session `{to}` already")));
    }
    let collected = store.head(from)?.is_some() && store.frames(from, Seq(0)..=Seq(0))?.is_empty();
    if collected {
        let problem =
            refused(format!("the first frames of `{from}` were collected, and a fork repeats them all"));
        return Err(problem.help("Begin a new session, or keep more frames: `retention` in settings.yaml."));
    }
    let mut session = Session::new(to.clone());
    let (mut settled, mut open): (Vec<Draft>, Vec<Draft>) = (Vec::new(), Vec::new());
    store.for_each_frame(from, Seq(0), |frame| {
        if last.is_some_and(|last| frame.envelope.seq > last) {
            return Ok(ControlFlow::Break(()));
        }
        if frame.envelope.kind.origin() == holdfast_contract::body::FrameOrigin::Fact {
            let effects = session.step(input_of(store, &frame)?)?;
            open.extend(effects.frames);
            if !session.is_busy() {
                settled.append(&mut open);
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    let Some(head) = settled.last().map(|draft| draft.seq) else {
        return Err(refused(format!("`{from}` has no frame that a session could begin with")));
    };
    log.append(settled)?;
    log.wait_durable(head)?;
    Ok(head.next())
}
