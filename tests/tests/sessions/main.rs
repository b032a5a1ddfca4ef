//! Sessions on the real runtime: context, usage limits, the tool executor, resumption, capacity, and bugs that were once found.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on should stop loudly"
)]

mod budgets;
mod context;
mod edited_calls;
mod executor;
mod regressions;
mod released;
mod resume;
mod retention;
mod session_capacity;
mod set_clock;
