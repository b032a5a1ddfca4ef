//! What a turn shows to a channel while it runs, on its way there: the text as it is written, and lines on what goes on meanwhile.
//!
//! There is one output stream for each turn that is streamed, and nothing in it is shared with another. The turn never waits for the channel: pieces
//! of text that come while the channel is busy become one piece. When too much waits, the model of this turn is read no further until some of
//! it has gone, so that neither the output stream nor the connection fills up.

use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::task::{Poll, Waker};

use holdfast_contract::body::Body;
use holdfast_contract::frame::Draft;
use holdfast_contract::ids::{CallId, ExtensionId, ToolName};
use holdfast_contract::message::AskedCall;
use holdfast_contract::tool::CallStatus;
use holdfast_contract::wire::Later;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, mpsc};

use crate::session::SessionCommand;

/// Bytes that may wait before the model is read no further.
const MAX_QUEUED_BYTES: usize = 64 << 10;
/// Characters of a line on what goes on.
const MAX_STATUS_CHARS: usize = 500;

/// Something for the channel.
#[derive(Debug, PartialEq)]
pub(crate) enum StreamChunk {
    /// The turn has begun.
    Begins,
    /// More of the text.
    Text(String),
    /// A line on what goes on; with the extension whose progress it is, if it is that.
    Status(String, Option<ExtensionId>),
    /// A tool is called.
    Call(AskedCall),
}

/// What is on its way to a channel, or to the extension that asks an agent.
#[derive(Default)]
pub(crate) struct OutputStream {
    queue: Mutex<Queue>,
    stirred: Notify,
}

#[derive(Default)]
struct Queue {
    pieces: VecDeque<StreamChunk>,
    /// Bytes of text that wait.
    waiting: usize,
    /// Whether nothing more comes, or is wanted.
    closed: bool,
    /// Whether the request under way has written something, and whether an earlier one has.
    wrote: bool,
    wrote_before: bool,
    /// The calls that the model asks for and that have not begun.
    asked: Vec<AskedCall>,
    /// The tools that are being called.
    tools: HashMap<CallId, ToolName>,
    /// Who reads the model and waits for room.
    reader: Option<Waker>,
    /// The session that runs the turn.
    session: Option<mpsc::UnboundedSender<SessionCommand>>,
}

