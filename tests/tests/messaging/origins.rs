//! Where a session comes from is what the program knows, never what an extension says: policies rely on it.

use std::path::Path;
use std::sync::Arc;

use holdfast_bus::NewEvent;
use holdfast_contract::body::FrameKind;
use holdfast_contract::host_call::Capability;
use holdfast_contract::manifest::HandlerSpec;
use holdfast_contract::system_frames::FoundExtension;
use holdfast_contract::tool::EffectClass;
use holdfast_lane_native::NativeExtension;
use holdfast_lane_process::{Places, ProcessLane};
use holdfast_policy::Policy;
use holdfast_testkit::pieces::{agent, tool};
use holdfast_testkit::story::bodies;
use holdfast_testkit::wasm::MapVault;
use holdfast_testkit::{Lab, LabBuilder, Script, ScriptStep};
use serde_json::{Value, json};

use crate::fixtures::{Asking, Mailbox, later};
use crate::privileges::PROGRAM;

/// `spill` is allowed on the terminal, and for one user of one channel. `order` starts the tasks.
const POLICY: &str = "
profile: standard
rules:
  - { name: order, match: { tools: [order, ask] }, decision: allow }
  - { name: terminal, match: { tools: [spill], origins: [chat, run, cli, task] }, decision: allow }
  - { name: ada, match: { tools: [spill], origins: [telegram], users: ['4711'] }, decision: allow }
  - { name: quiet, match: { tools: [spill], origins: [quiet] }, decision: allow }
";

fn lab(mailbox: &Mailbox, steps: Vec<ScriptStep>) -> LabBuilder {
    let spill = tool("spill", EffectClass::Write, |_| json!("spilled"));
    let spy = Script::new([ScriptStep::calls([("spill", json!({}))]), ScriptStep::says("done")]);
    Lab::build()
        .script(steps)
        .model("other", spy)
        .policy(Policy::parse(Path::new("policy.yaml"), POLICY).unwrap())
        .unattended()
        .extension(NativeExtension::new("telegram", "1.0.0").channel(mailbox.clone()))
        .extension(NativeExtension::new("kit", "1.0.0").tool(spill).agent(agent("spy", "other")))
}

/// The sessions whose names begin like this, each with its origin and how the call of `spill` was decided.
fn spills(lab: &Lab, beginning: &str) -> Vec<(Value, String)> {
    let streams = lab.runtime.store().streams().unwrap();
    let ids = streams.into_iter().map(|info| info.id.as_str().to_owned());
    ids.filter(|id| id.starts_with(beginning))
        .map(|id| {
            let frames = lab.frames_of(&id);
            let started = bodies(&frames, FrameKind::SessionStarted).remove(0);
            let ran = bodies(&frames, FrameKind::ToolReturned);
            (started["origin"].clone(), Value::Array(ran).to_string())
        })
        .collect()
}

