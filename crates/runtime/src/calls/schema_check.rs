//! Arguments and results against a tool's JSON Schemas, with the conversions that models commonly need.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdfast_contract::content::Content;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::session_frames::CheckOutcome;
use holdfast_contract::tool::{ToolOutcome, ToolSpec};
use jsonschema::Validator;
use serde_json::Value;

use super::IdentityMap;

/// How many errors are worth telling a model.
const MAX_ERRORS_REPORTED: usize = 5;

/// Compiled schemas, for as long as anybody else knows their tools. A specification is immutable, so its address is its name for as long
/// as it is held here.
#[derive(Default)]
pub struct SchemaChecks(Mutex<IdentityMap<usize, Arc<Compiled>>>);

struct Compiled {
    held: Arc<ToolSpec>,
    input: Result<Validator, String>,
    output: Option<Result<Validator, String>>,
}

impl SchemaChecks {
    fn all(&self) -> MutexGuard<'_, IdentityMap<usize, Arc<Compiled>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn compiled(&self, spec: &Arc<ToolSpec>) -> Arc<Compiled> {
        let name = Arc::as_ptr(spec) as usize;
        if let Some(compiled) = self.all().get(&name) {
            return compiled.clone();
        }
        // Nobody else waits while this is compiled; who comes at the same time compiles it too.
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
        let Some(value) = arguments.value() else {
            return CheckOutcome::Invalid { errors: vec!["the arguments are not at hand".to_owned()] };
        };
        let compiled = self.compiled(spec);
        let validator = match &compiled.input {
            Ok(validator) => validator,
            Err(error) => {
                return CheckOutcome::Invalid {
                    errors: vec![format!("the tool's schema is invalid: {error}")],
                };
            }
        };
        if validator.is_valid(value) {
            return CheckOutcome::Valid;
        }
        let mut converted = value.clone();
        if let Some(schema) = spec.input_schema.value() {
            coerce(&mut converted, schema);
        }
        if converted != *value && validator.is_valid(&converted) {
            return CheckOutcome::Coerced { arguments: Content::new(converted) };
        }
        CheckOutcome::Invalid { errors: errors(validator, value) }
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
        if spec.output_schema.is_none() {
            return ToolOutcome::Result(result);
        }
        let broken = match (&self.compiled(spec).output, result.value()) {
            (Some(Ok(validator)), Some(value)) if !validator.is_valid(value) => {
                errors(validator, value).join("; ")
            }
            (Some(Err(error)), _) => format!("the tool's output schema is invalid: {error}"),
            _ => return ToolOutcome::Result(result),
        };
        ToolOutcome::Failure(Fault::new(Code::ToolResult, broken))
    }
}

fn compile(schema: &Content) -> Result<Validator, String> {
    let schema = schema.value().ok_or("it is not at hand")?;
    jsonschema::validator_for(schema).map_err(|error| error.to_string())
}

fn errors(validator: &Validator, value: &Value) -> Vec<String> {
    let all = validator.iter_errors(value).map(|error| {
        let place = error.instance_path().to_string();
        let place = if place.is_empty() { "the arguments".to_owned() } else { place };
        format!("{place}: {error}")
    });
    all.take(MAX_ERRORS_REPORTED).collect()
}

/// Converts texts to the numbers and booleans that the schema asks for, and scalars to the text that it asks for.
fn coerce(value: &mut Value, schema: &Value) {
    match value {
        Value::Object(fields) => {
            let properties = schema.get("properties").and_then(Value::as_object);
            for (name, property) in properties.into_iter().flatten() {
                if let Some(field) = fields.get_mut(name) {
                    coerce(field, property);
                }
            }
        }
        Value::Array(items) => {
            if let Some(item_schema) = schema.get("items") {
                items.iter_mut().for_each(|item| coerce(item, item_schema));
            }
        }
        Value::String(text) => {
            let read = match schema.get("type").and_then(Value::as_str) {
                Some("integer") => text.trim().parse::<i64>().ok().map(Value::from),
                Some("number") => text.trim().parse::<f64>().ok().map(Value::from),
                Some("boolean") => text.trim().parse::<bool>().ok().map(Value::from),
                _ => None,
            };
            if let Some(read) = read {
                *value = read;
            }
        }
        Value::Number(_) | Value::Bool(_) => {
            if schema.get("type").and_then(Value::as_str) == Some("string") {
                *value = Value::String(value.to_string());
            }
        }
        Value::Null => {}
    }
}

#[cfg(test)]
mod tests {
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
}
