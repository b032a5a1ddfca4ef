//! The command line: what commands print, how they fail, backups, privacy and authoring.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on should stop loudly"
)]

mod answers;
mod authoring;
#[cfg(target_os = "linux")]
mod backups;
mod bad_input;
mod commands;
mod damage;
mod first_use;
mod home_commands;
#[cfg(target_os = "linux")]
mod linked_backups;
mod privacy;
#[path = "../shared/mod.rs"]
mod shared;
