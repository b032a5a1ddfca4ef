//! How many durable events a second, and how long from publishing to the handler, with 1, 8 and 64 publishers. Beside it, in the same
//! run: a plain SQLite journal that commits per event, and what one sync of the same disk takes.
//!
//! `cargo run --release -p holdfast-bus --example bus_throughput [events [publishers …]]`
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs, reason = "an example that measures")]

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use holdfast_bus::{Bus, BusSettings, Clock, Delivery, Entropy, NewEvent, Subscription};
use holdfast_contract::content::Content;
use holdfast_contract::ids::Millis;
use holdfast_contract::wire::Later;
use holdfast_store::{Store, StoreOptions};
use rusqlite::Connection;
use serde_json::json;
use tokio::sync::Notify;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const PUBLISHERS: &[u64] = &[1, 8, 64];
const KEYS: u64 = 1_024;

struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Millis {
        Millis(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64)
    }

    fn steady(&self) -> Millis {
        self.now()
    }

    fn sleep(&self, span: Millis) -> Later<()> {
        Box::pin(tokio::time::sleep(Duration::from_millis(span.0)))
    }
}

struct NoChance;

impl Entropy for NoChance {
    fn draw(&self, count: u32) -> Vec<u8> {
        vec![0; count as usize]
    }
}

/// What was measured with one number of publishers.
struct Figures {
    acknowledged: f64,
    delivered: f64,
    p50: Duration,
    p99: Duration,
    shared: f64,
}

fn percentiles(mut times: Vec<u64>) -> (Duration, Duration) {
    times.sort_unstable();
    let at = |part: f64| Duration::from_nanos(times[((times.len() - 1) as f64 * part) as usize]);
    (at(0.5), at(0.99))
}

/// Notes when each event reached its handler.
struct Arrivals {
    began: Instant,
    published: Vec<AtomicU64>,
    latencies: Mutex<Vec<u64>>,
    expected: u64,
    count: AtomicU64,
    done: Notify,
}

impl Arrivals {
    fn take(&self, delivery: &Delivery) {
        let number = delivery.event.payload.value()["n"].as_u64().unwrap();
        let published = self.published[number as usize].load(Ordering::Relaxed);
        let latency = self.began.elapsed().as_nanos() as u64 - published;
        self.latencies.lock().unwrap().push(latency);
        if self.count.fetch_add(1, Ordering::Relaxed) + 1 == self.expected {
            self.done.notify_one();
        }
    }
}

