//! What holds for every timetable at every moment.

use holdfast_contract::ids::Millis;
use holdfast_contract::system_frames::MissedPolicy;
use proptest::collection::btree_set;
use proptest::prelude::*;

use crate::testing::at;
use crate::{Timetable, Zone};

const ZONES: &[&str] = &[
    "UTC",
    "Europe/Vienna",
    "Australia/Lord_Howe",
    "America/Santiago",
    "America/New_York",
    "Pacific/Apia",
    "Africa/Casablanca",
    "Asia/Kathmandu",
];

/// Moments at which clocks are changed in some of these.
const CHANGES: &[&str] = &[
    "2026-03-29T01:00Z",
    "2026-10-25T01:00Z",
    "2026-04-04T15:00Z",
    "2026-10-03T15:30Z",
    "2026-09-06T04:00Z",
];

/// A field: a star, a step, a range or a list.
fn field(low: u16, high: u16) -> impl Strategy<Value = String> {
    let list = |values: std::collections::BTreeSet<u16>| {
        values.iter().map(u16::to_string).collect::<Vec<_>>().join(",")
    };
    prop_oneof![
        3 => Just("*".to_owned()),
        1 => (1..=high).prop_map(|step| format!("*/{step}")),
        1 => (low..=high, low..=high).prop_map(|(a, b)| format!("{}-{}", a.min(b), a.max(b))),
        2 => btree_set(low..=high, 1..4).prop_map(list),
    ]
}

fn cron() -> impl Strategy<Value = String> {
    let seconds = prop_oneof![4 => Just(String::new()), 1 => field(0, 59).prop_map(|field| field + " ")];
    (seconds, field(0, 59), field(0, 23), field(1, 28), field(1, 12), field(0, 7))
        .prop_map(|(s, m, h, day, month, weekday)| format!("{s}{m} {h} {day} {month} {weekday}"))
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => cron(),
        1 => (1..100_000_u32).prop_map(|seconds| format!("every {seconds}s")),
        1 => (0..365_u32, 0..24_u32).prop_map(|(day, hour)| {
            let date = jiff::civil::date(2026, 1, 1).checked_add(jiff::Span::new().days(day)).unwrap();
            format!("{date}T{hour:02}:30")
        }),
    ]
}

fn timetable() -> impl Strategy<Value = Timetable> {
    (text(), prop::sample::select(ZONES))
        .prop_map(|(text, zone)| Timetable::parse(&text, &Zone::named(zone).unwrap()).unwrap())
}

/// A moment of the years around, often close to a change of the clocks.
fn moment() -> impl Strategy<Value = Millis> {
    let near = (prop::sample::select(CHANGES), -10_000_000..10_000_000_i64)
        .prop_map(|(change, away)| Millis(at(change).0.saturating_add_signed(away)));
    let any = (at("2025-01-01T00:00Z").0..at("2029-01-01T00:00Z").0).prop_map(Millis);
    prop_oneof![near, any]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_next_is_later(timetable in timetable(), moment in moment()) {
        if let Some(next) = timetable.next_after(moment) {
            prop_assert!(next > moment);
            prop_assert_eq!(timetable.next_after(Millis(next.0 - 1)), Some(next), "it is due at its own time");
        }
    }

    #[test]
    fn a_later_look_finds_nothing_earlier(timetable in timetable(), a in moment(), b in moment()) {
        let never = Millis(u64::MAX);
        let next = |moment| timetable.next_after(moment).unwrap_or(never);
        prop_assert!(next(a.min(b)) <= next(a.max(b)));
    }

    #[test]
    fn nothing_lies_between_a_moment_and_what_is_next(timetable in timetable(), moment in moment(), part in 0.0..1.0_f64) {
        if let Some(next) = timetable.next_after(moment) {
            let between = Millis(moment.0 + ((next.0 - moment.0 - 1) as f64 * part) as u64);
            prop_assert_eq!(timetable.next_after(between), Some(next));
        }
    }

    #[test]
    fn what_is_due_in_a_span_is_what_is_next_again_and_again(
        timetable in timetable(), after in moment(), hours in 0..2_000_u64, limit in 0..200_usize,
    ) {
        let until = after.plus(Millis(hours * 3_600_000));
        let mut expected = Vec::new();
        let mut from = after;
        while let Some(next) = timetable.next_after(from).filter(|next| *next <= until && expected.len() < limit) {
            expected.push(next);
            from = next;
        }
        prop_assert_eq!(timetable.due_between(after, until, limit), expected);
    }

    #[test]
    fn the_last_of_a_span_is_the_last_of_all(timetable in timetable(), after in moment(), hours in 0..100_u64) {
        let until = after.plus(Millis(hours * 3_600_000));
        let all = timetable.due_between(after, until, usize::MAX);
        prop_assert_eq!(timetable.last_between(after, until), all.last().copied());
    }

    #[test]
    fn every_due_time_is_run_or_passed_over_and_none_is_both(
        timetable in timetable(), handled in moment(), minutes in 0..3_000_u64,
        policy in prop::sample::select(&[MissedPolicy::RunOnce, MissedPolicy::Skip, MissedPolicy::RunAll][..]),
    ) {
        let now = handled.plus(Millis(minutes * 60_000));
        let all = timetable.due_between(handled, now, usize::MAX);
        let settled = timetable.settle(handled, now, policy);
        let count = all.len() - settled.run.len();
        prop_assert_eq!(&all[count..], &settled.run);
        prop_assert_eq!(settled.handled(), all.last().copied());
        prop_assert_eq!(settled.passed.as_ref().map(|passed| (passed.first, passed.last)), all[..count].first().copied().zip(all[..count].last().copied()));
    }

    #[test]
    fn no_text_breaks_the_reader(text in "\\PC{0,40}", start in prop::sample::select(&["", "every ", "at ", "@", "P", "2026-", "* * * * "][..])) {
        let _ = Timetable::parse(&format!("{start}{text}"), &Zone::utc());
        let _ = Zone::named(&text);
    }
}
