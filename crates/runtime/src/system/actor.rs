//! The system's actor: lifecycles, registries, anchors.

use std::collections::{HashMap, VecDeque};
use std::future::ready;
use std::sync::Arc;

use fail::fail_point;
use futures_util::FutureExt;
use holdfast_contract::body::Body;
use holdfast_contract::digest::canonical;
use holdfast_contract::effect::{Act, Effects, Input};
use holdfast_contract::frame::{Draft, FrameSource};
use holdfast_contract::ids::{ExtensionId, Millis, ScheduleId, Seq, StreamId};
use holdfast_contract::names::UnusedOverride;
use holdfast_contract::problem::{Code, Fault, Problem};
use holdfast_contract::registry::{Descriptor, ExtensionRef};
use holdfast_contract::session_frames::TimerFired;
use holdfast_contract::system_frames::{
    ExtensionFaulted, ExtensionReported, ExtensionState, ExtensionView, LifecycleCommand, LifecycleOutcome,
    ScheduleDue, ScheduleEnded, SystemSettled, SystemStarted, SystemStopping,
};
use holdfast_contract::wire::{Call, Lane, Later, Reply};
use holdfast_kernel::{BEHAVIOUR, System};
use holdfast_store::{ObjectKind, StreamLog};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use super::{ClockReading, ScheduleQueue};
use crate::calls::{start_call, wait_timeout};
use crate::history::rebuild::rebuild;
use crate::host::SystemHost;
use crate::runtime::Inner;
use crate::session::ReplySender;

/// How long a step of an extension's life may take.
const LIFECYCLE_TIMEOUT: Millis = Millis(30_000);

/// How long those who are calling an extension have to finish before it is replaced.
const QUIESCE_TIMEOUT: Millis = Millis(10_000);

/// How long a scheduled task may take.
const TASK_TIMEOUT: Millis = Millis(600_000);

/// How many tasks share the work of one step.
const WORKERS: usize = 2;

/// Frames between snapshots.
const SNAPSHOT_EVERY: u64 = 1024;

/// Something for the system's actor.
pub(crate) enum SystemCommand {
    /// A fact from the host.
    Fact(Box<Body>),
    /// A fact from an extension, and the frame that caused it.
    Said(FrameSource, Option<Seq>, Box<Body>),
    /// A run of a schedule has ended.
    Ran(Seq, ScheduleEnded),
    /// Run a schedule now, unless it is running, and answer when its run has ended.
    RunSchedule { schedule: ScheduleId, reply: ReplySender<ScheduleEnded> },
    /// Facts that acts caused, each with the frame that decided the act.
    Done(Vec<(Seq, Body)>),
    /// So many acts that were never performed: the frames that decided them did not reach the disk.
    Undone(usize),
    /// Tell which extensions are installed.
    Extensions(ReplySender<Vec<ExtensionView>>),
    /// Asks for the overrides that name nothing.
    UnusedOverrides(ReplySender<Vec<UnusedOverride>>),
    /// Tell which extensions are known to judge.
    Judging(ReplySender<Vec<ExtensionId>>),
    /// Answer when nothing is under way.
    Settled(ReplySender<()>),
    /// Stop everything, and answer when it has.
    Stop { reason: String, reply: ReplySender<()> },
}

/// The one actor of the system stream.
pub(crate) struct SystemActor {
    system: System,
    log: StreamLog,
    inner: Arc<Inner>,
    queue: VecDeque<Input>,
    schedule_queue: ScheduleQueue,
    /// The runs of schedules that are under way, by the schedule, with the moment they were due.
    runs: HashMap<ScheduleId, (Millis, AbortHandle)>,
    /// Who waits for the end of a run, which its schedule and due time identify.
    awaiting_runs: Vec<(ScheduleId, Millis, ReplySender<ScheduleEnded>)>,
    /// Facts that may not be on disk yet, with their places.
    unwritten: VecDeque<(Seq, Input)>,
    under_way: usize,
    waiting: Vec<ReplySender<()>>,
    /// Who wants to know which extensions there are, once everything so far has been taken.
    asking: Vec<ReplySender<Vec<ExtensionView>>>,
    /// Whether the registry has changed and new turns do not start on it yet.
    activates: bool,
    /// Whether other extensions may be expected than is known.
    expected_stale: bool,
    /// Whether it ends once nothing is under way.
    stopping: bool,
    snapshot_at: Seq,
}

