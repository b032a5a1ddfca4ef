//! `kill -9` under the bus: real processes, real files, real syncs, and a ledger outside as the witness. Twenty thousand events over fifty
//! topics and twenty subscribers, whose handlers fail, hang, panic and kill the process themselves; killed at a hundred random moments
//! and on both sides of every barrier. Every acknowledged event reaches every subscriber, order per key holds, repeats are marked, and
//! the dead letters are exactly those that always fail.

#![allow(clippy::unwrap_used)]

mod killed {
    pub mod judge;
    pub mod ledger;
    pub mod life;
    pub mod plan;
}

use std::time::Duration;

use killed::judge::judge;
use killed::life::{End, Folder, Kill, POINTS, count, live_for_parent};
use killed::plan::mix;

#[test]
fn twenty_thousand_events_outlive_a_hundred_random_kills() {
    const EVENTS: u64 = 20_000;
    const KILLS: u64 = 100;
    let folder = Folder::new(EVENTS);
    let (mut kills, mut by_handlers) = (0, 0);
    for life in 0.. {
        if kills == KILLS {
            break;
        }
        // Each life has its share to publish, so that there is something to kill in every one.
        let until = (EVENTS * (kills + 1) / (KILLS + 10)).min(EVENTS);
        let moment = Duration::from_millis(20 + mix(life) % 180);
        let end = folder.live(until, Some(Kill::After(moment)));
        kills += u64::from(end == End::Killed);
        by_handlers += u64::from(end == End::KilledByHandler);
    }
    folder.live_to_the_end();
    let happened = folder.happened();
    println!("{kills} kills, {by_handlers} more by handlers: {:?}", count(&happened));
    assert_eq!(judge(&folder), Ok(()));
}

#[test]
fn killed_on_both_sides_of_every_barrier() {
    for (place, point) in POINTS.into_iter().enumerate() {
        for round in 0..4 {
            let folder = Folder::new(300);
            let hit = 1 + (mix((place * 10 + round) as u64) % [2, 12, 40, 90][round]) as usize;
            let killed = folder.live(300, Some(Kill::At(point, hit))) == End::Killed;
            folder.live(300, Some(Kill::At(POINTS[(place + round) % POINTS.len()], 1 + round)));
            folder.live_to_the_end();
            assert_eq!(judge(&folder), Ok(()), "killed at {point}, hit {hit}");
            assert!(killed || round > 1, "{point} was not passed {hit} times");
        }
    }
}

#[test]
fn an_early_acknowledgement_is_noticed() {
    let noticed = (1..=12).filter_map(|round| {
        let folder = Folder::hasty(200);
        folder.live(200, Some(Kill::At("store::before_commit", 4 * round)));
        folder.live_to_the_end();
        judge(&folder).err()
    });
    let noticed: Vec<_> = noticed.collect();
    println!("{noticed:?}");
    assert!(noticed.iter().any(|violation| violation.ends_with("is lost")), "{noticed:?}");
}

/// Not a test: what the tests start in another process.
#[test]
#[ignore = "started by the tests themselves"]
fn lives_for_its_parent() {
    live_for_parent();
}
