//! A tool that runs commands, confined by the kernel from the first day.
//!
//! [`extension`] is the whole of it, and [`confinement`] says what this machine offers. `tool` is what a model sees. On Linux,
//! `run` sees a command through from start to end, `confine` and `calls` close the doors, `group` makes sure that nothing
//! outlives it, and `output` keeps what it says within bounds. Elsewhere the tool is not offered.

mod options;
mod report;

#[cfg(target_os = "linux")]
mod linux {
    pub(crate) mod calls;
    pub(crate) mod confine;
    pub(crate) mod group;
    pub(crate) mod output;
    pub(crate) mod probe;
    pub(crate) mod run;
    pub(crate) mod tool;
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod shell_tests;

use holdfast_contract::problem::Problem;
use holdfast_lane_native::Extension;
pub use holdfast_lane_native::Workspace;

pub use crate::options::Options;
pub use crate::report::Report;

/// The extension for a workspace. Refused are options that would show commands the home folder.
pub fn extension(workspace: Workspace, options: Options) -> Result<Extension, Problem> {
    let extension = Extension::new("shell", env!("CARGO_PKG_VERSION"));
    #[cfg(target_os = "linux")]
    return Ok(extension.tool(linux::tool::Shell::new(workspace, options)?));
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (workspace, options);
        Ok(extension)
    }
}

/// What this machine offers to confine commands with.
pub fn confinement() -> Report {
    #[cfg(target_os = "linux")]
    return linux::probe::report();
    #[cfg(not(target_os = "linux"))]
    Report::closed("commands are confined on Linux only, so the tool is not offered on this system")
}
