//! Extensions as the program runs them: commands on them, packages, programs, Python files and classes.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on should stop loudly"
)]

#[cfg(target_os = "linux")]
mod agents;
#[cfg(target_os = "linux")]
mod classes;
mod commands;
#[cfg(target_os = "linux")]
mod mcp;
#[cfg(target_os = "linux")]
mod packages;
#[cfg(target_os = "linux")]
mod packs;
#[cfg(target_os = "linux")]
mod plugins;
#[cfg(target_os = "linux")]
mod ported;
#[cfg(target_os = "linux")]
mod programs;
#[cfg(target_os = "linux")]
mod python;
#[cfg(target_os = "linux")]
mod seeds;
#[path = "../shared/mod.rs"]
mod shared;
