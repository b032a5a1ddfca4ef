//! The MCP lane: a server of the Model Context Protocol is an extension, with its tools, resources and prompts.
//!
//! Start at [`McpLane`]. `listing` is what a server offers and what of it was approved, `catalogue` how that is registered, `server` the
//! connection to one server, `stdio` and `http` the transports, `handler` what a server may ask of us, `answer` how its results become
//! ours, and `instance` what the runtime holds. The protocol itself is `rmcp`'s.
//!
//! Nothing that a server says is trusted: its tools have unknown effects, its definitions are shown to a model only as they were
//! approved, and what it sends is bounded.

mod answer;
mod calls;
mod catalogue;
mod elicitation;
#[cfg(target_os = "linux")]
mod handler;
#[cfg(target_os = "linux")]
mod http;
#[cfg(target_os = "linux")]
mod instance;
mod lane;
mod listing;
mod options;
#[cfg(target_os = "linux")]
mod server;
#[cfg(target_os = "linux")]
mod stdio;

pub use crate::catalogue::registered_name;
pub use crate::lane::{McpLane, McpPlaces};
pub use crate::listing::{Listing, PinStore, Pins, PromptDefinition, ToolDefinition};
pub use crate::options::McpOptions;
