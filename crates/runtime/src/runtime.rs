//! The runtime: opens and resumes sessions, and keeps what all of them share.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};

use holdfast_bus::topics::EXTENSION_STATE;
use holdfast_bus::{Bus, NewEvent, Published};
use holdfast_contract::body::Body;
use holdfast_contract::content::Content;
use holdfast_contract::context::ContextBudget;
use holdfast_contract::digest::Digest;
use holdfast_contract::effect::Input;
use holdfast_contract::frame::FrameSource;
use holdfast_contract::ids::{AgentId, ExtensionId, Generation, Millis, ModelName, Seq, StreamId};
use holdfast_contract::message::Origin;
use holdfast_contract::problem::{Code, Fault, Problem};
use holdfast_contract::registry::{ExtensionRef, Override, Registry, RegistryPin};
use holdfast_contract::session_frames::{Parent, SessionSettings, SessionStarted};
use holdfast_contract::system_frames::{
    ExtensionFaulted, ExtensionRejected, ExtensionRemoved, ExtensionRetried, ExtensionState,
    ExtensionStateChanged, ExtensionView, ExtensionsFound, FoundExtension, OverridesSet, PolicyChanged,
    ScheduleSpec,
};
use holdfast_contract::wire::{Instance, Lane};
use holdfast_home::{AgentSettings, LimitSettings, PromptTool};
use holdfast_kernel::{BEHAVIOUR, Session};
use holdfast_model::{Model, names_file};
use holdfast_policy::{Policy, Routing, Unattended};
use holdfast_store::{Collected, ObjectKind, Retention, Store};
use tokio::sync::{Notify, mpsc, oneshot, watch};

use crate::background::Background;
use crate::calls::{CallGates, CallGuard, Executor, IdentityMap, SchemaChecks};
use crate::clock::Clock;
use crate::daily_usage::DailyUsage;
use crate::driver::{SessionActor, SessionCommand, SessionHandle, SystemActor, SystemCommand};
use crate::host::network::HostAnswers;
use crate::host::secrets::Secrets;
use crate::host::services::SharedServices;
use crate::host::setup::SetupState;
use crate::messaging::{self, Messaging};
use crate::meter::Meter;
use crate::parts::{Configuration, Entropy, HomeParts, Parts, Surface, Zone};
use crate::rebuild::rebuild;
use crate::tools::ToolsShown;
use crate::tools::discovery::shown;
use crate::upkeep;

/// A running system. Cheap to clone; dropping the last handle does not stop it, [`Runtime::stop`] does.
#[derive(Clone)]
pub struct Runtime(Arc<Inner>);

/// What somebody wants the whole process to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ShutdownRequest {
    /// What it does.
    #[default]
    GoOn,
    /// Stop everything in order, and start again; why.
    Restart(String),
    /// Stop everything in order; why.
    Stop(String),
}

