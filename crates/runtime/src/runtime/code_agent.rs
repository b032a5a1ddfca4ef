//! An agent whose answers are an extension's own code. In a conversation that was handed over to it, it stands where a model does: what the
//! user said is its task, and what it answers is said. `{"text": …, "hand_back": true}` gives the conversation back.

use std::sync::Arc;

use holdfast_contract::agents::{HAND_BACK, code_behind};
use holdfast_contract::content::Content;
use holdfast_contract::ids::{ExtensionId, ModelName};
use holdfast_contract::message::{AskedCall, Message, Usage};
use holdfast_contract::role::Role;
use holdfast_contract::session_frames::{ModelFailed, ModelReturned};
use holdfast_contract::wire::Later;
use holdfast_model::{Deltas, Model, ModelRequest};
use serde_json::{Value, json};

use crate::runtime::Inner;

struct CodeAgent {
    inner: Arc<Inner>,
    extension: ExtensionId,
}

impl Inner {
    /// The code that answers under this name, if it is code that does.
    pub(crate) fn code_agent(self: &Arc<Self>, name: &ModelName) -> Option<Arc<dyn Model>> {
        let extension = code_behind(name)?;
        Some(Arc::new(CodeAgent { inner: self.clone(), extension }))
    }
}

impl Model for CodeAgent {
    fn complete(&self, ask: Box<ModelRequest>, _: Deltas) -> Later<Result<ModelReturned, ModelFailed>> {
        let (inner, extension) = (self.inner.clone(), self.extension.clone());
        Box::pin(async move {
            let said = ask.messages.iter().rev().find_map(|message| match message {
                Message::User { text, .. } => Some(text.to_text()),
                _ => None,
            });
            let task = Content::new(json!({ "task": said.unwrap_or_default() }));
            let answer = inner.call_role(&extension, Role::Agent, "invoke", task).await;
            answer.map(|answer| returned(&answer)).map_err(|fault| ModelFailed::new(fault, false))
        })
    }
}

fn returned(answer: &Content) -> ModelReturned {
    let field = |name: &str| answer.value().get(name).cloned();
    let goes_back = field("hand_back") == Some(Value::Bool(true));
    let text =
        field("text").and_then(|text| text.as_str().map(str::to_owned)).unwrap_or_else(|| answer.to_text());
    let back = AskedCall {
        model_id: HAND_BACK.into(),
        tool: HAND_BACK.into(),
        arguments: Content::new(json!({ "message": text })),
    };
    let calls = if goes_back { vec![back] } else { Vec::new() };
    ModelReturned { text: Content::text(text), reasoning: None, calls, usage: Usage::default() }
}
