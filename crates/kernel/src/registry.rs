//! The registry: how the descriptors of active extensions are stacked and ranked, who is asked at a hook point (`hook_index.rs`),
//! which tools an agent has (`tool_scope.rs`) and which names are reserved or registered twice (`tool_names.rs`).

pub(crate) mod hook_index;
pub(crate) mod tool_names;
pub(crate) mod tool_scope;

#[cfg(test)]
mod tool_names_tests;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use holdfast_contract::digest::Digest;
use holdfast_contract::hook::{HookPoint, HookSpec};
use holdfast_contract::ids::{ExtensionId, HookId};
use holdfast_contract::names::Overrides;
use holdfast_contract::registry::{
    AgentUse, Descriptor, ExtensionRef, HookEntry, HookIndex, Implementation, OtherEntry, Outage, Override,
    Payload, Registry, ToolEntry,
};
use holdfast_contract::system_frames::StackChange;

pub use self::hook_index::hooks_without_call;
pub use self::tool_names::ReservedNames;
use self::tool_scope::agent_tools;
pub use self::tool_scope::offers;

/// A descriptor of an extension, and what ranks it in its stack.
pub(crate) struct RegisteredDescriptor<'a> {
    pub extension: &'a Arc<ExtensionRef>,
    pub descriptor: &'a Descriptor,
    /// The priority of the extension's descriptors that name none.
    pub priority: Option<i32>,
    /// The place of the extension in the user's list, if it has one.
    pub order: Option<u32>,
    /// When the extension took over, among all.
    pub registered: u64,
}

/// The registry that these descriptors make under the user's overrides, and its stacks. The extension that an override names is on
/// top. Priority is the override's, else the descriptor's, else the extension's, else 0; among equals the last in the user's list, or the
/// latest, is on top.
pub(crate) fn build<'a>(
    policy: Option<Digest>,
    overrides: &Overrides,
    descriptors: impl Iterator<Item = RegisteredDescriptor<'a>>,
) -> (Registry, Vec<StackChange>) {
    let mut registry = Registry { policy, ..Registry::default() };
    let mut stacks = Vec::new();
    let mut grouped: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for it in descriptors {
        grouped.entry((&it.descriptor.kind, &it.descriptor.id)).or_default().push(it);
    }
    for ((kind, id), mut stack) in grouped {
        let overridden = stack.first().and_then(|it| override_of(overrides, it)).cloned().unwrap_or_default();
        if overridden.enabled == Some(false) {
            continue;
        }
        stack.sort_by_key(|it| rank(&overridden, it));
        add_stack(&mut registry, &stack, overridden.priority);
        stacks.push(StackChange {
            kind: kind.clone(),
            id: id.clone(),
            stack: stack.iter().map(|it| it.extension.clone()).collect(),
        });
    }
    sort(&mut registry);
    (registry, stacks)
}

/// What the user sets about a descriptor, by one of its names.
fn override_of<'o>(overrides: &'o Overrides, it: &RegisteredDescriptor<'_>) -> Option<&'o Override> {
    if overrides.is_empty() {
        return None;
    }
    let mut names = it.descriptor.kinds_and_ids(&it.extension.id);
    names.find_map(|(kind, id)| overrides.get(&kind)?.get(&id))
}

/// The sort key of a descriptor within its stack: the first is the active one.
fn rank(overridden: &Override, it: &RegisteredDescriptor<'_>) -> Reverse<(bool, i32, Option<u32>, u64)> {
    let named = overridden.extension.as_ref() == Some(&it.extension.id);
    let priority = overridden.priority.or(it.descriptor.priority).or(it.priority).unwrap_or(0);
    Reverse((named, priority, it.order, it.registered))
}

