//! The three forms of a schedule, and what is due when.

use std::time::{Duration, Instant};

use holdfast_contract::ids::Millis;
use holdfast_contract::system_frames::{MissedPolicy, ScheduleDue, ScheduleSpec};

use crate::testing::{at, due, shown, timetable, zone};
use crate::{RunKey, Timetable, Zone};

fn first(text: &str, after: &str) -> String {
    due(text, "UTC", after, 1).remove(0)
}

#[test]
fn the_schedules_of_an_extension_are_read_as_they_are_written() {
    let schedules = [
        ("nightly_consolidation", "0 3 * * *", "2026-11-05 03:00:00 +00:00"),
        ("daily_decay", "0 4 * * *", "2026-11-05 04:00:00 +00:00"),
        ("monitor", "*/5 * * * *", "2026-11-05 00:05:00 +00:00"),
    ];
    for (name, cron, next) in schedules {
        let spec = ScheduleSpec {
            name: name.to_owned(),
            cron: cron.to_owned(),
            task: name.to_owned(),
            timezone: None,
            missed: MissedPolicy::default(),
        };
        let timetable = Timetable::of(&spec, &Zone::utc()).unwrap();
        assert_eq!(shown(timetable.next_after(at("2026-11-05T00:00Z")).unwrap(), "UTC"), next);
    }
}

#[test]
fn what_the_guide_shows_can_be_read() {
    let guide = include_str!("../../../docs/schedules.md");
    let lines = guide.lines().filter_map(|line| line.trim().strip_prefix("cron: "));
    let shown = guide.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
    let looks_right =
        |text: &&str| text.starts_with(['@', 'P']) || text.starts_with("every ") || text.contains("* *");
    let texts: Vec<_> = lines.chain(shown.filter(looks_right)).collect();
    assert!(texts.len() > 20, "{texts:?}");
    for text in texts {
        timetable(text.trim_matches('"'), "UTC");
    }
}

#[test]
fn a_schedule_that_names_a_zone_does_not_use_the_default() {
    let spec = |timezone: Option<&str>| ScheduleSpec {
        name: "morning".to_owned(),
        cron: "0 9 * * *".to_owned(),
        task: "greet".to_owned(),
        timezone: timezone.map(str::to_owned),
        missed: MissedPolicy::default(),
    };
    let read = |timezone| Timetable::of(&spec(timezone), &zone("Asia/Tokyo"));
    assert_eq!(read(Some("europe/vienna")).unwrap().to_string(), "0 9 * * * (Europe/Vienna)");
    assert_eq!(read(None).unwrap().zone().name(), "Asia/Tokyo");
    assert!(read(Some("Europe/Wonderland")).is_err());
}

#[test]
fn cron_expressions_have_five_fields_or_six_names_and_days_of_the_month() {
    for (text, next) in [
        ("0 3 * * *", "2026-11-05 03:00:00 +00:00"),
        ("30 0 3 * * *", "2026-11-05 03:00:30 +00:00"),
        ("*/20 * * * * *", "2026-11-05 00:00:20 +00:00"),
        ("0 9 * * MON-FRI", "2026-11-05 09:00:00 +00:00"),
        ("0 9 * * sat,sun", "2026-11-07 09:00:00 +00:00"),
        ("0 9 * * FRI-SUN", "2026-11-06 09:00:00 +00:00"),
        ("0 9 * * 7", "2026-11-08 09:00:00 +00:00"),
        ("0 0 1 jan ?", "2027-01-01 00:00:00 +00:00"),
        ("0 12 L * *", "2026-11-30 12:00:00 +00:00"),
        ("0 12 LW * *", "2026-11-30 12:00:00 +00:00"),
        ("0 12 15W 11 *", "2026-11-16 12:00:00 +00:00"),
        ("0 12 * * FRI#2", "2026-11-13 12:00:00 +00:00"),
        ("0 12 * * friL", "2026-11-27 12:00:00 +00:00"),
        ("10-40/15 6 * * *", "2026-11-05 06:10:00 +00:00"),
        ("@hourly", "2026-11-05 01:00:00 +00:00"),
        ("@Daily", "2026-11-06 00:00:00 +00:00"),
        ("@midnight", "2026-11-06 00:00:00 +00:00"),
        ("@weekly", "2026-11-08 00:00:00 +00:00"),
        ("@monthly", "2026-12-01 00:00:00 +00:00"),
        ("@yearly", "2027-01-01 00:00:00 +00:00"),
    ] {
        assert_eq!(first(text, "2026-11-05T00:00Z"), next, "{text}");
    }
}

#[test]
fn a_day_fits_when_its_date_or_its_weekday_does() {
    let due = due("0 0 13 * FRI", "UTC", "2026-11-01T00:00Z", 4);
    let days: Vec<_> = due.iter().map(|due| &due[..10]).collect();
    assert_eq!(days, ["2026-11-06", "2026-11-13", "2026-11-20", "2026-11-27"]);
}

