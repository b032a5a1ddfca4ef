//! One run of the workload on a simulated disk, and the states that a power loss could have left of it.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use holdfast_contract::digest::Digest;
use holdfast_contract::problem::Problem;
use holdfast_contract::tool::EffectClass;
use holdfast_runtime::replay::{Mode, replay};
use holdfast_store::{Options, Store};
use holdfast_testkit::FakeClock;
use holdfast_testkit::disk::{Disk, Survival};
use rusqlite::{Connection, OpenFlags};

use super::examine::{Found, Meddle, Recorded, Violation, honest, ran_once, read, recorded};
use super::ledger::{DiskLedger, Noted, Nobody, Outside};
use super::life::{Until, live};
use super::plan::Talk;
use super::world::World;

const DATABASE: &str = "holdfast.db";

/// How long a frame that nobody waits for stays in memory, as the store has it.
pub const LINGER: Duration = Duration::from_millis(2);

/// A moment of a crash, and what it kept of the unsynced writes.
pub type State = (usize, Survival);

/// A workload that ran to its end, with what happened in the world meanwhile.
pub struct Run {
    talks: &'static [Talk],
    pub disk: Disk,
    pub ledger: Arc<DiskLedger>,
    written: Recorded,
}

fn open(disk: &Disk, linger: Duration) -> Result<Store, Problem> {
    let options = Options { vfs: Some(disk.vfs_name().to_owned()), linger, readers: 2, ..Options::default() };
    Store::open(Path::new(DATABASE), options)
}

impl Run {
    /// Runs the workload; `at_start` is called once the database is there.
    pub fn of(talks: &'static [Talk], linger: Duration, at_start: impl FnOnce(&Disk)) -> Self {
        Self::in_world(talks, linger, EffectClass::default(), at_start)
    }

    /// The same where the undeclared tool is taken for something else.
    pub fn in_world(
        talks: &'static [Talk],
        linger: Duration,
        undeclared: EffectClass,
        at_start: impl FnOnce(&Disk),
    ) -> Self {
        let disk = Disk::new();
        open(&disk, LINGER).unwrap().close();
        at_start(&disk);
        let store = open(&disk, linger).unwrap();
        let ledger = Arc::new(DiskLedger::of(&disk));
        let world = World { undeclared, ..World::new(ledger.clone()) };
        let threads = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
        threads.block_on(live(&world, store.clone(), Arc::new(FakeClock::default()), talks, Until::AllIsSaid)).unwrap();
        drop(threads);
        let written = recorded(&store).unwrap();
        store.close();
        Self { talks, disk, ledger, written }
    }

    /// How many frames were written.
    pub fn frames(&self) -> usize {
        self.written.values().map(Vec::len).sum()
    }

    /// Random crashes, the same in every run of the same length.
    pub fn random_states(&self, count: u64) -> Vec<State> {
        let steps = self.disk.step() as u64 + 1;
        (0..count).map(|state| ((mix(state) % steps) as usize, Survival::Random(state << 32))).collect()
    }

    /// Opens every state and holds it against the ledger. The content of each state is read whole, as SQLite sees it after its own
    /// recovery. Most crashes come down to the same few contents; what was met before, byte for byte, is not verified and
    /// recovered again, but each state is held against what had happened by its own step.
    pub fn examine(&self, states: &[State], meddle: Meddle) -> Vec<(State, Violation)> {
        let known: Mutex<HashMap<Digest, Result<Arc<Found>, Violation>>> = Mutex::default();
        let violations = in_parallel(states, |_, (step, survival)| {
            let left = self.disk.crash_at(*step, *survival);
            let store = open(&left, LINGER)?;
            let content = content_of(&left)?;
            let met = known.lock().unwrap().get(&content).cloned();
            let found = met.unwrap_or_else(|| {
                let t=std::time::Instant::now();
                let found = read(&store, Some(&self.written), meddle).map(Arc::new);
                if content.to_string().starts_with('0') { eprintln!("read took {:?}", t.elapsed()); }
                known.lock().unwrap().insert(content, found.clone());
                found
            });
            store.close();
            found?.bears_out(&self.ledger.until(*step))
        });
        let known = known.into_inner().unwrap();
        let again: usize = known.values().flatten().map(|found| found.run_again()).sum();
        let (steps, frames) = (self.disk.step(), self.frames());
        println!(
            "{frames} frames, {steps} steps: {} states came down to {} contents, in which {again} calls are run again",
            states.len(),
            known.len()
        );
        violations
    }

