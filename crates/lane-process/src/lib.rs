//! The process lane: an extension is a program that is started, confined, and spoken to in JSON-RPC.
//!
//! Start at [`ProcessLane`]. `folder` lays out an activation's files, `process` starts the program and waits for its exit,
//! `process::connection` carries requests both ways, and `instance` is what the runtime holds. `python` and `node` have the
//! interpreters, the packages and the workers; what both need to install packages is in `packages`. The messages are in
//! `holdfast_contract::protocol`; `holdfast_program` confines the program.
//!
//! Use it for code that cannot be a component. A program costs a process, and what it answers is recorded and never asked for again.

#[cfg(target_os = "linux")]
mod folder;
#[cfg(target_os = "linux")]
mod instance;
mod lane;
mod node;
#[cfg(target_os = "linux")]
mod packages;
#[cfg(target_os = "linux")]
mod process;
#[cfg(target_os = "linux")]
mod python;

pub use crate::lane::{AgentFolders, Demand, Places, ProcessLane};
pub use crate::node::names::TakenNames;
