//! How much work it is to check a value against a schema. Unions and references multiply it: a schema of a hundred lines can ask for more
//! steps than a machine makes in a year, so an extension's schema and a value are measured before they are checked.

use serde_json::{Map, Value};

/// Subschemas that apply to one value through references and unions.
const MAX_UNION: u64 = 10_000;
/// References and unions that are inside each other.
const MAX_UNION_DEPTH: usize = 64;
/// Subschemas that are looked at to measure a schema.
const MAX_WORK: u64 = 2_000_000;
/// Keywords whose values are data.
const DATA: [&str; 5] = ["const", "enum", "default", "examples", "example"];
/// Keywords with schemas for the value itself.
const LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
const SINGLE: [&str; 5] = ["not", "if", "then", "else", "propertyNames"];
const NAMED: [&str; 2] = ["dependentSchemas", "dependencies"];

/// Subschemas that apply to a value, each with how many times it does.
type Applied<'s> = Vec<(&'s Value, u64)>;

/// A schema whose checks are measured.
#[derive(Clone, Copy)]
pub(super) struct SchemaCost<'s> {
    root: &'s Value,
}

impl<'s> SchemaCost<'s> {
    pub(super) fn new(root: &'s Value) -> Self {
        Self { root }
    }

    /// Why a schema asks for too much, or cannot be measured.
    pub(super) fn refusal(&self) -> Option<String> {
        self.measured().err()
    }

    fn measured(&self) -> Result<(), String> {
        let (mut left, mut work) = (vec![self.root], 0);
        while let Some(part) = left.pop() {
            match part {
                Value::Object(fields) => {
                    check_references(fields, std::ptr::eq(part, self.root))?;
                    let mut applied = Vec::new();
                    self.apply(part, 1, 0, &mut applied)?;
                    work += applied.len() as u64;
                    if work > MAX_WORK {
                        return Err("it is too large".to_owned());
                    }
                    let schemas = fields.iter().filter(|(name, _)| !DATA.contains(&name.as_str()));
                    left.extend(schemas.map(|(_, field)| field));
                }
                Value::Array(items) => left.extend(items),
                _ => {}
            }
        }
        Ok(())
    }

    /// The steps that checking a value takes at most, as far as they are counted: not further than the limit.
    pub(super) fn steps(&self, schema: &'s Value, value: &Value, limit: u64) -> u64 {
        let mut steps = 0;
        self.count(&[(schema, 1)], value, limit, &mut steps);
        steps
    }

    fn count(&self, schemas: &[(&'s Value, u64)], value: &Value, limit: u64, steps: &mut u64) {
        let mut applied = Applied::new();
        for (schema, times) in schemas {
            // What asks for too much alone was refused; together it counts as too much.
            if self.apply(schema, *times, 0, &mut applied).is_err() {
                *steps = u64::MAX;
            }
        }
        let here = applied.iter().fold(1_u64, |sum, (_, times)| sum.saturating_add(*times));
        *steps = steps.saturating_add(here);
        let mut inside = |next: Applied<'s>, value: &Value| {
            if *steps <= limit {
                self.count(&merged(next), value, limit, steps);
            }
        };
        match value {
            Value::Object(fields) => {
                fields.iter().for_each(|(name, field)| inside(of_field(&applied, name), field));
            }
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(place, item)| inside(of_item(&applied, place), item));
            }
            _ => {}
        }
    }

    /// The subschemas that apply to the same value as this one, itself among them.
    fn apply(
        &self,
        schema: &'s Value,
        times: u64,
        depth: usize,
        applied: &mut Applied<'s>,
    ) -> Result<(), String> {
        if depth > MAX_UNION_DEPTH {
            return Err(
                "its references and unions are nested too deeply, or lead back to themselves".to_owned()
            );
        }
        applied.push((schema, times));
        if applied.len() as u64 > MAX_UNION {
            return Err(format!("its references and unions make more than {MAX_UNION} schemas of one"));
        }
        let Some(fields) = schema.as_object() else { return Ok(()) };
        let referred = referred(self.root, schema);
        let lists = LISTS.iter().filter_map(|name| fields.get(*name)?.as_array()).flatten();
        let single = SINGLE.iter().filter_map(|name| fields.get(*name));
        let named = NAMED.iter().filter_map(|name| fields.get(*name)?.as_object()).flat_map(Map::values);
        referred
            .into_iter()
            .chain(lists)
            .chain(single)
            .chain(named)
            .try_for_each(|part| self.apply(part, times, depth + 1, applied))
    }
}

