//! A thousand generated sessions on the real runtime: random turns, hooks, decisions, faults, cancels, limits, children, stops and
//! crashes. Each verifies, replays identically, and keeps the rules of `src/generated/check.rs`. Then some of them are changed, in every
//! way of `generated/mutations.rs`, and replay must notice each change where it first shows.
//!
//! A failure prints its world's seed and keeps its database. `HOLDFAST_SEED=17` runs world 17 alone, `HOLDFAST_SEED=17/3` only
//! its session 3, `HOLDFAST_WORLDS=400` as many worlds.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on should stop loudly")]

#[path = "generated/fuzz_corpus.rs"]
mod fuzz_corpus;
#[path = "generated/mutations.rs"]
mod mutations;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use holdfast_contract::content::INLINE_LIMIT;
use holdfast_contract::digest::canonical;
use holdfast_contract::frame::Frame;
use holdfast_contract::ids::{Seq, StreamId};
use holdfast_contract::wire::Lane;
use holdfast_replay::{Mode, replay};
use holdfast_tests::generated::check::{self, Tally};
use holdfast_tests::generated::dice::Dice;
use holdfast_tests::generated::hooks::quiet_planned_panics;
use holdfast_tests::generated::plan::WorldPlan;
use holdfast_tests::generated::scratch::Scratch;
use holdfast_tests::generated::world::World;
use mutations::Session;

const WORLDS: u64 = 40;
const SESSIONS: usize = 25;
/// The world that is kept as a history: its lives end by a stop, a torn log and a crash.
const KEPT_WORLD: u64 = 13;

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
    let (seed, session) =
        asked.split_once('/').map_or((asked.as_str(), None), |(seed, session)| (seed, Some(session)));
    let mut plan = WorldPlan::new(seed.parse().unwrap(), SESSIONS);
    if let Some(session) = session {
        let kept = plan.sessions.swap_remove(session.parse().unwrap());
        plan.sessions = vec![kept];
    }
    println!("{plan:#?}");
    Some(plan)
}

/// So many worlds, or as many as the environment asks for.
fn wanted(usual: u64) -> u64 {
    std::env::var("HOLDFAST_WORLDS").map_or(usual, |worlds| worlds.parse().unwrap())
}

#[test]
fn a_thousand_generated_sessions_replay() {
    quiet_planned_panics();
    let began = Instant::now();
    let asked = asked_for();
    let all = asked.is_none();
    let worlds = wanted(WORLDS);
    let plans = asked
        .map_or_else(|| (0..worlds).map(|seed| WorldPlan::new(seed, SESSIONS)).collect(), |plan| vec![plan]);
    let tally = survey_all(plans).unwrap_or_else(|why| panic!("{why}"));
    println!("{} sessions, {} frames in {:.1?}", tally.sessions, tally.frames, began.elapsed());
    println!("{:#?}", tally.met);
    if all {
        let missed: Vec<_> =
            check::expected().into_iter().filter(|what| !tally.met.contains_key(what)).collect();
        assert!(missed.is_empty(), "the generator no longer reaches {missed:?}");
    }
}

/// The worlds whose sessions are changed, from this seed on.
const CHANGED_WORLDS: u64 = 10;
const FIRST_CHANGED: u64 = 1_000;
/// How many changes of each sort are tried in either flavour, in one session.
const IN_ONE: u64 = 2;

/// Changes that were tried, by sort and flavour, and those that replay did not report as it should.
#[derive(Default)]
struct Trials {
    /// How many of each sort and flavour are wanted by now.
    of_each: u64,
    seed: u64,
    tried: BTreeMap<(&'static str, &'static str), u64>,
    missed: Vec<String>,
}

impl Trials {
    /// What was tried less than three times.
    fn rare(&self) -> Vec<(&'static str, &'static str)> {
        self.tried.iter().filter(|(_, count)| **count < 3).map(|(sort, _)| *sort).collect()
    }

