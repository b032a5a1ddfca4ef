//! What is kept, what is found, what is refused.

use std::path::Path;

use holdfast_contract::manifest::{LaneKind, lane, parse};
use serde_json::{Value, json};

use crate::shelf::Shelf;
use crate::{get, get_spec, set, set_spec};

fn shelf() -> (tempfile::TempDir, Shelf) {
    let scratch = tempfile::tempdir().unwrap();
    let shelf = Shelf::new(scratch.path().join("data/kv"));
    (scratch, shelf)
}

#[test]
fn the_manifest_is_one_and_says_what_the_code_says() {
    let parsed = parse(Path::new("manifest.yaml"), include_str!("../manifest.yaml")).unwrap();
    assert!(parsed.warnings.is_empty(), "{:?}", parsed.warnings);
    assert_eq!(lane(&parsed.manifest, &[]).unwrap(), LaneKind::Native);
    for spec in [get_spec(), set_spec()] {
        assert_eq!(parsed.manifest.tools[&spec.name].effects, Some(spec.effects));
    }
}

#[test]
fn what_is_kept_is_there_after_a_restart() {
    let (scratch, shelf) = shelf();
    let value = json!({ "name": "Ada", "tags": [1, 2.5, null, true], "text": "ünï" });
    assert_eq!(set(&shelf, &json!({ "key": "user/ada", "value": value })).unwrap()["replaced"], false);
    assert_eq!(set(&shelf, &json!({ "key": "user/bob", "value": 1 })).unwrap()["replaced"], false);
    assert_eq!(set(&shelf, &json!({ "key": "user/bob", "value": 2 })).unwrap()["replaced"], true);
    drop(shelf);

    let shelf = Shelf::new(scratch.path().join("data/kv"));
    let found = get(&shelf, &json!({ "key": "user/ada" })).unwrap();
    assert_eq!(found, json!({ "key": "user/ada", "found": true, "value": value }));
    let all = get(&shelf, &json!({ "glob": "user/*" })).unwrap();
    assert_eq!(all["entries"][1], json!({ "key": "user/bob", "value": 2 }));
    assert_eq!(all["truncated"], false);
    assert_eq!(set(&shelf, &json!({ "key": "user/bob", "value": null })).unwrap()["replaced"], true);
    assert_eq!(get(&shelf, &json!({ "key": "user/bob" })).unwrap()["found"], false);
}

#[test]
fn what_is_found_is_bounded() {
    let (_scratch, shelf) = shelf();
    for index in 0..110 {
        shelf.put(&format!("n/{index:03}"), &json!(index)).unwrap();
    }
    let many = get(&shelf, &json!({ "glob": "n/*" })).unwrap();
    assert_eq!((many["entries"].as_array().unwrap().len(), many["truncated"].clone()), (100, json!(true)));
    for index in 0..4 {
        shelf.put(&format!("large/{index}"), &Value::String("x".repeat(200_000))).unwrap();
    }
    let large = get(&shelf, &json!({ "glob": "large/*" })).unwrap();
    assert_eq!((large["entries"].as_array().unwrap().len(), large["truncated"].clone()), (2, json!(true)));
}

#[test]
fn what_cannot_be_kept_says_why() {
    let (_scratch, shelf) = shelf();
    let fails = |key: &str, value: Value| shelf.put(key, &value).unwrap_err().message;
    assert!(fails("", json!(1)).contains("1 to 512 bytes"));
    assert!(fails(&"k".repeat(600), json!(1)).contains("1 to 512 bytes"));
    assert!(fails("large", Value::String("x".repeat(300_000))).contains("is the limit"));
    assert!(shelf.find("*a*a*a*a*a*a*b").is_err());
    assert!(get(&shelf, &json!({})).is_err());
    let nowhere = Shelf::new("/proc/none/kv".into());
    assert!(nowhere.get("a").unwrap_err().message.contains("cannot be used"));
}
