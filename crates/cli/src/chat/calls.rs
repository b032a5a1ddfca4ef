//! Tool calls as lines: one per call, once it is over, and a status line for those that run. Behind the line of a call stands its result,
//! where a hint says how.

use std::collections::BTreeMap;
use std::time::Instant;

use holdfast_contract::body::Body;
use holdfast_contract::content::{Content, DigestOf};
use holdfast_contract::digest::Digest;
use holdfast_contract::hook::Decision;
use holdfast_contract::ids::{CallId, Millis, ToolName};
use holdfast_contract::session_frames::{
    Answer, ApprovalAnswered, CheckOutcome, HookDecided, ToolChecked, ToolReturned,
};
use holdfast_contract::tool::{CallStatus, ToolOutcome};
use holdfast_rpc::{ToolInfo, ToolRender};
use serde_json::Value;
use unicode_width::UnicodeWidthStr;

use super::renders::Hint;
use super::text::margin::{Margin, columns_of, wrapped};
use super::text::sanitize::{cut, one_line, safe_json};
use super::text::style::TextStyle;

/// Columns of the arguments of a call that runs, so that the time behind them is seen.
const MAX_RUNNING_COLUMNS: usize = 60;

/// The calls of a turn that are not over.
#[derive(Default)]
pub(crate) struct Calls {
    /// Arguments and results by their digest: as they came, and as they were changed.
    contents: BTreeMap<Digest, Content>,
    open: BTreeMap<CallId, Open>,
    /// What the tools of the home say about how they are shown.
    tools: BTreeMap<ToolName, RenderHints>,
}

/// What a tool says about how it is shown.
#[derive(Clone, Debug, Default)]
pub(crate) struct RenderHints {
    /// Its hint.
    pub hint: Hint,
    /// Whether its extension shows calls and results itself.
    pub renderer: bool,
}

/// A call that is over.
pub(crate) struct Over {
    /// Its line.
    pub line: String,
    /// Its result, in whole lines, where a hint says how.
    pub block: String,
    /// What its extension is asked, if that shows calls itself: its words stand in place of the result's.
    pub asked: Option<ToolRender>,
}

struct Open {
    tool: ToolName,
    arguments: Option<Content>,
    since: Millis,
    /// When it was seen to run, if it does.
    runs: Option<Instant>,
}

impl Calls {
    /// Learns what the tools say about how they are shown.
    pub(crate) fn learn(&mut self, tools: &[ToolInfo]) {
        let shown = tools.iter().filter(|tool| tool.renders || tool.render.is_some()).map(|tool| {
            let hint = tool.render.as_ref().map(Hint::read).unwrap_or_default();
            (tool.name.clone(), RenderHints { hint, renderer: tool.renders })
        });
        self.tools = shown.collect();
    }

    /// Takes a frame, and gives the call that it ends.
    pub(crate) fn frame(
        &mut self,
        at: Millis,
        body: &Body,
        text_style: TextStyle,
        columns: usize,
    ) -> Option<Over> {
        match body {
            Body::TurnStarted(_) => (self.contents, self.open) = Default::default(),
            Body::ModelReturned(returned) => {
                returned.calls.iter().for_each(|call| self.know(&call.arguments));
            }
            // Changed arguments are shown as they ran.
            Body::HookDecided(HookDecided {
                decision: Decision::Modify { arguments: Some(arguments), .. },
                ..
            })
            | Body::ToolChecked(ToolChecked { outcome: CheckOutcome::Coerced { arguments }, .. })
            | Body::ApprovalAnswered(ApprovalAnswered { answer: Answer::Edit { arguments }, .. }) => {
                self.know(arguments);
            }
            // A changed result is shown as the model got it.
            Body::ToolReturned(ToolReturned { outcome: ToolOutcome::Result(content), .. })
            | Body::HookDecided(HookDecided {
                decision: Decision::Enrich { result: Some(content), .. } | Decision::Replace { content, .. },
                ..
            }) => self.know(content),
            Body::ToolCalled(called) => {
                let arguments = self.known(&called.arguments);
                let open = Open { tool: called.tool.clone(), arguments, since: at, runs: None };
                self.open.insert(called.call, open);
            }
            Body::ToolDispatched(dispatched) => {
                let arguments = self.known(&dispatched.arguments);
                if let Some(open) = self.open.get_mut(&dispatched.call) {
                    (open.since, open.runs) = (at, Some(Instant::now()));
                    open.arguments = arguments.or_else(|| open.arguments.take());
                }
            }
            Body::ToolSettled(settled) => {
                let open = self.open.remove(&settled.call)?;
                let spent = at.since(open.since).0;
                // Its code is in `/why` and in the log.
                let fault = settled.fault.as_ref().map(|fault| one_line(&fault.message));
                let done = settled.status == CallStatus::Done;
                let result = self.known(&settled.content).filter(|_| done);
                let own = self.tools.get(&open.tool).cloned().unwrap_or_default();
                // A hook that saw this result knows better than the tool that made it.
                let hint = settled.render.as_ref().map(Content::value).map(Hint::read).unwrap_or(own.hint);
                let summary = result.as_ref().and_then(|it| hint.summary(open.arguments.as_ref(), it));
                let end = match (settled.status, fault) {
                    (CallStatus::Done, _) => format!("ok {spent} ms"),
                    (status, None) => word(status).to_owned(),
                    (status, Some(fault)) => format!("{}: {fault}", word(status)),
                };
                let line = line((text_style, columns), &open, summary.as_deref(), (done, &end));
                let block =
                    result.as_ref().and_then(|it| hint.block(it, text_style, columns)).unwrap_or_default();
                let asked = result.filter(|_| own.renderer && settled.render.is_none()).map(|result| {
                    let arguments = open.arguments.clone().unwrap_or_default();
                    ToolRender { tool: open.tool, arguments, result }
                });
                return Some(Over { line, block, asked });
            }
            _ => {}
        }
        None
    }

