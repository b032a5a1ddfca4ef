//! The table of host calls, as the runtime serves it: every call, in every lane, under every profile, with and without its grant. What a
//! lane's code is does not matter here, because every lane passes the calls of its extensions to the same host: each lane runs the same
//! extension under its own name. A new host call does not compile until it is in [`arguments`].

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use holdfast_contract::content::Content;
use holdfast_contract::digest::Digest;
use holdfast_contract::frame::Frame;
use holdfast_contract::hook::{Decision, HookInput, HookPoint, HookSpec};
use holdfast_contract::host_call::{Capability, HostCall, HostCallKind};
use holdfast_contract::ids::CallId;
use holdfast_contract::manifest::{Access, FileGrant, Grants, Profile};
use holdfast_contract::message::TurnView;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::registry::ExtensionRef;
use holdfast_contract::system_frames::FoundExtension;
use holdfast_contract::tool::{EffectClass, ToolSpec};
use holdfast_contract::wire::{Bundle, Host, Instance, Lane, Later};
use holdfast_lane_native::{Hook, NativeExtension, NativeLane, Tool};
use holdfast_model::script::ScriptStep;
use holdfast_runtime::secrets::{Chain, Digester, SecretName, SecretString, Secrets, StoreKind};
use holdfast_runtime::{FilePlaces, HttpClient, IncomingResponse, OutgoingRequest};
use holdfast_secrets::{EncryptedFile, SecretStore};
use holdfast_store::ObjectKind;
use holdfast_testkit::Lab;
use holdfast_testkit::pieces::spec;
use serde_json::{Value, json};

/// The lanes that run code.
const LANES: [&str; 4] = ["native", "wasm", "process", "python"];

/// What each call is made with. `folder` is granted.
fn arguments(kind: HostCallKind, folder: &Path) -> Value {
    use HostCallKind as K;
    let file = |name: &str| json!({ "path": folder.join(name) });
    match kind {
        K::Clock | K::ChannelList | K::CapabilitiesList | K::SetupOpen => Value::Null,
        K::NetworkConnected | K::ExtensionDoctor => json!({}),
        K::SystemRestart | K::SystemShutdown => json!({ "reason": "why not" }),
        K::Random => json!({ "bytes": 1 }),
        K::StateGet => json!({ "key": "k" }),
        K::StateSet => json!({ "key": "k", "value": 1 }),
        K::Inject => json!({ "text": "by the way" }),
        K::Ui => json!({ "confirm": { "prompt": "really?" } }),
        K::ApiCall => json!({ "extension": "nobody", "method": "m" }),
        K::ServiceGet => json!({ "key": "nobody/service" }),
        K::ServiceCall => json!({ "key": "nobody/service", "method": "m" }),
        K::EventPublish => json!({ "topic": "news.weather", "payload": 1 }),
        K::EventSubscribe | K::EventUnsubscribe => json!({ "topic": "news.sport" }),
        K::UserNotify => json!({ "text": "hello" }),
        // The grant is checked first. Where it is held, no agent runs: it would make all these calls again.
        K::AgentTask | K::AgentBackground | K::AgentInvoke => json!({ "task": 1 }),
        K::ToolInvoke | K::ModelInvoke => json!({ "agent": 1 }),
        K::AgentDescribe => json!({}),
        K::AgentList | K::ThreadList | K::ProjectList => json!({}),
        K::ThreadUpdate => json!({ "thread": "t1", "title": "Plans" }),
        K::ThreadHistory | K::ProjectRemove => json!("nothing"),
        K::ProjectUpdate => json!({ "fields": { "name": "Garden" } }),
        K::ContextEnrich => json!({ "prompt": "hello" }),
        K::ScheduleNext => json!({ "in": "1h" }),
        K::ScheduleWait => json!({ "until": 0 }),
        K::SecretReference | K::SecretGet => json!("TOKEN"),
        K::SecretKeep => json!({ "name": "OTHER", "value": "another value" }),
        K::NetworkConnect => json!({ "host": "127.0.0.1", "port": 9 }),
        K::NetworkListen => json!({ "port": 8080 }),
        K::HttpRequest => json!({ "url": "http://127.0.0.1:9/" }),
        K::FileRead | K::FileStat => file("note.txt"),
        K::FileList => json!({ "path": folder }),
        K::FileWrite => json!({ "path": folder.join("new.txt"), "content": "text" }),
        K::FileRemove => file("new.txt"),
        K::FileMakeFolder => file("made"),
        K::EnvironmentGet => json!("LANG"),
        K::ResultRead => json!({ "call": "1.1", "limit": 1 }),
        K::ToolsFind => json!({ "query": "mail" }),
        K::SetupShow => json!("nobody"),
        K::SetupApply => json!({ "extension": "nobody", "name": "x", "value": 1 }),
    }
}

