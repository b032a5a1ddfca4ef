//! The names of tools: how providers see them, what descriptors register, and what the user's settings change about them.

use std::collections::{BTreeMap, BTreeSet};

use crate::hook::HookPoint;
use crate::ids::{DescriptorId, ExtensionId, RegistryKind, ToolName};
use crate::problem::{Code, Fault};
use crate::registry::{Descriptor, Override, Payload};

/// The most letters that every provider takes in a tool's name.
pub const MAX_WIRE_NAME: usize = 64;

/// What the user's settings change, by kind and id.
pub type Overrides = BTreeMap<RegistryKind, BTreeMap<DescriptorId, Override>>;

/// An override of the user's settings that names nothing that is registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnusedOverride {
    /// The kind that it names.
    pub kind: RegistryKind,
    /// The id that it names.
    pub id: DescriptorId,
    /// The most similar id of this kind that is registered.
    pub similar: Option<DescriptorId>,
}

impl UnusedOverride {
    /// An override of something that is not among these.
    pub fn among(
        kind: &RegistryKind,
        id: &DescriptorId,
        known: &BTreeSet<(RegistryKind, DescriptorId)>,
    ) -> Self {
        let of_kind = known.iter().filter(|(known, _)| known == kind).map(|(_, id)| id.as_str());
        let similar = holdfast_yaml::nearest(id.as_str(), of_kind).map(Into::into);
        Self { kind: kind.clone(), id: id.clone(), similar }
    }
}

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
            Payload::Agent(agent) => vec![agent.tool_name()],
            Payload::Hook(_) | Payload::Hooks(_) | Payload::Other(_) => Vec::new(),
        }
    }
}

/// The kinds of descriptors that something consumes. Settings, manifests and extensions can name any other.
pub const CONSUMED_KINDS: &[&str] = &[
    "tool",
    "agent",
    "command",
    "channel",
    "api",
    "renderer",
    "hook",
    "guardrail",
    "gate",
    "modifier",
    "context-provider",
    "router",
    "response-processor",
    "planning-strategy",
    "memory-provider",
    "messaging-channel",
];

/// Kinds that are known and that nothing consumes in this version, each with what will.
pub const AWAITED_KINDS: &[(&str, &str)] = &[
    ("persona", "personas of extensions"),
    ("hitl-handler", "approvals by extensions"),
    ("provenance", "observers of the log"),
    ("workflow", "the workflow engine"),
    ("workflow-executor", "the workflow engine"),
    ("http-handler", "the HTTP surface"),
];

/// Whether a text can be a kind: small letters, digits and `-`, beginning with a letter.
pub fn is_kind(text: &str) -> bool {
    let fits = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    text.len() <= 64 && text.chars().all(fits) && text.starts_with(|first: char| first.is_ascii_lowercase())
}

/// Whether something consumes a kind, or will.
pub fn is_known_kind(kind: &str) -> bool {
    CONSUMED_KINDS.contains(&kind) || AWAITED_KINDS.iter().any(|(known, _)| *known == kind)
}

/// The known kind that a text may be a misspelling of.
pub fn nearest_kind(text: &str) -> Option<&'static str> {
    let known = CONSUMED_KINDS.iter().copied().chain(AWAITED_KINDS.iter().map(|(kind, _)| *kind));
    holdfast_yaml::nearest(text, known)
}

/// Why a descriptor has no effect, if nothing consumes its kind.
pub fn unconsumed(extension: &ExtensionId, descriptor: &Descriptor) -> Option<Fault> {
    let Descriptor { kind, id, .. } = descriptor;
    if !descriptor.hooks().is_empty() || CONSUMED_KINDS.contains(&kind.as_str()) {
        return None;
    }
    let awaited = AWAITED_KINDS.iter().find(|(known, _)| *known == kind.as_str());
    let why = match (awaited, nearest_kind(kind.as_str())) {
        (Some((_, what)), _) => format!(": {what} are not available in this version"),
        (None, Some(near)) => format!("; did you mean `{near}`?"),
        (None, None) => String::new(),
    };
    let message = format!("nothing consumes kind `{kind}`, of which `{extension}` registers `{id}`{why}");
    Some(Fault::new(Code::KindUnconsumed, message))
}

impl HookPoint {
    /// The kind by which settings and manifests name the hooks of this point.
    pub fn kind(self) -> &'static str {
        match self {
            Self::SanitizeInput
            | Self::GuardInput
            | Self::SanitizeResult
            | Self::GuardResult
            | Self::SanitizeOutput
            | Self::GuardOutput
            | Self::GuardChunk => "guardrail",
            Self::ToolGate => "gate",
            Self::ToolModify => "modifier",
            Self::Context => "context-provider",
            Self::ModelRoute => "router",
            Self::ResponseProcess => "response-processor",
            _ => "hook",
        }
    }
}

impl Descriptor {
    /// The kinds and ids by which settings and manifests name it: its own, and for a hook also what it is, with the id of its extension,
    /// such as `guardrail` and `secret-redaction`.
    pub fn kinds_and_ids(
        &self,
        extension: &ExtensionId,
    ) -> impl Iterator<Item = (RegistryKind, DescriptorId)> + use<> {
        let own = (self.kind.clone(), self.id.clone());
        let as_hook = match &self.payload {
            Payload::Hook(spec) => Some((spec.point.kind().into(), extension.as_str().into())),
            Payload::Hooks(_) => Some((self.kind.clone(), extension.as_str().into())),
            _ => None,
        };
        std::iter::once(own).chain(as_hook)
    }
}

/// The extension that the user's settings give a tool's name to: `overrides.tool.<name>.extension`.
pub fn given_to<'o>(overrides: &'o Overrides, tool: &ToolName) -> Option<&'o ExtensionId> {
    let overridden = overrides.get(&RegistryKind::from("tool"))?.get(&DescriptorId::from(tool.as_str()))?;
    overridden.extension.as_ref()
}

/// What is said where several extensions register one name, and which of them serves, if that is known.
pub fn duplicate(users: &[(&ToolName, &ExtensionId)], serves: Option<&ExtensionId>) -> Fault {
    let users: Vec<String> =
        users.iter().map(|(name, extension)| format!("`{name}` of `{extension}`")).collect();
    let serves = serves.map(|extension| format!("; `{extension}` serves")).unwrap_or_default();
    Fault::new(Code::ToolDuplicate, format!("several tools have one name: {}{serves}", users.join(", ")))
}
