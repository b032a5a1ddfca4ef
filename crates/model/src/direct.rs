//! A model that calls the given tool and returns its result: how a tool is called without a model.

use holdfast_contract::content::Content;
use holdfast_contract::message::{AskedCall, Message, Usage};
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::session_frames::{ModelFailed, ModelReturned};
use holdfast_contract::wire::Later;
use serde_json::Value;

use crate::{Deltas, Model, ModelRequest};

/// The name under which it is always there.
pub const NAME: &str = "direct";

/// Takes `/tool {json}` as the call it is.
pub struct Direct;

impl Model for Direct {
    fn complete(&self, ask: Box<ModelRequest>, _: Deltas) -> Later<Result<ModelReturned, ModelFailed>> {
        Box::pin(std::future::ready(answer(&ask)))
    }
}

fn answer(ask: &ModelRequest) -> Result<ModelReturned, ModelFailed> {
    let said = |text: Content, calls: Vec<AskedCall>| ModelReturned {
        text,
        reasoning: None,
        calls,
        usage: Usage::default(),
    };
    let text = match ask.messages.last() {
        Some(Message::User { text, .. }) => text.to_text(),
        Some(Message::Tool { content, .. }) => return Ok(said(content.clone(), Vec::new())),
        _ => return Ok(said(Content::text(""), Vec::new())),
    };
    let read = || {
        let (tool, arguments) = text.strip_prefix('/')?.split_once(' ')?;
        Some((tool, serde_json::from_str::<Value>(arguments).ok()?))
    };
    let Some((tool, arguments)) = read() else {
        let fault = Fault::new(Code::ToolArguments, "a direct call is written `/tool {json}`");
        return Err(ModelFailed::new(fault, false));
    };
    let call = AskedCall { model_id: "1".into(), tool: tool.into(), arguments: Content::new(arguments) };
    Ok(said(Content::text(""), vec![call]))
}
