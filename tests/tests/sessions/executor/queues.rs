//! How many calls run at once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use holdfast_contract::body::FrameKind;
use holdfast_contract::content::Content;
use holdfast_contract::ids::{CallId, Millis};
use holdfast_contract::message::TurnView;
use holdfast_contract::problem::Fault;
use holdfast_contract::tool::{EffectClass, ToolSpec};
use holdfast_contract::wire::{Host, Later};
use holdfast_home::CallSettings;
use holdfast_lane_native::{NativeExtension, Tool};
use holdfast_testkit::pieces::spec;
use holdfast_testkit::story::bodies;
use holdfast_testkit::{Lab, ScriptStep};
use serde_json::json;
use tokio::sync::Semaphore;

/// A tool whose calls end one by one, as the test lets them.
#[derive(Clone)]
struct Gated {
    spec: ToolSpec,
    let_go: Arc<Semaphore>,
    inside: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
    order: Arc<Mutex<Vec<CallId>>>,
}

impl Gated {
    fn new(name: &str, effects: EffectClass, concurrency: Option<u32>) -> Self {
        Self {
            spec: ToolSpec { concurrency, ..spec(name, effects) },
            let_go: Arc::new(Semaphore::new(0)),
            inside: Arc::default(),
            most: Arc::default(),
            order: Arc::default(),
        }
    }
}

impl Tool for Gated {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    fn call(&self, call: CallId, _: Content, _: TurnView, _: Arc<dyn Host>) -> Later<Result<Content, Fault>> {
        let it = self.clone();
        Box::pin(async move {
            let inside = it.inside.fetch_add(1, Ordering::SeqCst) + 1;
            it.most.fetch_max(inside, Ordering::SeqCst);
            it.order.lock().unwrap().push(call);
            it.let_go.acquire().await.unwrap().forget();
            it.inside.fetch_sub(1, Ordering::SeqCst);
            Ok(Content::text(call.to_string()))
        })
    }
}

fn several(tool: &str, count: usize) -> ScriptStep {
    ScriptStep::calls((0..count).map(|_| (tool, json!({}))))
}

