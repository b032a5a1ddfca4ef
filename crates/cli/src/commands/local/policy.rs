//! `holdfast policy show`: the active profile and rules.

use holdfast_contract::problem::{Code, Problem};
use holdfast_policy::Policy;
use serde_json::{Value, json};

use crate::exit::Exit;
use crate::output::{Output, table};

pub(crate) fn show(output: &Output, policy: &Policy) -> Result<Exit, Problem> {
    let document: Value = serde_json::from_slice(policy.document())
        .map_err(|error| Problem::new(Code::Internal, error.to_string()))?;
    if output.json {
        output.document(&json!({ "digest": policy.digest(), "policy": document }))?;
        return Ok(Exit::Done);
    }
    output.line(format!("profile  {}", document["profile"].as_str().unwrap_or_default()))?;
    output.line(format!("digest   {}", policy.digest()))?;
    let rows = policy.rules().iter().map(|rule| {
        let word = serde_json::to_value(rule.decision).ok().and_then(|word| word.as_str().map(str::to_owned));
        [
            rule.name.to_string(),
            word.unwrap_or_default(),
            rule.condition.tools.join(", "),
            rule.reason.clone(),
        ]
    });
    let empty = "no rules of your own: the profile decides by what a tool does to the world";
    output.line(table(["rule", "decision", "tools", "reason"], rows, empty))?;
    Ok(Exit::Done)
}
