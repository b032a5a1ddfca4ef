//! Moments for a person.

use holdfast_contract::ids::Millis;
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// The time of a log line: `2026-11-15 11:40:07`.
pub(crate) fn now() -> String {
    Timestamp::now().to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// A moment in the person's own time, to the minute: `2026-11-15 11:40`.
pub(crate) fn moment(at: Millis) -> String {
    let millis = i64::try_from(at.0).unwrap_or(i64::MAX);
    match Timestamp::from_millisecond(millis) {
        Ok(moment) => moment.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string(),
        Err(_) => "?".to_owned(),
    }
}
