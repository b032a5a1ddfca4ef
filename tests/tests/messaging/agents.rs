//! Agents that nobody at a surface asks: for tasks, for events, for other extensions.

use std::sync::Arc;

use holdfast_bus::NewEvent;
use holdfast_contract::body::FrameKind;
use holdfast_contract::content::Content;
use holdfast_contract::ids::Millis;
use holdfast_contract::manifest::HandlerSpec;
use holdfast_contract::message::Limits;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::registry::{AgentMode, AgentSpec};
use holdfast_contract::role::Role;
use holdfast_contract::wire::{Host, Later};
use holdfast_lane_native::{Functions, NativeExtension};
use holdfast_testkit::pieces::{agent, echo};
use holdfast_testkit::story::bodies;
use holdfast_testkit::{Lab, Script, ScriptStep};
use serde_json::json;

use crate::fixtures::{Asking, Mailbox, bus_story, later, outcomes, outcomes_of};

fn chat(mailbox: &Mailbox) -> NativeExtension {
    NativeExtension::new("chat", "1.0.0").channel(mailbox.clone())
}

fn mailbox() -> Mailbox {
    Mailbox { proactive: true, ..Mailbox::default() }
}

#[tokio::test]
async fn a_task_is_done_and_the_user_is_told() {
    let mailbox = mailbox();
    let lab = Lab::build().script([ScriptStep::says("it rains")]).extension(chat(&mailbox)).start().await;
    let task = NewEvent::new("system.agent.task", json!({ "prompt": "how is the weather?" }));
    let id = lab.runtime.publish(task).await.unwrap().id;
    lab.until("the answer", |_| mailbox.all().len() == 1).await;
    assert_eq!(mailbox.all(), ["*: it rains"]);
    let session = format!("task.{}", id.to_string().replace('/', "-"));
    assert!(!lab.frames_of(&session).is_empty());
    assert!(lab.replay(&session).identical);
    lab.stop().await;
}

#[tokio::test]
async fn a_background_task_is_done_in_silence() {
    let mailbox = mailbox();
    let lab = Lab::build().script([ScriptStep::says("done")]).extension(chat(&mailbox)).start().await;
    let task = NewEvent::new("system.agent.background", json!({ "task": "tidy up" }));
    lab.runtime.publish(task).await.unwrap();
    lab.until("the end", |lab| {
        bus_story(&lab.runtime).contains(&"event.delivered router.background".to_owned())
    })
    .await;
    assert!(mailbox.all().is_empty());
    lab.stop().await;
}

#[tokio::test]
async fn a_background_task_and_a_turn_run_at_the_same_time() {
    let mailbox = mailbox();
    let lab = Lab::build()
        .script([ScriptStep::says("It is noon.")])
        .model("other", Script::new([ScriptStep::Hangs]))
        .extension(chat(&mailbox))
        .extension(NativeExtension::new("tidy", "1.0.0").agent(agent("tidier", "other")))
        .start()
        .await;
    let task = NewEvent::new("system.agent.background", json!({ "task": "tidy up", "agent": "tidier" }));
    let session =
        format!("task.{}", lab.runtime.publish(task).await.unwrap().id.to_string().replace('/', "-"));
    lab.until("the task is under way", |lab| {
        lab.frames_of(&session).iter().any(|frame| frame.envelope.kind == FrameKind::ModelRequested)
    })
    .await;
    let message = json!({ "text": "What time is it?", "user_id": "ada", "channel_id": "chat" });
    lab.runtime.publish(NewEvent::new("user.message", message)).await.unwrap();
    lab.until("the answer", |_| mailbox.all().len() == 1).await;
    assert_eq!(mailbox.all(), ["ada: It is noon."]);
    // The task is still under way, and would hold up the end of the runtime: this test does not wait for that.
    assert!(!lab.frames_of(&session).iter().any(|frame| frame.envelope.kind == FrameKind::TurnEnded));
}

#[tokio::test]
async fn an_event_invokes_an_extensions_agent_and_the_user_gets_its_answer() {
    let mailbox = mailbox();
    let reminders = NativeExtension::new("reminders", "1.0.0")
        .subscribes("reminder.due", HandlerSpec::InvokeAgent)
        .agent(agent("reminder", "other"));
    let lab = Lab::build()
        .script([])
        .model("other", Script::new([ScriptStep::says("Call mum!")]))
        .extension(chat(&mailbox))
        .extension(reminders)
        .start()
        .await;
    lab.runtime.publish(NewEvent::new("reminder.due", json!({ "text": "call mum" }))).await.unwrap();
    lab.until("the answer", |_| mailbox.all().len() == 1).await;
    assert_eq!(mailbox.all(), ["*: Call mum!"]);
    assert_eq!(lab.findings(), Vec::new());
    lab.stop().await;
}

