//! What the SDKs offer. The caller, in each language, makes every host call that has no case elsewhere: with the same arguments as native
//! code, from a tool, where it is served, and from a gate, where it is refused as in every lane. The roles are those that only an SDK
//! with them can export. The sources are in `tests/conformance/caller/` and `tests/conformance/roles/`.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use holdfast_contract::body::FrameKind;
use holdfast_contract::content::Content;
use holdfast_contract::hook::{Decision, HookInput, HookPoint, HookSpec};
use holdfast_contract::host_call::{Capability, HostCall, HostCallKind};
use holdfast_contract::ids::{CallId, Generation};
use holdfast_contract::manifest::Grants;
use holdfast_contract::message::TurnView;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::registry::ExtensionRef;
use holdfast_contract::sandbox::SandboxOptions;
use holdfast_contract::system_frames::{FoundExtension, LifecycleCommand};
use holdfast_contract::tool::{EffectClass, ToolSpec};
use holdfast_contract::wire::{Call, Host, Later, Reply};
use holdfast_lane_native::{Hook, NativeExtension, Tool};
use holdfast_model::script::ScriptStep;
use holdfast_testkit::pieces::{agent, spec, tool};
use holdfast_testkit::story::bodies;
use holdfast_testkit::wasm::{MapVault, lane};
use holdfast_testkit::{Lab, Script};
use serde_json::{Value, json};

/// The calls of the caller, in its order.
fn calls() -> Vec<(HostCallKind, Value)> {
    use HostCallKind as K;
    vec![
        (K::SecretKeep, json!({ "name": "TOKEN", "value": "hunter2" })),
        (K::AgentList, json!({})),
        (K::ToolInvoke, json!({ "tool": "hum", "arguments": { "n": 1 } })),
        (K::ModelInvoke, json!({ "prompt": "a line", "instructions": "be brief", "agent": "poet" })),
        (K::AgentDescribe, json!({ "agent": "poet" })),
        (K::ThreadList, json!({ "thread": null, "channel": "chat", "project": null, "archived": true })),
        (K::ThreadUpdate, json!({ "thread": "t1", "title": "Plans" })),
        (K::ThreadHistory, json!("t1")),
        (K::ProjectList, json!({})),
        (K::ProjectUpdate, json!({ "project": "garden", "fields": { "name": "Garden" } })),
        (K::ProjectRemove, json!("garden")),
        (K::ResultRead, json!({ "call": "1.1", "offset": 0, "limit": 10 })),
        (K::ToolsFind, json!({ "query": "hum", "limit": 3 })),
        (K::CapabilitiesList, json!({})),
        (K::SetupOpen, json!({})),
        (K::SetupShow, json!("nobody")),
        (K::SetupApply, json!({ "extension": "nobody", "name": "x", "value": 1 })),
        (K::ExtensionDoctor, json!({ "extension": "nobody" })),
    ]
}

async fn call_all(host: &Arc<dyn Host>) {
    for (kind, arguments) in calls() {
        // What it is answered is in the log.
        drop(host.call(HostCall::of(kind, arguments)).await);
    }
}

/// The caller in the native lane.
struct Caller;

impl Tool for Caller {
    fn spec(&self) -> ToolSpec {
        spec("call_all", EffectClass::Write)
    }

    fn call(&self, _: CallId, _: Content, _: TurnView, host: Arc<dyn Host>) -> Later<Result<Content, Fault>> {
        Box::pin(async move {
            call_all(&host).await;
            Ok(Content::text("made"))
        })
    }
}

impl Hook for Caller {
    fn spec(&self) -> HookSpec {
        HookSpec::at(HookPoint::ToolGate)
    }

    fn decide(&self, input: HookInput, host: Arc<dyn Host>) -> Later<Result<Decision, Fault>> {
        Box::pin(async move {
            if input.call.is_some_and(|call| call.tool.as_str() == "probe") {
                call_all(&host).await;
            }
            Ok(Decision::Allow)
        })
    }
}

