//! What a server asks a person, as questions of ours: one for each field of its form. The server is named in each, and nothing is sent
//! that the person did not enter.

use std::sync::Arc;

use holdfast_contract::host_call::HostCall;
use holdfast_contract::problem::Fault;
use holdfast_contract::session_frames::UiQuestion;
use holdfast_contract::wire::Host;
use serde_json::{Map, Value};

use crate::catalogue::shown;

/// The most fields of a form, and the most characters of what a server says in it.
const MAX_FIELDS: usize = 20;
const MAX_TEXT_CHARS: usize = 600;
const ANSWER: &str = "answer";
const DECLINE: &str = "decline";

/// What a person did with a form.
#[derive(Debug, PartialEq)]
pub(crate) enum FormAnswer {
    /// Filled in.
    Accept(Map<String, Value>),
    /// Said no.
    Decline,
    /// Left it.
    Cancel,
}

/// Asks a person what a server wants to know.
pub(crate) async fn ask(
    host: &Arc<dyn Host>,
    server: &str,
    message: &str,
    schema: &Value,
) -> Result<FormAnswer, Fault> {
    let message = shown(message, MAX_TEXT_CHARS);
    let none = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
    let prompt = format!("The MCP server `{server}` asks: {message}");
    let options = vec![ANSWER.to_owned(), DECLINE.to_owned()];
    match question(host, UiQuestion::Select { prompt, options }).await?.as_str() {
        Some(ANSWER) => {}
        Some(_) => return Ok(FormAnswer::Decline),
        None => return Ok(FormAnswer::Cancel),
    }
    let mut given = Map::new();
    for (name, property) in properties.iter().take(MAX_FIELDS) {
        match field(host, server, name, property).await? {
            Value::Null => {}
            value => drop(given.insert(name.clone(), value)),
        }
    }
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    let missing = required.filter_map(Value::as_str).any(|name| !given.contains_key(name));
    Ok(if missing { FormAnswer::Cancel } else { FormAnswer::Accept(given) })
}

/// Asks a person to open an address.
pub(crate) async fn ask_to_open(
    host: &Arc<dyn Host>,
    server: &str,
    message: &str,
    url: &str,
) -> Result<FormAnswer, Fault> {
    let (message, url) = (shown(message, MAX_TEXT_CHARS), shown(url, MAX_TEXT_CHARS));
    let prompt = format!("The MCP server `{server}` asks you to open {url} yourself: {message}. Done?");
    Ok(match question(host, UiQuestion::Confirm { prompt }).await? {
        Value::Bool(true) => FormAnswer::Accept(Map::new()),
        Value::Bool(false) => FormAnswer::Decline,
        _ => FormAnswer::Cancel,
    })
}

async fn question(host: &Arc<dyn Host>, question: UiQuestion) -> Result<Value, Fault> {
    host.call(HostCall::Ui(question)).await.map(|answer| answer.value().clone())
}

/// The value of one field; null if it was left out or does not fit.
async fn field(host: &Arc<dyn Host>, server: &str, name: &str, property: &Value) -> Result<Value, Fault> {
    let text =
        |field: &str| property.get(field).and_then(Value::as_str).map(|text| shown(text, MAX_TEXT_CHARS));
    let label = text("title").unwrap_or_else(|| shown(name, 100));
    let about = text("description").map(|about| format!(" ({about})")).unwrap_or_default();
    let prompt = format!("`{server}`: {label}{about}");
    let default = property.get("default").cloned().unwrap_or_default();
    if let Some(options) = options(property) {
        return Ok(or_default(question(host, UiQuestion::Select { prompt, options }).await?, default));
    }
    let kind = property.get("type").and_then(Value::as_str).unwrap_or("string");
    if kind == "boolean" {
        return Ok(or_default(question(host, UiQuestion::Confirm { prompt }).await?, default));
    }
    let entered = question(host, UiQuestion::Input { prompt, secret: false }).await?;
    let entered = entered.as_str().unwrap_or_default().trim().to_owned();
    Ok(match kind {
        _ if entered.is_empty() => default,
        "integer" => entered.parse::<i64>().map_or(Value::Null, Value::from),
        "number" => entered.parse::<f64>().map_or(Value::Null, Value::from),
        _ => entered.into(),
    })
}

/// What the server takes for a field that was left out.
fn or_default(value: Value, default: Value) -> Value {
    if value.is_null() { default } else { value }
}

/// The values that a field may have.
fn options(property: &Value) -> Option<Vec<String>> {
    let listed = property.get("enum").and_then(Value::as_array).cloned().or_else(|| {
        let titled = property.get("oneOf").or_else(|| property.get("anyOf"))?.as_array()?;
        Some(titled.iter().filter_map(|one| one.get("const").cloned()).collect())
    })?;
    let options: Vec<String> = listed.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    (!options.is_empty()).then_some(options)
}