/// The frame that decided something, and what is to be done.
type Work = (Seq, Later<Body>);

/// Why the actor goes on.
enum Wakeup {
    /// A command came.
    Command(SystemCommand),
    /// A schedule may be due.
    Timer,
}

impl SystemActor {
    /// Takes up the system stream and starts the actor.
    pub(crate) fn start(
        inner: Arc<Inner>,
        notes: mpsc::UnboundedReceiver<SystemCommand>,
    ) -> Result<(), Problem> {
        let stream = StreamId::system();
        let log = inner.store.stream(&stream)?;
        let rebuilt = rebuild::<System>(&inner.store, &stream)?;
        log.append(rebuilt.missing)?;
        let mut actor = Self {
            snapshot_at: Seq(rebuilt.machine.next_seq().0.saturating_sub(rebuilt.read)),
            system: rebuilt.machine,
            log,
            schedule_queue: ScheduleQueue::new(inner.home.zone().clone()),
            runs: HashMap::new(),
            awaiting_runs: Vec::new(),
            inner,
            queue: VecDeque::new(),
            unwritten: VecDeque::new(),
            under_way: 0,
            waiting: Vec::new(),
            asking: Vec::new(),
            activates: false,
            expected_stale: false,
            stopping: false,
        };
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let executing = Some(actor.inner.executing.left_behind());
        let inspects = actor.inner.inspects;
        let crashed = actor.inner.extensions.crashed();
        let started =
            SystemStarted { kernel: BEHAVIOUR, version, executing, crashed, last_good: true, inspects };
        actor.fact(None, started.into());
        actor.drain()?;
        tokio::spawn(actor.run(notes));
        Ok(())
    }

    async fn run(mut self, mut notes: mpsc::UnboundedReceiver<SystemCommand>) {
        while let Some(wakeup) = self.next(&mut notes).await {
            if let Wakeup::Command(note) = wakeup {
                self.take(note);
            }
            // What came meanwhile is taken in one go, so that the registry is made once for all of it.
            while let Ok(note) = notes.try_recv() {
                self.take(note);
            }
            let drained = self.drain().and_then(|()| self.tick());
            if drained.is_ok() {
                self.snapshot(self.stopping && self.under_way == 0);
            }
            for asking in self.asking.drain(..) {
                drop(asking.send(Ok(self.system.extensions().collect())));
            }
            if self.under_way == 0 {
                self.inner.extensions.lanes().iter().for_each(|lane| lane.at_rest());
                // What is the same as in the life before is not announced again.
                if self.inner.registry.pin().view.is_none() {
                    self.inner.activate(self.system.pin().clone());
                }
            }
            if drained.is_err() || self.under_way == 0 {
                for waiting in self.waiting.drain(..) {
                    let _gone = waiting.send(drained.clone());
                }
                // It holds the store and everything else, and what it holds can tell it something for ever.
                if self.stopping && drained.is_ok() {
                    return;
                }
            }
        }
    }

    /// What comes next. None when all senders are gone.
    async fn next(&self, notes: &mut mpsc::UnboundedReceiver<SystemCommand>) -> Option<Wakeup> {
        let rest = self.schedule_queue.next_wakeup(self.clocks()).filter(|_| !self.stopping);
        let Some(rest) = rest else { return notes.recv().await.map(Wakeup::Command) };
        tokio::select! {
            note = notes.recv() => note.map(Wakeup::Command),
            () = self.inner.clock.sleep(rest) => Some(Wakeup::Timer),
        }
    }

