//! Arguments and results against a tool's JSON Schemas, with the conversions that models commonly need.

use std::sync::Arc;

use holdfast_contract::content::Content;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::session_frames::CheckOutcome;
use holdfast_contract::tool::{ToolOutcome, ToolSpec};
use jsonschema::Validator;
use parking_lot::{Mutex, MutexGuard};
use rustc_hash::FxHashMap;
use serde_json::Value;

use super::coercion::coerce;
use super::schema_cost::SchemaCost;

/// How many errors are worth telling a model.
const MAX_ERRORS_REPORTED: usize = 5;
/// Steps of a check. More would keep others waiting.
const MAX_STEPS: u64 = 20_000_000;
/// Steps of a check whose errors are looked for: each step may have one.
const MAX_STEPS_EXPLAINED: u64 = 200_000;

/// Compiled schemas, for as long as anybody else knows their tools. A specification is immutable, so its address is its name for as long
/// as it is held here.
#[derive(Default)]
pub struct SchemaChecks(Mutex<FxHashMap<usize, Arc<Compiled>>>);

struct Compiled {
    held: Arc<ToolSpec>,
    input: Result<Validator, String>,
    output: Option<Result<Validator, String>>,
}

impl SchemaChecks {
    fn all(&self) -> MutexGuard<'_, FxHashMap<usize, Arc<Compiled>>> {
        self.0.lock()
    }

    fn compiled(&self, spec: &Arc<ToolSpec>) -> Arc<Compiled> {
        let name = Arc::as_ptr(spec) as usize;
        if let Some(compiled) = self.all().get(&name) {
            return compiled.clone();
        }
        // Compiled without the lock: concurrent callers may compile it twice.
        let compiled = Arc::new(Compiled {
            held: spec.clone(),
            input: compile(&spec.input_schema),
            output: spec.output_schema.as_ref().map(compile),
        });
        let mut all = self.all();
        all.retain(|_, known| Arc::strong_count(&known.held) > 1);
        all.entry(name).or_insert(compiled).clone()
    }

    /// Checks arguments, after a conversion if that makes them fit.
    pub fn arguments(&self, spec: &Arc<ToolSpec>, arguments: &Content) -> CheckOutcome {
        let value = arguments.value();
        let compiled = self.compiled(spec);
        // Without a valid schema for its results a tool could only fail, after it has had its effects.
        let validator = match (&compiled.input, &compiled.output) {
            (Ok(validator), None | Some(Ok(_))) => validator,
            (Err(error), _) | (_, Some(Err(error))) => {
                return CheckOutcome::Invalid {
                    errors: vec![format!("the tool's schema is invalid: {error}")],
                };
            }
        };
        let steps = steps(&spec.input_schema, value);
        if steps > MAX_STEPS {
            return CheckOutcome::Invalid { errors: vec![TOO_MUCH.to_owned()] };
        }
        if validator.is_valid(value) {
            return CheckOutcome::Valid;
        }
        let mut converted = value.clone();
        coerce(&mut converted, spec.input_schema.value());
        if converted != *value && validator.is_valid(&converted) {
            return CheckOutcome::Coerced { arguments: Content::new(converted) };
        }
        CheckOutcome::Invalid { errors: errors(validator, value, steps) }
    }

    /// The arguments as the tool gets them, or why it does not.
    pub fn fitting(&self, spec: &Arc<ToolSpec>, arguments: Content) -> Result<Content, Fault> {
        match self.arguments(spec, &arguments) {
            CheckOutcome::Valid => Ok(arguments),
            CheckOutcome::Coerced { arguments } => Ok(arguments),
            CheckOutcome::Invalid { errors } => Err(Fault::new(Code::ToolArguments, errors.join("; "))),
        }
    }

    /// A result that breaks its tool's promise is a failure.
    pub fn result(&self, spec: &Arc<ToolSpec>, result: Content) -> ToolOutcome {
        let Some(schema) = &spec.output_schema else { return ToolOutcome::Result(result) };
        let value = result.value();
        let steps = steps(schema, value);
        let broken = match &self.compiled(spec).output {
            Some(Ok(_)) if steps > MAX_STEPS => TOO_MUCH.to_owned(),
            Some(Ok(validator)) if !validator.is_valid(value) => errors(validator, value, steps).join("; "),
            Some(Err(error)) => format!("the tool's output schema is invalid: {error}"),
            _ => return ToolOutcome::Result(result),
        };
        ToolOutcome::Failure(Fault::new(Code::ToolResult, broken))
    }
}

/// What is wrong with a tool's schemas, if something is.
pub fn schema_error(spec: &ToolSpec) -> Option<String> {
    let input = compile(&spec.input_schema).err().map(|error| format!("its parameters: {error}"));
    let output = spec.output_schema.as_ref().and_then(|schema| compile(schema).err());
    input.or_else(|| output.map(|error| format!("its result: {error}")))
}

/// Said of a value that is not checked.
const TOO_MUCH: &str = "it is too large, or nested too deeply, to be checked against the tool's schema";

fn steps(schema: &Content, value: &Value) -> u64 {
    let schema = schema.value();
    SchemaCost::new(schema).steps(schema, value, MAX_STEPS)
}

fn compile(schema: &Content) -> Result<Validator, String> {
    if let Some(why) = SchemaCost::new(schema.value()).refusal() {
        return Err(why);
    }
    jsonschema::validator_for(schema.value()).map_err(|error| error.to_string())
}

