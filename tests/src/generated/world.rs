//! Runs a world on the real runtime: opens and resumes its sessions, answers for its users, lets time pass when nothing else
//! moves, and ends each life as planned.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use holdfast_contract::content::Content;
use holdfast_contract::ids::{ExtensionId, Millis, ModelName, StreamId};
use holdfast_contract::manifest::Profile;
use holdfast_contract::message::Origin;
use holdfast_contract::registry::Override;
use holdfast_contract::session_frames::{Answer, ApprovalScope};
use holdfast_contract::system_frames::FoundExtension;
use holdfast_contract::wire::Lane;
use holdfast_model::Model;
use holdfast_policy::Policy;
use holdfast_runtime::{
    Entropy, HomeParts, NewSession, Parts, Routes, Runtime, SessionEvent, SessionHandle, Surface,
};
use holdfast_store::{Store, StoreOptions};
use holdfast_testkit::{EffectLedger, FakeClock, RecordingLane};
use serde_json::json;
use tokio::task::{JoinSet, yield_now};

use super::dice::Dice;
use super::plan::{Act, How, SessionPlan, WorldPlan};
use super::{check, hooks, scratch, tools};

/// How often a world may stand still before it counts as stuck.
const PATIENCE: u64 = 3_000;

/// A world: its database, and what outlives a life.
pub struct World {
    pub plan: WorldPlan,
    pub path: PathBuf,
    pub ledger: EffectLedger,
    /// Folder of the database; removed with the world.
    pub folder: tempfile::TempDir,
    lane: Arc<RecordingLane>,
    clock: FakeClock,
    models: BTreeMap<ModelName, Arc<dyn Model>>,
    /// What discovery finds at the moment, and everything it might find.
    found: BTreeMap<ExtensionId, FoundExtension>,
    known: Vec<FoundExtension>,
    policy: Policy,
    /// How far each session has come with its plan.
    progress: Vec<Arc<AtomicUsize>>,
    dice: Dice,
}

impl World {
    /// A world that has not begun.
    pub fn new(plan: WorldPlan) -> Self {
        let folder = scratch::folder();
        let seed = plan.seed;
        let ledger = EffectLedger::default();
        let lane = Arc::new(RecordingLane::new(ledger.clone()));
        let mut dice = Dice::of(&format!("cast {seed}"));
        let mut first = vec![lane.add(tools::kit()), lane.add(tools::second())];
        let words = format!("hook {seed}");
        for id in ["steady-a", "steady-b", "loose-a", "loose-b"] {
            first.push(lane.add(hooks::extension(id, "1.0.0", &words, dice.between(1, 6))));
        }
        let mut known = first.clone();
        for id in ["steady-b", "loose-b"] {
            known.push(lane.add(hooks::extension(id, "2.0.0", &words, dice.between(1, 6))));
        }
        let models = ["main", "spare", "helper"].map(|name| {
            let model: Arc<dyn Model> = Arc::new(tools::Improviser::new(format!("{name} {seed}")));
            (ModelName::from(name), model)
        });
        Self {
            path: folder.path().join("holdfast.db"),
            folder,
            ledger,
            lane,
            clock: FakeClock::default(),
            models: models.into(),
            found: first.into_iter().map(|found| (found.id.clone(), found)).collect(),
            known,
            policy: Policy::profile(plan.profile),
            progress: plan.sessions.iter().map(|_| Arc::default()).collect(),
            dice: Dice::of(&format!("driver {seed}")),
            plan,
        }
    }

    /// Lives through all of it.
    pub fn run(&mut self) {
        let endings = self.plan.endings.clone();
        for ending in &endings {
            self.live(Some((ending.rounds, ending.how)));
            if ending.how == How::Torn {
                scratch::tear(&self.path, &mut self.dice);
            }
        }
        self.live(None);
    }

    /// What replay needs to run extensions again.
    pub fn lanes(&self) -> Vec<Arc<dyn Lane>> {
        vec![self.lane.clone()]
    }

    /// The database, with nobody writing it.
    pub fn store(&self) -> Store {
        Store::open(&self.path, StoreOptions::default()).unwrap()
    }

    /// One life. Whatever still runs at its end goes with the executor.
    fn live(&mut self, ending: Option<(u64, How)>) {
        let executor = tokio::runtime::Builder::new_current_thread().build().unwrap();
        executor.block_on(async {
            let stage = Arc::new(Stage::default());
            let runtime = self.start(stage.clone()).await;
            let mut users = JoinSet::new();
            for (plan, progress) in self.plan.sessions.iter().zip(&self.progress) {
                users.spawn(use_session(runtime.clone(), plan.clone(), progress.clone(), stage.clone()));
            }
            self.watch(&runtime, &stage, &mut users, ending.map(|(rounds, _)| rounds)).await;
            match ending {
                Some((_, How::Dropped | How::Torn)) => runtime.store().flush().unwrap(),
                Some((_, How::Stopped)) => runtime.stop("the life is over").await.unwrap(),
                None => {
                    // Children whose parents lost interest may still end within a step.
                    for info in runtime.store().streams().unwrap() {
                        if info.id.is_session() {
                            runtime.resume(&info.id).unwrap();
                        }
                    }
                    runtime.stop("the test is over").await.unwrap();
                }
            }
        });
    }

