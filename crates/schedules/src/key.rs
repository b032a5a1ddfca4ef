//! One run of a schedule, named so that it is the same run before and after any restart.

use std::fmt;

use holdfast_contract::ids::{Millis, ScheduleId};
use holdfast_contract::system_frames::ScheduleDue;

/// The key of a run: which schedule, and when it was due. What is made under one key is made once.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunKey {
    /// The schedule.
    pub schedule: ScheduleId,
    /// The moment it was due, not the moment it ran.
    pub due: Millis,
}

impl fmt::Display for RunKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.schedule, self.due.0)
    }
}

impl From<RunKey> for ScheduleDue {
    fn from(RunKey { schedule, due }: RunKey) -> Self {
        Self { schedule, due, retry: None, passed: None, corrected: false }
    }
}
