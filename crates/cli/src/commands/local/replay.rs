//! `holdfast replay …`

use std::path::Path;

use holdfast_app::{ApplicationConfig, recorded_lanes};
use holdfast_contract::ids::StreamId;
use holdfast_contract::problem::{Code, Problem};
use holdfast_policy::Policy;
use holdfast_replay::{JudgedCall, Mode, ReplayVerdict, WhatIfCandidate, WhatIfReport, replay as run, trial};
use holdfast_rpc::existing_stream;
use holdfast_store::Store;

use super::ext;
use crate::arguments::Replay;
use crate::commands::offline::demo;
use crate::commands::offline::home::open;
use crate::exit::Exit;
use crate::output::Output;

pub(crate) async fn replay(
    output: &Output,
    plan: &ApplicationConfig,
    command: &Replay,
) -> Result<Exit, Problem> {
    let store = open(&plan.home)?;
    let named = command.id.as_deref().map(|id| existing_stream(&store, id)).transpose()?;
    match (&command.with, named) {
        (Some(path), named) => try_on(output, plan, &store, path, named).await,
        (None, Some(stream)) => {
            let mut lanes = recorded_lanes(plan, &store)?;
            lanes.extend(demo::lanes());
            let mode = if command.mock { Mode::Mock } else { Mode::Strict };
            // Code that was recorded may have to be compiled first.
            let verdict = tokio::task::block_in_place(|| run(&store, &stream, mode, &lanes))?;
            if output.json {
                output.document(&verdict)?
            } else {
                show(output, &verdict)?
            }
            Ok((verdict.identical && verdict.snapshot_identical).into())
        }
        (None, None) => Err(Problem::new(Code::UsageInvalid, "no session is named")),
    }
}

/// The largest policy that is tried.
const MAX_POLICY_BYTES: u64 = 1 << 20;

/// Another build or policy on recorded sessions; differences are what was asked for, and no failure.
async fn try_on(
    output: &Output,
    plan: &ApplicationConfig,
    store: &Store,
    path: &Path,
    named: Option<StreamId>,
) -> Result<Exit, Problem> {
    let tried = if path.is_file() {
        let text = holdfast_untrusted_files::read_text(path, MAX_POLICY_BYTES)
            .map_err(|error| Problem::new(Code::PolicyInvalid, format!("{}: {error}", path.display())))?;
        let internal = || Problem::new(Code::Internal, "a policy was rejected without a reason");
        let policy =
            Policy::parse(path, &text).map_err(|problems| Problem::all(problems).unwrap_or_else(internal))?;
        WhatIfCandidate::Policy(Box::new(policy))
    } else {
        let folder = ext::folder(&plan.home, Some(path))?;
        ext::load_extension(plan, &folder).await?.candidate()
    };
    let sessions = match named {
        Some(session) => vec![session],
        None => store.streams()?.into_iter().map(|about| about.id).filter(StreamId::is_session).collect(),
    };
    let mut trials = Vec::new();
    for session in &sessions {
        let tried = tokio::task::block_in_place(|| trial(store, session, &tried));
        match tried {
            Ok(trial) => trials.push(trial),
            // One that cannot be read again does not stop the others.
            Err(problem) if sessions.len() > 1 => eprintln!("{session}: {problem}"),
            Err(problem) => return Err(problem),
        }
    }
    if output.json {
        return output.documents(&trials);
    }
    for trial in &trials {
        show_trial(output, trial)?;
    }
    let total = |count: fn(&WhatIfReport) -> u64| trials.iter().map(count).sum::<u64>();
    output.line(format!(
        "{} session(s): {} same, {} different, {} cannot tell",
        trials.len(),
        total(|trial| trial.same),
        total(|trial| trial.different.len() as u64),
        total(|trial| trial.unknown.len() as u64),
    ))?;
    Ok(Exit::Done)
}

fn show_trial(output: &Output, trial: &WhatIfReport) -> Result<(), Problem> {
    let line = |mark: &str, judged: &JudgedCall| {
        let JudgedCall { seq, what, recorded, now } = judged;
        output.line(format!("{}#{seq} {mark} {what}", trial.session))?;
        output.line(format!("    recorded {recorded}"))?;
        output.line(format!("    now      {now}"))
    };
    trial.different.iter().try_for_each(|judged| line("different  ", judged))?;
    trial.unknown.iter().try_for_each(|judged| line("cannot tell", judged))
}

pub(crate) fn show(output: &Output, verdict: &ReplayVerdict) -> Result<(), Problem> {
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
