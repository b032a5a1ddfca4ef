//! The binary: hands its arguments to the command line.

use std::process::ExitCode;

/// Frames are made on one thread and given back on another, which this allocator is good at: see `docs/adr/0011-allocator.md`.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    holdfast_cli::run(std::env::args_os())
}
