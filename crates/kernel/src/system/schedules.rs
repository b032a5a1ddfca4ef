//! Schedules: whether a run that is due is made.

use holdfast_contract::effect::Act;
use holdfast_contract::ids::ExtensionId;
use holdfast_contract::system_frames::{ScheduleDue, ScheduleFired, ScheduleSkipped};

use super::System;
use super::generation::GenerationState;
use crate::phase::Phase;
use crate::step_recorder::StepRecorder;

impl System {
    /// A schedule is due. Each due time fires at most once, across restarts too, unless the clock was put back beyond it.
    pub(super) fn schedule_due(&mut self, recorder: &mut StepRecorder, fact: &ScheduleDue) {
        let ScheduleDue { schedule, due, .. } = fact;
        if self.phase != Phase::Running {
            return skip(recorder, fact, "the system is stopping");
        }
        if self.was_handled(fact) && !fact.corrected {
            return skip(recorder, fact, "this run was made already");
        }
        if let Some(reason) = &fact.passed {
            self.fired.insert(schedule.clone(), *due);
            return skip(recorder, fact, reason);
        }
        if self.running.contains(schedule) {
            return skip(recorder, fact, "the run before has not ended");
        }
        let (id, name) = schedule.as_str().split_once('/').unwrap_or((schedule.as_str(), ""));
        let extension = self.extensions.get(&ExtensionId::from(id));
        let Some(active) = extension.and_then(|extension| extension.in_state(GenerationState::Active)) else {
            return skip(recorder, fact, "the extension is not active");
        };
        let Some(spec) = active.found.schedules.iter().find(|spec| spec.name == name) else {
            return skip(recorder, fact, "the extension has no such schedule");
        };
        let task = spec.task.clone();
        let decided_by =
            recorder.record(ScheduleFired { schedule: schedule.clone(), due: *due, task: task.clone() });
        recorder.act(Act::RunTask {
            decided_by,
            schedule: schedule.clone(),
            extension: active.reference.clone(),
            task,
            due: *due,
        });
        // Another attempt changes nothing about it. Its due time may be one that was corrected meanwhile.
        if fact.retry.is_none() {
            self.fired.insert(schedule.clone(), *due);
        }
        self.running.insert(schedule.clone());
    }

    /// Whether a later run was handled, or this one, unless it is a retry.
    fn was_handled(&self, fact: &ScheduleDue) -> bool {
        let handled = self.fired.get(&fact.schedule);
        handled.is_some_and(|fired| *fired > fact.due || (*fired == fact.due && fact.retry.is_none()))
    }
}

fn skip(recorder: &mut StepRecorder, fact: &ScheduleDue, reason: &str) {
    recorder.record(ScheduleSkipped {
        schedule: fact.schedule.clone(),
        due: fact.due,
        reason: reason.to_owned(),
    });
}
