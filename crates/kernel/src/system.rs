//! The system machine: which extensions exist, in which state their generations are, and what is registered.
//!
//! Facts change the state and mark it dirty. `system.settled`, which follows when everything that came together has been taken,
//! reconciles: each generation gets its next command, and the registry is rebuilt if it is stale.

mod dependencies;
mod generation;
mod lifecycle;
mod outages;
mod reconcile;
mod registration;
mod schedules;
mod supervision;

use std::collections::{BTreeMap, BTreeSet};
use std::mem::take;
use std::sync::Arc;

use holdfast_contract::body::Body;
use holdfast_contract::digest::Digest;
use holdfast_contract::effect::{Effects, Input};
use holdfast_contract::ids::{ExtensionId, Millis, ScheduleId, Seq};
use holdfast_contract::names::Overrides;
use holdfast_contract::problem::Fault;
use holdfast_contract::registry::{ExtensionRef, Outage, RegistryPin, RegistryRef};
use holdfast_contract::serde::{Deserialize, Serialize};
use holdfast_contract::system_frames::{ExtensionView, FoundExtension, StackChange, SystemSettled};

use self::generation::{Extension, GenerationState};
use crate::BEHAVIOUR;
use crate::phase::{Accepted, Phase, unexpected};
use crate::step_recorder::{StepRecorder, StreamClock};

/// An extension that is expected to be active soon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedExtension {
    /// The extension.
    pub id: ExtensionId,
    /// The content that may be active then: what is starting, or the last good content if that fails.
    pub contents: Vec<Digest>,
    /// Whether it waits for the delay before a restart.
    pub restarting: bool,
    /// Whether no turn waits for it.
    pub patient: bool,
}

/// The one machine behind all sessions.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(crate = "holdfast_contract::serde")]
pub struct System {
    clock: StreamClock,
    phase: Phase,
    extensions: BTreeMap<ExtensionId, Extension>,
    overrides: Overrides,
    policy: Option<Digest>,
    /// The extensions in each stack of the registry, from top to bottom.
    stacks: Vec<StackChange>,
    pin: RegistryPin,
    /// The outages that the registry lists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    listed_outages: Vec<(ExtensionId, Outage)>,
    /// Whether there is something to reconcile once everything that came together has been taken.
    dirty: bool,
    /// Whether the registry is then to be rebuilt.
    registry_stale: bool,
    activations: u64,
    /// Whether the last good content of an extension takes the place of content that cannot be used.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    keeps_last_good: bool,
    /// Whether extensions are only loaded, to be listed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    inspects: bool,
    /// The latest due time of each schedule that was handled.
    pub fired: BTreeMap<ScheduleId, Millis>,
    running: BTreeSet<ScheduleId>,
}

impl System {
    /// The version of the serialised state: the behaviour's, and the changes of its form since.
    pub const STATE_VERSION: u32 = BEHAVIOUR * 1_000 + 1;

    /// A machine for a system stream that has no frames yet. Its first fact is `system.started`.
    pub fn new() -> Self {
        Self { pin: RegistryPin::new(RegistryRef::default(), Arc::default()), ..Self::default() }
    }

    /// The number that the next frame gets.
    pub fn next_seq(&self) -> Seq {
        self.clock.next
    }

    /// Whether there is something to reconcile, which `system.settled` does.
    pub fn is_dirty(&self) -> bool {
        self.dirty
    }

    /// The registry that new turns start on, to be resolved after the state was read back.
    pub fn pin(&mut self) -> &mut RegistryPin {
        &mut self.pin
    }

    /// The extensions that are installed, by id.
    pub fn extensions(&self) -> impl Iterator<Item = ExtensionView> {
        let installed = self.extensions.iter().filter(|(_, it)| it.found.is_some() || it.fault.is_some());
        let mut conflicts = self.conflicts();
        installed.map(move |(id, extension)| ExtensionView {
            id: id.clone(),
            active: extension.in_state(GenerationState::Active).map(|active| active.reference.clone()),
            fault: extension.fault.clone(),
            lane: extension.found.as_ref().map(|found| found.lane.clone()).unwrap_or_default(),
            conflicts: conflicts.remove(id).unwrap_or_default(),
            starting: extension.in_state(GenerationState::Starting).is_some(),
        })
    }

