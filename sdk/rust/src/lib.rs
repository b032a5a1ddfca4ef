//! Holdfast extensions in Rust. A tool is a function with an attribute, and so is a hook:
//!
//! ```
//! use holdfast_extension::{Decision, Failure, ToolCall, tool, tool_gate};
//!
//! /// Counts the words of a text.
//! #[tool(effects = "pure")]
//! fn count_words(
//!     /// The text.
//!     text: String,
//! ) -> Result<u64, Failure> {
//!     Ok(text.split_whitespace().count() as u64)
//! }
//!
//! #[tool_gate]
//! fn no_deletions(call: ToolCall) -> Decision {
//!     if call.tool == "delete" { Decision::Deny("nothing is deleted here".into()) } else { Decision::Allow }
//! }
//! ```
//!
//! [`argument`] says which types an argument may have, [`answer`] which a function may return. What the host offers is in
//! [`log`], [`config`], [`state`] and the other modules of that kind. `holdfast ext build` makes the component.

pub mod answer;
pub mod argument;
#[doc(hidden)]
#[allow(missing_docs, unsafe_code, clippy::all, clippy::unwrap_used, clippy::panic)]
#[path = "bindings/mod.rs"]
pub mod bindings;
mod host;
mod roles;

pub use serde_json::{Value, json};

pub use holdfast_extension_macros::{
    Argument, agent, command, compaction_before, compaction_provide, context, destroy, execute_task,
    guard_chunk, guard_input, guard_output, guard_result, health_check, initialize, input_normalise, method,
    model_route, on_event, render_call, render_result, response_process, run_background, sanitize_input,
    sanitize_output, sanitize_result, send_file, send_message, send_question, send_to_user, session_cancel,
    session_end, session_start, setup, start, stop, streaming_channel, tool, tool_after, tool_gate,
    tool_modify, turn_end, turn_start,
};

pub use answer::{Answer, Json, Outcome};
pub use argument::Argument;
pub use bindings::agent::exports::holdfast::extension::agent::Integration;
pub use bindings::channel::exports::holdfast::extension::channel::Delivery;
pub use bindings::channel_file::exports::holdfast::extension::channel_file::File;
pub use bindings::channel_question::exports::holdfast::extension::channel_question::Choice;
pub use bindings::compaction_before::exports::holdfast::extension::compaction_before::Plan;
pub use bindings::model_route::exports::holdfast::extension::model_route::Route;
pub use bindings::subscriber::exports::holdfast::extension::subscriber::Event;
pub use bindings::tool_after::exports::holdfast::extension::tool_after::Enrichment;
pub use bindings::tool_gate::exports::holdfast::extension::tool_gate::Decision;
pub use bindings::tool_modify::exports::holdfast::extension::tool_modify::Modification;
pub use bindings::types::holdfast::extension::types::{Artifact, Content, Effects, Failure, ToolCall};
pub use bindings::verdicts::holdfast::extension::verdicts::{Sanitized, Verdict};
pub use host::{
    agents, channels, clock, config, conversations, discovery, environment, events, extensions, files, http,
    log, maintenance, messages, prompts, random, results, secrets, services, session, state, subscriptions,
    system, timers, ui,
};
pub use roles::{Setup, StreamingChannel};

/// What the attributes' expansions use.
#[doc(hidden)]
pub mod private {
    pub use inventory;

    pub use crate::argument::{Object, take};
    #[cfg(feature = "api")]
    pub use crate::roles::api::Method;
    #[cfg(feature = "commands")]
    pub use crate::roles::commands::Command;
    pub use crate::roles::json;
    #[cfg(feature = "tools")]
    pub use crate::roles::tools::Tool;
}

/// All functions of a channel are told of deliveries alike.
impl From<bindings::channel_message::exports::holdfast::extension::channel_message::Delivery> for Delivery {
    fn from(
        delivery: bindings::channel_message::exports::holdfast::extension::channel_message::Delivery,
    ) -> Self {
        Self { id: delivery.id, repeat: delivery.repeat }
    }
}

impl From<bindings::channel_file::exports::holdfast::extension::channel_file::Delivery> for Delivery {
    fn from(delivery: bindings::channel_file::exports::holdfast::extension::channel_file::Delivery) -> Self {
        Self { id: delivery.id, repeat: delivery.repeat }
    }
}

impl From<bindings::channel_question::exports::holdfast::extension::channel_question::Delivery> for Delivery {
    fn from(
        delivery: bindings::channel_question::exports::holdfast::extension::channel_question::Delivery,
    ) -> Self {
        Self { id: delivery.id, repeat: delivery.repeat }
    }
}

impl From<bindings::streaming_channel::exports::holdfast::extension::streaming_channel::Delivery>
    for Delivery
{
    fn from(
        delivery: bindings::streaming_channel::exports::holdfast::extension::streaming_channel::Delivery,
    ) -> Self {
        Self { id: delivery.id, repeat: delivery.repeat }
    }
}
