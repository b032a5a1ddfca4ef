//! `holdfast policy explain`: which rule decides about a call, and why.

use holdfast_contract::problem::{Code, Problem};
use holdfast_rpc::{ExtensionMethod, PolicyExplain};
use serde_json::{Value, json};

use crate::arguments::Explain;
use crate::client::link::Link;
use crate::exit::Exit;
use crate::output::Output;

pub(crate) async fn explain(output: &Output, link: &Link, command: Explain) -> Result<Exit, Problem> {
    let arguments = match &command.arguments {
        Some(text) => serde_json::from_str(text).map_err(|error| {
            Problem::new(Code::UsageInvalid, format!("the arguments are not JSON: {error}"))
        })?,
        None => json!({}),
    };
    // `policy explain EXT TOOL` and `policy explain TOOL` both read well.
    let (extension, tool) = match command.tool {
        Some(tool) => (Some(command.subject), tool),
        None => (None, command.subject),
    };
    let asked = PolicyExplain { tool: tool.as_str().into(), extension, arguments, channel: command.from };
    let explained: Value = link.client.ask(&ExtensionMethod::PolicyExplain(asked)).await?;
    if output.json {
        output.document(&explained)?;
        return Ok(Exit::Done);
    }
    let verdict = &explained["verdict"];
    let decision = match &verdict["decision"] {
        Value::String(word) => word.clone(),
        Value::Object(fields) => {
            let told = fields.iter().map(|(word, said)| format!("{word}: {}", plain(said)));
            told.collect::<Vec<_>>().join(", ")
        }
        _ => String::new(),
    };
    output.line(format!("{tool}: {}", decision))?;
    output.line(format!("rule: {}", verdict["rule"].as_str().unwrap_or_default()))?;
    for step in explained["steps"].as_array().into_iter().flatten() {
        let outcome = match &step["outcome"] {
            Value::String(word) => word.replace('_', " "),
            Value::Object(fields) => fields
                .iter()
                .map(|(word, more)| format!("{}: {}", word.replace('_', " "), plain(more)))
                .collect::<Vec<_>>()
                .join(", "),
            _ => String::new(),
        };
        let rule = step["rule"].as_str().unwrap_or_default();
        output.line(format!(
            "  {rule:<28} {:<6} {}",
            step["decision"].as_str().unwrap_or_default(),
            outcome
        ))?;
    }
    Ok(Exit::Done)
}

fn plain(more: &Value) -> String {
    let texts = more.as_object().into_iter().flatten().map(|(_, value)| value.as_str().unwrap_or_default());
    texts.collect::<Vec<_>>().join(", ")
}