#[test]
fn leap_days_come_when_there_is_one() {
    let due = due("0 12 29 2 *", "Europe/Vienna", "2026-01-01T00:00Z", 2);
    assert_eq!(due, ["2028-02-29 12:00:00 +01:00", "2032-02-29 12:00:00 +01:00"]);
    assert_eq!(first("0 12 29 2 *", "2096-03-01T00:00Z"), "2104-02-29 12:00:00 +00:00");
    assert_eq!(first("0 12 29 FEB ?", "2028-02-29T11:59:59Z"), "2028-02-29 12:00:00 +00:00");
}

#[test]
fn intervals_are_counted_alike_by_everybody() {
    for (text, next) in [
        ("every 15m", "2026-11-05 00:15:00 +00:00"),
        ("EVERY 90s", "2026-11-05 00:03:00 +00:00"),
        ("every 1h30m", "2026-11-05 01:30:00 +00:00"),
        ("every 2 hours", "2026-11-05 02:00:00 +00:00"),
        ("PT15M", "2026-11-05 00:15:00 +00:00"),
        ("every PT1H", "2026-11-05 01:00:00 +00:00"),
        ("every 1d", "2026-11-06 00:00:00 +00:00"),
        ("every 1.5s", "2026-11-05 00:02:01 +00:00"),
        ("every 6h from 2026-11-05T02:20:00Z", "2026-11-05 02:20:00 +00:00"),
        ("every 6h from 2026-11-01T02:20", "2026-11-05 02:20:00 +00:00"),
    ] {
        assert_eq!(first(text, "2026-11-05T00:02Z"), next, "{text}");
    }
}

#[test]
fn an_interval_is_real_time_when_the_clocks_change() {
    let due = due("every 12h", "Europe/Vienna", "2026-03-28T12:00Z", 3);
    assert_eq!(
        due,
        ["2026-03-29 01:00:00 +01:00", "2026-03-29 14:00:00 +02:00", "2026-03-30 02:00:00 +02:00"]
    );
}

#[test]
fn a_moment_comes_once() {
    for (text, moment) in [
        ("2027-01-31T09:00:00Z", "2027-01-31T09:00:00Z"),
        ("2027-01-31T09:00:00+05:30", "2027-01-31T03:30:00Z"),
        ("2027-01-31T09:00", "2027-01-31T08:00:00Z"),
        ("at 2027-07-31 09:00:30", "2027-07-31T07:00:30Z"),
        ("2027-03-28T02:30", "2027-03-28T01:00:00Z"),
        ("2027-10-31T02:30", "2027-10-31T00:30:00Z"),
    ] {
        let timetable = timetable(text, "Europe/Vienna");
        let due = timetable.due_between(Millis(0), Millis(u64::MAX), 10);
        assert_eq!(due, [at(moment)], "{text}");
        assert_eq!(timetable.next_after(at(moment)), None, "{text}");
    }
}

#[test]
fn what_never_comes_ends_the_search_at_once() {
    let began = Instant::now();
    for text in ["0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 0 31W 2 *", "0 0 30,31 FEB ?"] {
        let problem = Timetable::parse(text, &Zone::utc()).unwrap_err();
        assert!(problem.to_string().starts_with("error[HF-4302]"), "{text}: {problem}");
    }
    let yearly = timetable("0 0 29 2 *", "Europe/Vienna");
    for late in [at("4999-06-01T00:00Z"), at("9999-06-01T00:00Z"), Millis(u64::MAX), Millis(1 << 62)] {
        assert_eq!(yearly.next_after(late), None);
    }
    assert_eq!(timetable("0 * * * *", "Europe/Vienna").next_after(at("5001-01-01T00:00Z")), None);
    assert_eq!(timetable("every 15m", "UTC").next_after(Millis(u64::MAX)), None);
    assert!(began.elapsed() < Duration::from_secs(60));
}

#[test]
fn the_last_of_a_span_is_found_without_walking_through_it() {
    let every_second = timetable("* * * * * *", "Europe/Vienna");
    let (after, until) = (at("2016-01-01T00:00Z"), Millis(at("2026-06-01T00:00:00Z").0 + 500));
    let began = Instant::now();
    assert_eq!(every_second.last_between(after, until), Some(at("2026-06-01T00:00:00Z")));
    assert!(began.elapsed() < Duration::from_secs(60));
    assert_eq!(every_second.last_between(until, until), None);
    assert_eq!(every_second.last_between(until, after), None);
}

#[test]
fn a_run_has_the_same_key_after_every_restart() {
    let read = || timetable("0 3 * * *", "Europe/Vienna");
    let key = |due| RunKey { schedule: "memory/nightly".into(), due };
    let [one, other] =
        [read(), read()].map(|timetable| key(timetable.next_after(at("2026-11-05T00:00Z")).unwrap()));
    assert_eq!(one, other);
    assert_eq!(one.to_string(), "memory/nightly@1793844000000");
    let due = ScheduleDue {
        schedule: "memory/nightly".into(),
        due: at("2026-11-05T02:00Z"),
        ..ScheduleDue::default()
    };
    assert_eq!(ScheduleDue::from(one), due);
}
