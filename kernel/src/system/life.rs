//! Lives: extensions come up in dependency order and go down in its reverse; a failure takes its dependents with it.
//!
//! Every change ends in [`System::pursue`], which gives each generation its next command as soon as its neighbours allow it.
//! A new generation rises beside the one that serves and takes over only when it has started.

use std::sync::Arc;

use holdfast_contract::digest::Digest;
use holdfast_contract::effect::Act;
use holdfast_contract::ids::{ExtensionId, Generation, Millis};
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::registry::ExtensionRef;
use holdfast_contract::system_frames::{
    ExtensionCommanded, ExtensionReloaded, ExtensionReported, ExtensionRolledBack, ExtensionState,
    ExtensionStateChanged, FoundExtension, LifecycleCommand, LifecycleOutcome, SystemStopped,
};

use super::order::{Dependencies, hopeless};
use super::{Activation, Extension, FoundActivation, Phase, System};
use crate::desk::Desk;

/// So many faults within the window, and a generation gives way.
const FAULTS: usize = 3;
const FAULT_WINDOW: Millis = Millis(60_000);

impl System {
    /// The process has begun: nothing of an earlier one is alive, but its numbers go on.
    pub(super) fn start(&mut self, desk: &mut Desk<'_>) {
        self.phase = Phase::Running;
        self.running.clear();
        for extension in self.extensions.values_mut() {
            let generations = extension.generations;
            *extension = Extension::new(extension.found.clone());
            extension.generations = generations;
            extension.removed = true;
        }
        self.refresh(desk);
    }

    pub(super) fn found(&mut self, desk: &mut Desk<'_>, found: Vec<FoundExtension>) {
        for found in found {
            let fresh = || Extension::new(found.clone());
            let extension = self.extensions.entry(found.id.clone()).or_insert_with(fresh);
            let latest = extension.rising.as_ref().or(extension.active.as_ref());
            if latest.is_some_and(|activation| activation.reference.digest == found.digest) {
                continue;
            }
            extension.rise(found, None);
        }
        let waiting = self.extensions.values_mut().filter(|extension| {
            let dependency = [Some(Code::ExtensionDependency), Some(Code::ExtensionCycle)];
            !extension.removed
                && extension.rising.is_none()
                && dependency.contains(&extension.fault.as_ref().map(|f| f.code))
        });
        waiting.for_each(|extension| extension.rise(extension.found.clone(), None));
        self.pursue(desk);
    }

    /// An extension that cannot be read. The generation that serves, if any, goes on.
    pub(super) fn rejected(&mut self, desk: &mut Desk<'_>, id: ExtensionId, fault: Fault) {
        let unread = FoundExtension {
            id: id.clone(),
            version: "".into(),
            digest: Digest::ZERO,
            lane: String::new(),
            depends_on: Vec::new(),
            priority: None,
            schedules: Vec::new(),
        };
        let extension = self.extensions.entry(id.clone()).or_insert_with(|| Extension::new(unread));
        extension.removed = false;
        if extension.active.is_none() && extension.rising.is_none() {
            self.set_state(desk, &id, Generation(0), ExtensionState::Error, Some(fault));
        }
        self.pursue(desk);
    }

    pub(super) fn removed(&mut self, desk: &mut Desk<'_>, id: &ExtensionId) {
        if let Some(extension) = self.extensions.get_mut(id) {
            extension.removed = true;
            extension.leaving.extend(extension.rising.take());
            self.bring_down(desk, id, ExtensionState::Inactive, None);
        }
        self.pursue(desk);
    }

    pub(super) fn reported(&mut self, desk: &mut Desk<'_>, fact: ExtensionReported) {
        let Some(extension) = self.extensions.get_mut(&fact.id) else { return };
        let rising =
            extension.rising.as_ref().is_some_and(|rising| rising.reference.generation == fact.generation);
        let Some(activation) = extension.generation_mut(fact.generation) else { return };
        activation.under_way = None;
        match fact.outcome {
            LifecycleOutcome::Failed(fault) if rising => self.fail_rising(desk, &fact.id, fault),
            LifecycleOutcome::Loaded { descriptors } => {
                activation.descriptors = descriptors;
                activation.done = Some(fact.command);
            }
            // A generation that fails to stop is on its way out all the same.
            LifecycleOutcome::Failed(_) | LifecycleOutcome::Done => activation.done = Some(fact.command),
        }
        self.pursue(desk);
    }

    pub(super) fn faulted(
        &mut self,
        desk: &mut Desk<'_>,
        id: &ExtensionId,
        generation: Generation,
        fault: Fault,
    ) {
        let now = desk.now();
        let Some(extension) = self.extensions.get_mut(id) else { return };
        let serves =
            extension.active.as_ref().is_some_and(|active| active.reference.generation == generation);
        if !serves || extension.rising.is_some() {
            return;
        }
        extension.faults.push(now);
        extension.faults.retain(|at| now.since(*at) < FAULT_WINDOW);
        if extension.faults.len() < FAULTS {
            return;
        }
        match extension.previous.take() {
            Some(FoundActivation { reference, found }) => extension.rise(found, Some(reference)),
            None => self.bring_down(desk, id, ExtensionState::Error, Some(fault)),
        }
        self.pursue(desk);
    }

