//! Files that a turn has made: what its tools attached to their results, and what the agents made that it called.
//!
//! They are read from the log, where they are, so that they are the same after a restart. Most turns make none, and then nothing is read.

use std::ops::ControlFlow;

use holdfast_contract::body::{Body, FrameKind};
use holdfast_contract::frame::{Draft, Frame};
use holdfast_contract::hook::Artifact;
use holdfast_contract::ids::{Seq, StreamId};
use holdfast_contract::problem::Problem;
use holdfast_contract::session_frames::TurnOutcome;

use crate::history::find_last_before;
use crate::runtime::Inner;

/// Whether frames tell of files, or of an agent that may have made some.
pub(crate) fn may_be_in(frames: &[Draft]) -> bool {
    frames.iter().any(|frame| match &frame.body {
        Body::ToolSettled(settled) => !settled.artifacts.is_empty(),
        Body::ChildOpened(_) => true,
        _ => false,
    })
}

impl Inner {
    /// The files of the turn that this frame ends. What was not answered has none: nobody has judged it to the end.
    pub(crate) fn turn_artifacts(
        &self,
        session: &StreamId,
        ended: Seq,
        outcome: &TurnOutcome,
    ) -> Result<Vec<Artifact>, Problem> {
        let (mut files, mut children) = (Vec::new(), Vec::new());
        if *outcome != TurnOutcome::Answered {
            return Ok(files);
        }
        let started = |frame: &Frame| frame.envelope.kind == FrameKind::TurnStarted;
        let first = find_last_before(&self.store, session, ended, started)?;
        let first = first.map_or(Seq(0), |frame| frame.envelope.seq);
        self.store.for_each_frame(session, first, |frame| {
            match frame.envelope.kind {
                FrameKind::ToolSettled | FrameKind::ChildEnded | FrameKind::ChildOpened => match self
                    .store
                    .body(&frame)?
                {
                    Body::ToolSettled(settled) => files.extend(settled.artifacts),
                    Body::ChildOpened(opened) => children.push((opened.call, opened.child)),
                    Body::ChildEnded(ended) => {
                        let child = children.iter().find(|(call, _)| *call == ended.call);
                        if let Some((_, child)) = child {
                            files.extend(self.ended_turn(child)?.into_iter().flat_map(|report| report.files));
                        }
                    }
                    _ => {}
                },
                _ => {}
            }
            Ok(if frame.envelope.seq < ended { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })?;
        Ok(files)
    }
}
