//! A home with an owner: several clients, restarts, reminders, edits under way, questions and outages.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on should stop loudly"
)]

mod answers;
#[cfg(target_os = "linux")]
mod edits;
#[cfg(target_os = "linux")]
mod outages;
mod owners;
#[cfg(target_os = "linux")]
mod questions;
mod reminder;
mod remotes;
#[path = "../shared/mod.rs"]
mod shared;
#[cfg(target_os = "linux")]
mod startup;
mod up;