    /// The extensions that are not active and will be if nothing fails: they are starting, or are restarted after a delay.
    pub fn expected(&self) -> impl Iterator<Item = ExpectedExtension> {
        let running = self.phase == Phase::Running;
        self.extensions.values().filter(move |_| running).filter_map(Extension::expected)
    }

    /// What was found of a generation, and whether it is the last good content in place of what was found since.
    pub fn found_of(&self, extension: &ExtensionRef) -> Option<(&FoundExtension, bool)> {
        let generations = &self.extensions.get(&extension.id)?.generations;
        let generation = generations.iter().find(|it| it.reference.generation == extension.generation)?;
        Some((&generation.found, generation.stands_in_for.is_some()))
    }

    /// Takes one fact and returns what it leads to. A fact that does not fit is refused: it changes nothing and is not recorded.
    pub fn step(&mut self, input: Input) -> Result<Effects, Fault> {
        let mut recorder = StepRecorder::open(self.clock, input.at);
        self.accept(&mut recorder, &input)?;
        self.clock = recorder.clock;
        Ok(recorder.close(input))
    }

    /// Applies a fact. What it changes is reconciled with the next `system.settled`.
    fn accept(&mut self, recorder: &mut StepRecorder, input: &Input) -> Accepted {
        let running = self.phase == Phase::Running;
        match &input.body {
            Body::SystemStarted(fact) => self.start(fact),
            _ if self.phase == Phase::New => return unexpected("the system has not started"),
            Body::ExtensionsFound(fact) if running => self.found(recorder, &fact.found),
            Body::ExtensionRejected(fact) if running => self.rejected(recorder, &fact.id, &fact.fault),
            Body::ExtensionRemoved(fact) if running => self.removed(&fact.id),
            Body::ExtensionRetried(fact) if running => self.retried(fact)?,
            Body::TimerFired(fact) if running => self.timer_fired(fact.timer)?,
            Body::SystemStopping(_) if running => self.plan_shutdown(),
            Body::ExtensionReported(fact) => self.command_reported(recorder, fact, input.cause)?,
            Body::ExtensionFaulted(fact) => self.faulted(recorder, fact)?,
            Body::HealthReported(fact) => self.health_reported(recorder, fact)?,
            Body::OverridesSet(fact) => self.overrides = fact.overrides.clone(),
            Body::PolicyChanged(fact) => self.policy = Some(fact.policy),
            Body::SystemSettled(fact) => return self.settled(recorder, fact),
            Body::ScheduleDue(fact) => {
                self.schedule_due(recorder, fact);
                return Ok(());
            }
            Body::ScheduleEnded(fact) if self.running.remove(&fact.schedule) => return Ok(()),
            Body::HeadAnchored(_)
            | Body::LogCheckpointed(_)
            | Body::LogErased(_)
            | Body::LogMigrated(_)
            | Body::HostCalled(_)
            | Body::ExtensionsChecked(_)
            | Body::SetupCalled(_)
            | Body::RendererCalled(_)
            | Body::SecretUsed(_) => return Ok(()),
            _ => return unexpected("nothing in the system waits for this fact"),
        }
        self.registry_stale |=
            matches!(input.body, Body::SystemStarted(_) | Body::OverridesSet(_) | Body::PolicyChanged(_));
        self.dirty = true;
        Ok(())
    }

    /// Everything that came together has been taken: reconciles it, or lists the outages in the registry.
    fn settled(&mut self, recorder: &mut StepRecorder, fact: &SystemSettled) -> Accepted {
        if fact.outages {
            if self.dirty || !self.misses_outages() {
                return unexpected("nothing in the system waits for this fact");
            }
            self.refresh_registry(recorder, true);
            return Ok(());
        }
        if !take(&mut self.dirty) {
            return unexpected("nothing in the system waits for this fact");
        }
        self.reconcile(recorder);
        if take(&mut self.registry_stale) {
            self.refresh_registry(recorder, false);
        }
        Ok(())
    }
}
