//! Requests for tests.

use std::sync::{Arc, Mutex};

use holdfast_contract::content::Content;
use holdfast_contract::effect::ModelAct;
use holdfast_contract::ids::{CallId, Seq};
use holdfast_contract::message::{AskedCall, Message, TurnContext};
use holdfast_contract::registry::{Implementation, Registry, ToolEntry};
use holdfast_contract::tool::ToolSpec;
use serde_json::Value;

use crate::{Delta, Deltas};

/// A request with these messages and tools.
pub(crate) fn ask(messages: Vec<Message>, tools: Vec<ToolSpec>) -> Box<ModelAct> {
    let entry = |spec: ToolSpec| {
        let name = spec.name.clone();
        let stack = vec![Implementation { extension: Arc::default(), spec: Arc::new(spec), agent: None }];
        ToolEntry { name, stack }
    };
    let mut registry = Registry { tools: tools.into_iter().map(entry).collect(), ..Registry::default() };
    registry.tools.sort_by(|a, b| a.name.cmp(&b.name));
    Box::new(ModelAct {
        decided_by: Seq::default(),
        model: "test".into(),
        delay: Default::default(),
        scope: Default::default(),
        instructions: Content::text("Be brief."),
        context: Arc::default(),
        messages: Arc::new(messages),
        registry: Arc::new(registry),
        turn: Arc::new(TurnContext::default()),
    })
}

/// A tool with this schema.
pub(crate) fn tool(name: &str, description: &str, schema: Value) -> ToolSpec {
    ToolSpec { input_schema: Content::new(schema), ..ToolSpec::named(name, description) }
}

/// The user says something.
pub(crate) fn user(text: &str) -> Message {
    Message::user(text)
}

/// The model says something.
pub(crate) fn says(text: &str) -> Message {
    Message::Assistant { text: text.into(), reasoning: None, calls: Vec::new() }
}

/// The model calls tools.
pub(crate) fn calls(calls: &[(&str, &str, Value)]) -> Message {
    let asked = |(id, tool, arguments): &(&str, &str, Value)| AskedCall {
        model_id: (*id).into(),
        tool: (*tool).into(),
        arguments: Content::new(arguments.clone()),
    };
    Message::Assistant { text: "".into(), reasoning: None, calls: calls.iter().map(asked).collect() }
}

/// A tool answers.
pub(crate) fn result(id: &str, text: &str, failed: bool) -> Message {
    Message::Tool {
        call: CallId::default(),
        model_id: id.into(),
        content: text.into(),
        failed,
        attachments: Vec::new(),
    }
}

/// Somewhere for what is streamed.
pub(crate) fn listen() -> (Deltas, Arc<Mutex<Vec<String>>>) {
    let heard: Arc<Mutex<Vec<String>>> = Arc::default();
    let into = heard.clone();
    let deltas: Deltas = Arc::new(move |delta| {
        into.lock().unwrap().push(match delta {
            Delta::Text(text) => text.to_owned(),
            Delta::Reasoning(text) => format!("[{text}]"),
        });
    });
    (deltas, heard)
}
