//! The system machine: which extensions there are, in which state, and what is registered.

mod dependencies;
mod life;
mod outages;
mod stacks;
mod supervision;

use std::collections::{BTreeMap, BTreeSet};
use std::mem::take;
use std::sync::Arc;

use holdfast_contract::body::Body;
use holdfast_contract::digest::Digest;
use holdfast_contract::effect::*;
use holdfast_contract::ids::*;
use holdfast_contract::names::Overrides;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::registry::*;
use holdfast_contract::serde::{Deserialize, Serialize};
use holdfast_contract::system_frames::{LifecycleCommand as C, *};

use self::dependencies::shutdown_order;
use self::outages::Judging;
use self::supervision::{CrashCounter, FaultWindow, RestartBackoff};
use crate::BEHAVIOUR;
use crate::phase::{Accepted, Phase, unexpected};
use crate::registry::tool_names::{ReservedNames, duplicates};
use crate::registry::{self, RegisteredDescriptor};
use crate::step_recorder::{StepRecorder, StreamClock};

/// The one machine behind all sessions.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(crate = "holdfast_contract::serde")]
pub struct System {
    clock: StreamClock,
    phase: Phase,
    extensions: BTreeMap<ExtensionId, Extension>,
    overrides: Overrides,
    policy: Option<Digest>,
    /// Who stands in each stack, from top to bottom.
    stacks: Vec<StackChange>,
    pin: RegistryPin,
    /// Who judges and is not up, as the registry says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    listed: Vec<(ExtensionId, Outage)>,
    /// Whether something is to be pursued once everything that came with it has been taken.
    stirred: bool,
    /// Whether the registry is then to be made anew.
    stale: bool,
    activations: u64,
    /// The latest due time of each schedule that was dealt with, for whoever looks at the clock.
    pub fired: BTreeMap<ScheduleId, Millis>,
    running: BTreeSet<ScheduleId>,
}

/// An extension and its generations.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(crate = "holdfast_contract::serde")]
struct Extension {
    /// As it was found last; none when it is gone, or was never read.
    found: Option<FoundExtension>,
    /// What went wrong with what was found.
    fault: Option<Fault>,
    /// Whether only others stand in its way, so that it rises by itself when they are back.
    waiting: bool,
    generations: u64,
    lives: Vec<Life>,
    /// What served before, for a rollback.
    previous: Option<FoundExtension>,
    faults: FaultWindow,
    deaths: CrashCounter,
    returns: RestartBackoff,
    /// The frame that set the timer for the next time.
    timer: Option<Seq>,
    /// What it judges, up or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    judging: Option<Judging>,
}

/// One generation.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(crate = "holdfast_contract::serde")]
struct Life {
    reference: Arc<ExtensionRef>,
    found: FoundExtension,
    course: Course,
    descriptors: Vec<Descriptor>,
    /// Whether its life has steps that its lane is to be asked for.
    lives: bool,
    /// Whether it starts only after the generation before has stopped.
    alone: bool,
    /// The last command that was carried out.
    done: Option<C>,
    /// The command under way and the frame that gave it.
    under_way: Option<(C, Seq)>,
    /// When it took over, among all.
    registered: u64,
    /// Where it stands when everything stops: the highest goes first.
    rank: usize,
    /// Whether it brings an earlier generation back.
    rolls_back: bool,
}

/// Where a generation is in its life. Of one extension at most one rises and at most one serves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(crate = "holdfast_contract::serde")]
enum Course {
    #[default]
    Rising,
    Serving,
    Leaving,
}

impl System {
    /// The version of the serialised state: the behaviour's, and the changes of its form since.
    pub const STATE_VERSION: u32 = BEHAVIOUR * 1_000 + 2;

    /// A machine for a system stream that has no frames yet. Its first fact is `system.started`.
    pub fn new() -> Self {
        Self { pin: RegistryPin::new(RegistryRef::default(), Arc::default()), ..Self::default() }
    }

    /// The number that the next frame gets.
    pub fn next_seq(&self) -> Seq {
        self.clock.next
    }

    /// Whether something is to be pursued. `system.settled` lets it.
    pub fn is_stirred(&self) -> bool {
        self.stirred
    }

