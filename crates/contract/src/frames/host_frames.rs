//! The bodies of frames about what an extension asked for in the middle of a call.

use super::contents::bodies;
use super::session_choices::{StreamedUpdates, UiQuestion};
use crate::content::Content;
use crate::digest::Digest;
use crate::ids::{ExtensionId, HookId, Millis, Seq};
use crate::message::Spent;
use crate::tool::ToolOutcome;

bodies! {
    /// `ui.requested`
    struct UiRequested {
        /// The extension that asks.
        extension: ExtensionId,
        /// The hook that asked, if it was one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hook: Option<HookId>,
        /// The question.
        question: UiQuestion,
    } holds question;

    /// `ui.answered`
    struct UiAnswered {
        /// The `ui.requested` frame.
        request: Seq,
        /// The answer; none if it was dismissed.
        answer: Option<Content>,
    } holds answer;

    /// `state.written`
    struct StateWritten {
        /// The extension.
        extension: ExtensionId,
        /// The hook that asked, if it was one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hook: Option<HookId>,
        /// The key.
        key: String,
        /// The value; none removes it.
        value: Option<Content>,
    } holds value;

    /// `clock.read`
    struct ClockRead {
        /// The extension.
        extension: ExtensionId,
        /// The hook that asked, if it was one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hook: Option<HookId>,
        /// What it read.
        value: Millis,
    };

    /// `random.drawn`
    struct RandomDrawn {
        /// The extension.
        extension: ExtensionId,
        /// The hook that asked, if it was one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hook: Option<HookId>,
        /// The bytes, as hexadecimal digits.
        bytes: String,
    };

    /// `secret.used`
    struct SecretUsed {
        /// The extension.
        extension: ExtensionId,
        /// The secret's name.
        name: String,
        /// A keyed digest of its value, never the value.
        keyed_digest: Digest,
    };

    /// `host.called`
    struct HostCalled {
        /// The extension.
        extension: ExtensionId,
        /// The hook that asked, if it was one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hook: Option<HookId>,
        /// What it asked for: `config.get`, `state.get`, `api.call`.
        ask: String,
        /// With which arguments.
        arguments: Content,
        /// The answer.
        outcome: ToolOutcome,
        /// What an agent used that was invoked, which the session pays.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        spent: Option<Spent>,
        /// What the extension was told while the call was served, if it asked for that.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        streamed: Option<StreamedUpdates>,
    } holds arguments, outcome, streamed;
}