/// What every actor shares.
pub(crate) struct Inner {
    pub store: Store,
    pub clock: Arc<dyn Clock>,
    pub entropy: Arc<dyn Entropy>,
    models: RwLock<BTreeMap<ModelName, Arc<dyn Model>>>,
    pub lanes: Vec<Arc<dyn Lane>>,
    pub surface: Arc<dyn Surface>,
    /// The time zone of schedules that name none.
    pub zone: Zone,
    pub secrets: Option<Arc<Secrets>>,
    pub configuration: Option<Arc<dyn Configuration>>,
    /// What is different for agents.
    pub agents: BTreeMap<AgentId, AgentSettings>,
    /// What a turn and a session of the main agent may use up.
    pub limits: LimitSettings,
    /// What is used up in a day.
    pub ledger: DailyUsage,
    /// When tools are called.
    pub executor: Arc<Executor>,
    /// How much context providers may add to a prompt that is enriched.
    pub context: ContextBudget,
    /// Which tools models are shown where there are many.
    pub tools: ToolsShown,
    /// The extensions that are not set up, as far as that is known.
    pub unfinished: Mutex<Option<Arc<Vec<SetupState>>>>,
    pub system: mpsc::UnboundedSender<SystemCommand>,
    registry: Mutex<RegistryPin>,
    /// Whether a gate or guardrail of that registry is on its way up.
    pub awaiting: AtomicBool,
    /// Told whenever new turns start on another registry.
    pub registry_changed: Notify,
    /// The registry whose hooks were brought in last.
    prepared: Mutex<Weak<Registry>>,
    instances: RwLock<HashMap<ExtensionId, Vec<Loaded>>>,
    /// What discovery said of each activation.
    known: RwLock<HashMap<Digest, FoundExtension>>,
    /// The generation of each extension that serves.
    serving: RwLock<HashMap<ExtensionId, Arc<ExtensionRef>>>,
    pub wanted: watch::Sender<ShutdownRequest>,
    /// Who is being called.
    pub presence: Arc<CallGates>,
    /// The loops in the background.
    pub background: Background,
    /// The services that extensions share.
    pub shared: SharedServices,
    /// What models have used.
    pub meter: Meter,
    /// What users have said about hosts.
    pub answers: HostAnswers,
    /// The schemas of tools.
    pub checks: SchemaChecks,
    policies: RwLock<IdentityMap<Digest, Arc<Policy>>>,
    sessions: Mutex<BTreeMap<StreamId, SessionHandle>>,
    /// The bus and who is on it.
    pub living: Messaging,
}

struct Loaded {
    generation: Generation,
    digest: Digest,
    instance: Arc<dyn Instance>,
}

/// A session to open.
pub struct NewSession {
    /// Its stream.
    pub id: StreamId,
    /// Where it comes from.
    pub origin: Origin,
    /// The agent that answers.
    pub agent: AgentId,
    /// The agent's instructions.
    pub instructions: Content,
    /// What it is set to.
    pub settings: SessionSettings,
}

impl Runtime {
    /// Starts: the system stream is taken up, the policy comes into force, the extensions come up in order.
    pub async fn start(parts: Parts) -> Result<Self, Problem> {
        let Parts { store, clock, entropy, models, lanes, extensions, policy, surface, routes, home } = parts;
        let HomeParts { zone, secrets, configuration, rejected, agents, limits, calls, context, tools } =
            home;
        let (system, notes) = mpsc::unbounded_channel();
        let living = Messaging::open(store.clone(), clock.clone(), entropy.clone(), routes).await?;
        let inner = Arc::new(Inner {
            store,
            meter: Meter::new(clock.now()),
            ledger: DailyUsage::new(zone.clone()),
            clock,
            entropy,
            models: RwLock::new(models),
            lanes,
            surface,
            zone,
            secrets,
            configuration,
            agents,
            limits,
            executor: Arc::new(Executor::new(calls)),
            context,
            tools,
            unfinished: Mutex::default(),
            system,
            registry: Mutex::default(),
            awaiting: AtomicBool::default(),
            registry_changed: Notify::default(),
            prepared: Mutex::default(),
            instances: RwLock::default(),
            known: RwLock::default(),
            serving: RwLock::default(),
            wanted: watch::Sender::default(),
            presence: Arc::default(),
            background: Background::default(),
            shared: SharedServices::default(),
            answers: HostAnswers::default(),
            checks: SchemaChecks::default(),
            policies: RwLock::default(),
            sessions: Mutex::default(),
            living,
        });
        // Before anything runs: what extensions publish while they come up reaches those that come up after them.
        inner.installed(&extensions);
        inner.sync_subscriptions().await?;
        SystemActor::start(inner.clone(), notes)?;
        let runtime = Self(inner);
        runtime.set_policy(policy, "start")?;
        runtime.discovered(extensions, rejected).await?;
        runtime.settled().await?;
        runtime.rebuild_daily_usage()?;
        Ok(runtime)
    }

