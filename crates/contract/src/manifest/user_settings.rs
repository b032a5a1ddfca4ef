//! What a user sets for an extension under `extensions.<id>` in the settings: whether it is enabled, whether it
//! takes the place of a built-in one, and its own configuration.

use serde_json::{Map, Value};

/// The setting that enables or disables an extension.
pub const ENABLED: &str = "enabled";

/// Whether an extension is enabled by its user, which goes before its manifest's `enabled`. None where the settings do not say.
pub fn enabled_by_user(set: Option<&Map<String, Value>>) -> Option<bool> {
    set?.get(ENABLED)?.as_bool()
}

/// The setting that lets a folder take the place of the built-in extension of its id.
pub const REPLACE: &str = "replace";

/// Whether the user wants a folder in place of the built-in extension of its id.
pub fn replaces_built_in(set: Option<&Map<String, Value>>) -> bool {
    set.and_then(|set| set.get(REPLACE)).is_some_and(|value| value == &Value::Bool(true))
}

/// What an extension gets of its settings: all but whether it is enabled, and whether it replaces a built-in one.
pub fn own_settings(set: Option<&Map<String, Value>>) -> Map<String, Value> {
    let mut own = set.cloned().unwrap_or_default();
    own.remove(ENABLED);
    own.remove(REPLACE);
    own
}
