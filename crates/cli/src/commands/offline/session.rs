//! `holdfast session …`: the commands that read conversations.

use holdfast_contract::body::Body;
use holdfast_contract::content::Content;
use holdfast_contract::ids::{Seq, StreamId};
use holdfast_contract::problem::{Problem, Severity};
use holdfast_home::Home;
use holdfast_rpc::{FIRST_FRAMES, SessionSummary, existing_stream, session_summaries};
use holdfast_store::Store;
use serde_json::json;

use crate::arguments::ReadSession;
use crate::commands::offline::home::{damage, open};
use crate::exit::Exit;
use crate::output::{Output, report, table};
use crate::time::moment;

pub(crate) fn session(output: &Output, home: &Home, command: &ReadSession) -> Result<Exit, Problem> {
    let store = open(home)?;
    match command {
        ReadSession::List { all } => list(output, &store, *all),
        ReadSession::Show { id } => show(output, &store, &existing_stream(&store, id)?),
    }
}

fn list(output: &Output, store: &Store, all: bool) -> Result<Exit, Problem> {
    let summaries = session_summaries(store, all, None)?;
    if let Some(problem) = damage("the list may be wrong", &store.survey(FIRST_FRAMES)?) {
        report(&problem.with(Severity::Warning));
    }
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
        [session.to_string(), channel, last, frames.to_string(), about]
    });
    let empty = "no sessions yet; `holdfast chat` begins one";
    output.lines(table(["session", "from", "last used", "frames", "about"], rows, empty))?;
    Ok(Exit::Done)
}

/// The conversation as it was had.
fn show(output: &Output, store: &Store, session: &StreamId) -> Result<Exit, Problem> {
    let mut erased = None;
    for frame in store.frames(session, Seq(0)..)? {
        if let Some(tombstone) = &frame.erased {
            erased.get_or_insert_with(|| tombstone.reason.clone());
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
    if let Some(reason) = erased.filter(|_| !output.quiet) {
        eprintln!("the content of {session} was erased: {reason}");
    }
    // What can be read is shown; that it is what was said holds only for a stream that verifies.
    damage("what is shown may be wrong", &store.verify(Some(session))?).map_or(Ok(Exit::Done), Err)
}

fn line(output: &Output, seq: Seq, who: &str, text: &str) -> Result<(), Problem> {
    if output.json {
        output.document(&json!({ "seq": seq, "who": who, "text": text }))
    } else {
        output.said(who, text)
    }
}