    /// Brings a policy into force for turns that start from now on.
    pub fn set_policy(&self, policy: Policy, reason: &str) -> Result<(), Problem> {
        let digest = self.0.store.put(ObjectKind::Policy, policy.document().to_vec())?;
        let newly_bounded = self.0.ledger.set(policy.spending());
        write(&self.0.policies).insert(digest, Arc::new(policy));
        if newly_bounded {
            self.rebuild_daily_usage()?;
        }
        self.0.tell_system(PolicyChanged { policy: digest, reason: reason.to_owned() });
        Ok(())
    }

    /// Reports extensions that are new or changed.
    pub fn found(&self, found: Vec<FoundExtension>) {
        self.0.tell_system(ExtensionsFound { found });
    }

    /// Reports that an extension is there but cannot be used. The generation that serves, if any, goes on.
    pub fn rejected(&self, id: ExtensionId, fault: Fault) {
        self.0.tell_system(ExtensionRejected { id, fault });
    }

    /// Reports that an extension is gone.
    pub fn removed(&self, id: ExtensionId) {
        self.0.tell_system(ExtensionRemoved { id });
    }

    /// Sends an extension up again that is down, whatever has happened to it before. One that is not down is left alone.
    pub fn retry(&self, id: ExtensionId, reason: &str) {
        self.0.tell_system(ExtensionRetried { id, reason: reason.to_owned() });
    }

    /// Asks every extension that has a life whether it is well, again and again after this pause, until the runtime is dropped.
    pub fn watch_health(&self, every: Millis) {
        let (inner, clock) = (Arc::downgrade(&self.0), self.0.clock.clone());
        tokio::spawn(async move {
            loop {
                clock.sleep(every).await;
                let Some(inner) = inner.upgrade() else { return };
                inner.check_health().await;
            }
        });
    }

    /// Sets the user's overrides.
    pub fn set_overrides(
        &self,
        overrides: BTreeMap<
            holdfast_contract::ids::RegistryKind,
            BTreeMap<holdfast_contract::ids::DescriptorId, Override>,
        >,
    ) {
        self.0.tell_system(OverridesSet { overrides });
    }

    /// Waits until everything reported so far has been carried out.
    pub async fn settled(&self) -> Result<(), Problem> {
        self.ask_system(SystemCommand::Settled).await?;
        self.0.sync_subscriptions().await
    }

    /// Stops everything in reverse order: first nothing is handed over any more, then the sessions are let go of, then the
    /// services that extensions share, then the extensions.
    pub async fn stop(&self, reason: &str) -> Result<(), Problem> {
        self.0.close_bus().await?;
        let handles: Vec<SessionHandle> = lock(&self.0.sessions).values().cloned().collect();
        for handle in handles {
            // One that went by itself in the meantime is closed as well.
            handle
                .close()
                .await
                .or_else(|problem| if problem.code == Code::SessionEnded { Ok(()) } else { Err(problem) })?;
        }
        self.0.close_services().await;
        self.ask_system(|reply| SystemCommand::Stop { reason: reason.to_owned(), reply }).await?;
        self.0.store.flush()
    }

    pub(crate) async fn ask_system<T>(
        &self,
        note: impl FnOnce(oneshot::Sender<Result<T, Problem>>) -> SystemCommand,
    ) -> Result<T, Problem> {
        let (reply, answer) = oneshot::channel();
        let gone = |_| Problem::new(Code::Internal, "the system's actor is gone");
        self.0
            .system
            .send(note(reply))
            .map_err(|_| Problem::new(Code::Internal, "the system's actor is gone"))?;
        answer.await.map_err(gone)?
    }

    /// The registry that new turns start on.
    pub fn registry(&self) -> Arc<Registry> {
        self.0.registry().view.unwrap_or_default()
    }

    /// The tools that a prompt names: those that a new session's model is shown.
    pub fn prompt_tools(&self) -> Vec<PromptTool> {
        let registry = self.registry();
        let shown = shown(&registry, |_| true, &[], &self.0.tools);
        let tools = shown.into_iter().filter_map(|entry| {
            let description = entry.stack.first()?.spec.description.clone();
            Some(PromptTool { name: entry.name.to_string(), description })
        });
        tools.collect()
    }

