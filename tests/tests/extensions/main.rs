//! Extensions on the real runtime: every lane, hot swap, the sandbox and ways around it, the network, guardrails and outages.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on should stop loudly"
)]

#[cfg(target_os = "linux")]
mod escapes;
mod examples;
mod guardrails;
#[cfg(target_os = "linux")]
mod hooks;
mod hostile_wasm;
mod hot_swap;
mod many_tools;
#[cfg(target_os = "linux")]
mod network;
mod outages;
mod sandboxed;
mod startup;
