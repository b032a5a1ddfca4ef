//! Reading an extension's reply: the decision of a hook, the result of a tool.

use holdfast_contract::content::Content;
use holdfast_contract::hook::{Decision, HookPoint};
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::wire::Reply;

/// A hook's decision; a fault if the reply is not a decision that the hook point accepts.
pub fn decision_of(reply: Reply, point: HookPoint) -> Result<Decision, Fault> {
    match reply {
        Reply::Decision(decision) => accepted(decision, point),
        other => Err(unfit(&other, point)),
    }
}

/// A decision; a fault if the hook point does not accept it.
pub(crate) fn accepted(decision: Decision, point: HookPoint) -> Result<Decision, Fault> {
    if point.accepts(&decision) { Ok(decision) } else { Err(unfit(&Reply::Decision(decision), point)) }
}

fn unfit(answer: &Reply, point: HookPoint) -> Fault {
    Fault::new(Code::HookNonsense, format!("{answer:?} is no answer to {point:?}"))
}

/// A tool's result; a fault if the reply is something else.
pub fn result_of(reply: Reply) -> Result<Content, Fault> {
    match reply {
        Reply::Content(content) => Ok(content),
        other => Err(Fault::new(Code::ToolFailed, format!("{other:?} is not a result"))),
    }
}
