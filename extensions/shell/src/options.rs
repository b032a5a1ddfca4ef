//! What the owner may set.

use std::path::PathBuf;

use serde::Deserialize;

/// What the owner may set; the extension's `config`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ShellOptions {
    /// Lets commands use IPv4 and IPv6, this machine's own services included. Local sockets stay closed.
    pub network: bool,
    /// Further folders that commands may read and run programs from, such as a compiler's.
    pub readable: Vec<PathBuf>,
    /// Bytes that are kept of what a command prints, for each of its two streams.
    pub output_bytes: usize,
    /// Bytes that a file may grow to.
    pub file_bytes: u64,
    /// Bytes of data that a process may have.
    pub memory_bytes: u64,
    /// Processes and threads that a command may have at once.
    pub tasks: usize,
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
        }
    }
}
