//! The figures of MCP servers: what a call costs over a bare call to the same server, and what servers cost a start.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use holdfast_bench::{PythonTimes, mcp};
use holdfast_contract::problem::Problem;
use serde_json::{Map, Value, json};

use super::{Owner, failed, micros, millis, ratio, show};
use crate::output::Output;

/// Calls that a model asks for at once.
const CONCURRENT_CALLS: usize = 32;
const SERVERS: usize = 20;
const STARTS: usize = 10;

pub(super) fn bench(output: &Output, program: &Path) -> Result<(), Problem> {
    let threads = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    for at_once in [1, CONCURRENT_CALLS] {
        let folder = tempfile::tempdir().map_err(failed)?;
        let PythonTimes { bare, pipeline } = threads.block_on(mcp(folder.path(), at_once))?;
        let so_many = if at_once == 1 { "one".to_owned() } else { at_once.to_string() };
        show(output, &format!("a bare call to an MCP server, {so_many} at once, p50"), &micros(bare.at(50)))?;
        let name = format!("an MCP tool through the pipeline, {so_many} at once");
        show(output, &format!("{name}, p50"), &micros(pipeline.at(50)))?;
        show(output, "  the one over the other", &ratio(pipeline.at(50), bare.at(50)))?;
        show(output, &format!("{name}, p99"), &micros(pipeline.at(99)))?;
    }
    for (servers, name) in [(0, "no MCP server"), (SERVERS, "20 MCP servers that do not answer")] {
        let mut times = starts(program, servers).map_err(failed)?;
        show(output, &format!("start until ready with {name}, p50"), &millis(&mut times, 50))?;
    }
    Ok(())
}

/// How long a home with so many servers takes until it answers.
fn starts(program: &Path, servers: usize) -> std::io::Result<Vec<Duration>> {
    let (home, folder) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let server = json!({ "command": "sleep", "args": ["1000"], "start_timeout_ms": 600_000 });
    let servers: Map<String, Value> =
        (0..servers).map(|number| (format!("s{number}"), server.clone())).collect();
    fs::create_dir_all(home.path().join("config"))?;
    let settings = json!({ "models": { "default": "offline" }, "mcp": { "servers": servers } });
    fs::write(home.path().join("config/settings.yaml"), settings.to_string())?;
    let mut times = Vec::new();
    for round in 0..=STARTS {
        let begun = Instant::now();
        let mut owner = Owner::start(program, home.path(), folder.path())?;
        owner.hello()?;
        // The first start makes the home; the others are warm.
        if round > 0 {
            times.push(begun.elapsed());
        }
        owner.end()?;
    }
    Ok(times)
}
