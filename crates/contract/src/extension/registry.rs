//! What is registered, and the frozen view of it that a turn is pinned to.

use std::sync::{Arc, OnceLock};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::agents::{AgentMode, AgentSpec, AgentUse, ToolScope};
use crate::content::Content;
use crate::digest::Digest;
use crate::hook::{HookPoint, HookSpec};
use crate::ids::{AgentId, DescriptorId, ExtensionId, Generation, HookId, RegistryKind, Seq, ToolName};
use crate::problem::{Code, Fault};
use crate::tool::ToolSpec;

/// One activation of one extension: exactly which code a frame speaks of.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExtensionRef {
    /// The extension.
    pub id: ExtensionId,
    /// Its version, as its manifest has it.
    pub version: Arc<str>,
    /// The digest of its content.
    pub digest: Digest,
    /// Which activation.
    pub generation: Generation,
}

/// Something an extension registers. Descriptors of one `(kind, id)` form a stack.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Descriptor {
    /// The registry.
    pub kind: RegistryKind,
    /// The id within it; a tool's is its name.
    pub id: DescriptorId,
    /// Higher is active; without one, the extension's own counts, and then 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// Secrets that it cannot do without and that are missing. While there are any, it is not registered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing_secrets: Vec<String>,
    /// What is registered.
    pub payload: Payload,
}

/// What a channel can do besides writing to a user who is named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ChannelFeatures {
    /// It has a default recipient, for messages that name no user.
    pub messages: bool,
    /// It shows answers as they are written.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub streams: bool,
    /// It sends files.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub files: bool,
    /// It shows questions with choices, such as buttons.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub questions: bool,
}

impl ChannelFeatures {
    /// Read from the payload of a channel's descriptor. What it does not say, the channel cannot do.
    pub fn of(payload: &Content) -> Self {
        Self::deserialize(payload.value()).unwrap_or_default()
    }
}

/// What a descriptor registers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Payload {
    /// A tool.
    Tool(Arc<ToolSpec>),
    /// A hook, guardrail, context provider or router.
    Hook(HookSpec),
    /// Several hooks that are one thing, such as a guardrail of questions and answers.
    Hooks(Vec<HookSpec>),
    /// An agent.
    Agent(Box<AgentSpec>),
    /// Anything else, in the words of its kind.
    Other(Content),
}

impl Descriptor {
    /// Whether it is a hook that closes when it fails.
    pub fn guards(&self) -> bool {
        self.hooks().iter().any(HookSpec::judges)
    }

    /// Its hooks.
    pub fn hooks(&self) -> &[HookSpec] {
        match &self.payload {
            Payload::Hook(spec) => std::slice::from_ref(spec),
            Payload::Hooks(specs) => specs,
            Payload::Tool(_) | Payload::Agent(_) | Payload::Other(_) => &[],
        }
    }

    /// The id of the `index`th of its hooks.
    pub fn hook_id(&self, extension: &ExtensionId, index: usize) -> HookId {
        match &self.payload {
            Payload::Hook(_) => self.id.as_str().into(),
            _ => format!("{extension}/{}/{}/{index}", self.kind, self.id).as_str().into(),
        }
    }

    /// A tool's descriptor.
    pub fn tool(spec: ToolSpec) -> Self {
        Self {
            kind: "tool".into(),
            id: spec.name.as_str().into(),
            priority: None,
            missing_secrets: Vec::new(),
            payload: Payload::Tool(Arc::new(spec)),
        }
    }

    /// The descriptor of an extension's `index`th hook.
    pub fn hook(extension: &ExtensionId, index: usize, spec: HookSpec) -> Self {
        Self {
            kind: "hook".into(),
            id: format!("{extension}/{index}").into(),
            priority: None,
            missing_secrets: Vec::new(),
            payload: Payload::Hook(spec),
        }
    }

    /// The descriptor of an extension that is a channel.
    pub fn channel(extension: &ExtensionId, features: ChannelFeatures) -> Self {
        Self {
            kind: "channel".into(),
            id: extension.as_str().into(),
            priority: None,
            missing_secrets: Vec::new(),
            payload: Payload::Other(Content::of(&features)),
        }
    }

