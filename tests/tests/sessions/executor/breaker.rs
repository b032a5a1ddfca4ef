//! A tool that keeps failing is suspended for a while by its circuit breaker.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use holdfast_contract::body::FrameKind;
use holdfast_contract::content::Content;
use holdfast_contract::ids::{CallId, Millis};
use holdfast_contract::message::TurnView;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::sandbox::SandboxOptions;
use holdfast_contract::tool::{EffectClass, ToolSpec};
use holdfast_contract::wire::{Host, Later};
use holdfast_home::{BreakerSettings, CallSettings};
use holdfast_lane_native::{NativeExtension, Tool, now};
use holdfast_testkit::pieces::spec;
use holdfast_testkit::story::bodies;
use holdfast_testkit::wasm::{Does, MapVault, lane as wasm_lane, manifest, tool as made};
use holdfast_testkit::{Lab, LabBuilder, ScriptStep};
use serde_json::{Value, json};

/// A tool that does what the test says next.
#[derive(Clone, Default)]
struct Moody {
    mood: Arc<Mutex<Option<Code>>>,
    calls: Arc<AtomicU32>,
}

impl Moody {
    fn is(&self, mood: Option<Code>) {
        *self.mood.lock().unwrap() = mood;
    }
}

impl Tool for Moody {
    fn spec(&self) -> ToolSpec {
        spec("fetch", EffectClass::Network)
    }

    fn call(&self, _: CallId, _: Content, _: TurnView, _: Arc<dyn Host>) -> Later<Result<Content, Fault>> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        now(match *self.mood.lock().unwrap() {
            Some(code) => Err(Fault::new(code, "not today")),
            None => Ok(Content::text("here you are")),
        })
    }
}

fn lab(tool: &Moody, turns: usize) -> LabBuilder {
    let turn = || [ScriptStep::calls([("fetch", json!({}))]), ScriptStep::says("done")];
    let breaker = BreakerSettings { faults: 3, pause_seconds: 30 };
    Lab::build()
        .calls(CallSettings { breaker, ..CallSettings::default() })
        .script((0..turns).flat_map(|_| turn()))
        .extension(NativeExtension::new("web", "1.0.0").tool(tool.clone()))
}

fn codes(lab: &Lab) -> Vec<Value> {
    let returned = bodies(&lab.frames(), FrameKind::ToolReturned);
    returned.iter().map(|body| body["outcome"]["failure"]["code"].clone()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn after_so_many_breakdowns_a_tool_is_left_alone_until_a_trial_succeeds() {
    let tool = Moody::default();
    let lab = lab(&tool, 9).start().await;
    // A result that breaks the tool's promise counts like a timeout, and does not bring the extension down.
    tool.is(Some(Code::ToolTimeout));
    for _ in 0..3 {
        lab.say("fetch").await;
    }
    lab.say("fetch").await;
    assert_eq!(tool.calls.load(Ordering::SeqCst), 3, "the fourth call was not made");
    let refused = bodies(&lab.frames(), FrameKind::ToolReturned)[3]["outcome"]["failure"].clone();
    assert_eq!(refused["code"], "HF-3112");
    let message = refused["message"].as_str().unwrap();
    assert!(message.contains("`fetch` of `web` is suspended for 30 s more"), "{message}");
    assert!(message.contains("3 times in a row, the last time with HF-3104: not today"), "{message}");
    let faults = lab.runtime.recent_faults(Some(&"web".into())).unwrap();
    assert_eq!((faults[0].code, faults[0].phase.as_str()), ("HF-3112", "tool"), "{faults:#?}");

    // The pause is over: one call finds out, and it is not better.
    lab.clock.advance(Millis(30_000));
    lab.say("fetch").await;
    lab.say("fetch").await;
    assert_eq!(tool.calls.load(Ordering::SeqCst), 4, "one trial, and then the pause again");
    lab.clock.advance(Millis(30_000));
    tool.is(None);
    lab.say("fetch").await;
    lab.say("fetch").await;
    assert_eq!(tool.calls.load(Ordering::SeqCst), 6, "it works again");
    assert_eq!(lab.runtime.suspended(), []);
    let late = json!("HF-3104");
    let (alone, fine) = (json!("HF-3112"), Value::Null);
    let all = [&late, &late, &late, &alone, &late, &alone, &fine, &fine];
    assert_eq!(codes(&lab).iter().collect::<Vec<_>>(), all);
    assert_eq!(lab.findings(), []);
    let verdict = lab.replay("s1");
    assert!(verdict.identical && verdict.snapshot_identical, "{verdict:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_tool_says_itself_is_no_breakdown_and_ends_a_row_of_them() {
    let tool = Moody::default();
    let lab = lab(&tool, 8).start().await;
    let moods =
        [Code::ToolTimeout, Code::ToolTimeout, Code::ToolFailed, Code::ToolTimeout, Code::ToolTimeout];
    for mood in moods {
        tool.is(Some(mood));
        lab.say("fetch").await;
    }
    for _ in 0..3 {
        tool.is(Some(Code::ToolFailed));
        lab.say("fetch").await;
    }
    assert_eq!(tool.calls.load(Ordering::SeqCst), 8, "every call was made");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandboxed_tool_that_was_left_alone_replays() {
    let vault = Arc::new(MapVault::default());
    let found = vault.add(&manifest("trap", ""), made("trap", &Does::Traps), &SandboxOptions::small());
    let lane = wasm_lane(&vault);
    let turn = || [ScriptStep::calls([("trap", json!({}))]), ScriptStep::says("done")];
    let breaker = BreakerSettings { faults: 1, pause_seconds: 30 };
    let lab = Lab::build()
        .calls(CallSettings { breaker, ..CallSettings::default() })
        .script((0..2).flat_map(|_| turn()))
        .lane(lane, [found])
        .start()
        .await;
    lab.say("go").await;
    lab.say("go").await;
    assert_eq!(codes(&lab), ["HF-4105", "HF-3112"]);
    let verdict = lab.replay("s1");
    assert!(verdict.identical && verdict.snapshot_identical, "{verdict:#?}");
}
