//! The figures of streaming: the latency from a model to a surface, and how evenly many concurrent sessions stream.

use holdfast_bench::{PACE, Streamed, streamed};
use holdfast_contract::problem::Problem;

use super::{failed, micros, millis_of, show};
use crate::output::Output;

pub(super) fn bench(output: &Output) -> Result<(), Problem> {
    let threads = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(failed)?;
    let folder = tempfile::tempdir().map_err(failed)?;
    let Streamed { surface, channel, gaps, sessions } = threads.block_on(streamed(folder.path()))?;
    let first = "from a model's first piece";
    show(output, &format!("{first} to a surface, p50 (target: under 50 µs)"), &micros(surface.at(50)))?;
    show(output, &format!("{first} to a surface, p99"), &micros(surface.at(99)))?;
    show(output, &format!("{first} to a channel, p50 (target: under 50 µs)"), &micros(channel.at(50)))?;
    show(output, &format!("{first} to a channel, p99"), &micros(channel.at(99)))?;
    let many = format!("{sessions} sessions stream at once, a piece every {} ms", PACE.as_millis());
    show(output, &format!("{many}: gap, p50"), &millis_of(gaps.at(50)))?;
    show(output, &format!("{many}: gap, p99"), &millis_of(gaps.at(99)))?;
    show(output, &format!("{many}: slowest gap"), &millis_of(gaps.at(100)))
}