    /// Feeds what is due. A run that ends at once may let the next one begin.
    fn tick(&mut self) -> Result<(), Problem> {
        if self.stopping {
            return Ok(());
        }
        let due = self.schedule_queue.due(self.clocks(), &self.system.fired);
        if due.is_empty() {
            return Ok(());
        }
        due.into_iter().for_each(|due| self.fact(None, due.into()));
        self.drain()
    }

    /// Gives up the runs that are under way: the system is about to stop.
    fn give_up_runs(&mut self) {
        for (schedule, (due, run)) in std::mem::take(&mut self.runs) {
            run.abort();
            let fault = Fault::new(Code::ExtensionFault, "the system was stopped before it had ended");
            let ended = ScheduleEnded { schedule, due, fault: Some(fault) };
            self.answer_run(&ended.schedule, due, Ok(&ended));
            self.fact(None, ended.into());
        }
    }

    /// Runs a schedule now. The run is decided, recorded and made in the same way as one that is due.
    fn run_schedule(&mut self, schedule: ScheduleId, reply: ReplySender<ScheduleEnded>) {
        let due = match self.runs.get(&schedule) {
            Some((due, _)) => *due,
            None => {
                let handled = self.system.fired.get(&schedule).map_or(Millis(0), |fired| Millis(fired.0 + 1));
                let due = self.inner.clock.now().max(handled);
                let run = ScheduleDue { schedule: schedule.clone(), due, ..ScheduleDue::default() };
                self.fact(None, run.into());
                due
            }
        };
        self.awaiting_runs.push((schedule, due, reply));
    }

    /// Tells those who wait for a run how it ended, or why it is not made.
    fn answer_run(&mut self, schedule: &ScheduleId, due: Millis, ended: Result<&ScheduleEnded, &Problem>) {
        let is_it = |(waits, its_due, _): &mut (ScheduleId, Millis, _)| waits == schedule && *its_due == due;
        for (_, _, reply) in self.awaiting_runs.extract_if(.., is_it) {
            let _gone = reply.send(ended.cloned().map_err(Clone::clone));
        }
    }

    fn take(&mut self, note: SystemCommand) {
        match note {
            SystemCommand::Fact(body) => {
                if let Body::ExtensionsFound(fact) = &*body {
                    self.inner.remember_found(&fact.found);
                }
                self.inner.follow_fact(&body);
                self.fact(None, *body);
            }
            SystemCommand::Said(source, cause, body) => {
                self.queue.push_back(Input { at: self.inner.clock.now(), source, cause, body: *body });
            }
            SystemCommand::Done(facts) => {
                self.under_way = self.under_way.saturating_sub(facts.len());
                for (cause, body) in facts {
                    self.inner.follow_fact(&body);
                    self.fact(Some(cause), body);
                }
            }
            SystemCommand::Ran(cause, ended) => {
                self.runs.remove(&ended.schedule);
                self.answer_run(&ended.schedule, ended.due, Ok(&ended));
                self.schedule_queue.ended(&ended, self.clocks(), self.draw());
                self.fact(Some(cause), ended.into());
            }
            SystemCommand::RunSchedule { schedule, reply } => self.run_schedule(schedule, reply),
            SystemCommand::Undone(acts) => self.under_way = self.under_way.saturating_sub(acts),
            SystemCommand::Extensions(reply) => self.asking.push(reply),
            SystemCommand::UnusedOverrides(reply) => drop(reply.send(Ok(self.system.unused_overrides()))),
            SystemCommand::Judging(reply) => drop(reply.send(Ok(self.system.judging().cloned().collect()))),
            SystemCommand::Settled(reply) => self.waiting.push(reply),
            SystemCommand::Stop { reason, reply } => {
                self.give_up_runs();
                self.inner.extensions.stop_loading();
                self.fact(None, SystemStopping { reason }.into());
                self.waiting.push(reply);
                self.stopping = true;
            }
        }
    }

