//! The one checker of every crash test: what a log that was found after a crash says, what its recovery would do, and whether both
//! agree with the outside ledger.
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use holdfast_contract::body::{Body, FrameKind};
use holdfast_contract::digest::Digest;
use holdfast_contract::effect::{Act, Input};
use holdfast_contract::frame::FrameSource;
use holdfast_contract::ids::{CallId, Millis, Seq, StreamId, ToolName};
use holdfast_contract::problem::Problem;
use holdfast_contract::session_frames::SessionResumed;
use holdfast_contract::tool::EffectClass;
use holdfast_kernel::{Session, System};
use holdfast_replay::verify;
use holdfast_replay::{Mode, replay};
use holdfast_runtime::rebuild::rebuild;
use holdfast_store::Store;

use super::ledger::{Nobody, Noted};
use super::world::{World, has_effects};

/// How a log that was found after a crash, or its recovery, breaks its word.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Violation {
    /// The log cannot be opened, read or taken up.
    Unreadable(String),
    /// The log does not verify.
    Finding(String),
    /// A frame is not the one that was written.
    Changed { session: StreamId, seq: Seq },
    /// Somebody was told something on the strength of a frame that is gone.
    Lost { session: StreamId, seq: Seq, kind: FrameKind },
    /// A tool with effects ran, and the log does not know.
    Unrecorded { session: StreamId, call: CallId, tool: ToolName },
    /// A tool with effects ran, and recovery runs it again.
    RunsAgain { session: StreamId, call: CallId, tool: ToolName },
    /// A tool with effects ran twice.
    RanTwice { session: StreamId, call: CallId, tool: ToolName },
}

impl From<Problem> for Violation {
    fn from(problem: Problem) -> Self {
        Self::Unreadable(problem.to_string())
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(why) => write!(f, "unreadable: {why}"),
            Self::Finding(finding) => write!(f, "does not verify: {finding}"),
            Self::Changed { session, seq } => write!(f, "not what was written: {session} {seq}"),
            Self::Lost { session, seq, kind } => {
                write!(f, "acknowledged and lost: {kind} at {session} {seq}")
            }
            Self::Unrecorded { session, call, tool } => {
                write!(f, "ran before it was durable: {tool} {session} {call}")
            }
            Self::RunsAgain { session, call, tool } => write!(f, "would run again: {tool} {session} {call}"),
            Self::RanTwice { session, call, tool } => write!(f, "ran twice: {tool} {session} {call}"),
        }
    }
}

/// The hashes of a run's frames, in order, by stream.
pub type Recorded = BTreeMap<StreamId, Vec<Digest>>;

/// Every frame that a log holds.
pub fn recorded(store: &Store) -> Result<Recorded, Problem> {
    let streams = store.streams()?.into_iter();
    streams
        .map(|info| {
            Ok((info.id.clone(), store.frames(&info.id, ..)?.iter().map(|frame| frame.hash).collect()))
        })
        .collect()
}

/// Plants a bug into a machine that is about to recover.
pub type Meddle = fn(&Store, Session) -> Session;

/// Plants nothing.
pub fn honest(_: &Store, session: Session) -> Session {
    session
}

/// What a log that was found says.
#[derive(Clone, Debug, Default)]
pub struct Found {
    kinds: BTreeMap<StreamId, Vec<FrameKind>>,
    dispatched: BTreeSet<(StreamId, CallId)>,
    /// The calls that recovery dispatches again, of all extensions.
    again: BTreeSet<(StreamId, CallId)>,
}

/// Reads all of a log and verifies it.
pub fn read(store: &Store, written: Option<&Recorded>, meddle: Meddle) -> Result<Found, Violation> {
    if let Some(finding) = verify(store, None)?.findings.first() {
        return Err(Violation::Finding(format!("{finding:?}")));
    }
    survey(store, written, meddle)
}

/// Reads all of a log: each stream is a beginning of what was written, if that is known, and each machine can be taken up. `meddle`
/// may plant a bug into a machine before it recovers.
pub fn survey(store: &Store, written: Option<&Recorded>, meddle: Meddle) -> Result<Found, Violation> {
    let mut found = Found::default();
    for info in store.streams()? {
        found.read_stream(store, &info.id, written)?;
        // The bus decides nothing that could be taken up.
        if info.id.is_system() {
            drop(rebuild::<System>(store, &info.id)?);
        } else if info.id.is_session() {
            found.recover(&info.id, meddle(store, rebuild::<Session>(store, &info.id)?.machine))?;
        }
    }
    Ok(found)
}

