//! The conversions of arguments that models commonly need: a text to the number or boolean that a schema asks for, and a scalar to the text
//! that it asks for, at any depth. Where a schema allows several types, a value is converted only if there is one way to do it.

use std::cell::{Cell, RefCell};

use jsonschema::Validator;
use rustc_hash::FxHashMap;
use serde_json::{Map, Value};

use super::schema_cost::{SchemaCost, referred};

/// How many references and unions may be inside each other.
const MAX_DEPTH: usize = 32;
/// Steps after which nothing more is converted. A step is about the check of one value against one subschema.
const MAX_STEPS: u64 = 2_000_000;

/// Converts what has another type than the schema asks for. The result may still not fit.
pub(super) fn coerce(value: &mut Value, schema: &Value) {
    Coercion::new(schema).coerce(value, schema, 0);
}

struct Coercion<'s> {
    /// The whole schema, for references within it.
    root: &'s Value,
    /// The parts of the whole schema.
    parts: u64,
    /// Steps that may still be made.
    left: Cell<u64>,
    /// Variants that were compiled, by their addresses in the whole schema; none where that is not possible.
    compiled: RefCell<FxHashMap<usize, Option<Validator>>>,
}

impl<'s> Coercion<'s> {
    fn new(root: &'s Value) -> Self {
        Self { root, parts: parts(root), left: Cell::new(MAX_STEPS), compiled: RefCell::default() }
    }

    /// Whether so many steps remained. If not, the rest is discarded.
    fn spend(&self, steps: u64) -> bool {
        let left = self.left.get().checked_sub(steps);
        self.left.set(left.unwrap_or_default());
        left.is_some()
    }

    fn coerce(&self, value: &mut Value, schema: &'s Value, depth: usize) {
        if depth > MAX_DEPTH || !self.spend(1) {
            return;
        }
        let depth = depth + 1;
        if let Some(referred) = referred(self.root, schema) {
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
            Some(Value::Array(types)) => coerce_to_type(value, types),
            asked => coerce_scalar(value, asked.and_then(Value::as_str)),
        }
        match value {
            Value::Object(fields) => self.coerce_fields(fields, schema, depth),
            Value::Array(items) => self.coerce_items(items, schema, depth),
            _ => {}
        }
    }

    fn coerce_fields(&self, fields: &mut Map<String, Value>, schema: &'s Value, depth: usize) {
        let properties = schema.get("properties").and_then(Value::as_object);
        let others = schema.get("additionalProperties").filter(|schema| schema.is_object());
        for (name, field) in fields {
            if let Some(schema) = properties.and_then(|properties| properties.get(name)).or(others) {
                self.coerce(field, schema, depth);
            }
        }
    }

    fn coerce_items(&self, items: &mut [Value], schema: &'s Value, depth: usize) {
        let first = schema.get("prefixItems").and_then(Value::as_array);
        for (place, item) in items.iter_mut().enumerate() {
            let schema = first.and_then(|first| first.get(place)).or_else(|| schema.get("items"));
            if let Some(schema) = schema {
                self.coerce(item, schema, depth);
            }
        }
    }

    /// Converts a value to the one variant that it can be converted to. What fits already stays, and so does what fits in two ways.
    fn coerce_to_one(&self, value: &mut Value, variants: &'s [Value], depth: usize) {
        if variants.iter().any(|variant| self.fits(value, variant)) {
            return;
        }
        let converted = variants.iter().filter_map(|variant| {
            let mut converted = self.spend(parts(value)).then(|| value.clone())?;
            self.coerce(&mut converted, variant, depth);
            self.fits(&converted, variant).then_some(converted)
        });
        let one = only_way(converted.collect());
        // Where the steps did not suffice there may be another way.
        if let Some(way) = one.filter(|_| self.left.get() > 0) {
            *value = way;
        }
    }

    /// Whether a value fits a variant.
    fn fits(&self, value: &Value, variant: &'s Value) -> bool {
        let left = self.left.get();
        if !self.spend(SchemaCost::new(self.root).steps(variant, value, left)) {
            return false;
        }
        let address = std::ptr::from_ref(variant) as usize;
        let known = self.compiled.borrow().contains_key(&address);
        if !known {
            let validator = self.spend(self.parts).then(|| self.compile(variant)).flatten();
            self.compiled.borrow_mut().insert(address, validator);
        }
        let compiled = self.compiled.borrow();
        compiled.get(&address).and_then(Option::as_ref).is_some_and(|validator| validator.is_valid(value))
    }

