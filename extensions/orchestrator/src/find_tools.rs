//! `find_tools`: searches the tools that are hidden from the model. The results are stored in the session, and visible from the
//! model's next request on.

use std::sync::Arc;

use holdfast_contract::content::Content;
use holdfast_contract::discovery::{FIND_TOOLS, FoundTools, MAX_FOUND_TOOLS};
use holdfast_contract::host_call::{HostCall, HostCallKind};
use holdfast_contract::ids::CallId;
use holdfast_contract::message::TurnView;
use holdfast_contract::problem::Fault;
use holdfast_contract::tool::{EffectClass, ToolSpec};
use holdfast_contract::wire::{Host, Later};
use holdfast_lane_native::Tool;
use holdfast_lane_native::input::{number, takes, text};
use serde_json::{Value, json};

use crate::{ask, field, given};

pub(crate) struct FindTools;

impl Tool for FindTools {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            effects: EffectClass::Read,
            input_schema: takes([
                text("query", "What you want to do, in plain words: `send a text message`."),
                number("limit", 1..=MAX_FOUND_TOOLS as u64, "How many tools; 5 if left out.").optional(),
            ]),
            ..ToolSpec::named(
                FIND_TOOLS,
                "Searches all installed tools by what they do. You are shown only some of them: search before you say that something cannot be done. \
                 What is found can be called in your next step.",
            )
        }
    }

    fn call(
        &self,
        _: CallId,
        arguments: Content,
        _: TurnView,
        host: Arc<dyn Host>,
    ) -> Later<Result<Content, Fault>> {
        Box::pin(async move {
            let mut request = json!({ "query": field(&arguments, "query")? });
            let limit = given(&arguments, "limit");
            if !limit.is_null() {
                request["limit"] = limit;
            }
            let mut answer = ask(&host, HostCallKind::ToolsFind, request).await?;
            let kept = answer["keep"].take();
            let search = kept["search"].as_u64().unwrap_or_default();
            let set = HostCall::StateSet { key: FoundTools::key(search), value: Some(Content::new(kept)) };
            host.call(set).await?;
            Ok(shown(&answer).into())
        })
    }
}

fn shown(answer: &Value) -> Value {
    let tools = answer["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    if !tools.is_empty() {
        return json!({ "tools": tools });
    }
    let searched = &answer["searched"];
    json!({ "tools": [], "note": format!("None of {searched} tools fits. Try other words for what you want to do.") })
}