    /// The moment, by the runtime's clock.
    pub fn now(&self) -> Millis {
        self.0.clock.now()
    }

    /// The current date in the home's time zone, for a prompt.
    pub fn date(&self) -> String {
        self.0.zone.date(self.0.clock.now())
    }

    /// A model by its name: one that is configured, built in, or a file that was opened before. No file is opened here.
    pub fn model(&self, name: &ModelName) -> Result<Arc<dyn Model>, Problem> {
        Ok(self.0.model(name)?)
    }

    /// Opens the file of a model that is one, such as `script:<file>`, and has the model there from now on. Only for names that the owner
    /// of the home gives: what a message, an extension or an event names is never opened.
    pub async fn open_model(&self, name: &ModelName) -> Result<(), Problem> {
        if self.0.models.read().unwrap_or_else(PoisonError::into_inner).contains_key(name) {
            return Ok(());
        }
        if let Some(opened) = holdfast_model::open_file(name.as_str()).await {
            write(&self.0.models).insert(name.clone(), opened?);
        }
        Ok(())
    }

    /// The names of the models that are there, without those of files.
    pub fn model_names(&self) -> Vec<ModelName> {
        let models = self.0.models.read().unwrap_or_else(PoisonError::into_inner);
        models.keys().filter(|name| !names_file(name.as_str())).cloned().collect()
    }

    /// The policy that new turns start under.
    pub fn policy(&self) -> Result<Arc<Policy>, Problem> {
        self.0.policy_in_force()
    }

    /// The extensions that are installed, by id.
    pub async fn extensions(&self) -> Result<Vec<ExtensionView>, Problem> {
        self.ask_system(SystemCommand::Extensions).await
    }

    /// Asks for something of the whole process. Whoever owns it does it.
    pub fn want(&self, wanted: ShutdownRequest) {
        self.0.wanted.send_replace(wanted);
    }

    /// What is wanted of the whole process.
    pub fn wanted(&self) -> watch::Receiver<ShutdownRequest> {
        self.0.wanted.subscribe()
    }

    /// How many sessions are open in this process.
    pub fn open_sessions(&self) -> usize {
        lock(&self.0.sessions).len()
    }

    /// Whether a session is open in this process.
    pub fn is_open(&self, id: &StreamId) -> bool {
        lock(&self.0.sessions).contains_key(id)
    }

    /// Erases a session's content for good. Whatever runs in it is let go of first. Gives the number of bodies that went.
    pub async fn erase(&self, id: &StreamId, reason: &str) -> Result<u64, Problem> {
        self.close_session(id).await?;
        let erased = upkeep::to_erase(&self.0.store, id, reason)?;
        self.record(erased.clone()).await?;
        upkeep::erase_now(&self.0.store, &*self.0.clock, &erased)
    }

    /// Collects the frames of a session that are past their retention. Whatever runs in it is let go of first.
    pub async fn collect(&self, id: &StreamId, retention: Retention) -> Result<Collected, Problem> {
        self.close_session(id).await?;
        let checkpoint = upkeep::to_collect(&self.0.store, &*self.0.clock, id, retention)?;
        let Some(checkpoint) = checkpoint else { return Ok(Collected::default()) };
        self.record(checkpoint.clone()).await?;
        self.0.store.collect(id, checkpoint.seq)
    }

    /// Records a fact in the system stream and waits until it is on disk.
    async fn record(&self, body: impl Into<Body>) -> Result<(), Problem> {
        self.0.tell_system(body);
        self.settled().await?;
        self.0.store.flush()
    }

    /// Copies a session under a new id, up to a frame. Gives the number of frames.
    pub fn fork(&self, from: &StreamId, last: Option<Seq>, to: &StreamId) -> Result<Seq, Problem> {
        self.0.store.flush()?;
        crate::fork::fork(&self.0.store, from, last, to)
    }

