//! Tests across the workspace are in `tests/`: scenarios, replay, tampering, crashes, architecture. This library has what several of
//! their binaries share.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on should stop loudly"
)]

pub mod fuzz;
pub mod generated;
pub mod scene;
