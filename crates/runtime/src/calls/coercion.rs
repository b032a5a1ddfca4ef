//! The conversions of arguments that models commonly need: a text to the number or boolean that a schema asks for, and a scalar to the text
//! that it asks for, at any depth. Where a schema allows several types, a value is converted only if there is one way to do it.

use serde_json::{Map, Value};

/// How many references and unions may be inside each other.
const MAX_DEPTH: usize = 32;

/// Converts what has another type than the schema asks for. The result may still not fit.
pub(super) fn coerce(value: &mut Value, schema: &Value) {
    Coercion { root: schema }.coerce(value, schema, 0);
}

struct Coercion<'s> {
    /// The whole schema, for references within it.
    root: &'s Value,
}

impl Coercion<'_> {
    fn coerce(&self, value: &mut Value, schema: &Value, depth: usize) {
        if depth > MAX_DEPTH {
            return;
        }
        let depth = depth + 1;
        if let Some(referred) = self.referred(schema) {
            self.coerce(value, referred, depth);
        }
        for part in schema.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            self.coerce(value, part, depth);
        }
        for keyword in ["anyOf", "oneOf"] {
            if let Some(variants) = schema.get(keyword).and_then(Value::as_array) {
                self.coerce_to_one(value, variants, depth);
            }
        }
        match schema.get("type") {
            Some(Value::Array(types)) => {
                let one = |it: &Value| {
                    let mut only = schema.as_object().cloned().unwrap_or_default();
                    only.insert("type".to_owned(), it.clone());
                    Value::Object(only)
                };
                let variants: Vec<Value> = types.iter().map(one).collect();
                self.coerce_to_one(value, &variants, depth);
            }
            asked => coerce_scalar(value, asked.and_then(Value::as_str)),
        }
        match value {
            Value::Object(fields) => self.coerce_fields(fields, schema, depth),
            Value::Array(items) => self.coerce_items(items, schema, depth),
            _ => {}
        }
    }

    fn coerce_fields(&self, fields: &mut Map<String, Value>, schema: &Value, depth: usize) {
        let properties = schema.get("properties").and_then(Value::as_object);
        let others = schema.get("additionalProperties").filter(|schema| schema.is_object());
        for (name, field) in fields {
            if let Some(schema) = properties.and_then(|properties| properties.get(name)).or(others) {
                self.coerce(field, schema, depth);
            }
        }
    }

    fn coerce_items(&self, items: &mut [Value], schema: &Value, depth: usize) {
        let first = schema.get("prefixItems").and_then(Value::as_array);
        for (place, item) in items.iter_mut().enumerate() {
            let schema = first.and_then(|first| first.get(place)).or_else(|| schema.get("items"));
            if let Some(schema) = schema {
                self.coerce(item, schema, depth);
            }
        }
    }

    /// Converts a value to the one variant that it can be converted to. What fits already stays, and so does what fits in two ways.
    fn coerce_to_one(&self, value: &mut Value, variants: &[Value], depth: usize) {
        if variants.iter().any(|variant| self.fits(value, variant)) {
            return;
        }
        let converted = variants.iter().filter_map(|variant| {
            let mut converted = value.clone();
            self.coerce(&mut converted, variant, depth);
            self.fits(&converted, variant).then_some(converted)
        });
        let mut ways: Vec<Value> = Vec::new();
        for way in converted {
            match ways.iter_mut().find(|known| **known == way || is_same_number(known, &way)) {
                // 5 and 5.0 are one number, and the whole one says more.
                Some(known) if way.is_i64() => *known = way,
                Some(_) => {}
                None => ways.push(way),
            }
        }
        if let ([_], Some(way)) = (ways.as_slice(), ways.first()) {
            *value = way.clone();
        }
    }

    /// Whether a value fits a variant. Of references only those to definitions are followed, as others mean something else there.
    fn fits(&self, value: &Value, variant: &Value) -> bool {
        let mut resolved = variant;
        for _ in 0..MAX_DEPTH {
            match self.referred(resolved) {
                Some(referred) => resolved = referred,
                None => break,
            }
        }
        if resolved.get("$ref").is_some() || refers_elsewhere(resolved) {
            return false;
        }
        let mut schema = resolved.clone();
        if let (Some(own), Some(root)) = (schema.as_object_mut(), self.root.as_object()) {
            for definitions in ["$defs", "definitions"] {
                if let (false, Some(shared)) = (own.contains_key(definitions), root.get(definitions)) {
                    own.insert(definitions.to_owned(), shared.clone());
                }
            }
        }
        jsonschema::validator_for(&schema).is_ok_and(|validator| validator.is_valid(value))
    }

    /// What a reference within the schema refers to.
    fn referred(&self, schema: &Value) -> Option<&Value> {
        self.root.pointer(schema.get("$ref")?.as_str()?.strip_prefix('#')?)
    }
}

/// Whether there is a reference to anything but a definition.
fn refers_elsewhere(schema: &Value) -> bool {
    match schema {
        Value::Object(fields) => fields.iter().any(|(name, field)| match (name.as_str(), field) {
            ("$ref", Value::String(to)) => !to.starts_with("#/$defs/") && !to.starts_with("#/definitions/"),
            (_, field) => refers_elsewhere(field),
        }),
        Value::Array(items) => items.iter().any(refers_elsewhere),
        _ => false,
    }
}

