//! Canonical form and digest of a typical tool call's arguments.

use holdfast_benches::counted::{Counter, Outcome};
use holdfast_contract::content::Content;
use serde_json::json;

pub(crate) fn content_digest(counter: Counter) -> Outcome {
    let arguments =
        json!({"path": "notes/today.md", "lines": [1, 40], "options": {"follow": true, "limit": 4096}});
    let mut contents: Vec<Content> = (0..counter.rounds()).map(|_| Content::new(arguments.clone())).collect();
    counter.measure(|| Ok(contents.pop().map(|content| content.digest())))
}
