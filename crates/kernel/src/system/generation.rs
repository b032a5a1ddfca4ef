//! An extension and its generations. A new generation starts beside the active one and takes over when it has started.

use std::mem::take;
use std::sync::Arc;

use holdfast_contract::body::Body;
use holdfast_contract::digest::Digest;
use holdfast_contract::effect::Act;
use holdfast_contract::ids::{ExtensionId, Generation, Seq};
use holdfast_contract::problem::Fault;
use holdfast_contract::registry::{Descriptor, ExtensionRef};
use holdfast_contract::serde::{Deserialize, Serialize};
use holdfast_contract::system_frames::{
    ExtensionCommanded, ExtensionReloaded, ExtensionRolledBack, ExtensionState, ExtensionStateChanged,
    FoundExtension, LifecycleCommand,
};

use super::ExpectedExtension;
use super::outages::Judging;
use super::supervision::{CrashCounter, FaultWindow, RestartBackoff};
use crate::step_recorder::StepRecorder;

/// An extension and its generations.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(crate = "holdfast_contract::serde")]
pub(super) struct Extension {
    /// As it was found last; none when it was removed or never read.
    pub found: Option<FoundExtension>,
    /// What is wrong with what was found.
    pub fault: Option<Fault>,
    /// Whether only other extensions block it, so that it starts by itself when they are back.
    pub waiting: bool,
    /// The number of the last generation.
    pub last_generation: u64,
    pub generations: Vec<ExtensionGeneration>,
    /// What was active before the present generation, for a rollback when that keeps failing. Forgotten at a restart.
    pub previous: Option<FoundExtension>,
    pub faults: FaultWindow,
    pub crashes: CrashCounter,
    pub restarts: RestartBackoff,
    /// The frame that set the timer of the next restart.
    pub timer: Option<Seq>,
    /// What it judges, active or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judging: Option<Judging>,
    /// The content that was active last, kept over restarts. It runs when what is installed cannot be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_good: Option<FoundExtension>,
}

/// One generation of an extension.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(crate = "holdfast_contract::serde")]
pub(super) struct ExtensionGeneration {
    pub reference: Arc<ExtensionRef>,
    pub found: FoundExtension,
    pub state: GenerationState,
    pub descriptors: Vec<Descriptor>,
    /// Whether its lane carries out lifecycle commands after `load`.
    pub has_lifecycle: bool,
    /// Whether it starts only after the generation before has stopped.
    pub exclusive: bool,
    /// The last command that was carried out.
    pub done: Option<LifecycleCommand>,
    pub in_progress: Option<CommandInProgress>,
    /// When it became active, among all.
    pub registered: u64,
    /// Its position in the shutdown: the highest stops first.
    pub shutdown_rank: usize,
    /// Whether it brings an earlier generation back.
    pub is_rollback: bool,
    /// The fault of the content that was found, if this is the last good content in its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stands_in_for: Option<Fault>,
}

/// A command that a lane is carrying out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(crate = "holdfast_contract::serde")]
pub(super) struct CommandInProgress {
    pub command: LifecycleCommand,
    /// The frame that gave it.
    pub frame: Seq,
}

/// The state of a generation. Of one extension at most one is starting and at most one is active.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(crate = "holdfast_contract::serde")]
pub(super) enum GenerationState {
    #[default]
    Starting,
    Active,
    Stopping,
}

/// The frame of a generation that changes its state.
pub(super) fn state_changed(
    id: &ExtensionId,
    generation: Generation,
    state: ExtensionState,
    fault: Option<Fault>,
) -> ExtensionStateChanged {
    ExtensionStateChanged { id: id.clone(), generation, state, fault, again: None }
}

impl Extension {
    /// The generation in this state.
    pub fn in_state(&self, state: GenerationState) -> Option<&ExtensionGeneration> {
        self.generations.iter().find(|generation| generation.state == state)
    }

    pub fn in_state_mut(&mut self, state: GenerationState) -> Option<&mut ExtensionGeneration> {
        self.generations.iter_mut().find(|generation| generation.state == state)
    }

    /// Whether a generation is active or starting.
    pub fn is_up(&self) -> bool {
        self.generations.iter().any(|generation| generation.state != GenerationState::Stopping)
    }

    /// Takes over the latest discovery.
    pub fn adopt(&mut self, found: &FoundExtension) {
        self.found = Some(found.clone());
        self.fault = None;
        self.waiting = false;
    }

