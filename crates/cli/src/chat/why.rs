//! `/why`: what was decided last, by whom, and on what grounds, read from the frames.

use holdfast_contract::body::Body;
use holdfast_contract::content::Content;
use holdfast_contract::frame::FrameSource;
use holdfast_contract::hook::{Decision, HookPoint};
use holdfast_contract::ids::{CallId, Seq};
use holdfast_contract::session_frames::{Answer, ApprovalScope, CheckOutcome, ToolVerdict, TurnOutcome};
use holdfast_contract::tool::ToolOutcome;

use super::calls::word;
use super::text::sanitize::{cut, one_line, safe_json};
use crate::output::source;

/// A frame that was read.
pub(crate) struct ReadFrame {
    pub seq: Seq,
    pub source: FrameSource,
    pub body: Body,
}

/// The story of a call, or of the last one, or of the last turn if it called nothing.
pub(crate) fn why(frames: &[ReadFrame], wanted: Option<CallId>) -> Vec<String> {
    let begun = frames.iter().rposition(|frame| matches!(frame.body, Body::TurnStarted(_)));
    let called = frames.iter().enumerate().rev().find_map(|(at, frame)| match &frame.body {
        Body::ToolCalled(called) if wanted.is_none_or(|wanted| wanted == called.call) => {
            Some((at, called.call))
        }
        _ => None,
    });
    match (called, begun) {
        (None, _) if wanted.is_some() => vec!["there is no such call; calls are written 2.1".to_owned()],
        (Some((at, call)), _) if wanted.is_some() || begun.is_none_or(|begun| at > begun) => {
            frames.iter().filter_map(|frame| told(frame, call, frames)).collect()
        }
        (_, Some(begun)) => turn(&frames[begun..]),
        (_, None) => vec!["nothing was decided yet".to_owned()],
    }
}

/// A turn without calls: which model answered, who was heard, how it ended.
fn turn(frames: &[ReadFrame]) -> Vec<String> {
    frames.iter().filter_map(turn_step).collect()
}

fn turn_step(frame: &ReadFrame) -> Option<String> {
    let step = match &frame.body {
        Body::TurnStarted(started) => format!("turn {} began", started.turn),
        Body::ModelRouted(routed) => {
            let by = routed
                .by
                .as_ref()
                .map_or("the session's own model".to_owned(), |hook| format!("chosen by {hook}"));
            let advice: Vec<&str> = routed.advice.iter().map(|model| model.as_str()).collect();
            let advised =
                if advice.is_empty() { String::new() } else { format!("; advice: {}", advice.join(", ")) };
            format!("model {} ({by}{advised})", routed.model)
        }
        Body::ModelFailed(failed) => format!("the model failed: {}", failed.fault),
        Body::HookDecided(decided) if !matches!(decided.decision, Decision::Continue | Decision::Allow) => {
            format!("{} decided: {}", decided.hook, decision(&decided.decision))
        }
        Body::HookFaulted(faulted) => format!("{} failed: {}", faulted.hook, faulted.fault),
        Body::GuardVerdict(verdict) => {
            let reasons: Vec<String> =
                verdict.reasons.iter().map(|reason| format!("{}: {}", reason.hook, reason.reason)).collect();
            let what = if verdict.blocked { "guardrails blocked it" } else { "guardrails let it pass" };
            let when = if verdict.point == HookPoint::GuardChunk { " while it was written" } else { "" };
            format!("{what}{when} {}", reasons.join("; "))
        }
        Body::LimitReached(reached) => {
            format!("a limit was reached: {:?}, {} of {}", reached.limit, reached.used, reached.allowed)
        }
        Body::SessionCancelled(cancelled) => format!("cancelled: {}", cancelled.reason),
        Body::TurnEnded(ended) => format!("it ended: {}", outcome(&ended.outcome)),
        _ => return None,
    };
    Some(numbered(frame.seq, &step))
}