    /// The descriptor of a slash command.
    pub fn command(name: &str, description: &str) -> Self {
        let payload = Payload::Other(Content::new(serde_json::json!({})));
        Self { kind: "command".into(), id: name.into(), priority: None, missing_secrets: Vec::new(), payload }
            .described(description)
    }

    /// The same with a description; an empty one adds nothing.
    pub fn described(mut self, description: &str) -> Self {
        if let (Payload::Other(content), false) = (&mut self.payload, description.is_empty()) {
            let mut payload = content.value().clone();
            payload["description"] = description.into();
            *content = Content::new(payload);
        }
        self
    }

    /// An agent's descriptor.
    pub fn agent(spec: AgentSpec) -> Self {
        Self {
            kind: "agent".into(),
            id: spec.id.as_str().into(),
            priority: None,
            missing_secrets: Vec::new(),
            payload: Payload::Agent(Box::new(spec)),
        }
    }
}

/// What a user's settings change about a descriptor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Override {
    /// `false` takes it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Replaces its priority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// The extension whose descriptor is active where several have one. A tool's name that is reserved for a built-in extension goes to
    /// another one only so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extension: Option<ExtensionId>,
}

/// The active set at one moment. Sorted throughout, so that its digest is the same on every machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Registry {
    /// Tools by name, agents in `tool` mode among them.
    pub tools: Vec<ToolEntry>,
    /// Hooks by point, priority, extension and registration index: the order in which they are asked.
    pub hooks: Vec<HookEntry>,
    /// Agents by id.
    pub agents: Vec<AgentSpec>,
    /// The active descriptor of every other `(kind, id)`.
    pub others: Vec<OtherEntry>,
    /// The digest of the policy in force.
    pub policy: Option<Digest>,
    /// Derived from the hooks when it is first needed.
    #[serde(skip)]
    pub hook_index: HookIndex,
}

/// A tool and everyone who implements it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolEntry {
    /// The name.
    pub name: ToolName,
    /// The implementations, the active one first.
    pub stack: Vec<Implementation>,
}

/// One implementation of a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Implementation {
    /// Its extension.
    pub extension: Arc<ExtensionRef>,
    /// Its specification.
    pub spec: Arc<ToolSpec>,
    /// What the call does with an agent, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentUse>,
}

/// A hook with its extension.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HookEntry {
    /// The hook.
    pub id: HookId,
    /// Its extension.
    pub extension: Arc<ExtensionRef>,
    /// Its specification.
    pub spec: HookSpec,
    /// Why it cannot be asked, if its extension is not up. It stays in the registry, and everything it would judge is denied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outage: Option<Box<Outage>>,
}

/// Why the hooks of an extension that judges cannot be asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Outage {
    /// Whether the extension is expected to come up by itself.
    pub state: OutageState,
    /// The fault that a denied call reports.
    pub fault: Fault,
}

/// Where an extension that is not up is on its way back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutageState {
    /// It is starting.
    Starting,
    /// It went down and is started again after a pause.
    Restarting,
    /// It stays down until something changes: its files, its settings, or a restart by the user.
    Failed,
}

impl Outage {
    /// The outage of an extension that is in this state for this reason.
    pub fn new(extension: &ExtensionId, state: OutageState, reason: Option<&Fault>) -> Self {
        let state_text = match state {
            OutageState::Starting => "is still starting",
            OutageState::Restarting => "went down and is being restarted",
            OutageState::Failed => "is down",
        };
        let reason = reason.map(|fault| format!(" ({fault})")).unwrap_or_default();
        let message = format!(
            "`{extension}` has to judge this and {state_text}{reason}: denied until it is up. \
             `holdfast ext doctor {extension}` says what is wrong, `holdfast ext restart {extension}` starts it again."
        );
        Self { state, fault: Fault::new(Code::GateUnavailable, message) }
    }

    /// Whether the extension comes up by itself, so that waiting for it makes sense.
    pub fn is_passing(&self) -> bool {
        self.state != OutageState::Failed
    }
}

