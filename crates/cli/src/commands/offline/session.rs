//! `holdfast session …`: the commands that read conversations.

use std::collections::BTreeMap;

use holdfast_contract::body::Body;
use holdfast_contract::content::Content;
use holdfast_contract::digest::Digest;
use holdfast_contract::hook::Decision;
use holdfast_contract::ids::{CallId, Seq, StreamId, ToolName};
use holdfast_contract::problem::{Problem, Severity};
use holdfast_contract::session_frames::{
    Answer, ApprovalAnswered, CheckOutcome, ChildEnded, ToolChecked, ToolReturned, ToolSettled, TurnEnded,
    TurnOutcome,
};
use holdfast_contract::tool::ToolOutcome;
use holdfast_home::Home;
use holdfast_rpc::{FIRST_FRAMES, SessionSummary, existing_stream, session_summaries};
use holdfast_store::Store;
use serde_json::json;

use crate::arguments::ReadSession;
use crate::chat::outcome;
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

/// The conversation as it was had. The log has what a model and tools returned; shown is what was made of it, because that is what the user
/// was told.
fn show(output: &Output, store: &Store, session: &StreamId) -> Result<Exit, Problem> {
    let (mut erased, mut told) = (None, Told::default());
    for frame in store.frames(session, Seq(0)..)? {
        if let Some(tombstone) = &frame.erased {
            erased.get_or_insert_with(|| tombstone.reason.clone());
            continue;
        }
        let seq = frame.envelope.seq;
        for (who, text) in told.by(store.body(&frame)?) {
            if !text.is_empty() {
                line(output, seq, who, &text)?;
            }
        }
    }
    if let Some(reason) = erased.filter(|_| !output.quiet) {
        eprintln!("the content of {session} was erased: {reason}");
    }
    // What can be read is shown; that it is what was said holds only for a stream that verifies.
    damage("what is shown may be wrong", &store.verify(Some(session))?).map_or(Ok(Exit::Done), Err)
}

/// What the user of a conversation was told.
#[derive(Default)]
struct Told {
    /// Arguments and results, by the digests by which later frames name them.
    contents: BTreeMap<Digest, Content>,
    /// Calls that are not over: the tool, and the digest of its arguments.
    open: BTreeMap<CallId, (ToolName, Digest)>,
}

impl Told {
    /// What a frame tells the user, and who says it.
    fn by(&mut self, body: Body) -> Vec<(&'static str, String)> {
        match body {
            Body::InputReceived(input) => return vec![("you", input.text.to_text())],
            Body::ModelReturned(returned) => {
                returned.calls.into_iter().for_each(|call| self.keep(call.arguments));
            }
            Body::ToolCalled(called) => {
                self.open.insert(called.call, (called.tool, called.arguments.get()));
            }
            Body::HookDecided(decided) => match decided.decision {
                Decision::Modify { arguments: Some(content), .. }
                | Decision::Enrich { result: Some(content), .. }
                | Decision::Replace { content, .. } => self.keep(content),
                _ => {}
            },
            Body::ToolChecked(ToolChecked { outcome: CheckOutcome::Coerced { arguments }, .. })
            | Body::ApprovalAnswered(ApprovalAnswered { answer: Answer::Edit { arguments }, .. }) => {
                self.keep(arguments);
            }
            Body::ToolDispatched(dispatched) => {
                let arguments = dispatched.arguments.get();
                self.open.entry(dispatched.call).and_modify(|open| open.1 = arguments);
            }
            Body::ToolReturned(ToolReturned { outcome: ToolOutcome::Result(content), .. }) => {
                self.keep(content);
            }
            Body::ChildEnded(ChildEnded { outcome: ToolOutcome::Result(content), .. }) => self.keep(content),
            Body::ToolSettled(settled) => return self.settled(settled),
            Body::TurnEnded(ended) => return vec![answer(&ended)],
            _ => {}
        }
        Vec::new()
    }

    fn settled(&mut self, settled: ToolSettled) -> Vec<(&'static str, String)> {
        let called = self.open.remove(&settled.call).map(|(tool, arguments)| {
            let arguments = self.contents.get(&arguments).map(Content::to_text).unwrap_or_default();
            ("calls", format!("{tool} {arguments}"))
        });
        let result = match (settled.fault, self.contents.get(&settled.content.get())) {
            (Some(fault), _) => fault.to_string(),
            (None, Some(result)) => result.to_text(),
            (None, None) => "(changed before the model was told)".to_owned(),
        };
        called.into_iter().chain([("tool", result)]).collect()
    }

    fn keep(&mut self, content: Content) {
        self.contents.insert(content.digest(), content);
    }
}

/// How a turn ended for its user: with its answer, or with the reason why it has no answer.
fn answer(ended: &TurnEnded) -> (&'static str, String) {
    match &ended.outcome {
        TurnOutcome::Answered => {
            ("assistant", ended.answer.as_ref().map(Content::to_text).unwrap_or_default())
        }
        other => ("ended", outcome(other)),
    }
}

fn line(output: &Output, seq: Seq, who: &str, text: &str) -> Result<(), Problem> {
    if output.json {
        output.document(&json!({ "seq": seq, "who": who, "text": text }))
    } else {
        output.said(who, text)
    }
}