    fn fact(&mut self, cause: Option<Seq>, body: Body) {
        self.queue.push_back(Input { at: self.inner.clock.now(), source: FrameSource::Host, cause, body });
    }

    /// A log that has failed is reopened at its last durable frame, and the facts that were lost come first again.
    fn restore(&mut self) -> Result<(), Problem> {
        let durable = self.log.head().map(|head| head.seq);
        while self.unwritten.front().is_some_and(|(seq, _)| Some(*seq) <= durable) {
            self.unwritten.pop_front();
        }
        if self.log.append(Vec::new()).is_ok() {
            return Ok(());
        }
        let stream = StreamId::system();
        let log = self.inner.store.stream(&stream)?;
        let rebuilt = rebuild::<System>(&self.inner.store, &stream)?;
        log.append(rebuilt.missing)?;
        let next = rebuilt.machine.next_seq();
        let lost = self.unwritten.drain(..).filter(|(seq, _)| *seq >= next).map(|(_, input)| input);
        self.queue = lost.chain(self.queue.drain(..)).collect();
        (self.system, self.log) = (rebuilt.machine, log);
        Ok(())
    }

    fn drain(&mut self) -> Result<(), Problem> {
        self.restore()?;
        loop {
            self.step_all()?;
            match (self.system.is_dirty(), self.system.misses_outages()) {
                (true, _) => self.fact(None, SystemSettled { outages: false }.into()),
                (false, true) => self.fact(None, SystemSettled { outages: true }.into()),
                (false, false) => break,
            }
        }
        // Only now is everybody in it who judges. While everything stops, turns stay on what there was before.
        if std::mem::take(&mut self.activates) && !self.stopping {
            self.inner.activate(self.system.pin().clone());
        }
        if std::mem::take(&mut self.expected_stale) {
            self.inner.extensions.startup().update(self.system.expected(), self.inner.clock.steady());
        }
        Ok(())
    }

    fn step_all(&mut self) -> Result<(), Problem> {
        while let Some(mut input) = self.queue.pop_front() {
            self.inner.home.redact(&mut input.body);
            self.unwritten.push_back((self.system.next_seq(), input.clone()));
            let at = input.at;
            let is_a_run = matches!(&input.body, Body::ScheduleDue(ScheduleDue { passed: None, .. }));
            let Ok(Effects { frames, acts }) = self.system.step(input) else {
                // A report that is no longer awaited; it is not recorded.
                self.unwritten.pop_back();
                continue;
            };
            self.note_expected(&frames);
            for frame in &frames {
                match &frame.body {
                    Body::ExtensionStateChanged(change) => {
                        self.inner.extension_changed(change);
                        let mut schedules = self.inner.extensions.schedules(&change.id);
                        schedules.retain(|_| !self.inner.inspects);
                        self.schedule_queue.serves(&change.id, &schedules);
                    }
                    Body::ScheduleSkipped(skipped) if is_a_run => {
                        let what = format!("`{}` was not run: {}", skipped.schedule, skipped.reason);
                        let problem = Problem::new(Code::ExtensionFault, what);
                        self.answer_run(&skipped.schedule, skipped.due, Err(&problem));
                        self.schedule_queue.skipped(&skipped.schedule)
                    }
                    _ => {}
                }
            }
            self.log.append(frames)?;
            let mut works = Vec::new();
            for act in acts {
                works.extend(self.perform(act, at)?);
            }
            self.behind_barrier(works);
        }
        Ok(())
    }

