//! Tool calls as lines: one per call, once it is over, and a status line for those that run.

use std::collections::BTreeMap;

use holdfast_contract::body::Body;
use holdfast_contract::content::{Content, DigestOf};
use holdfast_contract::digest::Digest;
use holdfast_contract::hook::Decision;
use holdfast_contract::ids::{CallId, Millis, ToolName};
use holdfast_contract::session_frames::{Answer, ApprovalAnswered, CheckOutcome, HookDecided, ToolChecked};
use holdfast_contract::tool::CallStatus;
use unicode_width::UnicodeWidthStr;

use super::ink::Ink;
use super::safe::{cut, one_line, safe_json};

/// The calls of a turn that are not over.
#[derive(Default)]
pub(crate) struct Calls {
    /// Arguments by their digest: as the model asked for them, and as they were changed.
    arguments: BTreeMap<Digest, Content>,
    open: BTreeMap<CallId, Open>,
}

struct Open {
    tool: ToolName,
    arguments: String,
    since: Millis,
    runs: bool,
}

impl Calls {
    /// Takes a frame, and gives the line of a call that it ends.
    pub(crate) fn frame(&mut self, at: Millis, body: &Body, ink: Ink, columns: usize) -> Option<String> {
        match body {
            Body::TurnStarted(_) => *self = Self::default(),
            Body::ModelReturned(returned) => {
                returned.calls.iter().for_each(|call| self.know(&call.arguments));
            }
            // Whoever changes the arguments: what ran is what is shown.
            Body::HookDecided(HookDecided {
                decision: Decision::Modify { arguments: Some(arguments), .. },
                ..
            })
            | Body::ToolChecked(ToolChecked { outcome: CheckOutcome::Coerced { arguments }, .. })
            | Body::ApprovalAnswered(ApprovalAnswered { answer: Answer::Edit { arguments }, .. }) => {
                self.know(arguments);
            }
            Body::ToolCalled(called) => {
                let arguments = self.known(&called.arguments).unwrap_or_default();
                let open = Open { tool: called.tool.clone(), arguments, since: at, runs: false };
                self.open.insert(called.call, open);
            }
            Body::ToolDispatched(dispatched) => {
                let arguments = self.known(&dispatched.arguments);
                if let Some(open) = self.open.get_mut(&dispatched.call) {
                    (open.since, open.runs) = (at, true);
                    open.arguments = arguments.unwrap_or_else(|| open.arguments.clone());
                }
            }
            Body::ToolSettled(settled) => {
                let open = self.open.remove(&settled.call)?;
                let spent = at.since(open.since).0;
                let fault = settled.fault.as_ref().map(|fault| one_line(&fault.to_string()));
                let end = match settled.status {
                    CallStatus::Done => ink.good(&format!("ok {spent} ms")),
                    status => {
                        let word = word(status);
                        ink.bad(&fault.map_or(word.to_owned(), |fault| format!("{word}: {fault}")))
                    }
                };
                return Some(line(ink, columns, &open, &end));
            }
            _ => {}
        }
        None
    }

    fn know(&mut self, arguments: &Content) {
        self.arguments.insert(arguments.digest(), arguments.clone());
    }

    fn known(&self, digest: &DigestOf) -> Option<String> {
        self.arguments.get(&digest.get()).map(|content| safe_json(&content.to_text()))
    }

    /// What runs, in a few words.
    pub(crate) fn running(&self) -> Option<String> {
        let names: Vec<String> =
            self.open.values().filter(|open| open.runs).map(|open| one_line(open.tool.as_str())).collect();
        (!names.is_empty()).then(|| format!("⏺ {} …", names.join(", ")))
    }
}

/// How a call ended, in a word.
pub(crate) fn word(status: CallStatus) -> &'static str {
    match status {
        CallStatus::Done => "ok",
        CallStatus::Failed => "failed",
        CallStatus::Denied => "denied",
        CallStatus::Cancelled => "cancelled",
        CallStatus::Interrupted => "interrupted",
    }
}

/// The arguments give way first; how it ended is always shown whole.
fn line(ink: Ink, columns: usize, open: &Open, end: &str) -> String {
    let tool = one_line(open.tool.as_str());
    let room = columns.min(160).saturating_sub(tool.width() + 20).max(12);
    let arguments = cut(&one_line(&open.arguments), room);
    format!("{} {} {} … {end}", ink.dim("⏺"), ink.bold(&tool), ink.dim(&arguments))
}
