//! Sandboxed extensions in a session: what an instance remembers, which calls share one, and that a replay has it the same.
use std::sync::{Arc, Mutex};

use holdfast_contract::body::Body;
use holdfast_contract::content::Content;
use holdfast_contract::hook::{Decision, HookInput, HookPoint, HookSpec};
use holdfast_contract::problem::Code;
use holdfast_contract::sandbox::SandboxOptions;
use holdfast_contract::session_frames::ToolReturned;
use holdfast_contract::tool::{EffectClass, ToolOutcome};
use holdfast_lane_native::{FnHook, NativeExtension};
use holdfast_testkit::pieces::tool as native_tool;
use holdfast_testkit::wasm::{Gates, MapVault, gate, lane, manifest};
use holdfast_testkit::{Lab, LabBuilder, ScriptStep};
use serde_json::json;

/// A lab with a native no-op tool and a sandboxed gate, whose model calls the tool so many times at once, so many times.
fn lab(component: Vec<u8>, at_once: usize, rounds: usize) -> LabBuilder {
    let options = SandboxOptions::small();
    let vault = Arc::new(MapVault::default());
    let found = vault.add(&manifest("gate", ""), component, &options);
    let calls: Vec<_> = (0..at_once).map(|index| ("noop", json!({ "n": index }))).collect();
    let steps = (0..rounds).map(|_| ScriptStep::calls(calls.clone())).chain([ScriptStep::says("done")]);
    Lab::build()
        .lane(lane(&vault), [found])
        .extension(
            NativeExtension::new("kit", "1.0.0")
                .tool(native_tool("noop", EffectClass::Pure, |_| json!("ran")))
                .replayable(),
        )
        .script(steps.collect::<Vec<_>>())
}

fn denied(lab: &Lab) -> usize {
    lab.story().matches("it was asked too often").count()
}

fn bodies(lab: &Lab) -> Vec<Body> {
    lab.frames().iter().map(|frame| lab.runtime.store().body(frame).unwrap()).collect()
}