    /// The registry that new turns start on, to be resolved after the state was read back.
    pub fn pin(&mut self) -> &mut RegistryPin {
        &mut self.pin
    }

    /// The extensions that are installed, by id.
    pub fn extensions(&self) -> impl Iterator<Item = ExtensionView> {
        let installed = self.extensions.iter().filter(|(_, it)| it.found.is_some() || it.fault.is_some());
        let mut conflicts = self.conflicts();
        installed.map(move |(id, extension)| {
            let active = extension.on(Course::Serving).map(|life| life.reference.clone());
            let lane = extension.found.as_ref().map(|found| found.lane.clone()).unwrap_or_default();
            let conflicts = conflicts.remove(id).unwrap_or_default();
            ExtensionView { id: id.clone(), active, fault: extension.fault.clone(), lane, conflicts }
        })
    }

    /// Takes one fact and says what it leads to. One that does not fit is refused: it has changed nothing and is not recorded.
    pub fn step(&mut self, input: Input) -> Result<Effects, Fault> {
        let mut desk = StepRecorder::open(self.clock, input.at);
        self.take(&mut desk, &input)?;
        self.clock = desk.clock;
        Ok(desk.close(input))
    }

    /// Takes a fact. What it sets going is pursued when the system is said to have settled.
    fn take(&mut self, desk: &mut StepRecorder, input: &Input) -> Accepted {
        use Body::*;
        let running = self.phase == Phase::Running;
        match &input.body {
            SystemStarted(_) => self.start(),
            _ if self.phase == Phase::New => return unexpected("the system has not started"),
            ExtensionsFound(fact) if running => self.found(desk, &fact.found),
            ExtensionRejected(fact) if running => self.rejected(desk, fact),
            ExtensionRemoved(fact) if running => self.removed(&fact.id),
            ExtensionRetried(fact) if running => self.retried(&fact.id)?,
            TimerFired(fact) if running => self.timer(fact.timer)?,
            SystemStopping(_) if running => self.line_up(),
            ExtensionReported(fact) => self.report(desk, fact, input.cause)?,
            ExtensionFaulted(fact) => self.faulted(desk, fact)?,
            HealthReported(fact) => self.health(desk, fact)?,
            OverridesSet(fact) => self.overrides = fact.overrides.clone(),
            PolicyChanged(fact) => self.policy = Some(fact.policy),
            SystemSettled(fact) if fact.outages && !self.stirred && self.misses_outages() => {
                self.refresh(desk, true);
                return Ok(());
            }
            SystemSettled(fact) if !fact.outages && take(&mut self.stirred) => {
                self.pursue(desk);
                if take(&mut self.stale) {
                    self.refresh(desk, false);
                }
                return Ok(());
            }
            ScheduleDue(fact) => return self.due(desk, fact),
            ScheduleEnded(fact) if self.running.remove(&fact.schedule) => return Ok(()),
            GrantChanged(_) | HeadAnchored(_) | LogCheckpointed(_) | LogErased(_) | LogMigrated(_)
            | HostCalled(_) | RpcRequested(_) | RpcReturned(_) | ConnectionJudged(_) | SecretUsed(_) => {
                return Ok(());
            }
            _ => return unexpected("nothing in the system waits for this fact"),
        }
        self.stale |= matches!(input.body, SystemStarted(_) | OverridesSet(_) | PolicyChanged(_));
        self.stirred = true;
        Ok(())
    }

