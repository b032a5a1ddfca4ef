//! Verification beyond integrity: did every gate decide, does every effect have a cause, does the state follow from the frames?
//!
//! The store proves that the log is whole; this proves that what it says is complete. A stream whose bodies were erased, or
//! whose beginning was collected, is checked for integrity only, and the report says so.

mod coverage;
mod registries;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use holdfast_contract::body::{Body, FrameKind, FrameOrigin};
use holdfast_contract::digest::{Digest, canonical};
use holdfast_contract::frame::Frame;
use holdfast_contract::ids::{Seq, StreamId};
use holdfast_contract::problem::Problem;
use holdfast_contract::system_frames::{EventDead, EventRetried};
use holdfast_kernel::{Session, System};
use holdfast_runtime::Machine;
use holdfast_runtime::rebuild::input_of;
use holdfast_store::Store;
use serde::Serialize;

use coverage::Coverage;
use registries::Registries;

/// What a verification found.
#[derive(Clone, Debug, Default, Serialize)]
pub struct VerificationReport {
    /// How many streams were looked at.
    pub streams: u64,
    /// How many frames.
    pub frames: u64,
    /// What is wrong.
    pub findings: Vec<VerificationFinding>,
    /// Streams of which only the integrity could be checked, and why.
    pub integrity_only: BTreeMap<StreamId, String>,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VerificationFinding {
    /// The stream.
    pub stream: StreamId,
    /// The frame, where one is to blame.
    pub seq: Option<Seq>,
    /// What is wrong, as a stable word.
    pub kind: String,
    /// In words.
    pub detail: String,
}

impl std::fmt::Display for VerificationFinding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.stream)?;
        if let Some(seq) = self.seq {
            write!(f, "/{seq}")?;
        }
        write!(f, ": {}: {}", self.kind, self.detail)
    }
}

/// Verifies one stream, or all.
pub fn verify(store: &Store, stream: Option<&StreamId>) -> Result<VerificationReport, Problem> {
    let mut report = VerificationReport::default();
    for found in store.verify(stream)? {
        let kind = found.kind.as_str().to_owned();
        report.findings.push(VerificationFinding {
            stream: found.stream,
            seq: found.seq,
            kind,
            detail: found.detail,
        });
    }
    let registries = Registries::read(store);
    let streams = match store.streams() {
        Ok(streams) => streams,
        // What is left is not known; what was found so far is.
        Err(problem) => {
            report.findings.push(unchecked(&StreamId::system(), problem));
            return Ok(report);
        }
    };
    for info in streams {
        if stream.is_some_and(|wanted| *wanted != info.id) {
            continue;
        }
        report.streams += 1;
        report.frames += info.frames;
        let damaged = report.findings.iter().any(|finding| finding.stream == info.id);
        let partial = match (info.erased, info.first) {
            (1.., _) => Some("its content was erased"),
            (_, Some(first)) if first > Seq(0) => Some("its beginning was collected"),
            _ if damaged => Some("its integrity is broken"),
            _ => None,
        };
        match partial {
            Some(why) => drop(report.integrity_only.insert(info.id.clone(), why.to_owned())),
            None => {
                if let Err(problem) = check_meaning(store, &info.id, &registries, &mut report) {
                    report.findings.push(unchecked(&info.id, problem));
                }
            }
        }
    }
    Ok(report)
}

/// A stream that refers to something that is damaged or gone. The others are checked all the same.
fn unchecked(stream: &StreamId, problem: Problem) -> VerificationFinding {
    let (kind, detail) = ("not_checked".to_owned(), problem.what);
    VerificationFinding { stream: stream.clone(), seq: None, kind, detail }
}

fn check_meaning(
    store: &Store,
    stream: &StreamId,
    registries: &Registries,
    report: &mut VerificationReport,
) -> Result<(), Problem> {
    if stream.bus_partition().is_some() {
        return check_events(store, stream, report);
    }
    if stream.is_system() {
        check_machine(store, stream, System::new(), &mut None, report)
    } else {
        let mut coverage = Some(Coverage::new(stream.clone(), registries));
        check_machine(store, stream, Session::new(stream.clone()), &mut coverage, report)?;
        report.findings.extend(coverage.into_iter().flat_map(|coverage| coverage.findings));
        Ok(())
    }
}

