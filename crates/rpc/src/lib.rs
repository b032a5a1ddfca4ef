//! The protocol between the process that owns a home and its clients: JSON-RPC 2.0, one message per line, over a socket, a
//! pipe or memory. A process that embeds the runtime is a client of itself, so a command prints the same either way.
//!
//! `protocol/` has every request and notification. [`Server`] answers for an owner, [`Client`] asks. [`Hub`] is the surface that
//! hands output to the feeds of clients; `session_feed.rs` puts it and the frames of a session into one order.

mod active_clients;
mod client;
mod hub;
mod line;
mod outgoing;
mod protocol;
mod remote;
mod server;
mod session_feed;
mod socket;

pub use active_clients::ActiveClients;
pub use client::Client;
pub use hub::Hub;
pub use protocol::*;
pub use remote::{RemoteService, serve_tools};
pub use server::{FIRST_FRAMES, RENAME, Server, ServerContext, existing_stream, session_summaries};
pub use socket::{connect, listen};
