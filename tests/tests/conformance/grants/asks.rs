//! Has the conformance extension of a lane make host calls, and reads what is recorded of each. The model calls one tool, whose
//! directive asks for all of them in turn.

use std::path::Path;
use std::sync::Arc;

use holdfast_contract::content::Content;
use holdfast_contract::frame::Frame;
use holdfast_contract::host_call::HostCallKind;
use holdfast_contract::ids::ExtensionId;
use holdfast_contract::manifest::{Access, FileGrant, Grants, Profile};
use holdfast_contract::problem::{Fault, Problem};
use holdfast_contract::tool::EffectClass;
use holdfast_contract::wire::{Host, Later};
use holdfast_lane_native::{Api, Channel, NativeExtension, now};
use holdfast_model::script::ScriptStep;
use holdfast_policy::Grant;
use holdfast_runtime::secrets::{Chain, Digester, SecretName, SecretString, Secrets, StoreKind};
use holdfast_runtime::{
    Configuration, FilePlaces, HttpClient, IncomingResponse, OutgoingRequest, ReportChanges,
};
use holdfast_secrets::{EncryptedFile, SecretStore};
use holdfast_store::ObjectKind;
use holdfast_testkit::pieces::{agent, tool};
use holdfast_testkit::{Lab, LabBuilder, Script};
use serde_json::{Map, Value, json};

use crate::conformance::lanes::{ConformingLane, MANIFEST, every_interface};

/// A host call and its arguments, as every lane sends them.
pub type Asked = (HostCallKind, Value);

/// What was recorded of one call.
#[derive(Clone, Debug, PartialEq)]
pub struct Made {
    /// `served`, or the code of the failure.
    pub outcome: String,
    /// Whether a person was asked first.
    pub is_asked: bool,
    /// Why it failed.
    pub why: String,
    /// The kinds and bodies of its frames, in their order.
    pub frames: Vec<(String, Value)>,
}

/// A lane's extension under a profile and with grants, and the folder that it may be granted.
pub struct Grounds<'a> {
    pub lane: &'a dyn ConformingLane,
    pub profile: Profile,
    pub is_granted: bool,
    pub place: &'a Path,
}

/// The folder that can be granted.
pub fn folder(place: &Path) -> std::path::PathBuf {
    place.join("granted")
}

/// Everything that can be granted.
pub fn everything(place: &Path) -> Grants {
    let path = folder(place).to_str().unwrap().to_owned();
    Grants {
        network: vec!["127.0.0.1:9".to_owned(), "127.0.0.1:10".to_owned()],
        files: vec![FileGrant { path, access: Access::Write }],
        secrets: vec!["TOKEN".to_owned(), "KEY".to_owned()],
        environment: vec!["LANG".to_owned()],
        extensions: Vec::new(),
        interfaces: every_interface(),
        // A port can be listened on by one extension of a machine at a time.
        listen: Vec::new(),
    }
}

/// Answers whatever is asked.
struct Desk;

impl Api for Desk {
    fn call(&self, _: String, _: Content, _: Arc<dyn Host>) -> Later<Result<Content, Fault>> {
        now(Ok(Content::new(json!({ "is": "open" }))))
    }
}

/// Takes what the user is to be told.
impl Channel for Desk {
    fn send_to_user(&self, _: String, _: String, _: Content, _: Arc<dyn Host>) -> Later<Result<(), Fault>> {
        now(Ok(()))
    }

    fn has_messages(&self) -> bool {
        true
    }

    fn send_message(&self, _: String, _: Content, _: Arc<dyn Host>) -> Later<Result<(), Fault>> {
        now(Ok(()))
    }
}

/// Settings that are written nowhere.
struct NoSettings;

impl Configuration for NoSettings {
    fn of(&self, _: &ExtensionId) -> Map<String, Value> {
        Map::new()
    }

    fn set(&self, _: &ExtensionId, _: &str, _: &Value, _: &ReportChanges<'_>) -> Result<(), Problem> {
        Ok(())
    }

    fn grant(&self, _: &Grant) -> Result<(), Problem> {
        Ok(())
    }
}

struct NoServer;

impl HttpClient for NoServer {
    fn send(&self, _: OutgoingRequest) -> Later<Result<IncomingResponse, Fault>> {
        now(Ok(IncomingResponse { status: 204, ..IncomingResponse::default() }))
    }
}

fn secrets(folder: &Path) -> Arc<Secrets> {
    let stores: Vec<Box<dyn SecretStore>> = vec![Box::new(EncryptedFile::new(folder, None))];
    let chain = Chain::new(stores, StoreKind::File).unwrap();
    let secrets = Secrets::new(chain, Digester::open(folder).unwrap(), Vec::new()).unwrap();
    for name in ["TOKEN", "KEY"] {
        let value = SecretString::from(format!("the value of {name}"));
        secrets.keep(&SecretName::global(name).unwrap(), &value).unwrap();
    }
    Arc::new(secrets)
}

