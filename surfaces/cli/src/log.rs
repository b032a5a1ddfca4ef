//! `holdfast log …`

use std::ops::ControlFlow;
use std::path::PathBuf;

use holdfast_contract::body::Kind;
use holdfast_contract::digest::canonical;
use holdfast_contract::ids::{Millis, Seq, StreamId};
use holdfast_contract::problem::{Code, Problem};
use holdfast_runtime::verify::verify;
use holdfast_runtime::{SystemClock, upkeep};
use holdfast_store::{Retention, Store};
use serde_json::json;

use crate::arguments::{Gc, Log, Show};
use crate::home::{home, open};
use crate::output::{Output, frame_line};

pub(crate) fn log(output: &Output, asked: Option<PathBuf>, command: Log) -> Result<bool, Problem> {
    let store = open(&home(asked))?;
    match command {
        Log::List => list(output, &store),
        Log::Show(command) => show(output, &store, &command),
        Log::Verify { id } => check(output, &store, id.map(StreamId::from)),
        Log::Export { id } => export(output, &store, &existing(&store, &id)?),
        Log::Gc(command) => collect(output, &store, &command),
        Log::Erase { id, reason } => {
            let bodies = upkeep::erase(&store, &SystemClock, &existing(&store, &id)?, &reason)?;
            match output.json {
                true => output.document(&json!({ "session": id, "erased": bodies }))?,
                false => output.line(format!("erased the content of {bodies} frames of {id}"))?,
            }
            Ok(true)
        }
    }
}

/// A stream that is there, or a problem that names those that are.
pub(crate) fn existing(store: &Store, id: &str) -> Result<StreamId, Problem> {
    let stream = StreamId::from(id);
    if store.head(&stream)?.is_some() {
        return Ok(stream);
    }
    let streams = store.streams()?;
    let names: Vec<&str> = streams.iter().map(|info| info.id.as_str()).take(8).collect();
    let help = match names.is_empty() {
        true => "The log is empty; `holdfast demo` records something.".to_owned(),
        false => format!("There are: {}. `holdfast log list` shows all.", names.join(", ")),
    };
    Err(Problem::new(Code::StoreMissing, format!("there is no stream `{id}`")).help(help))
}

fn list(output: &Output, store: &Store) -> Result<bool, Problem> {
    let streams = store.streams()?;
    if !output.json {
        if streams.is_empty() {
            output.line("no streams yet; `holdfast demo` records one")?;
            return Ok(true);
        }
        output.line(format!("{:<28} {:>8} {:>7}  head", "stream", "frames", "erased"))?;
    }
    for info in streams {
        let head = info.head.map(|head| head.hash.to_string()).unwrap_or_default();
        match output.json {
            true => output.document(&json!({
                "id": info.id,
                "first": info.first,
                "last": info.head.map(|head| head.seq),
                "frames": info.frames,
                "erased": info.erased,
                "first_at": info.first_at,
                "last_at": info.last_at,
                "hash": head,
            }))?,
            false => {
                let short: String = head.chars().take(16).collect();
                output.line(format!(
                    "{:<28} {:>8} {:>7}  {short}",
                    info.id.as_str(),
                    info.frames,
                    info.erased
                ))?;
            }
        }
    }
    Ok(true)
}

fn show(output: &Output, store: &Store, command: &Show) -> Result<bool, Problem> {
    let stream = existing(store, &command.id)?;
    let kinds: Vec<Kind> = command.kind.iter().map(|kind| kind_of(kind)).collect::<Result<_, _>>()?;
    let last = command.to.unwrap_or(u64::MAX);
    store.for_each_frame(&stream, Seq(command.from), |frame| {
        if frame.envelope.seq.0 > last {
            return Ok(ControlFlow::Break(()));
        }
        if kinds.is_empty() || kinds.contains(&frame.envelope.kind) {
            match output.json {
                true => output.document(&frame)?,
                false => output.line(frame_line(&frame))?,
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(true)
}

fn kind_of(text: &str) -> Result<Kind, Problem> {
    Kind::parse(text).ok_or_else(|| {
        let family = text.split('.').next().unwrap_or_default();
        let near: Vec<&str> =
            Kind::ALL.iter().map(|kind| kind.as_str()).filter(|kind| kind.starts_with(family)).collect();
        let near = if near.is_empty() {
            "`holdfast schema frames` has them all".to_owned()
        } else {
            near.join(", ")
        };
        Problem::new(Code::UsageInvalid, format!("there is no frame kind `{text}`"))
            .help(format!("Kinds: {near}."))
    })
}

fn export(output: &Output, store: &Store, stream: &StreamId) -> Result<bool, Problem> {
    store.for_each_frame(stream, Seq(0), |frame| {
        let bytes = canonical(&frame).map_err(|error| Problem::new(Code::Internal, error.to_string()))?;
        output.line(String::from_utf8_lossy(&bytes))?;
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(true)
}

fn check(output: &Output, store: &Store, stream: Option<StreamId>) -> Result<bool, Problem> {
    if let Some(stream) = &stream {
        existing(store, stream.as_str())?;
    }
    let report = verify(store, stream.as_ref())?;
    if output.json {
        output.document(&report)?;
        return Ok(report.findings.is_empty());
    }
    for finding in &report.findings {
        let place = finding.seq.map(|seq| format!("{} at {seq}", finding.stream));
        output.line(format!(
            "{}: {}: {}",
            finding.kind,
            place.unwrap_or(finding.stream.to_string()),
            finding.detail
        ))?;
    }
    for (stream, why) in &report.integrity_only {
        output.line(format!("note: {stream}: only its integrity was checked, because {why}"))?;
    }
    let verdict = match report.findings.len() {
        0 => "the log verifies".to_owned(),
        count => format!("the log does not verify: {count} finding(s)"),
    };
    output.line(format!("{} streams, {} frames: {verdict}", report.streams, report.frames))?;
    Ok(report.findings.is_empty())
}

fn collect(output: &Output, store: &Store, command: &Gc) -> Result<bool, Problem> {
    const DAY: u64 = 24 * 60 * 60 * 1000;
    let retention = Retention {
        max_age: command.keep_days.map(|days| Millis(days.saturating_mul(DAY))),
        max_frames: command.keep_frames,
    };
    let streams = match &command.id {
        Some(id) => vec![existing(store, id)?],
        None => store.streams()?.into_iter().map(|info| info.id).filter(|id| !id.is_system()).collect(),
    };
    for stream in streams {
        let collected = upkeep::collect(store, &SystemClock, &stream, retention)?.unwrap_or_default();
        match output.json {
            true => output.document(
                &json!({ "stream": stream, "frames": collected.frames, "blobs": collected.blobs }),
            )?,
            false => output.line(format!(
                "{stream}: {} frames, {} blobs collected",
                collected.frames, collected.blobs
            ))?,
        }
    }
    Ok(true)
}