    /// Notes whether other extensions are expected than before. One that stops is expected again before it is known to be inactive, so
    /// that nobody finds it neither active nor expected in between.
    fn note_expected(&mut self, frames: &[Draft]) {
        let stops = |body: &Body| matches!(body, Body::ExtensionStateChanged(it) if it.state != ExtensionState::Active);
        let changes = |body: &Body| match body {
            Body::ExtensionStateChanged(_) => true,
            Body::ExtensionCommanded(it) => it.command == LifecycleCommand::Load,
            _ => false,
        };
        self.expected_stale |= frames.iter().any(|frame| changes(&frame.body));
        if frames.iter().any(|frame| stops(&frame.body)) {
            self.inner.extensions.startup().add(self.system.expected(), self.inner.clock.steady());
        }
    }

    /// Performs an act, or gives the work that it is. `since` is the time of the input that led to it.
    fn perform(&mut self, act: Act, since: Millis) -> Result<Option<Work>, Problem> {
        Ok(match act {
            Act::Lifecycle { decided_by, extension, command } => {
                Some((decided_by, self.lifecycle(extension, decided_by, command)))
            }
            Act::Activate { pin } => {
                if let Some(view) = &pin.view {
                    let bytes = canonical(&**view)
                        .map_err(|error| Problem::new(Code::Internal, error.to_string()))?;
                    self.inner.store.put(ObjectKind::Registry, bytes)?;
                }
                self.activates = true;
                None
            }
            Act::SetTimer { decided_by, at } => {
                let inner = Arc::downgrade(&self.inner);
                // The machine's clock may have been set since.
                let wait = self.inner.clock.sleep(at.since(since));
                tokio::spawn(async move {
                    wait.await;
                    if let Some(inner) = inner.upgrade() {
                        inner.system.tell(TimerFired { timer: decided_by });
                    }
                });
                None
            }
            Act::RunTask { decided_by, schedule, extension, task, due } => {
                self.run_task(decided_by, schedule, extension, task, due);
                None
            }
            _ => None,
        })
    }

    /// Runs a scheduled task. Only its schedule waits for it.
    fn run_task(
        &mut self,
        decided_by: Seq,
        schedule: ScheduleId,
        extension: Arc<ExtensionRef>,
        task: String,
        due: Millis,
    ) {
        let (inner, durable, run) = (self.inner.clone(), self.log.durable(decided_by), schedule.clone());
        let running = tokio::spawn(async move {
            // A decision that did not reach the disk is taken again when the log is.
            if durable.await.is_err() {
                return;
            }
            let phase = format!("task {task}");
            let call = async {
                let (serving, _guard) = inner.extensions.enter_pinned(&extension).await?;
                call_instance(&inner, &serving, decided_by, Call::Task { task }, TASK_TIMEOUT).await
            };
            let fault = match call.await {
                Ok(reply) => {
                    // A due time may come again after the clock was put back.
                    let run = format!("{schedule}@{}/{decided_by}", due.0);
                    told(&inner, &extension.id, &reply, run).await;
                    None
                }
                Err(fault) => {
                    let (id, generation) = (extension.id.clone(), extension.generation);
                    if fault.code.is_crash() {
                        inner.system.tell(ExtensionFaulted { id, generation, phase, fault: fault.clone() });
                    }
                    Some(fault)
                }
            };
            inner.system.send(SystemCommand::Ran(decided_by, ScheduleEnded { schedule, due, fault }));
        });
        self.runs.insert(run, (due, running.abort_handle()));
    }

    /// What the clocks show.
    fn clocks(&self) -> ClockReading {
        ClockReading { wall: self.inner.clock.now(), steady: self.inner.clock.steady() }
    }

    /// A number by chance.
    fn draw(&self) -> u32 {
        let drawn = self.inner.entropy.draw(4);
        drawn.iter().fold(0, |number, byte| number << 8 | u32::from(*byte))
    }

