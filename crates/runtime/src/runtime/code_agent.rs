//! An agent whose answers are an extension's own code. It stands where a model does: what its session is told is its task, and what it
//! answers is said. `{"text": …, "hand_back": true}` gives a conversation back that was handed over to it.
//!
//! The code runs on the generation that the turn is pinned to, and its host calls belong to the session: they are recorded there, and
//! what they use is charged to it.

use std::sync::Arc;

use holdfast_contract::agents::{HAND_BACK, code_behind};
use holdfast_contract::body::{Body, FrameKind};
use holdfast_contract::content::Content;
use holdfast_contract::effect::ModelAct;
use holdfast_contract::frame::Frame;
use holdfast_contract::ids::{ExtensionId, Seq, StreamId};
use holdfast_contract::message::{AskedCall, Message, TurnView, Usage};
use holdfast_contract::problem::{Code, Fault, Problem};
use holdfast_contract::protocol::ProcessTurn;
use holdfast_contract::registry::{AgentUse, ExtensionRef};
use holdfast_contract::role::Role;
use holdfast_contract::session_frames::{CompactionProvided, InputReceived, ModelFailed, ModelReturned};
use holdfast_contract::tool::ToolOutcome;
use holdfast_contract::wire::{Call, Host, Later};
use holdfast_model::{Deltas, Model, ModelRequest};
use serde_json::{Map, Value, json};

use crate::calls::wait;
use crate::history::find_last_before;
use crate::host::content_of;
use crate::runtime::Inner;

/// An extension's code in place of a model.
struct CodeAgent {
    inner: Arc<Inner>,
    extension: Arc<ExtensionRef>,
    host: Arc<dyn Host>,
}

/// What led to an invocation.
#[derive(Default)]
struct InvocationCause {
    user_message: Option<String>,
    correlation_id: Option<String>,
    conversation_summary: Option<String>,
}

/// The extension whose code answers a model call, if it is code that does: the generation that the turn is pinned to. A fault if it
/// has no agent there.
pub(crate) fn code_of(act: &ModelAct) -> Option<Result<Arc<ExtensionRef>, Fault>> {
    let extension = code_behind(&act.model)?;
    let tools = act.registry.tools.iter().filter_map(|entry| entry.stack.first());
    let mut theirs = tools.filter(|active| active.extension.id == extension);
    let is_agent = |used: &AgentUse| used.agent().is_some();
    let found = theirs.find(|active| active.agent.as_ref().is_some_and(is_agent));
    Some(found.map(|active| active.extension.clone()).ok_or_else(|| no_agent(&extension)))
}

fn no_agent(extension: &ExtensionId) -> Fault {
    Fault::new(Code::ExtensionUnknown, format!("`{extension}` has no active agent"))
}

impl Inner {
    /// The code of an extension as a model.
    pub(crate) fn code_agent(
        self: &Arc<Self>,
        extension: Arc<ExtensionRef>,
        host: Arc<dyn Host>,
    ) -> Arc<dyn Model> {
        Arc::new(CodeAgent { inner: self.clone(), extension, host })
    }

    /// The turn of an invocation, with what led to it: what was said in the session above all others that this one is under. What the
    /// log does not have any more is left out.
    fn invocation_turn(&self, turn: &TurnView) -> ProcessTurn {
        let cause = self.cause_of(&turn.session).unwrap_or_default();
        let InvocationCause { user_message, correlation_id, conversation_summary } = cause;
        ProcessTurn { user_message, correlation_id, conversation_summary, ..turn.into() }
    }

    fn cause_of(&self, session: &StreamId) -> Result<InvocationCause, Problem> {
        self.store.flush()?;
        let (mut first, mut before) = (session.clone(), Seq(u64::MAX));
        while let Some(parent) = self.session_start(&first)?.parent.filter(|it| it.stream.is_session()) {
            (first, before) = (parent.stream, parent.seq);
        }
        let last = |kinds: &'static [FrameKind]| {
            find_last_before(&self.store, &first, before, |frame| kinds.contains(&frame.envelope.kind))
        };
        let body = |frame: &Frame| self.store.body(frame).ok();
        let received = last(&[FrameKind::InputReceived])?;
        // As hooks and sanitizers have left it, which is what the agent's task was made from.
        let said = last(&[FrameKind::InputReceived, FrameKind::InputNormalised])?;
        let summary = self.store.last_of_kind(&first, FrameKind::CompactionProvided)?;
        let user_message = match said.as_ref().and_then(body) {
            Some(Body::InputReceived(input)) => Some(input.text.to_text()),
            Some(Body::InputNormalised(input)) => Some(input.text.to_text()),
            _ => None,
        };
        let correlation_id = match received.as_ref().and_then(body) {
            Some(Body::InputReceived(InputReceived { message_id: Some(id), .. })) => Some(id),
            _ => received.map(|frame| format!("{first}/{}", frame.envelope.seq)),
        };
        let conversation_summary = match summary.as_ref().and_then(body) {
            Some(Body::CompactionProvided(CompactionProvided {
                outcome: ToolOutcome::Result(summary),
                ..
            })) => Some(summary.to_text()),
            _ => None,
        };
        Ok(InvocationCause { user_message, correlation_id, conversation_summary })
    }
}

impl Model for CodeAgent {
    fn complete(&self, ask: Box<ModelRequest>, _: Deltas) -> Later<Result<ModelReturned, ModelFailed>> {
        let (inner, extension, host) = (self.inner.clone(), self.extension.clone(), self.host.clone());
        Box::pin(async move {
            let said = ask.messages.iter().rev().find_map(|message| match message {
                Message::User { text, .. } => Some(text.to_text()),
                _ => None,
            });
            let turn = inner.invocation_turn(&ask.turn);
            let arguments = Content::new(json!({ "task": said.unwrap_or_default(), "turn": turn }));
            let (role, function) = (Role::Agent, "invoke".to_owned());
            let invoked = async {
                let loaded = inner.extensions.instance(&extension)?;
                // One that keeps nothing from other calls, as far as its lane has such.
                let instance = loaded.fresh().unwrap_or(loaded);
                let call = Call::Function { role, function, arguments };
                let reply = wait(inner.make_pinned(&extension, &instance, call, host)).await?;
                content_of(reply, &extension.id, "invoke")
            };
            invoked.await.map(|answer| returned(&answer)).map_err(|fault| ModelFailed::new(fault, false))
        })
    }
}

fn returned(answer: &Content) -> ModelReturned {
    let fields = answer.value().as_object();
    let goes_back = fields.is_some_and(|it| it.get("hand_back") == Some(&Value::Bool(true)));
    // Only a text, with or without handing back, is said as that; any other value is the answer as it is.
    let is_text = |it: &&Map<String, Value>| it.keys().all(|name| name == "text" || name == "hand_back");
    let text = fields.filter(|it| goes_back || is_text(it)).and_then(|it| it.get("text")?.as_str());
    let text = text.map_or_else(|| answer.clone(), Content::text);
    let back = AskedCall {
        model_id: HAND_BACK.into(),
        tool: HAND_BACK.into(),
        arguments: Content::new(json!({ "message": text.to_text() })),
    };
    let calls = if goes_back { vec![back] } else { Vec::new() };
    ModelReturned { text, reasoning: None, calls, usage: Usage::default() }
}
