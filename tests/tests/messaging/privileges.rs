//! Privileges are grants: a call of a privileged interface is refused with one code in every lane, and served where the interface is
//! granted, for every extension.

use std::sync::Arc;

use holdfast_bus::NewEvent;
use holdfast_contract::body::FrameKind;
use holdfast_contract::content::Content;
use holdfast_contract::hook::{Decision, HookInput, HookPoint, HookSpec};
use holdfast_contract::host_call::{Capability, GrantRule, HostCall, HostCallKind};
use holdfast_contract::manifest::{HandlerSpec, Profile};
use holdfast_contract::message::Limits;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::system_frames::FoundExtension;
use holdfast_contract::wire::{Host, Later};
use holdfast_lane_native::{Hook, NativeExtension};
use holdfast_lane_process::{Places, ProcessLane};
use holdfast_testkit::pieces::{agent, echo};
use holdfast_testkit::story::bodies;
use holdfast_testkit::wasm::MapVault;
use holdfast_testkit::{Lab, Script, ScriptStep};
use serde_json::{Value, json};

use crate::fixtures::{Asking, Mailbox, Takes, outcomes};

/// A program whose one tool makes the host call that its arguments name, and answers with the error's code.
pub(crate) const PROGRAM: &str = r#"
import json, sys

def say(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

TOOL = {"name": "ask", "description": "Makes a host call.", "input_schema": {"type": "object"}}
waiting = {}
for line in sys.stdin:
    message = json.loads(line)
    if "method" not in message:
        error = message.get("error") or {}
        say(id=waiting.pop(message["id"]), result=(error.get("data") or {}).get("code", "served"))
    elif message["method"] == "hello":
        say(id=message["id"], result={"protocol": "0.1", "tools": [TOOL]})
    elif message["method"] == "tool":
        call = message["params"]["arguments"]
        waiting["q"] = message["id"]
        say(id="q", method="ask", params={"call": message["id"], **call})
    elif "id" in message:
        say(id=message["id"], result=None)
"#;

fn privileged() -> Vec<HostCallKind> {
    let all = HostCallKind::ALL.iter().copied();
    all.filter(|kind| kind.capability().grant() == GrantRule::Explicit).collect()
}

/// Arguments that each privileged call takes.
fn arguments(kind: HostCallKind) -> Value {
    match kind {
        HostCallKind::ResultRead => json!({ "call": "1.1", "limit": 10 }),
        HostCallKind::ToolsFind => json!({ "query": "anything" }),
        HostCallKind::SetupApply => json!({ "extension": "stranger", "name": "token", "value": "x" }),
        _ => json!({}),
    }
}

/// What a native extension of this name is answered.
async fn native(id: &str, kind: HostCallKind, interfaces: &[&str]) -> Option<Fault> {
    let extension = NativeExtension::new(id, "1.0.0").interfaces(interfaces).tool(Asking("ask", kind.name()));
    let lab = Lab::build()
        .script([ScriptStep::calls([("ask", arguments(kind))]), ScriptStep::says("done")])
        .extension(extension)
        .profile(Profile::FullAuto)
        .start()
        .await;
    lab.say("go").await;
    let outcome = outcomes(&lab).remove(0);
    lab.stop().await;
    outcome.err()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_privileged_call_without_the_grant_is_refused_in_the_native_lane() {
    for kind in privileged() {
        // The id of a built-in extension gives nothing.
        for id in ["stranger", "setup", "results", "orchestrator"] {
            let fault = native(id, kind, &[]).await.unwrap();
            assert_eq!(fault.code, Code::ComponentImport, "{id} {kind}: {fault}");
            let expected = format!("ext grant {id} --interface {}", kind.capability());
            assert!(fault.message.contains(&expected), "{fault}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stranger_with_the_grant_is_served() {
    for kind in privileged() {
        let fault = native("stranger", kind, &[kind.capability().name()]).await;
        let code = fault.map(|fault| fault.code);
        assert_ne!(code, Some(Code::ComponentImport), "{kind}");
        // Nothing was truncated, there is no extension `{}`, and the stranger has no such parameter: the call itself was served.
        let expected = match kind {
            HostCallKind::ResultRead => Some(Code::ResultUnknown),
            HostCallKind::SetupShow => Some(Code::ExtensionUnknown),
            HostCallKind::SetupApply => Some(Code::UsageInvalid),
            _ => None,
        };
        assert_eq!(code, expected, "{kind}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_grant_is_for_one_interface() {
    let fault = native("stranger", HostCallKind::SetupApply, &["results", "discovery"]).await.unwrap();
    assert_eq!(fault.code, Code::ComponentImport, "{fault}");
}

/// The codes that a program with these interfaces is answered, call by call.
async fn program(interfaces: Vec<String>) -> Vec<String> {
    let calls = privileged().into_iter().map(|kind| (kind.name(), arguments(kind)));
    answers(interfaces, calls.collect()).await
}

async fn answers(interfaces: Vec<String>, calls: Vec<(&str, Value)>) -> Vec<String> {
    let (vault, folder) = (Arc::new(MapVault::default()), tempfile::tempdir().unwrap());
    let lane = Arc::new(ProcessLane::new(vault.clone(), Places::within(folder.path())));
    let manifest = "id: stranger\nname: Stranger\nversion: 1.0.0\ndescription: Asks for anything.\ncommand: [python3, main.py]\n";
    let found = vault.add_files(manifest, "process", [("main.py", PROGRAM.as_bytes().to_vec())]);
    let call = |(name, arguments): &(&str, Value)| {
        ScriptStep::calls([("ask", json!({ "name": name, "arguments": arguments }))])
    };
    let lab = Lab::build()
        .limits(Limits { max_turns: 100, ..Limits::default() })
        .script(calls.iter().map(call).chain([ScriptStep::says("done")]))
        .model("other", Script::new([ScriptStep::says("done")]))
        .extension(
            NativeExtension::new("chat", "1.0.0").channel(Mailbox { proactive: true, ..Mailbox::default() }),
        )
        .extension(NativeExtension::new("muse", "1.0.0").agent(agent("idle", "other")))
        .lane(lane, [FoundExtension { interfaces, ..found }])
        .profile(Profile::FullAuto)
        .start()
        .await;
    lab.say("go").await;
    let answered =
        outcomes(&lab).into_iter().map(|outcome| outcome.unwrap().as_str().unwrap().to_owned()).collect();
    lab.stop().await;
    answered
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_is_refused_with_the_same_code_and_served_with_the_grant() {
    let refused = program(Vec::new()).await;
    assert_eq!(refused, vec![Code::ComponentImport.as_str(); privileged().len()]);

    let all = [Capability::Setup, Capability::Results, Capability::Discovery];
    let served = program(all.iter().map(|capability| capability.name().to_owned()).collect()).await;
    assert!(!served.iter().any(|code| code == Code::ComponentImport.as_str()), "{served:?}");
}

/// What a program asks for that belongs to others: the call, the code without any grant, and the code with every grant.
fn of_others() -> Vec<(&'static str, Value, Code, Option<Code>)> {
    let (grant, refused) = (Code::ComponentImport, Code::EventRefused);
    let topic = |topic: &str| json!({ "topic": topic });
    let event = |topic: &str, payload: Value| json!({ "topic": topic, "payload": payload });
    let said = json!({ "text": "/model x", "user_id": "a", "channel_id": "stranger" });
    let task = json!({ "prompt": "spend", "agent": "idle" });
    vec![
        ("system.shutdown", json!({ "reason": "because I can" }), grant, Some(grant)),
        ("system.restart", json!({}), grant, Some(Code::ToolFailed)),
        ("agent.background", json!({ "task": "spend", "agent": "idle" }), grant, None),
        ("agent.task", json!({ "task": "spend", "agent": "idle" }), grant, None),
        ("event.publish", event("system.agent.task", task.clone()), grant, None),
        ("event.publish", event("system.agent.background", task), grant, None),
        ("event.publish", event("user.message", said), refused, Some(refused)),
        ("event.publish", event("channel.out.chat", json!({ "text": "hi" })), refused, Some(refused)),
        ("event.publish", event("system.dead_letter", json!({})), refused, Some(refused)),
        ("event.publish", event("system.new", json!({})), refused, Some(refused)),
        ("event.subscribe", topic(">"), refused, Some(refused)),
        ("event.subscribe", topic("*.message"), refused, Some(refused)),
        ("event.subscribe", topic("user.*"), refused, Some(refused)),
        ("event.subscribe", topic("channel.>"), refused, Some(refused)),
        ("event.subscribe", topic("system.>"), refused, Some(refused)),
        ("event.subscribe", topic("user.message"), grant, None),
        ("event.subscribe", topic("channel.out.*"), grant, None),
        ("event.subscribe", topic("channel.out.telegram"), grant, None),
        ("event.subscribe", topic("system.agent.task"), grant, None),
        ("event.subscribe", topic("system.dead_letter"), grant, None),
    ]
}

// Finding H6.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_has_its_own_topics_and_nothing_of_others_without_a_grant() {
    let own = [
        ("event.subscribe", json!({ "topic": "stranger.>" })),
        ("event.publish", json!({ "topic": "stranger.said", "payload": {} })),
        ("event.unsubscribe", json!({ "topic": "stranger.>" })),
    ];
    let calls = || of_others().into_iter().map(|(name, arguments, ..)| (name, arguments)).chain(own.clone());
    let code = |code: Option<Code>| code.map_or("served", |code| code.as_str()).to_owned();
    let served = || own.iter().map(|_| code(None));

    let without = answers(Vec::new(), calls().collect()).await;
    let expected = of_others().into_iter().map(|(_, _, without, _)| code(Some(without)));
    assert_eq!(without, expected.chain(served()).collect::<Vec<_>>());

    let all = Capability::ALL.iter().map(|capability| capability.name().to_owned());
    let with = answers(all.chain(["*".to_owned()]).collect(), calls().collect()).await;
    let expected = of_others().into_iter().map(|(.., with)| code(with));
    assert_eq!(with, expected.chain(served()).collect::<Vec<_>>());
}

// Finding H6: the same for what a manifest subscribes to.
#[tokio::test]
async fn a_manifest_subscribes_to_no_topic_of_others_without_a_grant() {
    for (interfaces, expected) in [(&[][..], 0), (&["system-events"][..], 1)] {
        let takes = Takes::default();
        let spy = NativeExtension::new("spy", "1.0.0")
            .interfaces(interfaces)
            .subscribes(">", HandlerSpec::Custom)
            .subscribes("*.*.notify", HandlerSpec::Custom)
            .subscribes("system.user.notify", HandlerSpec::Custom)
            .subscriber(takes.clone());
        let mailbox = Mailbox { proactive: true, ..Mailbox::default() };
        let chat = NativeExtension::new("chat", "1.0.0").channel(mailbox.clone());
        let lab = Lab::build().script([]).extension(chat).extension(spy).start().await;
        lab.runtime.publish(NewEvent::new("system.user.notify", json!({ "text": "my pin" }))).await.unwrap();
        lab.until("the notice", |_| mailbox.all().len() == 1 && takes.all().len() >= expected).await;
        assert_eq!(takes.all().len(), expected);
        lab.stop().await;
    }
}

/// A hook that makes one host call and then decides as if nothing had happened.
struct AskingHook(HookPoint, HostCallKind);

impl Hook for AskingHook {
    fn spec(&self) -> HookSpec {
        HookSpec::at(self.0)
    }

    fn decide(&self, _: HookInput, host: Arc<dyn Host>) -> Later<Result<Decision, Fault>> {
        let call = HostCall::named(self.1.name(), Content::new(arguments(self.1)));
        let decision = if self.0 == HookPoint::ToolGate { Decision::Allow } else { Decision::Continue };
        Box::pin(async move {
            // What it is answered is in the log.
            drop(host.call(call).await);
            Ok(decision)
        })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hook_that_tries_a_side_effect_is_refused_and_recorded_and_the_turn_goes_on() {
    let all_interfaces: Vec<&str> = Capability::ALL.iter().map(|it| it.name()).collect();
    for point in [HookPoint::ToolGate, HookPoint::Context, HookPoint::TurnStart] {
        for kind in HostCallKind::ALL.iter().copied().filter(|kind| !kind.is_for_hooks(point)) {
            let hooked = NativeExtension::new("hooked", "1.0.0")
                .interfaces(&all_interfaces)
                .hook(AskingHook(point, kind));
            let lab = Lab::build()
                .script([ScriptStep::calls([("echo", json!({ "text": "hi" }))]), ScriptStep::says("done")])
                .extension(hooked)
                .extension(NativeExtension::new("kit", "1.0.0").tool(echo()))
                .profile(Profile::FullAuto)
                .start()
                .await;
            let report = lab.say("go").await;
            assert_eq!(report.answer.unwrap().to_text(), "done", "{point:?} {kind}");
            let refused = bodies(&lab.frames(), FrameKind::HostCalled);
            assert!(!refused.is_empty(), "{point:?} {kind}: it is recorded");
            for call in refused {
                assert_eq!(call["ask"], kind.name(), "{point:?}");
                assert_eq!(call["outcome"]["failure"]["code"], "HF-3206", "{point:?} {kind}: {call}");
            }
            lab.stop().await;
        }
    }
}