    fn lifecycle(&self, extension: Arc<ExtensionRef>, under: Seq, command: LifecycleCommand) -> Later<Body> {
        let found = self.system.found_of(&extension);
        let lane_name = found.map(|(found, _)| found.lane.clone()).unwrap_or_default();
        if let Some((found, true)) = found.filter(|_| command == LifecycleCommand::Load) {
            // It may not have been found in this process, and has what it was granted when it was.
            self.inner.remember_generation(found);
            if let Err(problem) = self.inner.may_stand_in(found) {
                let (id, generation) = (extension.id.clone(), extension.generation);
                let outcome = LifecycleOutcome::Failed(problem.to_fault());
                return Box::pin(ready(ExtensionReported { id, generation, command, outcome }.into()));
            }
        }
        let lane = self.inner.extensions.lanes().iter().find(|lane| lane.name() == lane_name).cloned();
        let inner = self.inner.clone();
        Box::pin(async move {
            let outcome = match command {
                LifecycleCommand::Load => load(&inner, lane, &lane_name, &extension, under).await,
                _ => step_of_life(&inner, lane, &extension, under, command).await,
            };
            let outcome = outcome.unwrap_or_else(LifecycleOutcome::Failed);
            ExtensionReported { id: extension.id.clone(), generation: extension.generation, command, outcome }
                .into()
        })
    }

    /// Does what one step has decided once all of that is on disk.
    fn behind_barrier(&mut self, works: Vec<Work>) {
        let Some((last, _)) = works.last() else { return };
        self.under_way += works.len();
        let durable = self.log.durable(*last);
        let inner = self.inner.clone();
        tokio::spawn(async move {
            fail_point!("driver::before_barrier");
            if durable.await.is_err() {
                return inner.system.send(SystemCommand::Undone(works.len()));
            }
            fail_point!("driver::after_barrier");
            let share = works.len().div_ceil(WORKERS).max(1);
            let mut works = works.into_iter();
            loop {
                let some: Vec<Work> = works.by_ref().take(share).collect();
                if some.is_empty() {
                    return;
                }
                tokio::spawn(do_all(inner.clone(), some));
            }
        });
    }

    /// Writes the state down now and then, and at the end, so that the next start reads little.
    fn snapshot(&mut self, now: bool) {
        let next = self.system.next_seq();
        if next.0 - self.snapshot_at.0 < if now { 1 } else { SNAPSHOT_EVERY } {
            return;
        }
        self.snapshot_at = next;
        let state = self.system.clone();
        let write = move || {
            let unwritable = |error| Problem::new(Code::Internal, format!("the system's state: {error}"));
            canonical(&state).map_err(unwritable)
        };
        self.log.snapshot(Seq(next.0 - 1), System::STATE_VERSION, Box::new(write));
    }
}

/// Does these works. Immediate results are reported together; others when they are done.
async fn do_all(inner: Arc<Inner>, works: Vec<Work>) {
    let mut done = Vec::new();
    for (cause, mut work) in works {
        match (&mut work).now_or_never() {
            Some(body) => done.push((cause, body)),
            None => {
                let inner = inner.clone();
                tokio::spawn(async move {
                    let body = work.await;
                    inner.system.send(SystemCommand::Done(vec![(cause, body)]));
                });
            }
        }
    }
    inner.system.send(SystemCommand::Done(done));
}

async fn load(
    inner: &Arc<Inner>,
    lane: Option<Arc<dyn Lane>>,
    lane_name: &str,
    extension: &Arc<ExtensionRef>,
    under: Seq,
) -> Result<LifecycleOutcome, Fault> {
    let no_lane = || Fault::new(Code::ExtensionUnknown, format!("there is no lane `{lane_name}`"));
    let lane = lane.ok_or_else(no_lane)?;
    let instance = inner.extensions.load(&lane, extension).await?;
    inner.extensions.keep_instance(extension, instance.clone());
    match lifecycle_call(inner, Some(lane), extension, under, LifecycleCommand::Load).await? {
        Reply::Descriptors(mut descriptors) => {
            descriptors.iter().try_for_each(Descriptor::check_names)?;
            // Of some programs it is known only now.
            let capabilities = instance.capabilities();
            let (lives, alone) = (capabilities.has_lifecycle, capabilities.exclusive);
            inner.set_agents(&mut descriptors);
            inner.find_required_secrets(extension, &mut descriptors).await;
            let channels = descriptors.iter().filter(|descriptor| descriptor.kind.as_str() == "channel");
            for channel in channels {
                inner.channel_loaded(channel.id.as_str().into()).await;
            }
            Ok(LifecycleOutcome::Loaded { descriptors, lives, alone })
        }
        other => {
            Err(Fault::new(Code::ExtensionFault, format!("{other:?} is not a valid answer to being loaded")))
        }
    }
}