// Finding H2, in a lane of the program and in one of others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_comes_from_the_extension_that_asked_whatever_it_says() {
    let spoofs = [
        ("agent.background", json!({ "agent": "spy", "task": "go", "channel": "chat" })),
        ("agent.background", json!({ "agent": "spy", "task": "go", "channel": "telegram", "user": "4711" })),
        ("agent.task", json!({ "agent": "spy", "task": "go", "channel": "telegram", "user": "4711" })),
        ("agent.task", json!({ "agent": "spy", "task": "go" })),
        (
            "event.publish",
            json!({ "topic": "system.agent.task",
                    "payload": { "agent": "spy", "task": "go", "channel_id": "telegram", "user_id": 4711 } }),
        ),
        (
            "event.publish",
            json!({ "topic": "system.agent.background",
                    "payload": { "agent": "spy", "prompt": "go", "channel_id": "run", "user_id": "4711" } }),
        ),
    ];
    let both = spoofs.into_iter().flat_map(|spoof| [(false, spoof.clone()), (true, spoof)]);
    for (as_program, (ask, arguments)) in both {
        let mailbox = Mailbox { proactive: true, ..Mailbox::default() };
        let (vault, folder) = (Arc::new(MapVault::default()), tempfile::tempdir().unwrap());
        let lab = if as_program {
            let call = json!({ "name": ask, "arguments": arguments });
            let steps = vec![ScriptStep::calls([("ask", call)]), ScriptStep::says("ordered")];
            let lane = Arc::new(ProcessLane::new(vault.clone(), Places::within(folder.path())));
            let manifest = "id: quiet\nname: Quiet\nversion: 1.0.0\ncommand: [python3, main.py]\n";
            let found = vault.add_files(manifest, "process", [("main.py", PROGRAM.as_bytes().to_vec())]);
            let interfaces = vec![Capability::Agents.name().to_owned()];
            lab(&mailbox, steps).lane(lane, [FoundExtension { interfaces, ..found }])
        } else {
            let steps = vec![ScriptStep::calls([("order", arguments.clone())]), ScriptStep::says("ordered")];
            lab(&mailbox, steps).extension(NativeExtension::new("quiet", "1.0.0").tool(Asking("order", ask)))
        };
        let lab = lab.start().await;
        lab.say("go").await;
        let ended = |lab: &Lab| {
            let streams = lab.runtime.store().streams().unwrap();
            let mut tasks = streams.iter().filter(|info| info.id.as_str().starts_with("task."));
            tasks.any(|info| {
                lab.frames_of(info.id.as_str()).iter().any(|it| it.envelope.kind == FrameKind::TurnEnded)
            })
        };
        later(&lab, "the task", ended).await;
        let tasks = spills(&lab, "task.");
        assert_eq!(tasks.len(), 1);
        assert_eq!(tasks[0].0, json!({ "channel": "extension/quiet" }), "{ask} {arguments}");
        assert!(!tasks[0].1.contains("spilled"), "{ask} {arguments}: {}", tasks[0].1);
        if ask == "agent.task" {
            let to = if arguments["user"].is_null() { "*" } else { "4711" };
            later(&lab, "the answer", |_| mailbox.all() == [format!("{to}: done")]).await;
        }
        lab.stop().await;
    }
}

// Finding H2: the same for agents that an extension invokes, and for those that its events invoke.
#[tokio::test]
async fn an_agent_that_an_extension_invokes_comes_from_the_extension() {
    let mailbox = Mailbox { proactive: true, ..Mailbox::default() };
    let asks = json!({ "agent": "spy", "task": "go" });
    let steps = vec![ScriptStep::calls([("order", asks)]), ScriptStep::says("ordered")];
    // An id that is also the origin of a surface.
    let run = NativeExtension::new("run", "1.0.0").tool(Asking("order", "agent.invoke"));
    let watch = NativeExtension::new("chat", "1.0.0")
        .subscribes("shop.sold", HandlerSpec::InvokeAgent)
        .agent(agent("watcher", "other"));
    let lab = lab(&mailbox, steps).extension(run).extension(watch).start().await;
    lab.say("go").await;
    let invoked = spills(&lab, "agent.run.");
    assert_eq!(invoked[0].0, json!({ "channel": "extension/run" }));
    assert!(!invoked[0].1.contains("spilled"), "{invoked:?}");

    lab.runtime.publish(NewEvent::new("shop.sold", json!({ "text": "tea" }))).await.unwrap();
    later(&lab, "the answer", |_| !mailbox.all().is_empty()).await;
    let woken = spills(&lab, "task.");
    assert_eq!(woken[0].0, json!({ "channel": "extension/chat" }));
    assert!(!woken[0].1.contains("spilled"), "{woken:?}");
    lab.stop().await;
}

// Finding H2: a channel is not a surface, whatever its id.
#[tokio::test]
async fn a_channel_with_the_name_of_a_surface_is_not_that_surface() {
    let mailbox = Mailbox::default();
    let steps = vec![ScriptStep::calls([("spill", json!({}))]), ScriptStep::says("done")];
    let lab = lab(&mailbox, steps)
        .extension(NativeExtension::new("run", "1.0.0").channel(mailbox.clone()))
        .start()
        .await;
    for (channel, origin, runs) in [("run", "extension/run", false), ("telegram", "telegram", true)] {
        let said = json!({ "text": "hi", "user_id": "4711", "channel_id": channel });
        lab.runtime.publish(NewEvent::new("user.message", said)).await.unwrap();
        let before = mailbox.all().len();
        later(&lab, "the answer", |_| mailbox.all().len() > before).await;
        let sessions = spills(&lab, &format!("{channel}."));
        assert_eq!(sessions[0].0, json!({ "channel": origin, "user": "4711" }));
        assert_eq!(sessions[0].1.contains("spilled"), runs, "{sessions:?}");
    }
    lab.stop().await;
}
