//! The benches whose instruction counts gate. Each file here covers one part of the centre; this one lists them.

mod digest;
mod kernel;
mod log;
mod pipeline;
mod replay;

use std::path::Path;
use std::process::ExitCode;

use holdfast_benches::counted::{self, Bench};

const BENCHES: &[Bench] = &[
    Bench::new("content_digest", 1_000, digest::content_digest),
    Bench::new("kernel_tool_call", 1_000, kernel::kernel_tool_call),
    Bench::new("turn_of_32_awaited_calls", 20, pipeline::awaited_calls),
    Bench::new("turn_of_32_calls_0_gates", 20, pipeline::gates_0),
    Bench::new("turn_of_32_calls_1_gate", 20, pipeline::gates_1),
    Bench::new("turn_of_32_calls_10_gates", 10, pipeline::gates_10),
    Bench::new("turn_of_32_calls_100_gates", 4, pipeline::gates_100),
    Bench::new("turn_of_32_calls_1_sandboxed_gate", 10, pipeline::sandboxed_1),
    Bench::new("turn_of_32_calls_10_sandboxed_gates", 10, pipeline::sandboxed_10),
    Bench::new("append_64_frames", 50, log::append_64),
    Bench::new("strict_replay_of_10_000_frames", 1, replay::replay_ten_thousand),
];

fn main() -> ExitCode {
    counted::main(BENCHES, &Path::new(env!("CARGO_MANIFEST_DIR")).join("budgets.json"))
}