fn is_same_number(one: &Value, other: &Value) -> bool {
    one.as_f64().is_some_and(|one| other.as_f64() == Some(one))
}

fn coerce_scalar(value: &mut Value, asked: Option<&str>) {
    let read = match (&*value, asked) {
        (Value::String(text), Some("integer")) => text.trim().parse::<i64>().ok().map(Value::from),
        (Value::String(text), Some("number")) => text.trim().parse::<f64>().ok().map(Value::from),
        (Value::String(text), Some("boolean")) => text.trim().parse::<bool>().ok().map(Value::from),
        (Value::Number(_) | Value::Bool(_), Some("string")) => Some(Value::String(value.to_string())),
        _ => None,
    };
    if let Some(read) = read {
        *value = read;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    // Finding C7.
    #[test]
    fn unions_references_and_further_properties_are_converted_where_there_is_one_way() {
        let optional = |of: Value| json!({ "anyOf": [of, { "type": "null" }] });
        let integer = || json!({ "type": "integer" });
        let cases = [
            ("Optional[int]", optional(integer()), json!("5"), json!(5)),
            ("Optional[int] with white space", optional(integer()), json!(" 5 "), json!(5)),
            ("Optional[int], null", optional(integer()), json!(null), json!(null)),
            ("Optional[int], a word", optional(integer()), json!("five"), json!("five")),
            ("Optional[int], the word null", optional(integer()), json!("null"), json!("null")),
            ("Optional[float]", optional(json!({ "type": "number" })), json!("0.5"), json!(0.5)),
            ("Optional[bool]", optional(json!({ "type": "boolean" })), json!("true"), json!(true)),
            ("Optional[str], a number", optional(json!({ "type": "string" })), json!(5), json!("5")),
            ("oneOf", json!({ "oneOf": [integer(), { "type": "null" }] }), json!("5"), json!(5)),
            ("a list of types", json!({ "type": ["integer", "null"] }), json!("5"), json!(5)),
            ("str or int", json!({ "anyOf": [{ "type": "string" }, integer()] }), json!("5"), json!("5")),
            ("int or float", json!({ "anyOf": [integer(), { "type": "number" }] }), json!("5"), json!(5)),
            ("float or int", json!({ "anyOf": [{ "type": "number" }, integer()] }), json!("5"), json!(5)),
            (
                "int or bool",
                json!({ "anyOf": [integer(), { "type": "boolean" }] }),
                json!("true"),
                json!(true),
            ),
            (
                "one of two bounds",
                json!({ "anyOf": [{ "type": "integer", "maximum": 3 }, { "type": "integer", "minimum": 9 }] }),
                json!("12"),
                json!(12),
            ),
            (
                "two ways: a list of texts or one of numbers",
                json!({ "anyOf": [
                    { "type": "object", "properties": { "a": integer() }, "required": ["a"] },
                    { "type": "object", "properties": { "b": { "type": "boolean" } }, "required": ["b"] },
                ] }),
                json!({ "a": "1", "b": "true" }),
                json!({ "a": "1", "b": "true" }),
            ),
            (
                "dict[str, int]",
                json!({ "type": "object", "additionalProperties": integer() }),
                json!({ "a": "1", "b": 2 }),
                json!({ "a": 1, "b": 2 }),
            ),
            (
                "no further properties",
                json!({ "type": "object", "additionalProperties": false }),
                json!({ "a": "1" }),
                json!({ "a": "1" }),
            ),
            (
                "nested",
                json!({ "type": "object", "properties": { "all": {
                    "type": "array", "items": optional(json!({ "type": "object", "properties": { "n": optional(integer()) } })),
                } } }),
                json!({ "all": [{ "n": "1" }, null, { "n": 2 }] }),
                json!({ "all": [{ "n": 1 }, null, { "n": 2 }] }),
            ),
            (
                "a reference",
                json!({
                    "$defs": { "Point": { "type": "object", "properties": { "x": integer() }, "required": ["x"] } },
                    "type": "object", "properties": { "at": optional(json!({ "$ref": "#/$defs/Point" })) },
                }),
                json!({ "at": { "x": "3" } }),
                json!({ "at": { "x": 3 } }),
            ),
            (
                "a reference to itself",
                json!({
                    "$defs": { "Tree": { "type": "object", "properties": { "n": integer(), "sub": { "$ref": "#/$defs/Tree" } } } },
                    "$ref": "#/$defs/Tree",
                }),
                json!({ "n": "1", "sub": { "n": "2", "sub": { "n": "3" } } }),
                json!({ "n": 1, "sub": { "n": 2, "sub": { "n": 3 } } }),
            ),
            ("a reference that goes round", json!({ "$ref": "#" }), json!("5"), json!("5")),
            ("all of", json!({ "allOf": [integer(), { "minimum": 1 }] }), json!("5"), json!(5)),
            (
                "a tuple",
                json!({ "type": "array", "prefixItems": [integer(), { "type": "boolean" }] }),
                json!(["1", "false", "x"]),
                json!([1, false, "x"]),
            ),
        ];
        for (what, schema, given, expected) in cases {
            let mut value = given;
            coerce(&mut value, &schema);
            assert_eq!(value, expected, "{what}");
        }
    }
}
