//! What went wrong with extensions of late, from the system stream: when, in which phase, why, and what to do.

use holdfast_contract::body::Body;
use holdfast_contract::ids::{ExtensionId, Millis, Seq, StreamId};
use holdfast_contract::problem::{Fault, Problem};
use holdfast_contract::system_frames::LifecycleOutcome;
use holdfast_store::Store;
use serde::Serialize;

use crate::executor::Suspended;
use crate::runtime::{Inner, Runtime};

/// How far back is looked.
const FRAMES: u64 = 10_000;

/// Something that went wrong with an extension.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trouble {
    /// The extension.
    pub extension: ExtensionId,
    /// The frame that tells of it; the last one there is where a tool is left alone at the moment, of which its calls tell.
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
    pub fix: &'static str,
}

/// The last so many troubles of each extension, or of one, the latest first.
pub fn troubles(store: &Store, only: Option<&ExtensionId>, most: usize) -> Result<Vec<Trouble>, Problem> {
    let stream = StreamId::system();
    let last = store.head(&stream)?.map_or(0, |head| head.seq.0);
    let frames = store.frames(&stream, Seq(last.saturating_sub(FRAMES))..)?;
    let mut troubles: Vec<Trouble> = Vec::new();
    for frame in frames.iter().rev() {
        if !frame.envelope.kind.as_str().starts_with("extension.") {
            continue;
        }
        let Some((extension, phase, fault)) = told(store.body(frame)?) else { continue };
        let of_it = troubles.iter().filter(|trouble| trouble.extension == extension);
        // The state that follows from a fault says the same once more.
        let repeats = |trouble: &Trouble| phase == "state" && trouble.message == fault.message;
        if only.is_some_and(|only| *only != extension) || of_it.clone().count() >= most {
            continue;
        }
        if of_it.clone().any(repeats) {
            continue;
        }
        troubles.retain(|trouble| {
            !(trouble.extension == extension && trouble.phase == "state" && trouble.message == fault.message)
        });
        let (seq, at) = (frame.envelope.seq, frame.envelope.at);
        let (code, fix, message) = (fault.code.as_str(), fault.code.help(), fault.message);
        troubles.push(Trouble { extension, seq, at, phase, code, message, fix });
    }
    Ok(troubles)
}

/// Troubles of each extension that are told where nobody says how many.
const MOST: usize = 5;

impl Inner {
    /// The last troubles of each extension, or of one, including those of a moment ago.
    pub(crate) fn troubles(&self, only: Option<&ExtensionId>) -> Result<Vec<Trouble>, Problem> {
        self.store.flush()?;
        let seq = self.store.head(&StreamId::system())?.map_or(Seq(0), |head| head.seq);
        let left_alone = self.executor.suspended(self.clock.now()).into_iter();
        let left_alone = left_alone.filter(|it| only.is_none_or(|only| *only == it.extension)).map(|it| {
            let Suspended { extension, since: at, fault } = it;
            let (code, fix, message) = (fault.code.as_str(), fault.code.help(), fault.message);
            Trouble { extension, seq, at, phase: "tool".to_owned(), code, message, fix }
        });
        Ok(left_alone.chain(troubles(&self.store, only, MOST)?).collect())
    }
}

impl Runtime {
    /// The last troubles of each extension, or of one, the latest first.
    pub fn troubles(&self, only: Option<&ExtensionId>) -> Result<Vec<Trouble>, Problem> {
        self.inner().troubles(only)
    }

    /// The tools that are left alone at the moment because they keep breaking down, with their extensions and why.
    pub fn suspended(&self) -> Vec<(ExtensionId, Fault)> {
        let inner = self.inner();
        let suspended = inner.executor.suspended(inner.clock.now()).into_iter();
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
            LifecycleOutcome::Failed(fault) => {
                let phase = serde_json::to_value(fact.command).ok()?.as_str()?.to_owned();
                (fact.id, phase, fault)
            }
            LifecycleOutcome::Done | LifecycleOutcome::Loaded { .. } => return None,
        },
        _ => return None,
    })
}