    /// A variant by itself. Of references only those to definitions are followed, as others mean something else there.
    fn compile(&self, variant: &Value) -> Option<Validator> {
        let mut resolved = variant;
        for _ in 0..MAX_DEPTH {
            match referred(self.root, resolved) {
                Some(referred) => resolved = referred,
                None => break,
            }
        }
        if resolved.get("$ref").is_some() || refers_elsewhere(resolved) {
            return None;
        }
        let mut schema = resolved.clone();
        if let (Some(own), Some(root)) = (schema.as_object_mut(), self.root.as_object()) {
            for definitions in ["$defs", "definitions"] {
                if let (false, Some(shared)) = (own.contains_key(definitions), root.get(definitions)) {
                    own.insert(definitions.to_owned(), shared.clone());
                }
            }
        }
        jsonschema::validator_for(&schema).ok()
    }
}

/// How many values a value consists of.
fn parts(value: &Value) -> u64 {
    let (mut count, mut left) = (0, vec![value]);
    while let Some(value) = left.pop() {
        count += 1;
        match value {
            Value::Object(fields) => left.extend(fields.values()),
            Value::Array(items) => left.extend(items),
            _ => {}
        }
    }
    count
}

/// The one value that conversions gave, if they gave one.
fn only_way(converted: Vec<Value>) -> Option<Value> {
    let mut ways: Vec<Value> = Vec::new();
    for way in converted {
        match ways.iter_mut().find(|known| **known == way || is_same_number(known, &way)) {
            // 5 and 5.0 are one number, and the whole one says more.
            Some(known) if way.is_i64() => *known = way,
            Some(_) => {}
            None => ways.push(way),
        }
    }
    if ways.len() == 1 { ways.pop() } else { None }
}

/// Converts a scalar to the one type of a list that it can be converted to. What is in an object or a list is converted by the caller, once.
fn coerce_to_type(value: &mut Value, types: &[Value]) {
    let names = || types.iter().filter_map(Value::as_str);
    if names().any(|name| has_type(value, name)) {
        return;
    }
    let converted = names().filter_map(|name| {
        let mut converted = value.clone();
        coerce_scalar(&mut converted, Some(name));
        has_type(&converted, name).then_some(converted)
    });
    if let (false, Some(way)) = (value.is_object() || value.is_array(), only_way(converted.collect())) {
        *value = way;
    }
}

fn has_type(value: &Value, name: &str) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => {
            value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0)
        }
        "object" => value.is_object(),
        "array" => value.is_array(),
        _ => false,
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

    // A schema of an ordinary server, with optional objects in each other: every level was gone through once for each type.
    #[test]
    fn optional_objects_in_each_other_are_gone_through_once() {
        let wraps = |schema: Value| json!({ "type": ["object", "null"], "properties": { "in": schema, "n": { "type": "integer" } } });
        let schema = (0..24).fold(json!({ "type": "integer" }), |schema, _| wraps(schema));
        let value = |leaf: Value, n: Value| (0..24).fold(leaf, |value, _| json!({ "in": value, "n": n }));
        for (leaf, expected) in [(json!("5"), json!(5)), (json!("five"), json!("five"))] {
            let mut given = value(leaf, json!("7"));
            let coercion = Coercion::new(&schema);
            coercion.coerce(&mut given, &schema, 0);
            assert_eq!(given, value(expected, json!(7)));
            assert!(MAX_STEPS - coercion.left.get() < 100, "{}", MAX_STEPS - coercion.left.get());
        }
    }

    // Unions in each other have to be tried. It ends.
    #[test]
    fn unions_in_each_other_are_tried_for_a_bounded_time() {
        let wraps = |schema: Value| {
            let object = |name: &str| json!({ "type": "object", "properties": { "in": schema, (name): { "type": "null" } }, "required": ["in"] });
            json!({ "anyOf": [object("a"), object("b"), object("c")] })
        };
        let schema =
            (0..16).fold(
                json!({ "type": "integer" }),
                |schema, level| if level < 8 { wraps(schema) } else { schema },
            );
        let mut given = (0..8).fold(json!("five"), |value, _| json!({ "in": value }));
        let before = given.clone();
        let coercion = Coercion::new(&schema);
        coercion.coerce(&mut given, &schema, 0);
        assert_eq!(given, before);
        assert_eq!(coercion.left.get(), 0, "all steps were used, and no more");
    }
}