    /// Starts it again if it is down, or if another version than the one that was found is active: what was found, or the last good
    /// content if nothing can be read and that may stand in.
    pub fn restart(&mut self, keeps_last_good: bool) {
        self.timer = None;
        if self.is_up() {
            // A new version whose start was interrupted is tried again.
            let starts = self.in_state(GenerationState::Starting).is_some();
            let active = self.in_state(GenerationState::Active).map(|active| active.found.digest);
            if let Some(found) = self.found.clone().filter(|found| !starts && active != Some(found.digest)) {
                self.start_generation(found, false);
            }
            return;
        }
        match (self.found.clone(), self.fault.clone()) {
            (Some(found), _) => self.start_generation(found, false),
            (None, Some(fault)) if keeps_last_good => self.start_last_good(None, &fault),
            (None, _) => {}
        }
    }

    /// Adds a generation that starts, in place of one that has not finished starting.
    pub fn start_generation(&mut self, found: FoundExtension, is_rollback: bool) {
        self.adopt(&found);
        self.add_generation(ExtensionGeneration { found, is_rollback, ..ExtensionGeneration::default() });
    }

    /// Starts the last good content, because what was found cannot be used, unless that is the content that failed. What was found and
    /// its fault stay.
    pub fn start_last_good(&mut self, failed: Option<Digest>, fault: &Fault) {
        let Some(found) = self.last_good.clone().filter(|good| Some(good.digest) != failed) else { return };
        if self.crashes.quarantine(found.digest).is_none() {
            let stands_in_for = Some(fault.clone());
            self.add_generation(ExtensionGeneration { found, stands_in_for, ..Default::default() });
        }
    }

    fn add_generation(&mut self, generation: ExtensionGeneration) {
        if let Some(replaced) = self.in_state_mut(GenerationState::Starting) {
            replaced.state = GenerationState::Stopping;
        }
        self.last_generation += 1;
        let reference = Arc::new(generation.found.activation(self.last_generation));
        self.generations.push(ExtensionGeneration { reference, ..generation });
        self.learn_judging(GenerationState::Starting);
    }

    /// The content that will be active if nothing fails, unless one is.
    pub fn expected(&self) -> Option<ExpectedExtension> {
        if self.in_state(GenerationState::Active).is_some() {
            return None;
        }
        let starting = self.in_state(GenerationState::Starting).map(|it| &it.found);
        if starting.is_none() && self.timer.is_none() {
            return None;
        }
        let contents = [starting, self.found.as_ref(), self.last_good.as_ref()].into_iter().flatten();
        let id = contents.clone().next()?.id.clone();
        let contents = contents.map(|found| found.digest).collect();
        let patient = self.judging.is_none() && starting.is_some_and(|found| found.patient);
        Some(ExpectedExtension { id, contents, restarting: starting.is_none(), patient })
    }

    /// Makes the generation that has started the active one. Unless it was only loaded, it has shown that it can start.
    pub fn promote(&mut self, recorder: &mut StepRecorder, registered: u64, has_started: bool) {
        let replaced = self.in_state_mut(GenerationState::Active).map(|old| {
            old.state = GenerationState::Stopping;
            (old.reference.generation, old.found.clone())
        });
        let Some(new) = self.in_state_mut(GenerationState::Starting) else { return };
        new.state = GenerationState::Active;
        new.registered = registered;
        let (reference, is_rollback) = (new.reference.clone(), new.is_rollback);
        let (id, to) = (reference.id.clone(), reference.generation);
        let (stands_in_for, found) = (new.stands_in_for.clone(), new.found.clone());
        self.fault = stands_in_for;
        if has_started {
            self.last_good = Some(found);
            self.learn_judging(GenerationState::Active);
        }
        recorder.record(state_changed(&id, to, ExtensionState::Active, self.fault.clone()));
        let faults = take(&mut self.faults).count();
        // Content that crashed the process stays quarantined while the last good one stands in for it.
        if self.fault.is_none() && has_started {
            self.crashes = CrashCounter::default();
        }
        self.waiting = false;
        let Some((from, found)) = replaced else { return };
        if is_rollback {
            self.previous = None;
            recorder.record(Body::from(ExtensionRolledBack { id, from, to, faults }));
        } else {
            self.previous = Some(found);
            recorder.record(Body::from(ExtensionReloaded { id, from, to }));
        }
    }
}

impl ExtensionGeneration {
    /// Whether it registers hooks that close when they fail.
    pub fn guards(&self) -> bool {
        self.descriptors.iter().any(Descriptor::guards)
    }

    /// Whether a command is in progress.
    pub fn is_busy(&self) -> bool {
        self.in_progress.is_some()
    }

    /// Gives it a command. Without a lifecycle there is nothing to carry out after `load`.
    pub fn command(&mut self, recorder: &mut StepRecorder, command: LifecycleCommand) {
        if command != LifecycleCommand::Load && !self.has_lifecycle {
            self.done = Some(command);
            return;
        }
        let extension = self.reference.clone();
        let decided_by = recorder.record(ExtensionCommanded { extension: extension.clone(), command });
        self.in_progress = Some(CommandInProgress { command, frame: decided_by });
        recorder.act(Act::Lifecycle { decided_by, extension, command });
    }
}
