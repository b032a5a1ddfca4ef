//! Sessions on the real runtime: context, usage limits, the tool executor, resumption, capacity, and bugs that were once found.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on should stop loudly"
)]

mod budgets;
mod context;
mod executor;
mod regressions;
mod resume;
mod session_capacity;
