//! The built-in model: no network, no weights, the same answer to the same conversation every time.
//!
//! It calls a tool when it is told to (`/tool key=value`) or when the words fit one tool clearly and its required arguments are in
//! the text, and reports the result. `choose` finds the tool, `fill` finds the arguments. It is what a fresh
//! installation talks with, not a substitute for a language model, and says so once.

mod choose;
mod display;
mod fill;
#[cfg(test)]
mod offline_tests;
mod words;

use std::collections::BTreeMap;
use std::sync::Arc;

use holdfast_contract::content::Content;
use holdfast_contract::message::{AskedCall, Message, Usage};
use holdfast_contract::session_frames::{ModelFailed, ModelReturned};
use holdfast_contract::tool::ToolSpec;
use holdfast_contract::wire::Later;
use holdfast_yaml::nearest;
use serde_json::{Map, Value};

use crate::{Delta, Deltas, Model, ModelRequest, ready};

/// Said once in a conversation.
const HINT: &str = "I am the built-in model: I match words to tools and understand nothing else. For a language model, \
                    `export OPENAI_API_KEY=…` (or another provider's key) or run `holdfast init`.";
/// The most letters of a result that are repeated.
const MAX_RESULT_CHARS: usize = 4_000;
/// The most tools that are listed.
const MOST_TOOLS: usize = 20;

/// The model that needs no network.
#[derive(Clone, Copy, Debug, Default)]
pub struct Offline;

/// What it does next.
enum Move {
    Call(String, Map<String, Value>),
    Say(String),
}

impl Model for Offline {
    fn complete(&self, ask: Box<ModelRequest>, deltas: Deltas) -> Later<Result<ModelReturned, ModelFailed>> {
        let returned = match next(&ask) {
            Move::Call(tool, arguments) => {
                let arguments = Content::new(Value::Object(arguments));
                let calls = vec![AskedCall { model_id: "call-1".into(), tool: tool.into(), arguments }];
                ModelReturned { text: Content::text(""), reasoning: None, calls, usage: Usage::default() }
            }
            Move::Say(text) => {
                let text = if hinted(&ask.messages) { text } else { format!("{text}\n\n{HINT}") };
                text.split_inclusive(' ').for_each(|word| deltas(Delta::Text(word)));
                let text = Content::text(text);
                ModelReturned { text, reasoning: None, calls: Vec::new(), usage: Usage::default() }
            }
        };
        ready(Ok(returned))
    }
}

fn hinted(messages: &[Message]) -> bool {
    let says = |message: &Message| matches!(message, Message::Assistant { text, .. } if text.to_text().contains(HINT));
    messages.iter().any(says)
}

fn next(ask: &ModelRequest) -> Move {
    if ask.turn.origin.channel == "compaction" {
        return Move::Say(summary(&ask.messages));
    }
    let last = ask.messages.iter().rposition(|message| matches!(message, Message::User { .. }));
    let Some((last, Message::User { text, .. })) =
        last.and_then(|last| Some((last, ask.messages.get(last)?)))
    else {
        return Move::Say(nothing_fits(&ask.tools));
    };
    match report(&ask.messages[last..]) {
        Some(report) => Move::Say(report),
        None => move_for_text(text.to_text().trim(), &ask.tools),
    }
}

/// What to do about a text of the user's.
fn move_for_text(text: &str, tools: &[Arc<ToolSpec>]) -> Move {
    if let Some(command) = text.strip_prefix('/') {
        return commanded(command, tools);
    }
    let Some(tool) = choose::tool(text, tools) else { return Move::Say(nothing_fits(tools)) };
    match fill::from_text(tool, text) {
        Ok(arguments) => Move::Call(tool.name.to_string(), arguments),
        Err(lacks) => Move::Say(format!(
            "`{}` seems to fit, but I do not see what `{lacks}` shall be. {}",
            tool.name,
            usage(tool)
        )),
    }
}

