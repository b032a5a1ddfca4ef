//! Crashes: `kill -9` of real processes, power loss on a simulated disk, and a disk that is full.
//!
//! The modules with tests are `conversation`, `full_disk`, `full_disk_runtime`, `group_commit`, `kill`, `power_loss_runtime` and
//! `power_loss_storage`; the others are what they share. Failpoints belong to the process: nextest gives each test a process of its
//! own, and for `cargo test` each test holds a `FailScenario`, so that they run one after another.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on should stop loudly"
)]

mod conversation;
mod examine;
mod full_disk;
mod full_disk_runtime;
mod group_commit;
mod kill;
mod killed;
mod ledger;
mod life;
mod many;
mod plan;
mod power_loss_runtime;
mod power_loss_storage;
mod states;
mod world;

/// Not a test: the process that the tests start and kill.
#[test]
#[ignore = "started by the tests themselves"]
fn lives_for_its_parent() {
    killed::live_for_parent();
}
