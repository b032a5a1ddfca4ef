//! What a profile forbids stays forbidden, and planted violations are found.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on should stop loudly"
)]

mod obey;
#[cfg(target_os = "linux")]
mod planted;
#[path = "../shared/mod.rs"]
mod shared;