/// Everything that can be granted by name.
fn grants() -> Grants {
    Grants {
        network: vec!["127.0.0.1:9".to_owned()],
        secrets: vec!["TOKEN".to_owned()],
        environment: vec!["LANG".to_owned()],
        interfaces: Capability::ALL.iter().map(|it| it.name().to_owned()).collect(),
        ..Grants::default()
    }
}

fn head(sources: &str) -> String {
    format!("id: {sources}\nname: Any\nversion: 1.0.0\nentrypoint: {sources}.wasm\n")
}

/// A component that is built from a folder of `tests/conformance/`.
fn component(sources: &str, language: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("source");
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("conformance").join(sources).join(language);
    super::courier::copy(&from, &place);
    std::fs::write(place.join("manifest.yaml"), head(sources)).unwrap();
    if language == "rust" {
        super::courier::point_to_the_sdk(&place);
    }
    let built = holdfast_authoring::build(&place, &mut |_| {}).unwrap_or_else(|problem| {
        panic!("{language}: {problem}\n  the toolchains of the tests are installed by ./scripts/setup guests")
    });
    std::fs::read(built.component).unwrap()
}

/// It in a vault, with these grants.
pub fn kept(vault: &MapVault, sources: &str, component: &[u8], grants: Grants) -> FoundExtension {
    vault.add_granted(&head(sources), component.to_vec(), &SandboxOptions::default(), grants)
}

/// One host call as it is recorded: what was asked, with what, and the code of its failure.
type Made = (String, Value, Option<String>);

/// A session in which a model calls these tools, one after the other, with the caller as this component, or else in native code.
async fn session(language: &str, component: Option<&[u8]>, tools: &[&str]) -> Lab {
    let vault = Arc::new(MapVault::default());
    let quiet = |name: &'static str| tool(name, EffectClass::Pure, |_| json!("hm"));
    let steps = tools.iter().map(|tool| ScriptStep::calls([(*tool, json!({}))]));
    let office = NativeExtension::new("office", "1.0.0").agent(agent("poet", "verse"));
    let office = office.tool(quiet("hum")).tool(quiet("probe")).tool(quiet("reach"));
    let builder = Lab::build()
        .script(steps.chain([ScriptStep::says("done")]))
        .model("verse", Script::new([ScriptStep::says("sung")]))
        .extension(office);
    let builder = match component {
        None => {
            let interfaces: Vec<&str> = Capability::ALL.iter().map(|it| it.name()).collect();
            let caller = NativeExtension::new("caller", "1.0.0").interfaces(&interfaces);
            builder.extension(caller.tool(Caller).hook(Caller))
        }
        Some(component) => {
            let found = kept(&vault, "caller", component, grants());
            builder.lane(lane(&vault), [found])
        }
    };
    let lab = builder.start().await;
    lab.runtime.settled().await.unwrap();
    let report = lab.say("go").await;
    assert_eq!(report.answer.map(|answer| answer.to_text()).as_deref(), Some("done"), "{language}");
    assert!(lab.findings().is_empty(), "{language}: {:?}", lab.findings());
    lab
}

/// The host calls of the caller, as frames record them.
fn called(lab: &Lab) -> Vec<Value> {
    let called = bodies(&lab.frames(), FrameKind::HostCalled);
    called.into_iter().filter(|body| body["extension"] == "caller").collect()
}

fn code(body: &Value) -> Option<String> {
    body["outcome"]["failure"]["code"].as_str().map(str::to_owned)
}

/// What the caller has asked in its tool, and then in its gate.
async fn made(language: &str, component: Option<&[u8]>) -> (Vec<Made>, Vec<Made>) {
    let lab = session(language, component, &["call_all", "probe"]).await;
    let called = called(&lab);
    let text = called.iter().map(Value::to_string).collect::<String>();
    assert!(!text.contains("hunter2"), "{language}: a secret is in the log");
    let made =
        |body: &Value| (body["ask"].as_str().unwrap().to_owned(), body["arguments"].clone(), code(body));
    let (by_hook, by_tool): (Vec<&Value>, Vec<&Value>) =
        called.iter().partition(|body| !body["hook"].is_null());
    let verdict = lab.replay("s1");
    assert!(verdict.identical, "{language}: {verdict:#?}");
    if component.is_some() {
        let is_mocked = verdict.mocked.iter().any(|id| id.as_str() == "caller");
        assert!(!is_mocked, "{language}: a component runs again");
    }
    let made = (by_tool.into_iter().map(made).collect(), by_hook.into_iter().map(made).collect());
    lab.stop().await;
    made
}

