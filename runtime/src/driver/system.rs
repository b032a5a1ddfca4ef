//! The system's actor: lifecycles, registries, anchors.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use fail::fail_point;
use holdfast_contract::body::Body;
use holdfast_contract::digest::canonical;
use holdfast_contract::effect::{Act, Effects, Input};
use holdfast_contract::frame::Source;
use holdfast_contract::ids::{ExtensionId, Millis, Seq, StreamId};
use holdfast_contract::problem::{Code, Fault, Problem};
use holdfast_contract::registry::ExtensionRef;
use holdfast_contract::system_frames::{
    ExtensionReported, ExtensionView, LifecycleCommand, LifecycleOutcome, ScheduleEnded, SystemSettled,
    SystemStarted, SystemStopping,
};
use holdfast_contract::wire::{Call, Lane, Reply};
use holdfast_kernel::{BEHAVIOUR, System};
use holdfast_store::{ObjectKind, StreamLog};
use tokio::sync::mpsc;

use crate::calling::{make, within};
use crate::host::NoHost;
use crate::refold::refold;
use crate::runtime::Inner;

/// How long a step of an extension's life may take.
const LIFECYCLE_TIMEOUT: Millis = Millis(30_000);

/// Something for the system's actor.
pub(crate) enum SystemNote {
    /// A fact from the host.
    Fact(Box<Body>),
    /// A fact that came of an act, with the frame that decided it.
    Done { cause: Seq, body: Box<Body> },
    /// An act that was never performed: the frame that decided it did not reach the disk.
    Undone,
    /// Tell which extensions are installed.
    Extensions(super::Reply<Vec<ExtensionView>>),
    /// Answer when nothing is under way.
    Settled(super::Reply<()>),
    /// Stop everything, and answer when it has.
    Stop { reason: String, reply: super::Reply<()> },
}

/// The one actor of the system stream.
pub(crate) struct SystemActor {
    system: System,
    log: StreamLog,
    inner: Arc<Inner>,
    lanes: HashMap<ExtensionId, String>,
    queue: VecDeque<Input>,
    /// Facts that may not be on disk yet, with their places.
    unwritten: VecDeque<(Seq, Input)>,
    under_way: usize,
    waiting: Vec<super::Reply<()>>,
    /// Who wants to know which extensions there are, once everything so far has been taken.
    asking: Vec<super::Reply<Vec<ExtensionView>>>,
    /// Whether it ends once nothing is under way.
    stopping: bool,
}

impl SystemActor {
    /// Takes up the system stream and starts the actor.
    pub(crate) fn start(
        inner: Arc<Inner>,
        notes: mpsc::UnboundedReceiver<SystemNote>,
    ) -> Result<(), Problem> {
        let stream = StreamId::system();
        let log = inner.store.stream(&stream)?;
        let refolded = refold::<System>(&inner.store, &stream)?;
        log.append(refolded.missing)?;
        let mut actor = Self {
            system: refolded.machine,
            log,
            inner,
            lanes: HashMap::new(),
            queue: VecDeque::new(),
            unwritten: VecDeque::new(),
            under_way: 0,
            waiting: Vec::new(),
            asking: Vec::new(),
            stopping: false,
        };
        let version = env!("CARGO_PKG_VERSION").to_owned();
        actor.fact(None, SystemStarted { kernel: BEHAVIOUR, version }.into());
        actor.drain()?;
        tokio::spawn(actor.run(notes));
        Ok(())
    }

