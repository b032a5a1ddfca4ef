//! A channel that is replaced again and again while users write and are answered: nothing is lost, repeats are marked, order holds, and
//! nobody is called once he has stopped.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use holdfast_app::Application;
use holdfast_bus::NewEvent;
use holdfast_contract::body::{Body, FrameKind};
use holdfast_contract::content::Content;
use holdfast_contract::frame::Frame;
use holdfast_contract::host_call::HostCall;
use holdfast_contract::ids::{CallId, Millis};
use holdfast_contract::message::TurnView;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::tool::{EffectClass, ToolSpec};
use holdfast_contract::wire::{Host, Later};
use holdfast_lane_native::{Channel, Lifecycle, NativeExtension, Service, Tool, now};
use holdfast_runtime::Runtime;
use holdfast_testkit::pieces::spec;
use holdfast_testkit::wasm::{manifest, telltale};
use holdfast_testkit::{Lab, ScriptStep};
use serde_json::{Value, json};

use holdfast_tests::scene::{Scene, again, serves};

const RELOADS: u64 = 100;
const USERS: [&str; 4] = ["ada", "ben", "cyd", "dan"];

/// Something that happened to a channel, in order: which generation tells it, and what.
#[derive(Clone, Debug)]
enum Told {
    Started(u64),
    Stopped(u64),
    Sent { by: u64, user: String, text: String, delivery: String, repeat: bool },
}

/// Whether two generations of a channel may be up at once.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Alone,
    BySide,
}

/// Everything that a channel promises, held against what happened to its generations.
fn holds(told: &[Told], side: Side, said: &[usize], notices: usize) {
    let (mut up, mut over, mut had) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let mut answers: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for it in told {
        match it {
            Told::Started(generation) => {
                assert!(side == Side::BySide || up.is_empty(), "{generation} starts beside {up:?}");
                up.insert(*generation);
            }
            Told::Stopped(generation) => {
                assert!(up.remove(generation), "{generation} stops and was not up");
                over.insert(*generation);
            }
            Told::Sent { by, user, text, delivery, repeat } => {
                assert!(up.contains(by) && !over.contains(by), "{by} was called and is not up: {it:?}");
                let first = had.insert(delivery.as_str());
                assert!(first || *repeat, "a repeat is not marked: {it:?}");
                if first {
                    answers.entry(user).or_default().push(text);
                }
            }
        }
    }
    assert_eq!(over.len() as u64, RELOADS, "every generation but the last has stopped");
    for (user, said) in USERS.into_iter().zip(said) {
        let answered = answers.remove(user).unwrap_or_default();
        let expected: Vec<String> = (1..=*said).map(|number| format!("answer {number}")).collect();
        assert_eq!(answered, expected, "every message of {user} is answered, in order");
    }
    let told = answers.remove("*").unwrap_or_default();
    let expected: Vec<String> = (1..=notices).map(|number| format!("notice {number}")).collect();
    assert_eq!(told, expected, "every notice arrives, in order");
    assert_eq!(answers.keys().collect::<Vec<_>>(), Vec::<&&str>::new());
}

/// What goes to and fro until it is told to end. Each publication is acknowledged before the next one of its kind.
struct Traffic {
    ends: tokio::sync::watch::Sender<bool>,
    users: Vec<tokio::task::JoinHandle<usize>>,
    notices: tokio::task::JoinHandle<usize>,
}

impl Traffic {
    fn begin(runtime: &Runtime) -> Self {
        let (ends, end) = tokio::sync::watch::channel(false);
        let user = |user: &'static str| {
            let said = move |text: String| json!({ "text": text, "user_id": user, "channel_id": "relay" });
            tokio::spawn(stream(runtime.clone(), end.clone(), "user.message", said))
        };
        let notice = |text: String| json!({ "text": text });
        let notices = tokio::spawn(stream(runtime.clone(), end.clone(), "system.user.notify", notice));
        Self { users: USERS.into_iter().map(user).collect(), notices, ends }
    }

    /// How many messages each user wrote, and how many notices there were.
    async fn end(self) -> (Vec<usize>, usize) {
        self.ends.send(true).unwrap();
        let mut said = Vec::new();
        for user in self.users {
            said.push(user.await.unwrap());
        }
        (said, self.notices.await.unwrap())
    }
}

async fn stream(
    runtime: Runtime,
    end: tokio::sync::watch::Receiver<bool>,
    topic: &'static str,
    says: impl Fn(String) -> Value,
) -> usize {
    let mut count = 0;
    while !*end.borrow() {
        count += 1;
        runtime.publish(NewEvent::new(topic, says(format!("notice {count}")))).await.unwrap();
        tokio::time::sleep(Duration::from_millis(40)).await;
    }
    count
}

