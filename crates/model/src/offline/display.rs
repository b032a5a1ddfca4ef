//! A tool's result as a person reads it: a list for rows, a line for each field, and text as it is.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// Rows beyond these are only counted.
const MAX_ROWS: usize = 20;

/// The fields that say what a row is about, in this order of preference.
const TITLES: &[&str] = &["path", "name", "title", "key", "id"];

/// The value as text. Fields are in alphabetical order: a value that was read back from the log may have another order.
pub(super) fn readable(value: &Value) -> String {
    match value {
        Value::Array(rows) => list(rows),
        Value::Object(fields) => object(fields),
        other => inline(other),
    }
}

fn object(fields: &Map<String, Value>) -> String {
    let sorted: BTreeMap<&String, &Value> = fields.iter().collect();
    let parts = sorted.into_iter().map(|(name, value)| match value {
        Value::Array(rows) if !rows.is_empty() => format!("{name}:\n{}", list(rows)),
        other => format!("{name}: {}", inline(other)),
    });
    parts.collect::<Vec<_>>().join("\n")
}

fn list(rows: &[Value]) -> String {
    if rows.is_empty() {
        return "nothing".to_owned();
    }
    let mut lines: Vec<String> =
        rows.iter().take(MAX_ROWS).map(|value| format!("- {}", row(value))).collect();
    if rows.len() > MAX_ROWS {
        lines.push(format!("- … and {} more", rows.len() - MAX_ROWS));
    }
    lines.join("\n")
}

fn row(value: &Value) -> String {
    let Value::Object(fields) = value else { return inline(value) };
    let title = TITLES.iter().find_map(|title| Some((*title, fields.get(*title)?.as_str()?)));
    let sorted: BTreeMap<&String, &Value> = fields.iter().collect();
    let rest = sorted.into_iter().filter(|(name, _)| title.is_none_or(|(title, _)| title != name.as_str()));
    let rest = rest.map(|(name, value)| format!("{name}: {}", inline(value))).collect::<Vec<_>>().join(", ");
    match title {
        Some((_, text)) if rest.is_empty() => text.to_owned(),
        Some((_, text)) => format!("{text} ({rest})"),
        None => rest,
    }
}

fn inline(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
