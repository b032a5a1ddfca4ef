//! Sixty-four publishers, each waiting for its own acknowledgement, share their syncs.

#![allow(clippy::unwrap_used)]

mod common;

use std::path::Path;
use std::time::Duration;

use common::*;
use holdfast_bus::Subscription;
use holdfast_contract::ids::Millis;
use holdfast_store::{Store, StoreOptions};
use holdfast_testkit::disk::SimulatedDisk;

const PUBLISHERS: u64 = 64;
const EVENTS_EACH: u64 = 100;

#[tokio::test(flavor = "multi_thread")]
async fn sixty_four_publishers_need_one_sync_per_thirty_two_events_at_most_deliveries_included() {
    let (disk, ledger) = (SimulatedDisk::new(), Ledger::default());
    // Long enough for every publisher to come to the processor meanwhile, even on a busy machine.
    disk.set_sync_delay(Duration::from_millis(20));
    let options = StoreOptions { vfs: Some(disk.vfs_name().to_owned()), ..StoreOptions::default() };
    let store = Store::open(Path::new("holdfast.db"), options).unwrap();
    let lab = Lab { store, ..Lab::new() };
    let terms = |name| Subscription { concurrency: 256, ..ledger.subscription(name, &["t.*"]) };
    let bus = lab.open(vec![terms("one"), terms("two")]).await;
    let (commits, syncs) = (lab.store.stats().commits, disk.counts().syncs);
    let publishers: Vec<_> = (0..PUBLISHERS)
        .map(|publisher| {
            let bus = bus.clone();
            tokio::spawn(async move {
                for number in 0..EVENTS_EACH {
                    publish(&bus, &format!("t.{}", number % 10), &format!("{publisher}"), "x").await;
                }
            })
        })
        .collect();
    for publisher in publishers {
        publisher.await.unwrap();
    }
    let events = PUBLISHERS * EVENTS_EACH;
    ledger.until(2 * events as usize).await;
    settled(&bus).await;
    let (commits, syncs) = (lab.store.stats().commits - commits, disk.counts().syncs - syncs);
    println!("{events} events to 2 subscribers: {commits} commits, {syncs} syncs");
    assert!(commits <= events / 32, "{commits} commits for {events} events");
    assert!(syncs <= events / 32, "{syncs} syncs for {events} events");
    bus.close(Millis(0)).await;
    assert_eq!(lab.rows(), 0);
}
