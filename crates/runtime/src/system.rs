//! The system's actor owns the system machine: it starts and stops extensions, builds registries, runs schedules, and anchors the
//! heads of all streams.
//!
//! | file | contents |
//! |---|---|
//! | `actor.rs` | the actor's loop, and performing its acts |
//! | `handle.rs` | sending facts and commands to the actor |
//! | `schedule_queue.rs` | which schedules are due, without a clock |
//! | `background.rs` | background services of extensions, and health checks |

mod actor;
mod background;
mod handle;
mod schedule_queue;
#[cfg(test)]
mod schedule_queue_tests;

pub(crate) use actor::{SystemActor, SystemCommand};
pub(crate) use background::Background;
pub(crate) use handle::SystemHandle;
pub(crate) use schedule_queue::{MAX_SLEEP, ScheduleQueue};
