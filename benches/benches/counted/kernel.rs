//! The session machine alone.

use holdfast_benches::counted::{Counter, Outcome};
use holdfast_benches::workload::Loop;

/// One no-op tool call through all phases: four steps, no hooks.
pub(crate) fn kernel_tool_call(counter: Counter) -> Outcome {
    let mut machine = Loop::default();
    counter.measure(|| Ok(machine.tool_call()))
}
