//! The process lane: an extension is a program that is started, confined, and spoken to in JSON-RPC.
//!
//! Start at [`ProcessLane`]. `folder` lays out an activation's files, `process` starts the program and waits for its exit,
//! `process::connection` carries requests both ways, and `instance` is what the runtime holds. `python` has the interpreter, the packages
//! and the worker. The messages are in `holdfast_contract::protocol`; `holdfast_program` confines the program.
//!
//! Use it for code that cannot be a component. A program costs a process, and what it answers is recorded and never asked for again.

#[cfg(target_os = "linux")]
mod folder;
#[cfg(target_os = "linux")]
mod instance;
mod lane;
#[cfg(target_os = "linux")]
mod process;
#[cfg(target_os = "linux")]
mod python;

pub use crate::lane::{AgentFolders, Demand, Places, ProcessLane};
