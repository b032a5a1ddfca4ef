//! Reconciling: extensions start in dependency order and stop in its reverse, and a failure stops the dependents.

use std::mem::take;
use std::sync::Arc;

use holdfast_contract::ids::ExtensionId;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::registry::ExtensionRef;
use holdfast_contract::system_frames::{FoundExtension, LifecycleCommand, SystemStopped};

use super::System;
use super::dependencies::shutdown_order;
use super::generation::{Extension, ExtensionGeneration, GenerationState};
use crate::phase::Phase;
use crate::step_recorder::StepRecorder;

/// What a generation does next.
enum Transition {
    /// It stops, in error if there is a fault.
    Stop {
        state: GenerationState,
        fault: Option<Fault>,
    },
    Command(LifecycleCommand),
    /// It becomes the active one.
    Promote,
    /// It has stopped.
    Remove,
}

impl System {
    /// Lets every generation do what the others allow, until nothing changes. Generations that have to stop come first.
    pub(super) fn reconcile(&mut self, recorder: &mut StepRecorder) {
        loop {
            let mut next: Vec<_> = self
                .generations()
                .filter_map(|it| Some((it.reference.clone(), self.next_move(it)?)))
                .collect();
            if next.iter().any(|(_, transition)| matches!(transition, Transition::Stop { .. })) {
                next.retain(|(_, transition)| matches!(transition, Transition::Stop { .. }));
            }
            self.start_suspects_one_by_one(&mut next);
            if next.is_empty() && !self.retry_waiting() {
                break;
            }
            next.into_iter()
                .for_each(|(generation, transition)| self.apply(recorder, &generation, transition));
        }
        if self.phase == Phase::Stopping && self.generations().next().is_none() {
            self.phase = Phase::Stopped;
            recorder.record(SystemStopped {});
        }
    }

    fn generations(&self) -> impl Iterator<Item = &ExtensionGeneration> {
        self.extensions.values().flat_map(|extension| &extension.generations)
    }

    /// What a generation does next; nothing while a command is in progress or another generation has to move first.
    ///
    /// | state | last command done | next |
    /// |---|---|---|
    /// | starting, active | any | stop, if [`Self::must_stop`] |
    /// | starting | none | load, once the dependencies are loaded |
    /// | starting | load | initialize, once the dependencies are initialized |
    /// | starting | initialize | start, once the dependencies are started and an exclusive one's predecessor has stopped |
    /// | starting | start | become active |
    /// | active | start | stop, if it must yield to an exclusive successor |
    /// | active | stop | start, if the successor it yielded to is gone |
    /// | stopping | none, destroy | be removed |
    /// | stopping | start | stop, once nobody needs it and it is its turn in a shutdown |
    /// | stopping | load, initialize, stop | destroy |
    fn next_move(&self, generation: &ExtensionGeneration) -> Option<Transition> {
        use LifecycleCommand::{Destroy, Initialize, Load, Start, Stop};
        let command = |command| Some(Transition::Command(command));
        if let Some(stop) = self.must_stop(generation) {
            return Some(stop);
        }
        if generation.is_busy() {
            return None;
        }
        match (generation.state, generation.done) {
            (GenerationState::Starting, None) => self.once_dependencies_are(generation, Load),
            (GenerationState::Starting, Some(Load)) => self.once_dependencies_are(generation, Initialize),
            (GenerationState::Starting, Some(Initialize)) if self.waits_for_predecessor(generation) => None,
            (GenerationState::Starting, Some(Initialize)) => self.once_dependencies_are(generation, Start),
            (GenerationState::Starting, Some(Start | Stop | Destroy)) => Some(Transition::Promote),
            (GenerationState::Active, Some(Start)) if self.must_yield(generation) => command(Stop),
            (GenerationState::Active, Some(Stop)) if !self.must_yield(generation) => command(Start),
            (GenerationState::Active, _) => None,
            (GenerationState::Stopping, None | Some(Destroy)) => Some(Transition::Remove),
            (GenerationState::Stopping, Some(Start)) if self.must_stop_later(generation) => None,
            (GenerationState::Stopping, Some(Start)) => command(Stop),
            (GenerationState::Stopping, Some(Load | Initialize | Stop)) => command(Destroy),
        }
    }

    /// Whether a generation has to stop: the system stops, the extension was removed, or a dependency is missing. A command in progress
    /// does not delay that.
    fn must_stop(&self, generation: &ExtensionGeneration) -> Option<Transition> {
        let state = generation.state;
        if state == GenerationState::Stopping {
            return None;
        }
        let found = &generation.found;
        // What the profile refuses is not kept up; content that is broken otherwise leaves what was up before.
        let is_installed = self.extensions.get(&found.id).is_some_and(|it| match &it.fault {
            Some(fault) => fault.code != Code::PluginRefused,
            None => it.found.is_some(),
        });
        if self.phase != Phase::Running || !is_installed {
            return Some(Transition::Stop { state, fault: None });
        }
        let is_new = state == GenerationState::Starting && generation.done.is_none() && !generation.is_busy();
        let fault = if is_new { self.blocked_by(found) } else { self.missing_dependency(found) }?;
        Some(Transition::Stop { state, fault: Some(fault) })
    }

    /// Whether an active generation has to stop so that an exclusive successor can start.
    fn must_yield(&self, generation: &ExtensionGeneration) -> bool {
        let extension = self.extensions.get(&generation.found.id);
        let successor = extension.and_then(|it| it.in_state(GenerationState::Starting));
        successor.is_some_and(|next| next.exclusive && next.done >= Some(LifecycleCommand::Initialize))
    }

