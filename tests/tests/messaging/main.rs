//! Extensions, users and agents on the bus: who is told what, once, in order, and across a restart.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on should stop loudly"
)]

mod agents;
mod artifacts;
mod attachments;
mod chunks;
mod code_agents;
mod commands;
mod events;
mod file_models;
mod fixtures;
mod messages;
mod origins;
mod places;
mod privileges;
mod questions;
mod reloads;
mod rpc;
mod sandboxed;
mod sanitized_streams;
mod shared;
mod streaming;
mod streaming_fixtures;
mod upkeep;
