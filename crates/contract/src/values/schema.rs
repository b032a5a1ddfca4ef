//! JSON Schemas of what others rely on, generated from the types: what `holdfast schema` prints.

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::body::{FrameKind, FrameOrigin};
use crate::frame::Frame;
use crate::manifest::Manifest;
use crate::protocol::{HookVerdict, ProcessWelcome, ToExtension, ToHost};

/// The schema of a stored frame, with a `oneOf` over kinds and their bodies.
pub fn frames() -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let kinds: Vec<Value> = FrameKind::ALL.iter().map(|kind| kind_schema(*kind, &mut generator)).collect();
    let mut schema = generator.root_schema_for::<Frame>().to_value();
    let definitions = definitions(&mut generator);
    if let Value::Object(fields) = &mut schema {
        fields.insert("title".into(), json!("Holdfast frame"));
        fields.insert("oneOf".into(), Value::Array(kinds));
        fields.insert("$defs".into(), Value::Object(definitions));
    }
    schema
}

fn kind_schema(kind: FrameKind, generator: &mut SchemaGenerator) -> Value {
    let body = kind.body_schema(generator).to_value();
    let origin = match kind.origin() {
        FrameOrigin::Fact => "fact",
        FrameOrigin::Decision => "decision",
    };
    json!({
        "description": format!("{} ({origin})", kind.describe()),
        "properties": {
            "kind": { "const": kind.as_str() },
            "body": { "anyOf": [body, { "type": "null" }] },
        },
    })
}

fn definitions(generator: &mut SchemaGenerator) -> Map<String, Value> {
    generator.take_definitions(true)
}

/// The schema of `manifest.yaml`.
pub fn manifest() -> Value {
    SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<Manifest>().to_value()
}

/// The schemas of what an extension that is a process and its host say to each other: `method` and `params` of either side's messages,
/// and the answers that have a form.
pub fn process() -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let to_extension = generator.subschema_for::<ToExtension>().to_value();
    let to_host = generator.subschema_for::<ToHost>().to_value();
    let answers = json!({
        "hello": generator.subschema_for::<ProcessWelcome>().to_value(),
        "hook": { "anyOf": [generator.subschema_for::<HookVerdict>().to_value(), { "type": "null" }] },
        "health": { "type": "boolean" },
    });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Holdfast process protocol",
        "to_extension": to_extension,
        "to_host": to_host,
        "answers": answers,
        "$defs": definitions(&mut generator),
    })
}
