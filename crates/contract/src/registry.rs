//! What is registered, and the frozen view of it that a turn is pinned to.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use crate::agents::{AgentMode, AgentSpec, AgentUse, ToolScope};
use crate::content::Content;
use crate::digest::Digest;
use crate::hook::{HookPoint, HookSpec};
use crate::ids::{AgentId, DescriptorId, ExtensionId, Generation, HookId, RegistryKind, Seq, ToolName};
use crate::names::Overrides;
use crate::problem::{Code, Fault};
use crate::round::Round;
use crate::system_frames::StackChange;
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
    /// What is registered.
    pub payload: Payload,
}

/// What a descriptor registers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Payload {
    /// A tool.
    Tool(Arc<ToolSpec>),
    /// A hook, guardrail, context provider or router.
    Hook(HookSpec),
    /// An agent.
    Agent(AgentSpec),
    /// Anything else, in the words of its kind.
    Other(Content),
}

impl Descriptor {
    /// Whether it is a hook that closes when it fails.
    pub fn guards(&self) -> bool {
        matches!(&self.payload, Payload::Hook(spec) if spec.judges())
    }

    /// A tool's descriptor.
    pub fn tool(spec: ToolSpec) -> Self {
        Self {
            kind: "tool".into(),
            id: spec.name.as_str().into(),
            priority: None,
            payload: Payload::Tool(Arc::new(spec)),
        }
    }

    /// The descriptor of an extension's `index`th hook.
    pub fn hook(extension: &ExtensionId, index: usize, spec: HookSpec) -> Self {
        Self {
            kind: "hook".into(),
            id: format!("{extension}/{index}").into(),
            priority: None,
            payload: Payload::Hook(spec),
        }
    }

    /// The descriptor of an extension that is a channel, and whether it knows whom to write to where no user is named.
    pub fn channel(extension: &ExtensionId, messages: bool) -> Self {
        Self {
            kind: "channel".into(),
            id: extension.as_str().into(),
            priority: None,
            payload: Payload::Other(Content::new(serde_json::json!({ "messages": messages }))),
        }
    }

    /// The same for a channel that can do more, if it can: `streams` shows answers as they are written, `files` sends files. Nothing is
    /// added where it cannot.
    pub fn able(mut self, what: &str, can: bool) -> Self {
        if let (Payload::Other(content), true) = (&mut self.payload, can) {
            let mut payload = content.value().cloned().unwrap_or_default();
            payload[what] = true.into();
            *content = Content::new(payload);
        }
        self
    }

    /// The descriptor of a slash command.
    pub fn command(name: &str, description: &str) -> Self {
        let payload = Payload::Other(Content::new(serde_json::json!({})));
        Self { kind: "command".into(), id: name.into(), priority: None, payload }.described(description)
    }