    /// Takes a state up again with the real runtime, and holds both lives against the ledger.
    pub fn resume(&self, state: State, undeclared: EffectClass, until: Until) -> Result<SecondLife, Violation> {
        let (step, survival) = state;
        let left = self.disk.crash_at(step, survival);
        let first = self.ledger.until(step);
        let store = open(&left, LINGER)?;
        let before = read(&store, Some(&self.written), honest)?;
        let ledger = Arc::new(DiskLedger::of(&left));
        let world = World { undeclared, ..World::new(ledger.clone()) };
        let thread = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        thread.block_on(live(&world, store.clone(), Arc::new(FakeClock::default()), self.talks, until))?;
        drop(thread);
        let second = SecondLife { run_again: before.run_again(), disk: left, ledger, first, written: recorded(&store)? };
        let happened = second.happened(second.disk.step());
        read(&store, None, honest)?.bears_out(&happened)?;
        ran_once(&happened)?;
        replays(&store, &World { undeclared, ..World::new(Arc::new(Nobody) as Arc<dyn Outside>) })?;
        store.close();
        Ok(second)
    }
}

/// A life that began with what a crash had left.
pub struct SecondLife {
    /// How many calls without effects its recovery ran again.
    pub run_again: usize,
    disk: Disk,
    ledger: Arc<DiskLedger>,
    first: Vec<Noted>,
    written: Recorded,
}

impl SecondLife {
    fn happened(&self, step: usize) -> Vec<Noted> {
        self.first.iter().cloned().chain(self.ledger.until(step)).collect()
    }

    /// Crashes it in turn, at a few moments.
    pub fn examine_some_crashes(&self, (step, _): State) -> Result<(), Violation> {
        let steps = self.disk.step() as u64 + 1;
        for crash in 0..3 {
            let chosen = mix(step as u64 * 3 + crash);
            let step = (chosen % steps) as usize;
            let survival = [Survival::NothingUnsynced, Survival::Everything, Survival::Random(chosen)][crash as usize];
            let store = open(&self.disk.crash_at(step, survival), LINGER)?;
            read(&store, Some(&self.written), honest)?.bears_out(&self.happened(step))?;
            store.close();
        }
        Ok(())
    }
}

/// Every stream replays strictly.
pub fn replays(store: &Store, world: &World) -> Result<(), Violation> {
    let lanes = world.lanes();
    for info in store.streams()? {
        let verdict = replay(store, &info.id, Mode::Strict, &lanes)?;
        if !verdict.identical || !verdict.snapshot_identical {
            return Err(Violation::Finding(format!("{} does not replay: {verdict:?}", info.id)));
        }
    }
    Ok(())
}

/// Every step, with what was synced, with everything, and with some of it.
pub fn every_step(run: &Run) -> Vec<State> {
    let at = |step: usize| {
        [Survival::NothingUnsynced, Survival::Everything, Survival::Random(step as u64)].map(|survival| (step, survival))
    };
    (0..=run.disk.step()).flat_map(at).collect()
}

/// So many of the states, spread evenly.
pub fn take_some(states: impl IntoIterator<Item = State>, count: usize) -> Vec<State> {
    let states: Vec<State> = states.into_iter().collect();
    let count = count.min(states.len());
    (0..count).map(|place| states[place * states.len() / count]).collect()
}

/// Does something with each item on all cores, and gives what went wrong.
pub fn in_parallel<T: Sync + Clone + Send>(
    items: &[T],
    work: impl Fn(usize, &T) -> Result<(), Violation> + Sync,
) -> Vec<(T, Violation)> {
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut violations = Vec::new();
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(place) else { return violations };
            if let Err(violation) = work(place, item) {
                violations.push((item.clone(), violation));
            }
        }
    };
    let cores = thread::available_parallelism().map_or(2, usize::from);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    })
}

/// The violations by kind, each with how often it was met and where first.
pub fn report(run: &Run, violations: &[(State, Violation)]) -> String {
    let operations = run.disk.operations();
    let mut kinds = BTreeMap::new();
    for (state, violation) in violations {
        let kind = kinds.entry(violation.clone()).or_insert((0, *state));
        kind.0 += 1;
    }
    let line = |(violation, (times, (step, survival))): (&Violation, &(usize, State))| {
        let before = operations[..*step].last().map_or("the start".to_owned(), ToString::to_string);
        format!("{times} times, first at step {step} (after {before}) with {survival:?}: {violation}\n")
    };
    kinds.iter().map(line).collect()
}

/// Mixes a number, so that steps look random and are the same in every run.
fn mix(number: u64) -> u64 {
    let mixed = (number ^ 0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ (mixed >> 29)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 13
}

/// The digest of every page of the database, with what its write-ahead log adds.
fn content_of(disk: &Disk) -> Result<Digest, Violation> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let digest = || {
        let mut connection = Connection::open_with_flags_and_vfs(DATABASE, flags, disk.vfs_name())?;
        Ok(Digest::of(&connection.serialize(rusqlite::MAIN_DB)?))
    };
    digest().map_err(|error: rusqlite::Error| Violation::Unreadable(error.to_string()))
}
