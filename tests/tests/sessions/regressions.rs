//! What generated sessions have found, each as the smallest story that shows it.
use std::sync::Arc;

use holdfast_contract::body::FrameKind;
use holdfast_contract::content::Content;
use holdfast_contract::hook::{Decision, HookInput, HookPoint, HookSpec};
use holdfast_contract::host_call::HostCall;
use holdfast_contract::ids::{CallId, Millis, Seq};
use holdfast_contract::message::TurnView;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::session_frames::{TurnOutcome, UiQuestion};
use holdfast_contract::tool::{EffectClass, ToolSpec};
use holdfast_contract::wire::{Host, Later};
use holdfast_lane_native::{Hook, NativeExtension, Tool};
use holdfast_testkit::pieces::{agent, echo, hook, spec};
use holdfast_testkit::story::{bodies, kinds};
use holdfast_testkit::{Lab, Script, ScriptStep};
use serde_json::json;

/// A question to the user.
fn confirm() -> HostCall {
    HostCall::Ui(UiQuestion::Confirm { prompt: "May I?".to_owned() })
}

/// A tool that asks the user, and asks the host for something that it does not have.
struct Polite;

impl Tool for Polite {
    fn spec(&self) -> ToolSpec {
        spec("polite", EffectClass::Pure)
    }

