//! The schedule queue: which schedules of the active extensions are due, and the facts about that. It reads no clock and runs nothing:
//! the system's actor hands it the time and what the kernel remembers, and passes the results on as facts, one run of a schedule at a time.
//!
//! The machine's clock, which may be set, says what is due. How long to wait before another attempt is measured with the steady one.
//!
//! What must survive a restart is in the kernel's state; what is here can be rebuilt from it.

use std::collections::{BTreeMap, VecDeque};

use holdfast_contract::ids::{ExtensionId, Millis, ScheduleId};
use holdfast_contract::system_frames::{MissedPolicy, Retry, ScheduleDue, ScheduleEnded, ScheduleSpec};
use holdfast_schedules::{Backoff, Jitter, RunKey, Timetable, Zone};

/// The longest sleep: the clock may be set, and a machine may sleep, and neither is to be noticed much too late.
pub(crate) const MAX_SLEEP: Millis = Millis(60_000);

/// What the two clocks show at one moment.
#[derive(Clone, Copy)]
pub(crate) struct ClockReading {
    /// The machine's clock.
    pub wall: Millis,
    /// The steady clock.
    pub steady: Millis,
}

/// The schedules of all extensions that serve.
pub(crate) struct ScheduleQueue {
    zone: Zone,
    backoff: Backoff,
    schedules: BTreeMap<ScheduleId, Scheduled>,
}

/// A schedule under way.
struct Scheduled {
    spec: ScheduleSpec,
    timetable: Timetable,
    /// The latest due time that is dealt with or stands in the backlog; none until it was met.
    handled: Option<Millis>,
    /// Due times that wait for the run before them.
    backlog: VecDeque<Millis>,
    running: Option<Run>,
    /// The attempt that is made next, and when by the steady clock.
    again: Option<(Millis, Run)>,
    /// Whether it was changed: what it says now says nothing of the time before.
    changed: bool,
}

/// A run of a schedule.
#[derive(Clone)]
struct Run {
    due: Millis,
    /// The attempt, if it is not the first.
    retry: Option<Retry>,
}

impl ScheduleQueue {
    /// No schedules yet. The zone is for those that name none.
    pub(crate) fn new(zone: Zone) -> Self {
        Self { zone, backoff: Backoff::default(), schedules: BTreeMap::new() }
    }

    /// An extension serves with these schedules, or no longer serves. One that cannot be read was refused by the loader, and is never due.
    pub(crate) fn serves(&mut self, extension: &ExtensionId, specs: &[ScheduleSpec]) {
        let id = |spec: &ScheduleSpec| ScheduleId::from(format!("{extension}/{}", spec.name).as_str());
        let own = format!("{extension}/");
        self.schedules.retain(|schedule, _| {
            !schedule.as_str().starts_with(&own) || specs.iter().any(|spec| id(spec) == *schedule)
        });
        for spec in specs {
            let Ok(timetable) = Timetable::of(spec, &self.zone) else { continue };
            let known = self.schedules.remove(&id(spec));
            let scheduled = match known {
                Some(known) if known.spec == *spec => known,
                Some(known) => {
                    let changed = known.timetable.to_string() != timetable.to_string();
                    Scheduled { spec: spec.clone(), timetable, changed, ..known }
                }
                None => Scheduled {
                    spec: spec.clone(),
                    timetable,
                    handled: None,
                    backlog: VecDeque::new(),
                    running: None,
                    again: None,
                    changed: false,
                },
            };
            self.schedules.insert(id(spec), scheduled);
        }
    }

    /// A run has ended. One that failed is tried again, unless it was tried often enough.
    pub(crate) fn ended(&mut self, ended: &ScheduleEnded, now: ClockReading, jitter: u32) {
        let Some(scheduled) = self.schedules.get_mut(&ended.schedule) else { return };
        let Some(run) = scheduled.running.take_if(|run| run.due == ended.due) else { return };
        let attempt = run.retry.as_ref().map_or(1, |retry| retry.attempt);
        let wait = ended.fault.as_ref().and_then(|_| self.backoff.wait(attempt, Jitter(jitter)));
        scheduled.again = wait.map(|wait| {
            let retry = Some(Retry { attempt: attempt + 1, jitter });
            (now.steady.plus(wait), Run { due: run.due, retry })
        });
    }

    /// The kernel has not let a run begin.
    pub(crate) fn skipped(&mut self, schedule: &ScheduleId) {
        if let Some(scheduled) = self.schedules.get_mut(schedule) {
            scheduled.running = None;
        }
    }

