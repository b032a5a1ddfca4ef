//! One extension in eight forms, which has an agent do something and follows it meanwhile: each is told the same and leaves the same
//! frames, and its session replays without the agent. The sources are in `tests/conformance/follower/`.

use std::path::Path;
use std::sync::{Arc, Mutex};

use holdfast_contract::body::FrameKind;
use holdfast_contract::content::Content;
use holdfast_contract::host_call::{HostCall, HostCallKind};
use holdfast_contract::ids::CallId;
use holdfast_contract::manifest::Grants;
use holdfast_contract::message::TurnView;
use holdfast_contract::problem::Fault;
use holdfast_contract::sandbox::SandboxOptions;
use holdfast_contract::system_frames::FoundExtension;
use holdfast_contract::tool::{EffectClass, ToolSpec};
use holdfast_contract::wire::{CallUpdate, Host, Later, UpdateSink};
use holdfast_lane_native::{NativeExtension, Tool};
use holdfast_lane_plugin::{PluginLane, PluginPlaces};
use holdfast_lane_process::{Places, ProcessLane};
use holdfast_model::script::ScriptStep;
use holdfast_testkit::pieces::{agent, spec, tool};
use holdfast_testkit::story::bodies;
use holdfast_testkit::wasm::{MapVault, lane};
use holdfast_testkit::{Lab, LabBuilder, Script};
use serde_json::{Value, json};

/// The forms that are components.
const COMPONENTS: [&str; 4] = ["c", "rust", "javascript", "python"];

const HEAD: &str = "id: follower\nname: Follower\nversion: 1.0.0\n";

/// What a form needs while it runs.
struct Form {
    name: &'static str,
    vault: Arc<MapVault>,
    folder: tempfile::TempDir,
}

impl Form {
    fn new(name: &'static str) -> Self {
        Self { name, vault: Arc::default(), folder: tempfile::tempdir().unwrap() }
    }

    fn is_component(&self) -> bool {
        COMPONENTS.contains(&self.name)
    }

    fn grants() -> Grants {
        Grants { interfaces: vec!["agents".to_owned()], ..Grants::default() }
    }

    fn main(&self) -> Vec<u8> {
        std::fs::read(sources().join(self.name).join("main.py")).unwrap()
    }

    fn install(&self, lab: LabBuilder) -> LabBuilder {
        let places = Places::within(self.folder.path());
        match self.name {
            "native" => {
                let follows = ToolSpec { effects: EffectClass::Write, ..spec("follow", EffectClass::Write) };
                lab.extension(NativeExtension::new("follower", "1.0.0").tool(Follows(follows)))
            }
            "class" => {
                let files = [("main.py", self.main())];
                let manifest = format!("{HEAD}entrypoint: main:Follower\n");
                let found = self.vault.add_python(&manifest, "main:Follower", files);
                lab.lane(Arc::new(ProcessLane::python(self.vault.clone(), places)), [found])
            }
            "plugin" => {
                let library = super::plugins::in_rust("tests/conformance/follower/plugin", "follower_plugin");
                let found = self.vault.add_plugin(
                    &format!("{HEAD}entrypoint: follower.so\n"),
                    "follower.so",
                    library,
                );
                let places = PluginPlaces::within(self.folder.path());
                // The owner's policy gives it what the lane does not have by default.
                let found = FoundExtension { interfaces: Self::grants().interfaces, ..found };
                lab.lane(Arc::new(PluginLane::new(self.vault.clone(), places, Arc::new(|| true))), [found])
            }
            "process" => {
                let (files, grants) = ([("main.py", self.main())], Self::grants());
                let manifest = format!("{HEAD}command: [python3, main.py]\n");
                let found = self.vault.add_files_granted(&manifest, "process", files, grants);
                lab.lane(Arc::new(ProcessLane::new(self.vault.clone(), places)), [found])
            }
            _ => {
                let manifest = format!("{HEAD}entrypoint: follower.wasm\n");
                let component = self.build(&manifest);
                let options = SandboxOptions::default();
                let found = self.vault.add_granted(&manifest, component, &options, Self::grants());
                lab.lane(lane(&self.vault), [found])
            }
        }
    }

    fn build(&self, manifest: &str) -> Vec<u8> {
        let folder = self.folder.path().join("source");
        super::courier::copy(&sources().join(self.name), &folder);
        let manifest = format!("{manifest}grants: {}\n", json!(Self::grants()));
        std::fs::write(folder.join("manifest.yaml"), manifest).unwrap();
        if self.name == "rust" {
            super::courier::point_to_the_sdk(&folder);
        }
        let built = holdfast_authoring::build(&folder, &mut |_| {}).unwrap_or_else(|problem| {
            panic!("{problem}\n  the toolchains of the tests are installed by ./scripts/setup guests")
        });
        std::fs::read(built.component).unwrap()
    }

    /// A session in which a model has the extension follow the agent `poet`, which does this.
    async fn run(&self, arguments: Value, poet: Vec<ScriptStep>) -> Lab {
        let hum = tool("hum", EffectClass::Pure, |_| json!("hm"));
        let office = NativeExtension::new("office", "1.0.0").agent(agent("poet", "verse")).tool(hum);
        let lab = Lab::build()
            .script([ScriptStep::calls([("follow", arguments)]), ScriptStep::says("done")])
            .model("verse", Script::new(poet))
            .extension(office);
        let lab = self.install(lab).start().await;
        lab.runtime.settled().await.unwrap();
        lab.say("go").await;
        lab
    }
}

fn sources() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("conformance/follower")
}

/// The follower in the native lane.
struct Follows(ToolSpec);

#[derive(Default)]
struct Told(Mutex<Vec<String>>);