async fn runs(lab: &Lab, tool: &Gated, count: usize) {
    lab.until("calls under way", |_| tool.inside.load(Ordering::SeqCst) == count).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_calls_run_at_once_than_a_tool_declares_and_they_wait_in_order() {
    for effects in [EffectClass::Write, EffectClass::Pure] {
        let tool = Gated::new("slow", effects, Some(2));
        let lab = Lab::build()
            .script([several("slow", 6), ScriptStep::says("done")])
            .extension(NativeExtension::new("one", "1.0.0").tool(tool.clone()))
            .start()
            .await;
        let turn = lab.begin("go");
        for started in 2..6 {
            lab.until("the next call started", |_| tool.order.lock().unwrap().len() == started).await;
            tool.let_go.add_permits(1);
        }
        tool.let_go.add_permits(2);
        turn.await.unwrap();
        assert_eq!(tool.most.load(Ordering::SeqCst), 2, "{effects:?}");
        let order: Vec<u32> = tool.order.lock().unwrap().iter().map(|call| call.index).collect();
        assert_eq!(
            order[2..],
            [3, 4, 5, 6],
            "calls start in the order in which they were queued: {effects:?}"
        );
        let verdict = lab.replay("s1");
        assert!(verdict.identical, "{verdict:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_users_word_binds_a_tool_an_extension_and_the_home() {
    let one = |per_tool: &[(&str, u32)], per_extension: &[(&str, u32)], at_once| CallSettings {
        at_once,
        per_tool: per_tool.iter().map(|(name, most)| ((*name).into(), *most)).collect(),
        per_extension: per_extension.iter().map(|(name, most)| ((*name).into(), *most)).collect(),
        ..CallSettings::default()
    };
    let cases = [
        (one(&[("slow", 3)], &[], 64), 3),
        (one(&[], &[("one", 2)], 64), 2),
        (one(&[], &[], 4), 4),
        (one(&[("slow", 9)], &[("one", 7)], 1), 1),
    ];
    for (settings, most) in cases {
        let tool = Gated::new("slow", EffectClass::Read, Some(10));
        let lab = Lab::build()
            .calls(settings)
            .script([several("slow", 8), ScriptStep::says("done")])
            .extension(NativeExtension::new("one", "1.0.0").tool(tool.clone()))
            .start()
            .await;
        let turn = lab.begin("go");
        runs(&lab, &tool, most).await;
        tool.let_go.add_permits(8);
        turn.await.unwrap();
        assert_eq!(tool.most.load(Ordering::SeqCst), most);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_waits_in_vain_says_so_and_was_never_made() {
    let slow = Gated::new("slow", EffectClass::Write, None);
    let mut quick = Gated::new("quick", EffectClass::Write, None);
    quick.spec.timeout = Millis(1_000);
    let lab = Lab::build()
        .calls(CallSettings { at_once: 1, ..CallSettings::default() })
        .script([ScriptStep::calls([("slow", json!({})), ("quick", json!({}))]), ScriptStep::says("done")])
        .extension(NativeExtension::new("one", "1.0.0").tool(slow.clone()).tool(quick.clone()))
        .start()
        .await;
    let turn = lab.begin("go");
    runs(&lab, &slow, 1).await;
    // The turn's timer and those of both calls.
    lab.pass(Millis(1_000), 3).await;
    lab.until_kind("tool.returned").await;
    slow.let_go.add_permits(1);
    turn.await.unwrap();
    let returned = bodies(&lab.frames(), FrameKind::ToolReturned);
    let fault = &returned[0]["outcome"]["failure"];
    assert_eq!(
        (&fault["code"], &fault["message"]),
        (&json!("HF-3113"), &json!("not called: no place was free within 1000 ms"))
    );
    assert_eq!(quick.order.lock().unwrap().len(), 0);
    let verdict = lab.replay("s1");
    assert!(verdict.identical, "{verdict:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_cancelled_leaves_its_place_to_others() {
    let tool = Gated::new("slow", EffectClass::Write, Some(1));
    let lab = Lab::build()
        .script([several("slow", 3), several("slow", 1), ScriptStep::says("done")])
        .extension(NativeExtension::new("one", "1.0.0").tool(tool.clone()))
        .start()
        .await;
    let turn = lab.begin("go");
    runs(&lab, &tool, 1).await;
    lab.session().cancel("enough").await.unwrap();
    turn.await.unwrap();
    tool.let_go.add_permits(1);
    lab.say("again").await;
    let made: Vec<String> = tool.order.lock().unwrap().iter().map(CallId::to_string).collect();
    assert_eq!(made, ["1.1", "2.1"], "those that waited were never made, and the place was free again");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_manifest_bounds_the_tools_of_a_component() {
    let manifest = "id: clock\nname: Clock\nentrypoint: clock.wasm\ntools:\n  tick: {concurrency: 3}\n";
    let parsed = holdfast_contract::manifest::parse("manifest.yaml".as_ref(), manifest).unwrap().manifest;
    let exports = holdfast_contract::exports::Exports {
        tools: vec![ToolSpec::named("tick", "Ticks.")],
        ..Default::default()
    };
    let registered = serde_json::to_value(exports.descriptors(&parsed).unwrap()).unwrap();
    assert_eq!(registered[0]["payload"]["tool"]["concurrency"], 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_users_word_says_how_long_a_tool_may_take() {
    let mut tool = Gated::new("slow", EffectClass::Read, None);
    tool.spec.timeout = Millis(60_000);
    let timeout_ms = [("slow".into(), Millis(1_000))].into_iter().collect();
    let lab = Lab::build()
        .calls(CallSettings { timeout_ms, ..CallSettings::default() })
        .script([several("slow", 1), ScriptStep::says("done")])
        .extension(NativeExtension::new("one", "1.0.0").tool(tool.clone()))
        .start()
        .await;
    let turn = lab.begin("go");
    runs(&lab, &tool, 1).await;
    // The turn's timer and that of the call.
    lab.pass(Millis(1_000), 2).await;
    lab.until_kind("tool.returned").await;
    turn.await.unwrap();
    let returned = bodies(&lab.frames(), FrameKind::ToolReturned);
    assert_eq!(returned[0]["outcome"]["failure"]["message"], "no answer within 1000 ms");
    let verdict = lab.replay("s1");
    assert!(verdict.identical, "{verdict:#?}");
}