    /// Tries a session's changes, in random order, as many of each sort as are still wanted.
    fn session(
        &mut self,
        scratch: &mut Scratch,
        stream: &StreamId,
        lanes: &[Arc<dyn Lane>],
        dice: &mut Dice,
    ) {
        let frames = scratch.store.frames(stream, ..).unwrap();
        let session = Session { frames: &frames };
        let mut here: BTreeMap<_, u64> = BTreeMap::new();
        let mut places: Vec<usize> = (0..frames.len()).collect();
        while let Some(place) = dice.take(&mut places) {
            for mutation in session.mutations(place) {
                for (flavour, expected) in [("raw", Some(Seq(place as u64))), ("sealed", mutation.sealed)] {
                    let tried = self.tried.entry((mutation.what, flavour)).or_default();
                    let tried_here = here.entry((mutation.what, flavour)).or_default();
                    let Some(expected) = expected.filter(|_| *tried < self.of_each && *tried_here < IN_ONE)
                    else {
                        continue;
                    };
                    let changed =
                        if flavour == "raw" { mutation.raw(&frames) } else { mutation.seal(&frames) };
                    if changed.get(place).is_some_and(|frame| !is_inline(frame)) {
                        continue;
                    }
                    (*tried, *tried_here) = (*tried + 1, *tried_here + 1);
                    scratch.write(stream, place, &changed);
                    if let Err(why) = noticed(scratch, stream, lanes, expected) {
                        let before =
                            check::brief(&frames[place.saturating_sub(3)..frames.len().min(place + 8)]);
                        let after = check::brief(&changed[place..changed.len().min(place + 1)]);
                        let what = format!(
                            "world {}: {} ({flavour}) of {stream} at {place}",
                            self.seed, mutation.what
                        );
                        self.missed.push(format!("{what}: {why}\n{before}changed to\n{after}"));
                    }
                    scratch.write(stream, place, &frames);
                }
            }
        }
        check::replays(&scratch.store, stream, lanes).unwrap();
    }
}

/// Whether a frame's body stands in its row.
fn is_inline(frame: &Frame) -> bool {
    canonical(&frame.body).unwrap().len() <= INLINE_LIMIT
}

fn noticed(
    scratch: &Scratch,
    stream: &StreamId,
    lanes: &[Arc<dyn Lane>],
    expected: Seq,
) -> Result<(), String> {
    let replayed = catch_unwind(AssertUnwindSafe(|| replay(&scratch.store, stream, Mode::Strict, lanes)));
    let verdict = replayed.map_err(|_| "replay panicked")?.map_err(|problem| problem.to_string())?;
    let Some(divergence) = verdict.divergence else {
        return Err(format!("expected at {expected}, reported as identical"));
    };
    if divergence.seq == expected && !verdict.identical {
        return Ok(());
    }
    Err(format!("expected at {expected}, reported at {}: {divergence:#?}", divergence.seq))
}

#[test]
fn five_hundred_mutations_are_noticed() {
    quiet_planned_panics();
    let began = Instant::now();
    let worlds = wanted(CHANGED_WORLDS);
    let mut trials = Trials::default();
    // What happens in a world depends on timing too, so a sort that was hardly tried is looked for in further worlds.
    for world in 0..worlds * 3 {
        if world >= worlds && trials.rare().is_empty() {
            break;
        }
        // Every world adds its share, so that no sort is only tried in the first.
        (trials.of_each, trials.seed) = ((world + 1) * 3 / 2, FIRST_CHANGED + world);
        let mut world = World::new(WorldPlan::new(trials.seed, SESSIONS));
        world.run();
        let (mut scratch, lanes) = (Scratch::of(&world.path), world.lanes());
        let mut dice = Dice::of(&format!("mutations {}", trials.seed));
        // A change in a long session is the same change, at many times the cost.
        for plan in world.plan.sessions.iter().filter(|plan| !plan.id.starts_with("long")) {
            trials.session(&mut scratch, &plan.id.as_str().into(), &lanes, &mut dice);
        }
    }
    let total: u64 = trials.tried.values().sum();
    println!("{total} mutations in {:.1?}", began.elapsed());
    trials.tried.iter().for_each(|((what, flavour), count)| println!("{count:>4} {what}, {flavour}"));
    assert!(trials.missed.is_empty(), "{} of {total}:\n{}", trials.missed.len(), trials.missed.join("\n\n"));
    assert!(total >= 500, "only {total} mutations");
    assert!(trials.rare().is_empty(), "hardly tried: {:?}", trials.rare());
}

/// A world to keep, for `histories.rs`: one with stops, crashes and a long session.
#[test]
#[ignore = "records the history again"]
fn record_a_world() {
    quiet_planned_panics();
    let mut world = World::new(WorldPlan::new(KEPT_WORLD, SESSIONS));
    world.run();
    check::world(&world).unwrap();
    holdfast_testkit::history::pack(&world.path, "world");
}
