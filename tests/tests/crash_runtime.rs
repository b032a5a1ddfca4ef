//! Power loss under the whole runtime: a workload of a thousand frames with tools of every effect class, hooks, approvals, agents and
//! snapshots; a crash at every I/O step of it, and twenty thousand random states of unsynced writes. Whoever was told something was
//! told the truth, no log is unreadable, and no tool with effects runs twice.
//!
//! The same checker is then turned on three planted bugs: a skipped sync, an early acknowledgement, an undeclared tool that is run again.
//! Failpoints are global, so every test here holds a `FailScenario`, and they run one after another.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod crash {
    pub mod examine;
    pub mod ledger;
    pub mod life;
    pub mod plan;
    pub mod states;
    pub mod world;
}

use std::sync::Mutex;
use std::time::Duration;

use crash::examine::{Violation, honest};
use crash::life::Until;
use crash::plan::{LONG, SHORT};
use crash::states::{LINGER, Run, State, every_step, in_parallel, report, take_some};
use fail::FailScenario;
use holdfast_contract::tool::EffectClass;
use holdfast_kernel::Session;
use holdfast_runtime::refold::resolve_pin;
use holdfast_store::Store;
use holdfast_testkit::disk::Survival;
use serde_json::Value;

#[test]
fn no_crash_loses_a_turn_or_repeats_an_effect() {
    let scenario = FailScenario::setup();
    // Without a pause for others, nearly every step of a machine is a commit of its own.
    let run = Run::of(LONG, Duration::ZERO, |_| {});
    assert!(run.frames() >= 1_000, "{} frames", run.frames());

    let mut states = every_step(&run);
    states.extend(run.random_states(20_000));
    let found = run.examine(&states, honest);
    assert!(found.is_empty(), "of {} states:\n{}", states.len(), report(&run, &found));
    scenario.teardown();
}

/// Takes several hundred states up again with the real runtime, until every turn has ended; of each tenth, until everything is said. The
/// second life is then crashed in turn.
#[test]
fn a_second_life_repeats_nothing() {
    let scenario = FailScenario::setup();
    let run = Run::of(LONG, LINGER, |_| {});
    let states = take_some(run.random_states(100).into_iter().chain(every_step(&run)), 400);
    let again = Mutex::new(0);
    let found = in_parallel(&states, |index, state| {
        let until = if index % 10 == 0 { Until::AllIsSaid } else { Until::TurnsEnd };
        let second = run.resume(*state, EffectClass::default(), until)?;
        *again.lock().unwrap() += second.run_again;
        second.examine_some_crashes(*state)
    });
    assert!(found.is_empty(), "of {} states:\n{}", states.len(), report(&run, &found));
    let again = again.into_inner().unwrap();
    println!("{} second lives, {again} calls without effects were run again", states.len());
    assert!(again > 0, "no crash was in the middle of a call without effects");
    scenario.teardown();
}

/// The states right after each note in the ledger, with nothing that was not synced.
fn after_each_note(run: &Run) -> Vec<State> {
    run.ledger.steps().into_iter().map(|step| (step, Survival::NothingUnsynced)).collect()
}

#[test]
fn a_skipped_sync_is_noticed() {
    let scenario = FailScenario::setup();
    let syncing = Run::of(SHORT, LINGER, |_| {});
    let found = syncing.examine(&after_each_note(&syncing), honest);
    assert!(found.is_empty(), "{}", report(&syncing, &found));

    let skipping = Run::of(SHORT, LINGER, |disk| disk.ignore_syncs(true));
    let found = skipping.examine(&after_each_note(&skipping), honest);
    let lost = found.iter().filter(|(_, violation)| matches!(violation, Violation::Lost { .. })).count();
    let unrecorded = found.iter().filter(|(_, violation)| matches!(violation, Violation::Unrecorded { .. })).count();
    assert!(lost + unrecorded > 0, "{}", report(&skipping, &found));
    scenario.teardown();
}

#[test]
fn an_early_acknowledgement_is_noticed() {
    let scenario = FailScenario::setup();
    fail::cfg("store::ack_early", "return").unwrap();
    let hasty = Run::of(SHORT, LINGER, |_| {});
    let found = hasty.examine(&after_each_note(&hasty), honest);
    let lost = found.iter().filter(|(_, violation)| matches!(violation, Violation::Lost { .. })).count();
    assert!(lost > 0, "{}", report(&hasty, &found));
    scenario.teardown();
}

/// A kernel that takes what nobody declared for harmless: each machine is told so before it recovers.
fn trusts_the_undeclared(store: &Store, session: Session) -> Session {
    let mut state = serde_json::to_value(&session).unwrap();
    trust(&mut state);
    let mut trusting: Session = serde_json::from_value(state).unwrap();
    trusting.pins().for_each(|pin| resolve_pin(store, pin).unwrap());
    trusting
}

fn trust(json: &mut Value) {
    match json {
        Value::Array(items) => items.iter_mut().for_each(trust),
        Value::Object(fields) => {
            if fields.get("effects").is_some_and(|effects| effects == "unknown") {
                fields.insert("effects".to_owned(), "pure".into());
            }
            fields.values_mut().for_each(trust);
        }
        _ => {}
    }
}

#[test]
fn running_an_undeclared_tool_again_is_noticed() {
    let scenario = FailScenario::setup();
    let run = Run::of(SHORT, LINGER, |_| {});
    let states = every_step(&run);
    let found = run.examine(&states, honest);
    assert!(found.is_empty(), "{}", report(&run, &found));

    // In the machine's first step, and in a whole second life.
    let found = run.examine(&states, trusts_the_undeclared);
    let again = found.iter().find(|(_, violation)| matches!(violation, Violation::RunsAgain { .. }));
    let (state, _) = again.unwrap_or_else(|| panic!("{}", report(&run, &found)));
    let trusting = Run::in_world(SHORT, LINGER, EffectClass::Read, |_| {});
    let found = in_parallel(&take_some(every_step(&trusting), 200), |_, state| {
        trusting.resume(*state, EffectClass::Read, Until::TurnsEnd).map(drop)
    });
    let twice = found.iter().any(|(_, violation)| matches!(violation, Violation::RanTwice { .. }));
    assert!(twice, "{state:?} {}", report(&trusting, &found));
    scenario.teardown();
}
