//! Moments that a reader can read, and chance that repeats itself.

use holdfast_contract::ids::Millis;
use jiff::Timestamp;
use jiff::tz::TimeZoneDatabase;

use crate::{Timetable, Zone};

/// A moment from its text.
pub(crate) fn at(text: &str) -> Millis {
    let moment: Timestamp = text.parse().unwrap();
    Millis(u64::try_from(moment.as_millisecond()).unwrap())
}

pub(crate) fn zone(name: &str) -> Zone {
    Zone::named(name).unwrap()
}

pub(crate) fn timetable(text: &str, name: &str) -> Timetable {
    Timetable::parse(text, &zone(name)).unwrap_or_else(|problem| panic!("{text}: {problem}"))
}

/// What the clocks of a zone show, with their distance from UTC.
pub(crate) fn shown(moment: Millis, name: &str) -> String {
    let moment = Timestamp::from_millisecond(i64::try_from(moment.0).unwrap()).unwrap();
    let zoned = moment.to_zoned(TimeZoneDatabase::bundled().get(name).unwrap());
    zoned.strftime("%Y-%m-%d %H:%M:%S %:z").to_string()
}

/// The first due times after a moment, as the clocks show them.
pub(crate) fn due(text: &str, name: &str, after: &str, count: usize) -> Vec<String> {
    let due = timetable(text, name).due_between(at(after), Millis(u64::MAX), count);
    due.into_iter().map(|due| shown(due, name)).collect()
}

/// The message of a text that cannot be read.
pub(crate) fn refused(text: &str) -> String {
    Timetable::parse(text, &Zone::utc()).map(|read| panic!("{read} was read")).unwrap_err().to_string()
}

/// Numbers that look random and are the same every time.
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    /// A number below a bound.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}
