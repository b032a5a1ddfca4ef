//! A native plugin in Rust: one tool, which counts what a text has, and remembers how often it was asked.

use holdfast_plugin::{Call, Failure, Plugin, export};
use serde_json::{Value, json};

struct TextStatistics;

impl Plugin for TextStatistics {
    fn describe(_: &Value) -> Result<(Self, Value), Failure> {
        let schema = json!({
            "type": "object",
            "properties": { "text": { "type": "string" } },
            "required": ["text"],
        });
        let tool = json!({
            "name": "text_statistics",
            "description": "Counts the words, lines and characters of a text.",
            "effects": "pure",
            "input_schema": schema,
        });
        Ok((Self, json!({ "protocol": "0.1", "tools": [tool] })))
    }

    fn call(&self, call: &Call<'_>) -> Result<Value, Failure> {
        let text = call.params["arguments"]["text"].as_str().unwrap_or_default();
        // What must last is kept by Holdfast, and is in the log.
        let before = call.ask("state.get", json!({ "key": "asked" }))?.as_u64().unwrap_or(0);
        call.ask("state.set", json!({ "key": "asked", "value": before + 1 }))?;
        Ok(json!({
            "words": text.split_whitespace().count(),
            "lines": text.lines().count(),
            "characters": text.chars().count(),
            "asked": before + 1,
        }))
    }
}

export!(TextStatistics);
