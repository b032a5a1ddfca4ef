//! Frames of several streams and changes to delivery rows, written in one transaction or not at all.
//!
//! Use it where a frame and a row must never be visible without each other. Bodies are prepared on the caller's thread, because the
//! writer thread is the bottleneck.

use std::sync::Arc;

use holdfast_contract::body::{Body, FrameKind};
use holdfast_contract::content::Content;
use holdfast_contract::digest::{Digest, NotCanonical};
use holdfast_contract::frame::{Draft, FrameSource};
use holdfast_contract::ids::{Millis, Seq};
use holdfast_contract::problem::{Code, Problem};

use crate::failure;
use crate::store::Store;
use crate::tables::deliveries::{Change, Changes};
use crate::tables::rows;
use crate::write::queue::QueueEntry;
use crate::write::receipt::{Promise, Receipt, promise};
use crate::write::stream::{Stream, StreamLog};
use crate::write::writer::{WriteFailure, WriterThread, gap};

/// A body that is ready to be written: its canonical JSON with its digest, and the pieces that are blobs of their own.
#[derive(Clone, Debug)]
pub struct PreparedBody {
    pub(crate) kind: FrameKind,
    pub(crate) json: Vec<u8>,
    pub(crate) digest: Digest,
    pub(crate) large: Vec<Content>,
}

impl PreparedBody {
    /// Serialises and digests a body; the body does not change.
    pub fn of(body: &mut Body) -> Result<Self, NotCanonical> {
        let mut large = Vec::new();
        body.contents(&mut |content| {
            if content.as_blob().is_some() {
                large.push(Content::clone(content));
            }
        });
        let json = body.canonical()?;
        Ok(Self { kind: body.kind(), digest: Digest::of(&json), json, large })
    }
}

/// A frame before it is written, its body prepared.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// Its place.
    pub seq: Seq,
    /// When, as recorded.
    pub at: Millis,
    /// Who caused it.
    pub source: FrameSource,
    /// The frame it answers.
    pub cause: Option<Seq>,
    /// What it says.
    pub body: PreparedBody,
}

impl TryFrom<Draft> for Prepared {
    type Error = NotCanonical;

    fn try_from(draft: Draft) -> Result<Self, NotCanonical> {
        let Draft { seq, at, source, cause, mut body } = draft;
        Ok(Self { seq, at, source, cause, body: PreparedBody::of(&mut body)? })
    }
}

/// What goes to one stream.
pub struct StreamPart {
    /// The stream.
    pub log: StreamLog,
    /// Frames that follow its last one; there may be none.
    pub frames: Vec<Prepared>,
    /// Changes to rows of its frames, these included.
    pub changes: Vec<Change>,
}

/// How long queued frames may stay in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitPriority {
    /// A caller waits: commit as soon as possible.
    Awaited,
    /// No caller waits: it may be committed with later ones.
    None,
}

impl Store {
    /// Queues parts to be written in one transaction, each stream at most once. Nothing of them is written if one of the streams has failed
    /// or a frame does not follow its stream's last one; the receipt then returns the error. Blocks only while the queue is full.
    pub fn append_together(&self, parts: Vec<StreamPart>, haste: CommitPriority) -> Result<Receipt, Problem> {
        let (promise, receipt) = promise(haste == CommitPriority::Awaited);
        let parts = parts.into_iter().map(QueuedPart::from).collect();
        self.inner.shared.queue.push(QueueEntry::Together(AtomicAppend { parts, promise }))?;
        Ok(receipt)
    }
}

/// Queued parts.
pub(crate) struct AtomicAppend {
    parts: Vec<QueuedPart>,
    pub(crate) promise: Promise,
}

/// A part without the handle, which would keep the log open for as long as it is queued.
struct QueuedPart {
    stream: Arc<Stream>,
    frames: Vec<Prepared>,
    changes: Vec<Change>,
}

impl From<StreamPart> for QueuedPart {
    fn from(part: StreamPart) -> Self {
        Self { stream: Arc::clone(part.log.stream()), frames: part.frames, changes: part.changes }
    }
}

impl AtomicAppend {
    pub(crate) fn frames(&self) -> usize {
        let sizes = self.parts.iter().map(|part| part.frames.len() + part.changes.len() / 4);
        sizes.sum::<usize>().max(1)
    }

    pub(crate) fn streams(&self) -> impl Iterator<Item = &Arc<Stream>> {
        self.parts.iter().map(|part| &part.stream)
    }

    /// Why the append must be rejected, if it must.
    fn refusal(&self) -> Option<Problem> {
        self.parts.iter().find_map(|QueuedPart { stream, frames, changes }| {
            if stream.has_failed() {
                return Some(stream.failure().err().unwrap_or_else(failure::closed));
            }
            let tail = stream.tail();
            if let Some(problem) = &tail.broken {
                return Some(problem.clone());
            }
            if frames.is_empty() && tail.key.is_none() && !changes.is_empty() {
                let what = format!("rows of {}, which has no frames", stream.id);
                return Some(Problem::new(Code::StoreMissing, what));
            }
            let mut next = tail.head.map_or(Seq(0), |head| head.seq.next());
            for frame in frames {
                if frame.seq != next {
                    return Some(gap(stream, next, frame.seq));
                }
                if !rows::fits(frame) {
                    let what = format!("frame {next} of {} has a number that cannot be stored", stream.id);
                    return Some(Problem::new(Code::StoreWrite, what));
                }
                next = next.next();
            }
            None
        })
    }
}

impl WriterThread {
    /// Writes the frames of all parts, and adds their changes to those that are carried out when all frames of the transaction are
    /// written. `Ok(Err(…))` means that they were refused and nothing of them is in the transaction.
    pub(crate) fn insert_together(
        &mut self,
        parts: &mut AtomicAppend,
        changed: &mut Vec<Changes>,
    ) -> Result<Result<u64, Problem>, Problem> {
        if let Some(problem) = parts.refusal() {
            return Ok(Err(problem));
        }
        let mut written = 0;
        for QueuedPart { stream, frames, changes } in &mut parts.parts {
            let mut tail = stream.tail();
            for frame in frames.drain(..) {
                self.insert_frame(stream, &mut tail, frame).map_err(WriteFailure::into_problem)?;
                written += 1;
            }
            if let Some(key) = tail.key.filter(|_| !changes.is_empty()) {
                changed.push((key, std::mem::take(changes)));
            }
        }
        Ok(Ok(written))
    }
}