    async fn start(&self, stage: Arc<Stage>) -> Runtime {
        let parts = Parts {
            store: self.store(),
            clock: Arc::new(self.clock.clone()),
            entropy: Arc::new(Drawn(Mutex::new(self.dice.clone()))),
            models: self.models.clone(),
            lanes: self.lanes(),
            extensions: self.found.values().cloned().collect(),
            policy: self.policy.clone(),
            surface: stage,
            routes: Routes::default(),
            home: HomeParts::default(),
        };
        Runtime::start(parts).await.unwrap()
    }

    /// Lets the world move by itself for as long as it does, and gives it a push when it stands still.
    async fn watch(
        &mut self,
        runtime: &Runtime,
        stage: &Stage,
        users: &mut JoinSet<()>,
        rounds: Option<u64>,
    ) {
        let mut waiting = Vec::new();
        let mut still = 0;
        for round in 0.. {
            let before = stage.moves(runtime);
            for _ in 0..12 {
                yield_now().await;
            }
            // Behind this everything that waited for the disk has been woken, so that standing still means something.
            runtime.store().flush().unwrap();
            while let Some(ended) = users.try_join_next() {
                ended.unwrap();
            }
            waiting.append(&mut stage.questions.lock().unwrap());
            assert_eq!(*stage.broken.lock().unwrap(), Vec::<String>::new(), "no session breaks down");
            if users.is_empty() || rounds.is_some_and(|rounds| round >= rounds) {
                return;
            }
            if stage.moves(runtime) != before {
                continue;
            }
            still += 1;
            assert!(
                still < PATIENCE,
                "the world stands still for good: {}",
                self.unfinished(runtime, &stage.at_it.lock().unwrap())
            );
            self.push(runtime, &mut waiting).await;
        }
    }

    /// Who is not through with their plan, and where they stand.
    fn unfinished(&self, runtime: &Runtime, at_it: &BTreeSet<String>) -> String {
        let mut text = String::new();
        for plan in self.plan.sessions.iter().filter(|plan| at_it.contains(&plan.id)) {
            let frames = runtime.store().frames(&plan.id.as_str().into(), ..).unwrap();
            text.push_str(&format!("\n{plan:?}\n{}", check::brief(&frames)));
        }
        text
    }

    async fn push(&mut self, runtime: &Runtime, waiting: &mut Vec<(StreamId, SessionEvent)>) {
        match self.dice.below(20) {
            0 => self.cancel_someone(runtime).await,
            1 => self.change_registry(runtime),
            2..=13 if !waiting.is_empty() => {
                for _ in 0..self.dice.between(1, 4) {
                    if let Some((session, event)) = self.dice.take(waiting) {
                        self.answer(runtime, &session, event).await;
                    }
                }
            }
            _ => self.clock.advance(Millis(self.dice.pick(&[10, 60, 250, 1_000, 6_000, 30_000]))),
        }
    }

    async fn cancel_someone(&mut self, runtime: &Runtime) {
        let id = StreamId::from(self.dice.pick(&self.plan.sessions).id.as_str());
        if let Ok(session) = runtime.resume(&id) {
            // There may be nothing to cancel.
            drop(session.cancel("changed their mind").await);
        }
    }

    /// Something is installed, removed or set between turns; turns that run keep what they began with.
    fn change_registry(&mut self, runtime: &Runtime) {
        match self.dice.below(5) {
            0 | 1 => {
                let found = self.dice.pick(&self.known);
                self.found.insert(found.id.clone(), found.clone());
                runtime.found(vec![found]);
            }
            2 => {
                let id = ExtensionId::from(self.dice.pick(&["steady-b", "loose-b", "second"]));
                self.found.remove(&id);
                runtime.removed(id);
            }
            3 => {
                let profile = self.dice.pick(&[Profile::FullAuto, Profile::Standard, Profile::Safe]);
                self.policy = Policy::profile(profile);
                runtime.set_policy(self.policy.clone(), "a whim").unwrap();
            }
            _ => {
                let enabled = self.dice.one_in(2).then_some(false);
                let change = Override { enabled, priority: Some(7), extension: None };
                let name = self.dice.pick(&["echo", "write", "big"]).into();
                runtime.set_overrides(BTreeMap::from([("tool".into(), BTreeMap::from([(name, change)]))]));
            }
        }
    }

