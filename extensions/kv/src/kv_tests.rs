//! Tests of storing, searching and refusing.

use std::path::Path;

use holdfast_contract::manifest::{LaneKind, lane, parse};
use serde_json::{Value, json};

use crate::store::KvStore;
use crate::{get, get_spec, set, set_spec};

fn store() -> (tempfile::TempDir, KvStore) {
    let scratch = tempfile::tempdir().unwrap();
    let store = KvStore::new(scratch.path().join("data/kv"));
    (scratch, store)
}

#[test]
fn the_manifest_is_valid_and_matches_the_code() {
    let parsed = parse(Path::new("manifest.yaml"), include_str!("../manifest.yaml")).unwrap();
    assert!(parsed.warnings.is_empty(), "{:?}", parsed.warnings);
    assert_eq!(lane(&parsed.manifest, &[]).unwrap(), LaneKind::Native);
    for spec in [get_spec(), set_spec()] {
        assert_eq!(parsed.manifest.tools[&spec.name].effects, Some(spec.effects));
    }
}

#[test]
fn values_persist_across_restarts() {
    let (scratch, store) = store();
    let value = json!({ "name": "Ada", "tags": [1, 2.5, null, true], "text": "ünï" });
    assert_eq!(set(&store, &json!({ "key": "user/ada", "value": value })).unwrap()["replaced"], false);
    assert_eq!(set(&store, &json!({ "key": "user/bob", "value": 1 })).unwrap()["replaced"], false);
    assert_eq!(set(&store, &json!({ "key": "user/bob", "value": 2 })).unwrap()["replaced"], true);
    drop(store);

    let store = KvStore::new(scratch.path().join("data/kv"));
    let found = get(&store, &json!({ "key": "user/ada" })).unwrap();
    assert_eq!(found, json!({ "key": "user/ada", "found": true, "value": value }));
    let all = get(&store, &json!({ "glob": "user/*" })).unwrap();
    assert_eq!(all["entries"][1], json!({ "key": "user/bob", "value": 2 }));
    assert_eq!(all["truncated"], false);
    assert_eq!(set(&store, &json!({ "key": "user/bob", "value": null })).unwrap()["replaced"], true);
    assert_eq!(get(&store, &json!({ "key": "user/bob" })).unwrap()["found"], false);
}

#[test]
fn search_results_are_limited() {
    let (_scratch, store) = store();
    for index in 0..110 {
        store.put(&format!("n/{index:03}"), &json!(index)).unwrap();
    }
    let many = get(&store, &json!({ "glob": "n/*" })).unwrap();
    assert_eq!((many["entries"].as_array().unwrap().len(), many["truncated"].clone()), (100, json!(true)));
    for index in 0..4 {
        store.put(&format!("large/{index}"), &Value::String("x".repeat(200_000))).unwrap();
    }
    let large = get(&store, &json!({ "glob": "large/*" })).unwrap();
    assert_eq!((large["entries"].as_array().unwrap().len(), large["truncated"].clone()), (2, json!(true)));
}

#[test]
fn invalid_keys_and_values_are_refused() {
    let (_scratch, store) = store();
    let fails = |key: &str, value: Value| store.put(key, &value).unwrap_err().message;
    assert!(fails("", json!(1)).contains("1 to 512 bytes"));
    assert!(fails(&"k".repeat(600), json!(1)).contains("1 to 512 bytes"));
    assert!(fails("large", Value::String("x".repeat(300_000))).contains("is the limit"));
    assert!(store.find("*a*a*a*a*a*a*b").is_err());
    assert!(get(&store, &json!({})).is_err());
    let nowhere = KvStore::new("/proc/none/kv".into());
    assert!(nowhere.get("a").unwrap_err().message.contains("cannot be used"));
}

#[test]
fn the_values_of_another_programs_store_are_taken_over_once() {
    let (scratch, store) = store();
    let folder = scratch.path().join("data/kv");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("values.json"), r#"{"u.name": "Ada", "u.town": "Linz"}"#).unwrap();
    let all = get(&store, &json!({ "key": "u.*" })).unwrap();
    assert_eq!(all["entries"].as_array().unwrap().len(), 2, "a key with a star is a glob: {all}");
    for gone in [json!({ "key": "u.town", "value": "" }), json!({ "key": "u.town" })] {
        set(&store, &gone).unwrap();
        assert_eq!(get(&store, &json!({ "key": "u.town" })).unwrap()["found"], false);
    }
    drop(store);
    let store = KvStore::new(folder.clone());
    assert_eq!(get(&store, &json!({ "key": "u.town" })).unwrap()["found"], false, "it does not come back");
    assert!(folder.join("values.json.imported").exists() && !folder.join("values.json").exists());
}
