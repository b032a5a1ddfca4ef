//! Requests for tests.

use std::sync::{Arc, Mutex};

use holdfast_contract::content::Content;
use holdfast_contract::ids::CallId;
use holdfast_contract::message::{AskedCall, Message, TurnContext};
use holdfast_contract::tool::ToolSpec;
use serde_json::Value;

use crate::{Delta, Deltas, ModelRequest};

/// A request with these messages and tools.
pub(crate) fn ask(messages: Vec<Message>, tools: Vec<ToolSpec>) -> Box<ModelRequest> {
    let mut tools: Vec<Arc<ToolSpec>> = tools.into_iter().map(Arc::new).collect();
    tools.sort_by(|a, b| a.name.cmp(&b.name));
    Box::new(ModelRequest {
        model: "test".into(),
        instructions: Content::text("Be brief."),
        messages: Arc::new(messages),
        tool_names: tools.iter().map(|tool| tool.name.clone()).collect(),
        tools,
        turn: Arc::new(TurnContext::default()),
        ..ModelRequest::default()
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
        edited: None,
    }
}

/// Somewhere for what is streamed.
pub(crate) fn listen() -> (Deltas, Arc<Mutex<Vec<String>>>) {
    let received: Arc<Mutex<Vec<String>>> = Arc::default();
    let into = received.clone();
    let deltas: Deltas = Arc::new(move |delta| {
        into.lock().unwrap().push(match delta {
            Delta::Text(text) => text.to_owned(),
            Delta::Reasoning(text) => format!("[{text}]"),
        });
    });
    (deltas, received)
}
