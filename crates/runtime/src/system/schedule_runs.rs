//! Schedules as a user sees them: when each is due next, how its last run ended, and running one now.

use std::collections::BTreeMap;

use holdfast_contract::body::{Body, FrameKind};
use holdfast_contract::ids::{ExtensionId, Millis, ScheduleId, Seq, StreamId};
use holdfast_contract::problem::{Code, Fault, Problem};
use holdfast_contract::system_frames::{ScheduleEnded, ScheduleSpec};
use holdfast_schedules::Timetable;
use holdfast_store::Store;

use super::SystemCommand;
use crate::runtime::Runtime;

/// How far back the log is searched for the last run of a schedule, and how many frames are read at a time.
const MAX_FRAMES_SEARCHED: u64 = 100_000;
const FRAMES_AT_A_TIME: u64 = 5_000;

/// A schedule of an active extension.
#[derive(Clone, Debug, PartialEq)]
pub struct ScheduleView {
    /// Its id: `<extension>/<name>`.
    pub id: ScheduleId,
    /// The extension.
    pub extension: ExtensionId,
    /// Its spec in the manifest.
    pub spec: ScheduleSpec,
    /// The time zone that it is in.
    pub zone: String,
    /// When it is due next; none if never again.
    pub next: Option<Millis>,
    /// The last run that the log has.
    pub last: Option<ScheduleRun>,
}

/// A run of a schedule.
#[derive(Clone, Debug, PartialEq)]
pub struct ScheduleRun {
    /// The moment it was due.
    pub due: Millis,
    /// When it began.
    pub began: Millis,
    /// How it ended.
    pub outcome: RunOutcome,
}

/// How a run of a schedule ended.
#[derive(Clone, Debug, PartialEq)]
pub enum RunOutcome {
    /// It is under way.
    Running,
    /// The process ended before it did.
    Interrupted,
    /// The task succeeded.
    Succeeded,
    /// The task failed.
    Failed(Fault),
}

impl Runtime {
    /// The schedules of the active extensions, by id.
    pub fn schedules(&self) -> Result<Vec<ScheduleView>, Problem> {
        let (inner, now) = (self.inner(), self.now());
        let mut views = Vec::new();
        for extension in inner.extensions.all_active() {
            for spec in inner.extensions.schedules(&extension.id) {
                let timetable = Timetable::of(&spec, inner.home.zone())?;
                views.push(ScheduleView {
                    id: format!("{}/{}", extension.id, spec.name).as_str().into(),
                    extension: extension.id.clone(),
                    zone: timetable.zone().name().to_owned(),
                    next: timetable.next_after(now),
                    spec,
                    last: None,
                });
            }
        }
        inner.store.flush()?;
        let mut last = last_runs(&inner.store, views.len())?;
        for view in &mut views {
            view.last = last.remove(&view.id);
        }
        views.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(views)
    }

    /// Runs a schedule now, as if it were due, and waits for its end. One that is running is waited for and not run twice. A failed run
    /// is not tried again.
    pub async fn run_schedule(&self, name: &str) -> Result<ScheduleEnded, Problem> {
        let schedule = named(name, &self.schedules()?)?;
        self.inner().system.ask(|reply| SystemCommand::RunSchedule { schedule, reply }).await
    }
}

/// The schedule that a name means: `<extension>/<name>`, or the name alone where no other extension has it.
fn named(name: &str, schedules: &[ScheduleView]) -> Result<ScheduleId, Problem> {
    let ids: Vec<&str> = schedules.iter().map(|view| view.id.as_str()).collect();
    if let Some(exact) = schedules.iter().find(|view| view.id.as_str() == name) {
        return Ok(exact.id.clone());
    }
    let fits: Vec<&ScheduleView> = schedules.iter().filter(|view| view.spec.name == name).collect();
    match fits.as_slice() {
        [only] => Ok(only.id.clone()),
        [] => {
            let empty = "No active extension has a schedule.";
            Err(Problem::unknown(Code::ScheduleUnknown, "schedule", name, &ids, empty))
        }
        several => {
            let ids: Vec<&str> = several.iter().map(|view| view.id.as_str()).collect();
            let what = format!("several schedules are called `{name}`");
            Err(Problem::new(Code::UsageInvalid, what).help(format!("Name one of: {}.", ids.join(", "))))
        }
    }
}

/// The last run of each schedule, from the system stream. The search ends when as many are found as there are schedules.
fn last_runs(store: &Store, schedules: usize) -> Result<BTreeMap<ScheduleId, ScheduleRun>, Problem> {
    let stream = StreamId::system();
    let (mut runs, mut ends) = (BTreeMap::new(), BTreeMap::new());
    let mut restarted = false;
    let mut end = store.head(&stream)?.map_or(0, |head| head.seq.0 + 1);
    let oldest = end.saturating_sub(MAX_FRAMES_SEARCHED);
    while end > oldest && runs.len() < schedules {
        let from = end.saturating_sub(FRAMES_AT_A_TIME).max(oldest);
        for frame in store.frames(&stream, Seq(from)..=Seq(end - 1))?.iter().rev() {
            match frame.envelope.kind {
                FrameKind::SystemStarted => restarted = true,
                FrameKind::ScheduleFired | FrameKind::ScheduleEnded => match store.body(frame)? {
                    Body::ScheduleEnded(ended) => {
                        ends.entry(ended.schedule.clone()).or_insert(ended);
                    }
                    Body::ScheduleFired(fired) if !runs.contains_key(&fired.schedule) => {
                        let ended = ends.remove(&fired.schedule).filter(|ended| ended.due == fired.due);
                        let outcome = match (ended, restarted) {
                            (Some(ScheduleEnded { fault: Some(fault), .. }), _) => RunOutcome::Failed(fault),
                            (Some(_), _) => RunOutcome::Succeeded,
                            (None, true) => RunOutcome::Interrupted,
                            (None, false) => RunOutcome::Running,
                        };
                        let run = ScheduleRun { due: fired.due, began: frame.envelope.at, outcome };
                        runs.insert(fired.schedule, run);
                    }
                    _ => {}
                },
                _ => {}
            }
        }
        end = from;
    }
    Ok(runs)
}
