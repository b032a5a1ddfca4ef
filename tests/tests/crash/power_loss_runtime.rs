//! Power loss under the whole runtime: a workload of a thousand frames with tools of every effect class, hooks, approvals, agents and
//! snapshots; a crash at every I/O step of it, and twenty thousand random states of unsynced writes. What was acknowledged is
//! told the truth, no log is unreadable, and no tool with effects runs twice.
//!
//! The same checker is then turned on three planted bugs: a skipped sync, an early acknowledgement, an undeclared tool that is run again.
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::examine::{Violation, honest};
use crate::life::Until;
use crate::many::{in_parallel, report, spread};
use crate::plan::{LONG, PLAIN, SHORT};
use crate::states::{Run, Setting, State};
use fail::FailScenario;
use holdfast_contract::tool::EffectClass;
use holdfast_kernel::Session;
use holdfast_runtime::rebuild::resolve_pin;
use holdfast_store::Store;
use holdfast_testkit::disk::Survival;
use serde_json::Value;

/// The workload four times, each with commits of another size: with and without a pause for others, on a fast and on a slow disk.
#[test]
fn no_crash_loses_a_turn_or_repeats_an_effect() {
    let scenario = FailScenario::setup();
    let long = Setting::of(LONG);
    let settings = [
        long,
        Setting { linger: Duration::ZERO, ..long },
        Setting { sync: Duration::from_millis(1), ..long },
        Setting { linger: Duration::ZERO, sync: Duration::from_millis(1), ..long },
    ];
    for (setting, seeds) in settings.into_iter().zip((0..).step_by(5_000)) {
        let run = Run::of(setting);
        assert!(run.frames() >= 1_000, "{} frames", run.frames());
        let mut states = run.every_step();
        states.extend(run.random_states(seeds..seeds + 5_000));
        let found = run.examine(&states, honest);
        assert!(found.is_empty(), "of {} states:\n{}", states.len(), report(&found));
    }
    scenario.teardown();
}

/// Takes three hundred states up again with the real runtime, until every turn has ended; each tenth, until everything is said. The
/// second life is then crashed in turn.
#[test]
fn a_second_life_repeats_nothing() {
    let scenario = FailScenario::setup();
    let run = Run::of(Setting { linger: Duration::ZERO, ..Setting::of(LONG) });
    let mut states = spread(&run.every_step(), 200);
    states.extend(run.random_states(0..100));
    let again = AtomicUsize::new(0);
    let found = in_parallel(&states, |index, state| {
        let until = if index % 10 == 0 { Until::AllIsSaid } else { Until::TurnsEnd };
        let second = run.resume(*state, until)?;
        again.fetch_add(second.run_again, Ordering::Relaxed);
        second.crash(index as u64)
    });
    assert!(found.is_empty(), "of {} states:\n{}", states.len(), report(&found));
    let again = again.into_inner();
    println!("{} second lives; {again} calls without effects were run again", states.len());
    assert!(again > 0, "no crash came in the middle of a call without effects");
    scenario.teardown();
}

/// The states right after each note in the ledger, with nothing that was not synced.
fn after_each_note(run: &Run) -> Vec<State> {
    run.ledger.steps().into_iter().map(|step| (step, Survival::NothingUnsynced)).collect()
}

/// Whether something was told or done on the strength of a frame that is gone.
fn breaks_the_barrier((_, violation): &(State, Violation)) -> bool {
    matches!(violation, Violation::Lost { .. } | Violation::Unrecorded { .. })
}

#[test]
fn a_skipped_sync_is_noticed() {
    let scenario = FailScenario::setup();
    let syncing = Run::of(Setting::of(SHORT));
    let found = syncing.examine(&after_each_note(&syncing), honest);
    assert!(found.is_empty(), "{}", report(&found));

    let skipping = Run::of(Setting { ignore_syncs: true, ..Setting::of(SHORT) });
    let found = skipping.examine(&after_each_note(&skipping), honest);
    assert!(found.iter().any(breaks_the_barrier), "{}", report(&found));
    scenario.teardown();
}

#[test]
fn an_early_acknowledgement_is_noticed() {
    let scenario = FailScenario::setup();
    fail::cfg("store::ack_early", "return").unwrap();
    // Whether something is told before the sync that it was acknowledged ahead of depends on the machine: some runs break nothing.
    let is_noticed = (0..20).any(|_| {
        let hasty = Run::of(Setting::of(PLAIN));
        hasty.examine(&after_each_note(&hasty), honest).iter().any(breaks_the_barrier)
    });
    assert!(is_noticed);
    scenario.teardown();
}

/// A kernel that takes what nobody declared for harmless: each machine is told so before it recovers.
fn trusts_the_undeclared(store: &Store, session: Session) -> Session {
    let mut state = holdfast_contract::content::to_whole_json(&session).unwrap();
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

/// Planted twice: into the machines that recover, where the first step shows it; and into the whole runtime, which then really runs
/// the tool again.
#[test]
fn running_an_undeclared_tool_again_is_noticed() {
    let scenario = FailScenario::setup();
    let run = Run::of(Setting::of(SHORT));
    let states = run.every_step();
    let found = run.examine(&states, honest);
    assert!(found.is_empty(), "{}", report(&found));
    let found = run.examine(&states, trusts_the_undeclared);
    let again = found.iter().filter(|(_, violation)| matches!(violation, Violation::RunsAgain { .. }));
    assert!(again.count() > 0, "{}", report(&found));

    let trusting = Run::of(Setting { undeclared: EffectClass::Read, ..Setting::of(SHORT) });
    let found = in_parallel(&spread(&trusting.every_step(), 100), |_, state| {
        trusting.resume(*state, Until::TurnsEnd).map(drop)
    });
    let twice = found.iter().filter(|(_, violation)| matches!(violation, Violation::RanTwice { .. }));
    assert!(twice.count() > 0, "{}", report(&found));
    scenario.teardown();
}
