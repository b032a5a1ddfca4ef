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

/// How many errors are worth telling a model.
const MAX_ERRORS_REPORTED: usize = 5;

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
        coerce(&mut converted, spec.input_schema.value());
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
        let value = result.value();
        let broken = match &self.compiled(spec).output {
            Some(Ok(validator)) if !validator.is_valid(value) => errors(validator, value).join("; "),
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

fn compile(schema: &Content) -> Result<Validator, String> {
    jsonschema::validator_for(schema.value()).map_err(|error| error.to_string())
}

fn errors(validator: &Validator, value: &Value) -> Vec<String> {
    let all = validator.iter_errors(value).map(|error| {
        let place = error.instance_path().to_string();
        let place = if place.is_empty() { "the arguments".to_owned() } else { place };
        format!("{place}: {error}")
    });
    all.take(MAX_ERRORS_REPORTED).collect()
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