/// A component that was granted everything acts in none of its ways while its gate runs, and the tool runs that it allows.
pub async fn a_guard_that_acts() {
    let lab = session("rust", Some(&component("caller", "rust")), &["reach"]).await;
    let called = called(&lab);
    let denied = Some(Code::HookSideEffect.to_string());
    for body in &called {
        assert_eq!(code(body), denied, "{body}");
    }
    let tried: BTreeSet<&str> = called.iter().filter_map(|body| body["ask"].as_str()).collect();
    let elsewhere: Vec<HostCallKind> = calls().into_iter().map(|(kind, _)| kind).collect();
    let all = HostCallKind::ALL.iter().filter(|kind| {
        let refused = !kind.is_for_hooks(HookPoint::ToolGate);
        refused && !kind.wit_functions().is_empty() && !elsewhere.contains(kind)
    });
    assert_eq!(tried, all.map(|kind| kind.name()).collect());
    // A gate that was not denied one of them denies the call.
    let ran = bodies(&lab.frames(), FrameKind::ToolReturned);
    assert_eq!(ran[0]["outcome"]["result"]["json"], json!("hm"), "{ran:?}");
    let verdict = lab.replay("s1");
    assert!(verdict.identical, "{verdict:#?}");
    lab.stop().await;
}

/// A component in each language makes the calls as native code does, and its gate is refused the same of them. Where the SDK has
/// functions for all other calls, it is served what a class is served.
pub async fn compare_calls() {
    let (served, refused) = made("native", None).await;
    let asked: Vec<String> = calls().into_iter().map(|(kind, _)| kind.name().to_owned()).collect();
    assert_eq!(served.iter().map(|(ask, ..)| ask.clone()).collect::<Vec<_>>(), asked);
    let withheld = Code::ComponentImport.to_string();
    assert!(served.iter().all(|(.., code)| code.as_deref() != Some(&*withheld)), "{served:?}");
    let of_hooks: Vec<bool> =
        calls().iter().map(|(kind, _)| !kind.is_for_hooks(HookPoint::ToolGate)).collect();
    let denied = Code::HookSideEffect.to_string();
    let is_denied = |(.., code): &Made| code.as_deref() == Some(&*denied);
    assert_eq!(refused.iter().map(is_denied).collect::<Vec<_>>(), of_hooks, "{refused:?}");
    let of_a_class = super::grants::served::by_a_class().await;
    for language in ["c", "rust", "javascript", "python"] {
        let component = component("caller", language);
        if language != "c" {
            super::grants::served::compare(language, &component, &of_a_class).await;
        }
        let (by_tool, by_gate) = made(language, Some(&component)).await;
        assert_eq!(by_tool, served, "{language}: the tool");
        assert_eq!(by_gate, refused, "{language}: the gate");
    }
}