/// Makes every call, and returns the outcome of each.
async fn make_all(host: &Arc<dyn Host>, folder: &Path) -> Value {
    let mut outcomes = serde_json::Map::new();
    for kind in HostCallKind::ALL {
        let answer = host.call(HostCall::of(*kind, arguments(*kind, folder))).await;
        let outcome = answer.map_or_else(|fault| fault.code.to_string(), |_| "served".to_owned());
        outcomes.insert(kind.name().to_owned(), outcome.into());
    }
    outcomes.into()
}

struct MakesAll {
    spec: ToolSpec,
    folder: Arc<Path>,
}

impl Tool for MakesAll {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    fn call(&self, _: CallId, _: Content, _: TurnView, host: Arc<dyn Host>) -> Later<Result<Content, Fault>> {
        let folder = self.folder.clone();
        Box::pin(async move { Ok(Content::new(make_all(&host, &folder).await)) })
    }
}

/// A hook that makes every call and agrees.
struct HookThatMakesAll {
    point: HookPoint,
    folder: Arc<Path>,
}

impl Hook for HookThatMakesAll {
    fn spec(&self) -> HookSpec {
        HookSpec::at(self.point)
    }

    fn decide(&self, _: HookInput, host: Arc<dyn Host>) -> Later<Result<Decision, Fault>> {
        let (folder, point) = (self.folder.clone(), self.point);
        Box::pin(async move {
            make_all(&host, &folder).await;
            Ok(point.consent().clone())
        })
    }
}

/// A lane of this name that runs native code, each extension under the digest of what it is granted.
struct NamedLane {
    name: &'static str,
    native: NativeLane,
    inside: BTreeMap<Digest, ExtensionRef>,
}

impl Lane for NamedLane {
    fn name(&self) -> &str {
        self.name
    }

    fn load(&self, extension: &ExtensionRef) -> Later<Result<Arc<dyn Instance>, Fault>> {
        match self.inside.get(&extension.digest) {
            Some(inside) => self.native.load(inside),
            None => Box::pin(std::future::ready(Err(Fault::new(Code::ExtensionUnknown, "there is none")))),
        }
    }
}

struct NoServer;

impl HttpClient for NoServer {
    fn send(&self, _: OutgoingRequest) -> Later<Result<IncomingResponse, Fault>> {
        Box::pin(std::future::ready(Ok(IncomingResponse { status: 204, ..IncomingResponse::default() })))
    }
}

fn grants(folder: &Path) -> Grants {
    let path = folder.to_str().unwrap().to_owned();
    Grants {
        network: vec!["127.0.0.1:9".to_owned()],
        files: vec![FileGrant { path, access: Access::Write }],
        secrets: vec!["TOKEN".to_owned()],
        environment: vec!["LANG".to_owned()],
        extensions: Vec::new(),
        interfaces: Capability::ALL.iter().map(|it| it.name().to_owned()).collect(),
    }
}

fn secrets(folder: &Path) -> Arc<Secrets> {
    let stores: Vec<Box<dyn SecretStore>> = vec![Box::new(EncryptedFile::new(folder, None))];
    let chain = Chain::new(stores, StoreKind::File).unwrap();
    let secrets = Secrets::new(chain, Digester::open(folder).unwrap(), Vec::new()).unwrap();
    let name = SecretName::global("TOKEN").unwrap();
    secrets.keep(&name, &SecretString::from("the value of it".to_owned())).unwrap();
    Arc::new(secrets)
}

