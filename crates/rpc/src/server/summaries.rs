//! Lists of sessions, for clients and for commands that read a log without an owner.

use std::cmp::Reverse;

use holdfast_contract::body::{Body, FrameKind};
use holdfast_contract::ids::{Seq, StreamId};
use holdfast_contract::problem::{Code, Problem};
use holdfast_runtime::recorded_start;
use holdfast_store::{Store, StreamInfo};

use super::RENAME;
use crate::protocol::SessionSummary;

/// The first message is among these frames.
pub const FIRST_FRAMES: Seq = Seq(40);
/// Streams that are named where one is missing.
const MAX_NAMED: usize = 8;

/// The sessions, the latest first. Children of agents, and sessions in which nothing was said, only if they are asked for.
pub fn session_summaries(
    store: &Store,
    all: bool,
    limit: Option<u64>,
) -> Result<Vec<SessionSummary>, Problem> {
    let limit = limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let mut streams = store.streams()?;
    streams.retain(|info| info.id.is_session());
    streams.sort_by_key(|info| Reverse(info.last_at));
    let mut summaries = Vec::new();
    for info in streams {
        if summaries.len() >= limit {
            break;
        }
        summaries.extend(summary(store, info, all)?);
    }
    Ok(summaries)
}

/// What an erased session is about.
const ERASED: &str = "(erased)";

fn summary(store: &Store, info: StreamInfo, all: bool) -> Result<Option<SessionSummary>, Problem> {
    let first = recorded_start(store, &info.id)?.unwrap_or_default();
    let is_child = !first["parent"].is_null();
    if is_child && !all {
        return Ok(None);
    }
    let channel = first["origin"]["channel"].as_str().unwrap_or_default().to_owned();
    // Earlier ones may have been collected.
    let from = info.first.unwrap_or_default();
    let frames = store.frames(&info.id, from..=Seq(from.0.saturating_add(FIRST_FRAMES.0)))?;
    let said = frames.iter().find(|frame| frame.envelope.kind == FrameKind::InputReceived);
    let about = match (name(store, &info.id)?, said.map(|frame| store.body(frame))) {
        (Some(name), _) => name,
        (None, Some(Ok(Body::InputReceived(input)))) => input.text.to_text(),
        (None, Some(_)) => ERASED.to_owned(),
        (None, None) => String::new(),
    };
    // A session in which nothing was said yet, or whose content was erased, is nothing to come back to.
    let erased = first.is_null();
    if (about.is_empty() || erased) && !all {
        return Ok(None);
    }
    let StreamInfo { id: session, frames, first_at, last_at, .. } = info;
    Ok(Some(SessionSummary { session, channel, frames, first_at, last_at, about }))
}

/// The name that a session was given last.
fn name(store: &Store, session: &StreamId) -> Result<Option<String>, Problem> {
    let mut found = store.last_of_kind(session, FrameKind::CommandRun)?;
    while let Some(frame) = found {
        if let Some(body) = frame.body.filter(|body| body["command"] == RENAME) {
            return Ok(body["arguments"].as_str().map(str::to_owned));
        }
        found = store.last_of_kind_before(session, FrameKind::CommandRun, frame.envelope.seq)?;
    }
    Ok(None)
}

/// A stream that exists, or a problem that names some that do.
pub fn existing_stream(store: &Store, id: &str) -> Result<StreamId, Problem> {
    let stream = StreamId::from(id);
    if store.head(&stream)?.is_some() {
        return Ok(stream);
    }
    let streams = store.streams()?;
    let names: Vec<&str> = streams.iter().map(|info| info.id.as_str()).take(MAX_NAMED).collect();
    let help = if names.is_empty() {
        "The log is empty; `holdfast demo` records something.".to_owned()
    } else {
        format!("There are: {}. `holdfast log list` shows all.", names.join(", "))
    };
    Err(Problem::new(Code::StoreMissing, format!("there is no stream `{id}`")).help(help))
}
