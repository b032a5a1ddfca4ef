//! A disk that cannot be written for a while: publishers are told, nothing that was acknowledged is lost, and the bus goes on afterwards.

#![allow(clippy::unwrap_used)]

mod common;

use std::path::Path;
use std::time::Instant;

use common::*;
use holdfast_bus::Bus;
use holdfast_contract::ids::Millis;
use holdfast_contract::problem::Code;
use holdfast_store::{Store, StoreOptions};
use holdfast_testkit::disk::{DiskFault, SimulatedDisk};

fn on(disk: &SimulatedDisk) -> Lab {
    let options = StoreOptions { vfs: Some(disk.vfs_name().to_owned()), ..StoreOptions::default() };
    let store = Store::open(Path::new("holdfast.db"), options).unwrap();
    Lab { store, ..Lab::new() }
}

async fn publish_until_it_works(bus: &Bus, lab: &Lab, text: &str) {
    let deadline = Instant::now() + TIMEOUT;
    lab.clock.advance(1_000);
    while let Err(problem) = bus.publish(event("t", text).key("k")).await {
        assert!(Instant::now() < deadline, "{problem}");
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        lab.clock.advance(1_000);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_refuses_events_and_the_bus_goes_on_when_there_is_space_again() {
    let (disk, ledger) = (SimulatedDisk::new(), Ledger::default());
    let lab = on(&disk);
    let bus = lab.open(vec![ledger.subscription("one", &["t"])]).await;
    publish(&bus, "t", "k", "before").await;
    ledger.until(1).await;
    settled(&bus).await;
    lab.store.flush().unwrap();

    disk.fail_after(0, DiskFault::FullDisk);
    let refused = bus.publish(event("t", "while full").key("k")).await.unwrap_err();
    assert_eq!(refused.code, Code::StoreFull, "{refused}");
    disk.heal();
    publish_until_it_works(&bus, &lab, "after").await;
    ledger.until(2).await;
    settled(&bus).await;
    assert_eq!(ledger.texts("one"), ["before", "after"]);
    assert_eq!((lab.rows(), bus.status().write_failure), (0, None));
    assert_eq!(lab.store.verify(None).unwrap(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_handler_did_while_the_disk_failed_is_recorded_later_and_not_done_again() {
    let (disk, ledger) = (SimulatedDisk::new(), Ledger::default());
    let lab = on(&disk);
    let bus = lab.open(vec![ledger.subscription("one", &["t"])]).await;
    for text in ["good", "bad"] {
        ledger.tell("one", text, Act::Wait);
        publish(&bus, "t", text, text).await;
    }
    publish(&bus, "t", "good", "behind").await;
    ledger.until(2).await;
    disk.fail_after(0, DiskFault::Sync);
    ledger.let_go();
    eventually(|| bus.status().write_failure.is_some()).await;
    disk.heal();
    eventually(|| {
        lab.clock.advance(1_000);
        bus.status().write_failure.is_none()
    })
    .await;
    ledger.until(3).await;
    settled(&bus).await;
    assert_eq!(ledger.taken().len(), 3, "nothing was done twice: {:?}", ledger.taken());
    assert_eq!(lab.rows(), 0);
    bus.close(Millis(0)).await;
    assert_eq!(lab.store.verify(None).unwrap(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_log_ends_the_bus_and_not_the_process() {
    let (lab, ledger) = (Lab::new(), Ledger::default());
    let bus = lab.open(vec![ledger.subscription("one", &["t"])]).await;
    publish(&bus, "t", "k", "x").await;
    ledger.until(1).await;
    settled(&bus).await;
    lab.store.clone().close();
    for _ in 0..2 {
        let refused = bus.publish(event("t", "y").idempotency("once")).await.unwrap_err();
        assert_eq!(refused.code, Code::StoreUnavailable, "and the key is free for the next one who tries");
    }
    bus.close(Millis(0)).await;
}
