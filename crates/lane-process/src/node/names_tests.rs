//! The names of a pack's tools.

use std::path::Path;

use holdfast_contract::ids::ToolName;
use holdfast_contract::manifest::parse;
use holdfast_contract::protocol::ProcessWelcome;
use serde_json::{Value, json};

use super::names::{PackNames, TakenNames};

fn named(pack: &Value, taken: &TakenNames) -> (Vec<String>, Vec<String>) {
    let text = "id: pack-kit\nname: Kit\npackage: kit\ntools: { look: { timeout_ms: 7 } }\npolicy: { ask: ['lo*'] }\n";
    let mut manifest = parse(Path::new("manifest.yaml"), text).unwrap().manifest;
    let welcome = json!({ "protocol": "0.1", "tools": [{ "name": "look" }, { "name": "find" }] });
    let mut welcome: ProcessWelcome = serde_json::from_value(welcome).unwrap();
    let names = PackNames::assign(&"pack-kit".into(), pack, taken, &mut welcome, &mut manifest);
    let tools = welcome.exports().descriptors(&manifest).unwrap();
    for tool in &welcome.tools {
        let own = names.own(tool.name.clone());
        assert!(["look", "find"].contains(&own.as_str()));
    }
    let hinted = tools.iter().map(|it| format!("{:?}", it.payload)).filter(|it| it.contains("Millis(7)"));
    assert!(hinted.count() <= 1);
    (tools.iter().map(|tool| tool.id.to_string()).collect(), names.notes().collect())
}

#[test]
fn a_reserved_name_has_the_packs_prefix_unless_the_user_gives_it_away() {
    let mut taken = TakenNames { reserved: ["look".to_owned()].into(), ..TakenNames::default() };
    let (tools, notes) = named(&json!({}), &taken);
    assert_eq!(tools, ["kit__look", "find"]);
    assert_eq!(notes, ["its tool `look` is registered as `kit__look`"]);
    let given = json!({ "tool": { "look": { "extension": "pack-kit" } } });
    taken.overrides = serde_json::from_value(given).unwrap();
    assert_eq!(named(&json!({}), &taken).0, ["look", "find"]);
}

#[test]
fn a_prefix_of_the_settings_applies_to_every_tool_and_disabled_ones_are_left_out() {
    let taken = TakenNames::default();
    assert_eq!(named(&json!({ "prefix": "my" }), &taken).0, ["my__look", "my__find"]);
    assert_eq!(named(&json!({ "disabled": ["look"] }), &taken).0, ["find"]);
    let names = PackNames::default();
    assert_eq!(names.own(ToolName::from("look")), ToolName::from("look"));
}
