//! The settings of the extension.

use std::path::PathBuf;

use serde::Deserialize;

/// The settings: the extension's `config`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ShellOptions {
    /// Lets commands use IPv4 and IPv6, this machine's own services included. Local sockets stay closed.
    pub network: bool,
    /// Further folders that commands may read and run programs from, such as a compiler's.
    pub readable: Vec<PathBuf>,
    /// Captured bytes of each of a command's two output streams.
    pub output_bytes: usize,
    /// The largest file that a command may write.
    pub file_bytes: u64,
    /// The memory of a process.
    pub memory_bytes: u64,
    /// Concurrent processes and threads of a command.
    pub tasks: usize,
    /// Keeps `.git` and the settings of editors, `direnv` and CI in the workspace read-only for commands.
    pub protect_settings: bool,
}

impl Default for ShellOptions {
    fn default() -> Self {
        Self {
            network: false,
            readable: Vec::new(),
            output_bytes: 64 * 1024,
            file_bytes: 1 << 30,
            memory_bytes: 4 << 30,
            tasks: 512,
            protect_settings: true,
        }
    }
}
