//! What a client is sent without having asked.

use holdfast_contract::frame::Frame;
use holdfast_contract::ids::{ExtensionId, Seq, StreamId};
use holdfast_contract::problem::Problem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Something that a client is sent without having asked.
///
/// Of each session that it has opened it is sent one feed: every frame, in order and once it is durable, and between them what is
/// provisional. A provisional piece has the frame that it follows, `after`, and is never sent before that frame.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "method", content = "params", rename_all = "snake_case")]
pub enum Notification {
    /// A frame, as it is stored. It is durable.
    #[allow(clippy::large_enum_variant, reason = "most notifications are frames")]
    Frame(Frame),
    /// The model wrote some text, provisionally.
    Text {
        /// The session.
        session: StreamId,
        /// The frame that it follows: the `model.requested` frame.
        after: Seq,
        /// Bytes of this answer that were sent before it. A client that has not seen them waits for `model.returned`.
        offset: u64,
        /// What it wrote.
        text: String,
    },
    /// What the model considers, provisionally; not part of its answer.
    Reasoning {
        /// The session.
        session: StreamId,
        /// The frame that it follows: the `model.requested` frame.
        after: Seq,
        /// What it wrote.
        text: String,
    },
    /// How a call is getting on, provisionally.
    Progress {
        /// The session.
        session: StreamId,
        /// The frame that it follows: the one with which the call began.
        after: Seq,
        /// The extension that runs it.
        extension: ExtensionId,
        /// What it reports.
        text: String,
    },
    /// An extension or the owner itself tells the user something, in no session.
    Told {
        /// The extension; none for the owner.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        extension: Option<ExtensionId>,
        /// What.
        text: String,
    },
    /// The owner was asked to stop and ends; a client that would start another one should not.
    Stopping {},
    /// The session stopped because its log cannot be written.
    Broken {
        /// The session.
        session: StreamId,
        /// Why.
        problem: Problem,
    },
}
