//! Reads a script from YAML. All problems are reported in one pass, each with file, line, column and field; an unknown field is
//! a problem too, because a script that does something else than it says is of no use.

use std::path::Path;

use holdfast_contract::digest::MAX_EXACT_INTEGER;
use holdfast_contract::manifest::yaml::{self, Codes, Format};
use holdfast_contract::message::Usage;
use holdfast_contract::problem::{Code, Problem};
use holdfast_yaml::{Field, Object, Reported};
use serde_json::{Map, Value};

use super::ScriptStep;

type Result<T> = std::result::Result<T, Reported>;

const FORMAT: Format =
    Format { name: "script", max_bytes: 1024 * 1024, codes: Codes::all(Code::ScriptInvalid) };
const DEEDS: &[&str] = &["says", "calls", "fails", "stalls"];
/// The fields that a step may have.
const FIELDS: &[&str] = &[
    "says",
    "calls",
    "fails",
    "stalls",
    "tool",
    "arguments",
    "times",
    "retryable",
    "then",
    "usage",
    "reasoning",
    "input_tokens",
    "output_tokens",
    "cost_micros",
];
const EXAMPLE: &str = "Write `- says: text`, `- calls: [{tool: name, arguments: {}}]`, `- fails: {times: 1}`, `- stalls: text` or `- hangs`.";

pub(super) fn steps(file: &Path, text: &str) -> std::result::Result<Vec<ScriptStep>, Vec<Problem>> {
    let read = yaml::read(&FORMAT, file, text, |root| {
        if root.is_null() {
            return Err(root.reject("the script is empty", EXAMPLE));
        }
        root.each(step)
    });
    yaml::stricter(read, |_| true).map(|read| read.value).map_err(|rejected| rejected.errors)
}

/// A problem with a file on disk: its position, without content of the file. Of the field, only names that scripts have.
pub(super) fn without_content(problem: Problem) -> Problem {
    let mut told =
        Problem::new(problem.code, "the file is not a script: the line that is named has no valid step")
            .help(EXAMPLE)
            .with(problem.severity);
    told.location = problem.location.map(|mut location| {
        let known = |name: &str| FIELDS.contains(&name) || name.bytes().all(|byte| byte.is_ascii_digit());
        location.field = location
            .field
            .filter(|field| field.split(['.', '[', ']']).filter(|name| !name.is_empty()).all(known));
        location
    });
    told
}

fn step(field: &Field<'_>) -> Result<ScriptStep> {
    if !field.is_map() {
        return match field.text()?.as_str() {
            "hangs" => Ok(ScriptStep::Hangs),
            other => Err(field.reject(format!("`{other}` is not a step"), EXAMPLE)),
        };
    }
    field.object(|object| {
        let deed = deed(field, object);
        let usage = object.optional("usage", usage);
        let reasoning = object.optional("reasoning", Field::text);
        let mut step = deed?;
        if let Some(usage) = usage? {
            step = ScriptStep::Costs(usage, Box::new(step));
        }
        if let Some(reasoning) = reasoning? {
            step = ScriptStep::Reasons(reasoning, Box::new(step));
        }
        Ok(step)
    })
}

fn deed(field: &Field<'_>, object: &mut Object<'_, '_>) -> Result<ScriptStep> {
    let says = object.optional("says", Field::text);
    let calls = object.optional("calls", |field| field.each_mapping(call));
    let fails = object.optional("fails", fails);
    let stalls = object.optional("stalls", Field::text);
    let mut deeds = Vec::new();
    deeds.extend(says?.map(ScriptStep::Says));
    deeds.extend(calls?.map(ScriptStep::Calls));
    deeds.extend(fails?);
    deeds.extend(stalls?.map(ScriptStep::Stalls));
    match deeds.pop() {
        Some(step) if deeds.is_empty() => Ok(step),
        Some(_) => {
            Err(field.reject("a step does one thing", format!("Keep one of `{}`.", DEEDS.join("`, `"))))
        }
        None => Err(field.reject("the step does nothing", EXAMPLE)),
    }
}

fn call(field: &Field<'_>) -> Result<(String, Value)> {
    field.object(|object| {
        let tool = object.required("tool", "echo", Field::word);
        let arguments = object.defaulted("arguments", Map::new(), Field::json_map);
        Ok((tool?, Value::Object(arguments?)))
    })
}

fn fails(field: &Field<'_>) -> Result<ScriptStep> {
    field.object(|object| {
        let times = object.defaulted("times", 1, |field| field.whole(1..=1_000_000u32));
        let retryable = object.defaulted("retryable", true, Field::boolean);
        let then = object.optional("then", step);
        let then = then?.unwrap_or_else(|| ScriptStep::says("done"));
        Ok(ScriptStep::Fails { times: times?, retryable: retryable?, then: Box::new(then) })
    })
}

fn usage(field: &Field<'_>) -> Result<Usage> {
    field.object(|object| {
        let mut count = |name| object.defaulted(name, 0, |field| field.whole(0..=MAX_EXACT_INTEGER));
        let (input, output, cost) = (count("input_tokens"), count("output_tokens"), count("cost_micros"));
        Ok(Usage { input_tokens: input?, output_tokens: output?, cost_micros: cost? })
    })
}
