//! Replay: a recorded stream's facts are fed to a fresh machine, and every frame it gives is compared with the record.
//!
//! In strict mode what is reproducible really runs again: schema checks, the policy in force, and every extension whose lane
//! says that it is replayable; what they asked of the host is answered from the record. Models, clocks, timers, services and
//! everything else come from the log. In mock mode everything does.

mod answers;
mod reexecute;
mod what_if;

use std::collections::{BTreeSet, VecDeque};
use std::ops::ControlFlow;
use std::sync::Arc;

use holdfast_contract::body::{Body, FrameKind, FrameOrigin};
use holdfast_contract::digest::{Digest, canonical};
use holdfast_contract::effect::Effects;
use holdfast_contract::frame::{Draft, Envelope, Frame};
use holdfast_contract::ids::{ExtensionId, Seq, StreamId};
use holdfast_contract::problem::{Code, Problem};
use holdfast_contract::wire::Lane;
use holdfast_kernel::{BEHAVIOUR, Session, System};
use holdfast_runtime::Machine;
use holdfast_runtime::rebuild::{input_of, rebuild};
use holdfast_store::Store;
use serde::Serialize;
use serde_json::{Value, json};

use reexecute::Reexecution;
pub use what_if::{JudgedCall, WhatIfCandidate, WhatIfReport, trial};

/// How much runs again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Everything that is reproducible.
    #[default]
    Strict,
    /// Nothing but the kernel.
    Mock,
}

/// What a replay came to.
#[derive(Clone, Debug, Serialize)]
pub struct ReplayVerdict {
    /// The stream.
    pub session: StreamId,
    /// How much ran again.
    pub mode: Mode,
    /// How many frames were compared.
    pub frames: u64,
    /// Whether every frame was the same.
    pub identical: bool,
    /// Whether the final state was the same as the one that the log leads to.
    pub snapshot_identical: bool,
    /// The first difference.
    pub divergence: Option<Divergence>,
    /// Extensions whose answers came from the log.
    pub mocked: BTreeSet<ExtensionId>,
}

/// The first frame that differs, with both sides.
#[derive(Clone, Debug, Serialize)]
pub struct Divergence {
    /// Its place.
    pub seq: Seq,
    /// The recorded kind; the replayed one where nothing was recorded.
    pub kind: FrameKind,
    /// What was recorded.
    pub expected: Option<Value>,
    /// What the replay gave.
    pub actual: Option<Value>,
    /// The extension whose answer differs, with its digest.
    pub extension: Option<Value>,
}

/// Replays a stream.
pub fn replay(
    store: &Store,
    stream: &StreamId,
    mode: Mode,
    lanes: &[Arc<dyn Lane>],
) -> Result<ReplayVerdict, Problem> {
    if stream.bus_partition().is_some() {
        let problem =
            Problem::new(Code::UsageInvalid, format!("`{stream}` has events, and nothing to replay"));
        return Err(problem.help("Sessions replay, and the system stream does."));
    }
    if stream.is_system() {
        replay_machine::<System>(store, stream, mode, lanes)
    } else {
        replay_machine::<Session>(store, stream, mode, lanes)
    }
}

