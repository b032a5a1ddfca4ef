//! The parameters of a tool, as the JSON Schema that models see and calls are validated against.

use std::ops::{Bound, RangeBounds};

use holdfast_contract::content::Content;
use serde_json::{Map, Value, json};

/// A parameter of a tool. Required unless it is [`optional`](Parameter::optional).
pub struct Parameter {
    name: &'static str,
    schema: Value,
    optional: bool,
}

impl Parameter {
    /// A call may leave it out.
    pub fn optional(self) -> Self {
        Self { optional: true, ..self }
    }
}

/// The input schema of a tool that takes these parameters and no others.
pub fn takes<const N: usize>(parameters: [Parameter; N]) -> Content {
    let names = parameters.iter().filter(|parameter| !parameter.optional).map(|parameter| parameter.name);
    let required: Vec<&str> = names.collect();
    let properties: Map<String, Value> =
        parameters.into_iter().map(|parameter| (parameter.name.to_owned(), parameter.schema)).collect();
    let mut schema = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    Content::new(schema)
}

/// A text, and what it is for.
pub fn text(name: &'static str, about: impl Into<String>) -> Parameter {
    parameter(name, json!({ "type": "string", "description": about.into() }))
}

/// A boolean, and what true means.
pub fn flag(name: &'static str, about: impl Into<String>) -> Parameter {
    parameter(name, json!({ "type": "boolean", "description": about.into() }))
}

/// A whole number within these bounds, and what it is for.
pub fn number(name: &'static str, range: impl RangeBounds<u64>, about: impl Into<String>) -> Parameter {
    let mut schema = json!({ "type": "integer", "description": about.into() });
    if let Bound::Included(least) = range.start_bound() {
        schema["minimum"] = json!(least);
    }
    if let Bound::Included(most) = range.end_bound() {
        schema["maximum"] = json!(most);
    }
    parameter(name, schema)
}

/// Any JSON, and what it is for.
pub fn anything(name: &'static str, about: impl Into<String>) -> Parameter {
    parameter(name, json!({ "description": about.into() }))
}

/// A parameter of any other kind, by its schema.
pub fn parameter(name: &'static str, schema: Value) -> Parameter {
    Parameter { name, schema, optional: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_lists_required_parameters_and_allows_no_others() {
        let schema = takes([
            text("path", "The file."),
            flag("all", "Everything.").optional(),
            number("limit", 1..=9, "How many.").optional(),
            number("offset", 1.., "From where."),
            anything("value", "What you like."),
        ]);
        let expected = json!({
            "type": "object",
            "properties": {
                "path": { "type": "string", "description": "The file." },
                "all": { "type": "boolean", "description": "Everything." },
                "limit": { "type": "integer", "minimum": 1, "maximum": 9, "description": "How many." },
                "offset": { "type": "integer", "minimum": 1, "description": "From where." },
                "value": { "description": "What you like." },
            },
            "required": ["path", "offset", "value"],
            "additionalProperties": false,
        });
        assert_eq!(schema, Content::new(expected));
        let nothing = json!({ "type": "object", "properties": {}, "additionalProperties": false });
        assert_eq!(takes([]), Content::new(nothing), "no `required` without required parameters");
    }
}