#[tokio::test]
async fn an_event_is_shown_to_the_user_where_a_manifest_says_so() {
    let mailbox = mailbox();
    let alarms = NativeExtension::new("alarms", "1.0.0").subscribes("alert.>", HandlerSpec::NotifyUser);
    let lab = Lab::build().script([]).extension(chat(&mailbox)).extension(alarms).start().await;
    lab.runtime.publish(NewEvent::new("alert.urgent", json!({ "text": "fire" }))).await.unwrap();
    lab.until("the notice", |_| mailbox.all().len() == 1).await;
    assert_eq!(mailbox.all(), ["*: fire"]);
    lab.stop().await;
}

#[tokio::test]
async fn a_tool_asks_the_agent_and_never_its_own_session() {
    let helper = || NativeExtension::new("helper", "1.0.0").tool(Asking("think", "agent.invoke"));
    let script = [
        ScriptStep::calls([("think", json!({ "agent": "sage", "task": "what is 6 times 7?" }))]),
        ScriptStep::says("It is 42."),
    ];
    let lab = Lab::build()
        .script(script)
        .model("other", Script::new([ScriptStep::says("42")]))
        .extension(helper())
        .extension(NativeExtension::new("wise", "1.0.0").agent(agent("sage", "other")))
        .start()
        .await;
    assert_eq!(lab.say("ask").await.answer.unwrap().to_text(), "It is 42.");
    let sessions: Vec<_> = lab.runtime.store().streams().unwrap().into_iter().map(|info| info.id).collect();
    let asked = sessions.iter().find(|id| id.as_str().starts_with("agent.helper.")).unwrap();
    assert!(lab.replay(asked.as_str()).identical);
    assert!(lab.story().contains("42"), "{}", lab.story());
    assert_eq!(lab.findings(), Vec::new());
    assert!(lab.replay("s1").identical);
    lab.stop().await;

    // An agent that asks for itself is stopped before it is too deep.
    let endless = [ScriptStep::calls([("think", json!({ "task": "deeper" }))]), ScriptStep::says("enough")];
    let lab = Lab::build().script(endless).extension(helper()).start().await;
    assert_eq!(lab.say("go").await.answer.unwrap().to_text(), "enough");
    let streams = lab.runtime.store().streams().unwrap();
    let too_deep = |id: &str| {
        let frames = lab.frames_of(id);
        let bodies = frames.iter().filter_map(|frame| frame.body.as_ref());
        bodies.filter(|body| body["ask"] == "agent.invoke").any(|body| body.to_string().contains("3005"))
    };
    assert_eq!(streams.iter().filter(|info| too_deep(info.id.as_str())).count(), 1);
    lab.stop().await;
}

#[tokio::test]
async fn a_tool_tells_the_user_and_asks_for_a_task() {
    let mailbox = mailbox();
    let kit = NativeExtension::new("kit", "1.0.0")
        .tool(Asking("tell", "user.notify"))
        .tool(Asking("order", "agent.task"));
    let task = json!({ "task": "write a poem", "agent": "poet", "channel": "chat" });
    let script = [
        ScriptStep::calls([("tell", json!({ "text": "one moment" }))]),
        ScriptStep::calls([("order", task)]),
        ScriptStep::says("ordered"),
    ];
    let lab = Lab::build()
        .script(script)
        .model("other", Script::new([ScriptStep::says("a poem")]))
        .extension(chat(&mailbox))
        .extension(kit)
        .extension(NativeExtension::new("muse", "1.0.0").agent(agent("poet", "other")))
        .start()
        .await;
    lab.say("go").await;
    later(&lab, "both", |_| mailbox.all().len() == 2).await;
    let mut sent = mailbox.all();
    sent.sort();
    assert_eq!(sent, ["*: a poem", "*: one moment"]);
    lab.stop().await;
}

/// The sessions whose names begin like this.
fn sessions(lab: &Lab, beginning: &str) -> Vec<String> {
    let streams = lab.runtime.store().streams().unwrap();
    let ids = streams.into_iter().map(|info| info.id.as_str().to_owned());
    ids.filter(|id| id.starts_with(beginning)).collect()
}