/// Holds what was told against what was said, once everything has arrived.
async fn all_arrives(told: impl Fn() -> Vec<Told>, side: Side, (said, notices): (Vec<usize>, usize)) {
    let expected = said.iter().sum::<usize>() + notices;
    let arrived = |told: &[Told]| {
        let deliveries = told.iter().filter_map(|it| match it {
            Told::Sent { delivery, .. } => Some(delivery.clone()),
            Told::Started(_) | Told::Stopped(_) => None,
        });
        deliveries.collect::<BTreeSet<_>>().len()
    };
    let deadline = std::time::Instant::now() + Duration::from_secs(120);
    while arrived(&told()) < expected {
        assert!(std::time::Instant::now() < deadline, "{} of {expected} arrived", arrived(&told()));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    holds(&told(), side, &said, notices);
}

/// The settings of a home whose model answers each message of a conversation with its number.
fn home() -> Scene {
    let scene = Scene::new();
    let root = scene.folder.path();
    let steps: Vec<Value> = (1..3_000).map(|number| json!({ "says": format!("answer {number}") })).collect();
    fs::write(root.join("main.yaml"), Value::from(steps).to_string()).unwrap();
    let file = root.join("main.yaml").display().to_string();
    let settings = format!("models: {{ default: main, main: {{ provider: script, file: {file} }} }}\n");
    fs::write(root.join("home/config/settings.yaml"), settings).unwrap();
    let folder = scene.extension("relay");
    let grant =
        json!({ "extension": "relay", "tied_to": { "path": folder }, "give": { "interfaces": ["events"] } });
    let policy = json!({ "profile": "full-auto", "grants": [grant] });
    fs::write(root.join("home/config/policy.yaml"), policy.to_string()).unwrap();
    fs::create_dir_all(&folder).unwrap();
    scene
}

/// What the generations of the sandboxed channel have told, in order.
fn told(application: &Application) -> Vec<Told> {
    let store = application.runtime.store();
    store.flush().unwrap();
    let mut told = Vec::new();
    for stream in holdfast_bus::streams() {
        for frame in store.frames(&stream, ..).unwrap() {
            let Ok(Body::EventPublished(event)) = store.body(&frame) else { continue };
            if event.topic.as_str() == "relay" {
                told.push(read(event.payload.value()));
            }
        }
    }
    told
}

fn read(told: &Value) -> Told {
    let (by, text) = (told[0].as_u64().unwrap(), |place: usize| told[place].as_str().unwrap().to_owned());
    match told[1].as_str().unwrap() {
        "started" => Told::Started(by),
        "stopped" => Told::Stopped(by),
        _ => Told::Sent {
            by,
            user: text(2),
            text: text(3),
            delivery: text(4),
            repeat: told[5].as_bool().unwrap(),
        },
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sandboxed_channel_is_replaced_on_disk_a_hundred_times_under_traffic() {
    replaced_on_disk("", Side::Alone).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn so_is_one_whose_generations_run_side_by_side() {
    replaced_on_disk("scope: call\n", Side::BySide).await;
}

async fn replaced_on_disk(more: &str, side: Side) {
    let scene = home();
    let manifest = format!("{}grants: {{ interfaces: [events] }}\n{more}", manifest("relay", ""));
    fs::write(scene.extension("relay").join("manifest.yaml"), manifest).unwrap();
    scene.write("relay", &telltale(1));
    let application = scene.open().await;
    serves(&application, "relay", 1).await;
    let traffic = Traffic::begin(&application.runtime);
    for reload in 1..=RELOADS {
        scene.write("relay", &telltale(reload + 1));
        serves(&application, "relay", reload + 1).await;
    }
    let counts = traffic.end().await;
    assert!(counts.0.iter().all(|said| *said > 10), "there was traffic: {counts:?}");
    all_arrives(|| told(&application), side, counts).await;
    for user in USERS {
        let verdict = again(&scene, &application, &format!("relay.{user}"));
        assert!(verdict.identical, "{user}: {verdict:#?}");
    }
    application.runtime.stop("the test is over").await.unwrap();
}

/// A channel in plain Rust that polls for its users' messages, as one that holds a connection does, takes its time to send, and says of
/// every ninth message first that it could not.
#[derive(Clone)]
struct Poller {
    generation: u64,
    world: Arc<World>,
}

/// What is outside of the channel, and what was told of its generations.
#[derive(Default)]
struct World {
    /// Messages of users that were not acknowledged yet: number, user.
    waiting: Mutex<VecDeque<(usize, &'static str)>>,
    told: Mutex<Vec<Told>>,
    /// Who took messages in.
    polled: Mutex<BTreeSet<u64>>,
    /// Messages that were sent and of which nobody was told so.
    unsure: Mutex<BTreeSet<String>>,
}

impl World {
    fn tell(&self, told: Told) {
        self.told.lock().unwrap().push(told);
    }

    fn told(&self) -> Vec<Told> {
        self.told.lock().unwrap().clone()
    }
}

impl Poller {
    fn extension(generation: u64, world: &Arc<World>) -> NativeExtension {
        let poller = Self { generation, world: world.clone() };
        NativeExtension::new("relay", &format!("{generation}.0.0"))
            .lifecycle(poller.clone())
            .service(poller.clone())
            .channel(poller)
    }

    fn send(&self, user: &str, text: String, delivery: &Content) -> Later<Result<(), Fault>> {
        let (by, user, world) = (self.generation, user.to_owned(), self.world.clone());
        let delivery = delivery.value().clone();
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(3)).await;
            let (id, repeat) = (delivery["id"].as_str().unwrap().to_owned(), delivery["repeat"] == true);
            let number: usize = id.rsplit('/').next().unwrap().parse().unwrap();
            let unsure = number % 9 == 4 && world.unsure.lock().unwrap().insert(id.clone());
            world.tell(Told::Sent { by, user, text, delivery: id, repeat });
            if unsure { Err(Fault::new(Code::ToolFailed, "the line was cut")) } else { Ok(()) }
        })
    }
}

impl Lifecycle for Poller {
    fn start(&self) -> Later<Result<(), Fault>> {
        self.world.tell(Told::Started(self.generation));
        now(Ok(()))
    }

    fn stop(&self) -> Later<Result<(), Fault>> {
        self.world.tell(Told::Stopped(self.generation));
        now(Ok(()))
    }
}

impl Service for Poller {
    fn run_background(&self, host: Arc<dyn Host>) -> Later<Result<(), Fault>> {
        let (generation, world) = (self.generation, self.world.clone());
        Box::pin(async move {
            loop {
                let Some((number, user)) = world.waiting.lock().unwrap().front().copied() else {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    continue;
                };
                let said = json!({ "text": "hello", "user_id": user, "message_id": number });
                let arguments = json!({ "topic": "user.message", "payload": said });
                host.call(HostCall::named("event.publish", arguments)).await?;
                world.waiting.lock().unwrap().pop_front();
                world.polled.lock().unwrap().insert(generation);
            }
        })
    }
}

impl Channel for Poller {
    fn send_to_user(
        &self,
        user: String,
        text: String,
        delivery: Content,
        _: Arc<dyn Host>,
    ) -> Later<Result<(), Fault>> {
        self.send(&user, text, &delivery)
    }

    fn has_messages(&self) -> bool {
        true
    }

    fn send_message(&self, text: String, delivery: Content, _: Arc<dyn Host>) -> Later<Result<(), Fault>> {
        self.send("*", text, &delivery)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_channel_that_polls_is_replaced_a_hundred_times_under_traffic() {
    let world = Arc::new(World::default());
    let steps = (1..3_000).map(|number| ScriptStep::says(&format!("answer {number}")));
    let lab = Lab::build().script(steps).extension(Poller::extension(1, &world)).start().await;
    let (mut said, mut notices) = (0, 0);
    for reload in 1..=RELOADS {
        // One message of each user and one notice are under way at every reload.
        said += 1;
        for (place, user) in USERS.into_iter().enumerate() {
            world.waiting.lock().unwrap().push_back((said * USERS.len() + place, user));
        }
        notices += 1;
        let notice = json!({ "text": format!("notice {notices}") });
        lab.runtime.publish(NewEvent::new("system.user.notify", notice)).await.unwrap();
        lab.runtime.found(vec![lab.lane.add(Poller::extension(reload + 1, &world))]);
        lab.runtime.settled().await.unwrap();
        lab.clock.advance(Millis(500));
    }
    let told = || {
        lab.clock.advance(Millis(500));
        world.told()
    };
    all_arrives(told, Side::Alone, (vec![said; USERS.len()], notices)).await;
    let repeats = world.told().iter().filter(|it| matches!(it, Told::Sent { repeat: true, .. })).count();
    assert!(repeats > 10, "some messages were sent again: {repeats}");
    assert!(world.polled.lock().unwrap().len() > 10, "many generations took messages in");
    assert_eq!(lab.findings(), Vec::new());
    for user in USERS {
        assert!(lab.replay(&format!("relay.{user}")).identical);
    }
    lab.stop().await;
}

/// A tool that says which generation it is of, after something else has come about.
struct Which(Poller, Option<Arc<tokio::sync::Semaphore>>);

impl Tool for Which {
    fn spec(&self) -> ToolSpec {
        spec("which", EffectClass::Write)
    }

    fn call(&self, _: CallId, _: Content, _: TurnView, _: Arc<dyn Host>) -> Later<Result<Content, Fault>> {
        let Self(Poller { generation: by, world }, gate) = self;
        let (by, world, gate) = (*by, world.clone(), gate.clone());
        Box::pin(async move {
            world.polled.lock().unwrap().insert(by);
            if let Some(gate) = gate {
                drop(gate.acquire().await);
            }
            let sent = Told::Sent {
                by,
                user: String::new(),
                text: String::new(),
                delivery: String::new(),
                repeat: false,
            };
            world.tell(sent);
            Ok(json!({ "generation": by }).into())
        })
    }
}

/// A tool that waits until it may go on.
struct Waits(Arc<tokio::sync::Semaphore>);

impl Tool for Waits {
    fn spec(&self) -> ToolSpec {
        spec("wait", EffectClass::Write)
    }

    fn call(&self, _: CallId, _: Content, _: TurnView, _: Arc<dyn Host>) -> Later<Result<Content, Fault>> {
        let gate = self.0.clone();
        Box::pin(async move {
            drop(gate.acquire().await.map_err(|_| Fault::new(Code::ToolFailed, "closed"))?);
            Ok(json!("waited").into())
        })
    }
}

fn alone(generation: u64, world: &Arc<World>, gate: Option<&Arc<tokio::sync::Semaphore>>) -> NativeExtension {
    let poller = Poller { generation, world: world.clone() };
    NativeExtension::new("poller", &format!("{generation}.0.0"))
        .lifecycle(poller.clone())
        .tool(Which(poller, gate.cloned()))
        .exclusive()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_does_not_call_an_extension_that_was_replaced() {
    let (world, gate) = (Arc::new(World::default()), Arc::new(tokio::sync::Semaphore::new(0)));
    let calls = |name: &str| ScriptStep::calls([(name, json!({}))]);
    let lab = Lab::build()
        .script([calls("which"), calls("wait"), calls("which"), ScriptStep::says("done"), calls("which")])
        .extension(alone(1, &world, None))
        .extension(NativeExtension::new("other", "1.0.0").tool(Waits(gate.clone())))
        .start()
        .await;
    let turn = lab.begin("go");
    lab.until("the second call", |lab| lab.ledger.count("tool s1") == 2).await;
    lab.runtime.found(vec![lab.lane.add(alone(2, &world, None))]);
    lab.runtime.settled().await.unwrap();
    gate.add_permits(1);
    assert_eq!(turn.await.unwrap().answer.unwrap().to_text(), "done");
    lab.say("again").await;

    let told: Vec<String> = world.told().iter().map(|it| format!("{it:?}")).collect();
    let brief: Vec<&str> = told.iter().map(|it| it.split(", user").next().unwrap()).collect();
    assert_eq!(brief, ["Started(1)", "Sent { by: 1", "Stopped(1)", "Started(2)", "Sent { by: 2"]);
    assert!(lab.story().contains("HF-4005"), "the model is told: {}", lab.story());
    assert_eq!(lab.findings(), Vec::new());
    assert!(lab.replay("s1").identical);
    lab.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_extension_in_a_call_is_stopped_after_the_call() {
    let (world, gate) = (Arc::new(World::default()), Arc::new(tokio::sync::Semaphore::new(0)));
    let lab = Lab::build()
        .script([ScriptStep::calls([("which", json!({}))]), ScriptStep::says("done")])
        .extension(alone(1, &world, Some(&gate)))
        .start()
        .await;
    let turn = lab.begin("go");
    lab.until("the call", |_| world.polled.lock().unwrap().contains(&1)).await;
    lab.runtime.found(vec![lab.lane.add(alone(2, &world, None))]);
    lab.until("the command to stop", |lab| {
        let commands = lab.frames_of("system");
        let stops = |frame: &&Frame| {
            frame.envelope.kind == FrameKind::ExtensionCommanded
                && frame.body.as_ref().is_some_and(|body| body.to_string().contains("\"stop\""))
        };
        commands.iter().filter(stops).count() == 1
    })
    .await;
    gate.add_permits(1);
    assert_eq!(turn.await.unwrap().answer.unwrap().to_text(), "done");
    lab.runtime.settled().await.unwrap();
    // The call had ended before it was stopped.
    let told: Vec<String> = world.told().iter().map(|it| format!("{it:?}")).collect();
    let brief: Vec<&str> = told.iter().map(|it| it.split(", user").next().unwrap()).collect();
    assert_eq!(brief, ["Started(1)", "Sent { by: 1", "Stopped(1)", "Started(2)"]);
    assert!(lab.replay("s1").identical);
    lab.stop().await;
}