/// What a frame tells about a call.
fn told(frame: &ReadFrame, call: CallId, frames: &[ReadFrame]) -> Option<String> {
    let of = |other: CallId| other == call;
    let step = match &frame.body {
        Body::ToolCalled(called) if of(called.call) => {
            let digest = called.arguments.get();
            let asked = frames.iter().rev().find_map(|frame| match &frame.body {
                Body::ModelReturned(returned) => returned
                    .calls
                    .iter()
                    .map(|asked| &asked.arguments)
                    .find(|content| content.digest() == digest),
                _ => None,
            });
            format!(
                "call {call}: the model asked for {} {}",
                called.tool,
                asked.map(json).unwrap_or_default()
            )
        }
        Body::ToolChecked(checked) if of(checked.call) => match &checked.outcome {
            CheckOutcome::Valid => "its arguments fit the schema".to_owned(),
            CheckOutcome::Coerced { arguments } => format!("its arguments fit as {}", json(arguments)),
            CheckOutcome::Invalid { errors } => format!("its arguments do not fit: {}", errors.join("; ")),
        },
        Body::HookAgreed(agreed) if agreed.call.is_some_and(of) => {
            let hooks: Vec<&str> = agreed.hooks.iter().map(|hook| hook.as_str()).collect();
            format!("{} decided: {}", hooks.join(", "), decision(agreed.point.consent()))
        }
        Body::HookDecided(decided) if decided.call.is_some_and(of) => {
            let rule = decided.rule.as_ref().map(|rule| format!(" (rule {rule})")).unwrap_or_default();
            format!("{} decided{rule}: {}", decided.hook, decision(&decided.decision))
        }
        Body::HookFaulted(faulted) if faulted.call.is_some_and(of) => {
            format!("{} failed: {}", faulted.hook, faulted.fault)
        }
        Body::GuardVerdict(verdict) if verdict.call.is_some_and(of) => {
            format!("guardrails {} its result", if verdict.blocked { "blocked" } else { "let pass" })
        }
        Body::ApprovalRequested(requested) if of(requested.call) => {
            let who: Vec<&str> = requested.reasons.iter().map(|reason| reason.hook.as_str()).collect();
            format!("a person was asked, for {}", who.join(", "))
        }
        Body::ApprovalAnswered(answered) => {
            let asked = frames.iter().find(|frame| frame.seq == answered.approval)?;
            match &asked.body {
                Body::ApprovalRequested(requested) if of(requested.call) => {
                    format!("{} {}", source(&frame.source), answer(&answered.answer))
                }
                _ => return None,
            }
        }
        Body::ToolDecided(decided) if of(decided.call) => match &decided.verdict {
            ToolVerdict::Allowed => match session_answer(frames, call, frame.seq) {
                Some(answer) => format!("together: allowed, by the answer for the whole session at {answer}"),
                None => "together: allowed".to_owned(),
            },
            ToolVerdict::Denied { by, reason } => format!("together: denied by {by}: {reason}"),
            ToolVerdict::Asked => "together: a person must say".to_owned(),
        },
        Body::ToolDispatched(dispatched) if of(dispatched.call) => {
            let ran = &dispatched.implementation;
            format!("{} ran: {} {} (generation {})", dispatched.tool, ran.id, ran.version, ran.generation.0)
        }
        Body::ToolReturned(returned) if of(returned.call) => match &returned.outcome {
            ToolOutcome::Result(content) if is_told(frames, call, content) => {
                format!("it gave {}", json(content))
            }
            ToolOutcome::Result(_) => "it gave a result, which hooks judged".to_owned(),
            ToolOutcome::Failure(fault) => format!("it failed: {fault}"),
        },
        Body::ToolSettled(settled) if of(settled.call) => {
            let fault = settled.fault.as_ref().map(|fault| format!(": {fault}")).unwrap_or_default();
            format!("it ended: {}{fault}", word(settled.status))
        }
        Body::ChildOpened(opened) if of(opened.call) => {
            format!("agent {} began in {}", opened.agent, opened.child)
        }
        _ => return None,
    };
    Some(numbered(frame.seq, &step))
}

/// Whether a call ended with this result, as it was returned. What hooks have changed or blocked is in the log.
fn is_told(frames: &[ReadFrame], call: CallId, result: &Content) -> bool {
    frames.iter().any(|frame| {
        matches!(&frame.body, Body::ToolSettled(settled)
            if settled.call == call && settled.content.get() == result.digest())
    })
}

