//! The tool executor: how many calls run at once, when a tool is left alone, and how a long result is read.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on should stop loudly")]

#[path = "executor/breaker.rs"]
mod breaker;
#[path = "executor/queues.rs"]
mod queues;
#[path = "executor/results.rs"]
mod results;
