//! A thousand generated sessions on the real runtime: random turns, hooks, decisions, faults, cancels, limits, children, stops and
//! crashes. Each verifies, replays identically, and keeps the rules of `generated/check.rs`.
//!
//! A failure prints its world's seed and keeps its database. `HOLDFAST_SEED=17` runs world 17 alone, `HOLDFAST_SEED=17/3` only
//! its session 3, `HOLDFAST_WORLDS=400` ten times as many worlds.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on should stop loudly")]

mod generated {
    pub mod check;
    pub mod dice;
    pub mod hooks;
    pub mod plan;
    pub mod scratch;
    pub mod tools;
    pub mod world;
}

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use generated::check::{self, Tally};
use generated::hooks::PANIC;
use generated::plan::WorldPlan;
use generated::world::World;

const WORLDS: u64 = 40;
const SESSIONS: usize = 25;

/// Extensions panic on purpose here; those panics are not worth a line each.
fn quiet_planned_panics() {
    let loud = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if info.payload_as_str() != Some(PANIC) {
            loud(info);
        }
    }));
}

/// Lives through a world and checks what it has recorded; on failure says how to see it again.
fn survey(plan: WorldPlan) -> Result<Tally, String> {
    let seed = plan.seed;
    let mut world = World::new(plan);
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        world.run();
        check::world(&world)
    }));
    let outcome = outcome.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        Err(text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default())
    });
    outcome.map_err(|why| {
        let folder = world.folder.keep();
        format!("HOLDFAST_SEED={seed}, database in {}\n{why}", folder.display())
    })
}

/// Runs worlds on all processors and gives what they met, or how they failed.
fn survey_all(plans: Vec<WorldPlan>) -> Result<Tally, String> {
    let (next, tally, failures) = (AtomicU64::new(0), Mutex::new(Tally::default()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                while let Some(plan) = plans.get(next.fetch_add(1, Ordering::Relaxed) as usize) {
                    match survey(plan.clone()) {
                        Ok(met) => tally.lock().unwrap().add(met),
                        Err(why) => failures.lock().unwrap().push(why),
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    if failures.is_empty() { Ok(tally.into_inner().unwrap()) } else { Err(failures.join("\n\n")) }
}

/// The world, and perhaps the one session of it, that the environment asks for.
fn asked_for() -> Option<WorldPlan> {
    let asked = std::env::var("HOLDFAST_SEED").ok()?;
    let (seed, session) = asked.split_once('/').map_or((asked.as_str(), None), |(seed, session)| (seed, Some(session)));
    let mut plan = WorldPlan::new(seed.parse().unwrap(), SESSIONS);
    if let Some(session) = session {
        let kept = plan.sessions.swap_remove(session.parse().unwrap());
        plan.sessions = vec![kept];
    }
    println!("{plan:#?}");
    Some(plan)
}

#[test]
fn a_thousand_generated_sessions_replay() {
    quiet_planned_panics();
    let began = Instant::now();
    let asked = asked_for();
    let all = asked.is_none();
    let worlds = std::env::var("HOLDFAST_WORLDS").map_or(WORLDS, |worlds| worlds.parse().unwrap());
    let plans = asked.map_or_else(|| (0..worlds).map(|seed| WorldPlan::new(seed, SESSIONS)).collect(), |plan| vec![plan]);
    let tally = survey_all(plans).unwrap_or_else(|why| panic!("{why}"));
    println!("{} sessions, {} frames in {:.1?}", tally.sessions, tally.frames, began.elapsed());
    println!("{:#?}", tally.met);
    if all {
        let missed: Vec<_> = check::expected().into_iter().filter(|what| !tally.met.contains_key(what)).collect();
        assert!(missed.is_empty(), "the generator no longer reaches {missed:?}");
    }
}
