//! The feed of a session: frames and provisional output in one order, for one client.
//!
//! A frame is sent once it is durable. Output has the frame that it follows and waits for it here, so a client applies what it is sent
//! as it comes. The runtime shows output before it decides on anything that depends on it; output that is sent or held before a later
//! frame is read from the log therefore belongs before that frame, and no timer is needed to restore the order.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use holdfast_contract::frame::Frame;
use holdfast_contract::ids::{Seq, StreamId};
use holdfast_contract::problem::Problem;
use holdfast_runtime::Runtime;
use holdfast_store::Store;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{oneshot, watch};

use crate::line;
use crate::outgoing::Outgoing;
use crate::protocol::{Notification, SessionOpen};

/// Frames that are read from the log at once.
const FRAMES_PER_READ: usize = 256;

/// What one client is sent of one session.
pub(crate) struct SessionFeed {
    pub session: StreamId,
    /// Whether the client answers approvals and questions.
    pub answers: bool,
    /// Whether the client shows the user what belongs to no turn.
    pub notices: bool,
    pub lines: Outgoing,
    position: Mutex<FeedPosition>,
}

struct FeedPosition {
    /// The next frame to send.
    next: Seq,
    /// Whether the client knows of the feed: it has the answer to its `session.open`.
    started: bool,
    /// Output that waits for the frame that it follows.
    held: VecDeque<HeldLine>,
}

struct HeldLine {
    after: Seq,
    line: String,
}

impl SessionFeed {
    /// A feed that begins with this frame.
    pub(crate) fn new(session: StreamId, open: &SessionOpen, next: Seq, lines: Outgoing) -> Self {
        let position = FeedPosition { next, started: false, held: VecDeque::new() };
        let (answers, notices) = (open.answers, open.notices);
        Self { session, answers, notices, lines, position: Mutex::new(position) }
    }

    fn position(&self) -> MutexGuard<'_, FeedPosition> {
        self.position.lock()
    }

    /// Sends provisional output, at once if the frame that it follows was sent.
    pub(crate) fn output(&self, after: Seq, notification: &Notification) {
        let line = line::notice(notification);
        let mut position = self.position();
        if position.started && position.held.is_empty() && after < position.next {
            return self.lines.send(line);
        }
        self.lines.hold(&line);
        position.held.push_back(HeldLine { after, line });
    }

    fn start(&self) {
        let mut position = self.position();
        position.started = true;
        self.release(&mut position);
    }

    /// Sends a frame, after the output that belongs before it.
    fn frame(&self, frame: Frame) {
        let seq = frame.envelope.seq;
        let line = line::notice(&Notification::Frame(frame));
        let mut position = self.position();
        self.release(&mut position);
        self.lines.send(line);
        position.next = seq.next();
        self.release(&mut position);
    }

    fn release(&self, position: &mut FeedPosition) {
        let next = position.next;
        while let Some(held) = position.held.pop_front_if(|held| held.after < next) {
            self.lines.send_held(held.line);
        }
    }

    /// Sends every frame from the first one on, each once it is durable and as fast as the client reads, until the client has gone. `sent`
    /// is told the next frame after each. The feed starts when the client has been told of it.
    pub(crate) async fn follow(
        &self,
        runtime: Runtime,
        start: oneshot::Receiver<()>,
        sent: watch::Sender<Seq>,
    ) {
        if start.await.is_err() {
            return;
        }
        self.start();
        let Ok(log) = runtime.store().stream(&self.session) else { return };
        loop {
            let next = self.position().next;
            tokio::select! {
                durable = log.durable(next) => if durable.is_err() { return },
                () = self.lines.closed() => return,
            }
            let Ok(frames) = read(runtime.store(), &self.session, next) else { return };
            for frame in frames {
                if !self.lines.room().await {
                    return;
                }
                let next = frame.envelope.seq.next();
                self.frame(frame);
                sent.send_replace(next);
            }
        }
    }
}

/// The next frames from this one on. Where older ones were collected, it begins with the first that is left.
fn read(store: &Store, session: &StreamId, from: Seq) -> Result<Vec<Frame>, Problem> {
    let mut frames = Vec::new();
    store.for_each_frame(session, from, |frame| {
        frames.push(frame);
        Ok(if frames.len() < FRAMES_PER_READ { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    })?;
    Ok(frames)
}

#[cfg(test)]
#[path = "session_feed_tests.rs"]
mod tests;
