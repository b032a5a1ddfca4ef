//! Stacks: descriptors of one `(kind, id)`, the active one on top, and the registry made from them.

use super::*;

impl System {
    /// Makes the registry anew after a change, and lets it be known if it differs.
    pub(super) fn refresh(&mut self, desk: &mut StepRecorder, listing: bool) {
        let (registry, stacks) = self.registry(listing);
        self.list_outages(listing);
        let Ok(digest) = Digest::of_json(&registry) else { return };
        if digest != self.pin.reference.digest {
            let changes = registry::stack_changes(&std::mem::replace(&mut self.stacks, stacks), &self.stacks);
            let seq = desk.record(RegistryChanged { registry: digest, changes });
            self.pin = RegistryPin::new(RegistryRef { seq, digest }, Arc::new(registry));
            desk.act(Act::Activate { pin: self.pin.clone() });
        }
    }

    /// The names of tools that built-in extensions keep to themselves, in whatever state they are.
    pub(super) fn reserved(&self) -> ReservedNames {
        let mut reserved = ReservedNames::default();
        for (id, extension) in &self.extensions {
            let lives = extension.lives.iter().filter(|life| life.found.built_in.is_some());
            let registered = lives.flat_map(|life| &life.descriptors).flat_map(Descriptor::tool_names);
            let named = extension.found.iter().filter_map(|found| found.built_in.as_ref());
            reserved.reserve(id, named.flat_map(|built_in| built_in.tools.iter().cloned()).chain(registered));
        }
        reserved
    }

    /// Why a descriptor is not registered, if it is not.
    pub(super) fn refusal(
        &self,
        reserved: &ReservedNames,
        life: &Life,
        descriptor: &Descriptor,
    ) -> Option<Fault> {
        let foreign = life.found.built_in.is_none();
        foreign.then(|| reserved.refusal(&self.overrides, &life.found.id, descriptor)).flatten()
    }

    /// What there is to say of the names of tools, by extension: those that it does not get, and those that others have too.
    pub(super) fn conflicts(&self) -> BTreeMap<ExtensionId, Vec<Fault>> {
        let (reserved, mut conflicts) = (self.reserved(), BTreeMap::<_, Vec<_>>::new());
        for life in self.extensions.values().filter_map(|extension| extension.on(Course::Serving)) {
            let refused = life.descriptors.iter().filter_map(|it| self.refusal(&reserved, life, it));
            refused.for_each(|fault| conflicts.entry(life.found.id.clone()).or_default().push(fault));
        }
        let registry = self.pin.view.iter();
        for (id, fault) in registry.flat_map(|registry| duplicates(registry, &self.overrides)) {
            conflicts.entry(id).or_default().push(fault);
        }
        conflicts
    }
}