    /// What is due now. `remembered` is what the kernel remembers of each schedule.
    pub(crate) fn due(
        &mut self,
        now: ClockReading,
        remembered: &BTreeMap<ScheduleId, Millis>,
    ) -> Vec<ScheduleDue> {
        let mut facts = Vec::new();
        for (id, scheduled) in &mut self.schedules {
            scheduled.due(id, now, remembered.get(id).copied(), &mut facts);
        }
        facts
    }

    /// How long to sleep before looking again; none if nothing is ever due.
    pub(crate) fn next_wakeup(&self, now: ClockReading) -> Option<Millis> {
        Some(self.next_in(now)?.min(MAX_SLEEP))
    }

    /// How long it is until there is something to do, if no clock is set.
    pub(crate) fn next_in(&self, now: ClockReading) -> Option<Millis> {
        self.schedules.values().filter_map(|schedule| schedule.next_in(now)).min()
    }
}

impl Scheduled {
    fn due(
        &mut self,
        id: &ScheduleId,
        ClockReading { wall: now, steady }: ClockReading,
        remembered: Option<Millis>,
        facts: &mut Vec<ScheduleDue>,
    ) {
        let key = |due| ScheduleDue::from(RunKey { schedule: id.clone(), due });
        let passed = |due, why: String| ScheduleDue { passed: Some(why), ..key(due) };
        let Some(handled) = self.handled.or(remembered) else {
            self.handled = Some(now);
            return facts.push(passed(now, "first seen; the next run is computed from now".to_owned()));
        };
        if std::mem::take(&mut self.changed) {
            (self.handled, self.again) = (Some(handled.max(now)), None);
            self.backlog.clear();
            return facts.push(passed(now, "it was changed; the next run is computed from now".to_owned()));
        }
        let is_ahead = self.is_ahead(handled, now);
        if is_ahead {
            self.backlog.clear();
            let why = "the clock was put back; the next run is computed from now".to_owned();
            facts.push(ScheduleDue { corrected: true, ..passed(now, why) });
        }
        let handled = if is_ahead { now } else { handled };
        self.handled = Some(handled);
        let waits_for_all = self.spec.missed == MissedPolicy::RunAll;
        if self.running.is_some() {
            // Where all are to be run, they wait.
            if !waits_for_all && let Some(last) = self.timetable.last_between(handled, now) {
                self.handled = Some(last);
                facts.push(passed(last, "the run before has not ended".to_owned()));
            }
            return;
        }
        let something = !waits_for_all && self.timetable.next_after(handled).is_some_and(|due| due <= now);
        if let Some((at, run)) = self.again.take_if(|_| !something) {
            if at > steady {
                self.again = Some((at, run));
                return;
            }
            facts.push(ScheduleDue { retry: run.retry.clone(), ..key(run.due) });
            self.running = Some(run);
            return;
        }
        // The next run takes the place of another attempt at the one before.
        self.again = None;
        if self.backlog.is_empty() {
            let settled = self.timetable.settle(handled, now, self.spec.missed);
            self.handled = settled.handled().or(self.handled);
            facts.extend(settled.passed.as_ref().map(|over| passed(over.last, over.to_string())));
            self.backlog.extend(settled.run);
        }
        if let Some(due) = self.backlog.pop_front() {
            facts.push(key(due));
            self.running = Some(Run { due, retry: None });
        }
    }

    /// Whether what was dealt with is so far ahead of the machine's clock that the clock must have been put back.
    fn is_ahead(&self, handled: Millis, now: Millis) -> bool {
        self.timetable.max_ahead().is_some_and(|most| handled.since(now) > most)
    }

    /// How long it is until there is something to do.
    fn next_in(&self, now: ClockReading) -> Option<Millis> {
        let Some(handled) =
            self.handled.filter(|handled| !self.changed && !self.is_ahead(*handled, now.wall))
        else {
            return Some(Millis(0));
        };
        let waits_for_all = self.spec.missed == MissedPolicy::RunAll;
        let again = self.again.as_ref().map(|(at, _)| at.since(now.steady));
        match &self.running {
            Some(_) if waits_for_all => None,
            None if !self.backlog.is_empty() => Some(Millis(0)),
            None if waits_for_all && again.is_some() => again,
            _ => {
                let next = self.timetable.next_after(handled).map(|due| due.since(now.wall));
                next.into_iter().chain(again).min()
            }
        }
    }
}