/// Calls of roles that are called by name, and what the functions of `tests/conformance/roles/` were given, which is why they fail.
fn given() -> Vec<(Call, Result<Value, Value>)> {
    let of = |role: &str, function: &str, arguments: Value, expected: Result<Value, Value>| {
        let call =
            json!({ "function": { "role": role, "function": function, "arguments": { "json": arguments } } });
        (serde_json::from_value::<Call>(call).unwrap(), expected)
    };
    let delivery = json!({ "id": "d1", "repeat": true });
    let file = json!({ "name": "a.txt", "media_type": "text/plain", "text": "hi" });
    let choices = json!([{ "label": "Yes", "answer": "/yes" }]);
    let event = json!({
        "id": "e1", "topic": "shop.sold", "payload": { "n": 1 }, "key": "k", "attempt": 2, "repeat": true,
    });
    let schema = json!([{ "name": "token", "description": "The token.", "secret": true, "required": true }]);
    let task = |task: &str| Call::Task { task: task.to_owned() };
    vec![
        (task("tidy"), Ok(json!({ "text": "tidy" }))),
        (task("nothing"), Ok(Value::Null)),
        of("subscriber", "on-event", event, Err(json!(["e1", "shop.sold", { "n": 1 }, "k", null, 2, true]))),
        of(
            "channel",
            "send-to-user",
            json!({ "user": "ada", "text": "hello", "delivery": delivery }),
            Err(json!(["ada", "hello", "d1", true])),
        ),
        of(
            "channel",
            "send-message",
            json!({ "text": "hello", "delivery": delivery }),
            Err(json!(["hello", "d1", true])),
        ),
        of(
            "channel",
            "send-file",
            json!({ "user": "ada", "file": file, "delivery": delivery }),
            Err(json!(["ada", "a.txt", "text/plain", [104, 105], "d1"])),
        ),
        of(
            "channel",
            "send-question",
            json!({ "user": "ada", "text": "sure?", "choices": choices, "delivery": delivery }),
            Err(json!(["ada", "sure?", [["Yes", "/yes"]], "d1"])),
        ),
        of(
            "streaming_channel",
            "stream-start",
            json!({ "user": "ada", "id": "s1" }),
            Err(json!(["ada", "s1"])),
        ),
        of(
            "streaming_channel",
            "stream-chunk",
            json!({ "user": "ada", "id": "s1", "text": "la" }),
            Err(json!(["ada", "s1", "la"])),
        ),
        of(
            "streaming_channel",
            "stream-status",
            json!({ "user": "ada", "id": "s1", "status": "hums" }),
            Err(json!(["ada", "s1", "hums"])),
        ),
        of(
            "streaming_channel",
            "stream-end",
            json!({ "user": "ada", "id": "s1", "text": "lala", "delivery": delivery }),
            Err(json!(["ada", "s1", "lala", "d1"])),
        ),
        of("setup", "schema", json!({}), Ok(schema)),
        of("setup", "apply", json!({ "token": "x" }), Err(json!([{ "token": "x" }]))),
        of("setup", "complete", json!({}), Ok(json!("ready"))),
        of("service", "run-background", json!({}), Err(json!(["over"]))),
    ]
}

/// A host that has nothing to say to anything.
struct Quiet;

impl Host for Quiet {
    fn call_within(
        &self,
        _: HostCall,
        _: Option<holdfast_contract::ids::Millis>,
    ) -> Later<Result<Content, Fault>> {
        Box::pin(std::future::ready(Ok(Content::default())))
    }
}

/// Each language with an SDK of its own offers every role, and hands over the same arguments.
pub async fn compare_roles() {
    for language in ["rust", "javascript", "python"] {
        let vault = Arc::new(MapVault::default());
        let component = component("roles", language);
        let FoundExtension { id, version, digest, .. } = kept(&vault, "roles", &component, grants());
        let reference = ExtensionRef { id, version, digest, generation: Generation(1) };
        let loaded = lane(&vault).load(&reference).await.unwrap();
        for (call, expected) in given() {
            let instance = loaded.fresh().unwrap_or_else(|| loaded.clone());
            instance.call(Call::Lifecycle(LifecycleCommand::Load), Arc::new(Quiet)).await.unwrap();
            let name = format!("{language}: {call:?}");
            let replied = match instance.call(call, Arc::new(Quiet)).await {
                Ok(Reply::Content(content)) => Ok(content.value().clone()),
                Ok(other) => panic!("{name}: {other:?}"),
                Err(fault) => {
                    Err(serde_json::from_str(&fault.message).unwrap_or_else(|_| panic!("{name}: {fault}")))
                }
            };
            assert_eq!(replied, expected, "{name}");
        }
    }
}