impl UpdateSink for Told {
    fn send(&self, update: CallUpdate) -> Later<()> {
        self.0.lock().unwrap().push(match update {
            CallUpdate::Text(text) => text.to_text(),
            CallUpdate::ToolCall { tool, arguments } => format!("{tool}{}", arguments.json()),
        });
        Box::pin(std::future::ready(()))
    }
}

impl Tool for Follows {
    fn spec(&self) -> ToolSpec {
        self.0.clone()
    }

    fn call(
        &self,
        _: CallId,
        arguments: Content,
        _: TurnView,
        host: Arc<dyn Host>,
    ) -> Later<Result<Content, Fault>> {
        Box::pin(async move {
            let told = Arc::new(Told::default());
            let call = HostCall::of(HostCallKind::AgentInvoke, arguments);
            let answer = host.call_streamed(call, None, told.clone()).await?;
            host.call(HostCall::Clock).await?;
            let told = told.0.lock().unwrap().join(" ");
            Ok(Content::text(format!("{told} = {}", answer.to_text())))
        })
    }
}

fn sings() -> Vec<ScriptStep> {
    vec![ScriptStep::calls([("hum", json!({ "n": 1 }))]), ScriptStep::says("sung")]
}

/// What is recorded of the tool's work.
fn story(lab: &Lab) -> Vec<(String, Value)> {
    let kept = ["tool.called", "host.called", "clock.read", "tool.returned"];
    let frames = lab.frames().into_iter().filter(|frame| kept.contains(&frame.envelope.kind.as_str()));
    frames.map(|frame| (frame.envelope.kind.as_str().to_owned(), frame.body.unwrap_or_default())).collect()
}

fn check_replay(lab: &Lab, form: &Form) {
    assert!(lab.findings().is_empty(), "{}: {:?}", form.name, lab.findings());
    let verdict = lab.replay("s1");
    assert!(verdict.identical, "{}: {verdict:#?}", form.name);
    let is_mocked = verdict.mocked.iter().any(|id| id.as_str() == "follower");
    assert!(!(form.is_component() && is_mocked), "{}: a component runs again", form.name);
}

fn returned(lab: &Lab) -> Value {
    bodies(&lab.frames(), FrameKind::ToolReturned)[0]["outcome"]["result"]["json"].clone()
}

/// Every form is told the same and leaves the same frames.
pub async fn compare() {
    let mut first: Option<Vec<(String, Value)>> = None;
    for name in ["native", "process", "class", "plugin"].into_iter().chain(COMPONENTS) {
        let form = Form::new(name);
        let lab = form.run(json!({ "agent": "poet", "task": "sing" }), sings()).await;
        assert_eq!(returned(&lab), json!("hum{\"n\":1} sung = sung"), "{name}");
        let called = bodies(&lab.frames(), FrameKind::HostCalled).remove(0);
        let told = json!([{ "tool_call": { "tool": "hum", "arguments": { "json": { "n": 1 } } } }, { "text": { "json": "sung" } }]);
        assert_eq!(called["streamed"], json!({ "begun": 1, "updates": told }), "{name}: {called}");
        check_replay(&lab, &form);
        let story = story(&lab);
        assert!(first.as_ref().is_none_or(|first| *first == story), "{name}: {story:#?} against {first:#?}");
        first.get_or_insert(story);
        lab.stop().await;
    }
}

/// Each kind of component cancels the agent by dropping its handle, and that is recorded before its call ends.
pub async fn turns_away() {
    for name in COMPONENTS {
        let form = Form::new(name);
        let arguments = json!({ "agent": "poet", "task": "sing", "first": true });
        let lab = form.run(arguments, vec![ScriptStep::Stalls("la".to_owned())]).await;
        assert_eq!(returned(&lab), json!("la"), "{name}");
        let kinds: Vec<String> = story(&lab).into_iter().map(|(kind, _)| kind).collect();
        assert_eq!(kinds, ["tool.called", "host.called", "tool.returned"], "{name}");
        let called = bodies(&lab.frames(), FrameKind::HostCalled).remove(0);
        assert!(
            called["outcome"]["failure"]["message"].to_string().contains("stopped waiting"),
            "{name}: {called}"
        );
        assert_eq!(called["streamed"]["updates"], json!([{ "text": { "json": "la" } }]), "{name}");
        check_replay(&lab, &form);
        lab.stop().await;
    }
}

/// A component has a bounded number of handles, and what it leaves behind is cancelled and recorded with its call. A replay tells apart
/// what was under way at once, and what was asked meanwhile.
pub async fn as_many_as_there_may_be() {
    let form = Form::new("c");
    let task = "as many as there may be";
    let lab =
        form.run(json!({ "agent": "poet", "task": task }), vec![ScriptStep::Stalls("la".to_owned())]).await;
    assert_eq!(returned(&lab), json!("8: 8 invocations are open already; drop one first"));
    let called = bodies(&lab.frames(), FrameKind::HostCalled);
    let mut begun: Vec<u64> = called.iter().filter_map(|body| body["streamed"]["begun"].as_u64()).collect();
    begun.sort_unstable();
    assert_eq!(begun, (1..=8).collect::<Vec<_>>());
    check_replay(&lab, &form);
    lab.stop().await;

    let form = Form::new("c");
    let lab = form.run(json!({ "agent": "poet", "task": "while the clock is read" }), sings()).await;
    assert_eq!(returned(&lab), json!("hum{\"n\":1} sung = sung"));
    let kinds: Vec<String> = story(&lab).into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(kinds, ["tool.called", "clock.read", "host.called", "clock.read", "tool.returned"]);
    check_replay(&lab, &form);
    lab.stop().await;
}
