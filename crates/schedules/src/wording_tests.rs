//! What a person reads who wrote something that cannot be.

use crate::Zone;
use crate::testing::refused;

#[test]
fn a_message_names_the_field_what_is_wrong_and_an_example() {
    for (text, message) in [
        (
            "61 * * * *",
            "error[HF-4301]: the minute of `61 * * * *` cannot be used: 61 is past 59
  help: The minute goes from 0 to 59; `*/15 * * * *` is every quarter of an hour.",
        ),
        (
            "0 24 * * *",
            "error[HF-4301]: the hour of `0 24 * * *` cannot be used: 24 is past 23
  help: The hour goes from 0 to 23; `0 9,17 * * *` is at nine and at five.",
        ),
        (
            "0 0 0 * *",
            "error[HF-4301]: the day of `0 0 0 * *` cannot be used: 0 is below 1
  help: The day goes from 1 to 31; `0 9 L * *` is on the last of every month.",
        ),
        (
            "0 0 * Jann *",
            "error[HF-4301]: the month of `0 0 * Jann *` cannot be used: `Jann` is neither a number, a name nor `*`
  help: The month goes from 1 to 12, or JAN to DEC; `0 9 1 JAN,JUL *` is twice a year.",
        ),
        (
            "0 0 * * 1,,5",
            "error[HF-4301]: the weekday of `0 0 * * 1,,5` cannot be used: a comma has nothing beside it
  help: The weekday goes from 0 to 7, or SUN to SAT; `0 9 * * MON-FRI` is at nine on working days.",
        ),
        (
            "5/15 * * * *",
            "error[HF-4301]: the minute of `5/15 * * * *` cannot be used: `5/15` has a step and no range
  help: Write `5-59/15`.",
        ),
        (
            "0 22-5 * * *",
            "error[HF-4301]: the hour of `0 22-5 * * *` cannot be used: `22-5` goes backwards
  help: Write it as two: `22-23,0-5`.",
        ),
        (
            "0 9 * * FRI-MON",
            "error[HF-4301]: the weekday of `0 9 * * FRI-MON` cannot be used: `FRI-MON` goes backwards
  help: Write it as two: `5-6,0-1`.",
        ),
        (
            "0 3 * *",
            "error[HF-4301]: `0 3 * *` has 4 fields, and five or six are needed
  help: Write minute, hour, day, month and weekday: `0 3 * * *` is every day at three. An interval is `every 15m`.",
        ),
        (
            "0 0 3 * * * 2027",
            "error[HF-4301]: `0 0 3 * * * 2027` has 7 fields, and five or six are needed
  help: There is no field for the year; for one moment, write `2027-01-31T09:00`.",
        ),
        (
            "@fortnightly",
            "error[HF-4301]: there is no nickname `@fortnightly`
  help: Use one of `@hourly`, `@daily`, `@midnight`, `@weekly`, `@monthly`, `@yearly`, `@annually`.",
        ),
        (
            "@reboot",
            "error[HF-4301]: there is no nickname `@reboot`
  help: A schedule knows no starts; an extension's `start` is called at each.",
        ),
        (
            "0 0 30 2 *",
            "error[HF-4302]: `0 0 30 2 *` names a date that never comes
  help: Check the day and the month: no such date exists.",
        ),
        (
            "every now and then",
            "error[HF-4303]: `every now and then` has a duration that cannot be read
  help: Write `every 15m`, `every 1h30m` or `PT15M`.",
        ),
        (
            "every 1mo",
            "error[HF-4303]: `every 1mo` counts in months or years, which are not of one length
  help: Use a cron expression: `0 9 1 * *` is at nine on the first of every month.",
        ),
        (
            "every 0s",
            "error[HF-4303]: `every 0s` is shorter than a second
  help: Write `every 15m`, `every 1h30m` or `PT15M`.",
        ),
        (
            "2027-02-30T09:00",
            "error[HF-4304]: `2027-02-30T09:00` is not a date and time
  help: Write `2027-01-31T09:00:00Z`, or `2027-01-31T09:00` for the time in the schedule's zone.",
        ),
        (
            "2027-01-31",
            "error[HF-4304]: `2027-01-31` has a date and no time
  help: Add one: `2027-01-31T09:00`. For every year, use a cron expression.",
        ),
        (
            "2027-01-31T09:00[Europe/Vienna]",
            "error[HF-4304]: `2027-01-31T09:00[Europe/Vienna]` names a zone in brackets
  help: Name the zone with `timezone`.",
        ),
    ] {
        assert_eq!(refused(text), message);
    }
}

#[test]
fn other_mistakes_are_found_too() {
    for (text, part) in [
        ("", "nothing says when"),
        ("*", "has one field"),
        ("*/0 * * * *", "the step of `*/0` is 0"),
        ("*/70 * * * *", "is past 59"),
        ("*/x * * * *", "is not a number"),
        ("/5 * * * *", "Write `*/5`"),
        ("1- * * * *", "a number is missing"),
        ("-1 * * * *", "a number is missing"),
        ("? * * * *", "neither a number nor `*`"),
        ("L * * * *", "neither a number nor `*`"),
        ("0 0 W * *", "`W` is neither a number"),
        ("0 0 32W * *", "32 is past 31"),
        ("0 0 * * 5#6", "`#6` is not one of"),
        ("0 0 * * 8L", "8 is past 7"),
        ("0 0 * * +5", "`+5` is neither"),
        ("70000 * * * *", "70000 is past 59"),
        ("60 * * * * *", "the second of"),
        ("every -5m", "shorter than a second"),
        ("every 1.00001s", "whole number of milliseconds"),
        ("every 5m from tomorrow", "`tomorrow` is not a date and time"),
        ("at noon", "`noon` is not a date and time"),
        ("1969-12-31T23:59:59Z", "too long ago"),
        ("PT", "cannot be read"),
        (&"1,".repeat(200), "longer than 200"),
    ] {
        let message = refused(text);
        assert!(message.contains(part), "{text}: {message}");
        assert!(message.contains("HF-43") && message.contains("help: "), "{text}: {message}");
    }
}

#[test]
fn an_unknown_zone_comes_with_the_one_that_was_meant() {
    for (name, help) in [
        ("Europe/Viena", "Did you mean `Europe/Vienna`?"),
        ("vienna", "Did you mean `Europe/Vienna`?"),
        ("New York", "Did you mean `America/New_York`?"),
        ("Austria/Vienna", "Did you mean `Europe/Vienna`?"),
        ("lord-howe", "Did you mean `Australia/Lord_Howe`?"),
        ("Wonderland", "Use a name of the time zone database, such as `Europe/Vienna` or `UTC`."),
        ("../../etc/passwd", "Use a name of the time zone database, such as `Europe/Vienna` or `UTC`."),
        ("", "Use a name of the time zone database, such as `Europe/Vienna` or `UTC`."),
    ] {
        let message = Zone::named(name).unwrap_err().to_string();
        let expected = format!("error[HF-4305]: there is no time zone `{name}`\n  help: {help}");
        assert_eq!(message, expected);
    }
}
