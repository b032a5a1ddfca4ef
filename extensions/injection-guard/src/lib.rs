//! A guardrail against instructions to the model in what tools return: a page, a file, a message that somebody else wrote.
//!
//! `hidden.rs` brings characters to light that nobody sees, `signs.rs` looks for instructions and says how likely they are. Here is what is
//! done about them: what was hidden is shown, what is likely is flagged, and what is likelier than the user has set is stopped.

mod base64;
mod hidden;
mod signs;

use holdfast_extension::{Content, Failure, Sanitized, ToolCall, Value, Verdict, config, guard_result, sanitize_result};

/// Shows what was hidden in a result, so that the next reader sees all of it.
#[sanitize_result]
fn bring_to_light(_call: ToolCall, result: Content) -> Sanitized {
    let shown = match &result {
        Content::Text(text) => hidden::shown(text).map(Content::Text),
        Content::Json(text) => match serde_json::from_str::<Value>(text) {
            Ok(mut value) => show_in(&mut value).then(|| Content::Json(value.to_string())),
            Err(_) => hidden::shown(text).map(Content::Text),
        },
    };
    shown.map_or(Sanitized::Unchanged, Sanitized::Replaced)
}

/// Judges a result.
#[guard_result]
fn judge(_call: ToolCall, result: Content) -> Result<Verdict, Failure> {
    let (flag_at, block_at) = (bound("flag_at")?, bound("block_at")?);
    let text = match &result {
        Content::Text(text) => text.clone(),
        Content::Json(text) => serde_json::from_str(text).map_or_else(|_| text.clone(), |value| texts(&value)),
    };
    let judged = signs::judge(&text);
    let told = || format!("it reads like instructions to the model (score {}): {}", judged.score, judged.signs.join(", "));
    Ok(match judged.score {
        score if block_at > 0 && score >= block_at => Verdict::Block(told()),
        score if flag_at > 0 && score >= flag_at => Verdict::Flag(told()),
        _ => Verdict::Allow,
    })
}

fn bound(setting: &str) -> Result<u64, Failure> {
    let set = config::get(setting);
    set.as_ref().and_then(Value::as_u64).ok_or_else(|| {
        Failure::InvalidArguments(format!(
            "`extensions.injection-guard.{setting}` in the settings should be a whole number; 0 is never"
        ))
    })
}

fn show_in(value: &mut Value) -> bool {
    match value {
        Value::String(text) => hidden::shown(text).map(|shown| *text = shown).is_some(),
        Value::Array(items) => items.iter_mut().fold(false, |found, item| show_in(item) | found),
        Value::Object(fields) => fields.values_mut().fold(false, |found, field| show_in(field) | found),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Every text in a value, a line each.
fn texts(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(texts).collect::<Vec<_>>().join("\n"),
        Value::Object(fields) => fields.values().map(texts).collect::<Vec<_>>().join("\n"),
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    }
}