    /// The same with words about it; nothing is added where there are none.
    pub fn described(mut self, description: &str) -> Self {
        if let (Payload::Other(content), false) = (&mut self.payload, description.is_empty()) {
            let mut payload = content.value().cloned().unwrap_or_default();
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
            payload: Payload::Agent(spec),
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
    /// What the lookups below have made so far.
    #[serde(skip)]
    pub whole: WholeRounds,
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
    /// Why it cannot be asked, if its extension is not up. It stays in the registry, and whatever it would judge is denied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outage: Option<Box<Outage>>,
}

/// Why the hooks of an extension that judges cannot be asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Outage {
    /// Whether the extension is expected to come up by itself.
    pub state: OutageState,
    /// What whoever is denied is told.
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
    /// It stays down until something changes: its files, its settings, or somebody restarts it.
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
    fn new(entries: Arc<[HookEntry]>) -> Self {
        let ids = entries.iter().map(|hook| hook.id.clone()).collect();
        Self { entries, ids }
    }
}

/// A round in which all hooks of a point are asked, as nearly all rounds are.
#[derive(Clone, Debug)]
struct WholeRound {
    /// Whether every matcher matches everything.
    always: bool,
    /// All who are asked, gate 0 among them.
    everyone: Arc<[HookId]>,
    hooks: AskedHooks,
}

impl WholeRound {
    fn new(point: HookPoint, hooks: &[HookEntry]) -> Self {
        let always = hooks.iter().all(|hook| hook.spec.matcher.is_any());
        let everyone = everyone(point, hooks.iter());
        Self { always, everyone, hooks: AskedHooks::new(hooks.into()) }
    }
}

/// The rounds of each point, in the order of the points, made when the first one is asked for. A registry does not change after that.
#[derive(Clone, Debug, Default)]
pub struct WholeRounds(OnceLock<Vec<WholeRound>>);

/// They follow from the rest of the registry.
impl PartialEq for WholeRounds {
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

impl ToolEntry {
    fn hands_back(&self) -> bool {
        self.stack.first().is_some_and(|active| active.agent == Some(AgentUse::HandBack))
    }
}

impl HookEntry {
    fn order(&self) -> (HookPoint, i32, &str, u64) {
        let index = self.id.as_str().rsplit('/').next().and_then(|index| index.parse().ok()).unwrap_or(0);
        (self.spec.point, self.spec.priority, self.extension.id.as_str(), index)
    }
}

impl Registry {
    /// The registry that these descriptors make under the user's overrides, and who stands in each stack. The extension that an override
    /// names is on top. Priority is the override's, else the descriptor's, else the extension's, else 0; among equals the latest is on top.
    pub fn of<'a>(
        policy: Option<Digest>,
        overrides: &Overrides,
        standing: impl Iterator<Item = RegisteredDescriptor<'a>>,
    ) -> (Self, Vec<StackChange>) {
        let (mut registry, mut stacks) = (Self { policy, ..Self::default() }, Vec::new());
        let mut places: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for it in standing {
            places.entry((&it.descriptor.kind, &it.descriptor.id)).or_default().push(it);
        }
        for ((kind, id), mut standing) in places {
            let overridden = overrides.get(kind).and_then(|ids| ids.get(id));
            let Override { enabled, priority, extension } = overridden.cloned().unwrap_or_default();
            if enabled == Some(false) {
                continue;
            }
            standing.sort_by_key(|it| {
                let priority = priority.or(it.descriptor.priority).or(it.priority);
                let given = extension.as_ref() == Some(&it.extension.id);
                std::cmp::Reverse((given, priority.unwrap_or(0), it.registered))
            });
            let standing: Vec<_> = standing.iter().map(|it| (it.extension, it.descriptor)).collect();
            registry.enter(&standing, priority);
            let stack = standing.into_iter().map(|(extension, _)| extension.clone()).collect();
            stacks.push(StackChange { kind: kind.clone(), id: id.clone(), stack });
        }
        registry.sort();
        (registry, stacks)
    }

    /// Enters what a stack of descriptors registers, the active one first. The priority is the one that the user gives it.
    pub fn enter(&mut self, stack: &[(&Arc<ExtensionRef>, &Descriptor)], priority: Option<i32>) {
        let Some((extension, Descriptor { kind, id, payload, .. })) = stack.first() else { return };
        let extension = Arc::clone(extension);
        match payload {
            Payload::Tool(_) => {
                let stack = stack.iter().filter_map(|(extension, descriptor)| match &descriptor.payload {
                    Payload::Tool(spec) => Some(Implementation {
                        extension: Arc::clone(extension),
                        spec: spec.clone(),
                        agent: None,
                    }),
                    _ => None,
                });
                self.tools.push(ToolEntry { name: id.as_str().into(), stack: stack.collect() });
            }
            // Gate 0 keeps its name to itself.
            Payload::Hook(_) if id.as_str() == HookId::POLICY => {}
            Payload::Hook(spec) => {
                let spec = HookSpec { priority: priority.unwrap_or(spec.priority), ..spec.clone() };
                self.hooks.push(HookEntry { id: id.as_str().into(), extension, spec, outage: None });
            }
            Payload::Agent(agent) => {
                self.agents.push(agent.clone());
                for (agent, spec) in agent.as_tools() {
                    let (spec, agent, extension) = (Arc::new(spec), Some(agent), extension.clone());
                    let (name, stack) = (spec.name.clone(), vec![Implementation { extension, spec, agent }]);
                    self.tools.push(ToolEntry { name, stack });
                }
            }
            Payload::Other(payload) => {
                let (kind, id, payload) = (kind.clone(), id.clone(), payload.clone());
                self.others.push(OtherEntry { kind, id, extension, payload });
            }
        }
    }

