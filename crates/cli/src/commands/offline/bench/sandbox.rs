//! The figures of sandboxed components: what a gate costs, and what a hundred installed components do to a start.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use holdfast_bench::{GATE, Sandboxed, TOOL, sandboxed};
use holdfast_contract::problem::{Code, Problem};
use serde_json::json;

use super::{Owner, failed, micros, millis, ratio, show};
use crate::output::Output;

const GATES: usize = 100;
const STARTS: usize = 10;

pub(super) fn bench(output: &Output, program: &Path) -> Result<(), Problem> {
    gates(output)?;
    let (one, few) = starts(program, 1).map_err(failed)?;
    let (many, all) = starts(program, GATES).map_err(failed)?;
    show(output, "start with 1 component, warm, p50", &milliseconds(one))?;
    show(output, "start with 100 components, warm, p50", &milliseconds(many))?;
    show(output, "  the one over the other (target: 2 at most)", &ratio(many, one))?;
    if let (Some(few), Some(all)) = (few, all) {
        let each = all.saturating_sub(few) as f64 / (GATES - 1) as f64 / 1024.0;
        show(output, "memory of an idle component (target: under 100 KiB)", &format!("{each:.1} KiB"))?;
    }
    let mut written = write_to_call(program).map_err(failed)?;
    show(output, "from writing a component to its first answer, p50", &millis(&mut written, 50))
}

fn gates(output: &Output) -> Result<(), Problem> {
    let folder = tempfile::tempdir()
        .map_err(|error| Problem::new(Code::Internal, format!("no folder for the figures: {error}")))?;
    // One thread decides; the log's works beside it.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Problem::new(Code::Internal, format!("no threads can be started: {error}")))?;
    let figures = runtime.block_on(sandboxed(folder.path()))?;
    let Sandboxed { bare, lane, pipeline } = &figures;
    show(output, "a gate called through the engine alone, p50", &micros(bare.at(50)))?;
    show(output, "a gate called through the lane, p50", &micros(lane.at(50)))?;
    show(output, "  the one over the other (target: 2 at most)", &ratio(lane.at(50), bare.at(50)))?;
    for figure in pipeline {
        let name = format!("a tool call past {} sandboxed gates, 1 KiB of arguments", figure.name);
        show(output, &format!("{name}, p50"), &micros(figure.at(50)))?;
        show(output, &format!("{name}, p99"), &micros(figure.at(99)))?;
    }
    let (early, late) = figures.marginal();
    show(output, "one more gate, from the 2nd to the 10th", &micros(early))?;
    show(output, "one more gate, from the 11th to the 100th", &micros(late))?;
    show(output, "  the one over the other (target: 1.1 at most)", &ratio(late, early))
}

/// The median time until a home with so many components is ready, and the memory that it then has.
fn starts(program: &Path, components: usize) -> std::io::Result<(Duration, Option<u64>)> {
    let (home, folder) = (tempfile::tempdir()?, tempfile::tempdir()?);
    for index in 0..components {
        install(home.path(), &format!("gate{index:03}"), GATE)?;
    }
    let (mut times, mut memory) = (Vec::new(), None);
    // The first start compiles.
    for round in 0..=STARTS {
        let begun = Instant::now();
        let mut owner = Owner::start(program, home.path(), folder.path())?;
        owner.hello()?;
        if round > 0 {
            times.push(begun.elapsed());
        }
        if round == STARTS {
            std::thread::sleep(Duration::from_millis(300));
            memory = owner.anonymous_memory();
        }
        owner.end()?;
    }
    times.sort_unstable();
    Ok((times[times.len() / 2], memory))
}

/// How long it takes from a component's last byte to the first answer of its tool, compilation included.
fn write_to_call(program: &Path) -> std::io::Result<Vec<Duration>> {
    let (home, folder) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let mut owner = Owner::start(program, home.path(), folder.path())?;
    owner.hello()?;
    let mut times = Vec::new();
    for round in 0..STARTS {
        let id = format!("answer{round}");
        let begun = Instant::now();
        install(home.path(), &id, TOOL)?;
        let opened = owner.ask("session.open", json!({ "model": "direct", "channel": "bench" }))?;
        loop {
            let listed = owner.ask("tools.list", json!({}))?;
            let serves = |tool: &serde_json::Value| tool["extension"] == json!(id);
            if listed.as_array().is_some_and(|tools| tools.iter().any(serves)) {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        owner.ask("session.send", json!({ "session": opened["session"], "text": "/bench_answer {}" }))?;
        times.push(begun.elapsed());
    }
    owner.end()?;
    Ok(times)
}

fn install(home: &Path, id: &str, component: &[u8]) -> std::io::Result<()> {
    let folder = home.join("extensions").join(id);
    fs::create_dir_all(&folder)?;
    fs::write(folder.join(format!("{id}.wasm")), component)?;
    fs::write(folder.join("manifest.yaml"), format!("id: {id}\nname: {id}\nentrypoint: {id}.wasm\n"))
}

fn milliseconds(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}
