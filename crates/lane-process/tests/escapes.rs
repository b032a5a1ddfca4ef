//! Escape attempts from a program's confinement, each executed by a program of the process lane: the secret exists, the server listens,
//! the socket answers. An attempt must fail with an expected reason, reach nothing outside and change nothing outside. Operations that
//! must work are in the same table, so that a confinement in which nothing works is detected too.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on should stop loudly"
)]

mod support;

mod escapes {
    pub mod cases;
    pub mod world;
}

use std::time::Duration;

use escapes::cases::{self, Case};
use escapes::world::{SECRET, World};
use serde_json::{Value, json};

/// The timeout of one attempt, on a loaded machine.
const TIMEOUT: Duration = Duration::from_secs(120);

#[test]
fn the_table_is_complete_and_its_names_are_unique() {
    let cases = cases::all();
    let names: std::collections::BTreeSet<_> = cases.iter().map(|case| case.name).collect();
    assert_eq!(names.len(), cases.len(), "names are unique");
    let escapes = cases.iter().filter(|case| !case.expected.is_empty()).count() + cases::BOMBS.len();
    assert!(escapes >= 60, "{escapes} ways out");
}

/// Checks the outcome of an attempt.
fn judge(case: &Case, answer: &Value) -> Option<String> {
    let (name, failed) = (case.name, answer["failed"].as_str());
    if answer.to_string().contains(SECRET) {
        return Some(format!("{name}: the secret is out: {answer}"));
    }
    match (failed, case.expected) {
        (None, []) => None,
        (Some(why), []) => Some(format!("{name}: should work, and does not: {why}")),
        (None, _) => Some(format!("{name}: it worked: {answer}")),
        (Some(why), expected) if expected.iter().any(|it| why.starts_with(it)) => None,
        (Some(why), expected) => Some(format!("{name}: {why:?} is not one of {expected:?}")),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn escape_attempts_fail() {
    let world = World::new().await;
    let attacker = world.load("attacker").await;
    let mut broken = Vec::new();
    for case in cases::all() {
        let attempt = world.attempt(&attacker, case.code);
        match tokio::time::timeout(TIMEOUT, attempt).await {
            Ok(Ok(answer)) => broken.extend(judge(&case, &answer)),
            Ok(Err(fault)) => broken.push(format!("{}: the program is gone: {fault}", case.name)),
            Err(_) => broken.push(format!("{}: no answer", case.name)),
        }
    }
    assert!(broken.is_empty(), "{} cases:\n  {}", broken.len(), broken.join("\n  "));
    world.is_untouched(cases::REACHES_SERVER);
    drop(attacker);
    world.yard.empties().await;
}

/// Resource exhaustion. Each attempt has its own program, and another program must not be affected.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn resource_exhaustion_is_contained() {
    let world = World::new().await;
    let neighbour = world.load("neighbour").await;
    let mut broken = Vec::new();
    for (name, code, expected) in cases::BOMBS {
        let bomb = world.load("bomb").await;
        let answer = tokio::time::timeout(TIMEOUT, world.attempt(&bomb, code)).await;
        let told = match answer {
            Ok(Ok(answer)) => answer["failed"].as_str().unwrap_or("it worked").to_owned(),
            Ok(Err(fault)) => fault.message,
            Err(_) => "no answer".to_owned(),
        };
        if !expected.iter().any(|it| told.contains(it)) {
            broken.push(format!("{name}: {told:?} is not one of {expected:?}"));
        }
        drop(bomb);
        let well = tokio::time::timeout(TIMEOUT, world.attempt(&neighbour, "result = 'well'")).await;
        if well.as_ref().ok().and_then(|well| well.as_ref().ok()) != Some(&json!({ "worked": "'well'" })) {
            broken.push(format!("{name}: its neighbour: {well:?}"));
        }
    }
    assert!(broken.is_empty(), "{} cases:\n  {}", broken.len(), broken.join("\n  "));
    drop(neighbour);
    world.yard.empties().await;
    world.is_untouched(0);
    world.leaves_no_scratch();
}

/// Without confinement the same attempts succeed, so the tests are meaningful.
#[test]
fn without_confinement_the_attempts_succeed() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let world = runtime.block_on(World::new());
    for (code, expected) in cases::SPRUNG {
        let answer = world.attempt_without_walls(code);
        assert!(answer.to_string().contains(expected), "{code}: {answer}");
    }
}
