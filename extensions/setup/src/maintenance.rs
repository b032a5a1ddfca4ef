//! Diagnosing extensions, and restarting the system: `extensions_doctor` and `request_restart`.

use std::sync::Arc;

use holdfast_contract::content::Content;
use holdfast_contract::host_call::HostCallKind;
use holdfast_contract::ids::CallId;
use holdfast_contract::message::TurnView;
use holdfast_contract::problem::Fault;
use holdfast_contract::tool::{EffectClass, ToolSpec};
use holdfast_contract::wire::{Host, Later};
use holdfast_lane_native::Tool;
use holdfast_lane_native::input::{takes, text};
use serde_json::{Value, json};

use crate::{ask, field};

/// `extensions_doctor`
pub(crate) struct Doctor;

impl Tool for Doctor {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            effects: EffectClass::Read,
            input_schema: takes([
                text("extension_id", "The extension's id; all extensions, if left out.").optional()
            ]),
            ..ToolSpec::named(
                "extensions_doctor",
                "Lists recent failures of extensions: when, in which phase, the code, why, and what to do.",
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
            let id = arguments.value().get("extension_id").cloned();
            let examine = json!({ "extension": id.unwrap_or_default() });
            let faults = ask(&host, HostCallKind::ExtensionDoctor, examine.into()).await?;
            let none = faults.as_array().is_some_and(Vec::is_empty);
            Ok(if none { Content::text("There are no recent failures.") } else { Content::new(faults) })
        })
    }
}

/// `request_restart`
pub(crate) struct RequestRestart;

impl Tool for RequestRestart {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            effects: EffectClass::Exec,
            input_schema: takes([text("reason", "Why, for the user and the log.")]),
            ..ToolSpec::named(
                "request_restart",
                "Stops everything in order and starts it again. What is in progress is resumed afterwards.",
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
            let reason = field(&arguments, "reason")?;
            let _answer: Value =
                ask(&host, HostCallKind::SystemRestart, json!({ "reason": reason }).into()).await?;
            Ok(Content::text("Everything is about to be stopped and started again."))
        })
    }
}