    /// A person answers. By then the question may have gone.
    async fn answer(&mut self, runtime: &Runtime, session: &StreamId, event: SessionEvent) {
        let Ok(handle) = runtime.resume(session) else { return };
        match event {
            SessionEvent::Approval(pending) => {
                let arguments = json!({ "n": self.dice.below(50), "count": self.dice.pick(&[json!(4), json!("5"), json!("x")]) });
                let answer = match self.dice.below(7) {
                    0..=2 => Answer::Approve { scope: ApprovalScope::Once },
                    3 => Answer::Approve { scope: ApprovalScope::Session },
                    4 | 5 => Answer::Edit { arguments: Content::new(arguments) },
                    _ => Answer::Deny { reason: "not now".to_owned() },
                };
                drop(handle.approve(pending.approval, answer).await);
            }
            SessionEvent::Question { request, .. } => {
                let answer = self.dice.one_in(2).then(|| Content::new(json!(true)));
                drop(handle.answer(request, answer).await);
            }
            SessionEvent::Output(_) | SessionEvent::Notice { .. } | SessionEvent::Broken(_) => {}
        }
    }
}

/// A user goes through their plan, from where an earlier life left it.
async fn use_session(runtime: Runtime, plan: SessionPlan, progress: Arc<AtomicUsize>, stage: Arc<Stage>) {
    stage.at_it.lock().unwrap().insert(plan.id.clone());
    let id = StreamId::from(plan.id.as_str());
    let mut session = match runtime.store().head(&id).unwrap() {
        Some(_) => runtime.resume(&id).unwrap(),
        None => runtime.open(new_session(&plan)).unwrap(),
    };
    // What an earlier life left unfinished goes on first, if there is anything.
    drop(session.running_turn().await);
    loop {
        let place = progress.fetch_add(1, Ordering::Relaxed);
        stage.moved.fetch_add(1, Ordering::Relaxed);
        let Some(act) = plan.acts.get(place) else { break };
        // An act may come to nothing: the session has ended, or the life is over. The log says what happened.
        match act.clone() {
            Act::Say { text, cancel_after } => {
                if let Some(after) = cancel_after {
                    tokio::spawn(cancel_later(session.clone(), after));
                }
                drop(session.say(plan.channel, text.as_str()).await);
            }
            Act::Reopen { text, after } => {
                let saying = session.clone();
                tokio::spawn(async move { drop(saying.say("test", text.as_str()).await) });
                for _ in 0..after {
                    yield_now().await;
                }
                if session.close().await.is_err() {
                    break;
                }
                session = runtime.resume(&id).unwrap();
                drop(session.running_turn().await);
            }
            Act::Compact => drop(session.compact("it is getting long").await),
            Act::End => drop(session.end("that is all").await),
        }
    }
    stage.at_it.lock().unwrap().remove(&plan.id);
}

async fn cancel_later(session: SessionHandle, after: u64) {
    for _ in 0..after {
        yield_now().await;
    }
    drop(session.cancel("never mind").await);
}

fn new_session(plan: &SessionPlan) -> NewSession {
    NewSession {
        id: plan.id.as_str().into(),
        origin: Origin { channel: plan.channel.to_owned(), user: None },
        agent: "main".into(),
        instructions: "You are a test.".into(),
        settings: plan.settings.clone(),
    }
}

/// A surface that keeps what a person must answer, and counts what it is shown.
#[derive(Default)]
struct Stage {
    questions: Mutex<Vec<(StreamId, SessionEvent)>>,
    broken: Mutex<Vec<String>>,
    /// Whose users are not through with their plan.
    at_it: Mutex<BTreeSet<String>>,
    moved: AtomicU64,
}

impl Stage {
    /// A number that changes whenever anything happens.
    fn moves(&self, runtime: &Runtime) -> u64 {
        runtime.store().stats().frames + self.moved.load(Ordering::Relaxed)
    }
}

impl Surface for Stage {
    fn show(&self, session: &StreamId, event: SessionEvent) {
        self.moved.fetch_add(1, Ordering::Relaxed);
        match event {
            SessionEvent::Approval(_) | SessionEvent::Question { .. } => {
                self.questions.lock().unwrap().push((session.clone(), event));
            }
            SessionEvent::Broken(problem) => {
                self.broken.lock().unwrap().push(format!("{session}: {problem}"))
            }
            SessionEvent::Output(_) | SessionEvent::Notice { .. } => {}
        }
    }

    fn attended(&self, _: &StreamId) -> bool {
        true
    }
}

struct Drawn(Mutex<Dice>);

impl Entropy for Drawn {
    fn draw(&self, count: u32) -> Vec<u8> {
        let mut dice = self.0.lock().unwrap();
        (0..count).map(|_| dice.below(256) as u8).collect()
    }
}
