//! Outages: extensions that judge and are not up. Their hooks stay in the registry, and whatever they would judge is denied.
//!
//! What an extension judges is known from its last generation that served, before that from the last one that was loaded, before
//! that from its manifest. It outlives the process: right after a start every extension that judged before is expected again, until
//! it is up, or is said to be removed.

use super::*;

/// The hooks of an extension that judge, and what their place in the registry goes by.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(crate = "holdfast_contract::serde")]
pub(super) struct Judging {
    reference: Arc<ExtensionRef>,
    descriptors: Vec<Descriptor>,
    priority: Option<i32>,
    registered: u64,
    /// Whether a generation has served with them.
    served: bool,
}

impl Judging {
    /// What a generation judges, if it judges anything: what it registered, or what its manifest declares as long as it has not been
    /// loaded.
    fn of(life: &Life, served: bool) -> Option<Self> {
        let Life { reference, found, .. } = life;
        let declared = found.judges.iter().enumerate();
        let descriptors: Vec<Descriptor> = match life.done {
            None => declared.map(|(index, spec)| Descriptor::hook(&found.id, index, spec.clone())).collect(),
            Some(_) => life.descriptors.iter().filter(|it| it.guards()).cloned().collect(),
        };
        let (reference, registered) = (reference.clone(), life.registered);
        let judging = Self { reference, descriptors, priority: found.priority, registered, served };
        (!judging.descriptors.is_empty()).then_some(judging)
    }

    fn standing(&self) -> impl Iterator<Item = RegisteredDescriptor<'_>> {
        let (extension, priority, registered) = (&self.reference, self.priority, self.registered);
        let standing = move |descriptor| RegisteredDescriptor { extension, descriptor, priority, registered };
        self.descriptors.iter().map(standing)
    }
}

impl Extension {
    /// A generation has got further: it serves, it was loaded, or it is about to be. What a generation that served judged counts until
    /// another one serves.
    pub(super) fn learn_judging(&mut self, course: Course) {
        let served = course == Course::Serving;
        let Some(life) = self.on(course) else { return };
        if served || self.judging.as_ref().is_none_or(|known| !known.served) {
            self.judging = Judging::of(life, served);
        }
    }

    /// Why what it judges cannot be judged now, if it judges anything and is not up.
    fn outage(&self) -> Option<(&Judging, Outage)> {
        let judging = self.judging.as_ref().filter(|_| self.on(Course::Serving).is_none())?;
        let unseen = self.found.is_none() && self.fault.is_none();
        let state = match self.timer {
            _ if unseen || self.on(Course::Rising).is_some() => OutageState::Starting,
            Some(_) => OutageState::Restarting,
            None => OutageState::Failed,
        };
        Some((judging, Outage::new(&judging.reference.id, state, self.fault.as_ref())))
    }
}

impl System {
    /// The extensions that are known to judge, up or not.
    pub fn judging(&self) -> impl Iterator<Item = &ExtensionId> {
        self.extensions.iter().filter(|(_, it)| it.judging.is_some()).map(|(id, _)| id)
    }

    /// Whether the registry does not say who judges and is not up, as it is now. `system.settled` with `outages` makes it say so; no
    /// turn may begin on it before.
    pub fn misses_outages(&self) -> bool {
        let mut listed = self.listed.iter();
        let mut same = |(judging, outage): (&Judging, Outage)| {
            listed.next().is_some_and(|(id, said)| *id == judging.reference.id && *said == outage)
        };
        self.phase == Phase::Running && !(self.outages().all(&mut same) && listed.next().is_none())
    }

    /// The hooks that judge, are expected, and are not in the registry.
    pub fn unlisted(&self) -> Vec<HookId> {
        if !self.misses_outages() {
            return Vec::new();
        }
        let listed = |id: &HookId| self.pin.view.as_ref().is_some_and(|view| view.hook(id).is_some());
        let expected = self.registry(true).0.hooks.into_iter().filter(|hook| hook.outage.is_some());
        expected.map(|hook| hook.id).filter(|id| !listed(id)).collect()
    }

    /// Who judges and is not up. While everything stops nobody is expected.
    fn outages(&self) -> impl Iterator<Item = (&Judging, Outage)> {
        let running = self.phase == Phase::Running;
        self.extensions.values().filter(move |_| running).filter_map(Extension::outage)
    }

    /// The registry of what serves, with the hooks of those who judge and are not up if they are to be listed.
    pub(super) fn registry(&self, listing: bool) -> (Registry, Vec<StackChange>) {
        let outages: Vec<_> = self.outages().filter(|_| listing).collect();
        let reserved = &self.reserved();
        let serving = self.extensions.values().filter_map(|extension| extension.on(Course::Serving));
        let standing = serving.flat_map(|life| {
            let (extension, priority, registered) = (&life.reference, life.found.priority, life.registered);
            let standing =
                move |descriptor| RegisteredDescriptor { extension, descriptor, priority, registered };
            let descriptors = life.descriptors.iter();
            descriptors.filter(move |it| self.refusal(reserved, life, it).is_none()).map(standing)
        });
        let expected = outages.iter().flat_map(|(judging, _)| judging.standing());
        let (mut registry, stacks) = registry::build(self.policy, &self.overrides, standing.chain(expected));
        outages.iter().for_each(|(judging, outage)| {
            registry::mark_outage(&mut registry, &judging.reference.id, outage)
        });
        (registry, stacks)
    }

    /// Keeps in mind what the registry says from now on.
    pub(super) fn list_outages(&mut self, listing: bool) {
        let now = self.outages().filter(|_| listing);
        self.listed = now.map(|(judging, outage)| (judging.reference.id.clone(), outage)).collect();
    }
}