/// A lab with an extension to reach, and with nobody there to answer. What is installed gives its bundle, where it has one.
pub async fn lab(
    place: &Path,
    profile: Profile,
    steps: Vec<ScriptStep>,
    install: impl FnOnce(LabBuilder) -> (LabBuilder, Option<Vec<u8>>),
) -> Lab {
    std::fs::create_dir_all(folder(place)).unwrap();
    std::fs::write(folder(place).join("note.txt"), "a note").unwrap();
    let [data, own, user] = ["data", "home", "user"].map(|name| place.join(name));
    for folder in [&data, &own, &user] {
        std::fs::create_dir_all(folder).unwrap();
    }
    let secrets = secrets(place);
    let hum = tool("hum", EffectClass::Pure, |_| json!("hm"));
    let office = NativeExtension::new("office", "1.0.0").agent(agent("idle", "other")).tool(hum);
    let builder = Lab::build()
        .script(steps)
        .model("other", Script::new([]))
        .profile(profile)
        .unattended()
        .extension(office.api(Desk).channel(Desk))
        .home(|home| {
            home.places = Some(Arc::new(FilePlaces { data, home: own, user }));
            home.http = Some(Arc::new(NoServer));
            home.variables = |name| (name == "LANG").then(|| "C".into());
            home.secrets = Some(secrets);
            home.configuration = Some(Arc::new(NoSettings));
        });
    let (builder, bundle) = install(builder);
    let lab = builder.start().await;
    if let Some(bundle) = bundle {
        lab.runtime.store().put(ObjectKind::Generation, bundle).unwrap();
    }
    lab
}

impl Grounds<'_> {
    /// A lab with the extension.
    pub async fn lab(&self, steps: Vec<ScriptStep>, change: impl FnOnce(LabBuilder) -> LabBuilder) -> Lab {
        let grants = if self.is_granted { everything(self.place) } else { Grants::default() };
        let asks = json!(everything(self.place));
        let reaches = "depends_on: [office]\nagent: { uses_tools: [office] }\n";
        let manifest = format!("{MANIFEST}{reaches}grants: {asks}\n");
        lab(self.place, self.profile, steps, |lab| {
            let (lab, installed) = self.lane.install(change(lab), &manifest, grants);
            (lab, installed.bundle)
        })
        .await
    }

    /// Has the extension's tool make these calls, one after the other.
    pub async fn make(&self, calls: &[Asked]) -> Vec<Made> {
        let told = json!({ "do": format!("tool {}text done", stages(calls)) });
        let lab =
            self.lab(vec![ScriptStep::calls([("act", told)]), ScriptStep::says("done")], |lab| lab).await;
        make(lab, calls, &self.to_string()).await
    }
}

/// Lets the model's tool make these calls, and reads what is recorded of each.
pub async fn make(lab: Lab, calls: &[Asked], who: &str) -> Vec<Made> {
    // Somebody owns the process, so that a restart is served.
    let _owner = lab.runtime.shutdown_requests();
    lab.say("go").await;
    let made = read(&lab.frames(), calls, who);
    lab.stop().await;
    made
}

impl std::fmt::Display for Grounds<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let grant = if self.is_granted { "with" } else { "without" };
        write!(f, "{} under {:?} {grant} the grants", self.lane.name(), self.profile)
    }
}

/// The stages of a directive that make these calls.
pub fn stages(calls: &[Asked]) -> String {
    calls.iter().map(|(kind, arguments)| format!("host {kind} {arguments} | ")).collect()
}

/// The frame with which the record of a call ends.
fn ends(frame: &Frame, kind: HostCallKind) -> bool {
    use HostCallKind as K;
    let body = frame.body.as_ref();
    let own = match kind {
        K::Clock => "clock.read",
        K::Random => "random.drawn",
        K::StateSet => "state.written",
        K::Inject => "message.injected",
        K::Ui => "ui.answered",
        K::SecretGet => "secret.used",
        _ => "",
    };
    let found = frame.envelope.kind.as_str();
    found == own || found == "host.called" && body.is_some_and(|body| body["ask"] == kind.name())
}

/// What the frames of the tool's run say of each call.
fn read(frames: &[Frame], calls: &[Asked], who: &str) -> Vec<Made> {
    let is = |kind: &'static str| move |frame: &Frame| frame.envelope.kind.as_str() == kind;
    let dispatched = frames.iter().position(is("tool.dispatched"));
    let mut left = frames[dispatched.unwrap_or_else(|| panic!("{who}: {frames:#?}")) + 1..].iter();
    let mut made = Vec::new();
    for (kind, _) in calls {
        let mut own = Vec::new();
        loop {
            let frame = left.next().unwrap_or_else(|| panic!("{who}: `{kind}` is not recorded: {own:#?}"));
            assert!(!is("tool.returned")(frame), "{who}: `{kind}` is not recorded: {frame:#?}");
            let mut body = frame.body.clone().unwrap_or_default();
            // What an event is numbered with depends on what else is published meanwhile.
            if let Some(answer) = body.pointer_mut("/outcome/result/json")
                && answer.as_str().is_some_and(|answer| answer.starts_with("bus."))
            {
                answer.take();
            }
            own.push((frame.envelope.kind.as_str().to_owned(), body));
            if ends(frame, *kind) {
                break;
            }
        }
        let failure = &own[own.len() - 1].1["outcome"]["failure"];
        let text = |value: &Value| value.as_str().map(str::to_owned);
        made.push(Made {
            outcome: text(&failure["code"]).unwrap_or_else(|| "served".to_owned()),
            is_asked: *kind != HostCallKind::Ui && own.iter().any(|(kind, _)| kind == "ui.requested"),
            why: text(&failure["message"]).unwrap_or_default(),
            frames: own,
        });
    }
    made
}