/// Adds what a stack registers, the active descriptor first. The priority is the one that the user sets.
fn add_stack(registry: &mut Registry, stack: &[RegisteredDescriptor<'_>], priority: Option<i32>) {
    let Some(RegisteredDescriptor { extension, descriptor, .. }) = stack.first() else { return };
    match &descriptor.payload {
        Payload::Tool(_) => {
            let implementations = stack.iter().filter_map(|it| match &it.descriptor.payload {
                Payload::Tool(spec) => {
                    Some(Implementation { extension: it.extension.clone(), spec: spec.clone(), agent: None })
                }
                _ => None,
            });
            registry
                .tools
                .push(ToolEntry { name: descriptor.id.as_str().into(), stack: implementations.collect() });
        }
        // The policy's name is reserved.
        Payload::Hook(_) if descriptor.id.as_str() == HookId::POLICY => {}
        Payload::Hook(_) | Payload::Hooks(_) => {
            let hooks = descriptor.hooks().iter().enumerate().map(|(index, spec)| HookEntry {
                id: descriptor.hook_id(&extension.id, index),
                extension: Arc::clone(extension),
                spec: HookSpec { priority: priority.unwrap_or(spec.priority), ..spec.clone() },
                outage: None,
            });
            registry.hooks.extend(hooks);
        }
        Payload::Agent(agent) => {
            registry.agents.push(agent.as_ref().clone());
            for (agent, spec) in agent_tools(agent) {
                registry.tools.push(ToolEntry {
                    name: spec.name.clone(),
                    stack: vec![Implementation {
                        extension: Arc::clone(extension),
                        spec: Arc::new(spec),
                        agent: Some(agent),
                    }],
                });
            }
        }
        Payload::Other(payload) => registry.others.push(OtherEntry {
            kind: descriptor.kind.clone(),
            id: descriptor.id.clone(),
            extension: Arc::clone(extension),
            payload: payload.clone(),
        }),
    }
}

/// Puts everything in the order that the registry's lookups rely on, the same on every machine. Hooks are asked by priority, then
/// extension, then registration.
pub fn sort(registry: &mut Registry) {
    registry.hook_index = HookIndex::default();
    registry.tools.sort_by(|a, b| a.name.cmp(&b.name));
    // Handing back is one tool, however many agents there are to hand over to.
    registry.tools.dedup_by(|a, b| a.name == b.name && hands_back(a) && hands_back(b));
    registry.agents.sort_by(|a, b| a.id.cmp(&b.id));
    registry.hooks.sort_by(|a, b| hook_order(a).cmp(&hook_order(b)));
}

fn hands_back(tool: &ToolEntry) -> bool {
    tool.stack.first().is_some_and(|active| active.agent == Some(AgentUse::HandBack))
}

fn hook_order(hook: &HookEntry) -> (HookPoint, i32, &str, u64) {
    let index = hook.id.as_str().rsplit('/').next().and_then(|index| index.parse().ok()).unwrap_or(0);
    (hook.spec.point, hook.spec.priority, hook.extension.id.as_str(), index)
}

/// Marks every hook of an extension as one that cannot be asked.
pub(crate) fn mark_outage(registry: &mut Registry, extension: &ExtensionId, outage: &Outage) {
    for hook in registry.hooks.iter_mut().filter(|hook| hook.extension.id == *extension) {
        hook.outage = Some(Box::new(outage.clone()));
    }
}

/// The stacks that differ, by kind and id. One that is gone is empty.
pub(crate) fn stack_changes(before: &[StackChange], after: &[StackChange]) -> Vec<StackChange> {
    let key = |stack: &StackChange| (stack.kind.clone(), stack.id.clone());
    let removed = before.iter().map(|stack| StackChange { stack: Vec::new(), ..stack.clone() });
    let mut changed: BTreeMap<_, _> =
        removed.chain(after.iter().cloned()).map(|stack| (key(&stack), stack)).collect();
    for stack in before {
        if changed.get(&key(stack)) == Some(stack) {
            changed.remove(&key(stack));
        }
    }
    changed.into_values().collect()
}