    async fn close_session(&self, id: &StreamId) -> Result<(), Problem> {
        let handle = lock(&self.0.sessions).get(id).cloned();
        match handle {
            Some(handle) => handle.close().await,
            None => Ok(()),
        }
    }

    /// The bus.
    pub fn bus(&self) -> &Bus {
        &self.0.living.bus
    }

    /// Publishes an event. What is published on one of the program's own topics must say what that topic's events say.
    pub async fn publish(&self, event: NewEvent) -> Result<Published, Problem> {
        self.0.publish(event).await
    }

    pub(crate) fn of(inner: &Arc<Inner>) -> Self {
        Self(inner.clone())
    }

    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.0
    }

    /// The log.
    pub fn store(&self) -> &Store {
        &self.0.store
    }

    /// Opens a new session.
    pub fn open(&self, new: NewSession) -> Result<SessionHandle, Problem> {
        self.0.open(new, None, 0)
    }

    /// Takes up a session where it stopped. Whatever was under way goes on, as far as that is safe.
    pub fn resume(&self, id: &StreamId) -> Result<SessionHandle, Problem> {
        self.0.resume(id)
    }
}

impl Inner {
    pub(crate) fn open(
        self: &Arc<Self>,
        new: NewSession,
        parent: Option<Parent>,
        depth: u8,
    ) -> Result<SessionHandle, Problem> {
        // Held until the session is listed: its actor may be asked for before this returns.
        let mut sessions = lock(&self.sessions);
        let log = self.store.stream(&new.id)?;
        if log.head().is_some() || sessions.contains_key(&new.id) {
            let problem =
                Problem::new(Code::TurnUnexpected, format!("there is a session `{}` already", new.id));
            return Err(problem.help("Resume it, or choose another id."));
        }
        let NewSession { id, origin, agent, instructions, mut settings } = new;
        let policy = self.policy_in_force()?;
        settings.limits = policy.caps().narrow(settings.limits);
        settings.authoritative_routing &= policy.routing() == Routing::Authoritative;
        settings.profile = Some(policy.profile_name());
        let body = SessionStarted {
            kernel: BEHAVIOUR,
            origin,
            agent,
            instructions,
            parent,
            depth,
            settings: settings.into(),
        };
        let started =
            Input { at: self.clock.now(), source: FrameSource::Host, cause: None, body: body.into() };
        let handle = SessionActor::start(self.clone(), Session::new(id.clone()), log, vec![started]);
        sessions.insert(id, handle.clone());
        Ok(handle)
    }

    /// A session that is open in this process.
    pub(crate) fn open_session(&self, id: &StreamId) -> Option<SessionHandle> {
        lock(&self.sessions).get(id).cloned()
    }

    pub(crate) fn resume(self: &Arc<Self>, id: &StreamId) -> Result<SessionHandle, Problem> {
        // Held until the session is listed: one stream has one actor, however many ask for it at once.
        let mut sessions = lock(&self.sessions);
        if let Some(handle) = sessions.get(id) {
            return Ok(handle.clone());
        }
        let log = self.store.stream(id)?;
        if log.head().is_none() {
            return Err(Problem::new(Code::StoreMissing, format!("there is no session `{id}`")));
        }
        let refolded = rebuild::<Session>(&self.store, id)?;
        log.append(refolded.missing)?;
        let first = if refolded.machine.is_busy() { vec![SessionActor::resumed(self)] } else { Vec::new() };
        let handle = SessionActor::start(self.clone(), refolded.machine, log, first);
        sessions.insert(id.clone(), handle.clone());
        Ok(handle)
    }

    /// An actor has gone. Another that has taken its place stays.
    pub(crate) fn forget(&self, id: &StreamId, inbox: &mpsc::UnboundedSender<SessionCommand>) {
        let mut sessions = lock(&self.sessions);
        if sessions.get(id).is_some_and(|handle| handle.inbox.same_channel(inbox)) {
            sessions.remove(id);
        }
    }

