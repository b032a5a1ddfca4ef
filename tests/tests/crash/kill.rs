//! `kill -9` under the whole runtime: real processes, real files, real syncs, and a ledger outside as the witness. Killed on both sides of
//! every barrier and at two hundred random moments, some of them again while they recover; then recovered and run to the end. Everything
//! that was acknowledged holds, no tool with effects runs twice, and the log verifies and replays.
//!
//! The same checker is then turned on two planted bugs: an early acknowledgement, and an undeclared tool that is run again. (A skipped
//! sync does not show here: the kernel keeps what a killed process wrote. `power_loss_runtime` has it.)
use std::collections::BTreeSet;
use std::sync::Mutex;

use crate::examine::Violation;
use crate::killed::{Folder, Kill, Planted, killed_at_every_hit};
use crate::many::{in_parallel, mix, report};
use fail::FailScenario;

#[test]
fn killed_on_both_sides_of_every_barrier() {
    let _failpoints = FailScenario::setup();
    killed_at_every_hit(Folder::honest);
}

#[test]
fn killed_at_two_hundred_random_moments() {
    let _failpoints = FailScenario::setup();
    // How long a life takes beside others, as the ones that are killed live.
    let took = Mutex::new(Vec::new());
    in_parallel(&[(); 10], |_, ()| {
        let undisturbed = Folder::honest().live(None);
        took.lock().unwrap().push(undisturbed.took);
        Ok(())
    });
    let mut took = took.into_inner().unwrap();
    took.sort();
    let usual = took[took.len() / 2];
    let moment = |seed: u64| Kill::After(usual.mul_f64((mix(seed) % 1_000) as f64 / 1_000.0));
    // How much had happened before each kill. A process that was done before does not count as killed; another takes its place.
    let kills = Mutex::new(Vec::new());
    let seeds: Vec<u64> = (0..8_000).collect();
    let found = in_parallel(&seeds, |_, seed| {
        if kills.lock().unwrap().len() < 200 {
            let again = (seed % 4 == 0).then(|| moment(seed + 1_000));
            let killed = Folder::honest().kill_and_recover(moment(*seed), again)?;
            kills.lock().unwrap().extend(killed);
        }
        Ok(())
    });
    assert!(found.is_empty(), "{}", report(&found));
    let kills = kills.into_inner().unwrap();
    let different = kills.iter().collect::<BTreeSet<_>>().len();
    println!("{} kills within {usual:?}, at {different} different lengths of the ledger", kills.len());
    assert!(kills.len() >= 200, "only {} were killed", kills.len());
    assert!(different >= 10, "the moments are not spread: {kills:?}");
}

#[test]
fn an_early_acknowledgement_is_noticed() {
    let _failpoints = FailScenario::setup();
    let kills: Vec<Kill> = (1..=20).map(|hit| Kill::At("store::before_commit", hit)).collect();
    let found = in_parallel(&kills, |_, kill| {
        let folder = Folder::new(Planted::EarlyAcknowledgement);
        folder.live(Some(*kill));
        folder.look()
    });
    let noticed =
        |violation: &Violation| matches!(violation, Violation::Lost { .. } | Violation::Unrecorded { .. });
    assert!(found.iter().any(|(_, violation)| noticed(violation)), "{}", report(&found));
}

#[test]
fn running_an_undeclared_tool_again_is_noticed() {
    let _failpoints = FailScenario::setup();
    let kills: Vec<Kill> = (1..=10).map(|hit| Kill::At("driver::after_tool", hit)).collect();
    let found = in_parallel(&kills, |_, kill| {
        let folder = Folder::new(Planted::TrustInTheUndeclared);
        folder.live(Some(*kill));
        folder.live(None);
        folder.judge()
    });
    let twice = |violation: &Violation| matches!(violation, Violation::RanTwice { .. });
    assert!(found.iter().any(|(_, violation)| twice(violation)), "{}", report(&found));
}