#[tokio::test]
async fn an_agent_that_is_asked_has_what_is_left_of_the_budget() {
    let think = || ScriptStep::calls([("think", json!({ "agent": "sage", "task": "think" }))]);
    let lab = Lab::build()
        .limits(Limits { max_tokens: 100, session_tokens: Some(1_000), ..Limits::default() })
        .script([think().costing(60, 0), think().costing(5, 0), ScriptStep::says("done")])
        .model("other", Script::new([ScriptStep::says("42").costing(10, 0)]))
        .extension(NativeExtension::new("helper", "1.0.0").tool(Asking("think", "agent.invoke")))
        .extension(NativeExtension::new("wise", "1.0.0").agent(agent("sage", "other")))
        .start()
        .await;
    lab.say("go").await;
    let limits = |id: &String| {
        let started = bodies(&lab.frames_of(id), FrameKind::SessionStarted).remove(0);
        let limits = &started["settings"]["limits"];
        (limits["max_tokens"].as_u64().unwrap(), limits["session_tokens"].as_u64().unwrap())
    };
    let mut left: Vec<_> = sessions(&lab, "agent.helper.").iter().map(limits).collect();
    left.sort();
    assert_eq!(left, [(25, 925), (40, 940)], "the second has less by what the first and the turn have used");
    let ended = bodies(&lab.frames(), FrameKind::TurnEnded).remove(0);
    assert_eq!(ended["spent"]["tokens"], 85, "the agents' tokens are charged to the turn");
    lab.stop().await;
}

#[tokio::test]
async fn an_agent_that_nobody_waits_for_any_more_is_cancelled() {
    let lab = Lab::build()
        .script([
            ScriptStep::calls([("think", json!({ "agent": "sage", "task": "think" }))]),
            ScriptStep::says("too slow"),
        ])
        .model("other", Script::new([ScriptStep::Hangs]))
        .extension(NativeExtension::new("helper", "1.0.0").tool(Asking("think", "agent.invoke")))
        .extension(NativeExtension::new("wise", "1.0.0").agent(agent("sage", "other")))
        .start()
        .await;
    let turn = lab.begin("go");
    lab.until("the question", |lab| !sessions(lab, "agent.helper.").is_empty()).await;
    let asked = sessions(&lab, "agent.helper.").remove(0);
    lab.until("the model", |lab| {
        lab.frames_of(&asked).iter().any(|frame| frame.envelope.kind == FrameKind::ModelRequested)
    })
    .await;
    lab.clock.advance(Millis(61_000));
    assert_eq!(turn.await.unwrap().answer.unwrap().to_text(), "too slow");
    assert_eq!(outcomes(&lab)[0].as_ref().unwrap_err().code, Code::ToolTimeout);
    lab.until("it to be closed", |lab| !lab.runtime.is_open(&asked.as_str().into())).await;
    let ended = bodies(&lab.frames_of(&asked), FrameKind::TurnEnded);
    assert!(ended[0].to_string().contains("the turn that called it is over"), "{ended:#?}");
    lab.stop().await;
}

#[tokio::test]
async fn a_task_that_asks_for_a_task_comes_to_an_end() {
    let ways = [
        ("agent.task", json!({ "task": "again" })),
        // What is published says nothing of its own depth.
        (
            "event.publish",
            json!({ "topic": "system.agent.background", "payload": { "task": "again", "depth": 0 } }),
        ),
    ];
    for (ask, arguments) in ways {
        let mailbox = mailbox();
        let kit = NativeExtension::new("kit", "1.0.0").tool(Asking("order", ask));
        let script = [ScriptStep::calls([("order", arguments)]), ScriptStep::says("ordered")];
        let lab = Lab::build()
            .settings(|settings| settings.depth_cap = 3)
            .script(script)
            .extension(chat(&mailbox))
            .extension(kit)
            .start()
            .await;
        lab.say("go").await;
        let refused = |lab: &Lab| {
            let all = sessions(lab, "task.");
            let faults = all.iter().flat_map(|id| outcomes_of(lab, id)).filter_map(Result::err);
            faults.filter(|fault| fault.code == Code::ChildDepth).count()
        };
        later(&lab, "the last one", |lab| refused(lab) == 1).await;
        assert_eq!(sessions(&lab, "task.").len(), 3, "{ask}");
        lab.stop().await;
    }
}

/// Code that answers as an agent, and gives the conversation back when it hears a certain word.
struct Guide;

impl Functions for Guide {
    fn call(
        &self,
        role: Role,
        function: String,
        arguments: Content,
        _: Arc<dyn Host>,
    ) -> Option<Later<Result<Content, Fault>>> {
        let received = arguments.value()["task"].as_str()?.to_owned();
        let answer = match received.as_str() {
            "goodbye" => json!({ "text": "until next time", "hand_back": true }),
            _ => json!(format!("you said: {received}")),
        };
        (role == Role::Agent && function == "invoke")
            .then(|| Box::pin(std::future::ready(Ok(Content::new(answer)))) as Later<_>)
    }
}

