//! The process lane: an extension is a program that is started, confined, and spoken to in JSON-RPC.
//!
//! Start at [`ProcessLane`]. `folder` lays an activation's files out, `process` starts the program and sees to its end, `connection`
//! carries requests both ways, `gateway` is the program's only way to the network, `quota` looks at what it keeps on the disk, and
//! `extension` is what the runtime holds. For Python, `interpreter` finds it, `requirements` reads which packages an extension names,
//! `environment` installs them, and `worker` runs files and classes. The words are the contract's: `holdfast_contract::protocol`.
//!
//! Use it for code that cannot be a component. A program costs a process, and what it answers is recorded and never asked for again.

#[cfg(target_os = "linux")]
mod connection;
#[cfg(target_os = "linux")]
mod environment;
#[cfg(target_os = "linux")]
mod extension;
#[cfg(target_os = "linux")]
mod folder;
#[cfg(target_os = "linux")]
mod gateway;
mod interpreter;
mod lane;
#[cfg(target_os = "linux")]
mod process;
#[cfg(target_os = "linux")]
mod quota;
#[cfg(target_os = "linux")]
mod requirements;
mod worker;
#[cfg(target_os = "linux")]
mod writer;

#[cfg(test)]
mod worker_tests;

pub use crate::lane::{Demand, Places, ProcessLane};
