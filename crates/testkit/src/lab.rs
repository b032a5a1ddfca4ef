//! The lab: the real runtime on a real or simulated disk, with everything outside it under the test's control.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use holdfast_contract::frame::Frame;
use holdfast_contract::ids::{ExtensionId, Millis, ModelName, Seq, StreamId};
use holdfast_contract::manifest::Profile;
use holdfast_contract::message::{Limits, Origin};
use holdfast_contract::problem::{Fault, Problem};
use holdfast_contract::session_frames::{SessionSettings, UiQuestion};
use holdfast_contract::system_frames::FoundExtension;
use holdfast_contract::wire::Lane;
use holdfast_home::{AgentSettings, CallSettings, Channels, LimitSettings};
use holdfast_kernel::Pending;
use holdfast_lane_native::NativeExtension;
use holdfast_model::Model;
use holdfast_model::script::{Script, ScriptStep};
use holdfast_policy::Policy;
use holdfast_replay::{Mode, ReplayVerdict, replay};
use holdfast_replay::{VerificationFinding, verify};
use holdfast_runtime::secrets::Secrets;
use holdfast_runtime::{
    Configuration, Entropy, HomeParts, NewSession, OutputDelta, OutputKind, Parts, Routes, Runtime,
    SessionEvent, SessionFactory, SessionHandle, SessionRequest, Surface, ToolsShown, TurnReport,
};
use holdfast_store::{Store, StoreOptions};

use crate::clock::FakeClock;
use crate::ledger::{EffectLedger, RecordingLane};

/// After this a test gives up. It only has to be longer than the slowest machine needs.
pub const TIMEOUT: Duration = Duration::from_secs(120);

/// The id of the session that a lab opens by itself.
pub const SESSION: &str = "s1";

/// What a lab is built of.
pub struct LabBuilder {
    models: BTreeMap<ModelName, Arc<dyn Model>>,
    extensions: Vec<NativeExtension>,
    policy: Policy,
    settings: SessionSettings,
    attended: bool,
    shows_notices: bool,
    path: Option<PathBuf>,
    options: StoreOptions,
    ledger: EffectLedger,
    lanes: Vec<Arc<dyn Lane>>,
    found: Vec<FoundExtension>,
    channels: Channels,
    clock: FakeClock,
    home: HomeParts,
}

impl Default for LabBuilder {
    fn default() -> Self {
        Self {
            models: BTreeMap::new(),
            extensions: Vec::new(),
            policy: Policy::profile(Profile::FullAuto),
            settings: SessionSettings { models: vec!["script".into()], ..SessionSettings::default() },
            attended: true,
            shows_notices: false,
            path: None,
            options: StoreOptions::default(),
            ledger: EffectLedger::default(),
            lanes: Vec::new(),
            found: Vec::new(),
            channels: Channels::default(),
            clock: FakeClock::default(),
            home: HomeParts::default(),
        }
    }
}

impl LabBuilder {
    /// What the main model answers.
    pub fn script(self, steps: impl IntoIterator<Item = ScriptStep>) -> Self {
        self.model("script", Script::new(steps))
    }

    /// With another model.
    pub fn model(mut self, name: &str, model: impl Model + 'static) -> Self {
        self.models.insert(name.into(), Arc::new(model));
        self
    }

    /// With an extension.
    pub fn extension(mut self, extension: NativeExtension) -> Self {
        self.extensions.push(extension);
        self
    }

    /// With another lane besides the native one, and extensions that it runs.
    pub fn lane(mut self, lane: Arc<dyn Lane>, found: impl IntoIterator<Item = FoundExtension>) -> Self {
        self.lanes.push(lane);
        self.found.extend(found);
        self
    }

    /// Under this policy.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Under this profile.
    pub fn profile(self, profile: Profile) -> Self {
        self.policy(Policy::profile(profile))
    }