#[tokio::test]
async fn a_conversation_is_handed_over_to_code_which_gives_it_back() {
    let guide = AgentSpec::code(&"hills".into(), "guide", "Knows the way.");
    let lab = Lab::build()
        .script([
            ScriptStep::calls([("transfer_to_guide", json!({}))]),
            ScriptStep::says("nobody hears this"),
            ScriptStep::says("nor this"),
            ScriptStep::says("nor that"),
            ScriptStep::says("so you are back"),
        ])
        .extension(NativeExtension::new("hills", "1.0.0").agent(guide).functions(Guide))
        .start()
        .await;
    let mut answers = Vec::new();
    for text in ["to the guide", "which way?", "goodbye"] {
        answers.push(lab.say(text).await.answer.unwrap().to_text());
    }
    assert_eq!(answers, ["you said: to the guide", "you said: which way?", "so you are back"]);
    assert!(lab.replay("s1").identical, "without the code: what it said is in the log");
    lab.stop().await;
}

#[tokio::test]
async fn a_conversation_whose_agent_is_gone_is_its_owners_again() {
    let steps = [
        ScriptStep::calls([("transfer_to_sage", json!({}))]),
        ScriptStep::says("I am the sage"),
        ScriptStep::says("here"),
    ];
    let sage = AgentSpec { mode: AgentMode::Handoff, ..agent("sage", "wise") };
    let lab = Lab::build()
        .script(steps.clone())
        .model("wise", Script::new(steps))
        .extension(NativeExtension::new("hills", "1.0.0").agent(sage))
        .start()
        .await;
    assert_eq!(lab.say("to the sage").await.answer.unwrap().to_text(), "I am the sage");
    lab.runtime.removed("hills".into());
    lab.runtime.settled().await.unwrap();
    assert_eq!(lab.say("still there?").await.answer.unwrap().to_text(), "here");
    let changed = bodies(&lab.frames(), FrameKind::AgentChanged);
    assert_eq!((&changed[1]["agent"], &changed[1]["call"]), (&json!("main"), &serde_json::Value::Null));
    assert!(lab.replay("s1").identical);
    lab.stop().await;
}

/// An agent that would go on for ever stops at each of its bounds, its caller is told which, and so is the user of one that took over.
#[tokio::test]
async fn an_agent_that_would_never_stop_is_stopped_and_it_is_said_by_what() {
    let usual = Limits { max_turns: 1_000, max_tokens: 1_000_000, ..Limits::default() };
    let cases = [
        (
            Limits { max_turns: 5, ..usual },
            "model calls in a turn (`agent.limits.max_turns` in the manifest of `office`)",
        ),
        (Limits { max_tokens: 500, ..usual }, "tokens in a turn (`agent.limits.max_tokens_per_invocation`"),
        (Limits { max_cost_micros: Some(50), ..usual }, "a dollar in a turn (`agent.limits.max_cost_micros`"),
        (
            Limits { time_budget: Millis(1_200), ..usual },
            "milliseconds in a turn (`agent.limits.time_budget_ms`",
        ),
    ];
    for (limits, told) in cases {
        let again = || ScriptStep::calls([("echo", json!({}))]).costing(100, 10);
        // Each call but the first few comes late, so that time passes.
        let late = ScriptStep::Fails { times: 2, retryable: true, then: Box::new(again()) };
        let endless: Vec<ScriptStep> = std::iter::repeat_with(again).take(7).chain([late]).collect();
        let endless = || Script::new(endless.iter().cloned().chain(std::iter::repeat_with(again).take(100)));
        let worker = AgentSpec { limits, ..agent("worker", "endless") };
        let lab = Lab::build()
            .limits(usual)
            .script([
                ScriptStep::calls([("worker", json!({ "task": "work" }))]),
                ScriptStep::says("it did not end"),
            ])
            .model("endless", endless())
            .extension(NativeExtension::new("kit", "1.0.0").tool(echo()))
            .extension(NativeExtension::new("office", "1.0.0").agent(worker))
            .start()
            .await;
        let turn = lab.begin("go");
        later(&lab, "the end", |lab| {
            lab.frames().iter().any(|frame| frame.envelope.kind == FrameKind::TurnEnded)
        })
        .await;
        assert_eq!(turn.await.unwrap().answer.unwrap().to_text(), "it did not end");
        let received = bodies(&lab.frames(), FrameKind::ChildEnded)[0].to_string();
        assert!(received.contains(told), "{told}: {received}");
        assert!(lab.frames_of("s1.1.1").iter().any(|frame| frame.envelope.kind == FrameKind::LimitReached));
        lab.stop().await;
    }
}
