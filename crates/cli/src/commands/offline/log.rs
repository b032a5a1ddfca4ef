//! `holdfast log …`: the commands that read the log.

use std::ops::ControlFlow;

use holdfast_contract::body::FrameKind;
use holdfast_contract::digest::canonical;
use holdfast_contract::ids::{Seq, StreamId};
use holdfast_contract::problem::{Code, Problem, Severity};
use holdfast_home::Home;
use holdfast_replay::verify;
use holdfast_rpc::existing_stream;
use holdfast_store::{LogFinding, Store};
use serde_json::json;

use crate::arguments::{ReadLog, Show};
use crate::commands::offline::home::{damage, open};
use crate::output::{Output, frame_line, report};

const RESTORE: &str = "Restore a backup. What can still be read of a session: `holdfast log export ID`.";

pub(crate) fn log(output: &Output, home: &Home, command: ReadLog) -> Result<bool, Problem> {
    let verifies = matches!(command, ReadLog::Verify { .. });
    // Who verifies is not told to verify.
    let told = |problem: Problem| match problem.code {
        Code::StoreCorrupt if verifies => problem.help(RESTORE),
        _ => problem,
    };
    let store = open(home).map_err(told)?;
    let done = match command {
        ReadLog::List => list(output, &store),
        ReadLog::Show(command) => show(output, &store, &command),
        ReadLog::Verify { id } => check(output, &store, id.map(StreamId::from)),
        ReadLog::Export { id } => existing_stream(&store, &id).and_then(|id| export(output, &store, &id)),
    };
    done.map_err(told)
}

fn list(output: &Output, store: &Store) -> Result<bool, Problem> {
    let streams = store.streams()?;
    warn("the list may be wrong", &store.survey(Seq(0))?);
    if !output.json {
        if streams.is_empty() {
            output.line("no streams yet; `holdfast demo` records one")?;
            return Ok(true);
        }
        output.line(format!("{:<28} {:>8} {:>7}  head", "stream", "frames", "erased"))?;
    }
    for info in streams {
        let head = info.head.map(|head| head.hash.to_string()).unwrap_or_default();
        if output.json {
            output.document(&json!({
                "id": info.id,
                "first": info.first,
                "last": info.head.map(|head| head.seq),
                "frames": info.frames,
                "erased": info.erased,
                "first_at": info.first_at,
                "last_at": info.last_at,
                "hash": head,
            }))?
        } else {
            let short: String = head.chars().take(16).collect();
            output.line(format!(
                "{:<28} {:>8} {:>7}  {short}",
                info.id.as_str(),
                info.frames,
                info.erased
            ))?;
        }
    }
    Ok(true)
}

fn show(output: &Output, store: &Store, command: &Show) -> Result<bool, Problem> {
    /// How often the log is looked at for more.
    const POLL_INTERVAL: std::time::Duration = std::time::Duration::from_millis(100);
    let stream = existing_stream(store, &command.id)?;
    let kinds: Vec<FrameKind> = command.kind.iter().map(|kind| kind_of(kind)).collect::<Result<_, _>>()?;
    let last = command.to.unwrap_or(u64::MAX);
    let mut from = Seq(command.from);
    warn("what is shown may be wrong", &store.verify(Some(&stream))?);
    loop {
        from = show_from(output, store, &stream, from, last, &kinds)?;
        if !command.follow || from.0 > last {
            return Ok(true);
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Shows what there is from a frame on, and gives the next one.
fn show_from(
    output: &Output,
    store: &Store,
    stream: &StreamId,
    from: Seq,
    last: u64,
    kinds: &[FrameKind],
) -> Result<Seq, Problem> {
    let mut next = from;
    store.for_each_frame(stream, from, |frame| {
        next = frame.envelope.seq.next();
        if frame.envelope.seq.0 > last {
            return Ok(ControlFlow::Break(()));
        }
        if kinds.is_empty() || kinds.contains(&frame.envelope.kind) {
            if output.json { output.document(&frame)? } else { output.line(frame_line(&frame))? }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(next)
}

fn kind_of(text: &str) -> Result<FrameKind, Problem> {
    FrameKind::parse(text).ok_or_else(|| {
        let family = text.split('.').next().unwrap_or_default();
        let near: Vec<&str> =
            FrameKind::ALL.iter().map(|kind| kind.as_str()).filter(|kind| kind.starts_with(family)).collect();
        let near = if near.is_empty() {
            "`holdfast schema frames` has them all".to_owned()
        } else {
            near.join(", ")
        };
        Problem::new(Code::UsageInvalid, format!("there is no frame kind `{text}`"))
            .help(format!("Kinds: {near}."))
    })
}

/// Says that a log is damaged. What can be read of it is printed all the same.
fn warn(what: &str, findings: &[LogFinding]) {
    if let Some(problem) = damage(what, findings) {
        report(&problem.with(Severity::Warning));
    }
}

fn export(output: &Output, store: &Store, stream: &StreamId) -> Result<bool, Problem> {
    warn("what is exported may be wrong", &store.verify(Some(stream))?);
    store.for_each_frame(stream, Seq(0), |frame| {
        let bytes = canonical(&frame).map_err(|error| Problem::new(Code::Internal, error.to_string()))?;
        output.json(&String::from_utf8_lossy(&bytes))?;
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(true)
}

fn check(output: &Output, store: &Store, stream: Option<StreamId>) -> Result<bool, Problem> {
    if let Some(stream) = &stream {
        existing_stream(store, stream.as_str())?;
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