    /// With these limits.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.settings.limits = limits;
        self
    }

    /// With limits that the user has set.
    pub fn limit_settings(mut self, settings: LimitSettings) -> Self {
        self.home.limits = settings;
        self.limits(settings.over(Limits::default()))
    }

    /// With other session settings.
    pub fn settings(mut self, change: impl FnOnce(&mut SessionSettings)) -> Self {
        change(&mut self.settings);
        self
    }

    /// With channels set like this.
    pub fn channels(mut self, channels: Channels) -> Self {
        self.channels = channels;
        self
    }

    /// With nobody there to answer.
    pub fn unattended(mut self) -> Self {
        self.attended = false;
        self
    }

    /// With a chat open that shows what belongs to no conversation.
    pub fn shows_notices(mut self) -> Self {
        self.shows_notices = true;
        self
    }

    /// On this database rather than a fresh one.
    pub fn on(mut self, path: &Path, options: StoreOptions) -> Self {
        self.path = Some(path.to_owned());
        self.options = options;
        self
    }

    /// With these secrets.
    pub fn secrets(mut self, secrets: Arc<Secrets>) -> Self {
        self.home.secrets = Some(secrets);
        self
    }

    /// What is different for an agent.
    pub fn agent_settings(mut self, agent: &str, settings: AgentSettings) -> Self {
        self.home.agents.insert(agent.into(), settings);
        self
    }

    /// Showing models so many tools, and always those of these extensions.
    pub fn shows(mut self, at_most: usize, always: &[&str]) -> Self {
        self.home.tools = ToolsShown { always: always.iter().map(|id| (*id).into()).collect(), at_most };
        self
    }

    /// Writing the settings of extensions here.
    pub fn configuration(mut self, configuration: Arc<dyn Configuration>) -> Self {
        self.home.configuration = Some(configuration);
        self
    }

    /// With an extension that is there and cannot be used.
    pub fn rejects(mut self, id: &str, fault: Fault) -> Self {
        self.home.rejected.push((id.into(), fault));
        self
    }

    /// Running tool calls like this.
    pub fn calls(mut self, calls: CallSettings) -> Self {
        self.home.calls = calls;
        self
    }

    /// Going by this clock.
    pub fn clock(mut self, clock: FakeClock) -> Self {
        self.clock = clock;
        self
    }

    /// Writing into this ledger.
    pub fn ledger(mut self, ledger: EffectLedger) -> Self {
        self.ledger = ledger;
        self
    }

    /// With these parts of a home.
    pub fn home(mut self, change: impl FnOnce(&mut HomeParts)) -> Self {
        change(&mut self.home);
        self
    }

    /// Only to list what is there.
    pub fn inspects(mut self) -> Self {
        self.home.inspects = true;
        self
    }

    /// Its lane, as replay needs it, and nothing else.
    pub fn lanes(self) -> Vec<Arc<dyn Lane>> {
        let lane = RecordingLane::new(self.ledger);
        for extension in self.extensions {
            lane.add(extension);
        }
        std::iter::once(Arc::new(lane) as Arc<dyn Lane>).chain(self.lanes).collect()
    }

    /// Starts the runtime and waits for its extensions.
    pub async fn start(self) -> Lab {
        let lab = self.begin().await;
        lab.runtime.settled().await.unwrap();
        lab
    }

    /// Starts the runtime. Its extensions may still be starting.
    pub async fn begin(self) -> Lab {
        let directory = tempfile::tempdir().unwrap();
        let path = self.path.unwrap_or_else(|| directory.path().join("holdfast.db"));
        let store = Store::open(&path, self.options).unwrap();
        let lane = Arc::new(RecordingLane::new(self.ledger.clone()));
        let native = self.extensions.into_iter().map(|it| lane.add(it));
        let extensions: Vec<FoundExtension> = native.chain(self.found).collect();
        let lanes: Vec<Arc<dyn Lane>> = std::iter::once(lane.clone() as _).chain(self.lanes).collect();
        let clock = self.clock;
        let watcher = Arc::new(Watcher {
            attended: self.attended,
            shows_notices: self.shows_notices,
            ..Watcher::default()
        });
        let runtime = Runtime::begin(Parts {
            store,
            clock: Arc::new(clock.clone()),
            entropy: Arc::new(Counting),
            models: self.models,
            lanes: lanes.clone(),
            extensions,
            policy: self.policy,
            surface: watcher.clone(),
            routes: Routes {
                channels: self.channels,
                opener: Some(Arc::new(LabSessionFactory(self.settings.clone()))),
            },
            home: HomeParts { context: self.settings.context.clone(), ..self.home },
        })
        .await
        .unwrap();
        Lab {
            runtime,
            clock,
            ledger: self.ledger,
            lane,
            lanes,
            watcher,
            settings: self.settings,
            path,
            directory,
        }
    }
}

