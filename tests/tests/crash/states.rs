//! One run of the workload on a simulated disk, and the states that a power loss could have left of it.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use holdfast_contract::digest::Digest;
use holdfast_contract::problem::Problem;
use holdfast_contract::tool::EffectClass;
use holdfast_store::{Store, StoreOptions};
use holdfast_testkit::FakeClock;
use holdfast_testkit::disk::{SimulatedDisk, Survival};
use rusqlite::{Connection, OpenFlags};

use super::examine::{Found, Meddle, Recorded, Violation, honest, ran_once, read, recorded, replays, survey};
use super::ledger::{DiskLedger, Noted};
use super::life::{Until, live};
use super::many::{in_parallel, mix};
use super::plan::Talk;
use super::world::World;

const DATABASE: &str = "holdfast.db";

/// A moment of a crash, and what it kept of the unsynced writes.
pub type State = (usize, Survival);

/// What a run is like.
#[derive(Clone, Copy)]
pub struct Setting {
    pub talks: &'static [Talk],
    /// How long a frame that nobody waits for stays in memory.
    pub linger: Duration,
    /// How long a sync takes.
    pub sync: Duration,
    /// A planted bug: syncs do nothing.
    pub ignore_syncs: bool,
    /// What the undeclared tool is taken for.
    pub undeclared: EffectClass,
}

impl Setting {
    /// These talks, as the store does it by itself.
    pub fn of(talks: &'static [Talk]) -> Self {
        let linger = StoreOptions::default().linger;
        Self { talks, linger, sync: Duration::ZERO, ignore_syncs: false, undeclared: EffectClass::default() }
    }
}

/// A workload that ran to its end, with what happened in the world meanwhile.
pub struct Run {
    setting: Setting,
    pub disk: SimulatedDisk,
    pub ledger: Arc<DiskLedger>,
    written: Recorded,
}

fn open(disk: &SimulatedDisk, linger: Duration) -> Result<Store, Problem> {
    let options =
        StoreOptions { vfs: Some(disk.vfs_name().to_owned()), linger, readers: 2, ..StoreOptions::default() };
    Store::open(Path::new(DATABASE), options)
}

impl Run {
    /// Runs the workload.
    pub fn of(setting: Setting) -> Self {
        let disk = SimulatedDisk::new();
        open(&disk, setting.linger).unwrap().close();
        disk.ignore_syncs(setting.ignore_syncs);
        disk.set_sync_delay(setting.sync);
        let store = open(&disk, setting.linger).unwrap();
        let ledger = Arc::new(DiskLedger::of(&disk));
        let world = World { undeclared: setting.undeclared, ..World::new(ledger.clone()) };
        let threads =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
        let life =
            live(&world, store.clone(), Arc::new(FakeClock::default()), setting.talks, Until::AllIsSaid);
        threads.block_on(life).unwrap();
        drop(threads);
        let written = recorded(&store).unwrap();
        store.close();
        Self { setting, disk, ledger, written }
    }

    /// How many frames were written.
    pub fn frames(&self) -> usize {
        self.written.values().map(Vec::len).sum()
    }

    /// Every step, with what was synced and with everything.
    pub fn every_step(&self) -> Vec<State> {
        let at = |step| [Survival::NothingUnsynced, Survival::Everything].map(|survival| (step, survival));
        (0..=self.disk.step()).flat_map(at).collect()
    }

    /// Random crashes, the same in every run of the same length.
    pub fn random_states(&self, seeds: std::ops::Range<u64>) -> Vec<State> {
        let steps = self.disk.step() as u64 + 1;
        seeds.map(|seed| ((mix(seed) % steps) as usize, Survival::Random(seed << 32))).collect()
    }

    /// Opens every state and holds it against the ledger. The content of each state is read whole, as SQLite sees it after its own
    /// recovery. Most crashes come down to the same few contents; what was met before, byte for byte, is not verified and
    /// recovered again, but each state is held against what had happened by its own step.
    pub fn examine(&self, states: &[State], meddle: Meddle) -> Vec<(State, Violation)> {
        let known: Mutex<HashMap<Digest, Result<Arc<Found>, Violation>>> = Mutex::default();
        let violations = in_parallel(states, |_, (step, survival)| {
            let left = self.disk.crash_at(*step, *survival);
            let store = open(&left, self.setting.linger)?;
            let content = content_of(&left)?;
            let met = known.lock().unwrap().get(&content).cloned();
            let found = met.unwrap_or_else(|| {
                let found = read(&store, Some(&self.written), meddle).map(Arc::new);
                known.lock().unwrap().insert(content, found.clone());
                found
            });
            store.close();
            found?.bears_out(&self.ledger.until(*step))
        });
        let known = known.into_inner().unwrap();
        let again: usize = known.values().flatten().map(|found| found.run_again()).sum();
        println!(
            "{} frames, {} steps: {} states came down to {} contents, which run {again} calls again",
            self.frames(),
            self.disk.step(),
            states.len(),
            known.len()
        );
        violations
    }

    /// Takes a state up again with the real runtime, and holds both lives against the ledger.
    pub fn resume(&self, (step, survival): State, until: Until) -> Result<SecondLife, Violation> {
        let Setting { talks, linger, undeclared, .. } = self.setting;
        let left = self.disk.crash_at(step, survival);
        let store = open(&left, linger)?;
        let run_again = survey(&store, Some(&self.written), honest)?.run_again();
        let ledger = Arc::new(DiskLedger::of(&left));
        let world = World { undeclared, ..World::new(ledger.clone()) };
        let thread = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        thread.block_on(live(&world, store.clone(), Arc::new(FakeClock::default()), talks, until))?;
        drop(thread);
        let first = self.ledger.until(step);
        let second = SecondLife { run_again, linger, disk: left, ledger, first, written: recorded(&store)? };
        let happened = second.happened(second.disk.step());
        ran_once(&happened)?;
        read(&store, None, honest)?.bears_out(&happened)?;
        replays(&store, undeclared)?;
        store.close();
        Ok(second)
    }
}

/// A life that began with what a crash had left.
pub struct SecondLife {
    /// How many calls without effects its recovery ran again.
    pub run_again: usize,
    linger: Duration,
    disk: SimulatedDisk,
    ledger: Arc<DiskLedger>,
    first: Vec<Noted>,
    written: Recorded,
}

impl SecondLife {
    fn happened(&self, step: usize) -> Vec<Noted> {
        self.first.iter().cloned().chain(self.ledger.until(step)).collect()
    }

    /// Crashes it in turn, at some moment.
    pub fn crash(&self, seed: u64) -> Result<(), Violation> {
        let step = (mix(seed) % (self.disk.step() as u64 + 1)) as usize;
        let survival = match seed % 3 {
            0 => Survival::NothingUnsynced,
            1 => Survival::Everything,
            _ => Survival::Random(seed),
        };
        let store = open(&self.disk.crash_at(step, survival), self.linger)?;
        read(&store, Some(&self.written), honest)?.bears_out(&self.happened(step))?;
        store.close();
        Ok(())
    }
}

/// The digest of every page of the database, with what its write-ahead log adds.
fn content_of(disk: &SimulatedDisk) -> Result<Digest, Violation> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let digest = || {
        let mut connection = Connection::open_with_flags_and_vfs(DATABASE, flags, disk.vfs_name())?;
        Ok(Digest::of(&connection.serialize(rusqlite::MAIN_DB)?))
    };
    digest().map_err(|error: rusqlite::Error| Violation::Unreadable(error.to_string()))
}
