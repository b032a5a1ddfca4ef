//! Tool names that are reserved for built-in extensions, and names that several extensions register. Two names that a provider cannot
//! tell apart count as one.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_contract::ids::{ExtensionId, ToolName};
use holdfast_contract::names::{Overrides, duplicate, given_to};
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::registry::{Descriptor, Registry};

/// The names that built-in extensions reserve for their tools, whether or not they offer them at the moment.
#[derive(Clone, Debug, Default)]
pub struct ReservedNames(BTreeMap<String, ExtensionId>);

impl ReservedNames {
    /// Reserves these names for a built-in extension.
    pub fn reserve(&mut self, extension: &ExtensionId, names: impl IntoIterator<Item = ToolName>) {
        self.0.extend(names.into_iter().map(|name| (name.on_wire(), extension.clone())));
    }

    /// Why a descriptor of an extension that is not built in is not registered, if it is not.
    pub fn refusal(
        &self,
        overrides: &Overrides,
        extension: &ExtensionId,
        descriptor: &Descriptor,
    ) -> Option<Fault> {
        if self.0.is_empty() {
            return None;
        }
        descriptor.tool_names().into_iter().find_map(|name| {
            let owner = self.0.get(&name.on_wire())?;
            if given_to(overrides, &name) == Some(extension) {
                return None;
            }
            let message = format!(
                "the tool `{name}` of `{extension}` is not registered: the name is reserved for the built-in extension `{owner}`"
            );
            Some(Fault::new(Code::ToolReserved, message))
        })
    }
}

/// Why a descriptor that needs secrets is not registered.
pub(crate) fn secrets_missing(extension: &ExtensionId, descriptor: &Descriptor) -> Fault {
    let Descriptor { kind, id, missing_secrets, .. } = descriptor;
    let message = format!(
        "the {kind} `{id}` of `{extension}` is not registered: it needs `{}`. `holdfast setup {extension}` asks for it; \
         it counts when the extension starts next",
        missing_secrets.join("`, `")
    );
    Fault::new(Code::SecretMissing, message)
}

/// A warning for each extension that registers a name which another one registers too, unless the settings give the name away.
pub(crate) fn duplicates(registry: &Registry, overrides: &Overrides) -> Vec<(ExtensionId, Fault)> {
    let mut users: BTreeMap<String, Vec<(&ToolName, &ExtensionId)>> = BTreeMap::new();
    for entry in &registry.tools {
        let all = entry.stack.iter().map(|implementation| (&entry.name, &implementation.extension.id));
        users.entry(entry.name.on_wire()).or_default().extend(all);
    }
    let mut warnings = Vec::new();
    for users in users.into_values() {
        let extensions: BTreeSet<&ExtensionId> = users.iter().map(|(_, extension)| *extension).collect();
        if extensions.len() < 2 || users.iter().any(|(name, _)| given_to(overrides, name).is_some()) {
            continue;
        }
        // Only implementations of one name stand in one stack, whose first is active.
        let same_name = users.windows(2).all(|pair| pair[0].0 == pair[1].0);
        let active = users.first().filter(|_| same_name).map(|(_, extension)| *extension);
        let fault = duplicate(&users, active);
        warnings.extend(extensions.into_iter().map(|extension| (extension.clone(), fault.clone())));
    }
    warnings
}
