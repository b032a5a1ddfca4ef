//! From what the kernel decided to what a provider is sent.

use std::collections::BTreeMap;

use genai::adapter::AdapterKind;
use genai::chat::{ChatMessage, ChatRequest, ContentPart, MessageContent, Tool, ToolCall, ToolResponse};
use holdfast_contract::content::Content;
use holdfast_contract::context::SEPARATOR;
use holdfast_contract::effect::ModelAct;
use holdfast_contract::hook::Artifact;
use holdfast_contract::ids::ToolName;
use holdfast_contract::message::{AskedCall, Message};
use holdfast_contract::names::MAX_WIRE_NAME;
use holdfast_contract::registry::Registry;
use serde_json::{Map, Value, json};

use super::{attached, reasoning};

/// The names that tools have on the wire: providers allow letters, digits, `_` and `-` only.
pub(super) struct Names {
    wire: BTreeMap<ToolName, String>,
    back: BTreeMap<String, ToolName>,
}

impl Names {
    pub(super) fn of(registry: &Registry) -> Self {
        let mut names = Self { wire: BTreeMap::new(), back: BTreeMap::new() };
        for entry in &registry.tools {
            let plain = entry.name.on_wire();
            let mut name = plain.clone();
            let mut count = 1;
            while names.back.contains_key(&name) {
                count += 1;
                let suffix = format!("_{count}");
                name = format!("{}{suffix}", &plain[..plain.len().min(MAX_WIRE_NAME - suffix.len())]);
            }
            names.back.insert(name.clone(), entry.name.clone());
            names.wire.insert(entry.name.clone(), name);
        }
        names
    }

    fn wire(&self, tool: &ToolName) -> String {
        self.wire.get(tool).cloned().unwrap_or_else(|| tool.on_wire())
    }

    /// The tool that a model means. A name that it made up stays as it is: the kernel tells it so.
    pub(super) fn back(&self, name: &str) -> ToolName {
        self.back.get(name).cloned().unwrap_or_else(|| name.into())
    }
}

/// Arguments as an object: a provider that sends none means an empty one.
pub(super) fn arguments(value: Value) -> Value {
    match value {
        Value::Null => json!({}),
        Value::String(text) if text.trim().is_empty() => json!({}),
        other => other,
    }
}

/// Arguments on their way back. What is no object was not understood, and providers take nothing else.
fn object(value: Value) -> Value {
    match arguments(value) {
        Value::Object(fields) => Value::Object(fields),
        other => json!({ "not_understood": other }),
    }
}

pub(super) fn build(ask: &ModelAct, kind: AdapterKind, names: &Names) -> ChatRequest {
    let mut request = ChatRequest::from_messages(messages(ask, kind, names));
    let system: Vec<String> = std::iter::once(&ask.instructions)
        .chain(ask.context.iter())
        .map(Content::to_text)
        .filter(|text| !text.trim().is_empty())
        .collect();
    if !system.is_empty() {
        request.system = Some(system.join(SEPARATOR));
    }
    let tools: Vec<Tool> = ask
        .registry
        .tools
        .iter()
        .filter_map(|entry| {
            let spec = &entry.stack.first()?.spec;
            let schema = object_schema(spec.input_schema.value());
            Some(
                Tool::new(names.wire(&entry.name))
                    .with_description(spec.description.clone())
                    .with_schema(schema),
            )
        })
        .collect();
    if !tools.is_empty() {
        request.tools = Some(tools);
    }
    request
}

/// Providers want an object with properties, even if there are none.
fn object_schema(schema: Option<&Value>) -> Value {
    let mut fields = schema.and_then(Value::as_object).cloned().unwrap_or_default();
    fields.entry("type").or_insert_with(|| json!("object"));
    fields.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    fields.remove("$schema");
    Value::Object(fields)
}

