//! What came due since a timetable was looked at last: which of it is run, and which is passed over, with the reason.

use std::fmt;

use holdfast_contract::ids::Millis;
use holdfast_contract::system_frames::MissedPolicy;

use crate::timetable::Timetable;

/// How late a run may be and still count as on time. Later, it was missed.
pub const GRACE: Millis = Millis(60_000);

/// How many missed runs are made up for together.
pub const MOST_MADE_UP: usize = 100;

/// How far runs that are passed over are counted.
const MOST_COUNTED: usize = 1_000;

/// What is to be done about a span of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settlement {
    /// The due times to run, the oldest first. Each is to begin when the one before has ended.
    pub run: Vec<Millis>,
    /// The due times that are passed over, all of them before those that are run.
    pub passed: Option<Passed>,
}

/// Skipped runs. The log has an entry for the last of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passed {
    /// The first due time.
    pub first: Millis,
    /// The last due time.
    pub last: Millis,
    /// How many.
    pub runs: Runs,
    /// Why, in a sentence without an end.
    pub reason: &'static str,
}

/// A number of runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runs {
    /// So many.
    Exactly(usize),
    /// More than were counted.
    MoreThan(usize),
}

impl Settlement {
    /// The latest due time that is dealt with, which is to be remembered as handled. None if nothing came due.
    pub fn handled(&self) -> Option<Millis> {
        self.run.last().copied().or_else(|| self.passed.as_ref().map(|passed| passed.last))
    }
}

impl Timetable {
    /// Settles what came due after `handled`, the latest due time that was dealt with, up to now. A schedule that is new has handled
    /// everything up to the moment at which it was first met. Where the clock was put back, nothing is due until it has caught up.
    pub fn settle(&self, handled: Millis, now: Millis, policy: MissedPolicy) -> Settlement {
        let Some(last) = self.last_between(handled, now) else { return Settlement::default() };
        let run = match policy {
            MissedPolicy::RunOnce => vec![last],
            MissedPolicy::Skip if now.since(last) > GRACE => Vec::new(),
            MissedPolicy::Skip => vec![last],
            MissedPolicy::RunAll => self.latest(handled, last),
        };
        let reason = match policy {
            MissedPolicy::RunOnce => "a later run makes up for it",
            MissedPolicy::Skip => "it was missed, and missed runs are skipped",
            MissedPolicy::RunAll => "more runs were missed than are made up for",
        };
        let before = run.first().map_or(now, |first| Millis(first.0 - 1));
        Settlement { passed: self.passed(handled, before, reason), run }
    }

    /// The latest due times of a span that ends with one, as many as are made up for.
    fn latest(&self, after: Millis, last: Millis) -> Vec<Millis> {
        let all = self.due_between(after, last, MOST_MADE_UP + 1);
        if all.len() <= MOST_MADE_UP {
            return all;
        }
        let mut latest = vec![last];
        while latest.len() < MOST_MADE_UP {
            match latest.last().and_then(|due| self.last_between(after, Millis(due.0 - 1))) {
                Some(due) => latest.push(due),
                None => break,
            }
        }
        latest.reverse();
        latest
    }

    fn passed(&self, after: Millis, until: Millis, reason: &'static str) -> Option<Passed> {
        let last = self.last_between(after, until)?;
        let counted = self.due_between(after, until, MOST_COUNTED + 1);
        let first = *counted.first()?;
        let runs = match counted.len() {
            count if count > MOST_COUNTED => Runs::MoreThan(MOST_COUNTED),
            count => Runs::Exactly(count),
        };
        Some(Passed { first, last, runs, reason })
    }
}

impl fmt::Display for Runs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exactly(1) => f.write_str("1 run"),
            Self::Exactly(count) => write!(f, "{count} runs"),
            Self::MoreThan(count) => write!(f, "more than {count} runs"),
        }
    }
}

impl fmt::Display for Passed {
    /// As it is recorded in a frame: `it was missed, and missed runs are skipped (3 runs)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.runs {
            Runs::Exactly(1) => f.write_str(self.reason),
            runs => write!(f, "{} ({runs})", self.reason),
        }
    }
}