    fn call(&self, _: CallId, _: Content, _: TurnView, host: Arc<dyn Host>) -> Later<Result<Content, Fault>> {
        Box::pin(async move {
            let other = HostCall::named("moon.phase", "now");
            let refused = host.call_within(other, Some(Millis(5))).await.unwrap_err();
            let answer = host.call(confirm()).await?;
            Ok(Content::new(json!({ "user": answer.value(), "host": refused.message })))
        })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_tool_was_told_or_refused_is_told_again_at_replay() {
    let lab = Lab::build()
        .script([ScriptStep::calls([("polite", json!({}))]), ScriptStep::says("done")])
        .extension(NativeExtension::new("kit", "1.0.0").tool(Polite).replayable())
        .start()
        .await;
    let turn = lab.begin("go");
    let request = lab.until_kind("ui.requested").await;
    lab.session().answer(request, Some(Content::new(json!(true)))).await.unwrap();
    turn.await.unwrap();
    assert_eq!(
        bodies(&lab.frames(), FrameKind::HostCalled)[0]["ask"],
        "moon.phase",
        "a refusal is recorded too"
    );
    let verdict = lab.replay("s1");
    assert!(verdict.identical && verdict.mocked.is_empty(), "{verdict:#?}");
}

/// A gate that reads the clock, asks the user, and gives the time as its reason.
struct Watchman;

impl Hook for Watchman {
    fn spec(&self) -> HookSpec {
        HookSpec { timeout: Millis(3_600_000), ..HookSpec::at(HookPoint::ToolGate) }
    }

    fn decide(&self, _: HookInput, host: Arc<dyn Host>) -> Later<Result<Decision, Fault>> {
        Box::pin(async move {
            let clock = host.call(HostCall::Clock).await?;
            host.call(confirm()).await?;
            Ok(Decision::Deny { reason: format!("not at {}", clock.to_text()) })
        })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hook_that_is_asked_again_after_a_restart_gets_its_input_again() {
    let lab = Lab::build()
        .script([ScriptStep::calls([("echo", json!({}))]), ScriptStep::says("as you wish")])
        .extension(NativeExtension::new("kit", "1.0.0").tool(echo()).hook(Watchman).replayable())
        .start()
        .await;
    let turn = lab.begin("go");
    let first = lab.until_kind("ui.requested").await;
    lab.session().close().await.unwrap();
    assert!(turn.await.is_err(), "nobody waits for the turn any more");
    lab.clock.advance(Millis(60_000));
    let session = lab.session();
    lab.until("another question", |lab| {
        lab.frames()
            .iter()
            .rev()
            .any(|it| it.envelope.kind == FrameKind::UiRequested && it.envelope.seq > first)
    })
    .await;
    let asked = lab.until_kind("ui.requested").await;
    session.answer(asked, None).await.unwrap();
    session.running_turn().await.unwrap();
    let reason = bodies(&lab.frames(), FrameKind::ToolDecided)[0]["verdict"]["denied"]["reason"].clone();
    assert_eq!(reason, "not at 1700000060000");
    let verdict = lab.replay("s1");
    assert!(verdict.identical && verdict.mocked.is_empty(), "{verdict:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_for_a_compaction_is_told_that_it_is_no_turn() {
    let all = hook(HookSpec::at(HookPoint::CompactionBefore), |_| Decision::Compact {
        instructions: None,
        keep: Some(0),
    });
    let keeper = NativeExtension::new("keeper", "1.0.0").hook(all);
    let lab =
        Lab::build().script([ScriptStep::says("one"), ScriptStep::Hangs]).extension(keeper).start().await;
    lab.say("first").await;
    let session = lab.session();
    session.compact("it is getting long").await.unwrap();
    let waiting = tokio::spawn({
        let session = session.clone();
        async move { session.running_turn().await }
    });
    tokio::task::yield_now().await;
    session.cancel("never mind").await.unwrap();
    assert_eq!(waiting.await.unwrap().unwrap_err().code, Code::TurnUnexpected);
    let turn = lab.begin("second");
    lab.until("the second turn", |lab| {
        lab.frames().iter().filter(|it| it.envelope.kind == FrameKind::TurnStarted).count() == 2
    })
    .await;
    session.cancel("enough").await.unwrap();
    turn.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_turn_takes_its_children_with_it() {
    let lab = Lab::build()
        .script([ScriptStep::calls([("helper", json!({ "task": "count" }))]), ScriptStep::says("done")])
        .model("patient", Script::new([ScriptStep::Hangs]))
        .extension(NativeExtension::new("office", "1.0.0").agent(agent("helper", "patient")))
        .start()
        .await;
    let turn = lab.begin("go");
    lab.until("the child's request", |lab| {
        kinds(&lab.frames_of("s1.1.1")).last() == Some(&FrameKind::ModelRequested)
    })
    .await;
    lab.session().cancel("never mind").await.unwrap();
    assert!(matches!(turn.await.unwrap().outcome, TurnOutcome::Cancelled { .. }));
    lab.until("the child's end", |lab| kinds(&lab.frames_of("s1.1.1")).contains(&FrameKind::TurnEnded)).await;
    let child = bodies(&lab.frames_of("s1.1.1"), FrameKind::TurnEnded);
    assert!(child[0]["outcome"]["cancelled"].is_object(), "{child:?}");
    assert_eq!(lab.findings(), Vec::new());
    assert!(lab.frames_of("s1.1.1")[0].envelope.seq == Seq(0) && lab.replay("s1.1.1").identical);
}

/// A gate that asks the host for random bytes and remarks on what it was told.
struct Drawing(u32);

impl Hook for Drawing {
    fn spec(&self) -> HookSpec {
        HookSpec::at(HookPoint::ToolGate)
    }

    fn decide(&self, _: HookInput, host: Arc<dyn Host>) -> Later<Result<Decision, Fault>> {
        let bytes = self.0;
        Box::pin(async move {
            let drawn = host.call(HostCall::Random { bytes }).await?;
            Ok(Decision::Ask { reason: format!("drew {}", drawn.to_text()) })
        })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hooks_of_one_extension_that_ask_at_once_are_told_apart() {
    let lab = Lab::build()
        .script([ScriptStep::calls([("echo", json!({}))]), ScriptStep::says("denied")])
        .unattended()
        .extension(NativeExtension::new("kit", "1.0.0").tool(echo()))
        .extension(NativeExtension::new("drawing", "1.0.0").hook(Drawing(4)).hook(Drawing(2)).replayable())
        .start()
        .await;
    lab.say("go").await;
    let asked = bodies(&lab.frames(), FrameKind::ApprovalRequested).remove(0);
    assert_eq!(asked["reasons"][0]["reason"], "drew 00010203");
    assert_eq!(asked["reasons"][1]["reason"], "drew 0001");
    let verdict = lab.replay("s1");
    assert!(verdict.identical && verdict.mocked.is_empty(), "{verdict:#?}");
}