    async fn run(mut self, mut notes: mpsc::UnboundedReceiver<SystemNote>) {
        while let Some(note) = notes.recv().await {
            self.take(note);
            // What came meanwhile is taken in one go, so that the registry is made once for all of it.
            while let Ok(note) = notes.try_recv() {
                self.take(note);
            }
            let drained = self.drain();
            for asking in self.asking.drain(..) {
                drop(asking.send(Ok(self.system.extensions().collect())));
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

    fn take(&mut self, note: SystemNote) {
        match note {
            SystemNote::Fact(body) => {
                if let Body::ExtensionsFound(fact) = &*body {
                    self.lanes.extend(fact.found.iter().map(|found| (found.id.clone(), found.lane.clone())));
                }
                self.fact(None, *body);
            }
            SystemNote::Done { cause, body } => {
                self.under_way = self.under_way.saturating_sub(1);
                self.fact(Some(cause), *body);
            }
            SystemNote::Undone => self.under_way = self.under_way.saturating_sub(1),
            SystemNote::Extensions(reply) => self.asking.push(reply),
            SystemNote::Settled(reply) => self.waiting.push(reply),
            SystemNote::Stop { reason, reply } => {
                self.fact(None, SystemStopping { reason }.into());
                self.waiting.push(reply);
                self.stopping = true;
            }
        }
    }

    fn fact(&mut self, cause: Option<Seq>, body: Body) {
        self.queue.push_back(Input { at: self.inner.clock.now(), source: Source::Host, cause, body });
    }

    /// A log that has failed is taken up at its last durable frame, and the facts that were lost come first again.
    fn mend(&mut self) -> Result<(), Problem> {
        let durable = self.log.head().map(|head| head.seq);
        while self.unwritten.front().is_some_and(|(seq, _)| Some(*seq) <= durable) {
            self.unwritten.pop_front();
        }
        if self.log.append(Vec::new()).is_ok() {
            return Ok(());
        }
        let stream = StreamId::system();
        let log = self.inner.store.stream(&stream)?;
        let refolded = refold::<System>(&self.inner.store, &stream)?;
        log.append(refolded.missing)?;
        let next = refolded.machine.next_seq();
        let lost = self.unwritten.drain(..).filter(|(seq, _)| *seq >= next).map(|(_, input)| input);
        self.queue = lost.chain(self.queue.drain(..)).collect();
        (self.system, self.log) = (refolded.machine, log);
        Ok(())
    }

    fn drain(&mut self) -> Result<(), Problem> {
        self.mend()?;
        loop {
            self.step_all()?;
            if !self.system.is_stirred() {
                return Ok(());
            }
            self.fact(None, SystemSettled {}.into());
        }
    }

    fn step_all(&mut self) -> Result<(), Problem> {
        while let Some(input) = self.queue.pop_front() {
            self.unwritten.push_back((self.system.next_seq(), input.clone()));
            let Ok(Effects { frames, acts }) = self.system.step(input) else {
                // A report that nobody waits for any more; it was never recorded.
                self.unwritten.pop_back();
                continue;
            };
            self.log.append(frames)?;
            for act in acts {
                self.perform(act)?;
            }
        }
        Ok(())
    }

    fn perform(&mut self, act: Act) -> Result<(), Problem> {
        match act {
            Act::Lifecycle { decided_by, extension, command } => {
                self.lifecycle(decided_by, extension, command)
            }
            Act::Activate { pin } => {
                if let Some(view) = &pin.view {
                    let bytes = canonical(&**view)
                        .map_err(|error| Problem::new(Code::Internal, error.to_string()))?;
                    self.inner.store.put(ObjectKind::Registry, bytes)?;
                }
                self.inner.activate(pin);
            }
            Act::RunTask { decided_by, schedule, extension, task, due } => {
                let call = Call::Task { task };
                self.behind_barrier(decided_by, move |inner| async move {
                    let fault = call_instance(&inner, &extension, call).await.err();
                    ScheduleEnded { schedule, due, fault }.into()
                });
            }
            _ => {}
        }
        Ok(())
    }

    fn lifecycle(&mut self, decided_by: Seq, extension: Arc<ExtensionRef>, command: LifecycleCommand) {
        let lane_name = self.lanes.get(&extension.id).cloned().unwrap_or_default();
        let lane = self.inner.lanes.iter().find(|lane| lane.name() == lane_name).cloned();
        self.behind_barrier(decided_by, move |inner| async move {
            let outcome = match command {
                LifecycleCommand::Load => load(&inner, lane, &lane_name, &extension).await,
                _ => call_instance(&inner, &extension, Call::Lifecycle(command))
                    .await
                    .map(|_| LifecycleOutcome::Done),
            };
            let outcome = outcome.unwrap_or_else(LifecycleOutcome::Failed);
            ExtensionReported { id: extension.id.clone(), generation: extension.generation, command, outcome }
                .into()
        });
    }

    fn behind_barrier<F>(&mut self, frame: Seq, work: impl FnOnce(Arc<Inner>) -> F + Send + 'static)
    where
        F: Future<Output = Body> + Send + 'static,
    {
        self.under_way += 1;
        let durable = self.log.durable(frame);
        let inner = self.inner.clone();
        tokio::spawn(async move {
            fail_point!("driver::before_barrier");
            let note = match durable.await {
                Ok(()) => {
                    fail_point!("driver::after_barrier");
                    SystemNote::Done { cause: frame, body: Box::new(work(inner.clone()).await) }
                }
                Err(_) => SystemNote::Undone,
            };
            drop(inner.system.send(note));
        });
    }
}

async fn load(
    inner: &Arc<Inner>,
    lane: Option<Arc<dyn Lane>>,
    lane_name: &str,
    extension: &ExtensionRef,
) -> Result<LifecycleOutcome, Fault> {
    let no_lane = || Fault::new(Code::ExtensionUnknown, format!("there is no lane `{lane_name}`"));
    let instance = lane.ok_or_else(no_lane)?.load(extension).await?;
    let lives = instance.lives();
    inner.keep_instance(extension, instance);
    match call_instance(inner, extension, Call::Lifecycle(LifecycleCommand::Load)).await? {
        Reply::Descriptors(descriptors) => Ok(LifecycleOutcome::Loaded { descriptors, lives }),
        other => Err(Fault::new(Code::ExtensionFault, format!("{other:?} is no answer to being loaded"))),
    }
}

async fn call_instance(inner: &Arc<Inner>, extension: &ExtensionRef, call: Call) -> Result<Reply, Fault> {
    let instance = inner.instance(extension)?;
    let made = make(&instance, call, Arc::new(NoHost));
    within(made, LIFECYCLE_TIMEOUT, Code::ExtensionFault, inner.clock.clone()).await
}
