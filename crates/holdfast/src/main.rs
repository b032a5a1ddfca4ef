//! The binary: brings the built-in extensions along and hands its arguments to the command line.

mod built_ins;
mod cores;
mod helper;

use std::process::ExitCode;

use holdfast_cli::ProgramParts;
use holdfast_sandbox::Helper;

/// Frames are made on one thread and given back on another, which this allocator is good at: see `docs/adr/0011-allocator.md`.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    cores::forbid();
    survive_file_limits();
    open_many_files();
    small_pages();
    if let Some(ended) = helper::serve() {
        return ended;
    }
    Helper::install();
    let program = ProgramParts { built_ins: built_ins::make, examine: built_ins::examine };
    holdfast_cli::run(program, std::env::args_os())
}

/// A file that reaches the limit on file sizes is an error of the write, which is reported, and does not end the process. Every thread
/// inherits this; what the program starts does not.
fn survive_file_limits() {
    use nix::sys::signal::{SigSet, Signal};

    // Where that cannot be had, the process ends as it did before, and nothing acknowledged is lost.
    let _done = SigSet::from(Signal::SIGXFSZ).thread_block();
}

/// As many open files as the system allows: each running program takes about thirty, and the usual limit is for programs that use
/// `select`. What the program starts gets a limit of its own.
fn open_many_files() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};

    // Where that cannot be had, fewer programs can run at the same time, and the start of another says why.
    if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _done = setrlimit(Resource::RLIMIT_NOFILE, most, most);
    }
}

/// Memory in pages of 4 KiB, also where the system would take 2 MiB at a time: a home at rest then holds a third.
#[cfg(target_os = "linux")]
fn small_pages() {
    // Where that cannot be had, it only costs memory.
    let _done = nix::sys::prctl::set_thp_disable(true);
}

#[cfg(not(target_os = "linux"))]
fn small_pages() {}
