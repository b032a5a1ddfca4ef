//! The guide in `docs/reference/policy.md` says what the code does.

use std::path::Path;

use holdfast_contract::manifest::yaml::{self, Codes, Format};
use holdfast_contract::problem::Code;
use holdfast_contract::tool::EffectClass::Write;
use holdfast_yaml::Field;
use serde_json::{Value, json};

use crate::profile::{self, CLASSES};
use crate::testing::{Call, policy};
use crate::{Profile, schema};

const GUIDE: &str = include_str!("../../../docs/reference/policy.md");

fn blocks(language: &str) -> Vec<&'static str> {
    let fence = format!("```{language}\n");
    GUIDE.split(&*fence).skip(1).filter_map(|rest| rest.split("\n```").next()).collect()
}

fn as_json(text: &str) -> Value {
    let format = Format { name: "policy", max_bytes: 1 << 20, codes: Codes::all(Code::PolicyInvalid) };
    yaml::read(&format, Path::new("policy.md"), text, |field: &Field<'_>| field.json()).unwrap().value
}

#[test]
fn every_example_in_the_guide_loads_and_fits_the_schema() {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    let examples = blocks("yaml");
    assert!(examples.len() >= 6, "only {} examples were found", examples.len());
    for example in examples {
        let policy = policy(example);
        let document: Value = serde_json::from_slice(policy.document()).unwrap();
        for json in [document, as_json(&example.replace("500_000", "500000").replace("600_000", "600000"))] {
            let errors: Vec<_> = validator.iter_errors(&json).map(|error| error.to_string()).collect();
            assert!(errors.is_empty(), "{example}\n{errors:?}");
        }
    }
}

#[test]
fn the_schema_refuses_what_the_reader_refuses() {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    for wrong in [
        json!({ "profile": "lax" }),
        json!({ "rule": [] }),
        json!({ "rules": [{ "name": "a", "decision": "deny" }] }),
        json!({ "rules": [{ "name": "a", "decision": "deny", "match": { "tool": "x" } }] }),
        json!({ "caps": { "session": { "dollars": -1 } } }),
    ] {
        assert!(!validator.is_valid(&wrong), "{wrong}");
    }
}

#[test]
fn the_table_of_profiles_is_the_one_in_force() {
    for profile in Profile::ALL {
        let cells: Vec<_> = CLASSES
            .into_iter()
            .map(|class| serde_json::to_value(profile::ruling(*profile, class)).unwrap())
            .map(|ruling| ruling.as_str().unwrap().to_owned())
            .collect();
        let row = format!("| `{}` | {} |\n", profile::name(*profile), cells.join(" | "));
        assert!(GUIDE.contains(&row), "{row}");
    }
    for class in CLASSES {
        assert!(GUIDE.contains(&format!("`{}`", profile::class_name(class))));
    }
}

#[test]
fn the_explanation_in_the_guide_is_a_real_one() {
    let call = Call::new("file_write", Write).with(json!({ "path": "/home/me/.ssh/config" }));
    let explanation = policy(blocks("yaml")[1]).explain(&call.request()).to_string();
    assert_eq!(blocks("text"), [explanation]);
}
