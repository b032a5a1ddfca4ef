//! The bodies of frames about models: requests and answers, streamed text and its guardrails, compaction.

use std::sync::Arc;

use super::contents::bodies;
use super::session_choices::ChunkSaid;
use super::session_frames::LimitReached;
use crate::content::Content;
use crate::digest::Digest;
use crate::ids::{HookId, Millis, ModelName, Seq};
use crate::message::{AskedCall, Usage};
use crate::problem::Fault;
use crate::registry::RegistryPin;
use crate::tool::ToolOutcome;

bodies! {
    /// `model.routed`
    struct ModelRouted {
        /// The model.
        model: ModelName,
        /// The hook that chose it; none for the session's own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<HookId>,
        /// The advice that was heard, followed or not.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        advice: Vec<ModelName>,
    };

    /// `model.requested`
    struct ModelRequested {
        /// The model.
        model: ModelName,
        /// Which of the turn's model calls, from 1.
        round: u32,
        /// Which attempt at it, from 1.
        attempt: u32,
        /// How long to wait before asking.
        #[serde(default)]
        delay: Millis,
        /// How many messages it is shown.
        messages: u32,
    };

    /// `model.returned`
    struct ModelReturned {
        /// What it said.
        text: Content,
        /// Reasoning that the provider wants to see again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reasoning: Option<Content>,
        /// The tools it called.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<AskedCall>,
        /// What it used.
        #[serde(default)]
        usage: Usage,
    } holds text, reasoning, calls;

    /// `model.failed`
    struct ModelFailed {
        /// What happened.
        fault: Fault,
        /// Whether asking again may help.
        retryable: bool,
        /// How long the provider asks to wait first.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after: Option<Millis>,
        /// What it used all the same.
        #[serde(default)]
        usage: Usage,
        /// The limit of the day, or of an extension, that stood in the way.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<LimitReached>,
    };

    /// `stream.guarded`
    struct StreamGuarded {
        /// The guardrails that were asked about each window, in order.
        hooks: Arc<[HookId]>,
        /// The text that they judged. It is cut into windows by a rule that depends on the text alone.
        text: Content,
        /// How many windows were judged.
        windows: u32,
        /// All answers other than "no objection", by window and in the order of the hooks.
        words: Vec<ChunkVerdict>,
    } holds text;

    /// What a guardrail said about one window of a streamed text.
    struct ChunkVerdict {
        /// Which window, from 0.
        window: u32,
        /// The guardrail.
        hook: HookId,
        /// What it said, or what went wrong with it.
        said: ChunkSaid,
    };

    /// `stream.interrupted`
    struct StreamInterrupted {
        /// The model request whose stream it was.
        requested: Seq,
    };

    /// `preview.asked`
    struct PreviewAsked {
        /// The sanitizers, in the order in which they are asked.
        hooks: Vec<PreviewedBy>,
        /// The digest of what they were asked and what they made of it, in order: each text, each followed by a zero byte. Where one
        /// blocks or fails there is no text.
        digest: Digest,
    };

    /// What a sanitizer was asked about texts that were shown before an answer.
    struct PreviewedBy {
        /// The sanitizer.
        hook: HookId,
        /// How often it was asked.
        asked: u64,
        /// How often it replaced the text.
        replaced: u64,
        /// How often it blocked the text.
        blocked: u64,
        /// How often it failed.
        failed: u64,
        /// How it failed first.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fault: Option<Fault>,
    };

    /// `compaction.requested`
    struct CompactionRequested {
        /// Why.
        reason: String,
        /// The registry that it runs on.
        registry: RegistryPin,
    };

    /// `compaction.started`
    struct CompactionStarted {
        /// How many messages at the end are kept whole.
        keep: u32,
        /// What the summary must keep.
        instructions: Vec<String>,
    };

    /// `compaction.provided`
    struct CompactionProvided {
        /// The summary, or why there is no summary.
        outcome: ToolOutcome,
        /// What it used.
        #[serde(default)]
        usage: Usage,
    } holds outcome;

    /// `compaction.applied`
    struct CompactionApplied {
        /// Messages replaced by the summary.
        replaced: u32,
        /// Messages kept.
        kept: u32,
    };
}

impl ModelFailed {
    /// A model that gave no answer, and used nothing.
    pub fn new(fault: Fault, retryable: bool) -> Self {
        Self { fault, retryable, retry_after: None, usage: Usage::default(), limit: None }
    }
}
