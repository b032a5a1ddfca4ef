//! The summary that compaction puts in place of old messages, written by a model.

use std::sync::Arc;

use holdfast_contract::content::Content;
use holdfast_contract::effect::SummaryAct;
use holdfast_contract::ids::ModelName;
use holdfast_contract::message::{Message, Origin, TurnContext, Usage};
use holdfast_contract::tool::ToolOutcome;
use holdfast_model::{Delta, Model, ModelRequest};

/// Lets a model write the summary that compaction puts in place of old messages.
pub(crate) async fn summary(model: Arc<dyn Model>, name: ModelName, act: SummaryAct) -> (ToolOutcome, Usage) {
    let count = act.messages.len().saturating_sub(act.keep as usize);
    let mut messages: Vec<Message> = act.messages.iter().take(count).cloned().collect();
    messages.push(Message::user("Summarise the conversation so far."));
    let mut instructions = vec![
        "You write summaries of conversations. Keep names, numbers, decisions and open ends.".to_owned(),
    ];
    instructions.extend(act.instructions);
    let turn = TurnContext {
        session: "summary".into(),
        turn: 0,
        agent: "summary".into(),
        origin: Origin { channel: "compaction".to_owned(), user: None },
        ..TurnContext::default()
    };
    let ask = ModelRequest {
        decided_by: act.decided_by,
        model: name,
        instructions: Content::text(instructions.join("\n")),
        messages: Arc::new(messages),
        turn: Arc::new(turn),
        ..ModelRequest::default()
    };
    match model.complete(Box::new(ask), Arc::new(|_: Delta<'_>| {})).await {
        Ok(returned) => (ToolOutcome::Result(returned.text), returned.usage),
        Err(failed) => (ToolOutcome::Failure(failed.fault), failed.usage),
    }
}
