//! What this program does when it is started by itself: one piece of work in a limited process.

use std::ffi::OsStr;
use std::io::{stdin, stdout};
use std::process::ExitCode;

use holdfast_lane_declarative::{RENDER_WORK, serve_render};
use holdfast_lane_wasm::{COMPILE_WORK, serve_compile};
use holdfast_sandbox::HELPER_ARGUMENT;

/// Does the work that the arguments name; nothing if they are not those of a helper.
pub fn serve() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().as_deref() != Some(OsStr::new(HELPER_ARGUMENT)) {
        return None;
    }
    let done = match arguments.next() {
        Some(work) if work == COMPILE_WORK => serve_compile(stdin().lock(), stdout().lock()),
        Some(work) if work == RENDER_WORK => serve_render(stdin().lock(), stdout().lock()),
        _ => Err(std::io::Error::other("there is no such work")),
    };
    Some(match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    })
}