/// A lab with the extension in every lane, made by `extension`, with and without grants.
async fn lab(
    profile: Profile,
    place: &Path,
    steps: Vec<ScriptStep>,
    extension: impl Fn(NativeExtension, &str) -> NativeExtension,
) -> Lab {
    let folder = place.join("granted");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("note.txt"), "a note").unwrap();
    let (mut bundles, mut builder) = (Vec::new(), Lab::build().script(steps).profile(profile).unattended());
    for lane in LANES {
        let (native, mut inside, mut found) = (NativeLane::default(), BTreeMap::new(), Vec::new());
        for (id, given) in
            [(format!("{lane}_with"), grants(&folder)), (format!("{lane}_without"), Grants::default())]
        {
            let made = extension(NativeExtension::new(&id, "1.0.0"), &id);
            if lane == "native" {
                let interfaces: Vec<&str> = given.interfaces.iter().map(String::as_str).collect();
                let secrets: Vec<&str> = given.secrets.iter().map(String::as_str).collect();
                builder = builder.extension(made.interfaces(&interfaces).secrets(&secrets));
                continue;
            }
            let added = native.add(made);
            let bundle = Bundle {
                lane: lane.to_owned(),
                manifest: format!("id: {id}\nname: Any\nentrypoint: any.wasm\n"),
                entrypoint: "any.wasm".to_owned(),
                files: BTreeMap::new(),
                config: Content::default(),
                grants: given.clone(),
                budgets: Default::default(),
                pinned: None,
            };
            let bytes = serde_json::to_vec(&bundle).unwrap();
            let digest = Digest::of(&bytes);
            let FoundExtension { id, version, digest: native_digest, .. } = added.clone();
            let generation = holdfast_contract::ids::Generation(1);
            inside.insert(digest, ExtensionRef { id, version, digest: native_digest, generation });
            bundles.push(bytes);
            let Grants { secrets, interfaces, .. } = given;
            found.push(FoundExtension { digest, lane: lane.to_owned(), secrets, interfaces, ..added });
        }
        if lane != "native" {
            builder = builder.lane(Arc::new(NamedLane { name: lane, native, inside }), found);
        }
    }
    let secrets = secrets(place);
    let lab = builder
        .home(|home| {
            let [data, own, user] = ["data", "home", "user"].map(|name| place.join(name));
            home.places = Some(Arc::new(FilePlaces { data, home: own, user }));
            home.http = Some(Arc::new(NoServer));
            home.variables = |name| (name == "LANG").then(|| "C".into());
            home.secrets = Some(secrets);
        })
        .start()
        .await;
    for bundle in bundles {
        lab.runtime.store().put(ObjectKind::Generation, bundle).unwrap();
    }
    lab
}

/// What an extension asked of the host, as frames record it: the call, its arguments and its outcome or the code of its fault.
fn asked(frames: &[Frame], id: &str) -> BTreeMap<String, Value> {
    let called = frames.iter().filter(|frame| frame.envelope.kind.as_str() == "host.called");
    let bodies = called.filter_map(|frame| frame.body.as_ref()).filter(|body| body["extension"] == id);
    bodies.map(|body| (body["ask"].as_str().unwrap().to_owned(), body.clone())).collect()
}

fn code(body: &Value) -> Option<&str> {
    body["outcome"]["failure"]["code"].as_str()
}

/// What each extension of a lab was told: by its id, and by the call.
type Told = BTreeMap<String, BTreeMap<String, String>>;

/// Lets every extension make every call, and checks that what was refused is recorded.
async fn told(profile: Profile) -> Told {
    let place = tempfile::tempdir().unwrap();
    let ids: Vec<String> =
        LANES.iter().flat_map(|lane| [format!("{lane}_with"), format!("{lane}_without")]).collect();
    let steps = ids.iter().map(|id| ScriptStep::calls([(id.as_str(), json!({}))]));
    let steps = steps.chain([ScriptStep::says("done")]).collect();
    let folder: Arc<Path> = place.path().join("granted").into();
    let lab = lab(profile, place.path(), steps, |it, id| {
        it.tool(MakesAll { spec: spec(id, EffectClass::Pure), folder: folder.clone() })
    })
    .await;
    lab.say("go").await;
    let frames = lab.frames();
    let returned: Vec<Value> =
        holdfast_testkit::story::bodies(&frames, holdfast_contract::body::FrameKind::ToolReturned);
    assert_eq!(returned.len(), ids.len(), "{profile:?}");
    let mut all = Told::new();
    for (id, body) in ids.iter().zip(returned) {
        let outcomes =
            body["outcome"]["result"]["json"].as_object().unwrap_or_else(|| panic!("{id}: {body}")).clone();
        let recorded = asked(&frames, id);
        for (call, outcome) in &outcomes {
            let outcome = outcome.as_str().unwrap();
            if outcome != "served" {
                let body = recorded.get(call).unwrap_or_else(|| panic!("{id}: `{call}` is not recorded"));
                assert_eq!(code(body), Some(outcome), "{id}: {call}");
            }
        }
        let text = |(call, outcome): (&String, &Value)| (call.clone(), outcome.as_str().unwrap().to_owned());
        all.insert(id.clone(), outcomes.iter().map(text).collect());
    }
    let asks = frames.iter().filter(|frame| frame.envelope.kind.as_str() == "ui.requested");
    let hosts =
        asks.filter(|frame| frame.body.as_ref().unwrap().to_string().contains("wants to reach")).count();
    let expected = if profile == Profile::Safe { 0 } else { 2 * (LANES.len() - 1) };
    assert_eq!(hosts, expected, "without a grant the user is asked about a host, except under `safe`");
    all
}