async fn replays(lab: &Lab) {
    let verdict = lab.replay("s1");
    assert!(verdict.identical && verdict.snapshot_identical, "{verdict:#?}");
    assert!(verdict.mocked.is_empty(), "{:?}", verdict.mocked);
    assert!(lab.findings().is_empty(), "{:?}", lab.findings());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gate_remembers_within_a_turn_and_not_beyond() {
    for (at_once, rounds) in [(1, 4), (4, 1), (2, 2)] {
        let lab = lab(gate(&Gates::AllowsTimes(2), false), at_once, rounds).start().await;
        lab.say("go").await;
        let once = denied(&lab);
        assert!(once > 0, "{at_once} at once, {rounds} rounds:\n{}", lab.story());
        replays(&lab).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_wait_at_the_same_time_have_instances_of_their_own() {
    let lab = lab(gate(&Gates::AllowsTimes(2), true), 3, 2).start().await;
    lab.say("go").await;
    assert_eq!(denied(&lab), 0, "each of the three instances was asked twice:\n{}", lab.story());
    replays(&lab).await;

    let lab = self::lab(gate(&Gates::AllowsTimes(2), true), 1, 3).start().await;
    lab.say("go").await;
    assert!(denied(&lab) > 0, "one instance was asked three times:\n{}", lab.story());
    replays(&lab).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gate_that_breaks_denies_and_stays() {
    for (does, code) in [(Gates::Traps, Code::ComponentTrap), (Gates::Loops, Code::FuelExhausted)] {
        for waits in [false, true] {
            let lab = lab(gate(&does, waits), 2, 3).start().await;
            lab.say("go").await;
            lab.runtime.settled().await.unwrap();
            let all = lab.runtime.extensions().await.unwrap();
            let it = all.iter().find(|it| it.id.as_str() == "gate").unwrap();
            assert!(it.active.is_some(), "a guard is not disabled: {it:#?}");
            assert_eq!(it.fault.as_ref().map(|fault| fault.code), Some(code), "but reported: {it:#?}");
            assert_eq!(lab.ledger.count("tool"), 0, "nothing ran:\n{}", lab.story());
            replays(&lab).await;
        }
    }
}

/// Three gates that each allow two calls, asked about four calls at once.
#[tokio::test(flavor = "multi_thread")]
async fn gates_of_several_calls_hear_them_in_their_order() {
    let vault = Arc::new(MapVault::default());
    let component = gate(&Gates::AllowsTimes(2), false);
    let add = |id: &str| vault.add(&manifest(id, ""), component.clone(), &SandboxOptions::small());
    let found: Vec<_> = ["one", "two", "three"].map(add).into();
    let calls: Vec<_> = (0..4).map(|index| ("noop", json!({ "n": index }))).collect();
    let noop = native_tool("noop", EffectClass::Pure, |given| given["n"].clone());
    let lab = Lab::build()
        .lane(lane(&vault), found)
        .extension(NativeExtension::new("kit", "1.0.0").tool(noop).replayable())
        .script(vec![ScriptStep::calls(calls), ScriptStep::says("done")])
        .start()
        .await;
    lab.say("go").await;
    assert_eq!(denied(&lab), 3 * 2, "each denies the third and the fourth:\n{}", lab.story());
    let ran: Vec<_> = bodies(&lab)
        .into_iter()
        .filter_map(|body| match body {
            Body::ToolReturned(ToolReturned { outcome: ToolOutcome::Result(result), .. }) => Some(result),
            _ => None,
        })
        .collect();
    assert_eq!(ran, [Content::new(json!(0)), Content::new(json!(1))], "the first and the second ran");
    replays(&lab).await;
}

/// What two hooks, of one extension or of two, were asked about two calls, in the order in which they were.
async fn order_of_asking(extensions: [&str; 2]) -> (Vec<(usize, u64)>, Lab) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let hook = |number: usize| {
        let asked = asked.clone();
        FnHook(HookSpec::at(HookPoint::ToolGate), move |input: &HookInput| {
            let call = input.call.as_ref().and_then(|call| call.arguments.value()["n"].as_u64());
            asked.lock().unwrap().push((number, call.unwrap()));
            Ok(Decision::Allow)
        })
    };
    let [first, second] = extensions;
    let builder = if first == second {
        Lab::build().extension(NativeExtension::new(first, "1.0.0").hook(hook(1)).hook(hook(2)))
    } else {
        Lab::build()
            .extension(NativeExtension::new(first, "1.0.0").hook(hook(1)))
            .extension(NativeExtension::new(second, "1.0.0").hook(hook(2)))
    };
    let noop = native_tool("noop", EffectClass::Pure, |_| json!("ran"));
    let calls = (0..2).map(|index| ("noop", json!({ "n": index }))).collect::<Vec<_>>();
    let lab = builder
        .extension(NativeExtension::new("kit", "1.0.0").tool(noop))
        .script(vec![ScriptStep::calls(calls), ScriptStep::says("done")])
        .start()
        .await;
    lab.say("go").await;
    let asked = asked.lock().unwrap().clone();
    (asked, lab)
}

/// Each gate is asked about all calls before the next one is. Two gates of one extension share its instance, and hear what the
/// frames say in the order of the frames. The frames are the same.
#[tokio::test(flavor = "multi_thread")]
async fn gates_are_asked_gate_by_gate_unless_they_share_an_instance() {
    let (apart, two) = order_of_asking(["a", "b"]).await;
    assert_eq!(apart, [(1, 0), (1, 1), (2, 0), (2, 1)]);
    let (shared, one) = order_of_asking(["a", "a"]).await;
    assert_eq!(shared, [(1, 0), (2, 0), (1, 1), (2, 1)]);
    let agreed = |lab: &Lab| -> Vec<usize> {
        let hooks = bodies(lab).into_iter().filter_map(|body| match body {
            Body::HookAgreed(agreed) => Some(agreed.hooks.len()),
            _ => None,
        });
        hooks.collect()
    };
    assert_eq!(agreed(&two), [2, 2], "{}", two.story());
    assert_eq!(agreed(&one), [2, 2], "{}", one.story());
}
