//! Stacks: descriptors of one `(kind, id)`, the active one on top, and the registry made from them.

use super::*;

impl System {
    /// Makes the registry anew after a change, and lets it be known if it differs.
    pub(super) fn refresh(&mut self, desk: &mut Desk) {
        let serving = self.extensions.values().filter_map(|extension| extension.on(Course::Serving));
        let standing = serving.flat_map(|life| {
            let (extension, priority, registered) = (&life.reference, life.found.priority, life.registered);
            let standing = move |descriptor| Standing { extension, descriptor, priority, registered };
            life.descriptors.iter().map(standing)
        });
        let (registry, stacks) = Registry::of(self.policy, &self.overrides, standing);
        let Ok(digest) = Digest::of_json(&registry) else { return };
        if digest != self.pin.reference.digest {
            let changes = StackChange::between(&std::mem::replace(&mut self.stacks, stacks), &self.stacks);
            let seq = desk.record(RegistryChanged { registry: digest, changes });
            self.pin = RegistryPin::new(RegistryRef { seq, digest }, Arc::new(registry));
            desk.act(Act::Activate { pin: self.pin.clone() });
        }
    }
}
