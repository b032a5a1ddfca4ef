//! Reads a script from YAML. Every problem is found at once and has its file, line, column and field; a field that nobody reads is
//! a problem too, because a script that does something else than it says is of no use.

use std::path::Path;

use holdfast_contract::manifest::yaml::{self, Codes, Field, Format, Object, Reported};
use holdfast_contract::message::Usage;
use holdfast_contract::problem::{Code, Problem};
use serde_json::{Map, Value};

use super::Step;

type Result<T> = std::result::Result<T, Reported>;

const FORMAT: Format =
    Format { name: "script", max_bytes: 1024 * 1024, codes: Codes::all(Code::ScriptInvalid) };
const DEEDS: &[&str] = &["says", "calls", "fails", "stalls"];
const EXAMPLE: &str = "Write `- says: text`, `- calls: [{tool: name, arguments: {}}]`, `- fails: {times: 1}`, `- stalls: text` or `- hangs`.";
/// The largest number that every reader of JSON keeps as it is.
const LARGEST: u64 = (1 << 53) - 1;

pub(super) fn steps(file: &Path, text: &str) -> std::result::Result<Vec<Step>, Vec<Problem>> {
    let read = yaml::read(&FORMAT, file, text, |root| {
        if root.is_null() {
            return Err(root.reject("the script is empty", EXAMPLE));
        }
        root.each(step)
    });
    yaml::stricter(read, |_| true).map(|read| read.value).map_err(|rejected| rejected.errors)
}

fn step(field: &Field<'_>) -> Result<Step> {
    if !field.is_map() {
        return match field.text()?.as_str() {
            "hangs" => Ok(Step::Hangs),
            other => Err(field.reject(format!("`{other}` is no step"), EXAMPLE)),
        };
    }
    field.object(|object| {
        let deed = deed(field, object);
        let usage = object.optional("usage", usage);
        let reasoning = object.optional("reasoning", Field::text);
        let mut step = deed?;
        if let Some(usage) = usage? {
            step = Step::Costs(usage, Box::new(step));
        }
        if let Some(reasoning) = reasoning? {
            step = Step::Reasons(reasoning, Box::new(step));
        }
        Ok(step)
    })
}

fn deed(field: &Field<'_>, object: &mut Object<'_, '_>) -> Result<Step> {
    let says = object.optional("says", Field::text);
    let calls = object.optional("calls", |field| field.each_mapping(call));
    let fails = object.optional("fails", fails);
    let stalls = object.optional("stalls", Field::text);
    let mut deeds = Vec::new();
    deeds.extend(says?.map(Step::Says));
    deeds.extend(calls?.map(Step::Calls));
    deeds.extend(fails?);
    deeds.extend(stalls?.map(Step::Stalls));
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

fn fails(field: &Field<'_>) -> Result<Step> {
    field.object(|object| {
        let times = object.defaulted("times", 1, |field| field.whole(1..=1_000_000u32));
        let retryable = object.defaulted("retryable", true, Field::boolean);
        let then = object.optional("then", step);
        let then = then?.unwrap_or_else(|| Step::says("done"));
        Ok(Step::Fails { times: times?, retryable: retryable?, then: Box::new(then) })
    })
}

fn usage(field: &Field<'_>) -> Result<Usage> {
    field.object(|object| {
        let mut count = |name| object.defaulted(name, 0, |field| field.whole(0..=LARGEST));
        let (input, output, cost) = (count("input_tokens"), count("output_tokens"), count("cost_micros"));
        Ok(Usage { input_tokens: input?, output_tokens: output?, cost_micros: cost? })
    })
}
