//! The protocol between the process that owns a home and everyone else: JSON-RPC 2.0, one message per line, over a socket, a
//! pipe or memory. Whoever embeds the runtime talks to itself in the same words, so a command prints the same either way.
//!
//! `protocol.rs` has every request and notice. [`Server`] answers for an owner, [`Client`] asks, [`Hub`] is the surface that
//! carries what happens in a session to those who watch it.

mod active_clients;
mod bus;
mod client;
mod hub;
mod line;
mod outgoing;
mod protocol;
mod server;
mod socket;

pub use active_clients::ActiveClients;
pub use client::Client;
pub use hub::Hub;
pub use protocol::*;
pub use server::{RENAME, Server, ServerContext};
pub use socket::{connect, listen};
