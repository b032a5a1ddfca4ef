//! Recent failures of extensions, from the system stream: when, in which phase, why, and what to do.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_contract::body::{Body, FrameKind};
use holdfast_contract::ids::{ExtensionId, Millis, Seq, StreamId, ToolName};
use holdfast_contract::problem::{Fault, Problem};
use holdfast_contract::registry::Descriptor;
use holdfast_contract::system_frames::{ExtensionReported, ExtensionState, LifecycleOutcome};
use holdfast_store::Store;
use serde::Serialize;

use crate::calls::Suspended;
use crate::runtime::{Inner, Runtime};

/// How far back is looked.
const MAX_FRAMES_SEARCHED: u64 = 10_000;

/// Something that went wrong with an extension.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FaultReport {
    /// The extension.
    pub extension: ExtensionId,
    /// The frame that tells of it; the last frame for a tool whose circuit breaker is open, because its calls record that.
    pub seq: Seq,
    /// When.
    pub at: Millis,
    /// What the extension was doing: `discovery`, `load`, `start`, `tool`, `health check`, `service`.
    pub phase: String,
    /// The stable code.
    pub code: &'static str,
    /// What happened.
    pub message: String,
    /// What to do.
    pub fix: String,
}

/// What frames that are later than the one looked at say about each extension.
#[derive(Default)]
struct Later {
    /// Those that were there since the last start.
    present: BTreeSet<ExtensionId>,
    /// Those that were removed.
    removed: BTreeSet<ExtensionId>,
    /// Those that became active with the content of their folder.
    active: BTreeSet<ExtensionId>,
    /// Whether the last start was passed.
    started: bool,
}

impl Later {
    fn take(&mut self, body: &Body) {
        let id = match body {
            Body::ExtensionsFound(found) if !self.started => {
                return self.present.extend(found.found.iter().map(|found| found.id.clone()));
            }
            Body::SystemStarted(_) => return self.started = true,
            Body::ExtensionRemoved(gone) => return self.removed_first(&gone.id),
            Body::ExtensionRejected(fact) => &fact.id,
            Body::ExtensionReported(fact) => &fact.id,
            Body::ExtensionStateChanged(fact) => {
                if fact.state == ExtensionState::Active && fact.fault.is_none() {
                    self.active.insert(fact.id.clone());
                }
                &fact.id
            }
            _ => return,
        };
        if !self.started {
            self.present.insert(id.clone());
        }
    }

    fn removed_first(&mut self, id: &ExtensionId) {
        if !self.present.contains(id) {
            self.removed.insert(id.clone());
        }
    }

    /// Whether a failure no longer matters: its extension is gone, or what was wrong with its files was corrected. Every start
    /// finds again what is still wrong with them.
    fn settled(&self, extension: &ExtensionId, phase: &str) -> bool {
        let gone = self.removed.contains(extension) || self.started && !self.present.contains(extension);
        let of_its_files = matches!(phase, "discovery" | "load" | "state");
        gone || of_its_files && (self.started || self.active.contains(extension))
    }
}

/// The last so many faults of each extension, or of one, the latest first. The same fault is listed once, and one that was
/// settled is not.
pub fn recent_faults(
    store: &Store,
    only: Option<&ExtensionId>,
    most: usize,
) -> Result<Vec<FaultReport>, Problem> {
    let stream = StreamId::system();
    let last = store.head(&stream)?.map_or(0, |head| head.seq.0);
    let frames = store.frames(&stream, Seq(last.saturating_sub(MAX_FRAMES_SEARCHED))..)?;
    let (mut faults, mut later): (Vec<FaultReport>, _) = (Vec::new(), Later::default());
    for frame in frames.iter().rev() {
        let kind = frame.envelope.kind;
        if kind != FrameKind::SystemStarted && !kind.as_str().starts_with("extension.") {
            continue;
        }
        let body = store.body(frame)?;
        later.take(&body);
        let Some((extension, phase, fault)) = told(body) else { continue };
        if later.settled(&extension, &phase) {
            continue;
        }
        let of_it = faults.iter().filter(|report| report.extension == extension);
        // The state that follows from a fault says the same once more.
        let repeats = |report: &FaultReport| {
            report.message == fault.message && (phase == "state" || phase == report.phase)
        };
        if only.is_some_and(|only| *only != extension) || of_it.clone().count() >= most {
            continue;
        }
        if of_it.clone().any(repeats) {
            continue;
        }
        faults.retain(|report| {
            !(report.extension == extension && report.phase == "state" && report.message == fault.message)
        });
        let (seq, at) = (frame.envelope.seq, frame.envelope.at);
        let (code, fix, message) = (fault.code.as_str(), fix_for(&extension, &fault), fault.message);
        faults.push(FaultReport { extension, seq, at, phase, code, message, fix });
    }
    Ok(faults)
}

