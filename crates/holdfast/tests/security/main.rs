//! What a profile forbids stays forbidden, and planted violations are found.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on should stop loudly"
)]

#[cfg(target_os = "linux")]
mod attacks;
#[cfg(target_os = "linux")]
mod bombs;
#[cfg(target_os = "linux")]
mod endless;
#[cfg(target_os = "linux")]
mod first_column;
#[cfg(target_os = "linux")]
mod granted_trees;
#[cfg(target_os = "linux")]
mod hidden;
#[cfg(target_os = "linux")]
mod hostile_home;
mod obey;
#[cfg(target_os = "linux")]
mod planted;
#[cfg(target_os = "linux")]
mod printing;
#[path = "../shared/mod.rs"]
mod shared;
#[cfg(target_os = "linux")]
mod special_files;
mod workspace_settings;
