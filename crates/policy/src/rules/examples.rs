//! Checks rules against their own examples, so that a rule that does not do what its author believes is never loaded.

use holdfast_contract::problem::{Code, Location, Problem};
use holdfast_contract::text::truncated;
use serde_json::Value;

use crate::rules::matching::{Part, Subject, Truth, applies};
use crate::rules::rule::{Example, Rule};

/// The most letters of an example's arguments that a message shows.
const MAX_SHOWN_CHARS: usize = 120;

/// Every example that does not hold.
pub(crate) fn contradictions(rules: &[Rule], locate: impl Fn(&str) -> Location) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (index, rule) in rules.iter().enumerate() {
        let examples = &rule.examples;
        for (kind, expected, list) in
            [("match", true, &examples.matching), ("not_match", false, &examples.not_match)]
        {
            for (number, example) in list.iter().enumerate() {
                if let Some(problem) = contradiction(rule, example, expected) {
                    let field = format!("rules[{index}].examples.{kind}[{number}]");
                    problems.push(problem.at(locate(&field)));
                }
            }
        }
    }
    problems
}

/// What an example leaves out can be anything: a `match` holds if the rule applies to some call of this kind, a counterexample
/// if it applies to no such call.
fn contradiction(rule: &Rule, example: &Example, expected: bool) -> Option<Problem> {
    let finding = applies(rule, &Subject::of_example(example));
    let (name, call) = (&rule.name, written(example));
    match (finding.truth, expected) {
        (Truth::No, true) => {
            let because = finding.part.map(misfit).unwrap_or_default();
            Some(Problem::new(
                Code::PolicyExample,
                format!("the rule `{name}` does not apply to its example {call}: {because}"),
            ))
        }
        (Truth::Yes, false) => Some(Problem::new(
            Code::PolicyExample,
            format!("the rule `{name}` applies to {call}, which it says it does not"),
        )),
        (Truth::Unknown, false) => {
            let missing = finding.part.map(left_out).unwrap_or_default();
            let what = format!("the rule `{name}` can apply to {call}, which it says it does not");
            let help = format!("The example says nothing about {missing}; add that, or change the rule.");
            Some(Problem::new(Code::PolicyExample, what).help(help))
        }
        (Truth::Yes | Truth::Unknown, true) | (Truth::No, false) => None,
    }
}

fn written(example: &Example) -> String {
    let arguments = match &example.arguments {
        Value::Object(fields) if fields.is_empty() => String::new(),
        arguments => format!(" {arguments}"),
    };
    format!("`{}{}`", example.tool, truncated(arguments, MAX_SHOWN_CHARS))
}

fn misfit(part: Part<'_>) -> String {
    match part {
        Part::Argument("") | Part::Arguments => "the arguments do not match".to_owned(),
        Part::Argument(pointer) => format!("the argument `{pointer}` does not match"),
        Part::Unless(index) => format!("the exception `unless[{index}]` applies"),
        part => format!("{} does not match", left_out(part)),
    }
}

fn left_out(part: Part<'_>) -> &'static str {
    match part {
        Part::Tools => "the tool",
        Part::Extensions => "the extension",
        Part::Effects => "the effects",
        Part::Origins => "the origin",
        Part::Users => "the user",
        Part::Agents => "the agent",
        Part::Arguments | Part::Argument(_) => "the arguments",
        Part::Unless(_) => "the exceptions",
    }
}
