//! The system machine: which extensions there are, in which state, and what is registered.

mod life;
mod order;
mod stacks;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use holdfast_contract::body::Body;
use holdfast_contract::effect::{Act, Effect, Input};
use holdfast_contract::ids::{DescriptorId, ExtensionId, Generation, Millis, RegistryKind, ScheduleId, Seq};
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::registry::{Descriptor, ExtensionRef, Override, Registry, RegistryPin};
use holdfast_contract::serde::{Deserialize, Serialize};
use holdfast_contract::system_frames::{
    ExtensionState, FoundExtension, LifecycleCommand, ScheduleDue, ScheduleEnded, ScheduleFired,
    ScheduleSkipped,
};

use crate::desk::{Clerk, Desk, refuse};
use stacks::Stacks;

/// The one machine behind all sessions.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(crate = "holdfast_contract::serde")]
pub struct System {
    clerk: Clerk,
    phase: Phase,
    extensions: BTreeMap<ExtensionId, Extension>,
    overrides: BTreeMap<RegistryKind, BTreeMap<DescriptorId, Override>>,
    policy: Option<holdfast_contract::digest::Digest>,
    stacks: Stacks,
    pin: RegistryPin,
    activations: u64,
    fired: BTreeMap<ScheduleId, Millis>,
    running: BTreeSet<ScheduleId>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(crate = "holdfast_contract::serde")]
enum Phase {
    #[default]
    New,
    Running,
    Stopping,
    Stopped,
}

/// An extension and its generations.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(crate = "holdfast_contract::serde")]
struct Extension {
    found: FoundExtension,
    state: ExtensionState,
    fault: Option<Fault>,
    generations: u64,
    /// The generation that serves, or served last.
    active: Option<Activation>,
    /// The generation that is on its way up.
    rising: Option<Activation>,
    /// The generation before, for a rollback.
    previous: Option<FoundActivation>,
    leaving: Vec<Activation>,
    faults: Vec<Millis>,
    removed: bool,
}

/// One generation on its way through its life.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(crate = "holdfast_contract::serde")]
struct Activation {
    reference: Arc<ExtensionRef>,
    found: FoundExtension,
    descriptors: Vec<Descriptor>,
    /// The last command that was carried out.
    done: Option<LifecycleCommand>,
    /// The command under way and the frame that gave it.
    under_way: Option<(LifecycleCommand, Seq)>,
    /// When it was registered, among all.
    registered: u64,
    /// The generation that it brings back, if it is a rollback.
    rolls_back: Option<Generation>,
}

/// A generation that can be brought back.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(crate = "holdfast_contract::serde")]
struct FoundActivation {
    reference: Arc<ExtensionRef>,
    found: FoundExtension,
}

/// An extension as others see it.
#[derive(Clone, Debug)]
pub struct ExtensionView {
    /// The extension.
    pub id: ExtensionId,
    /// The generation that serves.
    pub active: Option<Arc<ExtensionRef>>,
    /// Its state.
    pub state: ExtensionState,
    /// Why it is in error.
    pub fault: Option<Fault>,
    /// The lane that runs it.
    pub lane: String,
}

impl System {
    /// A machine for a system stream that has no frames yet. Its first fact is `system.started`.
    pub fn new() -> Self {
        Self { pin: RegistryPin::new(Default::default(), Arc::new(Registry::default())), ..Self::default() }
    }

    /// The number that the next frame gets.
    pub fn next_seq(&self) -> Seq {
        self.clerk.next
    }

    /// The registry that new turns start on.
    pub fn registry(&self) -> &RegistryPin {
        &self.pin
    }

    /// The registry, to be resolved after the state was read back.
    pub fn pin(&mut self) -> &mut RegistryPin {
        &mut self.pin
    }

    /// The extensions, by id.
    pub fn extensions(&self) -> impl Iterator<Item = ExtensionView> {
        self.extensions.values().map(|extension| ExtensionView {
            id: extension.found.id.clone(),
            active: extension.active.as_ref().map(|active| active.reference.clone()),
            state: extension.state,
            fault: extension.fault.clone(),
            lane: extension.found.lane.clone(),
        })
    }

    /// Takes one fact and says what it leads to.
    pub fn step(&mut self, input: Input) -> Vec<Effect> {
        if let Err(message) = self.admit(&input) {
            return refuse(Code::TurnUnexpected, message);
        }
        let body = input.body.clone();
        let mut clerk = std::mem::take(&mut self.clerk);
        let mut desk = Desk::open(&mut clerk, input);
        self.take(&mut desk, body);
        let effects = desk.close();
        self.clerk = clerk;
        effects
    }

