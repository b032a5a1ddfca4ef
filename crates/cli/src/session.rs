//! `holdfast session …`: conversations.

use holdfast_contract::body::{Body, FrameKind};
use holdfast_contract::content::Content;
use holdfast_contract::ids::{Seq, StreamId};
use holdfast_contract::problem::Problem;
use holdfast_rpc::{LogErase, RENAME, Request, SessionFork, SessionRename};
use holdfast_store::{Store, StreamInfo};
use serde_json::{Value, json};

use crate::arguments::Session;
use crate::chat::sanitize_for_terminal;
use crate::exit::Exit;
use crate::link::Link;
use crate::log::existing;
use crate::output::{Output, table};
use crate::time::moment;

/// Those that only read.
pub(crate) fn read(output: &Output, store: &Store, command: &Session) -> Result<Option<Exit>, Problem> {
    match command {
        Session::List { all } => list(output, store, *all).map(Some),
        Session::Show { id } => show(output, store, &existing(store, id)?).map(Some),
        Session::Rename { .. } | Session::Delete { .. } | Session::Fork { .. } => Ok(None),
    }
}

/// Those that need the owner.
pub(crate) async fn change(output: &Output, link: &Link, command: Session) -> Result<Exit, Problem> {
    let store = link.store()?;
    match command {
        Session::List { .. } | Session::Show { .. } => Ok(Exit::Done),
        Session::Rename { id, name } => {
            let session = existing(&store, &id)?;
            let rename = Request::SessionRename(SessionRename { session, name: name.clone() });
            link.client.ask::<Value>(&rename).await?;
            say(
                output,
                json!({ "session": id, "name": name }),
                &format!("{id} is now called {}", sanitize_for_terminal(&name)),
            )
        }
        Session::Delete { id, reason } => {
            let session = existing(&store, &id)?;
            let erase = Request::LogErase(LogErase { session, reason });
            let answer: Value = link.client.ask(&erase).await?;
            let text =
                format!("erased the content of {} frames of {id}; their tombstones stay", answer["erased"]);
            say(output, answer, &text)
        }
        Session::Fork { id, at } => {
            let fork = SessionFork { session: existing(&store, &id)?, at: at.map(Seq) };
            let answer: Value = link.client.ask(&Request::SessionFork(fork)).await?;
            let new = answer["session"].as_str().unwrap_or_default().to_owned();
            say(output, answer, &format!("{new} goes on from {id}: holdfast chat --session {new}"))
        }
    }
}

fn say(output: &Output, document: Value, text: &str) -> Result<Exit, Problem> {
    match output.json {
        true => output.document(&document)?,
        false => output.line(text)?,
    }
    Ok(Exit::Done)
}

/// A conversation as a list shows it.
pub(crate) struct Summary {
    pub info: StreamInfo,
    pub channel: String,
    /// Its name, or what was said first.
    pub about: String,
}

/// The conversations, the latest first. Children of agents only if they are asked for.
pub(crate) fn summaries(store: &Store, all: bool) -> Result<Vec<Summary>, Problem> {
    let mut summaries = Vec::new();
    for info in store.streams()?.into_iter().filter(|info| info.id.is_session()) {
        let frames = store.frames(&info.id, Seq(0)..=Seq(1))?;
        let first = frames.first().and_then(|frame| frame.body.as_ref());
        let is_child = first.is_some_and(|body| !body["parent"].is_null());
        if is_child && !all {
            continue;
        }
        let channel =
            first.and_then(|body| body["origin"]["channel"].as_str()).unwrap_or_default().to_owned();
        let said = frames.iter().find(|frame| frame.envelope.kind == FrameKind::InputReceived);
        let about = match (name(store, &info.id)?, said.map(|frame| store.body(frame))) {
            (Some(name), _) => name,
            (None, Some(Ok(Body::InputReceived(input)))) => input.text.to_text(),
            (None, Some(_)) => "(erased)".to_owned(),
            (None, None) => String::new(),
        };
        summaries.push(Summary { info, channel, about });
    }
    summaries.sort_by_key(|summary| std::cmp::Reverse(summary.info.last_at));
    Ok(summaries)
}

/// The name that a session was given last.
fn name(store: &Store, session: &StreamId) -> Result<Option<String>, Problem> {
    let Some(frame) = store.last_of_kind(session, FrameKind::CommandRun)? else { return Ok(None) };
    let body = frame.body.filter(|body| body["command"] == RENAME);
    Ok(body.and_then(|body| body["arguments"].as_str().map(str::to_owned)))
}

fn list(output: &Output, store: &Store, all: bool) -> Result<Exit, Problem> {
    let summaries = summaries(store, all)?;
    if output.json {
        for Summary { info, channel, about } in summaries {
            output.document(&json!({
                "session": info.id,
                "channel": channel,
                "frames": info.frames,
                "first_at": info.first_at,
                "last_at": info.last_at,
                "about": about,
            }))?;
        }
        return Ok(Exit::Done);
    }
    let rows = summaries.into_iter().map(|Summary { info, channel, about }| {
        let about: String = about.lines().next().unwrap_or_default().chars().take(60).collect();
        let last = info.last_at.map(moment).unwrap_or_default();
        [info.id.to_string(), channel, last, info.frames.to_string(), sanitize_for_terminal(&about)]
    });
    let empty = "no sessions yet; `holdfast chat` begins one";
    output.line(table(["session", "from", "last used", "frames", "about"], rows, empty))?;
    Ok(Exit::Done)
}

/// The conversation as it was had.
fn show(output: &Output, store: &Store, session: &StreamId) -> Result<Exit, Problem> {
    for frame in store.frames(session, Seq(0)..)? {
        if frame.erased.is_some() {
            continue;
        }
        let seq = frame.envelope.seq;
        let (who, text) = match store.body(&frame)? {
            Body::InputReceived(input) => ("you", input.text.to_text()),
            Body::ModelReturned(returned) => {
                for call in &returned.calls {
                    let text = format!("{} {}", call.tool, call.arguments.to_text());
                    line(output, seq, "calls", &text)?;
                }
                ("assistant", returned.text.to_text())
            }
            Body::ToolReturned(returned) => ("tool", Content::to_text(&returned.outcome.told())),
            _ => continue,
        };
        if !text.is_empty() {
            line(output, seq, who, &text)?;
        }
    }
    Ok(Exit::Done)
}

fn line(output: &Output, seq: Seq, who: &str, text: &str) -> Result<(), Problem> {
    match output.json {
        true => output.document(&json!({ "seq": seq, "who": who, "text": text })),
        false => {
            output.line(format!("{who:>9}  {}", sanitize_for_terminal(text).replace('\n', "\n           ")))
        }
    }
}
