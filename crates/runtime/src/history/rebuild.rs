//! Rebuilding a machine from the log: the newest snapshot that fits, then the facts after it.
//!
//! A snapshot is a cache. One that does not fit its frame, its digest or this kernel is passed over, and the machine is rebuilt
//! from the stream's beginning.

use std::ops::ControlFlow;
use std::sync::Arc;

use holdfast_contract::body::{Body, FrameOrigin};
use holdfast_contract::digest::Digest;
use holdfast_contract::effect::Input;
use holdfast_contract::frame::{Draft, Frame};
use holdfast_contract::ids::{Seq, StreamId};
use holdfast_contract::problem::{Code, Problem};
use holdfast_contract::registry::{Registry, RegistryPin};
use holdfast_store::Store;
use serde_json::Value;

use super::Machine;

/// A machine as its stream has made it.
pub struct RebuiltMachine<M> {
    /// The machine.
    pub machine: M,
    /// Decisions that the last recorded fact leads to and that a crash kept from the log. They are appended first.
    pub missing: Vec<Draft>,
    /// How many frames were read.
    pub read: u64,
}

/// Rebuilds the machine of a stream.
pub fn rebuild<M: Machine>(store: &Store, stream: &StreamId) -> Result<RebuiltMachine<M>, Problem> {
    let (mut machine, from) = match from_snapshot::<M>(store, stream)? {
        Some((machine, seq)) => (machine, seq.next()),
        None => (M::begin(stream), Seq(0)),
    };
    let mut expected: std::collections::VecDeque<Draft> = std::collections::VecDeque::new();
    let mut read = 0;
    store.for_each_frame(stream, from, |frame| {
        read += 1;
        if frame.envelope.kind.origin() == FrameOrigin::Decision {
            let decided = expected.pop_front();
            same(&frame, decided.as_ref())?;
            return Ok(ControlFlow::Continue(()));
        }
        if let Some(left) = expected.pop_front() {
            return Err(diverged(&frame, &format!("the kernel would have recorded {}", left.body.kind())));
        }
        let input = input_of(store, &frame)?;
        let effects = machine.step(input).map_err(|fault| diverged(&frame, &fault.to_string()))?;
        let mut frames = effects.frames.into_iter();
        if frames.next().is_none_or(|fact| fact.seq != frame.envelope.seq) {
            return Err(diverged(&frame, "the kernel numbers it differently"));
        }
        expected.extend(frames);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(RebuiltMachine { machine, missing: expected.into(), read })
}

fn same(frame: &Frame, decided: Option<&Draft>) -> Result<(), Problem> {
    let Some(draft) = decided else {
        return Err(diverged(frame, "the kernel would not have recorded it"));
    };
    let fits = draft.seq == frame.envelope.seq && draft.body.kind() == frame.envelope.kind;
    if fits {
        Ok(())
    } else {
        Err(diverged(frame, &format!("the kernel would have recorded {}", draft.body.kind())))
    }
}

fn diverged(frame: &Frame, why: &str) -> Problem {
    let envelope = &frame.envelope;
    let what = format!(
        "{} of `{}` at {} does not follow from the frames before: {why}",
        envelope.kind, envelope.stream, envelope.seq
    );
    Problem::new(Code::ReplayDiverged, what)
}

/// A recorded fact as the input that it was, with its content and its registry loaded.
pub fn input_of(store: &Store, frame: &Frame) -> Result<Input, Problem> {
    let envelope = &frame.envelope;
    let mut body = store.body(frame)?;
    match &mut body {
        Body::InputReceived(fact) => resolve_pin(store, &mut fact.registry)?,
        Body::CompactionRequested(fact) => resolve_pin(store, &mut fact.registry)?,
        _ => {}
    }
    Ok(Input { at: envelope.at, source: envelope.source.clone(), cause: envelope.cause, body })
}

/// Fetches the registry that a pin refers to.
pub fn resolve_pin(store: &Store, pin: &mut RegistryPin) -> Result<(), Problem> {
    if pin.view.is_some() {
        return Ok(());
    }
    let digest = pin.reference.digest;
    if digest == Digest::ZERO {
        pin.view = Some(Arc::new(Registry::default()));
        return Ok(());
    }
    let missing = || Problem::new(Code::ReplayMissing, format!("registry {digest} is not in the store"));
    let bytes = store.object(digest)?.ok_or_else(missing)?;
    let unreadable = |error: serde_json::Error| {
        Problem::new(Code::ReplayMissing, format!("registry {digest} cannot be read: {error}"))
    };
    let mut json: Value = serde_json::from_slice(&bytes).map_err(unreadable)?;
    store.load(&mut json, &|| format!("registry {digest}"))?;
    pin.view = Some(Arc::new(serde_json::from_value(json).map_err(unreadable)?));
    Ok(())
}

/// A stored state read back, if it fits this kernel and the frame it claims to follow.
pub(crate) fn from_snapshot<M: Machine>(
    store: &Store,
    stream: &StreamId,
) -> Result<Option<(M, Seq)>, Problem> {
    let Some((reference, bytes)) = store.latest_snapshot(stream)? else { return Ok(None) };
    if reference.kernel != M::STATE_VERSION || Digest::of(&bytes) != reference.digest {
        return Ok(None);
    }
    let frames = store.frames(stream, reference.seq..=reference.seq)?;
    if frames.first().is_none_or(|frame| frame.hash != reference.hash) {
        return Ok(None);
    }
    Ok(read_state(store, &bytes)?.map(|machine| (machine, reference.seq)))
}

/// A machine from its snapshot's bytes.
pub fn read_state<M: Machine>(store: &Store, bytes: &[u8]) -> Result<Option<M>, Problem> {
    let Ok(mut json) = serde_json::from_slice::<Value>(bytes) else { return Ok(None) };
    store.load(&mut json, &|| "a snapshot".to_owned())?;
    let Ok(mut machine) = serde_json::from_value::<M>(json) else { return Ok(None) };
    for pin in machine.pins() {
        resolve_pin(store, pin)?;
    }
    Ok(Some(machine))
}
