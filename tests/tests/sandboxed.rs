//! Sandboxed extensions in a session: what an instance remembers, which calls share one, and that a replay has it the same.

use std::sync::Arc;

use holdfast_contract::problem::Code;
use holdfast_contract::sandbox::SandboxOptions;
use holdfast_contract::tool::EffectClass;
use holdfast_lane_native::Extension;
use holdfast_testkit::pieces::tool as native_tool;
use holdfast_testkit::wasm::{Gates, MapVault, gate, lane, manifest};
use holdfast_testkit::{Lab, LabBuilder, Step};
use serde_json::json;

/// A lab with a native no-op tool and a sandboxed gate, whose model calls the tool so many times at once, so many times.
fn lab(component: Vec<u8>, at_once: usize, rounds: usize) -> LabBuilder {
    let options = SandboxOptions::small();
    let vault = Arc::new(MapVault::default());
    let found = vault.add(&manifest("gate", ""), component, &options);
    let calls: Vec<_> = (0..at_once).map(|index| ("noop", json!({ "n": index }))).collect();
    let steps = (0..rounds).map(|_| Step::calls(calls.clone())).chain([Step::says("done")]);
    Lab::build()
        .lane(lane(&vault), [found])
        .extension(
            Extension::new("kit", "1.0.0")
                .tool(native_tool("noop", EffectClass::Pure, |_| json!("ran")))
                .replayable(),
        )
        .script(steps.collect::<Vec<_>>())
}

fn denied(lab: &Lab) -> usize {
    lab.story().matches("it was asked too often").count()
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
