//! Whole homes: many extensions started in order, setup from a conversation, and schedules.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on should stop loudly"
)]

mod caches;
mod loading;
mod schedules;
mod setup;
mod whole_home;