    /// Whether an exclusive generation has to wait until its predecessor has stopped.
    fn waits_for_predecessor(&self, generation: &ExtensionGeneration) -> bool {
        let extension = self.extensions.get(&generation.found.id);
        let predecessor = extension.and_then(|it| it.in_state(GenerationState::Active));
        generation.exclusive && predecessor.is_some_and(|old| old.done != Some(LifecycleCommand::Stop))
    }

    /// Extensions that were starting when the process died start after all others, and one at a time: if the process dies again, it is
    /// clear which one it was.
    fn start_suspects_one_by_one(&self, next: &mut Vec<(Arc<ExtensionRef>, Transition)>) {
        let is_suspect = |id: &ExtensionId| self.extensions.get(id).is_some_and(|it| it.crashes.any());
        let starts_suspect = |(generation, transition): &(Arc<ExtensionRef>, Transition)| {
            let starts =
                matches!(transition, Transition::Command(command) if *command < LifecycleCommand::Stop);
            starts && is_suspect(&generation.id)
        };
        let idle = self.generations().all(|generation| !generation.is_busy());
        let mut may_start_one = idle && next.iter().all(starts_suspect);
        next.retain(|it| !starts_suspect(it) || take(&mut may_start_one));
    }

    /// A command of a start, once it was carried out for every dependency.
    fn once_dependencies_are(
        &self,
        generation: &ExtensionGeneration,
        command: LifecycleCommand,
    ) -> Option<Transition> {
        let is_as_far =
            |it: &ExtensionGeneration| it.state != GenerationState::Stopping && it.done >= Some(command);
        let mut needed = generation.found.depends_on.iter().map(|id| self.extensions.get(id));
        let ready = needed.all(|needed| needed.is_some_and(|it| it.generations.iter().any(is_as_far)));
        ready.then_some(Transition::Command(command))
    }

    /// Whether others have to stop before this generation.
    fn must_stop_later(&self, generation: &ExtensionGeneration) -> bool {
        self.is_needed(&generation.found.id) || self.has_later_shutdown_rank(generation)
    }

    /// Whether an extension without a successor is needed by others that have not stopped.
    fn is_needed(&self, id: &ExtensionId) -> bool {
        let extension = self.extensions.get(id);
        if extension.is_some_and(|it| it.in_state(GenerationState::Active).is_some()) {
            return false;
        }
        let mut others = self.generations().filter(|it| it.state != GenerationState::Starting);
        others.any(|it| it.found.depends_on.contains(id))
    }

    /// Whether a generation that is to stop before this one has not been told to.
    fn has_later_shutdown_rank(&self, generation: &ExtensionGeneration) -> bool {
        let told =
            |other: &ExtensionGeneration| other.done != Some(LifecycleCommand::Start) || other.is_busy();
        let rank = generation.shutdown_rank;
        rank > 0 && self.generations().any(|other| other.shutdown_rank > rank && !told(other))
    }

    /// Everything is to stop, in the reverse of the order in which it became active, as far as dependencies that have changed since
    /// allow.
    pub(super) fn plan_shutdown(&mut self) {
        self.phase = Phase::Stopping;
        let active = self.extensions.values_mut().filter_map(|it| it.in_state_mut(GenerationState::Active));
        let mut active: Vec<&mut ExtensionGeneration> = active.collect();
        active.sort_by_key(|generation| generation.registered);
        let needs: Vec<_> = active.iter().map(|it| (&it.found.id, &*it.found.depends_on)).collect();
        let order = shutdown_order(&needs);
        for (position, rank) in order.into_iter().zip((1..=active.len()).rev()) {
            active[position].shutdown_rank = rank;
        }
    }

    fn apply(&mut self, recorder: &mut StepRecorder, reference: &ExtensionRef, transition: Transition) {
        let extension = self.extensions.entry(reference.id.clone()).or_default();
        match transition {
            Transition::Stop { state, fault } => {
                extension.waiting = fault.is_some();
                self.stop_generation(recorder, &reference.id, state, fault);
            }
            Transition::Command(command) => {
                if let Ok(generation) = self.generation(&reference.id, reference.generation) {
                    generation.command(recorder, command);
                }
            }
            Transition::Promote => {
                self.activations += 1;
                self.registry_stale = true;
                let descriptors = |state| extension.in_state(state).map(|it| it.descriptors.clone());
                let before = descriptors(GenerationState::Active);
                let after = descriptors(GenerationState::Starting);
                extension.promote(recorder, self.activations, !self.inspects);
                if before.is_some() && before != after {
                    self.restart_dependents(&reference.id);
                }
            }
            Transition::Remove => {
                extension.generations.retain(|it| it.reference.generation != reference.generation);
            }
        }
    }

    /// What an extension registers has changed: its active dependents are restarted.
    fn restart_dependents(&mut self, id: &ExtensionId) {
        for dependent in self.extensions.values_mut() {
            let found = dependent.found.clone().filter(|found| found.depends_on.contains(id));
            if let Some(found) = found.filter(|_| dependent.in_state(GenerationState::Active).is_some()) {
                dependent.start_generation(found, false);
            }
        }
    }

    /// Starts extensions that stopped because of others, once nothing blocks them. False if there are none.
    fn retry_waiting(&mut self) -> bool {
        if self.phase != Phase::Running {
            return false;
        }
        let is_waiting = |it: &&Extension| it.waiting && it.in_state(GenerationState::Starting).is_none();
        let waiting = self.extensions.values().filter(is_waiting).filter_map(|it| it.found.clone());
        let unblocked: Vec<FoundExtension> =
            waiting.filter(|found| self.blocked_by(found).is_none()).collect();
        for found in &unblocked {
            self.extensions.entry(found.id.clone()).or_default().start_generation(found.clone(), false);
        }
        !unblocked.is_empty()
    }
}