    fn know(&mut self, content: &Content) {
        self.contents.insert(content.digest(), content.clone());
    }

    fn known(&self, digest: &DigestOf) -> Option<Content> {
        self.contents.get(&digest.get()).cloned()
    }

    /// What runs, and for how long: of one call its arguments, of several the tools.
    pub(crate) fn running(&self) -> Option<String> {
        let running: Vec<(&Open, Instant)> =
            self.open.values().filter_map(|open| Some((open, open.runs?))).collect();
        let first = running.iter().map(|(_, since)| *since).min()?;
        let names: Vec<String> = running.iter().map(|(open, _)| one_line(open.tool.as_str())).collect();
        let arguments = match running.as_slice() {
            [(Open { arguments: Some(arguments), .. }, _)] => {
                let shown = one_line(&safe_json(&shortest_first(arguments)));
                format!(" {}", cut(&shown, MAX_RUNNING_COLUMNS))
            }
            _ => String::new(),
        };
        let time = match first.elapsed().as_secs() {
            0 => String::new(),
            seconds => format!(" {seconds} s"),
        };
        Some(format!("⏺ {}{arguments} …{time}", names.join(", ")))
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

/// Arguments in JSON, the shortest first, so that a path is still shown where a text is cut.
fn shortest_first(arguments: &Content) -> String {
    let Some(fields) = arguments.value().as_object() else { return arguments.to_text() };
    let mut parts: Vec<String> =
        fields.iter().map(|(name, value)| format!("{}:{value}", Value::from(name.as_str()))).collect();
    parts.sort_by_key(String::len);
    format!("{{{}}}", parts.join(","))
}

/// The arguments, or what the tool says in their place, are shortened first; how it ended is always shown whole, with the margin where it
/// needs further rows.
fn line(
    (text_style, columns): (TextStyle, usize),
    open: &Open,
    summary: Option<&str>,
    (done, end): (bool, &str),
) -> String {
    let tool = one_line(open.tool.as_str());
    let room = columns.min(160).saturating_sub(tool.width() + 20).max(12);
    let arguments = || open.arguments.as_ref().map(|it| safe_json(&shortest_first(it))).unwrap_or_default();
    let words = summary.map_or_else(arguments, str::to_owned);
    let words = cut(&one_line(&words), room);
    let plain = format!("⏺ {tool} {words} … ");
    if columns_of(&plain) >= columns {
        return wrapped(&format!("{plain}{end}"), columns);
    }
    let end = Margin::new(columns).after(columns_of(&plain)).whole(end);
    let end = if done { text_style.good(&end) } else { text_style.bad(&end) };
    format!("{} {} {} … {end}", text_style.dim("⏺"), text_style.bold(&tool), text_style.dim(&words))
}

#[cfg(test)]
#[path = "calls_tests.rs"]
mod tests;
