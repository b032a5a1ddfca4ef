//! Registration: when the registry is rebuilt, and which tool names an extension does not get.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::replace;
use std::sync::Arc;

use holdfast_contract::digest::Digest;
use holdfast_contract::effect::Act;
use holdfast_contract::ids::ExtensionId;
use holdfast_contract::names::{UnusedOverride, unconsumed};
use holdfast_contract::problem::Fault;
use holdfast_contract::registry::{Descriptor, RegistryPin, RegistryRef};
use holdfast_contract::system_frames::RegistryChanged;

use super::System;
use super::generation::{ExtensionGeneration, GenerationState};
use crate::registry::stack_changes;
use crate::registry::tool_names::{ReservedNames, duplicates, secrets_missing};
use crate::step_recorder::StepRecorder;

impl System {
    /// Rebuilds the registry after a change, and activates it if it differs.
    pub(super) fn refresh_registry(&mut self, recorder: &mut StepRecorder, with_outages: bool) {
        let (registry, stacks) = self.build_registry(with_outages);
        self.note_listed_outages(with_outages);
        let Ok(digest) = Digest::of_json(&registry) else { return };
        if digest == self.pin.reference.digest {
            return;
        }
        let changes = stack_changes(&replace(&mut self.stacks, stacks), &self.stacks);
        let seq = recorder.record(RegistryChanged { registry: digest, changes });
        self.pin = RegistryPin::new(RegistryRef { seq, digest }, Arc::new(registry));
        recorder.act(Act::Activate { pin: self.pin.clone() });
    }

    /// The tool names that built-in extensions reserve, in any state.
    pub(super) fn reserved_names(&self) -> ReservedNames {
        let mut reserved = ReservedNames::default();
        for (id, extension) in &self.extensions {
            let generations = extension.generations.iter().filter(|it| it.found.built_in.is_some());
            let registered = generations.flat_map(|it| &it.descriptors).flat_map(Descriptor::tool_names);
            let named = extension.found.iter().filter_map(|found| found.built_in.as_ref());
            reserved.reserve(id, named.flat_map(|built_in| built_in.tools.iter().cloned()).chain(registered));
        }
        reserved
    }

    /// Why a descriptor is not registered, if it is not.
    pub(super) fn refusal(
        &self,
        reserved: &ReservedNames,
        generation: &ExtensionGeneration,
        descriptor: &Descriptor,
    ) -> Option<Fault> {
        // A gate or guardrail stays: without its secret it fails, and that closes.
        if !descriptor.missing_secrets.is_empty() && !descriptor.guards() {
            return Some(secrets_missing(&generation.found.id, descriptor));
        }
        if generation.found.built_in.is_some() {
            return None;
        }
        reserved.refusal(&self.overrides, &generation.found.id, descriptor)
    }

    /// The user's overrides that name nothing of an extension that is up.
    pub fn unused_overrides(&self) -> Vec<UnusedOverride> {
        let active = self.extensions.values().filter_map(|it| it.in_state(GenerationState::Active));
        let names: BTreeSet<_> = active
            .flat_map(|it| it.descriptors.iter().flat_map(|one| one.kinds_and_ids(&it.found.id)))
            .collect();
        let all =
            self.overrides.iter().flat_map(|(kind, ids)| ids.keys().map(|id| (kind.clone(), id.clone())));
        let unused = all.filter(|name| !names.contains(name));
        unused.map(|(kind, id)| UnusedOverride::among(&kind, &id, &names)).collect()
    }

    /// What of an extension has no effect, by extension: tool names that it does not get or that others register too, and kinds that
    /// nothing consumes.
    pub(super) fn conflicts(&self) -> BTreeMap<ExtensionId, Vec<Fault>> {
        let reserved = self.reserved_names();
        let mut conflicts: BTreeMap<ExtensionId, Vec<Fault>> = BTreeMap::new();
        for active in self.extensions.values().filter_map(|it| it.in_state(GenerationState::Active)) {
            let refused = active.descriptors.iter().filter_map(|it| self.refusal(&reserved, active, it));
            let idle = active.descriptors.iter().filter_map(|it| unconsumed(&active.found.id, it));
            refused.chain(idle).for_each(|fault| {
                conflicts.entry(active.found.id.clone()).or_default().push(fault);
            });
        }
        let registry = self.pin.view.iter();
        for (id, fault) in registry.flat_map(|registry| duplicates(registry, &self.overrides)) {
            conflicts.entry(id).or_default().push(fault);
        }
        conflicts
    }
}
