//! The shapes of APIs, and how a model is asked in a test.

use std::fmt;
use std::sync::{Arc, Mutex};

use holdfast_contract::content::Content;
use holdfast_contract::hook::Artifact;
use holdfast_contract::ids::CallId;
use holdfast_contract::message::{AskedCall, Message};
use holdfast_contract::session_frames::{ModelFailed, ModelReturned};
use holdfast_contract::tool::ToolSpec;
use holdfast_model::provider::ProviderSettings;
use holdfast_model::{Delta, Model, ModelRequest};

use crate::servers::Canned;

/// A key that must not turn up anywhere.
pub const PLANTED: &str = "sk-planted-4711-0815";

/// A way in which providers speak.
pub struct Shape {
    pub provider: &'static str,
    pub model: &'static str,
    /// What must be in a request that follows reasoning and calls, as aimock writes it down.
    pub handed_back: &'static [&'static str],
    pub content_type: &'static str,
    begins: &'static str,
    ends: &'static str,
}

pub const SHAPES: &[Shape] = &[
    Shape {
        provider: "openai",
        model: "gpt-4o",
        handed_back: &[r#""reasoning_content":"Two calls will do.""#, r#""name":"fs_read""#],
        content_type: "text/event-stream",
        begins: "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Well, \"}}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"well\"}}]}\n\n",
        ends: "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
    },
    Shape {
        provider: "openai_resp",
        model: "gpt-5-mini",
        handed_back: &[r#""tool_call_id":"call_b""#],
        content_type: "text/event-stream",
        begins: "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"item_id\":\"m\",\"output_index\":0,\"content_index\":0,\"delta\":\"Well, well\"}\n\n",
        ends: "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"id\":\"r\",\"status\":\"completed\",\"model\":\"m\",\"output\":[]}}\n\n",
    },
    Shape {
        provider: "anthropic",
        model: "claude-sonnet-4-5",
        handed_back: &[r#""tool_call_id":"call_b""#],
        content_type: "text/event-stream",
        begins: "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\nevent: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Well, well\"}}\n\n",
        ends: "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
    },
    Shape {
        provider: "gemini",
        model: "gemini-2.5-flash",
        handed_back: &[r#""role":"tool""#],
        content_type: "text/event-stream",
        begins: "data: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"text\":\"Well, well\"}]},\"index\":0}]}\n\n",
        ends: "data: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"text\":\".\"}]},\"index\":0,\"finishReason\":\"STOP\"}]}\n\n",
    },
    Shape {
        provider: "ollama",
        model: "llama3.2",
        handed_back: &[r#""role":"tool""#],
        content_type: "application/x-ndjson",
        begins: "{\"message\":{\"role\":\"assistant\",\"content\":\"Well, well\"},\"done\":false}\n",
        ends: "{\"message\":{\"role\":\"assistant\",\"content\":\"\"},\"done\":true,\"done_reason\":\"stop\"}\n",
    },
];

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.provider)
    }
}

impl Shape {
    /// An answer of this shape whose beginning comes again and again, until there are so many bytes.
    pub fn endless(&self, bytes: usize) -> String {
        let piece = self.begins.replace("Well, ", &"x".repeat(1 << 16));
        Canned::answer(200, self.content_type, &piece.repeat(bytes / piece.len() + 1))
    }

    /// An answer of this shape, whole or without its end.
    pub fn stream(&self, whole: bool) -> String {
        let body = format!("{}{}", self.begins, if whole { self.ends } else { "" });
        Canned::answer(200, self.content_type, &body)
    }
}

pub fn settings(shape: &Shape, base: &str) -> ProviderSettings {
    ProviderSettings {
        name: "default".to_owned(),
        provider: shape.provider.to_owned(),
        model: shape.model.to_owned(),
        base_url: Some(base.to_owned()),
        key: Some(PLANTED.into()),
        key_from: Some("PLANTED_KEY".to_owned()),
        // These two give their reasoning to those who ask for it.
        reasoning: matches!(shape.provider, "openai_resp" | "gemini").then(|| "low".to_owned()),
        ..ProviderSettings::default()
    }
}

/// What a model streamed and answered, and to what.
pub struct Answered {
    messages: Vec<Message>,
    /// What was streamed; reasoning is marked.
    pub deltas: Vec<(bool, String)>,
    answer: Result<ModelReturned, ModelFailed>,
}

/// Lets the user say these things, with two tools available.
pub async fn ask(model: &dyn Model, said: &[&str]) -> Answered {
    complete(model, said.iter().map(|text| Message::user(*text)).collect()).await
}

/// Lets the user say something that files go with.
pub async fn ask_with(model: &dyn Model, said: &str, attachments: Vec<Artifact>) -> Answered {
    complete(model, vec![Message::User { text: Content::text(said), attachments }]).await
}

/// Goes on after two calls that came to `seen a` and, with these files, to `seen b`.
pub async fn ask_after_calls(model: &dyn Model, attachments: Vec<Artifact>) -> Answered {
    let call = |id: &str| AskedCall {
        model_id: id.into(),
        tool: "fs.read".into(),
        arguments: Content::new(serde_json::json!({})),
    };
    let result = |id: &str, text: &str, attachments: Vec<Artifact>| Message::Tool {
        call: CallId::default(),
        model_id: id.into(),
        content: Content::text(text),
        failed: false,
        attachments,
        edited: None,
    };
    let calls = vec![call("call_a"), call("call_b")];
    let messages = vec![
        Message::user("read both"),
        Message::Assistant { text: Content::text(""), reasoning: None, calls },
        result("call_a", "seen a", Vec::new()),
        result("call_b", "seen b", attachments),
    ];
    complete(model, messages).await
}

async fn complete(model: &dyn Model, messages: Vec<Message>) -> Answered {
    let received: Arc<Mutex<Vec<(bool, String)>>> = Arc::default();
    let into = received.clone();
    let deltas = Arc::new(move |delta: Delta<'_>| {
        into.lock().unwrap().push(match delta {
            Delta::Text(text) => (false, text.to_owned()),
            Delta::Reasoning(text) => (true, text.to_owned()),
        });
    });
    let answer = model.complete(Box::new(request(messages.clone())), deltas).await;
    let deltas = std::mem::take(&mut *received.lock().unwrap());
    Answered { messages, deltas, answer }
}

fn request(messages: Vec<Message>) -> ModelRequest {
    let names = ["clock", "fs.read"];
    ModelRequest {
        model: "default".into(),
        instructions: Content::text("Be brief."),
        messages: Arc::new(messages),
        tools: names.map(|name| Arc::new(ToolSpec::named(name, "For tests."))).into(),
        tool_names: names.map(Into::into).into(),
        ..ModelRequest::default()
    }
}

impl Answered {
    pub fn returned(&self) -> &ModelReturned {
        self.answer.as_ref().unwrap_or_else(|failed| panic!("{failed:?}"))
    }

    pub fn failed(&self) -> ModelFailed {
        match &self.answer {
            Ok(returned) => panic!("it answered: {returned:?}"),
            Err(failed) => failed.clone(),
        }
    }

    pub fn text(&self) -> String {
        self.deltas.iter().filter(|(reasoning, _)| !reasoning).map(|(_, text)| text.as_str()).collect()
    }

    pub fn reasoning(&self) -> String {
        self.deltas.iter().filter(|(reasoning, _)| *reasoning).map(|(_, text)| text.as_str()).collect()
    }

    /// Goes on with what the calls came to.
    pub async fn then_results(&self, model: &dyn Model, results: &[&str]) -> Answered {
        let ModelReturned { text, reasoning, calls, .. } = self.returned().clone();
        let mut messages = self.messages.clone();
        let results = calls.iter().zip(results).map(|(call, result)| Message::Tool {
            call: CallId::default(),
            model_id: call.model_id.clone(),
            content: Content::text(*result),
            failed: false,
            attachments: Vec::new(),
            edited: None,
        });
        let results: Vec<Message> = results.collect();
        messages.push(Message::Assistant { text, reasoning, calls });
        messages.extend(results);
        complete(model, messages).await
    }
}
