//! A guardrail against leaked credentials: what looks like one is taken out of what tools return and of answers, so that no model reads it
//! and no channel sends it on.
//!
//! `shapes.rs` knows credentials that can be told by their form, `places.rs` those that can be told by where they stand. Here is what is
//! done about them.

mod places;
mod shapes;

use holdfast_extension::{
    Content, Sanitized, ToolCall, Value, config, sanitize_input, sanitize_output, sanitize_result,
};

/// Asked about what the user writes; does nothing unless `input` is set.
#[sanitize_input]
fn clean_input(text: String) -> Sanitized {
    clean("input", Content::Text(text))
}

/// Asked about what a tool returned. What it returned is needed; only the credentials in it are not.
#[sanitize_result]
fn clean_result(_call: ToolCall, result: Content) -> Sanitized {
    clean("results", result)
}

/// Asked about the answer, before anybody sees it.
#[sanitize_output]
fn clean_output(answer: String) -> Sanitized {
    clean("output", Content::Text(answer))
}

fn clean(setting: &str, content: Content) -> Sanitized {
    // What is set wrongly is on: a guardrail does not fall silent for a slip of the pen.
    if config::get(setting) == Some(Value::Bool(false)) {
        return Sanitized::Unchanged;
    }
    let cleaned = match &content {
        Content::Text(text) => redacted(text).map(Content::Text),
        Content::Json(text) => match serde_json::from_str::<Value>(text) {
            Ok(mut value) => redact_value(&mut value).then(|| Content::Json(value.to_string())),
            Err(_) => redacted(text).map(Content::Text),
        },
    };
    cleaned.map_or(Sanitized::Unchanged, Sanitized::Replaced)
}

/// The text without its credentials; none if it has none.
fn redacted(text: &str) -> Option<String> {
    let mut found = shapes::find(text);
    found.extend(places::find(text));
    found.sort_by_key(|it| (it.start, std::cmp::Reverse(it.end)));
    let mut cleaned = String::new();
    let mut from = 0;
    for it in found.iter().filter(|it| it.end > it.start) {
        if it.start >= from {
            cleaned.push_str(&text[from..it.start]);
            cleaned.push_str("[redacted: ");
            cleaned.push_str(it.kind);
            cleaned.push(']');
        }
        from = from.max(it.end);
    }
    (from > 0).then(|| cleaned + &text[from..])
}

/// Cleans every text in a value; true if there was anything. A text under a name that says what it is needs no more than that.
fn redact_value(value: &mut Value) -> bool {
    match value {
        Value::String(text) => redacted(text).map(|cleaned| *text = cleaned).is_some(),
        Value::Array(items) => items.iter_mut().fold(false, |found, item| redact_value(item) | found),
        Value::Object(fields) => fields.iter_mut().fold(false, |found, (name, field)| {
            let kind = field.as_str().and_then(|text| places::named(name, text));
            let cleaned = match kind {
                Some(kind) => {
                    *field = Value::String(format!("[redacted: {kind}]"));
                    true
                }
                None => redact_value(field),
            };
            cleaned | found
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}
