//! A tool call through the whole runtime: kernel, driver, policy, schema, gates, and the log's thread.
//!
//! A round is a turn with [`CALLS`] calls of a no-op tool at once, so that what a turn costs by itself is spread over them.

use holdfast_benches::counted::{Counter, Outcome};
use holdfast_benches::workload::{awaited, lab, sandboxed};
use holdfast_testkit::LabBuilder;

const CALLS: usize = 32;

fn turn(counter: Counter, lab: LabBuilder) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let _inside = runtime.enter();
    let lab = runtime.block_on(lab.start());
    let session = lab.session();
    runtime.block_on(session.say("bench", "warm up"))?;
    counter.measure(|| Ok(runtime.block_on(session.say("bench", "go"))?))
}

pub(crate) fn gates_0(counter: Counter) -> Outcome {
    turn(counter, lab(CALLS, 0).0)
}

pub(crate) fn gates_1(counter: Counter) -> Outcome {
    turn(counter, lab(CALLS, 1).0)
}

pub(crate) fn gates_10(counter: Counter) -> Outcome {
    turn(counter, lab(CALLS, 10).0)
}

pub(crate) fn gates_100(counter: Counter) -> Outcome {
    turn(counter, lab(CALLS, 100).0)
}

pub(crate) fn sandboxed_1(counter: Counter) -> Outcome {
    turn(counter, sandboxed(lab(CALLS, 0).0, 1))
}

pub(crate) fn sandboxed_10(counter: Counter) -> Outcome {
    turn(counter, sandboxed(lab(CALLS, 0).0, 10))
}

pub(crate) fn awaited_calls(counter: Counter) -> Outcome {
    turn(counter, awaited(CALLS))
}