fn replay_machine<M: Machine>(
    store: &Store,
    stream: &StreamId,
    mode: Mode,
    lanes: &[Arc<dyn Lane>],
) -> Result<ReplayVerdict, Problem> {
    if store.head(stream)?.is_none() {
        return Err(Problem::new(Code::StoreMissing, format!("there is no session `{stream}`")));
    }
    let mut run = ReplayRun {
        store,
        machine: M::begin(stream),
        again: (mode == Mode::Strict).then(|| Reexecution::new(store, lanes)),
        expected: VecDeque::new(),
        prev: Digest::ZERO,
        frames: 0,
    };
    let mut divergence = None;
    store.for_each_frame(stream, Seq(0), |frame| {
        divergence = run.compare(&frame)?;
        Ok(if divergence.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    if divergence.is_none() {
        divergence = run.expected.front().map(left_over);
    }
    let identical = divergence.is_none();
    let snapshot_identical = identical && same_state(&run.machine, store, stream)?;
    let mocked = run.again.map(|again| again.mocked).unwrap_or_default();
    let frames = run.frames;
    Ok(ReplayVerdict {
        session: stream.clone(),
        mode,
        frames,
        identical,
        snapshot_identical,
        divergence,
        mocked,
    })
}

fn same_state<M: Machine>(machine: &M, store: &Store, stream: &StreamId) -> Result<bool, Problem> {
    let state =
        |machine: &M| canonical(machine).map_err(|error| Problem::new(Code::Internal, error.to_string()));
    Ok(state(machine)? == state(&rebuild::<M>(store, stream)?.machine)?)
}

/// A replay under way.
struct ReplayRun<'a, M> {
    store: &'a Store,
    machine: M,
    again: Option<Reexecution<'a>>,
    /// What the machine has recorded and the log has still to show.
    expected: VecDeque<Draft>,
    prev: Digest,
    frames: u64,
}

impl<M: Machine> ReplayRun<'_, M> {
    fn compare(&mut self, frame: &Frame) -> Result<Option<Divergence>, Problem> {
        self.frames += 1;
        let next = self.expected.front().map_or_else(|| self.machine.next_seq(), |draft| draft.seq);
        if frame.envelope.seq != next {
            return Ok(Some(self.missing(next, frame)));
        }
        if self.expected.is_empty() {
            if frame.envelope.kind.origin() == FrameOrigin::Decision {
                return Ok(Some(recorded(frame, Value::Null)));
            }
            if let Some(divergence) = self.replay_frame(frame)? {
                return Ok(Some(divergence));
            }
        }
        let Some(draft) = self.expected.pop_front() else { return Ok(Some(recorded(frame, Value::Null))) };
        self.same(frame, draft)
    }

    /// Feeds a recorded fact to the machine, after running again what led to it.
    fn replay_frame(&mut self, frame: &Frame) -> Result<Option<Divergence>, Problem> {
        let input = match input_of(self.store, frame) {
            Ok(input) => input,
            // A body that no longer reads as its kind differs from the record.
            Err(problem) if problem.code == Code::StoreCorrupt => {
                return Ok(Some(recorded(frame, json!({ "unreadable": problem.what }))));
            }
            // A changed frame may ask for a blob or a registry that never was.
            Err(problem) if !is_intact(frame) => {
                return Ok(Some(recorded(frame, json!({ "not_what_was_hashed": problem.what }))));
            }
            Err(problem) => return Err(problem),
        };
        check_kernel(&input.body)?;
        if let Some(again) = &mut self.again
            && let Some(actual) = again.judge(frame.envelope.seq, &input)?
        {
            let extension = serde_json::to_value(&input.source).ok();
            return Ok(Some(Divergence { extension, ..recorded(frame, actual) }));
        }
        let Effects { frames, acts } = match self.machine.step(input) {
            Ok(effects) => effects,
            Err(fault) => return Ok(Some(recorded(frame, json!({ "refused": fault })))),
        };
        self.expected.extend(frames);
        if let Some(again) = &mut self.again {
            for act in acts {
                again.remember(act)?;
            }
            if !self.machine.is_busy() {
                again.rest();
            }
        }
        Ok(None)
    }

    /// Whether the machine's frame is the recorded one, hash and all.
    fn same(&mut self, frame: &Frame, draft: Draft) -> Result<Option<Divergence>, Problem> {
        let internal =
            |error: holdfast_contract::digest::NotCanonical| Problem::new(Code::Internal, error.to_string());
        let Draft { seq, at, source, cause, body } = draft;
        let bytes = body.canonical().map_err(internal)?;
        let body_digest = Digest::of(&bytes);
        let stream = frame.envelope.stream.clone();
        let envelope =
            Envelope { stream, seq, at, kind: body.kind(), source, cause, body_digest, prev: self.prev };
        let hash = envelope.hash().map_err(internal)?;
        // A fact's body was read from the log, so its digest vouches for it; a decision's was not.
        let shown = envelope.kind.origin() == FrameOrigin::Fact || shows(frame, &bytes);
        if envelope == frame.envelope && hash == frame.hash && shown {
            self.prev = hash;
            return Ok(None);
        }
        let actual = json!({ "envelope": envelope, "hash": hash, "body": json_of(&body) });
        Ok(Some(recorded(frame, actual)))
    }

    /// A frame is not there, and this one stands in its place.
    fn missing(&self, seq: Seq, found: &Frame) -> Divergence {
        match self.expected.front() {
            Some(draft) => left_over(draft),
            None => {
                let actual = json!({ "missing": format!("frame {seq} is not in the log") });
                Divergence { seq, ..recorded(found, actual) }
            }
        }
    }
}

/// Whether the log shows these bytes as the frame's body; one that was erased shows nothing else.
fn shows(frame: &Frame, bytes: &[u8]) -> bool {
    // The plain form is the canonical one for all but odd keys and fractions, and quicker to write.
    let plain = |body: &Value| serde_json::to_vec(body).is_ok_and(|recorded| recorded == bytes);
    let exact = |body: &Value| canonical(body).is_ok_and(|recorded| recorded == bytes);
    frame.body.as_ref().is_none_or(|body| plain(body) || exact(body))
}

/// Whether a frame is what its own hashes say.
fn is_intact(frame: &Frame) -> bool {
    let body = frame
        .body
        .as_ref()
        .is_none_or(|body| Digest::of_json(body).is_ok_and(|it| it == frame.envelope.body_digest));
    body && frame.envelope.hash().is_ok_and(|hash| hash == frame.hash)
}

fn check_kernel(body: &Body) -> Result<(), Problem> {
    let recorded = match body {
        Body::SessionStarted(fact) => fact.kernel,
        Body::SystemStarted(fact) => fact.kernel,
        _ => return Ok(()),
    };
    if recorded == BEHAVIOUR {
        return Ok(());
    }
    let what = format!("recorded by kernel behaviour {recorded}, and this program has {BEHAVIOUR}");
    Err(Problem::new(Code::ReplayKernel, what))
}

fn json_of(body: &Body) -> Value {
    let bytes = body.canonical().unwrap_or_default();
    serde_json::from_slice(&bytes).unwrap_or_default()
}

fn recorded(frame: &Frame, actual: Value) -> Divergence {
    Divergence {
        seq: frame.envelope.seq,
        kind: frame.envelope.kind,
        expected: serde_json::to_value(frame).ok(),
        actual: (!actual.is_null()).then_some(actual),
        extension: None,
    }
}

fn left_over(draft: &Draft) -> Divergence {
    Divergence {
        seq: draft.seq,
        kind: draft.body.kind(),
        expected: None,
        actual: Some(json_of(&draft.body)),
        extension: None,
    }
}