    pub(crate) fn registry(&self) -> RegistryPin {
        lock(&self.registry).clone()
    }

    pub(crate) fn activate(&self, pin: RegistryPin) {
        let awaiting = pin.view.as_ref().is_some_and(|view| view.has_passing_outage());
        let mut registry = lock(&self.registry);
        *registry = pin;
        self.awaiting.store(awaiting, Ordering::Release);
        drop(registry);
        self.registry_changed.notify_waiters();
        self.living.notify_changed();
    }

    pub(crate) fn tell_system(&self, body: impl Into<Body>) {
        // Once the system's actor is gone the process is on its way out, and nothing more is recorded.
        drop(self.system.send(SystemCommand::Fact(Box::new(body.into()))));
    }

    /// Tells the system of something that an extension did, and of the frame that it came of.
    pub(crate) fn tell_system_of(&self, source: FrameSource, cause: Option<Seq>, body: impl Into<Body>) {
        drop(self.system.send(SystemCommand::Said(source, cause, Box::new(body.into()))));
    }

    /// Keeps what discovery says of extensions.
    pub(crate) fn remember_found(self: &Arc<Self>, found: &[FoundExtension]) {
        write(&self.known).extend(found.iter().map(|found| (found.digest, found.clone())));
        self.installed(found);
    }

    /// An extension's state has changed.
    pub(crate) fn changed(self: &Arc<Self>, change: &ExtensionStateChanged) {
        self.keep_serving(change);
        self.services_follow(change);
        self.living.notify_changed();
        if change.state == ExtensionState::Active {
            self.generation_replaced(&change.id, change.generation);
        }
        let ExtensionStateChanged { id: extension, generation, state, fault, .. } = change.clone();
        self.announce(
            EXTENSION_STATE,
            &messaging::ExtensionStateEvent { extension, generation, state, fault },
        );
    }

    /// Takes what is secret out of a fact before anything is made of it.
    /// A text that is shown, without what is secret.
    pub(crate) fn hide_in_text(&self, text: String) -> String {
        self.secrets.as_ref().map_or_else(|| text.clone(), |secrets| secrets.hide_in_text(&text))
    }

    pub(crate) fn hide(&self, body: &mut Body) {
        if let Some(secrets) = &self.secrets {
            secrets.hide(body);
        }
    }

