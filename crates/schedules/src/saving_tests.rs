//! What happens when the clocks are changed: what `docs/schedules.md` promises.

use crate::testing::due;

const VIENNA: &str = "Europe/Vienna";
/// Half an hour, in the southern hemisphere: forward on 4 October 2026, back on 5 April.
const LORD_HOWE: &str = "Australia/Lord_Howe";
/// Forward at midnight, so that a day begins at one.
const SANTIAGO: &str = "America/Santiago";

#[test]
fn a_time_that_is_left_out_comes_when_the_clocks_go_forward() {
    let found = due("30 2 * * *", VIENNA, "2026-03-27T12:00Z", 3);
    assert_eq!(
        found,
        ["2026-03-28 02:30:00 +01:00", "2026-03-29 03:00:00 +02:00", "2026-03-30 02:30:00 +02:00"]
    );
    let found = due("15 2 * * *", LORD_HOWE, "2026-10-03T00:00Z", 2);
    assert_eq!(found, ["2026-10-04 02:30:00 +11:00", "2026-10-05 02:15:00 +11:00"]);
    let found = due("@daily", SANTIAGO, "2026-09-05T12:00Z", 2);
    assert_eq!(found, ["2026-09-06 01:00:00 -03:00", "2026-09-07 00:00:00 -03:00"]);
}

#[test]
fn several_times_that_are_left_out_come_once() {
    let found = due("0,20,40 2,3 * * *", VIENNA, "2026-03-29T00:00Z", 4);
    assert_eq!(
        found,
        [
            "2026-03-29 03:00:00 +02:00",
            "2026-03-29 03:20:00 +02:00",
            "2026-03-29 03:40:00 +02:00",
            "2026-03-30 02:00:00 +02:00",
        ]
    );
}

#[test]
fn a_time_that_comes_twice_is_due_the_first_time() {
    let found = due("30 2 * * *", VIENNA, "2026-10-24T12:00Z", 2);
    assert_eq!(found, ["2026-10-25 02:30:00 +02:00", "2026-10-26 02:30:00 +01:00"]);
    let found = due("45 1 * * *", LORD_HOWE, "2026-04-04T00:00Z", 2);
    assert_eq!(found, ["2026-04-05 01:45:00 +11:00", "2026-04-06 01:45:00 +10:30"]);
}

#[test]
fn a_look_during_the_second_time_finds_the_next_day() {
    let found = due("0,30 2 * * *", VIENNA, "2026-10-25T01:10Z", 2);
    assert_eq!(found, ["2026-10-26 02:00:00 +01:00", "2026-10-26 02:30:00 +01:00"]);
}

#[test]
fn what_comes_every_hour_comes_every_real_hour() {
    let found = due("30 * * * *", VIENNA, "2026-03-28T23:45Z", 3);
    assert_eq!(
        found,
        ["2026-03-29 01:30:00 +01:00", "2026-03-29 03:30:00 +02:00", "2026-03-29 04:30:00 +02:00"]
    );
    let found = due("30 * * * *", VIENNA, "2026-10-24T23:45Z", 4);
    assert_eq!(
        found,
        [
            "2026-10-25 02:30:00 +02:00",
            "2026-10-25 02:30:00 +01:00",
            "2026-10-25 03:30:00 +01:00",
            "2026-10-25 04:30:00 +01:00",
        ]
    );
}

#[test]
fn half_an_hour_more_or_less_keeps_the_minutes_that_the_clocks_show() {
    let found = due("*/15 * * * *", LORD_HOWE, "2026-04-04T14:20Z", 4);
    assert_eq!(
        found,
        [
            "2026-04-05 01:30:00 +11:00",
            "2026-04-05 01:45:00 +11:00",
            "2026-04-05 01:30:00 +10:30",
            "2026-04-05 01:45:00 +10:30",
        ]
    );
    let found = due("0 * * * *", LORD_HOWE, "2026-10-03T14:00Z", 3);
    assert_eq!(
        found,
        ["2026-10-04 01:00:00 +10:30", "2026-10-04 03:00:00 +11:00", "2026-10-04 04:00:00 +11:00"]
    );
}

#[test]
fn a_day_that_a_country_leaves_out_is_made_up_for_when_the_next_begins() {
    let found = due("0 9 * * *", "Pacific/Apia", "2011-12-29T00:00Z", 3);
    assert_eq!(
        found,
        ["2011-12-29 09:00:00 -10:00", "2011-12-31 00:00:00 +14:00", "2011-12-31 09:00:00 +14:00"]
    );
}
