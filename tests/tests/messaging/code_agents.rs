//! Agents in code in the native lane: what they may ask for, what that leaves in the log, and what bounds them. `extensions/agents.rs` of
//! the program shows the same for a Python class.

use std::sync::{Arc, Mutex};

use holdfast_contract::body::FrameKind;
use holdfast_contract::content::Content;
use holdfast_contract::host_call::{HostCall, HostCallKind};
use holdfast_contract::ids::Millis;
use holdfast_contract::message::Limits;
use holdfast_contract::problem::Fault;
use holdfast_contract::registry::{AgentMode, AgentSpec};
use holdfast_contract::role::Role;
use holdfast_contract::tool::EffectClass;
use holdfast_contract::wire::{CallUpdate, Host, Later, UpdateSink};
use holdfast_lane_native::{Functions, NativeExtension};
use holdfast_testkit::pieces::{agent, echo};
use holdfast_testkit::story::bodies;
use holdfast_testkit::{Lab, Script, ScriptStep};
use serde_json::{Value, json};

/// What an agent is told while another one answers it.
#[derive(Clone, Default)]
struct Recording(Arc<Mutex<Vec<CallUpdate>>>);

impl UpdateSink for Recording {
    fn send(&self, update: CallUpdate) -> Later<()> {
        self.0.lock().unwrap().push(update);
        Box::pin(std::future::ready(()))
    }
}

/// Code that makes the host call that its task names, and answers with the outcome.
#[derive(Clone, Default)]
struct Surveyor(Recording);

impl Functions for Surveyor {
    fn call(
        &self,
        role: Role,
        function: String,
        arguments: Content,
        host: Arc<dyn Host>,
    ) -> Option<Later<Result<Content, Fault>>> {
        let received = self.0.clone();
        let arguments = arguments.value().clone();
        let asked = arguments["task"].as_str()?.to_owned();
        (role == Role::Agent && function == "invoke").then(|| -> Later<_> {
            Box::pin(async move {
                let (name, with) = asked.split_once(' ').unwrap_or((&asked, "{}"));
                let Some(kind) = HostCallKind::from_name(name) else {
                    return Ok(Content::new(arguments["turn"].clone()));
                };
                let call = HostCall::of(kind, serde_json::from_str::<Value>(with).unwrap_or_default());
                match host.call_streamed(call, None, Arc::new(received)).await {
                    Ok(answer) => Ok(Content::new(json!({ "got": answer.value() }))),
                    Err(fault) => Ok(Content::new(json!({ "refused": fault.code.as_str() }))),
                }
            })
        })
    }
}

fn surveyor() -> AgentSpec {
    let code = AgentSpec::code(&"hills".into(), "surveyor", "Measures.");
    AgentSpec { mode: AgentMode::Tool, tools: Some(vec!["kit".into()]), models: vec!["small".into()], ..code }
}

fn asks(task: &str) -> ScriptStep {
    ScriptStep::calls([("surveyor", json!({ "task": task }))])
}

/// What the tool calls of the session returned, in order.
fn results(lab: &Lab) -> Vec<Value> {
    let ended = bodies(&lab.frames(), FrameKind::ChildEnded);
    ended.into_iter().map(|body| body["outcome"]["result"]["json"].clone()).collect()
}