fn errors(validator: &Validator, value: &Value, steps: u64) -> Vec<String> {
    if steps > MAX_STEPS_EXPLAINED {
        return vec!["it does not fit the tool's schema, and is too large to say where".to_owned()];
    }
    let all = validator.iter_errors(value).map(|error| {
        let place = error.instance_path().to_string();
        let place = if place.is_empty() { "the arguments".to_owned() } else { place };
        format!("{place}: {error}")
    });
    all.take(MAX_ERRORS_REPORTED).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn schemas_are_kept_for_as_long_as_their_tools_are_known() {
        let checks = SchemaChecks::default();
        let check = |spec: &Arc<ToolSpec>| checks.arguments(spec, &Content::default());
        let tool = |name: &str| Arc::new(ToolSpec::named(name, ""));
        let (one, two) = (tool("one"), tool("two"));
        check(&one);
        check(&two);
        check(&one);
        assert_eq!(checks.all().len(), 2);
        drop(one);
        check(&tool("three"));
        let kept: Vec<_> = checks.all().values().map(|compiled| compiled.held.name.to_string()).collect();
        assert!(kept.len() == 2 && !kept.contains(&"one".to_owned()), "{kept:?}");
    }

    /// A chain of definitions, each a union of the next one twice.
    fn chain(length: usize, union: &str) -> Value {
        let to = |number: usize| json!({ "$ref": format!("#/$defs/A{number}") });
        let mut definitions: serde_json::Map<String, Value> =
            (0..length).map(|at| (format!("A{at}"), json!({ union: [to(at + 1), to(at + 1)] }))).collect();
        definitions.insert(format!("A{length}"), json!({ "type": "integer" }));
        json!({ "$defs": definitions, "type": "object", "properties": { "n": to(0) } })
    }

    fn with(input: Value, output: Option<Value>) -> Arc<ToolSpec> {
        let mut spec = ToolSpec::named("bomb", "");
        spec.input_schema = Content::new(input);
        spec.output_schema = output.map(Content::new);
        Arc::new(spec)
    }

    // A check of 2^40 steps, asked for in 41 definitions: by the model's arguments, or wholly by the extension in its own result.
    #[test]
    fn a_schema_that_asks_for_endless_work_is_refused() {
        let any = json!({ "type": "object" });
        for (union, length, why) in [
            ("anyOf", 40, "nested too deeply"),
            ("anyOf", 20, "10000 schemas of one"),
            ("oneOf", 20, "10000 schemas of one"),
            ("allOf", 20, "10000 schemas of one"),
        ] {
            let bomb = chain(length, union);
            for spec in [with(bomb.clone(), None), with(any.clone(), Some(bomb))] {
                assert!(schema_error(&spec).unwrap().contains(why), "{union}");
                let given = Content::new(json!({ "n": "x" }));
                let checks = SchemaChecks::default();
                // The tool is not even called.
                assert!(matches!(checks.arguments(&spec, &given), CheckOutcome::Invalid { .. }), "{union}");
                checks.result(&spec, given);
            }
        }
        for (what, schema) in [
            ("a reference to itself", json!({ "$ref": "#" })),
            ("another document", json!({ "$ref": "other.json" })),
            ("an anchor", json!({ "$defs": { "a": { "$anchor": "x" } }, "$ref": "#x" })),
            ("an id of its own", json!({ "$defs": { "a": { "$id": "http://a/", "type": "null" } } })),
            ("a dynamic reference", json!({ "$dynamicRef": "#meta" })),
        ] {
            assert!(schema_error(&with(schema, None)).is_some(), "{what}");
        }
        for (what, schema) in [
            ("a short chain", chain(8, "anyOf")),
            (
                "a name with other characters",
                json!({ "$defs": { "a b": { "type": "null" } }, "$ref": "#/$defs/a%20b" }),
            ),
            ("data that looks like a reference", json!({ "const": { "$ref": "other.json" } })),
            (
                "a property of that name",
                json!({ "properties": { "$ref": { "type": "string" }, "$id": { "type": "string" } } }),
            ),
        ] {
            assert_eq!(schema_error(&with(schema, None)), None, "{what}");
        }
    }

    // A schema that refers to itself further down is measured together with the value.
    #[test]
    fn a_value_that_asks_for_endless_work_is_not_checked() {
        let term = |operator: &str| {
            json!({
                "type": "object", "required": ["left"],
                "properties": { "left": { "$ref": "#/$defs/Term" }, "operator": { "const": operator } },
            })
        };
        let schema = json!({
            "$defs": { "Term": { "anyOf": [{ "type": "integer" }, term("+"), term("-")] } },
            "type": "object", "properties": { "term": { "$ref": "#/$defs/Term" } },
        });
        let nested = |levels: usize, leaf: Value| {
            let term = (0..levels).fold(leaf, |left, _| json!({ "left": left, "operator": "-" }));
            Content::new(json!({ "term": term }))
        };
        let (checks, spec) = (SchemaChecks::default(), with(schema.clone(), Some(schema)));
        assert_eq!(schema_error(&spec), None);
        assert!(matches!(checks.arguments(&spec, &nested(8, json!(1))), CheckOutcome::Valid));
        for (levels, leaf) in [(100, json!("x")), (100, json!(1)), (12, json!("x"))] {
            let given = nested(levels, leaf);
            assert!(matches!(checks.arguments(&spec, &given), CheckOutcome::Invalid { .. }), "{levels}");
            assert!(matches!(checks.result(&spec, given), ToolOutcome::Failure(_)), "{levels}");
        }
    }
}
