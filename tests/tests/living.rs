//! Extensions, users and agents on the bus: who is told what, once, in order, and across a restart.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on should stop loudly"
)]

mod homes;

#[path = "living/agents.rs"]
mod agents;
#[path = "living/artifacts.rs"]
mod artifacts;
#[path = "living/attachments.rs"]
mod attachments;
#[path = "living/chunks.rs"]
mod chunks;
#[path = "living/commands.rs"]
mod commands;
#[path = "living/events.rs"]
mod events;
#[path = "living/file_models.rs"]
mod file_models;
#[path = "living/fixtures.rs"]
mod fixtures;
#[path = "living/messages.rs"]
mod messages;
#[path = "living/privileges.rs"]
mod privileges;
#[path = "living/reloads.rs"]
mod reloads;
#[path = "living/rpc.rs"]
mod rpc;
#[path = "living/sandboxed.rs"]
mod sandboxed;
#[path = "living/shared.rs"]
mod shared;
#[path = "living/streaming.rs"]
mod streaming;
#[path = "living/streaming_fixtures.rs"]
mod streaming_fixtures;
#[path = "living/upkeep.rs"]
mod upkeep;