/// What to do about a fault of an extension.
fn fix_for(extension: &ExtensionId, fault: &Fault) -> String {
    let module = fault.message.split_once("No module named '").and_then(|(_, rest)| rest.split_once('\''));
    match module {
        Some((module, _)) => format!(
            "Name the package of `{module}` in `extensions/{extension}/requirements.txt`, or in `extensions/requirements.txt` for a single file."
        ),
        None if fault.message.contains("enable_load_extension") => format!(
            "Python's SQLite loads no extensions. Name `pysqlite3-binary`, which has one that does, in `extensions/{extension}/requirements.txt`."
        ),
        None => fault.code.help().to_owned(),
    }
}

/// The tools that each extension registered when the home was up last, from the system stream.
pub fn registered(store: &Store) -> Result<BTreeMap<ExtensionId, Vec<ToolName>>, Problem> {
    let stream = StreamId::system();
    let last = store.head(&stream)?.map_or(0, |head| head.seq.0);
    let mut registered = BTreeMap::new();
    for frame in store.frames(&stream, Seq(last.saturating_sub(MAX_FRAMES_SEARCHED))..)?.iter().rev() {
        match frame.envelope.kind {
            FrameKind::SystemStarted => break,
            FrameKind::ExtensionReported | FrameKind::ExtensionRemoved => {}
            _ => continue,
        }
        match store.body(frame)? {
            // What came before its folder went does not count.
            Body::ExtensionRemoved(gone) => drop(registered.entry(gone.id).or_insert_with(Vec::new)),
            Body::ExtensionReported(ExtensionReported {
                id,
                outcome: LifecycleOutcome::Loaded { descriptors, .. },
                ..
            }) => {
                let tools = || descriptors.iter().flat_map(Descriptor::tool_names).collect();
                registered.entry(id).or_insert_with(tools);
            }
            _ => {}
        }
    }
    Ok(registered)
}

/// The default number of failures listed for each extension.
const MAX_FAULTS_SHOWN: usize = 5;

impl Inner {
    /// The last faults of each extension, or of one, including those of a moment ago.
    pub(crate) fn recent_faults(&self, only: Option<&ExtensionId>) -> Result<Vec<FaultReport>, Problem> {
        self.store.flush()?;
        let seq = self.store.head(&StreamId::system())?.map_or(Seq(0), |head| head.seq);
        let suspended = self.calls.suspended(self.clock.steady()).into_iter();
        let suspended = suspended.filter(|it| only.is_none_or(|only| *only == it.extension)).map(|it| {
            let Suspended { extension, since: at, fault } = it;
            let (code, fix, message) = (fault.code.as_str(), fix_for(&extension, &fault), fault.message);
            FaultReport { extension, seq, at, phase: "tool".to_owned(), code, message, fix }
        });
        Ok(suspended.chain(recent_faults(&self.store, only, MAX_FAULTS_SHOWN)?).collect())
    }
}

impl Runtime {
    /// The last faults of each extension, or of one, the latest first.
    pub fn recent_faults(&self, only: Option<&ExtensionId>) -> Result<Vec<FaultReport>, Problem> {
        self.inner().recent_faults(only)
    }

    /// The tools whose circuit breaker is open, with their extensions and the reason.
    pub fn suspended(&self) -> Vec<(ExtensionId, Fault)> {
        let inner = self.inner();
        let suspended = inner.calls.suspended(inner.clock.steady()).into_iter();
        suspended.map(|it| (it.extension, it.fault)).collect()
    }
}

/// What a frame tells of an extension's trouble.
fn told(body: Body) -> Option<(ExtensionId, String, Fault)> {
    Some(match body {
        Body::ExtensionRejected(fact) => (fact.id, "discovery".to_owned(), fact.fault),
        Body::ExtensionFaulted(fact) => (fact.id, fact.phase, fact.fault),
        Body::ExtensionStateChanged(fact) => (fact.id, "state".to_owned(), fact.fault?),
        Body::ExtensionReported(fact) => match fact.outcome {
            LifecycleOutcome::Failed(fault) => (fact.id, fact.command.name().to_owned(), fault),
            LifecycleOutcome::Done | LifecycleOutcome::Loaded { .. } => return None,
        },
        _ => return None,
    })
}
