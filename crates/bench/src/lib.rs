//! Use this crate for the performance figures that the program measures on the machine where it runs (`holdfast bench`). It does
//! not print them, which the command line does, and it does not count instructions, which `benches/` does.
//!
//! | file | figures |
//! |---|---|
//! | `sandbox.rs` | sandboxed gates: the engine, the lane, tool calls past many gates |
//! | `turn.rs` | whole turns, with and without a disk |
//! | `stream.rs` | streamed text on its way to surfaces and channels |
//! | `python.rs` | the process lane with Python extensions |
//! | `mcp.rs` | the MCP lane with a server in Python |
//! | `tools.rs` | the quality of tool search |
//! | `timing.rs` | measured durations and their percentiles |

#[cfg(target_os = "linux")]
mod mcp;
#[cfg(target_os = "linux")]
mod python;
mod sandbox;
mod stream;
mod timing;
pub mod tools;
mod turn;

#[cfg(target_os = "linux")]
pub use mcp::mcp;
#[cfg(target_os = "linux")]
pub use python::{PythonTimes, python};
pub use sandbox::{Sandboxed, sandboxed};
pub use stream::{PACE, Streamed, streamed};
pub use timing::Timing;
pub use turn::{DiskTimes, TurnKind, Turns, turns};

/// The gate, built from `guests/gate/main.c`.
pub const GATE: &[u8] = include_bytes!("guests/gate/gate.wasm");
/// The tool, built from `guests/tool/main.c`.
pub const TOOL: &[u8] = include_bytes!("guests/tool/tool.wasm");
