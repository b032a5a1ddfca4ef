//! Power loss under the bus: one workload on the simulated disk, a crash at every step of it. Whatever a crash leaves, frames and rows
//! tell the same story, nothing acknowledged is missing, and every handler that was ever called is on record as called. From many of
//! them a bus is opened again and brought to its end: everyone has everything, in order, and repeats are marked.
//!
//! The same examination is then turned on two planted bugs, an early acknowledgement and a skipped sync: it must notice both.
//! Failpoints are global, so every test here holds a `FailScenario`, and they run one after another.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use common::*;
use fail::FailScenario;
use holdfast_bus::{Bus, BusSettings, Clock, Delivery, EventId, RetryBackoff, Subscription};
use holdfast_contract::body::Body;
use holdfast_contract::ids::Millis;
use holdfast_contract::problem::{Code, Fault};
use holdfast_store::{DeliveryState, Store, StoreOptions};
use holdfast_testkit::disk::{SimulatedDisk, Survival};

const EVENTS: u64 = 120;
const SUBSCRIBERS: [(&str, &str); 3] = [("all", "t.*"), ("evens", "t.0"), ("odds", "t.1")];

/// Something that happened outside, with the disk's step when it had.
#[derive(Clone, Debug, PartialEq)]
enum Noted {
    Acknowledged(EventId),
    Called { subscriber: &'static str, id: EventId, attempt: u32, repeat: bool },
    Took { subscriber: &'static str, id: EventId },
}

#[derive(Clone)]
struct Witness {
    disk: SimulatedDisk,
    noted: Arc<Mutex<Vec<(usize, Noted)>>>,
}

impl Witness {
    fn of(disk: &SimulatedDisk) -> Self {
        Self { disk: disk.clone(), noted: Arc::default() }
    }

    fn note(&self, noted: Noted) {
        let mut all = self.noted.lock().unwrap();
        all.push((self.disk.step(), noted));
    }

    fn until(&self, step: usize) -> Vec<Noted> {
        let all = self.noted.lock().unwrap();
        all.iter().filter(|(at, _)| *at <= step).map(|(_, noted)| noted.clone()).collect()
    }

    /// Handlers that note every call; one event in ten fails once, one in forty always.
    fn subscriptions(&self) -> Vec<Subscription> {
        let subscriptions = SUBSCRIBERS.map(|(subscriber, pattern)| {
            let witness = self.clone();
            let handler = move |delivery: Delivery| {
                let Delivery { event, attempt, repeat } = delivery;
                let (witness, id) = (witness.clone(), event.id);
                async move {
                    witness.note(Noted::Called { subscriber, id, attempt, repeat });
                    let number: u64 = event.payload.to_text().parse().unwrap();
                    if number % 40 == 7 || (number % 10 == 3 && !repeat) {
                        return Err(Fault::new(Code::ExtensionFault, "told to"));
                    }
                    witness.note(Noted::Took { subscriber, id });
                    Ok(())
                }
            };
            let backoff = RetryBackoff { first: Millis(0), most: Millis(0) };
            let terms = Subscription::new(subscriber, &[pattern], handler).unwrap();
            Subscription { backoff, max_attempts: 3, concurrency: 4, ..terms }
        });
        subscriptions.to_vec()
    }
}

fn open(disk: &SimulatedDisk) -> Store {
    let options = StoreOptions { vfs: Some(disk.vfs_name().to_owned()), ..StoreOptions::default() };
    Store::open(Path::new("holdfast.db"), options).unwrap()
}

async fn open_bus(store: &Store, witness: &Witness) -> Bus {
    let clock: Arc<dyn Clock> = Arc::new(FakeClock::new());
    let dice = Arc::new(Dice(AtomicU64::new(1)));
    let subscriptions = witness.subscriptions();
    Bus::open(store.clone(), clock, dice, BusSettings::default(), subscriptions).await.unwrap()
}

/// Publishes everything from four publishers and waits until it has been dealt with.
async fn work(disk: &SimulatedDisk, witness: &Witness) {
    let store = open(disk);
    let bus = open_bus(&store, witness).await;
    let publishers: Vec<_> = (0..4)
        .map(|publisher| {
            let (bus, witness) = (bus.clone(), witness.clone());
            tokio::spawn(async move {
                for number in (publisher..EVENTS).step_by(4) {
                    let new = event(&format!("t.{}", number % 2), &number.to_string());
                    let id = bus.publish(new.key(format!("k{}", number % 10))).await.unwrap().id;
                    witness.note(Noted::Acknowledged(id));
                }
            })
        })
        .collect();
    for publisher in publishers {
        publisher.await.unwrap();
    }
    settled(&bus).await;
    bus.close(Millis(0)).await;
    store.close();
}

/// How an event stands with a subscriber, as the frames tell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Open,
    Delivered,
    Dead,
}

fn wants(pattern: &str, topic: &str) -> bool {
    pattern == topic || (pattern == "t.*" && topic.starts_with("t."))
}

/// What the log tells of each event and subscriber.
fn told(store: &Store) -> BTreeMap<(EventId, &'static str), Told> {
    let mut told = BTreeMap::new();
    let named = |name: &str| SUBSCRIBERS.iter().find(|(known, _)| *known == name).unwrap().0;
    for stream in holdfast_bus::streams() {
        for frame in store.frames(&stream, ..).unwrap() {
            let id = |seq| EventId::of(&stream, seq).unwrap();
            match store.body(&frame).unwrap() {
                Body::EventPublished(body) => {
                    let wanted =
                        SUBSCRIBERS.iter().filter(|(_, pattern)| wants(pattern, body.topic.as_str()));
                    told.extend(wanted.map(|(name, _)| ((id(frame.envelope.seq), *name), Told::Open)));
                }
                Body::EventDelivered(body) => body.events.iter().for_each(|seq| {
                    let before = told.insert((id(*seq), named(&body.subscriber)), Told::Delivered);
                    assert_eq!(before, Some(Told::Open), "delivered once, after it was published");
                }),
                Body::EventDead(body) => {
                    told.insert((id(body.event), named(&body.subscriber)), Told::Dead);
                }
                Body::EventRetried(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }
    told
}

/// Holds what a crash left against what had happened outside, and says what is wrong.
fn examine(store: &Store, happened: &[Noted]) -> Vec<String> {
    let told = told(store);
    let names: BTreeMap<_, _> = store.subscribers().unwrap().into_iter().collect();
    let mut rows = BTreeMap::new();
    for stream in holdfast_bus::streams() {
        for row in store.deliveries(&stream, |_| true).unwrap() {
            rows.insert((EventId::of(&stream, row.seq).unwrap(), names[&row.subscriber].clone()), row);
        }
    }
    let mut wrong = Vec::new();
    for ((id, name), told) in &told {
        let state = rows.get(&(*id, (*name).to_owned())).map(|row| row.state);
        let agrees = match told {
            Told::Open => matches!(state, Some(DeliveryState::Waiting | DeliveryState::UnderWay)),
            Told::Delivered => state.is_none(),
            Told::Dead => state == Some(DeliveryState::Dead),
        };
        if !agrees {
            wrong.push(format!("{id} for {name}: the frames say {told:?}, the row {state:?}"));
        }
    }
    let open = told.values().filter(|told| **told != Told::Delivered).count();
    if rows.len() != open {
        wrong.push(format!("{} rows for {open} events", rows.len()));
    }
    for noted in happened {
        match noted {
            Noted::Acknowledged(id) if !told.contains_key(&(*id, "all")) => {
                wrong.push(format!("{id} was acknowledged and is lost"));
            }
            Noted::Called { subscriber, id, attempt, .. } => {
                let row = rows.get(&(*id, (*subscriber).to_owned()));
                let over = matches!(told.get(&(*id, *subscriber)), Some(Told::Delivered | Told::Dead));
                if !over && row.is_none_or(|row| row.tries < *attempt) {
                    wrong.push(format!(
                        "{subscriber} was called with {id} for the {attempt}th time in secret"
                    ));
                }
            }
            Noted::Acknowledged(_) | Noted::Took { .. } => {}
        }
    }
    wrong.extend(store.verify(None).unwrap().iter().map(|finding| format!("taken for tampering: {finding}")));
    wrong
}

/// Opens the bus on what a crash left, lets it come to its end, and holds both lives together against what was promised.
async fn finish(left: &SimulatedDisk, before: Vec<Noted>) -> Result<(), String> {
    let witness = Witness::of(left);
    let store = open(left);
    let bus = open_bus(&store, &witness).await;
    settled(&bus).await;
    bus.close(Millis(0)).await;
    let after = witness.until(usize::MAX);
    if let Some(wrong) = examine(&store, &after).pop() {
        return Err(wrong);
    }
    let told = told(&store);
    let both = || before.iter().chain(&after);
    let took: BTreeSet<_> = both()
        .filter_map(|noted| match noted {
            Noted::Took { subscriber, id } => Some((*id, *subscriber)),
            _ => None,
        })
        .collect();
    for (key, told) in &told {
        if *told == Told::Open || (*told == Told::Delivered && !took.contains(key)) {
            return Err(format!("{key:?} is {told:?} in the end"));
        }
    }
    let mut called = BTreeSet::new();
    for noted in both() {
        if let Noted::Called { subscriber, id, repeat, .. } = noted
            && !called.insert((*id, *subscriber))
            && !repeat
        {
            return Err(format!("{subscriber} was called with {id} again, and was not told so"));
        }
    }
    store.close();
    Ok(())
}

fn mix(number: u64) -> u64 {
    let mixed = (number ^ 0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ (mixed >> 29)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 13
}

/// Runs the workload on a disk; `at_start` is called once the database is there.
async fn run(at_start: impl FnOnce(&SimulatedDisk)) -> (SimulatedDisk, Witness) {
    let disk = SimulatedDisk::new();
    open(&disk).close();
    at_start(&disk);
    let witness = Witness::of(&disk);
    work(&disk, &witness).await;
    (disk, witness)
}

/// What is wrong after each of these crashes.
fn violations(
    disk: &SimulatedDisk,
    witness: &Witness,
    crashes: impl Iterator<Item = (usize, Survival)>,
) -> Vec<String> {
    let examine = |(step, survival): &(usize, Survival)| {
        let left = disk.crash_at(*step, *survival);
        let store = open(&left);
        let wrong = examine(&store, &witness.until(*step)).into_iter();
        store.close();
        wrong.map(|wrong| format!("step {step} with {survival:?}: {wrong}")).collect::<Vec<_>>()
    };
    let crashes: Vec<_> = crashes.collect();
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        let shares = crashes.chunks(crashes.len().div_ceil(cores).max(1));
        let workers: Vec<_> =
            shares.map(|share| scope.spawn(|| share.iter().flat_map(examine).collect::<Vec<_>>())).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    })
}

fn after_each_note(witness: &Witness) -> Vec<(usize, Survival)> {
    let noted = witness.noted.lock().unwrap();
    let steps: BTreeSet<_> = noted.iter().map(|(step, _)| *step).collect();
    steps.into_iter().map(|step| (step, Survival::NothingUnsynced)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn no_crash_parts_a_frame_from_its_row_or_forgets_a_call() {
    let scenario = FailScenario::setup();
    let (disk, witness) = run(|_| {}).await;
    let calls =
        witness.until(usize::MAX).iter().filter(|noted| matches!(noted, Noted::Called { .. })).count();
    assert!(calls as u64 >= 2 * EVENTS, "{calls} calls");
    let survival = |step: usize| match step % 4 {
        0 => Survival::Everything,
        1 | 2 => Survival::Random(step as u64),
        _ => Survival::NothingUnsynced,
    };
    let every_step = (0..=disk.step()).map(|step| (step, survival(step)));
    let found = violations(&disk, &witness, every_step.chain(after_each_note(&witness)));
    println!("{} steps, {calls} calls", disk.step());
    assert!(found.is_empty(), "{} violations, the first: {}", found.len(), found[0]);
    scenario.teardown();
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_crash_everyone_gets_everything_in_the_end_and_repeats_are_marked() {
    let scenario = FailScenario::setup();
    let (disk, witness) = run(|_| {}).await;
    let steps = disk.step() as u64;
    for seed in 0..60 {
        let step = (mix(seed) % (steps + 1)) as usize;
        let survival = if seed % 2 == 0 { Survival::NothingUnsynced } else { Survival::Random(seed) };
        let left = disk.crash_at(step, survival);
        let outcome = finish(&left, witness.until(step)).await;
        assert_eq!(outcome, Ok(()), "a crash at step {step} with {survival:?}");
    }
    scenario.teardown();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_early_acknowledgement_is_noticed() {
    let scenario = FailScenario::setup();
    fail::cfg("store::ack_early", "return").unwrap();
    let slow = |disk: &SimulatedDisk| disk.set_sync_delay(std::time::Duration::from_millis(3));
    let (disk, witness) = run(slow).await;
    let found = violations(&disk, &witness, after_each_note(&witness).into_iter());
    let lost = found.iter().filter(|violation| violation.ends_with("is lost")).count();
    let secret = found.iter().filter(|violation| violation.ends_with("in secret")).count();
    println!("{lost} lost, {secret} called in secret");
    assert!(lost > 0 && secret > 0, "{found:?}");
    scenario.teardown();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_skipped_sync_is_noticed() {
    let scenario = FailScenario::setup();
    let (disk, witness) = run(|disk| disk.ignore_syncs(true)).await;
    let found = violations(&disk, &witness, after_each_note(&witness).into_iter());
    assert!(!found.is_empty());
    scenario.teardown();
}
