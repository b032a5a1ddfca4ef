//! Reasoning that a provider wants to see again, exactly as it gave it: signed blocks, signatures on calls, plain text.
//!
//! It is kept under the provider's name and sent back to that provider only: a signature means nothing to another.

use genai::adapter::AdapterKind;
use genai::chat::{ContentPart, StreamEnd};
use holdfast_contract::content::Content;
use serde::{Deserialize, Serialize};

/// What is kept in `reasoning` of a `model.returned` frame.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Kept {
    /// Whose it is.
    provider: String,
    /// The reasoning as plain text, for providers that sign nothing and for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    text: String,
    /// Blocks that go back as they came.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    blocks: Vec<Block>,
    /// Signatures of each call, in the order of the calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    calls: Vec<Vec<String>>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Block {
    Signature(String),
    Text(String),
    Other(serde_json::Value),
}

/// What there is to keep of an answer.
pub(super) fn keep(kind: AdapterKind, end: &StreamEnd) -> Option<Content> {
    let mut kept = Kept { provider: kind.as_lower_str().to_owned(), ..Kept::default() };
    kept.text = end.captured_reasoning_content.clone().unwrap_or_default();
    for part in end.captured_content.iter().flat_map(|content| content.parts()) {
        match part {
            ContentPart::ThoughtSignature(signature) => kept.blocks.push(Block::Signature(signature.clone())),
            ContentPart::ReasoningContent(text) => kept.blocks.push(Block::Text(text.clone())),
            ContentPart::Custom(custom) => kept.blocks.push(Block::Other(custom.data.clone())),
            ContentPart::ToolCall(call) => {
                kept.calls.push(call.thought_signatures.clone().unwrap_or_default())
            }
            _ => {}
        }
    }
    if kept.calls.iter().all(Vec::is_empty) {
        kept.calls.clear();
    }
    let anything = !kept.text.is_empty() || !kept.blocks.is_empty() || !kept.calls.is_empty();
    anything.then(|| Content::of(&kept))
}

/// What this provider gets back: the blocks that lead the message, and the signatures of the `index`th call.
pub(super) fn hand_back(
    kind: AdapterKind,
    reasoning: Option<&Content>,
) -> (Vec<ContentPart>, Vec<Vec<String>>) {
    let kept = reasoning.map(Content::value).and_then(|value| Kept::deserialize(value).ok());
    let Some(kept) = kept.filter(|kept| kept.provider == kind.as_lower_str()) else {
        return Default::default();
    };
    let mut parts: Vec<_> = kept
        .blocks
        .into_iter()
        .map(|block| match block {
            Block::Signature(signature) => ContentPart::ThoughtSignature(signature),
            Block::Text(text) => ContentPart::ReasoningContent(text),
            Block::Other(data) => ContentPart::from_custom(data, None),
        })
        .collect();
    // Only where nothing is signed is the plain text itself what a provider wants back. Groq refuses the field.
    let signed = !parts.is_empty() || !kept.calls.is_empty();
    if !signed && !kept.text.is_empty() && kind != AdapterKind::Groq {
        parts.push(ContentPart::ReasoningContent(kept.text));
    }
    (parts, kept.calls)
}