/// Walks a partition of the bus: every outcome names an event that was published before.
fn check_events(store: &Store, stream: &StreamId, report: &mut VerificationReport) -> Result<(), Problem> {
    let mut published = BTreeSet::new();
    // Rows are read before the frames. A row that is gone by then has its frame, and what was retried later is not looked for.
    let head = store.head(stream)?.map_or(Seq(0), |head| head.seq);
    let names: BTreeMap<_, _> = store.subscribers()?.into_iter().collect();
    let rows = store.deliveries(stream, |_| true)?;
    let rows: BTreeSet<_> =
        rows.iter().filter_map(|row| Some((row.seq, names.get(&row.subscriber)?.clone()))).collect();
    // The events that have a row for a subscriber: after a retry or a dead letter, until something else becomes of them.
    let mut owed: BTreeSet<(Seq, String)> = BTreeSet::new();
    store.for_each_frame(stream, Seq(0), |frame| {
        let spoken_of = match store.body(&frame)? {
            Body::EventPublished(_) => {
                published.insert(frame.envelope.seq);
                Vec::new()
            }
            Body::EventDelivered(body) => {
                for event in &body.events {
                    owed.remove(&(*event, body.subscriber.clone()));
                }
                body.events
            }
            Body::EventRetried(EventRetried { event, subscriber, .. })
            | Body::EventDead(EventDead { event, subscriber, .. }) => {
                if frame.envelope.seq <= head {
                    owed.insert((event, subscriber));
                }
                vec![event]
            }
            Body::EventDiscarded(body) => {
                owed.remove(&(body.event, body.subscriber));
                vec![body.event]
            }
            _ => {
                let detail = format!("{} is not a frame of the bus", frame.envelope.kind);
                report.findings.push(finding(&frame, "not_admissible", detail));
                Vec::new()
            }
        };
        if let Some(event) = spoken_of.into_iter().find(|event| !published.contains(event)) {
            let detail = format!("{} speaks of {event}, which is not an event", frame.envelope.kind);
            report.findings.push(finding(&frame, "no_cause", detail));
        }
        Ok(ControlFlow::Continue(()))
    })?;
    for (seq, subscriber) in owed.difference(&rows) {
        let detail = format!("it was to be delivered to `{subscriber}` again, but its delivery row is gone");
        let (stream, kind) = (stream.clone(), "delivery_missing".to_owned());
        report.findings.push(VerificationFinding { stream, seq: Some(*seq), kind, detail });
    }
    Ok(())
}

/// Walks a stream once: causes, coverage, and the state at the snapshot.
fn check_machine<M: Machine>(
    store: &Store,
    stream: &StreamId,
    mut machine: M,
    coverage: &mut Option<Coverage<'_>>,
    report: &mut VerificationReport,
) -> Result<(), Problem> {
    let snapshot = store.latest_snapshot(stream)?.map(|(reference, _)| reference);
    // A snapshot of another version is never read, so there is nothing to compare it with.
    let snapshot = snapshot.filter(|reference| reference.kernel == M::STATE_VERSION);
    let mut kinds: Vec<FrameKind> = Vec::new();
    let findings = &mut report.findings;
    store.for_each_frame(stream, Seq(0), |frame| {
        if let Some(detail) = bad_cause(&frame, &kinds) {
            findings.push(finding(&frame, "no_cause", detail));
        }
        kinds.push(frame.envelope.kind);
        if let Some(coverage) = coverage {
            coverage.see(&frame, &store.body(&frame)?);
        }
        if frame.envelope.kind.origin() == FrameOrigin::Fact {
            let input = input_of(store, &frame)?;
            if let (Some(coverage), Body::InputReceived(fact)) = (&mut *coverage, &input.body) {
                coverage.pin(&frame.envelope, &fact.registry);
            }
            if machine.step(input).is_err() {
                findings.push(finding(
                    &frame,
                    "not_admissible",
                    "the kernel does not admit this fact here".to_owned(),
                ));
                return Ok(ControlFlow::Break(()));
            }
        }
        let snapshot_here = snapshot.as_ref().filter(|reference| reference.seq.next() == machine.next_seq());
        if let Some(reference) = snapshot_here.filter(|reference| reference.seq == frame.envelope.seq) {
            let state = canonical(&machine).map(|bytes| Digest::of(&bytes)).unwrap_or_default();
            if state != reference.digest {
                let detail = "the snapshot is not the state that the frames lead to".to_owned();
                findings.push(finding(&frame, "snapshot_state", detail));
            }
        }
        Ok(ControlFlow::Continue(()))
    })
}

/// What a decision or an answer must have been caused by.
fn bad_cause(frame: &Frame, kinds: &[FrameKind]) -> Option<String> {
    let (kind, cause) = (frame.envelope.kind, frame.envelope.cause);
    let caused_by = cause.and_then(|cause| kinds.get(usize::try_from(cause.0).ok()?)).copied();
    let wanted = match kind {
        FrameKind::HookAgreed | FrameKind::HookDecided | FrameKind::HookFaulted => {
            Some(FrameKind::HookCalled)
        }
        FrameKind::ToolReturned => Some(FrameKind::ToolDispatched),
        FrameKind::ModelReturned | FrameKind::ModelFailed => Some(FrameKind::ModelRequested),
        FrameKind::ApprovalAnswered => Some(FrameKind::ApprovalRequested),
        FrameKind::ChildEnded => Some(FrameKind::ChildOpened),
        FrameKind::CompactionProvided => Some(FrameKind::CompactionStarted),
        FrameKind::ExtensionReported => Some(FrameKind::ExtensionCommanded),
        _ => None,
    };
    match (wanted, kind.origin(), caused_by) {
        (Some(wanted), _, Some(found)) if wanted == found => None,
        (Some(wanted), _, _) => Some(format!("{kind} must answer a {wanted}")),
        (None, FrameOrigin::Decision, Some(found)) if found.origin() == FrameOrigin::Fact => None,
        (None, FrameOrigin::Decision, _) => Some(format!("{kind} must follow from a fact")),
        (None, FrameOrigin::Fact, _) => None,
    }
}

fn finding(frame: &Frame, kind: &str, detail: String) -> VerificationFinding {
    VerificationFinding {
        stream: frame.envelope.stream.clone(),
        seq: Some(frame.envelope.seq),
        kind: kind.to_owned(),
        detail,
    }
}
