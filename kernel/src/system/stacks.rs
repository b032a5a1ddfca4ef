//! Stacks: descriptors of one `(kind, id)`, the active one on top, and the registry made from them.
//!
//! Priority is the override's, else the descriptor's, else the extension's, else 0; among equals the latest is on top.

use super::*;

impl System {
    /// Makes the registry anew after a change, and lets it be known if it differs.
    pub(super) fn refresh(&mut self, desk: &mut Desk) {
        let mut registry = Registry { policy: self.policy, ..Registry::default() };
        let mut stacks = Vec::new();
        let mut places: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for life in self.extensions.values().filter_map(|extension| extension.on(Course::Serving)) {
            for descriptor in &life.descriptors {
                places.entry((&descriptor.kind, &descriptor.id)).or_default().push((life, descriptor));
            }
        }
        for ((kind, id), mut standing) in places {
            let overridden = self.overrides.get(kind).and_then(|ids| ids.get(id));
            let Override { enabled, priority } = overridden.copied().unwrap_or_default();
            if enabled == Some(false) {
                continue;
            }
            standing.sort_by_key(|(life, descriptor)| {
                let priority = priority.or(descriptor.priority).or(life.found.priority);
                std::cmp::Reverse((priority.unwrap_or(0), life.registered))
            });
            let standing: Vec<_> = standing.into_iter().map(|(life, it)| (&life.reference, it)).collect();
            registry.enter(&standing, priority);
            let stack = standing.into_iter().map(|(reference, _)| reference.clone()).collect();
            stacks.push(StackChange { kind: kind.clone(), id: id.clone(), stack });
        }
        registry.sort();
        let Ok(digest) = Digest::of_json(&registry) else { return };
        if digest != self.pin.reference.digest {
            let changes = StackChange::between(&std::mem::replace(&mut self.stacks, stacks), &self.stacks);
            let seq = desk.record(RegistryChanged { registry: digest, changes });
            self.pin = RegistryPin::new(RegistryRef { seq, digest }, Arc::new(registry));
            desk.act(Act::Activate { pin: self.pin.clone() });
        }
    }
}
