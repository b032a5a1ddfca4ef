//! Large results: a model sees the beginning of a long result and reads on with a tool; files in a result become attachments of the
//! call.
//!
//! [`extension`] is the entry point. The whole result is stored by the host and read with a host call.

use std::borrow::Cow;
use std::sync::Arc;

use holdfast_contract::attachment::taken_out;
use holdfast_contract::content::Content;
use holdfast_contract::context::beginning;
use holdfast_contract::hook::{Decision, HookInput, HookPoint, HookSpec};
use holdfast_contract::host_call::{Capability, HostCall, HostCallKind};
use holdfast_contract::ids::CallId;
use holdfast_contract::message::{CallView, TurnView};
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::tool::{EffectClass, ToolGroup, ToolSpec};
use holdfast_contract::wire::{Host, Later};
use holdfast_lane_native::{Hook, NativeExtension, Tool, now};
use serde::Deserialize;
use serde_json::{Value, json};

/// The tool that reads on.
const READ: &str = "read_result";

/// The longest notice.
const MAX_NOTICE_BYTES: usize = 256;

/// The settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ResultsOptions {
    /// The bytes of a result's text that a model sees.
    pub limit_bytes: usize,
}

impl Default for ResultsOptions {
    fn default() -> Self {
        Self { limit_bytes: 16 * 1024 }
    }
}

/// The extension. A limit that leaves no room for its own notice counts as 1 KiB.
pub fn extension(options: ResultsOptions) -> NativeExtension {
    let limit = options.limit_bytes.max(1024);
    NativeExtension::new("results", env!("CARGO_PKG_VERSION"))
        .interfaces(&[Capability::Results.name()])
        .tool(Read { limit })
        .grouped(ToolGroup::Companion)
        .hook(Truncation { limit })
        .replayable()
}

/// The extension where its options are invalid: without its tool, but the name stays reserved.
pub fn unavailable() -> NativeExtension {
    NativeExtension::new("results", env!("CARGO_PKG_VERSION")).reserving(&[READ])
}

/// Truncates a long result, and moves the files of a result to attachments.
struct Truncation {
    limit: usize,
}

impl Truncation {
    fn decision(&self, input: &HookInput) -> Decision {
        let (Some(call), Some(result)) = (&input.call, &input.subject) else { return Decision::Continue };
        let (artifacts, result) = match taken_out(result) {
            Some((files, left)) => (files, Cow::Owned(left)),
            None => (Vec::new(), Cow::Borrowed(result)),
        };
        let shown = self.truncated(call, &result);
        match (shown, result) {
            (None, Cow::Borrowed(_)) => Decision::Continue,
            (None, Cow::Owned(left)) => Decision::Enrich { result: Some(left), artifacts, render: None },
            (shown, _) => Decision::Enrich { result: shown, artifacts, render: None },
        }
    }

    /// The beginning of a result that is too long.
    fn truncated(&self, call: &CallView, result: &Content) -> Option<Content> {
        // The text of any value is no longer than its JSON, and most results are short.
        if call.tool.as_str() == READ || result.bytes() <= self.limit as u64 {
            return None;
        }
        let text = result.to_text();
        if text.len() <= self.limit {
            return None;
        }
        let within = &text[..text.floor_char_boundary(self.limit - MAX_NOTICE_BYTES)];
        let shown = beginning(&text, within.chars().count());
        let notice = format!(
            "[cut here: {} of {} bytes are shown. Call {READ} with {{\"call\": \"{}\", \"offset\": {}}} to read on.]",
            shown.len(),
            text.len(),
            call.id,
            shown.len(),
        );
        Some(Content::text(format!("{shown}\n{notice}")))
    }
}

impl Hook for Truncation {
    fn spec(&self) -> HookSpec {
        // After all hooks that change results, so that they see the whole result.
        HookSpec { priority: 10_000, ..HookSpec::at(HookPoint::ToolAfter) }
    }

    fn decide(&self, input: HookInput, _: Arc<dyn Host>) -> Later<Result<Decision, Fault>> {
        now(Ok(self.decision(&input)))
    }

    fn is_synchronous(&self) -> bool {
        true
    }

    fn try_decide(&self, input: &HookInput) -> Option<Result<Decision, Fault>> {
        Some(Ok(self.decision(input)))
    }
}

/// `read_result`
struct Read {
    limit: usize,
}

impl Tool for Read {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            effects: EffectClass::Read,
            input_schema: Content::new(json!({
                "type": "object",
                "properties": {
                    "call": { "type": "string", "pattern": "^[0-9]+\\.[0-9]+$", "description": "The call, as the notice names it." },
                    "offset": { "type": "integer", "minimum": 0, "description": "Where to begin, in bytes; the notice says where it was cut." },
                    "limit": { "type": "integer", "minimum": 1, "maximum": self.page(), "description": "How many bytes at most." },
                },
                "required": ["call"],
                "additionalProperties": false,
            })),
            ..ToolSpec::named(
                READ,
                "Continues an output of an earlier call that was cut short, as its notice says.",
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
        let page = self.page();
        Box::pin(async move {
            let field = |name: &str| arguments.value().get(name).cloned();
            let call = field("call").unwrap_or_default();
            let number = |name: &str| field(name).and_then(|value| value.as_u64());
            let limit = number("limit").unwrap_or(page as u64).min(page as u64);
            let asked = json!({ "call": call, "offset": number("offset").unwrap_or(0), "limit": limit });
            let part = host.call(HostCall::of(HostCallKind::ResultRead, asked)).await?;
            told(&call, part.value())
        })
    }
}

impl Read {
    /// The largest part of one call, so that its result is not truncated itself.
    fn page(&self) -> usize {
        self.limit - MAX_NOTICE_BYTES
    }
}

fn told(call: &Value, part: &Value) -> Result<Content, Fault> {
    let number = |name: &str| part[name].as_u64();
    let (Some(text), Some(begins), Some(end), Some(total)) =
        (part["text"].as_str(), number("offset"), number("end"), number("total"))
    else {
        return Err(Fault::new(Code::ExtensionFault, "invalid answer to `result.read`"));
    };
    let rest = if end < total {
        format!("Call {READ} with {{\"call\": {call}, \"offset\": {end}}} to read on.")
    } else {
        "That is the end.".to_owned()
    };
    Ok(Content::text(format!("{text}\n[bytes {begins} to {end} of {total}. {rest}]")))
}