async fn bus(folder: &Path, publishers: u64, events: u64) -> Figures {
    let store = Store::open(&folder.join("bus.db"), StoreOptions::default()).unwrap();
    let arrivals = Arc::new(Arrivals {
        began: Instant::now(),
        published: (0..events).map(|_| AtomicU64::new(0)).collect(),
        latencies: Mutex::new(Vec::with_capacity(events as usize)),
        expected: events,
        count: AtomicU64::new(0),
        done: Notify::new(),
    });
    let taking = Arc::clone(&arrivals);
    let handler = move |delivery: Delivery| {
        taking.take(&delivery);
        async { Ok(()) }
    };
    let mut subscription = Subscription::new("bench/all", &["bench.>"], handler).unwrap();
    subscription.concurrency = 256;
    subscription.backlog = 1_000_000;
    let (clock, entropy) = (Arc::new(SystemClock), Arc::new(NoChance));
    let bus =
        Bus::open(store.clone(), clock, entropy, BusSettings::default(), vec![subscription]).await.unwrap();
    let before = store.stats();
    let began = Instant::now();
    let tasks: Vec<_> = (0..publishers)
        .map(|publisher| {
            let (bus, arrivals) = (bus.clone(), Arc::clone(&arrivals));
            tokio::spawn(async move {
                for number in (publisher..events).step_by(publishers as usize) {
                    let payload = Content::new(json!({ "n": number, "text": "remember the milk" }));
                    let event = NewEvent::new(format!("bench.{}", number % 50), payload);
                    let event = event.key(format!("k{}", number % KEYS));
                    arrivals.published[number as usize]
                        .store(arrivals.began.elapsed().as_nanos() as u64, Ordering::Relaxed);
                    bus.publish(event).await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let acknowledged = events as f64 / began.elapsed().as_secs_f64();
    arrivals.done.notified().await;
    let delivered = events as f64 / began.elapsed().as_secs_f64();
    let commits = store.stats().commits - before.commits;
    bus.close(Millis(10_000)).await;
    let left: usize = holdfast_bus::streams().map(|id| store.deliveries(&id, |_| true).unwrap().len()).sum();
    assert_eq!(left, 0, "every delivery is recorded");
    store.close();
    let (p50, p99) = percentiles(std::mem::take(&mut arrivals.latencies.lock().unwrap()));
    Figures { acknowledged, delivered, p50, p99, shared: events as f64 / commits as f64 }
}

/// What most people would write: one table, one transaction per event, a lock around the connection.
fn journal(folder: &Path, publishers: u64, events: u64) -> Figures {
    let connection = Connection::open(folder.join("journal.db")).unwrap();
    connection.pragma_update(None, "journal_mode", "WAL").unwrap();
    connection.pragma_update(None, "synchronous", "FULL").unwrap();
    let table = "CREATE TABLE events (id INTEGER PRIMARY KEY, topic TEXT, key TEXT, payload TEXT)";
    connection.execute_batch(table).unwrap();
    let connection = Mutex::new(connection);
    let latencies = Mutex::new(Vec::new());
    let began = Instant::now();
    std::thread::scope(|scope| {
        for publisher in 0..publishers {
            let (connection, latencies) = (&connection, &latencies);
            scope.spawn(move || {
                let mut mine = Vec::new();
                for number in (publisher..events).step_by(publishers as usize) {
                    let payload = json!({ "n": number, "text": "remember the milk" }).to_string();
                    let at = Instant::now();
                    let connection = connection.lock().unwrap();
                    let mut insert = connection
                        .prepare_cached("INSERT INTO events (topic, key, payload) VALUES (?, ?, ?)")
                        .unwrap();
                    insert
                        .execute((format!("bench.{}", number % 50), format!("k{}", number % KEYS), payload))
                        .unwrap();
                    drop(insert);
                    drop(connection);
                    mine.push(at.elapsed().as_nanos() as u64);
                }
                latencies.lock().unwrap().extend(mine);
            });
        }
    });
    let rate = events as f64 / began.elapsed().as_secs_f64();
    let (p50, p99) = percentiles(latencies.into_inner().unwrap());
    Figures { acknowledged: rate, delivered: rate, p50, p99, shared: 1.0 }
}

/// What it takes to write one page and sync it: to a file that has its size, and to one that grows, as a write-ahead log does.
fn sync_times(folder: &Path) -> (Vec<u64>, Vec<u64>) {
    let path = folder.join("sync");
    let file = File::options().create(true).truncate(true).read(true).write(true).open(path).unwrap();
    file.write_all_at(&vec![1; 2 << 20], 0).unwrap();
    file.sync_all().unwrap();
    let time = |page: u64| {
        file.write_all_at(&[page as u8; 4096], page * 4096).unwrap();
        let began = Instant::now();
        file.sync_data().unwrap();
        began.elapsed().as_nanos() as u64
    };
    ((0..500).map(time).collect(), (512..1_012).map(time).collect())
}

fn main() {
    let mut numbers = std::env::args().skip(1).filter_map(|number| number.parse().ok());
    let events: u64 = numbers.next().unwrap_or(100_000);
    let publishers: Vec<u64> = numbers.collect();
    let publishers = if publishers.is_empty() { PUBLISHERS } else { &publishers };
    let threads = tokio::runtime::Builder::new_multi_thread().enable_time().build().unwrap();
    println!(
        "publishers       what   acknowledged/s   delivered/s   to the handler p50 / p99     events per sync"
    );
    for publishers in publishers.iter().copied() {
        let count = events * publishers.min(8) / 8;
        let folder = tempfile::tempdir().unwrap();
        let (mut over, mut grown) = sync_times(folder.path());
        let figures = threads.block_on(bus(folder.path(), publishers, count));
        let line = |what: &str, figures: &Figures| {
            let Figures { acknowledged, delivered, p50, p99, shared } = figures;
            println!(
                "{publishers:>10} {what:>10} {acknowledged:>16.0} {delivered:>13.0} {p50:>14.0?} / {p99:<10.0?} {shared:>14.1}"
            );
        };
        line("bus", &figures);
        line("journal", &journal(folder.path(), publishers, (count / 10).max(2_000)));
        // Before and after, because the disk is not the same at all times.
        let (over_after, grown_after) = sync_times(folder.path());
        over.extend(over_after);
        grown.extend(grown_after);
        for (what, times) in [("a page in place", over), ("one more page", grown)] {
            let (sync, slow) = percentiles(times);
            let ratio = figures.p50.as_secs_f64() / sync.as_secs_f64();
            println!(
                "{publishers:>10}  fdatasync of {what}: {sync:.0?} p50, {slow:.0?} p99; the bus's p50 is {ratio:.1} of it"
            );
        }
    }
}