    /// A schedule is due. Each due time fires at most once, across restarts too.
    fn due(&mut self, desk: &mut StepRecorder, fact: &ScheduleDue) -> Accepted {
        let ScheduleDue { schedule, due, retry, passed } = fact.clone();
        let (id, name) = schedule.as_str().split_once('/').unwrap_or((schedule.as_str(), ""));
        let extension = self.extensions.get(&ExtensionId::from(id));
        let serving = extension.and_then(|extension| extension.on(Course::Serving));
        let spec = serving.and_then(|life| life.found.schedules.iter().find(|spec| spec.name == name));
        let made = |fired: &Millis| *fired > due || *fired == due && retry.is_none();
        let reason = match (serving, spec) {
            _ if self.phase != Phase::Running => "the system is stopping",
            _ if self.fired.get(&schedule).is_some_and(made) => "this run was made already",
            _ if passed.is_some() => {
                self.fired.insert(schedule.clone(), due);
                passed.as_deref().unwrap_or_default()
            }
            _ if self.running.contains(&schedule) => "the run before has not ended",
            (None, _) => "the extension is not active",
            (_, None) => "the extension has no such schedule",
            (Some(life), Some(spec)) => {
                let (extension, task) = (life.reference.clone(), spec.task.clone());
                self.fired.insert(schedule.clone(), due);
                self.running.insert(schedule.clone());
                let fired = ScheduleFired { schedule: schedule.clone(), due, task: task.clone() };
                let decided_by = desk.record(fired);
                desk.act(Act::RunTask { decided_by, schedule, extension, task, due });
                return Ok(());
            }
        };
        desk.record(ScheduleSkipped { schedule, due, reason: reason.to_owned() });
        Ok(())
    }
}

impl Extension {
    /// The generation on this course.
    fn on(&self, course: Course) -> Option<&Life> {
        self.lives.iter().find(|life| life.course == course)
    }

    fn on_mut(&mut self, course: Course) -> Option<&mut Life> {
        self.lives.iter_mut().find(|life| life.course == course)
    }

    /// Whether a generation serves or is on its way to.
    fn is_up(&self) -> bool {
        self.lives.iter().any(|life| life.course != Course::Leaving)
    }

    /// Goes by what was found from now on.
    fn adopt(&mut self, found: &FoundExtension) {
        self.found = Some(found.clone());
        self.fault = None;
        self.waiting = false;
    }

    /// Sends it up again if it is down.
    fn come_back(&mut self) {
        self.timer = None;
        if let Some(found) = self.found.clone().filter(|_| !self.is_up()) {
            self.rise(found, false);
        }
    }

    /// Sends a new generation on its way up, in place of one that had not arrived.
    fn rise(&mut self, found: FoundExtension, rolls_back: bool) {
        if let Some(replaced) = self.on_mut(Course::Rising) {
            replaced.course = Course::Leaving;
        }
        self.adopt(&found);
        self.generations += 1;
        let reference = Arc::new(found.activation(self.generations));
        self.lives.push(Life { reference, found, rolls_back, ..Life::default() });
        self.learn_judging(Course::Rising);
    }

    /// Lets the risen generation take over.
    fn promote(&mut self, desk: &mut StepRecorder, registered: u64) {
        let old = self.on_mut(Course::Serving).map(|old| {
            old.course = Course::Leaving;
            (old.reference.generation, old.found.clone())
        });
        let Some(risen) = self.on_mut(Course::Rising) else { return };
        risen.course = Course::Serving;
        risen.registered = registered;
        let (reference, rolls_back) = (risen.reference.clone(), risen.rolls_back);
        let (id, to) = (reference.id.clone(), reference.generation);
        self.learn_judging(Course::Serving);
        desk.record(life::state_changed(&id, to, ExtensionState::Active, None));
        let faults = take(&mut self.faults).count();
        self.fault = None;
        self.deaths = CrashCounter::default();
        self.waiting = false;
        if let Some((from, found)) = old {
            self.previous = (!rolls_back).then_some(found);
            desk.record(match rolls_back {
                true => Body::from(ExtensionRolledBack { id, from, to, faults }),
                false => Body::from(ExtensionReloaded { id, from, to }),
            });
        }
    }
}

impl Life {
    /// Whether it registers hooks that close when they fail.
    fn guards(&self) -> bool {
        self.descriptors.iter().any(Descriptor::guards)
    }

    /// Gives it a command. One whose life has no steps has taken this one.
    fn command(&mut self, desk: &mut StepRecorder, command: C) {
        if command != C::Load && !self.lives {
            self.done = Some(command);
            return;
        }
        let extension = self.reference.clone();
        let decided_by = desk.record(ExtensionCommanded { extension: extension.clone(), command });
        self.under_way = Some((command, decided_by));
        desk.act(Act::Lifecycle { decided_by, extension, command });
    }
}