    /// What discovery said of an activation.
    pub(crate) fn found(&self, digest: &Digest) -> Option<FoundExtension> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).get(digest).cloned()
    }

    /// Keeps in mind who serves.
    fn keep_serving(&self, change: &ExtensionStateChanged) {
        self.setup_changed();
        let ExtensionStateChanged { id, generation, state, .. } = change;
        let mut serving = write(&self.serving);
        match state {
            ExtensionState::Active => {
                let instances = self.instances.read().unwrap_or_else(PoisonError::into_inner);
                let loaded =
                    instances.get(id).and_then(|all| all.iter().find(|it| it.generation == *generation));
                let Some(digest) = loaded.map(|it| it.digest) else { return };
                let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
                let Some(found) = known.get(&digest) else { return };
                serving.insert(id.clone(), Arc::new(found.activation(generation.0)));
                self.presence.open(id);
            }
            ExtensionState::Inactive | ExtensionState::Error => {
                if serving.get(id).is_some_and(|serving| serving.generation == *generation) {
                    serving.remove(id);
                    self.presence.open(id);
                }
            }
        }
    }

    /// The generation of an extension that serves now.
    pub(crate) fn serving(&self, id: &ExtensionId) -> Option<Arc<ExtensionRef>> {
        self.serving.read().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }

    /// Everyone who serves, by id.
    pub(crate) fn all_serving(&self) -> Vec<Arc<ExtensionRef>> {
        let serving = self.serving.read().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<Arc<ExtensionRef>> = serving.values().cloned().collect();
        all.sort();
        all
    }

    /// Goes in to an extension that serves, for one call. While its next generation takes over, this waits.
    pub(crate) async fn enter(
        &self,
        id: &ExtensionId,
        limit: Millis,
    ) -> Result<(Arc<ExtensionRef>, CallGuard), Fault> {
        let late = || Fault::new(Code::ExtensionFault, format!("`{id}` gave no way within {} ms", limit.0));
        let visit = tokio::select! {
            biased;
            visit = self.presence.clone().enter(id.clone()) => visit,
            () = self.clock.sleep(limit) => return Err(late()),
        };
        let gone = || Fault::new(Code::ExtensionUnknown, format!("`{id}` is not active"));
        let serving = self.serving(id).ok_or_else(gone)?;
        let visit = visit.to(serving.generation);
        Ok((serving, visit))
    }

    /// Goes in to the code that a turn or a run is pinned to, for one call. What has given way to other code has stopped, and is not
    /// called any more.
    pub(crate) async fn enter_pinned(
        &self,
        pinned: &ExtensionRef,
    ) -> Result<(Arc<ExtensionRef>, CallGuard), Fault> {
        let visit = self.presence.clone().enter(pinned.id.clone()).await;
        let ExtensionRef { id, version, generation, .. } = pinned;
        let gone = || {
            let which = format!("`{id}` {version} (generation {})", generation.0);
            let message = format!("{which} has been replaced and stopped in the meantime");
            Fault::new(Code::ExtensionUnknown, format!("{message}; the next turn has what took its place"))
        };
        let serving = self.serving(id).filter(|serving| serving.digest == pinned.digest).ok_or_else(gone)?;
        let visit = visit.to(serving.generation);
        Ok((serving, visit))
    }

    /// The schedules of an extension, as long as it serves.
    pub(crate) fn schedules(&self, id: &ExtensionId) -> Vec<ScheduleSpec> {
        let serving = self.serving(id).and_then(|serving| self.found(&serving.digest));
        serving.map(|found| found.schedules).unwrap_or_default()
    }

    /// Whether an extension has said that it depends on another.
    pub(crate) fn depends_on(&self, extension: &ExtensionRef, other: &ExtensionId) -> bool {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.get(&extension.digest).is_some_and(|found| found.depends_on.contains(other))
    }

    pub(crate) fn keep_instance(&self, extension: &ExtensionRef, instance: Arc<dyn Instance>) {
        let loaded = Loaded { generation: extension.generation, digest: extension.digest, instance };
        write(&self.instances).entry(extension.id.clone()).or_default().push(loaded);
    }

    /// The fault of an extension's own that this fact tells of, for the system to count. What the host did to it, such as
    /// running out of room, and what it says itself, such as that a tool failed, are no such faults.
    pub(crate) fn fault_of(&self, input: &Input) -> Option<ExtensionFaulted> {
        let (fault, phase) = match &input.body {
            Body::HookFaulted(fact) => (&fact.fault, format!("hook {}", fact.hook)),
            Body::ToolReturned(fact) => (fact.outcome.fault()?, "tool".to_owned()),
            _ => return None,
        };
        let FrameSource::Extension(extension) = &input.source else { return None };
        let (id, generation) = (extension.id.clone(), extension.generation);
        fault.code.is_crash().then(|| ExtensionFaulted { id, generation, phase, fault: fault.clone() })
    }

    /// Loads what these registries name and nobody has loaded yet: extensions that were removed since. One whose code is gone is
    /// reported where it is called.
    pub(crate) async fn load_pinned(&self, registries: &[Arc<Registry>]) {
        let tools = registries.iter().flat_map(|registry| registry.tools.iter().flat_map(|tool| &tool.stack));
        let hooks = registries.iter().flat_map(|registry| &registry.hooks);
        let hooks = hooks.filter(|hook| hook.outage.is_none()).map(|hook| &hook.extension);
        let named: BTreeSet<_> = tools.map(|tool| &tool.extension).chain(hooks).cloned().collect();
        for extension in named {
            if self.instance(&extension).is_ok() {
                continue;
            }
            for lane in &self.lanes {
                if let Ok(instance) = lane.load(&extension).await {
                    self.keep_instance(&extension, instance);
                    break;
                }
            }
        }
    }

    /// Brings in the code of a registry's hooks before a turn begins on it.
    pub(crate) async fn prepare(&self, registry: &Arc<Registry>) {
        // The one that was prepared last is prepared; usually it is this one.
        if lock(&self.prepared).upgrade().is_some_and(|prepared| Arc::ptr_eq(&prepared, registry)) {
            return;
        }
        for hook in &registry.hooks {
            if let Some(preparing) =
                self.instance(&hook.extension).ok().and_then(|instance| instance.prepare())
            {
                preparing.await;
            }
        }
        *lock(&self.prepared) = Arc::downgrade(registry);
    }

    /// The code of an activation; after a restart, the same code under its new generation.
    pub(crate) fn instance(&self, extension: &ExtensionRef) -> Result<Arc<dyn Instance>, Fault> {
        let instances = self.instances.read().unwrap_or_else(PoisonError::into_inner);
        let loaded = instances.get(&extension.id).map(Vec::as_slice).unwrap_or_default();
        let exact = loaded
            .iter()
            .rev()
            .find(|it| it.generation == extension.generation && it.digest == extension.digest);
        let same = exact.or_else(|| loaded.iter().rev().find(|it| it.digest == extension.digest));
        same.map(|it| it.instance.clone()).ok_or_else(|| {
            let message = format!(
                "`{}` {} (generation {}) is not loaded",
                extension.id, extension.version, extension.generation.0
            );
            Fault::new(Code::ExtensionUnknown, message)
        })
    }

    /// A model by its name: one that is configured, built in, or a file that was opened before. Whoever asks may have been given the
    /// name by anybody, so no file is opened here.
    pub(crate) fn model(&self, name: &ModelName) -> Result<Arc<dyn Model>, Fault> {
        if let Some(model) = self.models.read().unwrap_or_else(PoisonError::into_inner).get(name) {
            return Ok(model.clone());
        }
        let model =
            holdfast_model::built_in(name.as_str()).ok_or_else(|| match names_file(name.as_str()) {
                true => Fault::new(Code::ModelFile, format!("the file of the model `{name}` was not opened")),
                false => Fault::new(Code::ModelUnknown, format!("no model `{name}` is configured")),
            })?;
        write(&self.models).insert(name.clone(), model.clone());
        Ok(model)
    }

    /// Whether a question to a person is worth asking: somebody is there, or the policy has it wait until somebody is.
    pub(crate) fn waits_for_a_person(&self, session: &StreamId) -> bool {
        self.surface.attended(session)
            || self.policy_in_force().is_ok_and(|policy| policy.unattended() == Unattended::Wait)
    }

    /// The policy that new turns start under.
    pub(crate) fn policy_in_force(&self) -> Result<Arc<Policy>, Problem> {
        self.policy(self.registry().view.and_then(|registry| registry.policy))
    }

    /// The policy of this digest. A turn that runs on an older one still gets it.
    pub(crate) fn policy(&self, digest: Option<Digest>) -> Result<Arc<Policy>, Problem> {
        let digest = digest.ok_or_else(|| Problem::new(Code::PolicyInvalid, "no policy is in force"))?;
        if let Some(policy) = self.policies.read().unwrap_or_else(PoisonError::into_inner).get(&digest) {
            return Ok(policy.clone());
        }
        let missing = || Problem::new(Code::ReplayMissing, format!("policy {digest} is not in the store"));
        let bytes = self.store.object(digest)?.ok_or_else(missing)?;
        let policy = Arc::new(Policy::from_document(&bytes)?);
        write(&self.policies).insert(digest, policy.clone());
        Ok(policy)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> std::sync::RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}