/// A running lab.
pub struct Lab {
    /// The runtime.
    pub runtime: Runtime,
    /// Its clock.
    pub clock: FakeClock,
    /// What really ran.
    pub ledger: EffectLedger,
    /// The lane, to add extensions while it runs.
    pub lane: Arc<RecordingLane>,
    lanes: Vec<Arc<dyn Lane>>,
    watcher: Arc<Watcher>,
    settings: SessionSettings,
    path: PathBuf,
    directory: tempfile::TempDir,
}

impl Lab {
    /// A lab to be built.
    pub fn build() -> LabBuilder {
        LabBuilder::default()
    }

    /// The database.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a session of this id.
    pub fn open(&self, id: &str) -> SessionHandle {
        let origin = Origin { channel: "test".to_owned(), user: Some("ada".to_owned()) };
        let opening = SessionRequest { id: id.into(), origin, agent: None };
        self.runtime.open(LabSessionFactory(self.settings.clone()).session(opening)).unwrap()
    }

    /// Opens the session, says this, and waits for the turn to end.
    pub async fn say(&self, text: &str) -> TurnReport {
        self.session().say("test", text).await.unwrap()
    }

    /// The lab's own session, opened or resumed.
    pub fn session(&self) -> SessionHandle {
        // One that was opened a moment ago may not be on disk yet.
        self.runtime.resume(&SESSION.into()).unwrap_or_else(|_| self.open(SESSION))
    }

    /// Says something without waiting for the turn to end.
    pub fn begin(&self, text: &str) -> tokio::task::JoinHandle<TurnReport> {
        let (session, text) = (self.session(), text.to_owned());
        tokio::spawn(async move { session.say("test", text.as_str()).await.unwrap() })
    }

    /// Waits for something that the runtime does by itself.
    pub async fn until(&self, what: &str, mut holds: impl FnMut(&Lab) -> bool) {
        let (deadline, mut pause) = (Instant::now() + TIMEOUT, Duration::from_millis(1));
        while !holds(self) {
            assert!(
                Instant::now() < deadline,
                "{what} did not come about; the log so far:\n{}",
                self.story()
            );
            tokio::time::sleep(pause).await;
            pause = (pause * 5 / 4).min(Duration::from_millis(20));
        }
    }

    /// Waits for a frame of this kind and gives its place.
    pub async fn until_kind(&self, kind: &str) -> Seq {
        let find = |lab: &Lab| {
            let frames = lab.frames();
            frames
                .iter()
                .rev()
                .find(|frame| frame.envelope.kind.as_str() == kind)
                .map(|frame| frame.envelope.seq)
        };
        self.until(kind, |lab| find(lab).is_some()).await;
        find(self).unwrap()
    }

    /// Waits for the next approval and gives it.
    pub async fn approval(&self) -> Pending {
        self.until("an approval", |lab| !lab.watcher.approvals.lock().unwrap().is_empty()).await;
        self.watcher.approvals.lock().unwrap().remove(0)
    }

    /// Waits for the next question of an extension and gives it.
    pub async fn question(&self) -> (Seq, UiQuestion) {
        self.until("a question", |lab| !lab.watcher.questions.lock().unwrap().is_empty()).await;
        self.watcher.questions.lock().unwrap().remove(0)
    }

    /// What the user was told in no session.
    pub fn notices(&self) -> Vec<String> {
        self.watcher.notices.lock().unwrap().clone()
    }

    /// What the model has written so far, as a surface was shown it.
    pub fn shown(&self) -> String {
        self.watcher.text.lock().unwrap().clone()
    }

    /// What the model has considered so far, as a surface was shown it.
    pub fn reasoning(&self) -> String {
        self.watcher.reasoning.lock().unwrap().clone()
    }