impl Found {
    fn read_stream(
        &mut self,
        store: &Store,
        stream: &StreamId,
        written: Option<&Recorded>,
    ) -> Result<(), Violation> {
        let mut kinds = Vec::new();
        for (place, frame) in store.frames(stream, ..)?.iter().enumerate() {
            let seq = Seq(place as u64);
            let expected = written.map(|written| written.get(stream).and_then(|hashes| hashes.get(place)));
            if frame.envelope.seq != seq || expected.is_some_and(|expected| expected != Some(&frame.hash)) {
                return Err(Violation::Changed { session: stream.clone(), seq });
            }
            kinds.push(frame.envelope.kind);
            if frame.envelope.kind == FrameKind::ToolDispatched
                && let Body::ToolDispatched(body) = store.body(frame)?
            {
                self.dispatched.insert((stream.clone(), body.call));
            }
        }
        self.kinds.insert(stream.clone(), kinds);
        Ok(())
    }

    /// Tells a machine that it was taken up again, as the runtime does, and looks at what it wants done.
    fn recover(&mut self, stream: &StreamId, mut machine: Session) -> Result<(), Violation> {
        if !machine.is_busy() {
            return Ok(());
        }
        let body = SessionResumed { reason: "restart".to_owned() }.into();
        let effects = machine
            .step(Input { at: Millis(0), source: FrameSource::Host, cause: None, body })
            .map_err(|fault| Violation::Unreadable(fault.to_string()))?;
        for act in effects.acts {
            if let Act::Dispatch(act) = act {
                self.again.insert((stream.clone(), act.call));
            }
        }
        for draft in effects.frames {
            if let Body::ToolDispatched(body) = draft.body
                && body.attempt < 2
            {
                return Err(Violation::Unreadable(format!("{stream} runs {} as attempt 1", body.call)));
            }
        }
        Ok(())
    }

    /// Whether the log bears out everything that happened, and recovery repeats none of it.
    pub fn bears_out(&self, happened: &[Noted]) -> Result<(), Violation> {
        for noted in happened {
            match noted.clone() {
                Noted::Told { session, seq, kind } => {
                    let kinds = self.kinds.get(&session).map_or(&[][..], Vec::as_slice);
                    if usize::try_from(seq.0).ok().and_then(|place| kinds.get(place)) != Some(&kind) {
                        return Err(Violation::Lost { session, seq, kind });
                    }
                }
                Noted::Ran { tool, .. } if !has_effects(tool.as_str()) => {}
                Noted::Ran { session, call, tool } => {
                    let place = (session.clone(), call);
                    if !self.dispatched.contains(&place) {
                        return Err(Violation::Unrecorded { session, call, tool });
                    }
                    if self.again.contains(&place) {
                        return Err(Violation::RunsAgain { session, call, tool });
                    }
                }
            }
        }
        Ok(())
    }

    /// How many calls recovery hands to their tools again.
    pub fn run_again(&self) -> usize {
        self.again.len()
    }

    /// How many turns of a session have ended.
    pub fn turns(&self, session: &str) -> usize {
        let kinds = self.kinds.get(&StreamId::from(session)).map_or(&[][..], Vec::as_slice);
        kinds.iter().filter(|kind| **kind == FrameKind::TurnEnded).count()
    }
}

/// Whether no tool with effects ran more than once, over however many lives.
pub fn ran_once(happened: &[Noted]) -> Result<(), Violation> {
    let mut seen = BTreeSet::new();
    for noted in happened {
        if let Noted::Ran { session, call, tool } = noted
            && has_effects(tool.as_str())
            && !seen.insert((session, call))
        {
            return Err(Violation::RanTwice { session: session.clone(), call: *call, tool: tool.clone() });
        }
    }
    Ok(())
}

/// Whether every stream replays strictly, in a world where nothing happens.
pub fn replays(store: &Store, undeclared: EffectClass) -> Result<(), Violation> {
    let lanes = World { undeclared, ..World::new(Arc::new(Nobody)) }.lanes();
    for info in store.streams()?.into_iter().filter(|info| info.id.is_session() || info.id.is_system()) {
        let verdict = replay(store, &info.id, Mode::Strict, &lanes)?;
        if !verdict.identical || !verdict.snapshot_identical {
            return Err(Violation::Finding(format!("{} does not replay: {verdict:?}", info.id)));
        }
    }
    Ok(())
}
