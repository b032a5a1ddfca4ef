//! The tools that reach beyond the conversation: `list_channels`, `send_to_channel` and `start_background_task`. Messages and tasks are
//! events first, so that they survive a restart.

use std::sync::Arc;

use holdfast_contract::content::Content;
use holdfast_contract::host_call::HostCallKind;
use holdfast_contract::ids::CallId;
use holdfast_contract::message::TurnView;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::tool::{EffectClass, ToolSpec};
use holdfast_contract::wire::{Host, Later};
use holdfast_lane_native::Tool;
use holdfast_lane_native::input::{flag, takes, text};
use serde_json::{Value, json};

use crate::{ask, field, given};

/// `list_channels`
pub(crate) struct ListChannels;

impl Tool for ListChannels {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            effects: EffectClass::Read,
            input_schema: takes([]),
            ..ToolSpec::named(
                "list_channels",
                "Lists the channels that reach the user, and the one that is used where none is named.",
            )
        }
    }

    fn call(&self, _: CallId, _: Content, _: TurnView, host: Arc<dyn Host>) -> Later<Result<Content, Fault>> {
        Box::pin(async move { ask(&host, HostCallKind::ChannelList, json!({})).await.map(Content::new) })
    }
}

/// `send_to_channel`
pub(crate) struct SendToChannel;

impl Tool for SendToChannel {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            effects: EffectClass::Network,
            input_schema: takes([
                text("text", "What is sent."),
                text("channel_id", "The channel; the default one, if left out.").optional(),
                text(
                    "user_id",
                    "The recipient, as the channel names it; if left out, the one who wrote there last.",
                )
                .optional(),
            ]),
            ..ToolSpec::named(
                "send_to_channel",
                "Sends a message to the user on another channel than this one. Your answer reaches this one by itself.",
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
            let text = field(&arguments, "text")?;
            let known = ask(&host, HostCallKind::ChannelList, json!({})).await?;
            let channel = match given(&arguments, "channel_id") {
                Value::Null => known["default"].clone(),
                named => named,
            };
            let ids = known["channels"].as_array().map(Vec::as_slice).unwrap_or_default();
            if !ids.contains(&channel) {
                let all: Vec<&str> = ids.iter().filter_map(Value::as_str).collect();
                let there = if all.is_empty() {
                    "There is none.".to_owned()
                } else {
                    format!("There are: {}.", all.join(", "))
                };
                let what = channel
                    .as_str()
                    .map_or("no channel is named, and there is no default one".to_owned(), |id| {
                        format!("there is no channel `{id}`")
                    });
                return Err(Fault::new(Code::ChannelUnknown, format!("{what}. {there}")));
            }
            let notice = json!({ "text": text, "channel": channel, "user": given(&arguments, "user_id") });
            ask(&host, HostCallKind::UserNotify, notice).await?;
            Ok(json!({ "sent_to": channel }).into())
        })
    }
}

/// `start_background_task`
pub(crate) struct StartBackgroundTask;

impl Tool for StartBackgroundTask {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            effects: EffectClass::Write,
            input_schema: takes([
                text(
                    "task",
                    "What is to be done, with everything that is needed to do it: the conversation is not passed on.",
                ),
                text("agent", "Which agent does it; the main one, if left out.").optional(),
                flag("report", "Whether the user is sent the answer when it is done; true, if left out.")
                    .optional(),
            ]),
            ..ToolSpec::named(
                "start_background_task",
                "Has an agent work on something in a session of its own while this conversation goes on.",
            )
        }
    }

    fn call(
        &self,
        _: CallId,
        arguments: Content,
        turn: TurnView,
        host: Arc<dyn Host>,
    ) -> Later<Result<Content, Fault>> {
        Box::pin(async move {
            let reports = given(&arguments, "report") != Value::Bool(false);
            let mut task = json!({ "task": field(&arguments, "task")?, "agent": given(&arguments, "agent") });
            if reports {
                let known = ask(&host, HostCallKind::ChannelList, json!({})).await?;
                let here = json!(turn.origin.channel);
                // The answer goes to the channel of the conversation, if there is one, and to the default channel otherwise.
                if known["channels"].as_array().is_some_and(|ids| ids.contains(&here)) {
                    task["channel"] = here;
                    task["user"] = json!(turn.origin.user);
                }
            }
            let kind = if reports { HostCallKind::AgentTask } else { HostCallKind::AgentBackground };
            let id = ask(&host, kind, task).await?;
            Ok(json!({ "started": id }).into())
        })
    }
}