    /// Puts everything in the order that the lookups below rely on, the same on every machine. Hooks are asked by priority, then
    /// extension, then registration.
    pub fn sort(&mut self) {
        self.whole = WholeRounds::default();
        self.tools.sort_by(|a, b| a.name.cmp(&b.name));
        // The way back is one, however many agents there are to hand over to.
        self.tools.dedup_by(|a, b| a.name == b.name && a.hands_back() && b.hands_back());
        self.agents.sort_by(|a, b| a.id.cmp(&b.id));
        self.hooks.sort_by(|a, b| a.order().cmp(&b.order()));
    }

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

    /// Who is asked at a point about a call that goes by this tool and these arguments, from this channel: the hooks whose matchers
    /// apply, and at a gate the policy before them. None if that is nobody.
    pub fn asked(
        &self,
        point: HookPoint,
        about: Option<(&str, Option<&Value>)>,
        channel: &str,
    ) -> Option<Arc<[HookId]>> {
        let applies = |hook: &HookEntry| hook.spec.matcher.applies(about, channel);
        let whole = self.whole(point);
        let hooks = &whole.hooks.entries;
        if whole.everyone.is_empty() {
            return None;
        }
        if whole.always || hooks.iter().all(applies) {
            return Some(whole.everyone.clone());
        }
        Some(everyone(point, hooks.iter().filter(|hook| applies(hook)))).filter(|some| !some.is_empty())
    }

    /// Those of a round's hooks that are asked now, gate 0 apart.
    pub fn still_asked(&self, round: &Round) -> AskedHooks {
        let whole = self.whole(round.point);
        if Arc::ptr_eq(&whole.everyone, &round.hooks) && round.asks_everyone() {
            return whole.hooks.clone();
        }
        let mut ids = round.open().map(|(_, hook)| hook).filter(|hook| !hook.is_policy()).peekable();
        let asked = |hook: &&HookEntry| ids.next_if(|id| **id == hook.id).is_some();
        AskedHooks::new(whole.hooks.entries.iter().filter(asked).cloned().collect())
    }

    fn whole(&self, point: HookPoint) -> &WholeRound {
        let rounds = self.whole.0.get_or_init(|| {
            let points: BTreeSet<_> = HookPoint::ALL.iter().copied().collect();
            points.into_iter().map(|point| WholeRound::new(point, self.hooks_at(point))).collect()
        });
        &rounds[point as usize]
    }

    /// Marks every hook of an extension as one that cannot be asked.
    pub fn mark_outage(&mut self, extension: &ExtensionId, outage: &Outage) {
        for hook in self.hooks.iter_mut().filter(|hook| hook.extension.id == *extension) {
            hook.outage = Some(Box::new(outage.clone()));
        }
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

fn everyone<'a>(point: HookPoint, hooks: impl Iterator<Item = &'a HookEntry>) -> Arc<[HookId]> {
    let policy = (point == HookPoint::ToolGate).then(HookId::policy);
    policy.into_iter().chain(hooks.map(|hook| hook.id.clone())).collect()
}

/// A descriptor that stands in its stack, and what its place goes by.
pub struct RegisteredDescriptor<'a> {
    /// The extension.
    pub extension: &'a Arc<ExtensionRef>,
    /// The descriptor.
    pub descriptor: &'a Descriptor,
    /// The priority of the extension's descriptors that name none.
    pub priority: Option<i32>,
    /// When the extension took over, among all.
    pub registered: u64,
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
    /// A pin to a view at hand.
    pub fn new(reference: RegistryRef, view: Arc<Registry>) -> Self {
        Self { reference, view: Some(view) }
    }
}

impl PartialEq for RegistryPin {
    fn eq(&self, other: &Self) -> bool {
        self.reference == other.reference
    }
}
