//! The binary: hands its arguments to the command line.

use std::process::ExitCode;

fn main() -> ExitCode {
    holdfast_cli::run(std::env::args_os())
}
