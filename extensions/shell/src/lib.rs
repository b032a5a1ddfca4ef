//! A tool that runs commands, confined by the kernel.
//!
//! [`extension`] is the entry point. `tool` is what a model sees. On Linux, `run` runs a command to its end, `settings`
//! finds what in the workspace could run programs on the host, and `output` limits the captured output. On other systems the tool is not offered.

mod options;

#[cfg(target_os = "linux")]
mod linux {
    pub(crate) mod output;
    pub(crate) mod run;
    pub(crate) mod settings;
    pub(crate) mod tool;
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod shell_tests;

use holdfast_contract::problem::Problem;
use holdfast_lane_native::NativeExtension;
pub use holdfast_lane_native::{Workspace, Workspaces};

pub use crate::options::ShellOptions;

/// The extension where no command can be run: without its tool, but the name stays reserved.
pub fn unavailable() -> NativeExtension {
    NativeExtension::new("shell", env!("CARGO_PKG_VERSION")).reserving(&["shell"])
}

/// The extension for the workspaces of sessions. Options that would expose the home folder to commands are refused.
pub fn extension(
    workspaces: impl Into<Workspaces>,
    options: ShellOptions,
) -> Result<NativeExtension, Problem> {
    let extension = unavailable();
    #[cfg(target_os = "linux")]
    return Ok(extension
        .tool(linux::tool::Shell::new(workspaces.into(), options)?)
        .grouped(holdfast_contract::tool::ToolGroup::Core));
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (workspaces.into(), options);
        Ok(extension)
    }
}
