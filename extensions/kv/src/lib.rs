//! A key-value store that persists across sessions and restarts, in the extension's data folder.
//!
//! [`extension`] is the entry point. `store` is the database; the two tools and the methods for other extensions are here.

mod store;

#[cfg(test)]
mod kv_tests;

use std::path::PathBuf;
use std::sync::Arc;

use holdfast_contract::content::Content;
use holdfast_contract::ids::CallId;
use holdfast_contract::message::TurnView;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::tool::{EffectClass, ToolSpec};
use holdfast_contract::wire::{Host, Later};
use holdfast_lane_native::input::{anything, parameter, takes, text};
use holdfast_lane_native::{Api, NativeExtension, Tool, on_thread};
use serde_json::{Map, Value, json};

use crate::store::{KvStore, MAX_FOUND, MAX_KEY_BYTES, MAX_VALUE_BYTES};

/// The extension, with its data folder. The folder is created at the first access.
pub fn extension(data_dir: PathBuf) -> NativeExtension {
    let store = Arc::new(KvStore::new(data_dir));
    NativeExtension::new("kv", env!("CARGO_PKG_VERSION"))
        .tool(KvTool { spec: get_spec(), store: store.clone(), work: get })
        .tool(KvTool { spec: set_spec(), store: store.clone(), work: set })
        .api(Methods(store))
}

/// The methods for other extensions: `get`, `set`, `delete`, `keys` and `get_matching`.
struct Methods(Arc<KvStore>);

impl Api for Methods {
    fn call(&self, method: String, arguments: Content, _: Arc<dyn Host>) -> Later<Result<Content, Fault>> {
        let store = self.0.clone();
        on_thread(move || {
            let given = arguments.value().clone();
            // Arguments are positional or named.
            let argument = |place: usize, name: &str| given.get(place).or_else(|| given.get(name));
            let word = |place: usize, name: &str| argument(place, name).and_then(Value::as_str);
            let missing = |name: &str| Fault::new(Code::ToolArguments, format!("`{name}` is missing"));
            let key = || word(0, "key").ok_or_else(|| missing("key"));
            let value = match method.as_str() {
                "get" => store.get(key()?)?.or_else(|| argument(1, "default").cloned()).unwrap_or_default(),
                "set" => match argument(1, "value").ok_or_else(|| missing("value"))? {
                    Value::Null => store.remove(key()?)?.into(),
                    value => store.put(key()?, value)?.into(),
                },
                "delete" => store.remove(key()?)?.into(),
                "keys" => {
                    let found = store.find(word(0, "glob").unwrap_or("*"))?;
                    found.entries.into_iter().map(|(key, _)| Value::String(key)).collect()
                }
                "get_matching" => {
                    let pattern = word(0, "pattern").ok_or_else(|| missing("pattern"))?;
                    store.find(pattern)?.entries.into_iter().collect::<Map<String, Value>>().into()
                }
                _ => return Err(Fault::new(Code::ToolFailed, format!("there is no method `{method}`"))),
            };
            Ok(Content::new(value))
        })
    }
}

struct KvTool {
    spec: ToolSpec,
    store: Arc<KvStore>,
    work: fn(&KvStore, &Value) -> Result<Value, Fault>,
}

impl Tool for KvTool {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    fn call(
        &self,
        _: CallId,
        arguments: Content,
        _: TurnView,
        _: Arc<dyn Host>,
    ) -> Later<Result<Content, Fault>> {
        let (store, work) = (self.store.clone(), self.work);
        on_thread(move || work(&store, arguments.value()).map(Content::new))
    }
}

fn get_spec() -> ToolSpec {
    ToolSpec {
        effects: EffectClass::Read,
        input_schema: takes([
            text(
                "key",
                "The value of this key; one with `*` or `?` is taken as a glob if there is no such key.",
            )
            .optional(),
            text("glob", format!("All keys that match, such as `user/*`; at most {MAX_FOUND}.")).optional(),
        ]),
        ..ToolSpec::named(
            "kv_get",
            "Gives what was kept under a `key`, or under all keys that match a `glob`. Name one of the two.",
        )
    }
}

fn set_spec() -> ToolSpec {
    ToolSpec {
        effects: EffectClass::Write,
        input_schema: takes([
            parameter("key", json!({ "type": "string", "minLength": 1, "maxLength": MAX_KEY_BYTES })),
            anything(
                "value",
                format!("Any JSON of at most {MAX_VALUE_BYTES} bytes; `null`, an empty text or nothing removes the key."),
            )
            .optional(),
        ]),
        ..ToolSpec::named("kv_set", "Keeps a value under a key, across sessions and restarts.")
    }
}

fn get(store: &KvStore, arguments: &Value) -> Result<Value, Fault> {
    match (arguments["key"].as_str(), arguments["glob"].as_str()) {
        (Some(key), None) => {
            let value = store.get(key)?;
            if value.is_none() && key.contains(['*', '?']) {
                return matching(store, key);
            }
            Ok(json!({ "key": key, "found": value.is_some(), "value": value }))
        }
        (None, Some(glob)) => matching(store, glob),
        _ => Err(Fault::new(Code::ToolArguments, "name either a `key` or a `glob`")),
    }
}

fn matching(store: &KvStore, glob: &str) -> Result<Value, Fault> {
    let found = store.find(glob)?;
    let entries: Vec<_> =
        found.entries.into_iter().map(|(key, value)| json!({ "key": key, "value": value })).collect();
    let mut result = json!({ "entries": entries, "truncated": found.more });
    if found.more {
        result["note"] = "truncated: there is more; use a narrower glob".into();
    }
    Ok(result)
}

fn set(store: &KvStore, arguments: &Value) -> Result<Value, Fault> {
    let missing = || Fault::new(Code::ToolArguments, "`key` is missing");
    let key = arguments["key"].as_str().ok_or_else(missing)?;
    let replaced = match &arguments["value"] {
        Value::Null => store.remove(key)?,
        Value::String(text) if text.is_empty() => store.remove(key)?,
        value => store.put(key, value)?,
    };
    Ok(json!({ "key": key, "replaced": replaced }))
}
