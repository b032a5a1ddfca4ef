//! The figures of the bus: durable events a second and the way to a handler, with 1, 8 and 64 publishers. Beside it, in the same run: a
//! plain SQLite journal that commits per event, and what one sync of the same disk takes.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use holdfast_bench::DiskTimes;
use holdfast_bus::{Bus, BusSettings, Delivery, NewEvent, Subscription};
use holdfast_contract::content::Content;
use holdfast_contract::ids::Millis;
use holdfast_contract::problem::{Code, Problem};
use holdfast_runtime::{OsEntropy, SystemClock};
use holdfast_store::{Store, StoreOptions};
use parking_lot::Mutex;
use rusqlite::Connection;
use serde_json::json;
use tokio::sync::Notify;

use super::{millis, show};
use crate::output::Output;

/// Publishers, and how many events they publish together.
const RUNS: &[(u64, u64)] = &[(1, 4_000), (8, 24_000), (64, 100_000)];
/// Events that the journal gets.
const JOURNALLED: u64 = 2_000;
/// Keys that the events have.
const KEYS: u64 = 1_024;
/// Syncs that are timed.
const SYNCS: u64 = 200;

pub(super) fn bench(output: &Output) -> Result<(), Problem> {
    let threads = tokio::runtime::Builder::new_multi_thread().enable_time().build().map_err(failed)?;
    for (publishers, events) in RUNS.iter().copied() {
        let folder = tempfile::tempdir().map_err(failed)?;
        let mut syncs = sync_times(folder.path()).map_err(failed)?;
        let mut figures = threads.block_on(through_the_bus(folder.path(), publishers, events))?;
        let plain = journal(folder.path(), publishers).map_err(failed)?;
        // Before and after, because the disk is not the same at all times.
        syncs.extend(sync_times(folder.path()).map_err(failed)?);
        let (sync, way) = (middle(&mut syncs), middle(&mut figures.ways));
        let with =
            if publishers == 1 { "1 publisher".to_owned() } else { format!("{publishers} publishers") };
        let target = if publishers == 64 { " (target: above 50,000)" } else { "" };
        show(output, &format!("durable events a second, {with}{target}"), &whole(figures.rate))?;
        show(output, &format!("  a journal that commits per event, {with}"), &whole(plain))?;
        show(
            output,
            &format!("from publishing to the handler, {with}, p50"),
            &millis(&mut figures.ways, 50),
        )?;
        show(
            output,
            &format!("from publishing to the handler, {with}, p99"),
            &millis(&mut figures.ways, 99),
        )?;
        if publishers == 1 {
            let ratio = way.as_secs_f64() / sync.as_secs_f64().max(f64::MIN_POSITIVE);
            show(output, "  p50 in syncs of the same disk (target: under 2)", &format!("{ratio:.2}"))?;
        }
    }
    Ok(())
}

fn failed(error: impl std::fmt::Display) -> Problem {
    Problem::new(Code::Internal, format!("a figure of the bus could not be taken: {error}"))
}

fn middle(times: &mut [Duration]) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn whole(rate: f64) -> String {
    format!("{rate:.0}")
}

struct BusTimings {
    /// Events that were acknowledged in a second.
    rate: f64,
    /// How long each took to its handler.
    ways: Vec<Duration>,
}

/// When each event was published and reached its handler.
struct Arrivals {
    began: Instant,
    published: Vec<AtomicU64>,
    ways: Mutex<Vec<Duration>>,
    done: Notify,
}

impl Arrivals {
    fn now(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    fn take(&self, delivery: &Delivery) {
        let number = delivery.event.payload.value()["n"].as_u64().unwrap_or_default();
        let Some(published) = self.published.get(number as usize) else { return };
        let way = Duration::from_nanos(self.now().saturating_sub(published.load(Ordering::Relaxed)));
        let mut ways = self.ways.lock();
        ways.push(way);
        if ways.len() == self.published.len() {
            self.done.notify_one();
        }
    }
}

async fn through_the_bus(folder: &Path, publishers: u64, events: u64) -> Result<BusTimings, Problem> {
    let store = Store::open(&folder.join("holdfast.db"), StoreOptions::default())?;
    let arrivals = Arc::new(Arrivals {
        began: Instant::now(),
        published: (0..events).map(|_| AtomicU64::default()).collect(),
        ways: Mutex::default(),
        done: Notify::new(),
    });
    let taking = arrivals.clone();
    let handler = move |delivery: Delivery| {
        taking.take(&delivery);
        std::future::ready(Ok(()))
    };
    let mut subscription = Subscription::new("bench/all", &["bench.>"], handler)?;
    (subscription.concurrency, subscription.backlog) = (256, 1_000_000);
    let (clock, entropy) = (Arc::new(SystemClock), Arc::new(OsEntropy));
    let bus = Bus::open(store.clone(), clock, entropy, BusSettings::default(), vec![subscription]).await?;
    let began = Instant::now();
    let tasks: Vec<_> = (0..publishers)
        .map(|publisher| {
            let (bus, arrivals) = (bus.clone(), arrivals.clone());
            tokio::spawn(async move {
                for number in (publisher..events).step_by(publishers as usize) {
                    let payload = Content::new(json!({ "n": number, "text": "remember the milk" }));
                    let event = NewEvent::new(format!("bench.{}", number % 50), payload);
                    if let Some(published) = arrivals.published.get(number as usize) {
                        published.store(arrivals.now(), Ordering::Relaxed);
                    }
                    bus.publish(event.key(format!("k{}", number % KEYS))).await?;
                }
                Ok::<(), Problem>(())
            })
        })
        .collect();
    for task in tasks {
        task.await.map_err(failed)??;
    }
    let rate = events as f64 / began.elapsed().as_secs_f64();
    arrivals.done.notified().await;
    bus.close(Millis(10_000)).await;
    store.close();
    let ways = std::mem::take(&mut *arrivals.ways.lock());
    Ok(BusTimings { rate, ways })
}

/// What most people would write: one table, one transaction per event, a lock around the connection. Gives events a second.
fn journal(folder: &Path, publishers: u64) -> rusqlite::Result<f64> {
    let connection = Connection::open(folder.join("journal.db"))?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection
        .execute_batch("CREATE TABLE events (id INTEGER PRIMARY KEY, topic TEXT, key TEXT, payload TEXT)")?;
    let connection = Mutex::new(connection);
    let publish = |publisher: u64| {
        for number in (publisher..JOURNALLED).step_by(publishers as usize) {
            let payload = json!({ "n": number, "text": "remember the milk" }).to_string();
            let connection = connection.lock();
            let mut insert =
                connection.prepare_cached("INSERT INTO events (topic, key, payload) VALUES (?, ?, ?)")?;
            insert.execute((format!("bench.{}", number % 50), format!("k{}", number % KEYS), payload))?;
        }
        Ok(())
    };
    let began = Instant::now();
    let outcomes: Vec<rusqlite::Result<()>> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..publishers).map(|publisher| scope.spawn(move || publish(publisher))).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
    });
    outcomes.into_iter().collect::<rusqlite::Result<()>>()?;
    Ok(JOURNALLED as f64 / began.elapsed().as_secs_f64())
}

/// What syncs of this folder's disk take.
fn sync_times(folder: &Path) -> std::io::Result<Vec<Duration>> {
    let mut disk = DiskTimes::new(folder)?;
    (0..SYNCS).map(|_| disk.sync()).collect()
}
