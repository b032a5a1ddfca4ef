//! One contract, many lanes: the same extension in every lane leaves the same frames.
//!
//! `tests/conformance/*.yaml` has the cases, `conformance/lanes.rs` the lanes, and the extension is written once for each of them:
//! `conformance/native.rs` in Rust, `tests/conformance/guest/` in C, `process/` and `class/` in Python, `plugin-rust/` and
//! `plugin-c/` as native plugins. To accept changed frames:
//! `INSTA_UPDATE=always cargo test -p holdfast-tests --test conformance`, then read the difference.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on should stop loudly"
)]

mod conformance {
    pub mod calls;
    pub mod cases;
    pub mod commands;
    pub mod courier;
    pub mod directive;
    pub mod files;
    pub mod follower;
    pub mod grants {
        pub mod asks;
        pub mod hooks;
        pub mod served;
        pub mod table;
        pub mod topics;
    }
    pub mod lanes;
    pub mod languages;
    pub mod native;
    pub mod plugins;
}

use conformance::grants::{hooks, table, topics};
use conformance::{calls, cases, commands, courier, files, follower, lanes, languages};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_lane_leaves_the_same_frames() {
    let lanes = lanes::all();
    let mut points = cases::Points::default();
    for group in cases::groups() {
        group.run(&lanes, &mut points).await;
    }
    points.are_all_met();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_lane_gives_the_same_replies() {
    calls::compare(&lanes::all()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_lane_runs_slash_commands() {
    commands::compare(&lanes::with_packs()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plain_file_leaves_the_same_frames() {
    files::compare().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_host_call_means_the_same_in_every_lane() {
    table::compare().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_hook_has_side_effects_in_any_lane() {
    hooks::sweep().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_language_reaches_outside_alike() {
    courier::compare().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_and_files_stay_within_what_is_granted() {
    courier::refusals().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_component_that_was_allowed_a_secret_replays() {
    courier::consent().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_is_followed_leaves_the_same_frames() {
    follower::compare().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_component_that_turns_away_from_an_agent_cancels_it() {
    follower::turns_away().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_component_follows_a_bounded_number_of_agents() {
    follower::as_many_as_there_may_be().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn components_in_every_language_make_every_host_call() {
    languages::compare_calls().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_component_with_every_grant_has_no_side_effects_in_its_gate() {
    languages::a_guard_that_acts().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rust_javascript_and_python_offer_every_role() {
    languages::compare_roles().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn topics_of_the_bus_mean_the_same_in_every_lane() {
    topics::compare().await;
}