/// A step of a life after loading. The background task runs from start to stop, and an extension that stops is first left by those who
/// call it. While it is replaced by a generation that cannot run beside it, others wait.
async fn step_of_life(
    inner: &Arc<Inner>,
    lane: Option<Arc<dyn Lane>>,
    extension: &Arc<ExtensionRef>,
    under: Seq,
    command: LifecycleCommand,
) -> Result<LifecycleOutcome, Fault> {
    // Where extensions are only listed, none of them runs: there is nothing to initialise, start or stop.
    if inner.inspects && command != LifecycleCommand::Destroy {
        return Ok(LifecycleOutcome::Done);
    }
    let serves = inner
        .extensions
        .active(&extension.id)
        .is_some_and(|serving| serving.generation == extension.generation);
    if command == LifecycleCommand::Stop {
        if serves {
            inner.extensions.close_gate(&extension.id);
        }
        tokio::select! {
            biased;
            () = inner.extensions.drained(extension) => {}
            () = inner.clock.sleep(QUIESCE_TIMEOUT) => {}
        }
        inner.dispose_services(extension).await;
        inner.end_background(extension).await;
    }
    lifecycle_call(inner, lane, extension, under, command).await?;
    if command == LifecycleCommand::Stop {
        inner.count_connections_to(extension);
    }
    if command == LifecycleCommand::Start {
        inner.begin_background(extension, &inner.extensions.instance(extension)?);
        if serves {
            inner.extensions.open_gate(&extension.id);
        }
    }
    Ok(LifecycleOutcome::Done)
}

/// A task that answers with a `text` tells the user.
async fn told(inner: &Arc<Inner>, extension: &ExtensionId, reply: &Reply, run: String) {
    let Reply::Content(content) = reply else { return };
    if let Some(text) = content.value().get("text").and_then(|text| text.as_str()) {
        inner.notify_user(extension.clone(), text, run).await;
    }
}

/// Carries out a lifecycle command. As long as code runs in this process that starts, it is marked: if the process dies, it is known
/// whose code was executing.
async fn lifecycle_call(
    inner: &Arc<Inner>,
    lane: Option<Arc<dyn Lane>>,
    extension: &Arc<ExtensionRef>,
    under: Seq,
    command: LifecycleCommand,
) -> Result<Reply, Fault> {
    let call = Call::Lifecycle(command);
    let made = call_instance(inner, extension, under, call, LIFECYCLE_TIMEOUT);
    let in_process = lane.is_some_and(|lane| lane.runs_in_process());
    if in_process && command < LifecycleCommand::Stop {
        inner.executing.marked(extension.digest, made).await
    } else {
        made.await
    }
}

async fn call_instance(
    inner: &Arc<Inner>,
    extension: &Arc<ExtensionRef>,
    under: Seq,
    call: Call,
    timeout: Millis,
) -> Result<Reply, Fault> {
    let instance = inner.extensions.instance(extension)?;
    let host = Arc::new(SystemHost::new(inner, extension.clone(), Some(under)));
    let made = start_call(&instance, call, host);
    wait_timeout(made, timeout, Code::ExtensionFault, inner.clock.clone()).await
}