    pub(super) fn health(
        &mut self,
        desk: &mut Desk<'_>,
        id: &ExtensionId,
        generation: Generation,
        healthy: bool,
    ) {
        let active = self.extensions.get(id).and_then(|extension| extension.active.as_ref());
        if healthy || active.is_none_or(|active| active.reference.generation != generation) {
            return;
        }
        let fault = Fault::new(Code::ExtensionUnhealthy, format!("`{id}` reported that it is not well"));
        self.bring_down(desk, id, ExtensionState::Error, Some(fault));
        self.pursue(desk);
    }

    pub(super) fn stop(&mut self, desk: &mut Desk<'_>) {
        self.phase = Phase::Stopping;
        let ids: Vec<ExtensionId> = self.extensions.keys().cloned().collect();
        for id in &ids {
            if let Some(extension) = self.extensions.get_mut(id) {
                extension.leaving.extend(extension.rising.take());
            }
            self.bring_down(desk, id, ExtensionState::Inactive, None);
        }
        self.pursue(desk);
    }

    /// Takes a serving generation out, and every one that depends on it.
    fn bring_down(
        &mut self,
        desk: &mut Desk<'_>,
        id: &ExtensionId,
        state: ExtensionState,
        fault: Option<Fault>,
    ) {
        let Some(active) = self.extensions.get_mut(id).and_then(|extension| extension.active.take()) else {
            return;
        };
        let generation = active.reference.generation;
        if let Some(extension) = self.extensions.get_mut(id) {
            extension.leaving.push(active);
        }
        if self.phase == Phase::Running {
            for dependent in self.dependents(id) {
                let fault = Fault::new(
                    Code::ExtensionDependency,
                    format!("`{dependent}` depends on `{id}`, which went down"),
                );
                self.bring_down(desk, &dependent, ExtensionState::Error, Some(fault));
            }
        }
        self.set_state(desk, id, generation, state, fault);
        self.refresh(desk);
    }

    fn set_state(
        &mut self,
        desk: &mut Desk<'_>,
        id: &ExtensionId,
        generation: Generation,
        state: ExtensionState,
        fault: Option<Fault>,
    ) {
        if let Some(extension) = self.extensions.get_mut(id) {
            extension.state = state;
            extension.fault = fault.clone();
            desk.record(ExtensionStateChanged { id: id.clone(), generation, state, fault });
        }
    }

    fn dependents(&self, id: &ExtensionId) -> Vec<ExtensionId> {
        let depends =
            |extension: &&Extension| extension.found.depends_on.contains(id) && extension.found.id != *id;
        self.extensions.values().filter(depends).map(|extension| extension.found.id.clone()).collect()
    }

    /// A generation on its way up has failed. The one that serves, if any, goes on serving.
    fn fail_rising(&mut self, desk: &mut Desk<'_>, id: &ExtensionId, fault: Fault) {
        let Some(extension) = self.extensions.get_mut(id) else { return };
        let Some(rising) = extension.rising.take() else { return };
        let generation = rising.reference.generation;
        extension.leaving.push(rising);
        if extension.active.is_none() {
            self.set_state(desk, id, generation, ExtensionState::Error, Some(fault));
        } else {
            let (id, state) = (id.clone(), ExtensionState::Error);
            desk.record(ExtensionStateChanged { id, generation, state, fault: Some(fault) });
        }
    }

    /// Gives every generation its next command, as far as its neighbours allow.
    pub(super) fn pursue(&mut self, desk: &mut Desk<'_>) {
        while self.pursue_once(desk) {}
        let quiet = self.extensions.values().all(|extension| extension.leaving.is_empty());
        if self.phase == Phase::Stopping && quiet {
            self.phase = Phase::Stopped;
            desk.record(SystemStopped {});
        }
    }

    fn pursue_once(&mut self, desk: &mut Desk<'_>) -> bool {
        let ids: Vec<ExtensionId> = self.extensions.keys().cloned().collect();
        let here = self.extensions.iter().filter(|(_, extension)| !extension.removed);
        let all: Dependencies<'_> =
            here.map(|(id, extension)| (id, extension.found.depends_on.as_slice())).collect();
        let hopeless = hopeless(&all);
        let mut changed = false;
        for id in &ids {
            let rising = self.extensions.get(id).and_then(|extension| extension.rising.as_ref());
            if rising.is_some_and(|rising| rising.under_way.is_none()) {
                changed |= match hopeless.get(id).cloned().or_else(|| self.failed_dependency(id)) {
                    Some(fault) => {
                        self.fail_rising(desk, id, fault);
                        true
                    }
                    None => self.raise(desk, id),
                };
            }
            changed |= self.lower(desk, id);
        }
        changed
    }