/// Hooks to ask, in order, and their names, each in one piece that all who ask them share.
#[derive(Clone, Debug)]
pub struct AskedHooks {
    /// The hooks.
    pub entries: Arc<[HookEntry]>,
    /// Their names.
    pub ids: Arc<[HookId]>,
}

impl AskedHooks {
    /// These hooks.
    pub fn new(entries: Arc<[HookEntry]>) -> Self {
        let ids = entries.iter().map(|hook| hook.id.clone()).collect();
        Self { entries, ids }
    }
}

/// The hooks of one point, derived from the registry.
#[derive(Clone, Debug)]
pub struct PointHooks {
    /// Whether every matcher matches everything.
    pub match_all: bool,
    /// All that are asked, the policy among them.
    pub ids: Arc<[HookId]>,
    /// The hooks without the policy.
    pub hooks: AskedHooks,
}

/// The hooks of each point, in the order of the points. Derived when it is first needed; a registry does not change after that.
#[derive(Clone, Debug, Default)]
pub struct HookIndex(OnceLock<Vec<PointHooks>>);

impl HookIndex {
    /// The index, built by this function if it does not exist.
    #[inline]
    pub fn get_or_init(&self, build: impl FnOnce() -> Vec<PointHooks>) -> &[PointHooks] {
        self.0.get_or_init(build)
    }
}

/// It follows from the rest of the registry.
impl PartialEq for HookIndex {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// A descriptor of an open kind with its extension.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OtherEntry {
    /// The registry.
    pub kind: RegistryKind,
    /// The id within it.
    pub id: DescriptorId,
    /// Its extension.
    pub extension: Arc<ExtensionRef>,
    /// What is registered.
    pub payload: Content,
}

impl Registry {
    /// The tool of this name.
    pub fn tool(&self, name: &ToolName) -> Option<&ToolEntry> {
        let place = self.tools.binary_search_by(|entry| entry.name.as_str().cmp(name.as_str())).ok()?;
        self.tools.get(place)
    }

    /// The extension that an agent belongs to.
    pub fn owner(&self, agent: &AgentId) -> Option<&ExtensionId> {
        let active = self.tools.iter().filter_map(|entry| entry.stack.first());
        let mut theirs =
            active.filter(|active| active.agent.as_ref().and_then(AgentUse::agent) == Some(agent));
        theirs.next().map(|active| &active.extension.id)
    }

    /// The agent of this id.
    pub fn agent(&self, id: &AgentId) -> Option<&AgentSpec> {
        self.agents.iter().find(|agent| agent.id == *id)
    }

    /// The hooks of a point, in the order in which they are asked.
    pub fn hooks_at(&self, point: HookPoint) -> &[HookEntry] {
        let start = self.hooks.partition_point(|hook| hook.spec.point < point);
        let length = self.hooks[start..].partition_point(|hook| hook.spec.point == point);
        &self.hooks[start..start + length]
    }

    /// Whether a hook that judges cannot be asked now, but its extension is on its way up.
    pub fn has_passing_outage(&self) -> bool {
        self.hooks.iter().any(|hook| hook.outage.as_ref().is_some_and(|outage| outage.is_passing()))
    }

    /// The hook of this id.
    pub fn hook(&self, id: &HookId) -> Option<&HookEntry> {
        self.hooks.iter().find(|hook| hook.id == *id)
    }
}

/// Which registry a turn ran on: the system frame that made it, and its digest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RegistryRef {
    /// The `registry.changed` frame in the system stream.
    pub seq: Seq,
    /// The digest of the registry's canonical JSON, and its key in the store.
    pub digest: Digest,
}

/// A registry as a turn holds it: the reference is recorded, the view itself is resolved from the store when it is read back.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct RegistryPin {
    /// What is recorded.
    pub reference: RegistryRef,
    /// The view, once resolved.
    #[serde(skip)]
    pub view: Option<Arc<Registry>>,
}

impl RegistryPin {
    /// A pin to a view that is loaded.
    pub fn new(reference: RegistryRef, view: Arc<Registry>) -> Self {
        Self { reference, view: Some(view) }
    }
}

impl PartialEq for RegistryPin {
    fn eq(&self, other: &Self) -> bool {
        self.reference == other.reference
    }
}