    /// What tools have told of their progress, as a surface was shown it.
    pub fn progress(&self) -> Vec<String> {
        self.watcher.progress.lock().unwrap().clone()
    }

    /// Lets time pass once so many sleep.
    pub async fn pass(&self, span: Millis, sleepers: usize) {
        self.until("sleepers", |lab| lab.clock.sleepers() >= sleepers).await;
        self.clock.advance(span);
    }

    /// The session's frames.
    pub fn frames(&self) -> Vec<Frame> {
        self.frames_of(SESSION)
    }

    /// A stream's frames.
    pub fn frames_of(&self, stream: &str) -> Vec<Frame> {
        self.runtime.store().flush().unwrap();
        self.runtime.store().frames(&StreamId::from(stream), ..).unwrap()
    }

    /// The session's story.
    pub fn story(&self) -> String {
        crate::story::story(&self.frames())
    }

    /// What verification finds.
    pub fn findings(&self) -> Vec<VerificationFinding> {
        self.runtime.store().flush().unwrap();
        verify(self.runtime.store(), None).unwrap().findings
    }

    /// A strict replay of a stream in this process.
    pub fn replay(&self, stream: &str) -> ReplayVerdict {
        self.runtime.store().flush().unwrap();
        replay(self.runtime.store(), &stream.into(), Mode::Strict, &self.lanes).unwrap()
    }

    /// Stops the runtime and gives the folder with its database, to be kept for as long as it is used.
    pub async fn stop(self) -> tempfile::TempDir {
        self.runtime.stop("the test is over").await.unwrap();
        self.directory
    }
}

/// A surface that remembers what it was shown.
#[derive(Default)]
struct Watcher {
    attended: bool,
    shows_notices: bool,
    approvals: Mutex<Vec<Pending>>,
    questions: Mutex<Vec<(Seq, UiQuestion)>>,
    notices: Mutex<Vec<String>>,
    text: Mutex<String>,
    reasoning: Mutex<String>,
    progress: Mutex<Vec<String>>,
}

impl Surface for Watcher {
    fn show(&self, _: &StreamId, event: SessionEvent) {
        match event {
            SessionEvent::Approval(pending) => self.approvals.lock().unwrap().push(pending),
            SessionEvent::Output(OutputDelta { kind: OutputKind::Text { .. }, text, .. }) => {
                self.text.lock().unwrap().push_str(&text);
            }
            SessionEvent::Notice { text, .. } => self.notices.lock().unwrap().push(text),
            SessionEvent::Question { request, question, .. } => {
                self.questions.lock().unwrap().push((request, question));
            }
            SessionEvent::Output(OutputDelta { kind: OutputKind::Reasoning, text, .. }) => {
                self.reasoning.lock().unwrap().push_str(&text);
            }
            SessionEvent::Output(OutputDelta { kind: OutputKind::Progress { .. }, text, .. }) => {
                self.progress.lock().unwrap().push(text);
            }
            SessionEvent::Broken(_) => {}
        }
    }

    fn attended(&self, _: &StreamId) -> bool {
        self.attended
    }

    fn tell_user(&self, _: Option<&StreamId>, _: &ExtensionId, text: &str) -> bool {
        if self.shows_notices {
            self.notices.lock().unwrap().push(text.to_owned());
        }
        self.shows_notices
    }
}

/// Makes the sessions of a lab.
struct LabSessionFactory(SessionSettings);

impl LabSessionFactory {
    fn session(&self, SessionRequest { id, origin, .. }: SessionRequest) -> NewSession {
        let (agent, instructions) = ("main".into(), "You are a test.".into());
        NewSession { id, origin, agent, instructions, settings: self.0.clone() }
    }
}

impl SessionFactory for LabSessionFactory {
    fn create_session(&self, _: &Runtime, opening: SessionRequest) -> Result<NewSession, Problem> {
        Ok(self.session(opening))
    }
}

/// Bytes that count up: random enough for a test.
struct Counting;

impl Entropy for Counting {
    fn draw(&self, count: u32) -> Vec<u8> {
        (0..count).map(|byte| byte as u8).collect()
    }
}
