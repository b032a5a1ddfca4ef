//! Stacks: descriptors of one `(kind, id)`, the active one on top, and the registry made from them.
//!
//! Priority is the override's, else the descriptor's, else the extension's, else 0; among equals the latest is on top.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use holdfast_contract::digest::Digest;
use holdfast_contract::effect::Act;
use holdfast_contract::ids::{DescriptorId, HookId, RegistryKind};
use holdfast_contract::registry::{
    AgentMode, AgentSpec, Descriptor, ExtensionRef, HookEntry, Implementation, OtherEntry, Override, Payload,
    Registry, RegistryPin, RegistryRef, ToolEntry,
};
use holdfast_contract::system_frames::{ExtensionState, RegistryChanged, StackChange};
use holdfast_contract::tool::{EffectClass, ToolSpec, agent_arguments_schema};

use super::{Activation, System};
use crate::desk::Desk;

/// Who stands in each stack, from top to bottom.
pub(super) type Stacks = BTreeMap<RegistryKind, BTreeMap<DescriptorId, Vec<Arc<ExtensionRef>>>>;

/// A descriptor with its place.
struct Standing<'a> {
    activation: &'a Activation,
    descriptor: &'a Descriptor,
    priority: i32,
    overridden: Override,
}

impl System {
    /// Makes the registry anew after a change, and lets it be known if it differs.
    pub(super) fn refresh(&mut self, desk: &mut Desk<'_>) {
        let mut stacks = Stacks::new();
        let mut registry = Registry { policy: self.policy, ..Registry::default() };
        for ((kind, id), standing) in self.standings() {
            let top_to_bottom = standing.iter().map(|it| it.activation.reference.clone()).collect();
            enter(&mut registry, &kind, &id, &standing);
            stacks.entry(kind).or_default().insert(id, top_to_bottom);
        }
        registry.tools.sort_by(|a, b| a.name.cmp(&b.name));
        registry.agents.sort_by(|a, b| a.id.cmp(&b.id));
        registry.hooks.sort_by(|a, b| hook_order(a).cmp(&hook_order(b)));
        let Ok(digest) = Digest::of_json(&registry) else { return };
        if digest == self.pin.reference.digest {
            return;
        }
        let changes = changes(&self.stacks, &stacks);
        let seq = desk.record(RegistryChanged { registry: digest, changes });
        self.stacks = stacks;
        self.pin = RegistryPin::new(RegistryRef { seq, digest }, Arc::new(registry));
        desk.act(Act::Activate { pin: self.pin.clone() });
    }

    /// The enabled descriptors of active extensions, stacked.
    fn standings(&self) -> BTreeMap<(RegistryKind, DescriptorId), Vec<Standing<'_>>> {
        let mut standings: BTreeMap<_, Vec<Standing<'_>>> = BTreeMap::new();
        let serving = self.extensions.values().filter(|extension| extension.state == ExtensionState::Active);
        for activation in serving.filter_map(|extension| extension.active.as_ref()) {
            for descriptor in &activation.descriptors {
                let overrides = self.overrides.get(&descriptor.kind);
                let overridden =
                    overrides.and_then(|ids| ids.get(&descriptor.id)).copied().unwrap_or_default();
                if overridden.enabled == Some(false) {
                    continue;
                }
                let own = descriptor.priority.or(activation.found.priority);
                let priority = overridden.priority.or(own).unwrap_or(0);
                let place = (descriptor.kind.clone(), descriptor.id.clone());
                let standing = Standing { activation, descriptor, priority, overridden };
                standings.entry(place).or_default().push(standing);
            }
        }
        for stack in standings.values_mut() {
            stack.sort_by_key(|it| (Reverse(it.priority), Reverse(it.activation.registered)));
        }
        standings
    }
}

fn enter(registry: &mut Registry, kind: &RegistryKind, id: &DescriptorId, stack: &[Standing<'_>]) {
    let Some(top) = stack.first() else { return };
    match &top.descriptor.payload {
        Payload::Tool(_) => {
            let stack: Vec<_> = stack.iter().filter_map(implementation).collect();
            registry.tools.push(ToolEntry { name: id.as_str().into(), stack });
        }
        Payload::Hook(spec) => {
            let mut spec = spec.clone();
            spec.priority = top.overridden.priority.unwrap_or(spec.priority);
            let extension = top.activation.reference.clone();
            registry.hooks.push(HookEntry { id: HookId::from(id.as_str()), extension, spec });
        }
        Payload::Agent(agent) => {
            if agent.mode == AgentMode::Tool {
                let spec = Arc::new(agent_tool(agent));
                let implementation = Implementation {
                    extension: top.activation.reference.clone(),
                    spec: spec.clone(),
                    agent: Some(agent.id.clone()),
                };
                registry.tools.push(ToolEntry { name: spec.name.clone(), stack: vec![implementation] });
            }
            registry.agents.push(agent.clone());
        }
        Payload::Other(payload) => registry.others.push(OtherEntry {
            kind: kind.clone(),
            id: id.clone(),
            extension: top.activation.reference.clone(),
            payload: payload.clone(),
        }),
    }
}

fn implementation(standing: &Standing<'_>) -> Option<Implementation> {
    match &standing.descriptor.payload {
        Payload::Tool(spec) => Some(Implementation {
            extension: standing.activation.reference.clone(),
            spec: spec.clone(),
            agent: None,
        }),
        _ => None,
    }
}

/// An agent as a tool: it is asked in words and answers in words.
fn agent_tool(agent: &AgentSpec) -> ToolSpec {
    let mut spec = ToolSpec::named(agent.id.as_str(), &agent.description);
    spec.input_schema = agent_arguments_schema();
    spec.effects = EffectClass::Read;
    spec.timeout = agent.limits.time_budget;
    spec
}

fn changes(before: &Stacks, after: &Stacks) -> Vec<StackChange> {
    let places = |stacks: &Stacks| -> BTreeSet<(RegistryKind, DescriptorId)> {
        stacks.iter().flat_map(|(kind, ids)| ids.keys().map(|id| (kind.clone(), id.clone()))).collect()
    };
    let find = |stacks: &Stacks, kind: &RegistryKind, id: &DescriptorId| -> Vec<Arc<ExtensionRef>> {
        stacks.get(kind).and_then(|ids| ids.get(id)).cloned().unwrap_or_default()
    };
    let all: BTreeSet<_> = places(before).union(&places(after)).cloned().collect();
    all.into_iter()
        .filter_map(|(kind, id)| {
            let stack = find(after, &kind, &id);
            (stack != find(before, &kind, &id)).then_some(StackChange { kind, id, stack })
        })
        .collect()
}

/// Point, priority, extension, registration index: the same on every machine.
fn hook_order(hook: &HookEntry) -> (holdfast_contract::hook::HookPoint, i32, &str, u64) {
    let index = hook.id.as_str().rsplit('/').next().and_then(|index| index.parse().ok()).unwrap_or(0);
    (hook.spec.point, hook.spec.priority, hook.extension.id.as_str(), index)
}