    fn failed_dependency(&self, id: &ExtensionId) -> Option<Fault> {
        self.extensions.get(id)?.found.depends_on.iter().find_map(|needed| {
            let extension = self.extensions.get(needed)?;
            let failed = extension.state == ExtensionState::Error && extension.rising.is_none();
            let fault = extension.fault.as_ref().filter(|_| failed)?;
            let message = format!("`{id}` depends on `{needed}`, which failed: {}", fault.message);
            Some(Fault::new(Code::ExtensionDependency, message))
        })
    }

    /// The next command on the way up, once every dependency is as far.
    fn raise(&mut self, desk: &mut Desk<'_>, id: &ExtensionId) -> bool {
        use LifecycleCommand as C;
        let Some(extension) = self.extensions.get(id) else { return false };
        let command = match extension.rising.as_ref().and_then(|rising| rising.done) {
            None => C::Load,
            Some(C::Load) => C::Initialize,
            Some(C::Initialize) => C::Start,
            Some(_) => {
                self.promote(desk, id);
                return true;
            }
        };
        let as_far = |needed: &ExtensionId| {
            self.extensions.get(needed).is_some_and(|extension| match &extension.rising {
                Some(rising) => extension.active.is_some() || rising.done >= Some(command),
                None => extension.active.is_some(),
            })
        };
        if !extension.found.depends_on.iter().all(as_far) {
            return false;
        }
        if let Some(rising) = self.extensions.get_mut(id).and_then(|extension| extension.rising.as_mut()) {
            rising.command(desk, command);
        }
        false
    }

    /// The next command on the way down. Without a successor, a generation stops only after everyone who depends on it.
    fn lower(&mut self, desk: &mut Desk<'_>, id: &ExtensionId) -> bool {
        let dependents_gone = self.dependents(id).iter().all(|dependent| {
            self.extensions.get(dependent).is_none_or(|it| it.active.is_none() && it.leaving.is_empty())
        });
        let Some(extension) = self.extensions.get_mut(id) else { return false };
        let may_stop = dependents_gone || extension.active.is_some();
        let before = extension.leaving.len();
        extension.leaving.retain_mut(|leaving| {
            use LifecycleCommand as C;
            let next = match leaving.done {
                None | Some(C::Destroy) => None,
                Some(C::Load | C::Initialize | C::Stop) => Some(C::Destroy),
                Some(C::Start) => Some(C::Stop),
            };
            match (leaving.under_way, next) {
                (None, None) => false,
                (None, Some(command)) if command == C::Destroy || may_stop => {
                    leaving.command(desk, command);
                    true
                }
                _ => true,
            }
        });
        extension.leaving.len() != before
    }

    /// The risen generation takes over.
    fn promote(&mut self, desk: &mut Desk<'_>, id: &ExtensionId) {
        self.activations += 1;
        let registered = self.activations;
        let Some(extension) = self.extensions.get_mut(id) else { return };
        let Some(mut risen) = extension.rising.take() else { return };
        risen.registered = registered;
        let to = risen.reference.generation;
        let rolls_back = risen.rolls_back;
        let faults = u32::try_from(extension.faults.len()).unwrap_or(u32::MAX);
        extension.faults.clear();
        let old = extension.active.replace(risen);
        let from = old.as_ref().map(|old| old.reference.generation);
        if let Some(old) = old {
            let before = FoundActivation { reference: old.reference.clone(), found: old.found.clone() };
            extension.previous = rolls_back.is_none().then_some(before);
            extension.leaving.push(old);
        }
        self.set_state(desk, id, to, ExtensionState::Active, None);
        match (from, rolls_back) {
            (Some(from), None) => {
                desk.record(ExtensionReloaded { id: id.clone(), from, to });
            }
            (Some(from), Some(_)) => {
                desk.record(ExtensionRolledBack { id: id.clone(), from, to, faults });
            }
            (None, _) => {}
        }
        self.refresh(desk);
    }
}

impl Extension {
    /// Sends a new generation on its way up, in place of one that had not arrived.
    fn rise(&mut self, found: FoundExtension, brings_back: Option<Arc<ExtensionRef>>) {
        self.leaving.extend(self.rising.take());
        self.generations += 1;
        self.removed = false;
        let reference = ExtensionRef {
            id: found.id.clone(),
            version: found.version.clone(),
            digest: found.digest,
            generation: Generation(self.generations),
        };
        self.found = found.clone();
        self.rising = Some(Activation {
            reference: Arc::new(reference),
            found,
            descriptors: Vec::new(),
            done: None,
            under_way: None,
            registered: 0,
            rolls_back: brings_back.map(|reference| reference.generation),
        });
    }
}

impl Activation {
    fn command(&mut self, desk: &mut Desk<'_>, command: LifecycleCommand) {
        let extension = self.reference.clone();
        let decided_by = desk.record(ExtensionCommanded { extension: extension.clone(), command });
        self.under_way = Some((command, decided_by));
        desk.act(Act::Lifecycle { decided_by, extension, command });
    }
}
