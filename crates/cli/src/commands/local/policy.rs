//! `holdfast policy show` and `policy rules`: the active profile, and the rules of the file with their places; removing a rule.

use holdfast_contract::problem::{Code, Location, Problem};
use holdfast_home::Home;
use holdfast_policy::{Policy, Rule};
use serde::Serialize;
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
    for owner in policy.owners() {
        output.line(format!("owner    {} on {}", owner.user, owner.channel))?;
    }
    let rows = policy.rules().iter().map(|rule| {
        [rule.name.to_string(), decision(rule), rule.condition.tools.join(", "), rule.reason.clone()]
    });
    let empty = "no rules of your own: the profile decides by what a tool does to the world";
    output.lines(table(["rule", "decision", "tools", "reason"], rows, empty))?;
    Ok(Exit::Done)
}

/// A rule of the file.
#[derive(Serialize)]
struct NumberedRule {
    number: usize,
    /// `answer` for a rule that an answer of "always" wrote, otherwise `user`.
    written_by: &'static str,
    file: String,
    line: u32,
    #[serde(flatten)]
    rule: Rule,
}

pub(crate) fn rules(output: &Output, home: &Home) -> Result<Exit, Problem> {
    let rules: Vec<NumberedRule> = home.rules()?.into_iter().zip(1..).map(numbered).collect();
    if output.json {
        return output.documents(&rules);
    }
    let rows = rules.iter().map(|it| {
        let place = format!("{}:{}", it.file, it.line);
        let tools = it.rule.condition.tools.join(", ");
        let name = it.rule.name.to_string();
        [it.number.to_string(), name, it.written_by.to_owned(), decision(&it.rule), tools, place]
    });
    let empty =
        "no rules; an answer of \"always\" adds one, and `docs/reference/policy.md` says how to write one";
    output.lines(table(["number", "rule", "written by", "decision", "tools", "where"], rows, empty))?;
    Ok(Exit::Done)
}

/// Removes a rule from the file. A running owner of the home notices by itself.
pub(crate) fn remove_rule(output: &Output, home: &Home, number: usize) -> Result<Exit, Problem> {
    let rule = home.remove_rule(number)?;
    if output.json {
        output.document(&json!({ "number": number, "removed": rule }))?;
    } else {
        output.line(format!("removed rule {number}, `{}`", rule.name))?;
    }
    Ok(Exit::Done)
}

fn numbered(((rule, place), number): ((Rule, Location), usize)) -> NumberedRule {
    let written_by = if rule.is_answer() { "answer" } else { "user" };
    NumberedRule { number, written_by, file: place.file.display().to_string(), line: place.line, rule }
}

fn decision(rule: &Rule) -> String {
    let word = serde_json::to_value(rule.decision).ok();
    word.and_then(|word| word.as_str().map(str::to_owned)).unwrap_or_default()
}
