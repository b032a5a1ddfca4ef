//! Due times of schedules.
//!
//! Start at [`Timetable`]: it reads a cron expression, an interval or a point in time in a [`Zone`], and computes the next due time.
//! [`Timetable::settle`] judges runs that came due since the last look, [`RunKey`] identifies one run permanently, and
//! [`Backoff`] gives the wait after a failure.
//! `docs/schedules.md` is the user's page.
//!
//! Use this crate for questions about time that must have the same answer everywhere and after every restart. Do not read a clock or
//! draw random numbers here: both are parameters. The time zone database is built in, so no answer depends on the machine.

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
