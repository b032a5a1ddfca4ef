//! The binary: brings the built-in extensions along and hands its arguments to the command line.

mod built_ins;
mod cores;

use std::process::ExitCode;

use holdfast_cli::ProgramParts;

/// Frames are made on one thread and given back on another, which this allocator is good at: see `docs/adr/0011-allocator.md`.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    cores::forbid();
    small_pages();
    let program = ProgramParts { built_ins: built_ins::make, examine: built_ins::examine };
    holdfast_cli::run(program, std::env::args_os())
}

/// Memory in pages of 4 KiB, also where the system would take 2 MiB at a time: a home at rest then holds a third.
#[cfg(target_os = "linux")]
fn small_pages() {
    // Where that cannot be had, it only costs memory.
    let _done = nix::sys::prctl::set_thp_disable(true);
}

#[cfg(not(target_os = "linux"))]
fn small_pages() {}
