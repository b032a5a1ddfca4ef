//! Which missed runs are made up for.

use std::time::{Duration, Instant};

use holdfast_contract::ids::Millis;
use holdfast_contract::system_frames::MissedPolicy::{self, RunAll, RunOnce, Skip};

use crate::testing::{at, timetable};
use crate::{MOST_MADE_UP, Passed, Runs, Settlement};

fn settle(text: &str, handled: &str, now: &str, policy: MissedPolicy) -> Settlement {
    timetable(text, "UTC").settle(at(handled), at(now), policy)
}

#[test]
fn a_run_that_is_on_time_is_run_under_every_policy() {
    for policy in [RunOnce, Skip, RunAll] {
        let settled = settle("0 3 * * *", "2026-11-04T03:00Z", "2026-11-05T03:00:00.250Z", policy);
        assert_eq!(settled, Settlement { run: vec![at("2026-11-05T03:00Z")], passed: None });
        assert_eq!(settled.handled(), Some(at("2026-11-05T03:00Z")));
    }
}

#[test]
fn nothing_is_due_before_its_time_nor_when_the_clock_was_put_back() {
    for now in ["2026-11-05T02:59:59.999Z", "2026-11-04T02:00Z", "2020-01-01T00:00Z"] {
        let settled = settle("0 3 * * *", "2026-11-04T03:00Z", now, RunAll);
        assert_eq!((settled.handled(), settled), (None, Settlement::default()));
    }
}

#[test]
fn the_latest_missed_run_makes_up_for_all() {
    let settled = settle("0 * * * *", "2026-11-05T00:00Z", "2026-11-05T05:30Z", RunOnce);
    assert_eq!(settled.run, [at("2026-11-05T05:00Z")]);
    let passed = settled.passed.unwrap();
    assert_eq!((passed.first, passed.last), (at("2026-11-05T01:00Z"), at("2026-11-05T04:00Z")));
    assert_eq!(passed.to_string(), "a later run makes up for it (4 runs)");
}

#[test]
fn missed_runs_are_skipped_where_that_is_asked_for() {
    let settled = settle("0 * * * *", "2026-11-05T00:00Z", "2026-11-05T02:30Z", Skip);
    let reason = "it was missed, and missed runs are skipped";
    let (first, last) = (at("2026-11-05T01:00Z"), at("2026-11-05T02:00Z"));
    let passed = Passed { first, last, runs: Runs::Exactly(2), reason };
    assert_eq!(settled.handled(), Some(last));
    assert_eq!(settled, Settlement { run: Vec::new(), passed: Some(passed) });
    let settled = settle("0 * * * *", "2026-11-05T00:00Z", "2026-11-05T02:01Z", Skip);
    assert_eq!(settled.run, [last], "a minute late is on time");
}

#[test]
fn all_missed_runs_are_made_up_for_within_a_bound() {
    let settled = settle("0 * * * *", "2026-11-05T00:00Z", "2026-11-05T03:30Z", RunAll);
    assert_eq!(settled.run, ["01:00", "02:00", "03:00"].map(|time| at(&format!("2026-11-05T{time}Z"))));
    assert_eq!(settled.passed, None);

    let settled = settle("0 * * * *", "2026-11-01T00:00Z", "2026-11-05T05:30Z", RunAll);
    assert_eq!((settled.run.len(), settled.run[0]), (MOST_MADE_UP, at("2026-11-01T02:00Z")));
    let passed = settled.passed.unwrap();
    assert_eq!((passed.first, passed.runs), (at("2026-11-01T01:00Z"), Runs::Exactly(1)));
    assert_eq!(passed.to_string(), "more runs were missed than are made up for");
}

#[test]
fn ten_years_of_missed_seconds_are_settled_at_once() {
    let every_second = timetable("* * * * * *", "Europe/Vienna");
    for policy in [RunOnce, Skip, RunAll] {
        let began = Instant::now();
        let settled = every_second.settle(at("2016-11-05T00:00Z"), at("2026-11-05T00:00Z"), policy);
        assert!(began.elapsed() < Duration::from_secs(60), "{policy:?} took {:?}", began.elapsed());
        assert_eq!(settled.handled(), Some(at("2026-11-05T00:00Z")));
        assert_eq!(settled.passed.unwrap().runs.to_string(), "more than 1000 runs");
    }
}

#[test]
fn a_moment_that_was_missed_follows_the_policy_too() {
    let text = "2026-11-05T09:00:00Z";
    assert_eq!(settle(text, "2026-11-04T00:00Z", "2026-11-06T00:00Z", RunOnce).run, [at(text)]);
    assert_eq!(settle(text, "2026-11-04T00:00Z", "2026-11-06T00:00Z", Skip).run, []);
    assert_eq!(settle(text, text, "2026-11-06T00:00Z", RunOnce), Settlement::default());
    let first_met = timetable(text, "UTC").settle(at("2026-12-01T00:00Z"), Millis(u64::MAX), RunAll);
    assert_eq!(first_met, Settlement::default(), "what lay in the past when it was first met is not due");
}
