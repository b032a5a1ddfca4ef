//! A confined program, as the lanes that start programs share it: its streams, its limits, its only access to the network, and why it
//! has exited. What is spoken over the streams is the lanes'.
//!
//! Start at [`ConfinedProgram`]. `granted` has the file trees that it was granted, `gateway` is the program's access to the network, `listening` has the ports
//! that it listens on, and `quota` checks its disk usage.

#[cfg(target_os = "linux")]
pub mod gateway;
#[cfg(target_os = "linux")]
mod granted;
#[cfg(target_os = "linux")]
mod layout;
#[cfg(target_os = "linux")]
mod listening;
#[cfg(target_os = "linux")]
mod program;
#[cfg(target_os = "linux")]
mod quota;

#[cfg(target_os = "linux")]
pub use crate::granted::{GrantedPaths, keep_home_closed};
#[cfg(target_os = "linux")]
pub use crate::layout::lay_out;
#[cfg(target_os = "linux")]
pub use crate::listening::{PortCounters, ProgramPorts};
#[cfg(target_os = "linux")]
pub use crate::program::{CallSource, ConfinedProgram, ProgramExit, ProgramLog, ProgramPlan, log_stderr};
