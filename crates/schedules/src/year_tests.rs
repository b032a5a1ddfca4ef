//! A year of schedules in zones whose clocks are changed twice, with restarts at any moment: against an oracle that looks at the clocks minute by
//! minute, nothing is missed and nothing is doubled.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_contract::ids::Millis;
use holdfast_contract::system_frames::MissedPolicy::{self, RunAll, RunOnce, Skip};
use jiff::Timestamp;
use jiff::civil::{Date, Time};
use jiff::tz::TimeZoneDatabase;

use crate::testing::{Chance, at, timetable};
use crate::{GRACE, RunKey, Runs, Timetable};

const ZONES: &[&str] = &["Europe/Vienna", "Australia/Lord_Howe", "America/Santiago"];
const MINUTE: u64 = 60_000;

/// Times of the day that an expression names, as hours and minutes.
const NAMED: &[(&str, &[(i8, i8)])] = &[
    ("0 3 * * *", &[(3, 0)]),
    ("30 2 * * *", &[(2, 30)]),
    ("15 2 * * *", &[(2, 15)]),
    ("45 1 * * *", &[(1, 45)]),
    ("@daily", &[(0, 0)]),
    ("30 0,23 * * *", &[(0, 30), (23, 30)]),
    ("10,50 1-3 * * *", &[(1, 10), (1, 50), (2, 10), (2, 50), (3, 10), (3, 50)]),
];

/// Minutes of every hour.
const HOURLY: &[(&str, &[i8])] = &[
    ("30 * * * *", &[30]),
    ("@hourly", &[0]),
    ("*/20 * * * *", &[0, 20, 40]),
    ("5,50 0-23 * * *", &[5, 50]),
];

fn year() -> (Millis, Millis) {
    (at("2026-01-01T00:00Z"), at("2027-01-01T00:00Z"))
}

/// What the clocks of a zone show, for every minute of the year.
fn clocks(zone: &str) -> Vec<(Millis, Date, Time)> {
    let zone = TimeZoneDatabase::bundled().get(zone).unwrap();
    let (from, until) = year();
    let minutes = (from.0..=until.0).step_by(usize::try_from(MINUTE).unwrap());
    minutes
        .map(|moment| {
            let local =
                zone.to_datetime(Timestamp::from_millisecond(i64::try_from(moment).unwrap()).unwrap());
            (Millis(moment), local.date(), local.time())
        })
        .collect()
}

/// Each named time once a day: when the clocks first show it, or else when they first show a later one.
fn named(clocks: &[(Millis, Date, Time)], times: &[(i8, i8)]) -> BTreeSet<Millis> {
    let mut days: BTreeMap<Date, Vec<(Time, Millis)>> = BTreeMap::new();
    for (moment, date, time) in clocks {
        days.entry(*date).or_default().push((*time, *moment));
    }
    let mut due = BTreeSet::new();
    // The first and the last day are not whole.
    let whole = days.len() - 1;
    for minutes in days.values().take(whole).skip(1) {
        for (hour, minute) in times {
            let wanted = Time::new(*hour, *minute, 0, 0).unwrap();
            let shown = minutes.iter().find(|(time, _)| *time == wanted);
            due.extend(
                shown.or_else(|| minutes.iter().find(|(time, _)| *time > wanted)).map(|(_, moment)| *moment),
            );
        }
    }
    due
}

fn hourly(clocks: &[(Millis, Date, Time)], minutes: &[i8]) -> BTreeSet<Millis> {
    clocks
        .iter()
        .filter(|(_, _, time)| minutes.contains(&time.minute()))
        .map(|(moment, ..)| *moment)
        .collect()
}

/// Every expression in every zone, with what the oracle says is due.
fn cases() -> Vec<(Timetable, BTreeSet<Millis>)> {
    let mut cases = Vec::new();
    for zone in ZONES {
        let clocks = clocks(zone);
        cases.extend(NAMED.iter().map(|(text, times)| (timetable(text, zone), named(&clocks, times))));
        cases.extend(HOURLY.iter().map(|(text, minutes)| (timetable(text, zone), hourly(&clocks, minutes))));
    }
    cases
}

