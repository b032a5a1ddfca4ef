//! A guardrail against leaked keys: the user's text and the answer are blocked, a tool's result is redacted.
//!
//! `keys.rs` detects keys; this file decides what happens to them.

mod keys;

use holdfast_extension::{
    Content, Sanitized, ToolCall, Verdict, guard_input, guard_output, sanitize_result,
};

/// A key that the user pastes would be sent to a model and appear in its provider's log.
#[guard_input]
fn no_keys_in(text: String) -> Verdict {
    judge(&text, "your message")
}

/// A key in an answer would be shown, and sent on by channels.
#[guard_output]
fn no_keys_out(answer: String) -> Verdict {
    judge(&answer, "the answer")
}

/// A tool's result is needed, but not the keys in it.
#[sanitize_result]
fn blank_keys(_call: ToolCall, result: Content) -> Sanitized {
    let blanked = keys::blank(result.as_str());
    match (blanked, result) {
        (None, _) => Sanitized::Unchanged,
        (Some(text), Content::Text(_)) => Sanitized::Replaced(Content::Text(text)),
        // Keys have no quotes and no backslashes, so the JSON stays JSON.
        (Some(text), Content::Json(_)) => Sanitized::Replaced(Content::Json(text)),
    }
}

fn judge(text: &str, place: &str) -> Verdict {
    match keys::find(text).next() {
        Some(key) => Verdict::Block(format!("{place} holds what looks like {}", key.what)),
        None => Verdict::Allow,
    }
}