#[tokio::test]
async fn an_agent_in_code_uses_tools_models_and_agents_within_its_session() {
    let received = Surveyor::default();
    let lab = Lab::build()
        .script([
            asks("look"),
            asks(r#"tool.invoke {"tool": "echo", "arguments": {"text": "far"}}"#),
            asks(r#"tool.invoke {"tool": "hum", "arguments": {}}"#),
            asks(r#"model.invoke {"prompt": "how far?", "instructions": "Be brief."}"#),
            asks(r#"agent.invoke {"task": "sing", "agent": "poet"}"#),
            asks("agent.describe"),
            ScriptStep::says("done"),
        ])
        .model("small", Script::new([ScriptStep::says("two miles")]))
        .model(
            "wise",
            Script::new([ScriptStep::calls([("echo", json!({ "text": "la" }))]), ScriptStep::says("la la")]),
        )
        .extension(NativeExtension::new("kit", "1.0.0").tool(echo()))
        .extension(NativeExtension::new("office", "1.0.0").agent(agent("poet", "wise")))
        .extension(NativeExtension::new("hills", "1.0.0").agent(surveyor()).functions(received.clone()))
        .start()
        .await;
    lab.say("go").await;
    let results = results(&lab);
    assert_eq!(results[0]["agent"], "surveyor");
    assert_eq!((&results[0]["session"], &results[0]["turn"]), (&json!("s1.1.1"), &json!(1)));
    assert!(results[1]["got"].to_string().contains("far"), "{results:?}");
    assert_eq!(results[2], json!({ "refused": "HF-3101" }), "it does not have that tool");
    assert_eq!(results[3], json!({ "got": "two miles" }));
    assert_eq!(results[4], json!({ "got": "la la" }));
    assert_eq!(results[5]["got"]["models"], json!(["small"]));
    assert_eq!(results[5]["got"]["tools"][0]["name"], "echo");
    // The calls are recorded in its session, and each has a session of its own under that.
    let called = bodies(&lab.frames_of("s1.1.4"), FrameKind::HostCalled);
    assert_eq!(called[0]["ask"], "model.invoke");
    assert_eq!(called[0]["spent"]["turns"], 1);
    let updates = received.0.0.lock().unwrap().clone();
    let song: Vec<&CallUpdate> = updates
        .iter()
        .filter(|it| !matches!(it, CallUpdate::Text(text) if text.to_text().starts_with("two")))
        .collect();
    assert!(matches!(song[0], CallUpdate::ToolCall { tool, .. } if tool.as_str() == "echo"), "{updates:?}");
    let text: String = song[1..]
        .iter()
        .filter_map(|it| match it {
            CallUpdate::Text(text) => Some(text.to_text()),
            CallUpdate::ToolCall { .. } => None,
        })
        .collect();
    assert_eq!(text, "la la");
    assert!(lab.findings().is_empty(), "{:?}", lab.findings());
    for session in ["s1", "s1.1.1", "s1.1.2", "s1.1.4", "s1.1.5"] {
        assert!(lab.replay(session).identical, "{session}");
    }
    lab.stop().await;
}

/// Code that never answers.
struct Silent;

impl Functions for Silent {
    fn call(
        &self,
        role: Role,
        _: String,
        _: Content,
        _: Arc<dyn Host>,
    ) -> Option<Later<Result<Content, Fault>>> {
        (role == Role::Agent).then(|| -> Later<_> { Box::pin(std::future::pending()) })
    }
}

#[tokio::test]
async fn an_agent_in_code_that_takes_too_long_is_ended() {
    let limits = Limits { time_budget: Millis(1_200), ..Limits::default() };
    let effects = EffectClass::Write;
    let lab = Lab::build()
        .script([asks("anything"), ScriptStep::says("too late")])
        .extension(
            NativeExtension::new("hills", "1.0.0")
                .agent(AgentSpec { limits, effects, ..surveyor() })
                .functions(Silent),
        )
        .start()
        .await;
    let turn = lab.begin("go");
    lab.until("its code is asked", |lab| {
        let all = lab.frames_of("s1.1.1");
        all.iter().any(|frame| frame.envelope.kind == FrameKind::ModelRequested)
    })
    .await;
    lab.pass(Millis(1_300), 1).await;
    turn.await.unwrap();
    let ended = bodies(&lab.frames(), FrameKind::ChildEnded);
    assert!(ended[0]["outcome"].to_string().contains("time_budget_ms"), "{ended:?}");
    let spec = lab.runtime.registry();
    let tool = spec.tool(&"surveyor".into()).unwrap();
    assert_eq!(tool.stack[0].spec.effects, EffectClass::Write, "as it is declared");
    lab.stop().await;
}
