//! Sandboxed programs: they reach only what they are granted, and nothing that they start outlives them.
//!
//! [`report`] says what this machine offers. On Linux, a [`ProgramAccess`] is what a program may touch, [`ProcessLimits`] are what it may use up, and a
//! [`Program`] is started in namespaces of its own, where there are any, and otherwise in a process group. Elsewhere nothing is confined, so
//! nothing is started.

mod helper;
mod report;

#[cfg(target_os = "linux")]
mod linux {
    pub(crate) mod calls;
    pub(crate) mod confine;
    pub(crate) mod group;
    pub(crate) mod init;
    pub(crate) mod limits;
    pub(crate) mod mounts;
    pub(crate) mod probe;
    pub(crate) mod program;
    pub(crate) mod shared_memory;
    pub(crate) mod spawn;
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod confinement_tests;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod helper_tests;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod program_tests;

pub use crate::helper::{HELPER_ARGUMENT, Helper, HelperFailure, HelperLimits};
#[cfg(target_os = "linux")]
pub use crate::linux::calls::Network;
#[cfg(target_os = "linux")]
pub use crate::linux::confine::{ListeningPorts, ProgramAccess, TransparentNetwork};
#[cfg(target_os = "linux")]
pub use crate::linux::group::{Switch, threads_on_machine};
#[cfg(target_os = "linux")]
pub use crate::linux::limits::ProcessLimits;
#[cfg(target_os = "linux")]
pub use crate::linux::program::{
    Program, ProgramState, Running, TransparentListeners, gateway_address, resolver_settings,
};
pub use crate::report::SandboxReport;

/// What this machine offers to confine programs with.
pub fn report() -> SandboxReport {
    #[cfg(target_os = "linux")]
    return linux::probe::report();
    #[cfg(not(target_os = "linux"))]
    SandboxReport::closed("programs are confined on Linux only, so none is started on this system")
}
