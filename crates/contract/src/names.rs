//! The names of tools: how providers see them, which are reserved for built-in extensions, and which several extensions have.
//!
//! Two names that a provider cannot tell apart count as one here.

use std::collections::{BTreeMap, BTreeSet};

use crate::agents::AgentMode;
use crate::ids::{DescriptorId, ExtensionId, RegistryKind, ToolName};
use crate::problem::{Code, Fault};
use crate::registry::{Descriptor, Override, Payload, Registry};

/// The most letters that every provider takes in a tool's name.
pub const MAX_WIRE_NAME: usize = 64;

/// What the user's settings change, by kind and id.
pub type Overrides = BTreeMap<RegistryKind, BTreeMap<DescriptorId, Override>>;

impl ToolName {
    /// The name as providers are sent it: letters, digits, `_` and `-` only, and not longer than all of them take.
    pub fn on_wire(&self) -> String {
        let letter =
            |letter: char| if letter.is_ascii_alphanumeric() || letter == '-' { letter } else { '_' };
        self.as_str().chars().map(letter).take(MAX_WIRE_NAME).collect()
    }
}

impl Descriptor {
    /// The names under which it can be called: a tool's own, or that of the tool by which an agent is reached. The way back from a
    /// handoff is nobody's own.
    pub fn tool_names(&self) -> Vec<ToolName> {
        match &self.payload {
            Payload::Tool(spec) if spec.name.as_str() == self.id.as_str() => vec![spec.name.clone()],
            Payload::Tool(spec) => vec![spec.name.clone(), self.id.as_str().into()],
            Payload::Agent(agent) => vec![match agent.mode {
                AgentMode::Tool => agent.id.as_str().into(),
                AgentMode::Handoff => format!("transfer_to_{}", agent.id).into(),
            }],
            Payload::Hook(_) | Payload::Other(_) => Vec::new(),
        }
    }
}

/// The extension that the user's settings give a tool's name to: `overrides.tool.<name>.extension`.
pub fn given_to<'o>(overrides: &'o Overrides, tool: &ToolName) -> Option<&'o ExtensionId> {
    let overridden = overrides.get(&RegistryKind::from("tool"))?.get(&DescriptorId::from(tool.as_str()))?;
    overridden.extension.as_ref()
}

/// The names that built-in extensions keep for their tools, whether or not they offer them at the moment.
#[derive(Clone, Debug, Default)]
pub struct ReservedNames(BTreeMap<String, ExtensionId>);

impl ReservedNames {
    /// Reserves these names for a built-in extension.
    pub fn reserve(&mut self, extension: &ExtensionId, names: impl IntoIterator<Item = ToolName>) {
        self.0.extend(names.into_iter().map(|name| (name.on_wire(), extension.clone())));
    }

    /// Why an extension that is not built in does not get what it registers, if it does not.
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

/// What is to be said to each extension about names that others register too, and that the settings give to nobody.
pub fn duplicates(registry: &Registry, overrides: &Overrides) -> Vec<(ExtensionId, Fault)> {
    let mut users: BTreeMap<String, Vec<(&ToolName, &ExtensionId)>> = BTreeMap::new();
    for entry in &registry.tools {
        let all = entry.stack.iter().map(|implementation| (&entry.name, &implementation.extension.id));
        users.entry(entry.name.on_wire()).or_default().extend(all);
    }
    let mut told = Vec::new();
    for users in users.into_values() {
        let extensions: BTreeSet<&ExtensionId> = users.iter().map(|(_, extension)| *extension).collect();
        if extensions.len() < 2 || users.iter().any(|(name, _)| given_to(overrides, name).is_some()) {
            continue;
        }
        let same = users.windows(2).all(|pair| pair[0].0 == pair[1].0);
        let fault = duplicate(&users, users.first().filter(|_| same).map(|(_, extension)| *extension));
        told.extend(extensions.into_iter().map(|extension| (extension.clone(), fault.clone())));
    }
    told
}

/// What is said where several extensions register one name, and which of them serves, if that is known.
pub fn duplicate(users: &[(&ToolName, &ExtensionId)], serves: Option<&ExtensionId>) -> Fault {
    let users: Vec<String> =
        users.iter().map(|(name, extension)| format!("`{name}` of `{extension}`")).collect();
    let serves = serves.map(|extension| format!("; `{extension}` serves")).unwrap_or_default();
    Fault::new(Code::ToolDuplicate, format!("several tools have one name: {}{serves}", users.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::ToolSpec;

    fn tool(name: &str) -> Descriptor {
        Descriptor::tool(ToolSpec::named(name, "A tool."))
    }

    #[test]
    fn names_that_a_provider_cannot_tell_apart_are_reserved_together() {
        let mut reserved = ReservedNames::default();
        reserved.reserve(&"files".into(), ["file_read".into()]);
        let refused = |overrides: &Overrides, extension: &str, name: &str| {
            reserved.refusal(overrides, &extension.into(), &tool(name)).map(|fault| fault.code)
        };
        let none = Overrides::new();
        for name in ["file_read", "file.read", "file read", "file/read", "fileéread"] {
            assert_eq!(refused(&none, "helper", name), Some(Code::ToolReserved), "{name}");
        }
        for name in ["file-read", "file_reads", "File_Read", "read"] {
            assert_eq!(refused(&none, "helper", name), None, "{name}");
        }
        let mut disguised = tool("harmless");
        disguised.id = "file_read".into();
        assert!(reserved.refusal(&none, &"helper".into(), &disguised).is_some(), "by its id");

        let given = Override { extension: Some("helper".into()), ..Override::default() };
        let overrides = Overrides::from([("tool".into(), BTreeMap::from([("file.read".into(), given)]))]);
        assert_eq!(refused(&overrides, "helper", "file.read"), None);
        assert_eq!(refused(&overrides, "helper", "file_read"), Some(Code::ToolReserved), "another name");
        assert_eq!(refused(&overrides, "other", "file.read"), Some(Code::ToolReserved), "another extension");
    }
}