/// The earlier answer that let a call pass which a gate wanted to ask about: it was given for the session, for the same tool.
fn session_answer(frames: &[ReadFrame], call: CallId, before: Seq) -> Option<Seq> {
    let asks = |frame: &ReadFrame| matches!(&frame.body, Body::HookDecided(decided) if decided.call == Some(call) && matches!(decided.decision, Decision::Ask { .. }));
    let asked_now =
        |frame: &ReadFrame| matches!(&frame.body, Body::ApprovalRequested(asked) if asked.call == call);
    if !frames.iter().any(asks) || frames.iter().any(asked_now) {
        return None;
    }
    let tool = tool_of(frames, call)?;
    let approved = approved_for_session(frames);
    approved.into_iter().rev().find(|(seq, approved)| *seq < before && *approved == tool).map(|(seq, _)| seq)
}

/// The answers that count for the session, each with its tool.
pub(crate) fn approved_for_session(frames: &[ReadFrame]) -> Vec<(Seq, String)> {
    let answers = frames.iter().filter_map(|frame| match &frame.body {
        Body::ApprovalAnswered(answered)
            if answered.answer == (Answer::Approve { scope: ApprovalScope::Session }) =>
        {
            Some((frame.seq, answered.approval))
        }
        _ => None,
    });
    let requested = |approval: Seq| {
        frames.iter().find(|frame| frame.seq == approval).and_then(|frame| match &frame.body {
            Body::ApprovalRequested(requested) => tool_of(frames, requested.call),
            _ => None,
        })
    };
    answers.filter_map(|(seq, approval)| Some((seq, requested(approval)?))).collect()
}

fn tool_of(frames: &[ReadFrame], call: CallId) -> Option<String> {
    frames.iter().find_map(|frame| match &frame.body {
        Body::ToolCalled(called) if called.call == call => Some(called.tool.to_string()),
        _ => None,
    })
}

fn numbered(seq: Seq, step: &str) -> String {
    format!("{:>5}  {}", seq.0, one_line(step))
}

fn json(content: &Content) -> String {
    cut(&one_line(&safe_json(&content.to_text())), 100)
}

fn decision(decision: &Decision) -> String {
    match decision {
        Decision::Continue => "nothing to say".to_owned(),
        Decision::Allow => "allow".to_owned(),
        Decision::Deny { reason } => format!("deny: {reason}"),
        Decision::Ask { reason } => format!("ask a person: {reason}"),
        Decision::Modify { arguments, implementation } => {
            let arguments = arguments.as_ref().map(|content| format!(" arguments to {}", json(content)));
            let whose = implementation.as_ref().map(|id| format!(" implementation to {id}"));
            format!("change{}{}", arguments.unwrap_or_default(), whose.unwrap_or_default())
        }
        Decision::Replace { content } => format!("replace it by {}", json(content)),
        Decision::Enrich { .. } => "add to the result".to_owned(),
        Decision::Inject { .. } => "add to the context".to_owned(),
        Decision::Route { model, reason, .. } => format!("route to {model} {reason}"),
        Decision::Flag { reason } => format!("let it pass, with a remark: {reason}"),
        Decision::Block { reason } => format!("block: {reason}"),
        Decision::Compact { .. } => "how to compact".to_owned(),
    }
}

fn answer(answer: &Answer) -> String {
    match answer {
        Answer::Approve { scope: ApprovalScope::Once } => "approved it, this once".to_owned(),
        Answer::Approve { scope: ApprovalScope::Session } => "approved it, for the session".to_owned(),
        Answer::Edit { arguments } => format!("approved it with other arguments: {}", json(arguments)),
        Answer::Deny { reason } => format!("denied it: {reason}"),
    }
}

/// How a turn ended, in words.
pub(crate) fn outcome(outcome: &TurnOutcome) -> String {
    match outcome {
        TurnOutcome::Answered => "with an answer".to_owned(),
        TurnOutcome::Cancelled { reason } => format!("cancelled: {reason}"),
        TurnOutcome::Limited(limit) => format!("by a limit on {limit}"),
        TurnOutcome::Blocked { reason } => format!("blocked: {reason}"),
        TurnOutcome::Failed(fault) => format!("failed: {fault}"),
    }
}

#[cfg(test)]
#[path = "why_tests.rs"]
mod tests;
