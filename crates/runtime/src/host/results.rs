//! The capability `results`: reading on in a result that the model was shown the beginning of. What may be read is exactly what the calling
//! extension was shown when it truncated the result: not what a hook before it has removed, nothing that another extension truncated,
//! and nothing of a result that a guardrail has blocked.

use std::ops::ControlFlow;
use std::sync::Arc;

use holdfast_contract::attachment::taken_out;
use holdfast_contract::body::{Body, FrameKind};
use holdfast_contract::content::Content;
use holdfast_contract::context::beginning;
use holdfast_contract::digest::Digest;
use holdfast_contract::hook::HookPoint;
use holdfast_contract::host_call::arguments::ReadResultArguments;
use holdfast_contract::ids::{CallId, ExtensionId, HookId, Seq, StreamId};
use holdfast_contract::problem::{Code, Fault, Problem};
use holdfast_contract::wire::Later;
use holdfast_store::Store;
use serde_json::json;

use super::{Caller, failed};
use crate::runtime::Inner;

impl Inner {
    /// A part of a result of this session that the caller has truncated, and how long the whole is.
    pub(super) fn result_read(
        self: &Arc<Self>,
        caller: &Caller,
        arguments: ReadResultArguments,
    ) -> Later<Result<Content, Fault>> {
        let Some(session) = caller.session.clone() else {
            return failed(Fault::new(Code::ResultUnknown, "a result belongs to a session"));
        };
        let (store, reader) = (self.store.clone(), caller.extension.id.clone());
        Box::pin(async move {
            let ReadResultArguments { call, offset, limit } = arguments;
            let found =
                tokio::task::spawn_blocking(move || cut_result(&store, &session, &reader, call)).await;
            let lost = |error| Fault::new(Code::Internal, format!("the log could not be read: {error}"));
            let found = found.map_err(lost)?.map_err(|problem| problem.to_fault())?;
            let unknown = |message: String| Fault::new(Code::ResultUnknown, message);
            let text = found.ok_or_else(|| unknown(format!("no result of call {call} was cut")))?;
            let (offset, limit) = (usize::try_from(offset).unwrap_or(usize::MAX), limit.max(1));
            let rest = text.get(text.floor_char_boundary(offset)..).filter(|rest| !rest.is_empty());
            let rest = rest.ok_or_else(|| {
                unknown(format!("the result of call {call} ends at {}, before {offset}", text.len()))
            })?;
            let part = page(rest, usize::try_from(limit).unwrap_or(usize::MAX));
            let begins = text.len() - rest.len();
            let ends = begins + part.len();
            Ok(Content::new(json!({ "text": part, "offset": begins, "end": ends, "total": text.len() })))
        })
    }
}

/// The beginning of a text, of at most so many bytes, with at least one character.
fn page(text: &str, most: usize) -> &str {
    let within = &text[..text.floor_char_boundary(most)];
    let characters = within.chars().count().max(1);
    match beginning(text, characters) {
        // Nothing but space, or a text that the first character of is larger than what was asked for.
        "" => text.char_indices().nth(characters).map_or(text, |(end, _)| &text[..end]),
        part => part,
    }
}

/// The text of a result that a hook of the reader has truncated; none where there is no such call, where nothing was truncated, or where
/// the call had another outcome.
fn cut_result(
    store: &Store,
    session: &StreamId,
    reader: &ExtensionId,
    call: CallId,
) -> Result<Option<String>, Problem> {
    let is_the_readers =
        |hook: &HookId| hook.as_str().strip_prefix(reader.as_str()).is_some_and(|rest| rest.starts_with('/'));
    let mut shown: Option<Digest> = None;
    let mut results: Vec<Content> = Vec::new();
    let mut stands = false;
    store.for_each_frame(session, Seq(0), |frame| {
        let told = matches!(
            frame.envelope.kind,
            FrameKind::ToolReturned | FrameKind::HookDecided | FrameKind::ToolSettled
        );
        match if told { Some(store.body(&frame)?) } else { None } {
            Some(Body::ToolReturned(fact)) if fact.call == call => results.push(fact.outcome.told()),
            Some(Body::HookDecided(fact))
                if fact.call == Some(call) && fact.point == HookPoint::ToolAfter =>
            {
                let Some(result) = fact.decision.replacement() else { return Ok(ControlFlow::Continue(())) };
                if is_the_readers(&fact.hook) {
                    shown = fact.subject.map(|subject| subject.get())
                } else {
                    results.push(result.clone())
                }
            }
            Some(Body::ToolSettled(fact)) if fact.call == call => {
                let stopped = |fault: &Fault| matches!(fault.code, Code::GuardBlocked | Code::ToolCancelled);
                stands = !fact.fault.as_ref().is_some_and(stopped);
                return Ok(ControlFlow::Break(()));
            }
            _ => {}
        }
        Ok(ControlFlow::Continue(()))
    })?;
    let found = results.into_iter().find(|result| Some(result.digest()) == shown);
    // What was cut is what was left of it without its files.
    let found = found.filter(|_| stands).map(|result| taken_out(&result).map_or(result, |(_, left)| left));
    Ok(found.map(|result| result.to_text()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_never_empty_and_never_larger_than_asked_for_unless_a_character_is() {
        assert_eq!(page("one two three", 9), "one two");
        assert_eq!(page("äöü", 3), "ä");
        assert_eq!(page("€", 1), "€");
        assert_eq!(page("   ", 2), "  ");
        assert_eq!(page("all of it", 100), "all of it");
    }
}
