//! The system's actor owns the system machine: it starts and stops extensions, builds registries, runs schedules, and anchors the
//! heads of all streams.
//!
//! | file | contents |
//! |---|---|
//! | `actor.rs` | the actor's loop, and performing its acts |
//! | `execution_marker.rs` | whose code is executing while extensions start, for the process after a crash |
//! | `handle.rs` | sending facts and commands to the actor |
//! | `schedule_queue.rs` | which schedules are due, without a clock |
//! | `schedule_runs.rs` | the next and last runs of schedules, and running one now |
//! | `background.rs` | background services of extensions, and health checks |
//! | `routine_checks.rs` | counts calls of extensions that had the same outcome as before |

mod actor;
mod background;
mod execution_marker;
mod handle;
mod routine_checks;
mod schedule_queue;
#[cfg(test)]
mod schedule_queue_tests;
mod schedule_runs;

pub(crate) use actor::{SystemActor, SystemCommand};
pub(crate) use background::Background;
pub(crate) use execution_marker::ExecutionMarker;
pub(crate) use handle::SystemHandle;
pub(crate) use routine_checks::RoutineChecks;
pub(crate) use schedule_queue::{ClockReading, MAX_SLEEP, ScheduleQueue};
pub use schedule_runs::{RunOutcome, ScheduleRun, ScheduleView};
