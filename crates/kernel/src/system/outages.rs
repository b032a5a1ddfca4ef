//! Outages: extensions that judge and are not active. Their hooks stay in the registry, and everything they would judge is denied.
//!
//! What an extension judges is known from its last active generation, before that from the last one that was loaded, before that from
//! its manifest. It outlives the process: right after a start every extension that judged before is expected again, until it is active
//! or removed.

use std::sync::Arc;

use holdfast_contract::ids::{ExtensionId, HookId};
use holdfast_contract::registry::{Descriptor, ExtensionRef, Outage, OutageState, Registry};
use holdfast_contract::serde::{Deserialize, Serialize};
use holdfast_contract::system_frames::StackChange;

use super::System;
use super::generation::{Extension, ExtensionGeneration, GenerationState};
use crate::phase::Phase;
use crate::registry::{RegisteredDescriptor, build, mark_outage};

/// The hooks of an extension that judge, and what ranks them in the registry.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(crate = "holdfast_contract::serde")]
pub(super) struct Judging {
    reference: Arc<ExtensionRef>,
    descriptors: Vec<Descriptor>,
    priority: Option<i32>,
    registered: u64,
    /// Whether a generation with them was active.
    was_active: bool,
}

impl Judging {
    /// What a generation judges, if it judges anything: what it registered, or what its manifest declares if it was not loaded.
    fn of(generation: &ExtensionGeneration, was_active: bool) -> Option<Self> {
        let found = &generation.found;
        let descriptors: Vec<Descriptor> = if generation.done.is_none() {
            let declared = found.judges.iter().enumerate();
            declared.map(|(index, spec)| Descriptor::hook(&found.id, index, spec.clone())).collect()
        } else {
            generation.descriptors.iter().filter(|it| it.guards()).cloned().collect()
        };
        if descriptors.is_empty() {
            return None;
        }
        Some(Self {
            reference: generation.reference.clone(),
            descriptors,
            priority: found.priority,
            registered: generation.registered,
            was_active,
        })
    }

    fn registered_descriptors(&self) -> impl Iterator<Item = RegisteredDescriptor<'_>> {
        self.descriptors.iter().map(|descriptor| RegisteredDescriptor {
            extension: &self.reference,
            descriptor,
            priority: self.priority,
            order: None,
            registered: self.registered,
        })
    }
}

impl Extension {
    /// The generation in this state is active, was loaded, or is about to be. What an active generation judged counts until another one
    /// is active.
    pub(super) fn learn_judging(&mut self, state: GenerationState) {
        let is_active = state == GenerationState::Active;
        let Some(generation) = self.in_state(state) else { return };
        if is_active || self.judging.as_ref().is_none_or(|known| !known.was_active) {
            self.judging = Judging::of(generation, is_active);
        }
    }

    /// Why what it judges cannot be judged now, if it judges anything and is not active.
    fn outage(&self) -> Option<(&Judging, Outage)> {
        let judging = self.judging.as_ref()?;
        if self.in_state(GenerationState::Active).is_some() {
            return None;
        }
        let not_seen_yet = self.found.is_none() && self.fault.is_none();
        let state = if not_seen_yet || self.in_state(GenerationState::Starting).is_some() {
            OutageState::Starting
        } else if self.timer.is_some() {
            OutageState::Restarting
        } else {
            OutageState::Failed
        };
        Some((judging, Outage::new(&judging.reference.id, state, self.fault.as_ref())))
    }
}

impl System {
    /// The extensions that are known to judge, active or not.
    pub fn judging(&self) -> impl Iterator<Item = &ExtensionId> {
        self.extensions.iter().filter(|(_, it)| it.judging.is_some()).map(|(id, _)| id)
    }

    /// Whether the registry lists other outages than there are. `system.settled` with `outages` makes it list them; no turn may begin
    /// on it before.
    pub fn misses_outages(&self) -> bool {
        if self.phase != Phase::Running {
            return false;
        }
        let mut listed = self.listed_outages.iter();
        let mut is_listed = |(judging, outage): (&Judging, Outage)| {
            listed.next().is_some_and(|(id, known)| *id == judging.reference.id && *known == outage)
        };
        !(self.outages().all(&mut is_listed) && listed.next().is_none())
    }

    /// The hooks that judge, are expected, and are not in the registry.
    pub fn unlisted(&self) -> Vec<HookId> {
        if !self.misses_outages() {
            return Vec::new();
        }
        let is_listed = |id: &HookId| self.pin.view.as_ref().is_some_and(|view| view.hook(id).is_some());
        let expected = self.build_registry(true).0.hooks.into_iter().filter(|hook| hook.outage.is_some());
        expected.map(|hook| hook.id).filter(|id| !is_listed(id)).collect()
    }

    /// The extensions that judge and are not active. While everything stops none is expected.
    fn outages(&self) -> impl Iterator<Item = (&Judging, Outage)> {
        let running = self.phase == Phase::Running;
        self.extensions.values().filter(move |_| running).filter_map(Extension::outage)
    }

    /// The registry of the active generations, with the hooks of extensions that judge and are not active if they are to be listed.
    pub(super) fn build_registry(&self, with_outages: bool) -> (Registry, Vec<StackChange>) {
        let outages: Vec<_> = self.outages().filter(|_| with_outages).collect();
        let reserved = &self.reserved_names();
        let active = self.extensions.values().filter_map(|it| it.in_state(GenerationState::Active));
        let registered = active.flat_map(|active| {
            let descriptors = active.descriptors.iter();
            let kept = descriptors.filter(move |it| self.refusal(reserved, active, it).is_none());
            kept.map(move |descriptor| RegisteredDescriptor {
                extension: &active.reference,
                descriptor,
                priority: active.found.priority,
                order: active.found.order,
                registered: active.registered,
            })
        });
        let expected = outages.iter().flat_map(|(judging, _)| judging.registered_descriptors());
        let (mut registry, stacks) = build(self.policy, &self.overrides, registered.chain(expected));
        for (judging, outage) in &outages {
            mark_outage(&mut registry, &judging.reference.id, outage);
        }
        (registry, stacks)
    }

    /// Remembers which outages the registry lists from now on.
    pub(super) fn note_listed_outages(&mut self, with_outages: bool) {
        let now = self.outages().filter(|_| with_outages);
        self.listed_outages = now.map(|(judging, outage)| (judging.reference.id.clone(), outage)).collect();
    }
}