/// What a reference within a schema refers to.
pub(super) fn referred<'s>(root: &'s Value, schema: &Value) -> Option<&'s Value> {
    let pointer = schema.get("$ref")?.as_str()?.strip_prefix('#')?;
    root.pointer(pointer).or_else(|| root.pointer(&decoded(pointer)?))
}

/// A reference is a URI, in which other characters are written as `%` and two digits.
fn decoded(pointer: &str) -> Option<String> {
    let mut parts = pointer.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

/// What is referred to must be known to be measured.
fn check_references(fields: &Map<String, Value>, is_root: bool) -> Result<(), String> {
    let text = |name: &str| fields.get(name).and_then(Value::as_str);
    let is_known = |to: &str| {
        to == "#"
            || to.starts_with("#/")
            || to.starts_with("http://json-schema.org/")
            || to.starts_with("https://json-schema.org/")
    };
    if let Some(other) = text("$ref").filter(|to| !is_known(to)) {
        return Err(format!(
            "the reference `{other}` is not one to a definition of its own, such as `#/$defs/name`"
        ));
    }
    if text("$dynamicRef").or(text("$recursiveRef")).is_some() {
        return Err("it has dynamic references".to_owned());
    }
    match text("$id").or(text("id")).filter(|_| !is_root && fields.contains_key("$id")) {
        Some(id) => Err(format!("a part of it has an id of its own, `{id}`")),
        None => Ok(()),
    }
}

fn of_field<'s>(applied: &[(&'s Value, u64)], name: &str) -> Applied<'s> {
    let mut next = Applied::new();
    for (schema, times) in applied {
        let own = schema.get("properties").and_then(|properties| properties.get(name));
        let others = || {
            ["additionalProperties", "unevaluatedProperties"].iter().filter_map(|other| schema.get(*other))
        };
        let patterns =
            schema.get("patternProperties").and_then(Value::as_object).into_iter().flat_map(Map::values);
        next.extend(patterns.map(|pattern| (pattern, *times)));
        match own {
            Some(own) => next.push((own, *times)),
            None => next.extend(others().map(|other| (other, *times))),
        }
    }
    next
}

fn of_item<'s>(applied: &[(&'s Value, u64)], place: usize) -> Applied<'s> {
    let mut next = Applied::new();
    for (schema, times) in applied {
        let listed = |name: &str| schema.get(name).and_then(Value::as_array)?.get(place);
        let own = listed("prefixItems").or_else(|| listed("items"));
        let others =
            ["items", "additionalItems", "unevaluatedItems"].iter().filter_map(|name| schema.get(*name));
        match own {
            Some(own) => next.push((own, *times)),
            None => next.extend(others.filter(|other| !other.is_array()).map(|other| (other, *times))),
        }
        next.extend(schema.get("contains").map(|contains| (contains, *times)));
    }
    next
}

/// The same, with each subschema once.
fn merged(mut applied: Applied<'_>) -> Applied<'_> {
    applied.sort_by_key(|(schema, _)| std::ptr::from_ref(*schema) as usize);
    applied.dedup_by(|(one, more), (kept, times)| {
        let same = std::ptr::eq(*one, *kept);
        if same {
            *times = times.saturating_add(*more);
        }
        same
    });
    applied
}