    fn admit(&self, input: &Input) -> Result<(), &'static str> {
        use Body as B;
        let known = |id: &ExtensionId, generation: Generation| {
            let extension = self.extensions.get(id);
            let fits = extension.is_some_and(|extension| extension.generation(generation).is_some());
            fits.then_some(()).ok_or("no such generation of this extension is there")
        };
        match &input.body {
            B::SystemStarted(_) => match self.phase {
                Phase::New | Phase::Stopped => Ok(()),
                Phase::Running | Phase::Stopping => Ok(()),
            },
            _ if self.phase == Phase::New => Err("the system has not started"),
            B::ExtensionReported(fact) => {
                known(&fact.id, fact.generation)?;
                let expected = self.extensions.get(&fact.id).and_then(|it| it.generation(fact.generation));
                let waits = expected.and_then(|activation| activation.under_way);
                let fits = waits == input.cause.map(|cause| (fact.command, cause));
                fits.then_some(()).ok_or("this command is not under way")
            }
            B::ExtensionFaulted(fact) => known(&fact.id, fact.generation),
            B::HealthReported(fact) => known(&fact.id, fact.generation),
            B::ScheduleEnded(fact) => {
                self.running.contains(&fact.schedule).then_some(()).ok_or("this schedule is not running")
            }
            B::SystemStopping(_) => {
                (self.phase == Phase::Running).then_some(()).ok_or("the system is not running")
            }
            B::ExtensionsFound(_)
            | B::ExtensionRejected(_)
            | B::ExtensionRemoved(_)
            | B::OverridesSet(_)
            | B::PolicyChanged(_)
            | B::GrantChanged(_)
            | B::ScheduleDue(_)
            | B::HeadAnchored(_)
            | B::LogCheckpointed(_)
            | B::LogErased(_)
            | B::LogMigrated(_)
            | B::HostCalled(_)
            | B::RpcRequested(_)
            | B::RpcReturned(_)
            | B::ConnectionJudged(_)
            | B::SecretUsed(_) => Ok(()),
            _ => Err("this is no fact of the system stream"),
        }
    }

    fn take(&mut self, desk: &mut Desk<'_>, body: Body) {
        match body {
            Body::SystemStarted(_) => self.start(desk),
            Body::ExtensionsFound(fact) => self.found(desk, fact.found),
            Body::ExtensionRejected(fact) => self.rejected(desk, fact.id, fact.fault),
            Body::ExtensionRemoved(fact) => self.removed(desk, &fact.id),
            Body::ExtensionReported(fact) => self.reported(desk, fact),
            Body::ExtensionFaulted(fact) => self.faulted(desk, &fact.id, fact.generation, fact.fault),
            Body::HealthReported(fact) => self.health(desk, &fact.id, fact.generation, fact.healthy),
            Body::OverridesSet(fact) => {
                self.overrides = fact.overrides;
                self.refresh(desk);
            }
            Body::PolicyChanged(fact) => {
                self.policy = Some(fact.policy);
                self.refresh(desk);
            }
            Body::ScheduleDue(fact) => self.due(desk, fact),
            Body::ScheduleEnded(ScheduleEnded { schedule, .. }) => drop(self.running.remove(&schedule)),
            Body::SystemStopping(_) => self.stop(desk),
            _ => {}
        }
    }

    /// A schedule is due. Each due time fires at most once, across restarts too.
    fn due(&mut self, desk: &mut Desk<'_>, ScheduleDue { schedule, due }: ScheduleDue) {
        let (id, name) = schedule.as_str().split_once('/').unwrap_or((schedule.as_str(), ""));
        let extension = self.extensions.get(&ExtensionId::from(id));
        let active =
            extension.filter(|it| it.state == ExtensionState::Active).and_then(|it| it.active.as_ref());
        let task = active.and_then(|active| active.found.schedules.iter().find(|spec| spec.name == name));
        let again = self.fired.get(&schedule).is_some_and(|fired| *fired >= due);
        let reason = match (active, task) {
            _ if self.phase != Phase::Running => "the system is stopping",
            _ if again => "this run was made already",
            _ if self.running.contains(&schedule) => "the run before has not ended",
            (Some(active), Some(spec)) => {
                let (extension, task) = (active.reference.clone(), spec.task.clone());
                let fired = ScheduleFired { schedule: schedule.clone(), due, task: task.clone() };
                let decided_by = desk.record(fired);
                self.fired.insert(schedule.clone(), due);
                self.running.insert(schedule.clone());
                desk.act(Act::RunTask { decided_by, schedule, extension, task, due });
                return;
            }
            (Some(_), None) => "the extension has no such schedule",
            (None, _) => "the extension is not active",
        };
        desk.record(ScheduleSkipped { schedule, due, reason: reason.to_owned() });
    }
}

impl Extension {
    fn new(found: FoundExtension) -> Self {
        Self {
            found,
            state: ExtensionState::Inactive,
            fault: None,
            generations: 0,
            active: None,
            rising: None,
            previous: None,
            leaving: Vec::new(),
            faults: Vec::new(),
            removed: false,
        }
    }

    /// The generation of this number, wherever it is in its life.
    fn generation(&self, generation: Generation) -> Option<&Activation> {
        let all = self.active.iter().chain(&self.rising).chain(&self.leaving);
        all.into_iter().find(|activation| activation.reference.generation == generation)
    }

    fn generation_mut(&mut self, generation: Generation) -> Option<&mut Activation> {
        let all = self.active.iter_mut().chain(&mut self.rising).chain(&mut self.leaving);
        all.into_iter().find(|activation| activation.reference.generation == generation)
    }
}
