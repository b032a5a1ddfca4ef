//! `holdfast session …`: conversations.

use holdfast_contract::body::Body;
use holdfast_contract::content::Content;
use holdfast_contract::ids::{Seq, StreamId};
use holdfast_contract::problem::Problem;
use holdfast_rpc::{
    LogErase, SessionFork, SessionMethod, SessionRename, SessionSummary, SystemMethod, existing_stream,
    session_summaries,
};
use holdfast_store::Store;
use serde_json::{Value, json};

use crate::arguments::Session;
use crate::chat::sanitize_for_terminal;
use crate::exit::Exit;
use crate::link::Link;
use crate::output::{Output, table};
use crate::time::moment;

/// Those that only read.
pub(crate) fn read(output: &Output, store: &Store, command: &Session) -> Result<Option<Exit>, Problem> {
    match command {
        Session::List { all } => list(output, store, *all).map(Some),
        Session::Show { id } => show(output, store, &existing_stream(store, id)?).map(Some),
        Session::Rename { .. } | Session::Delete { .. } | Session::Fork { .. } => Ok(None),
    }
}

/// Those that need the owner.
pub(crate) async fn change(output: &Output, link: &Link, command: Session) -> Result<Exit, Problem> {
    match command {
        Session::List { .. } | Session::Show { .. } => Ok(Exit::Done),
        Session::Rename { id, name } => {
            let session = StreamId::from(id.as_str());
            let rename = SessionMethod::Rename(SessionRename { session, name: name.clone() });
            link.client.ask::<Value>(&rename).await?;
            say(
                output,
                json!({ "session": id, "name": name }),
                &format!("{id} is now called {}", sanitize_for_terminal(&name)),
            )
        }
        Session::Delete { id, reason } => {
            let session = StreamId::from(id.as_str());
            let erase = SystemMethod::LogErase(LogErase { session, reason });
            let answer: Value = link.client.ask(&erase).await?;
            let text =
                format!("erased the content of {} frames of {id}; their tombstones stay", answer["erased"]);
            say(output, answer, &text)
        }
        Session::Fork { id, at } => {
            let fork = SessionFork { session: StreamId::from(id.as_str()), at: at.map(Seq) };
            let answer: Value = link.client.ask(&SessionMethod::Fork(fork)).await?;
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

fn list(output: &Output, store: &Store, all: bool) -> Result<Exit, Problem> {
    let summaries = session_summaries(store, all, None)?;
    if output.json {
        return summaries
            .iter()
            .try_for_each(|summary| output.document(&json!(summary)))
            .map(|()| Exit::Done);
    }
    let rows = summaries.into_iter().map(|summary| {
        let SessionSummary { session, channel, frames, last_at, about, .. } = summary;
        let about: String = about.lines().next().unwrap_or_default().chars().take(60).collect();
        let last = last_at.map(moment).unwrap_or_default();
        [session.to_string(), channel, last, frames.to_string(), sanitize_for_terminal(&about)]
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