fn commanded(command: &str, tools: &[Arc<ToolSpec>]) -> Move {
    let (name, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
    let Some(tool) = tools.iter().find(|tool| tool.name.as_str() == name) else {
        let near = nearest(name, tools.iter().map(|tool| tool.name.as_str()));
        let near = near.map(|near| format!(" Did you mean `/{near}`?")).unwrap_or_default();
        return Move::Say(format!("There is no tool `{name}`.{near}\n\n{}", list(tools)));
    };
    match fill::from_command(tool, rest.trim()) {
        Ok(arguments) => Move::Call(name.to_owned(), arguments),
        Err(why) => Move::Say(format!("{why} {}", usage(tool))),
    }
}

fn nothing_fits(tools: &[Arc<ToolSpec>]) -> String {
    format!("No tool fits that clearly. {}", list(tools))
}

fn list(tools: &[Arc<ToolSpec>]) -> String {
    let Some(first) = tools.first() else { return "There are no tools to call.".to_owned() };
    let mut text = "These are the tools:\n".to_owned();
    for tool in tools.iter().take(MOST_TOOLS) {
        let about = tool.description.split(['.', '\n']).next().unwrap_or_default().trim();
        text.push_str(&format!("- `{}`: {about}\n", tool.name));
    }
    if tools.len() > MOST_TOOLS {
        text.push_str(&format!("- and {} more\n", tools.len() - MOST_TOOLS));
    }
    format!("{text}{}", usage(first))
}

/// How a tool is called by hand.
fn usage(tool: &ToolSpec) -> String {
    let parameters = fill::Parameter::all(tool);
    let required = parameters.iter().filter(|parameter| parameter.required);
    let given: Vec<String> = required.map(|parameter| format!(" {}=…", parameter.name)).collect();
    format!("Call it with `/{}{}`.", tool.name, given.concat())
}

/// The results of the calls since the user's message.
fn report(since: &[Message]) -> Option<String> {
    let calls = since.iter().flat_map(|message| match message {
        Message::Assistant { calls, .. } => calls.as_slice(),
        _ => &[],
    });
    let calls: Vec<&AskedCall> = calls.collect();
    let results = since.iter().filter_map(|message| match message {
        Message::Tool { model_id, content, failed, edited, .. } => Some((model_id, content, *failed, edited)),
        _ => None,
    });
    let lines: Vec<String> = results
        .map(|(id, content, failed, edited)| {
            let call = calls.iter().rev().find(|call| call.model_id == *id);
            let did = call.map_or_else(
                || "a tool".to_owned(),
                |call| match edited {
                    None => spelt(call),
                    Some(arguments) => {
                        let ran = AskedCall { arguments: arguments.clone(), ..(*call).clone() };
                        format!("{}, as you changed it", spelt(&ran))
                    }
                },
            );
            if failed {
                format!("I called {did}. It failed: {}", shortened(&content.to_text()))
            } else {
                let result = display::readable(content.value());
                format!("I called {did}. It answered:\n\n{}", shortened(&result))
            }
        })
        .collect();
    (!lines.is_empty()).then(|| lines.join("\n\n"))
}

fn spelt(call: &AskedCall) -> String {
    let arguments = call.arguments.value().as_object();
    // By name: a value that was read back from the log may have its fields in another order.
    let given: BTreeMap<&String, &Value> = arguments.into_iter().flatten().collect();
    let given: String = given.iter().map(|(name, value)| format!(" {name}={value}")).collect();
    format!("`{}{given}`", call.tool)
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_RESULT_CHARS) {
        Some((end, _)) => format!("{}… ({} letters in all)", &text[..end], text.chars().count()),
        None => text.to_owned(),
    }
}

/// A summary of sorts: how each message begins.
fn summary(messages: &[Message]) -> String {
    let beginning = |text: &Content| {
        text.to_text().lines().next().unwrap_or_default().chars().take(200).collect::<String>()
    };
    let line = |message: &Message| match message {
        Message::User { text, .. } => Some(format!("- The user said: {}", beginning(text))),
        Message::Assistant { text, calls, .. } if calls.is_empty() => {
            Some(format!("- The answer was: {}", beginning(text)))
        }
        Message::Assistant { calls, .. } => {
            Some(calls.iter().map(|call| format!("- Called {}", spelt(call))).collect::<Vec<_>>().join("\n"))
        }
        Message::Tool { content, .. } => Some(format!("- It came to: {}", beginning(content))),
        Message::Note { text } => Some(format!("- Noted: {}", beginning(text))),
    };
    // The last message is the request for the summary itself.
    let said = messages.split_last().map_or(messages, |(_, said)| said);
    said.iter().filter_map(line).collect::<Vec<_>>().join("\n")
}