impl OutputStream {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock()
    }

    /// The turn begins, in the session of this inbox.
    pub(crate) fn begins(&self, session: mpsc::UnboundedSender<SessionCommand>) {
        self.queue().session = Some(session);
        self.put(StreamChunk::Begins);
    }

    /// The session that runs the turn, once it has begun.
    pub(crate) fn session(&self) -> Option<mpsc::UnboundedSender<SessionCommand>> {
        self.queue().session.clone()
    }

    /// More of the text.
    pub(crate) fn text(&self, text: &str) {
        let mut queue = self.queue();
        if queue.closed || text.is_empty() {
            return;
        }
        // What a later request writes is a paragraph of its own.
        let apart = if !queue.wrote && queue.wrote_before { "\n\n" } else { "" };
        queue.wrote = true;
        queue.waiting += apart.len() + text.len();
        match queue.pieces.back_mut() {
            Some(StreamChunk::Text(waiting)) => waiting.extend([apart, text]),
            _ => queue.pieces.push_back(StreamChunk::Text([apart, text].concat())),
        }
        drop(queue);
        self.stirred.notify_one();
    }

    /// How a call is getting on. Of one extension's lines that wait the latest counts.
    pub(crate) fn progress(&self, extension: &ExtensionId, text: &str) {
        let whose = Some(extension.clone());
        self.queue().pieces.retain(|piece| !matches!(piece, StreamChunk::Status(_, of) if *of == whose));
        self.put(StreamChunk::Status(line(text), whose));
    }

    /// What the frames of a step mean for the receiver of the answer.
    pub(crate) fn see(&self, frames: &[Draft]) {
        let asked_again = || frames.iter().any(|frame| matches!(&frame.body, Body::ModelRequested(_)));
        for frame in frames {
            let said = match &frame.body {
                Body::ModelRequested(_) => {
                    let mut queue = self.queue();
                    queue.wrote_before |= std::mem::take(&mut queue.wrote);
                    continue;
                }
                Body::ModelFailed(_) if self.queue().wrote && asked_again() => {
                    "the answer broke off and starts over".to_owned()
                }
                Body::ModelReturned(fact) => {
                    self.queue().asked = fact.calls.clone();
                    continue;
                }
                Body::ToolCalled(fact) => {
                    let mut queue = self.queue();
                    queue.tools.insert(fact.call, fact.tool.clone());
                    let asked = queue.asked.iter().position(|call| call.tool == fact.tool);
                    let asked = asked.map(|place| queue.asked.remove(place));
                    drop(queue);
                    asked.into_iter().for_each(|call| self.put(StreamChunk::Call(call)));
                    continue;
                }
                Body::ToolDispatched(fact) => format!("{}: started", fact.tool),
                Body::ChildOpened(fact) => format!("{}: started", fact.agent),
                Body::ApprovalRequested(fact) => match self.queue().tools.get(&fact.call) {
                    Some(tool) => format!("{tool}: waits for a person's approval"),
                    None => continue,
                },
                Body::ToolSettled(fact) => {
                    let Some(tool) = self.queue().tools.remove(&fact.call) else { continue };
                    format!("{tool}: {}", word(fact.status))
                }
                _ => continue,
            };
            self.put(StreamChunk::Status(line(&said), None));
        }
    }

    fn put(&self, piece: StreamChunk) {
        let mut queue = self.queue();
        if !queue.closed {
            queue.pieces.push_back(piece);
            drop(queue);
            self.stirred.notify_one();
        }
    }

    /// The next piece, as soon as there is one; none when all have gone and no more come.
    pub(crate) async fn next(&self) -> Option<StreamChunk> {
        loop {
            {
                let mut queue = self.queue();
                if let Some(piece) = queue.pieces.pop_front() {
                    if let StreamChunk::Text(text) = &piece {
                        queue.waiting = queue.waiting.saturating_sub(text.len());
                    }
                    queue.reader.take().into_iter().for_each(Waker::wake);
                    return Some(piece);
                }
                if queue.closed {
                    return None;
                }
            }
            self.stirred.notified().await;
        }
    }

    /// No more comes. What waits still goes.
    pub(crate) fn close(&self) {
        let mut queue = self.queue();
        queue.closed = true;
        queue.reader.take().into_iter().for_each(Waker::wake);
        drop(queue);
        self.stirred.notify_one();
    }

    /// The stream is closed.
    pub(crate) fn give_up(&self) {
        self.queue().pieces.clear();
        self.close();
    }

    /// Reads a model no faster than the channel takes what it writes.
    pub(crate) async fn paced<T>(&self, mut answer: Later<T>) -> T {
        std::future::poll_fn(|context| {
            let mut queue = self.queue();
            if queue.waiting >= MAX_QUEUED_BYTES && !queue.closed {
                queue.reader = Some(context.waker().clone());
                return Poll::Pending;
            }
            drop(queue);
            Pin::new(&mut answer).poll(context)
        })
        .await
    }
}

fn word(status: CallStatus) -> &'static str {
    match status {
        CallStatus::Done => "done",
        CallStatus::Denied => "denied",
        CallStatus::Cancelled => "cancelled",
        _ => "failed",
    }
}

/// One line, and not a long one.
fn line(text: &str) -> String {
    text.chars().map(|it| if it.is_control() { ' ' } else { it }).take(MAX_STATUS_CHARS).collect()
}

#[cfg(test)]
#[path = "channel_stream_tests.rs"]
mod tests;
