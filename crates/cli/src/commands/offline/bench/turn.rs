//! The figures of turns: what a whole turn costs beyond its syncs, and what an idle session holds in memory among ten thousand.

use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use holdfast_bench::{TurnKind, Turns, turns};
use holdfast_contract::problem::Problem;
use serde_json::json;

use super::{Owner, failed, millis_of, show};
use crate::output::Output;

/// Sessions that are open at once, and how many requests are under way at a time.
const SESSIONS: usize = 10_000;
const CONCURRENT_SESSIONS: usize = 100;
/// Sessions before the first one that counts: they bring in what all share.
const FIRST: usize = 200;

pub(super) fn bench(output: &Output, program: &Path) -> Result<(), Problem> {
    let threads = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(failed)?;
    let folder = tempfile::tempdir().map_err(failed)?;
    for figures in threads.block_on(turns(folder.path()))? {
        one_kind(output, &figures)?;
    }
    if let Some(each) = idle_session(program).map_err(failed)? {
        let name = "memory of an idle session, 10,000 open in one process";
        show(output, name, &format!("{:.1} KiB", each / 1024.0))?;
    }
    Ok(())
}

fn one_kind(output: &Output, figures: &Turns) -> Result<(), Problem> {
    let Turns { kind, whole, beyond, syncs, sync } = figures;
    let (name, target) = match kind {
        TurnKind::NoTool => ("a turn without tools", ""),
        TurnKind::OneTool => ("a turn with one tool", " (target: under 0.3 ms)"),
        TurnKind::OneEffect => ("a turn with one tool that has effects", ""),
        TurnKind::TenTools => ("a turn with ten tools at once", ""),
    };
    show(output, &format!("{name}, p50"), &millis(whole.at(50)))?;
    show(output, &format!("{name}, p99"), &millis(whole.at(99)))?;
    show(output, "  syncs that it waits for", &syncs.to_string())?;
    show(output, "  a sync of the same disk, p50", &millis(sync.at(50)))?;
    show(output, &format!("  the turn beyond its syncs, p50{target}"), &millis(beyond.at(50)))?;
    show(output, "  the turn beyond its syncs, p99", &millis(beyond.at(99)))
}

/// The anonymous memory that each of many sessions adds to the process that has them open, each with one turn behind it.
fn idle_session(program: &Path) -> std::io::Result<Option<f64>> {
    let (home, folder) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let mut owner = Owner::start(program, home.path(), folder.path())?;
    owner.hello()?;
    let mut memory_with = |sessions: Range<usize>| {
        for begun in sessions.clone().step_by(CONCURRENT_SESSIONS) {
            one_turn_each(&mut owner, begun..sessions.end.min(begun + CONCURRENT_SESSIONS))?;
        }
        std::thread::sleep(Duration::from_millis(500));
        std::io::Result::Ok(owner.anonymous_memory())
    };
    let (before, after) = (memory_with(0..FIRST)?, memory_with(FIRST..SESSIONS)?);
    owner.end()?;
    let grown = before.zip(after).map(|(before, after)| after.saturating_sub(before));
    Ok(grown.map(|grown| grown as f64 / (SESSIONS - FIRST) as f64))
}

/// New sessions of these numbers, each with a turn that calls a tool.
fn one_turn_each(owner: &mut Owner, numbers: Range<usize>) -> std::io::Result<()> {
    let name = |number: usize| format!("bench-{number}");
    let open =
        |number| json!({ "session": name(number), "create": true, "model": "direct", "channel": "bench" });
    let say = |number| json!({ "session": name(number), "text": "/kv_get {\"key\":\"bench\"}" });
    owner.ask_all("session.open", &numbers.clone().map(open).collect::<Vec<_>>())?;
    owner.ask_all("session.send", &numbers.map(say).collect::<Vec<_>>()).map(drop)
}

fn millis(time: Duration) -> String {
    if time < Duration::from_millis(10) {
        format!("{:.3} ms", time.as_secs_f64() * 1e3)
    } else {
        millis_of(time)
    }
}
