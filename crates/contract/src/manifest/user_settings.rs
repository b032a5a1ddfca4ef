//! What a user sets for an extension under `extensions.<id>` in the settings: whether it is enabled, and its own configuration.

use serde_json::{Map, Value};

/// The setting that enables or disables an extension.
pub const ENABLED: &str = "enabled";

/// Whether an extension is enabled by its user, which goes before its manifest's `enabled`. None where the settings do not say.
pub fn enabled_by_user(set: Option<&Map<String, Value>>) -> Option<bool> {
    set?.get(ENABLED)?.as_bool()
}

/// What an extension gets of its settings: all but whether it is enabled.
pub fn own_settings(set: Option<&Map<String, Value>>) -> Map<String, Value> {
    let mut own = set.cloned().unwrap_or_default();
    own.remove(ENABLED);
    own
}