/// Whether what a call names is granted one by one: a host, a folder, a variable.
fn has_grants_by_name(kind: HostCallKind) -> bool {
    use holdfast_contract::host_call::GrantRule as G;
    matches!(kind.capability().grant(), G::EachHost | G::EachFolder | G::EachVariable)
}

/// Compares all of it with the golden table.
pub async fn compare() {
    let mut rows: BTreeMap<(usize, &str), BTreeMap<String, Vec<&str>>> = BTreeMap::new();
    for profile in Profile::ALL {
        let told = told(*profile).await;
        let name = match profile {
            Profile::Safe => "safe",
            Profile::Standard => "standard",
            Profile::FullAuto => "full-auto",
            Profile::Trusted => "trusted",
        };
        for (place, kind) in HostCallKind::ALL.iter().enumerate() {
            for granted in ["with", "without"] {
                let of = |lane: &str| told[&format!("{lane}_{granted}")][kind.name()].as_str();
                let outcomes = LANES.map(|lane| format!("{lane} {}", of(lane)));
                if granted == "with" {
                    // Native code is the program's own, and has no grants for hosts, folders and variables.
                    let [first, .., last] = LANES;
                    let first = if has_grants_by_name(*kind) { "wasm" } else { first };
                    assert!(
                        LANES
                            .iter()
                            .filter(|lane| **lane != "native" || first == "native")
                            .all(|lane| of(lane) == of(last)),
                        "{kind}: {outcomes:?}"
                    );
                }
                for lane in LANES {
                    let (with, without) = (&told[&format!("{lane}_with")][kind.name()], of(lane));
                    let refused = [Code::ComponentImport, Code::ToolDenied].map(|code| code.to_string());
                    assert!(
                        without == with || refused.iter().any(|code| code == without),
                        "{kind}: {lane} {without}"
                    );
                }
                rows.entry((place, granted)).or_default().entry(outcomes.join(", ")).or_default().push(name);
            }
        }
    }
    let mut golden = String::new();
    for ((place, granted), outcomes) in rows {
        for (outcome, profiles) in outcomes {
            let profiles = if profiles.len() == Profile::ALL.len() {
                "every profile".to_owned()
            } else {
                profiles.join(" ")
            };
            writeln!(golden, "{:<18} {granted:<8} {profiles:<19} {outcome}", HostCallKind::ALL[place].name())
                .unwrap();
        }
    }
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../../golden/conformance");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!("host_call_table", golden));
}

/// A hook in every lane makes every call: what has side effects or does I/O is refused and recorded, and the turn goes on.
pub async fn sweep_hooks() {
    for point in [HookPoint::ToolGate, HookPoint::Context, HookPoint::GuardInput] {
        let place = tempfile::tempdir().unwrap();
        let folder: Arc<Path> = place.path().join("granted").into();
        let steps = vec![ScriptStep::calls([("native_with", json!({}))]), ScriptStep::says("done")];
        let lab = lab(Profile::FullAuto, place.path(), steps, |it, id| {
            let echo = holdfast_testkit::pieces::tool(id, EffectClass::Pure, |_| json!("echo"));
            it.tool(echo).hook(HookThatMakesAll { point, folder: folder.clone() })
        })
        .await;
        let report = lab.say("go").await;
        assert_eq!(report.answer.as_ref().map(Content::to_text).as_deref(), Some("done"), "{point:?}");
        let frames = lab.frames();
        for lane in LANES {
            for granted in ["with", "without"] {
                let recorded = asked(&frames, &format!("{lane}_{granted}"));
                for kind in HostCallKind::ALL {
                    let body = recorded.get(kind.name());
                    let refused = body.and_then(code) == Some(&*Code::HookSideEffect.to_string());
                    assert_eq!(
                        refused,
                        !kind.is_for_hooks(point),
                        "{lane} {granted}: {kind} at {point:?}: {body:?}"
                    );
                }
            }
        }
        assert!(
            !place.path().join("granted/new.txt").exists() && !place.path().join("granted/made").exists()
        );
    }
}

