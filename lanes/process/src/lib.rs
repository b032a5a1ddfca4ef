//! The process lane: an extension is a program that is started, confined, and spoken to in JSON-RPC.
//!
//! Start at [`ProcessLane`]. `folder` lays an activation's files out, `process` starts the program and sees to its end, `connection`
//! carries requests both ways, and `extension` is what the runtime holds. The words are the contract's: `holdfast_contract::protocol`.
//!
//! Use it for code that cannot be a component. A program costs a process, and what it answers is recorded and never asked for again.

#[cfg(target_os = "linux")]
mod connection;
#[cfg(target_os = "linux")]
mod extension;
#[cfg(target_os = "linux")]
mod folder;
mod lane;
#[cfg(target_os = "linux")]
mod process;

pub use crate::lane::{Places, ProcessLane};
