//! `holdfast replay …`

use std::sync::Arc;

use holdfast_contract::problem::Problem;
use holdfast_contract::wire::Lane;
use holdfast_home::Home;
use holdfast_runtime::replay::{Mode, Verdict, replay as run};

use crate::arguments::Replay;
use crate::home::open;
use crate::log::existing;
use crate::output::Output;

pub(crate) fn replay(
    output: &Output,
    home: &Home,
    command: &Replay,
    lanes: &[Arc<dyn Lane>],
) -> Result<bool, Problem> {
    let store = open(home)?;
    let stream = existing(&store, &command.id)?;
    let mode = if command.mock { Mode::Mock } else { Mode::Strict };
    let verdict = run(&store, &stream, mode, lanes)?;
    match output.json {
        true => output.document(&verdict)?,
        false => show(output, &verdict)?,
    }
    Ok(verdict.identical && verdict.snapshot_identical)
}

pub(crate) fn show(output: &Output, verdict: &Verdict) -> Result<(), Problem> {
    let mode = match verdict.mode {
        Mode::Strict => "strict",
        Mode::Mock => "mock",
    };
    match &verdict.divergence {
        None if verdict.snapshot_identical => {
            output.line(format!(
                "{}: {} frames replayed ({mode}), all identical",
                verdict.session, verdict.frames
            ))?;
        }
        None => {
            output.line(format!("{}: the frames are identical, the final state is not", verdict.session))?
        }
        Some(divergence) => {
            output.line(format!(
                "{}: differs at frame {} ({})",
                verdict.session, divergence.seq, divergence.kind
            ))?;
            let side = |value: &Option<serde_json::Value>| {
                value.as_ref().map_or("nothing".to_owned(), ToString::to_string)
            };
            output.line(format!("  recorded: {}", side(&divergence.expected)))?;
            output.line(format!("  replayed: {}", side(&divergence.actual)))?;
            if let Some(extension) = &divergence.extension {
                output.line(format!("  answered by: {extension}"))?;
            }
        }
    }
    if !verdict.mocked.is_empty() {
        let names: Vec<&str> = verdict.mocked.iter().map(|id| id.as_str()).collect();
        output.line(format!("  answers taken from the log: {}", names.join(", ")))?;
    }
    Ok(())
}