/// How a topic may be used, in the order: with every grant; and without any, native code, Python, a program, a component. `+` is not
/// refused, `G` needs a grant (`HF-4103`), `R` is refused whatever is granted (`HF-8010`).
const TOPICS: [(&str, &str, &str); 9] = [
    // The topic; publishing; subscribing.
    ("ID.said", "+ +++G", "+ +++G"),
    ("somebody.said", "+ +++G", "+ +++G"),
    ("user.message", "R RRRG", "+ ++GG"),
    ("system.user.notify", "+ +++G", "+ GGGG"),
    ("system.agent.task", "+ ++GG", "+ GGGG"),
    ("system.dead_letter", "R RRRG", "+ GGGG"),
    ("channel.out.chat", "R RRRG", "+ ++GG"),
    ("system.*", "R RRRG", "R RRRG"),
    (">", "R RRRG", "R RRRG"),
];

/// A tool that publishes on every topic and subscribes to it.
struct UsesTopics(ToolSpec);

impl Tool for UsesTopics {
    fn spec(&self) -> ToolSpec {
        self.0.clone()
    }

    fn call(&self, _: CallId, _: Content, _: TurnView, host: Arc<dyn Host>) -> Later<Result<Content, Fault>> {
        let id = self.0.name.as_str().to_owned();
        Box::pin(async move {
            let mut outcomes = serde_json::Map::new();
            for (topic, ..) in TOPICS {
                let named = topic.replace("ID", &id);
                // What is not refused has a payload that no subscriber of the program takes.
                let publish = json!({ "topic": named, "payload": 1 });
                let subscribe = json!({ "topic": named });
                let mut letters = Vec::new();
                for (kind, arguments) in
                    [(HostCallKind::EventPublish, publish), (HostCallKind::EventSubscribe, subscribe)]
                {
                    let answer = host.call(HostCall::of(kind, arguments)).await;
                    letters.push(match answer.map_err(|fault| (fault.code, fault.message)) {
                        Err((Code::ComponentImport, _)) => "G",
                        Err((Code::EventRefused, why)) if why.contains("may not") => "R",
                        _ => "+",
                    });
                }
                outcomes.insert(topic.to_owned(), letters.into());
            }
            Ok(Content::new(outcomes.into()))
        })
    }
}

/// Every extension may use the same topics in every lane, with the same grants; by default a program has fewer than Python, and a
/// component has none.
pub async fn compare_topics() {
    let place = tempfile::tempdir().unwrap();
    let ids: Vec<String> =
        LANES.iter().flat_map(|lane| [format!("{lane}_with"), format!("{lane}_without")]).collect();
    let steps = ids.iter().map(|id| ScriptStep::calls([(id.as_str(), json!({}))]));
    let steps = steps.chain([ScriptStep::says("done")]).collect();
    let lab = lab(Profile::Standard, place.path(), steps, |it, id| {
        it.tool(UsesTopics(spec(id, EffectClass::Pure)))
    })
    .await;
    lab.say("go").await;
    let returned: Vec<Value> =
        holdfast_testkit::story::bodies(&lab.frames(), holdfast_contract::body::FrameKind::ToolReturned);
    let told: BTreeMap<&str, &Value> = ids
        .iter()
        .map(String::as_str)
        .zip(returned.iter().map(|body| &body["outcome"]["result"]["json"]))
        .collect();
    for (topic, publishing, subscribing) in TOPICS {
        for (place, expected) in [publishing, subscribing].into_iter().enumerate() {
            let letter = |id: String| told[id.as_str()][topic][place].as_str().unwrap().to_owned();
            let with: Vec<String> = LANES.iter().map(|lane| letter(format!("{lane}_with"))).collect();
            assert!(with.iter().all(|letter| *letter == with[0]), "{topic}: {LANES:?} {with:?}");
            let without =
                ["native", "python", "process", "wasm"].map(|lane| letter(format!("{lane}_without")));
            let what = ["publishing on", "subscribing to"][place];
            assert_eq!(format!("{} {}", with[0], without.concat()), expected, "{what} `{topic}`");
        }
    }
    lab.stop().await;
}
