//! The figures of tools in Python: what a call costs, how soon an edit is live, and how soon many files are ready.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use holdfast_bench::{PythonTimes, python};
use holdfast_contract::problem::Problem;
use serde_json::{Value, json};

use super::{Owner, failed, micros, millis, ratio, show};
use crate::output::Output;

/// Calls that a model asks for at once.
const CONCURRENT_CALLS: usize = 32;
const FILES: usize = 50;
const STARTS: usize = 5;
const EDITS: usize = 40;

pub(super) fn bench(output: &Output, program: &Path) -> Result<(), Problem> {
    let threads = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    for at_once in [1, CONCURRENT_CALLS] {
        let folder = tempfile::tempdir().map_err(failed)?;
        let PythonTimes { bare, pipeline } = threads.block_on(python(folder.path(), at_once))?;
        let so_many = if at_once == 1 { "one".to_owned() } else { at_once.to_string() };
        show(
            output,
            &format!("a bare JSON-RPC echo to Python, {so_many} at once, p50"),
            &micros(bare.at(50)),
        )?;
        let name = format!("a Python tool through the pipeline, {so_many} at once");
        show(output, &format!("{name}, p50"), &micros(pipeline.at(50)))?;
        show(output, "  the one over the other (target: 1.5 at most)", &ratio(pipeline.at(50), bare.at(50)))?;
        show(output, &format!("{name}, p99"), &micros(pipeline.at(99)))?;
    }
    let mut edits = edits(program).map_err(failed)?;
    show(
        output,
        "from editing a Python tool to its being live, p50 (under 100 ms)",
        &millis(&mut edits, 50),
    )?;
    show(output, "from editing a Python tool to its being live, p99", &millis(&mut edits, 99))?;
    let (mut new, mut known) = starts(program).map_err(failed)?;
    show(output, "50 new Python tools ready, p50 (target: under 2 s)", &millis(&mut new, 50))?;
    show(output, "50 known Python tools ready, p50", &millis(&mut known, 50))
}

fn tool(home: &Path, name: &str, version: usize) -> std::io::Result<()> {
    let tools = home.join("extensions/tools");
    fs::create_dir_all(&tools)?;
    let text = format!(
        "import json\n\n\nasync def run(text: str, times: int = 1) -> str:\n    \"\"\"Version {version}.\"\"\"\n    \
         return json.dumps([text] * times)\n"
    );
    // As editors do: written beside it, and put in its place.
    let beside = home.join(".written");
    fs::write(&beside, text)?;
    fs::rename(beside, tools.join(format!("{name}.py")))
}

/// Waits until so many tools have a description that says so.
fn wait_for(owner: &mut Owner, count: usize, version: usize) -> std::io::Result<()> {
    let wanted = format!("Version {version}.");
    let is_live = |tool: &&Value| tool["description"] == json!(wanted);
    loop {
        let listed = owner.ask("tools.list", json!({}))?;
        if listed.as_array().is_some_and(|tools| tools.iter().filter(is_live).count() == count) {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn edits(program: &Path) -> std::io::Result<Vec<Duration>> {
    let (home, folder) = (tempfile::tempdir()?, tempfile::tempdir()?);
    tool(home.path(), "edited", 0)?;
    let mut owner = Owner::start(program, home.path(), folder.path())?;
    owner.hello()?;
    wait_for(&mut owner, 1, 0)?;
    let mut times = Vec::new();
    for version in 1..=EDITS {
        let begun = Instant::now();
        tool(home.path(), "edited", version)?;
        wait_for(&mut owner, 1, version)?;
        times.push(begun.elapsed());
        std::thread::sleep(Duration::from_millis(100));
    }
    owner.end()?;
    Ok(times)
}

/// How long a home with many files takes until all of them serve: when it sees them first, and when it knows them.
fn starts(program: &Path) -> std::io::Result<(Vec<Duration>, Vec<Duration>)> {
    let (mut new, mut known) = (Vec::new(), Vec::new());
    for _ in 0..STARTS {
        let (home, folder) = (tempfile::tempdir()?, tempfile::tempdir()?);
        for index in 0..FILES {
            tool(home.path(), &format!("tool{index}"), 1)?;
        }
        for times in [&mut new, &mut known] {
            let begun = Instant::now();
            let mut owner = Owner::start(program, home.path(), folder.path())?;
            owner.hello()?;
            wait_for(&mut owner, FILES, 1)?;
            times.push(begun.elapsed());
            owner.end()?;
        }
    }
    Ok((new, known))
}
