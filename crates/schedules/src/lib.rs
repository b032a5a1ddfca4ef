//! When things are due.
//!
//! Start at [`Timetable`]: it reads a cron expression, an interval or a moment in a [`Zone`], and says what comes next.
//! [`Timetable::settle`] judges what came due since it was looked at last, [`RunKey`] names one run for good, and [`Backoff`] says how long to
//! wait after a failure. `docs/schedules.md` is the user's page.
//!
//! Use this crate for questions about time that must have the same answer everywhere and after every restart. Do not look at a clock here,
//! nor draw a random number: both are handed in. The time zone database is part of the program, so no answer depends on the machine.

mod backoff;
mod cron;
mod interval;
mod key;
mod moment;
mod settle;
mod timetable;
mod zone;

#[cfg(test)]
mod backoff_tests;
#[cfg(test)]
mod property_tests;
#[cfg(test)]
mod saving_tests;
#[cfg(test)]
mod settle_tests;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod timetable_tests;
#[cfg(test)]
mod wording_tests;
#[cfg(test)]
mod year_tests;

pub use backoff::{Backoff, Jitter};
pub use key::RunKey;
pub use settle::{GRACE, MOST_MADE_UP, Passed, Runs, Settlement};
pub use timetable::Timetable;
pub use zone::Zone;