/// The conversation. Results follow their calls directly, in one message where the provider allows it; a note that came in between
/// is placed after them.
struct Conversation<'n> {
    kind: AdapterKind,
    /// Whether calls and results are written as text: providers refuse them where no tools are declared, as for a summary.
    in_words: bool,
    names: &'n Names,
    messages: Vec<ChatMessage>,
    results: Vec<ToolResponse>,
    /// Files that came with the results.
    made: Vec<&'n Artifact>,
    late: Vec<ChatMessage>,
    called: BTreeMap<String, String>,
}

fn messages<'n>(ask: &'n ModelAct, kind: AdapterKind, names: &'n Names) -> Vec<ChatMessage> {
    let mut conversation = Conversation {
        kind,
        in_words: ask.registry.tools.is_empty(),
        names,
        messages: Vec::new(),
        results: Vec::new(),
        made: Vec::new(),
        late: Vec::new(),
        called: BTreeMap::new(),
    };
    for message in ask.messages.iter() {
        conversation.add(message);
    }
    conversation.end_results();
    conversation.messages
}

impl<'n> Conversation<'n> {
    fn add(&mut self, message: &'n Message) {
        match message {
            Message::User { text, attachments } => {
                self.end_results();
                self.messages.push(if attachments.is_empty() {
                    ChatMessage::user(text.to_text())
                } else {
                    ChatMessage::user(attached::message(self.kind, text, attachments))
                });
            }
            Message::Note { text } => {
                let note = ChatMessage::user(format!("<note>\n{}\n</note>", text.to_text()));
                if self.called.is_empty() { self.messages.push(note) } else { self.late.push(note) }
            }
            Message::Assistant { text, calls, .. } if self.in_words => {
                let called = calls
                    .iter()
                    .map(|call| format!("[called {} with {}]", call.tool, call.arguments.to_text()));
                let lines: Vec<String> =
                    std::iter::once(text.to_text()).chain(called).filter(|line| !line.is_empty()).collect();
                if !lines.is_empty() {
                    self.messages.push(ChatMessage::assistant(lines.join("\n")));
                }
            }
            Message::Tool { content, .. } if self.in_words => {
                self.messages.push(ChatMessage::user(format!("[the tool answered]\n{}", content.to_text())));
            }
            Message::Assistant { text, reasoning, calls } => {
                self.end_results();
                self.assistant(text, reasoning.as_ref(), calls);
            }
            Message::Tool { model_id, content, attachments, .. } => {
                self.made.extend(attachments);
                let mut result = ToolResponse::new(&**model_id, content.to_text());
                result.fn_name = self.called.get(&**model_id).cloned();
                self.results.push(result);
            }
        }
    }

    fn assistant(&mut self, text: &Content, reasoning: Option<&Content>, calls: &[AskedCall]) {
        let (mut parts, mut signatures) = reasoning::hand_back(self.kind, reasoning);
        signatures.resize(calls.len(), Vec::new());
        let text = text.to_text();
        if !text.is_empty() {
            parts.push(ContentPart::Text(text));
        }
        for (call, signatures) in calls.iter().zip(signatures) {
            let fn_name = self.names.wire(&call.tool);
            self.called.insert(call.model_id.to_string(), fn_name.clone());
            parts.push(ContentPart::ToolCall(ToolCall {
                call_id: call.model_id.to_string(),
                fn_name,
                fn_arguments: object(call.arguments.value().cloned().unwrap_or_default()),
                thought_signatures: (!signatures.is_empty()).then_some(signatures),
            }));
        }
        if !parts.is_empty() {
            self.messages.push(ChatMessage::assistant(MessageContent::from_parts(parts)));
        }
    }

    fn end_results(&mut self) {
        let results = std::mem::take(&mut self.results);
        // This one reads a single result from a message.
        if matches!(self.kind, AdapterKind::Ollama | AdapterKind::OllamaCloud) {
            self.messages.extend(results.into_iter().map(ChatMessage::from));
        } else if !results.is_empty() {
            self.messages.push(ChatMessage::from(results));
        }
        if !self.made.is_empty() {
            let made = attached::made(self.kind, self.made.drain(..));
            self.messages.push(ChatMessage::user(made));
        }
        self.messages.append(&mut self.late);
        self.called.clear();
    }
}
