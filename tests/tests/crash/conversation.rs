//! One long conversation in a process that is killed again and again: sixty turns, forty calls, an agent that is asked, one that takes over
//! and one in the background, a turn that is cancelled, approvals, and an extension that is replaced in the middle. However it is killed,
//! it goes on; nothing with effects runs twice, and the log verifies and replays strictly.
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::examine::Violation;
use crate::killed::{Folder, Kill, POINTS, killed_at_every_hit};
use crate::many::{in_parallel, mix, report};
use crate::plan::{CONVERSATION, Line};
use fail::FailScenario;

#[test]
fn it_is_as_long_as_it_should_be() {
    let _failpoints = FailScenario::setup();
    let prompts: Vec<&str> = CONVERSATION[0].prompts().collect();
    let calls = prompts.iter().filter_map(|prompt| prompt.strip_prefix("do: "));
    let calls =
        calls.map(|plan| plan.split([' ', ';']).filter(|word| !word.is_empty()).count()).sum::<usize>();
    assert_eq!((prompts.len(), calls), (60, 40));
    assert!(CONVERSATION[0].lines.contains(&Line::Reload));
}

/// A conversation for each point, killed over and over, each time when the point is passed for the twelfth time since it was taken up,
/// until all is said.
#[test]
fn killed_over_and_over_at_barriers_it_goes_on() {
    let _failpoints = FailScenario::setup();
    let kills = AtomicUsize::new(0);
    let found = in_parallel(&POINTS, |_, point| {
        let folder = Folder::conversation();
        for life in 1.. {
            if !folder.live(Some(Kill::At(point, 12))).killed {
                break;
            }
            kills.fetch_add(1, Ordering::Relaxed);
            if life % 10 == 0 {
                folder.look()?;
            }
        }
        folder.judge()
    });
    assert!(found.is_empty(), "{}", report(&found));
    let kills = kills.into_inner();
    println!("{kills} kills in {} conversations", POINTS.len());
    assert!(kills >= 40, "only {kills} kills");
}

#[test]
#[ignore = "takes ten minutes; `just crash` runs it"]
fn killed_on_both_sides_of_every_barrier_it_goes_on() {
    let _failpoints = FailScenario::setup();
    killed_at_every_hit(Folder::conversation);
}

#[test]
fn killed_at_fifty_random_moments_it_goes_on() {
    let _failpoints = FailScenario::setup();
    let undisturbed = Folder::conversation();
    let usual = undisturbed.live(None).took;
    undisturbed.judge().unwrap();
    let kills = Mutex::new(0);
    let seeds: Vec<u64> = (0..2_000).collect();
    let found = in_parallel(&seeds, |_, seed| {
        if *kills.lock().unwrap() >= 50 {
            return Ok::<_, Violation>(());
        }
        let folder = Folder::conversation();
        let moment = usual.mul_f64((mix(*seed) % 1_000) as f64 / 1_000.0);
        if folder.live(Some(Kill::After(moment))).killed {
            *kills.lock().unwrap() += 1;
        }
        folder.look()?;
        folder.live(None);
        folder.judge()
    });
    assert!(found.is_empty(), "{}", report(&found));
    assert!(kills.into_inner().unwrap() >= 50);
}