#[test]
fn a_year_is_as_somebody_sees_it_who_watches_the_clocks() {
    for (timetable, expected) in cases() {
        let (first, last) = (*expected.first().unwrap(), *expected.last().unwrap());
        let found = timetable.due_between(Millis(first.0 - 1), last, usize::MAX);
        assert_eq!(found, Vec::from_iter(expected), "{timetable}");
    }
}

#[test]
fn named_times_come_once_on_every_day_of_the_year() {
    for zone in ZONES {
        let daily = timetable("30 2 * * *", zone);
        let (from, until) = (at("2026-01-01T12:00Z"), at("2026-12-31T12:00Z"));
        assert_eq!(daily.due_between(from, until, 1_000).len(), 364, "{zone}");
    }
}

/// What a restart finds: what was handled when it was last written down, and which runs were made.
#[derive(Default)]
struct Disk {
    handled: Millis,
    made: BTreeSet<RunKey>,
    passed: BTreeSet<Millis>,
}

impl Disk {
    /// Looks at the clock once. A crash comes after the run was made and before that was written down.
    fn look(&mut self, timetable: &Timetable, now: Millis, policy: MissedPolicy, crash: bool) -> Vec<Millis> {
        let settled = timetable.settle(self.handled, now, policy);
        let keys = settled.run.iter().map(|due| RunKey { schedule: "ext/task".into(), due: *due });
        let fresh: Vec<_> = keys.filter(|key| self.made.insert(key.clone())).map(|key| key.due).collect();
        if let Some(passed) = settled.passed.as_ref().filter(|_| !crash) {
            let due = timetable.due_between(Millis(passed.first.0 - 1), passed.last, usize::MAX);
            assert_eq!(passed.runs, Runs::Exactly(due.len()), "{timetable}");
            self.passed.extend(due);
        }
        if !crash {
            self.handled = settled.handled().unwrap_or(self.handled);
        }
        fresh
    }
}

#[test]
fn five_hundred_restarts_in_a_year_lose_and_double_nothing() {
    let (from, until) = year();
    for (round, (timetable, _)) in (1..).zip(cases().into_iter().step_by(2)) {
        let all = timetable.due_between(from, until, usize::MAX);
        for policy in [RunAll, RunOnce, Skip] {
            let mut chance = Chance(0x9E37_79B9 * round);
            let mut looks: Vec<_> = (0..500).map(|_| from.0 + chance.below(until.0 - from.0)).collect();
            // Some restarts follow each other at once, and some come at the very moment that something is due.
            looks.extend((0..100).map(|_| all[chance.below(all.len() as u64) as usize].0));
            looks.sort_unstable();
            looks.push(until.0);
            let mut disk = Disk { handled: from, ..Disk::default() };
            let mut made = Vec::new();
            for now in looks.into_iter().map(Millis) {
                let crash = now < until && chance.below(4) == 0;
                let fresh = disk.look(&timetable, now, policy, crash);
                for due in &fresh {
                    assert!(*due <= now, "{timetable}: nothing runs before its time");
                    assert!(
                        policy != Skip || now.since(*due) <= GRACE,
                        "{timetable}: too late a run was made"
                    );
                }
                assert!(
                    policy == RunAll || fresh.len() <= 1,
                    "{timetable}: {policy:?} makes one run at most"
                );
                made.extend(fresh);
            }
            assert!(made.is_sorted_by(|a, b| a < b), "{timetable}: {policy:?} is in order, each run once");
            assert_eq!(disk.handled, *all.last().unwrap(), "{timetable}: {policy:?} dealt with everything");
            let dealt_with: BTreeSet<_> = made.iter().copied().chain(disk.passed).collect();
            assert_eq!(Vec::from_iter(dealt_with), all, "{timetable}: {policy:?} ran it or passed it over");
        }
    }
}
