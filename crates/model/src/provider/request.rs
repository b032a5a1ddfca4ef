//! Builds a provider's request from what the kernel decided.

use std::borrow::Cow;
use std::collections::BTreeMap;

use genai::adapter::AdapterKind;
use genai::chat::{
    ChatMessage, ChatOptions, ChatRequest, ContentPart, MessageContent, Tool, ToolCall, ToolResponse,
};
use holdfast_contract::content::Content;
use holdfast_contract::context::SEPARATOR;
use holdfast_contract::hook::Artifact;
use holdfast_contract::ids::ToolName;
use holdfast_contract::message::{AskedCall, Message};
use holdfast_contract::names::MAX_WIRE_NAME;
use serde_json::{Map, Value, json};

use super::{attached, reasoning};
use crate::ModelRequest;

/// The names that tools have on the wire: providers allow letters, digits, `_` and `-` only.
pub(super) struct Names {
    wire: BTreeMap<ToolName, String>,
    back: BTreeMap<String, ToolName>,
}

impl Names {
    pub(super) fn of(tools: &[ToolName]) -> Self {
        let mut names = Self { wire: BTreeMap::new(), back: BTreeMap::new() };
        for tool in tools {
            let plain = tool.on_wire();
            let mut name = plain.clone();
            let mut count = 1;
            while names.back.contains_key(&name) {
                count += 1;
                let suffix = format!("_{count}");
                name = format!("{}{suffix}", &plain[..plain.len().min(MAX_WIRE_NAME - suffix.len())]);
            }
            names.back.insert(name.clone(), tool.clone());
            names.wire.insert(tool.clone(), name);
        }
        names
    }

    fn wire(&self, tool: &ToolName) -> String {
        self.wire.get(tool).cloned().unwrap_or_else(|| tool.on_wire())
    }

    /// The tool that a model means. An unknown name stays as it is: the kernel rejects the call.
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

/// Arguments on their way back. What is not an object was not understood, and providers take nothing else.
fn object(value: Value) -> Value {
    match arguments(value) {
        Value::Object(fields) => Value::Object(fields),
        other => json!({ "not_understood": other }),
    }
}

pub(super) fn build(ask: &ModelRequest, kind: AdapterKind, names: &Names) -> ChatRequest {
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
        .tools
        .iter()
        .map(|spec| {
            Tool::new(names.wire(&spec.name))
                .with_description(spec.description.clone())
                .with_schema(object_schema(spec.input_schema.value()))
        })
        .collect();
    if !tools.is_empty() {
        request.tools = Some(tools);
    }
    request
}

/// Providers want an object with properties, even if there are none.
fn object_schema(schema: &Value) -> Value {
    let mut fields = schema.as_object().cloned().unwrap_or_default();
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

/// The options of a request: the model's, and the parameters of the agent that asks.
pub(super) fn options<'o>(ask: &ModelRequest, usual: &'o ChatOptions) -> Cow<'o, ChatOptions> {
    if ask.parameters.is_empty() {
        return Cow::Borrowed(usual);
    }
    let parameter = |name: &str| ask.parameters.get(name);
    let mut options = usual.clone();
    if let Some(temperature) = parameter("temperature").and_then(Value::as_f64) {
        options = options.with_temperature(temperature);
    }
    if let Some(top_p) = parameter("top_p").and_then(Value::as_f64) {
        options = options.with_top_p(top_p);
    }
    if let Some(tokens) = parameter("max_tokens").and_then(Value::as_u64).and_then(|it| it.try_into().ok()) {
        options = options.with_max_tokens(tokens);
    }
    if let Some(seed) = parameter("seed").and_then(Value::as_u64) {
        options = options.with_seed(seed);
    }
    if let Some(stop) = parameter("stop").and_then(Value::as_array) {
        let stop = stop.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        options = options.with_stop_sequences(stop);
    }
    Cow::Owned(options)
}

fn messages<'n>(ask: &'n ModelRequest, kind: AdapterKind, names: &'n Names) -> Vec<ChatMessage> {
    let mut conversation = Conversation {
        kind,
        in_words: ask.tools.is_empty(),
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
            Message::Tool { content, edited, .. } if self.in_words => {
                let told = Message::told_result(content, edited.as_ref());
                self.messages.push(ChatMessage::user(format!("[the tool answered]\n{told}")));
            }
            Message::Assistant { text, reasoning, calls } => {
                self.end_results();
                self.assistant(text, reasoning.as_ref(), calls);
            }
            Message::Tool { model_id, content, attachments, edited, .. } => {
                self.made.extend(attachments);
                let told = Message::told_result(content, edited.as_ref());
                let mut result = ToolResponse::new(&**model_id, told);
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
                fn_arguments: object(call.arguments.value().clone()),
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
            let made = attached::tool_files(self.kind, self.made.drain(..));
            self.messages.push(ChatMessage::user(made));
        }
        self.messages.append(&mut self.late);
        self.called.clear();
    }
}
