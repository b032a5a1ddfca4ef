//! Programs that the kernel holds: they reach what they are given, and nothing that they start outlives them.
//!
//! [`report`] says what this machine offers. On Linux, a [`Reach`] is what a program may touch, [`Limits`] are what it may use up, and a
//! [`Program`] is started in namespaces of its own, where there are any. A command of the shell's is started by [`Reach::start`] in a
//! [`Group`], which is everything that it starts in its turn. Elsewhere nothing is confined, so nothing is started.

mod report;

#[cfg(target_os = "linux")]
mod linux {
    pub(crate) mod birth;
    pub(crate) mod calls;
    pub(crate) mod confine;
    pub(crate) mod group;
    pub(crate) mod init;
    pub(crate) mod limits;
    pub(crate) mod probe;
    pub(crate) mod program;
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod confinement_tests;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod program_tests;

#[cfg(target_os = "linux")]
pub use crate::linux::calls::Network;
#[cfg(target_os = "linux")]
pub use crate::linux::confine::Reach;
#[cfg(target_os = "linux")]
pub use crate::linux::group::{Group, Switch, threads_on_machine};
#[cfg(target_os = "linux")]
pub use crate::linux::limits::Limits;
#[cfg(target_os = "linux")]
pub use crate::linux::program::{Life, Program, Running, gateway_address};
pub use crate::report::Report;

/// What this machine offers to confine programs with.
pub fn report() -> Report {
    #[cfg(target_os = "linux")]
    return linux::probe::report();
    #[cfg(not(target_os = "linux"))]
    Report::closed("programs are confined on Linux only, so none is started on this system")
}
