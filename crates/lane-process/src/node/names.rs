//! The names under which the tools of a pack are registered. Packs choose names without knowing of each other or of this program: one that
//! a built-in extension has reserved is registered with a prefix, `PACK__NAME`, and so is every name where the settings set a prefix.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_contract::ids::{ExtensionId, ToolName};
use holdfast_contract::manifest::Manifest;
use holdfast_contract::matcher::glob;
use holdfast_contract::names::{Overrides, given_to};
use holdfast_contract::protocol::ProcessWelcome;
use serde_json::Value;

/// How the ids of packs begin that the settings name. Prefixes are without it.
const PACK_ID: &str = "pack-";

/// The names that built-in extensions have, and what the user's settings say of names.
#[derive(Clone, Debug, Default)]
pub struct TakenNames {
    /// The names as providers see them.
    pub reserved: BTreeSet<String>,
    /// The names that the settings give to an extension.
    pub overrides: Overrides,
}

/// What of a pack is registered under another name, or not at all.
#[derive(Clone, Debug, Default)]
pub(crate) struct PackNames {
    /// The pack's own names, by those that are registered.
    own: BTreeMap<ToolName, ToolName>,
}

impl PackNames {
    /// Renames the tools of a welcome, and what the manifest says of them. Leaves out those that the settings disable.
    pub(crate) fn assign(
        id: &ExtensionId,
        pack: &Value,
        taken: &TakenNames,
        welcome: &mut ProcessWelcome,
        manifest: &mut Manifest,
    ) -> Self {
        let prefix = pack.get("prefix").and_then(Value::as_str);
        let disabled: Vec<&str> = pack
            .get("disabled")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        welcome.tools.retain(|tool| !disabled.contains(&tool.name.as_str()));
        let mut own = BTreeMap::new();
        for tool in &mut welcome.tools {
            let reserved = taken.reserved.contains(&tool.name.on_wire());
            let is_given = || given_to(&taken.overrides, &tool.name) == Some(id);
            if prefix.is_none() && (!reserved || is_given()) {
                continue;
            }
            let prefix = prefix.unwrap_or_else(|| id.as_str().trim_start_matches(PACK_ID));
            let name = ToolName::from(format!("{prefix}__{}", tool.name).as_str());
            if let Some(hint) = manifest.tools.get(&tool.name).copied() {
                manifest.tools.entry(name.clone()).or_insert(hint);
            }
            if manifest.policy.ask.iter().any(|pattern| glob(pattern, tool.name.as_str())) {
                manifest.policy.ask.push(name.to_string());
            }
            own.insert(name.clone(), std::mem::replace(&mut tool.name, name));
        }
        Self { own }
    }

    /// The pack's own name of a tool.
    pub(crate) fn own(&self, registered: ToolName) -> ToolName {
        self.own.get(&registered).cloned().unwrap_or(registered)
    }

    /// The tools that have another name, for the user.
    pub(crate) fn notes(&self) -> impl Iterator<Item = String> {
        self.own.iter().map(|(name, own)| format!("its tool `{own}` is registered as `{name}`"))
    }
}
